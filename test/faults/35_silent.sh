#!/usr/bin/env bash
# RDMA that is lost on the way while TCP is not, as behind a firewall: the client notices, by silence, in time for the
# operation, and goes on over TCP; a client that opens finds TCP; RDMA is used again when it comes through.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --timeout 40000
comes_by verbs
on_a mute_rdma || not_ok "RDMA is muted"
comes_by tcp
more 10
trained "RDMA that falls silent costs no batch"
train --timeout 40000
comes_by tcp
on_a netem
comes_by verbs
trained "a client that opens while RDMA is silent goes on over TCP, and by RDMA when that speaks again"
