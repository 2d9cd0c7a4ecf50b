#!/usr/bin/env bash
# A link that is slow and loses packets: little comes, and all of it is right.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
for transport in verbs tcp; do
	if ! { on_a 'netem delay 20ms loss 1%' && netem delay 20ms loss 1%; }; then not_ok "netem"; fi
	train --transport $transport --timeout 20000 --batch-size 2 --steps 12 --digests "$graphs/digests-small"
	trained "1 % loss and 20 ms of delay each way: every batch is right ($transport)"
	on_a netem
	netem
done
