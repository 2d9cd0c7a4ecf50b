#!/usr/bin/env bash
# Queue pairs at the client and at the server go to the error state in mid-epoch: no batch is lost.
# shellcheck disable=SC2016 # host a expands $server
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --transport verbs --break-every 30
more 60
trained "a client's queue pairs in error cost no batch"
train --break-every 30
comes_by tcp
comes_by verbs
trained "a client whose queue pairs are in error goes on over TCP, and returns to RDMA"

on_a 'ends KILL; serve "$programs/test/faults_server"' || not_ok "the server that breaks queue pairs does not start"
train
for _ in 1 2; do
	comes_by verbs
	on_a 'kill -USR1 $server; within $step_limit grep -q "^broken: [1-9]" /tmp/server.log' || not_ok "no queue pair broke"
	more 10
done
trained "a server's queue pairs in error cost no batch"
