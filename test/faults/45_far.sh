#!/usr/bin/env bash
# A link so long that a connection by RDMA takes more time than a client has for it while it waits: it goes on over TCP,
# and takes as long as it must for RDMA beside that.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
if ! { on_a 'netem delay 400ms' && netem delay 400ms; }; then not_ok "netem"; fi
train --timeout 9000 --batch-size 2 --steps 12 --digests "$graphs/digests-small"
comes_by verbs
trained "a link on which RDMA takes longer than anybody waits costs no batch, and RDMA is used in the end"
on_a netem
netem
