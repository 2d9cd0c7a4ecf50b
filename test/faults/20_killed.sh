#!/usr/bin/env bash
# A server that is killed in mid-epoch: back on its port, it costs no batch; away for good, it is an error by name.
. "$(dirname "$0")/lib.sh"
serve_all
train
for round in 1 2 3; do
	on_a 'ends KILL; serve' || not_ok "the server comes back"
	more 20 || not_ok "round $round goes on"
done
trained "a server that is killed and started again costs no batch"

train --reconnect 2000
on_a 'ends KILL'
gives_up 6 'server .*10\.0\.3\.1:7000.*reconnect budget of 2000 ms' "a server that stays away is an error by name, in time"
ends KILL
