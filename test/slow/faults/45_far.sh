#!/usr/bin/env bash
# A link so long that an RDMA connection takes more time than a waiting client allows: the client goes on over TCP, and
# connects over RDMA in the background without that limit.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
if ! { on_a 'netem delay 400ms' && netem delay 400ms; }; then not_ok "netem fails"; fi
train --timeout 9000 --batch-size 2 --steps 12 --digests "$graphs/digests-small"
comes_by verbs
trained "a link on which an RDMA connection takes longer than a client waits costs no batch, and RDMA is used in the end"
on_a netem
netem
