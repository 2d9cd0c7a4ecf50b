#!/usr/bin/env bash
# A server is killed in mid-epoch. If it comes back on its port, with other keys and other memory, no batch is lost. If it
# comes back with another graph, or stays away, the trainer ends with an error that names the server.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
for transport in auto verbs; do
	train --transport $transport
	for _ in 1 2; do
		on_a 'ends KILL; serve_usual' || not_ok "the server does not come back"
		more 10
	done
	trained "servers that are killed and started again cost no batch ($transport)"
done

train
on_a "ends KILL; graphs=$graphs/other serve_usual" || not_ok "the server of another graph does not start"
gives_up 'server 10\.0\.3\.1:7000 serves graph' "a server that comes back with another graph is an error that names it"

on_a 'ends KILL; serve_usual'
train --reconnect 2000
on_a 'ends KILL'
gives_up 'server 10\.0\.3\.1:7000: .*reconnect budget of 2000 ms' "a server that stays away is an error that names it"
