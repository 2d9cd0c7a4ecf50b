#!/usr/bin/env bash
# A slow link that loses, damages, repeats and reorders packets: few batches arrive, and all of them are right.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
for transport in verbs tcp; do
	if ! { on_a 'netem delay 20ms loss 1%' && netem delay 20ms loss 1%; }; then not_ok "netem fails"; fi
	train --transport $transport --timeout 20000 --batch-size 2 --steps 12 --digests "$graphs/digests-small"
	trained "1 % loss and 20 ms of delay each way: every batch is right ($transport)"
	on_a netem
	netem
done
for fault in 'corrupt 1%' 'duplicate 5%' 'delay 5ms reorder 25%'; do
	# shellcheck disable=SC2086 # words
	if ! { on_a "netem $fault" && netem $fault; }; then not_ok "netem $fault fails"; fi
	train --transport tcp --timeout 40000 --batch-size 2 --steps 12 --digests "$graphs/digests-small"
	trained "$fault each way: every batch is right (tcp)"
	on_a netem
	netem
done
