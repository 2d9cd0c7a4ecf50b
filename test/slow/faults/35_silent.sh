#!/usr/bin/env bash
# RDMA packets are lost and TCP's are not, as behind a firewall. The client notices the silence before the operation's
# deadline and goes on over TCP. A client that opens meanwhile uses TCP. When RDMA packets arrive again, RDMA is used again.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --timeout 40000
comes_by verbs
on_a mute_rdma || not_ok "RDMA cannot be muted"
comes_by tcp
more 10
trained "RDMA that falls silent costs no batch"
train --timeout 40000
comes_by tcp
on_a netem
comes_by verbs
trained "a client that opens while RDMA is silent uses TCP, and RDMA when its packets arrive again"
