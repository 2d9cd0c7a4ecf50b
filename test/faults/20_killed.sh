#!/usr/bin/env bash
# A server that is killed in mid-epoch: back on its port it costs no batch, though its keys and its memory are others;
# with another graph, or away for good, it is an error by name.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
for transport in auto verbs; do
	train --transport $transport
	for _ in 1 2; do
		on_a 'ends KILL; serve_usual' || not_ok "the server comes back"
		more 10
	done
	trained "servers that are killed and started again cost no batch ($transport)"
done

train
on_a "ends KILL; graphs=$graphs/other serve_usual" || not_ok "the server of another graph comes up"
gives_up 'server 10\.0\.3\.1:7000 serves graph' "a server that comes back with another graph is an error by name"

on_a 'ends KILL; serve_usual'
train --reconnect 2000
on_a 'ends KILL'
gives_up 'server 10\.0\.3\.1:7000: .*reconnect budget of 2000 ms' "a server that stays away is an error by name"
