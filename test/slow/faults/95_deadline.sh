#!/usr/bin/env bash
# Bytes that arrive after their read's deadline are not written: reads with short deadlines over a slow link.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
for transport in verbs tcp; do
	rm -f /tmp/ready /tmp/go
	timeout -k 5 $trainer_limit "$programs/test/faults_deadline" --server $transport://10.0.3.1:7000 --key-file /tmp/key \
		--ready /tmp/ready --go /tmp/go >"$said" 2>&1 </dev/null &
	reader=$!
	within $step_limit [ -e /tmp/ready ] || not_ok "the reader does not connect"
	on_a 'netem delay 300ms' || not_ok "netem fails"
	touch /tmp/go
	if wait $reader; then ok "nothing is written after a deadline ($transport): $(tail -n 1 "$said")"; else not_ok "late reads ($transport): status $?"; fi
	on_a netem
done
