#!/usr/bin/env bash
# The server of the other host's part is stopped for good. Reads need none of its code: a complete epoch, thousands of
# rows and 100,000 draws by weight arrive and are right, while the server uses no processor time. Requests to it end at
# their deadline.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
rm -f /tmp/ready /tmp/go
timeout -k 5 $trainer_limit "$programs/test/faults_stopped" --part-config "$graphs/parts" --servers "$servers" \
	--key-file /tmp/key --ready /tmp/ready --go /tmp/go >"$said" 2>&1 </dev/null &
reader=$!
within $step_limit [ -e /tmp/ready ] || not_ok "the reader does not connect"
before=$(on_a 'stop_server && server_ticks')
touch /tmp/go
if wait $reader; then ok "an epoch, thousands of rows and draws by weight from a stopped server, and a request that ends at its deadline: $(tail -n 1 "$said")"; else not_ok "reads from a stopped server: status $?"; fi
after=$(on_a server_ticks)
if [ -n "$before" ] && [ "$before" = "$after" ]; then
	ok "the stopped server used no processor time"
else
	not_ok "the stopped server used the processor: $before ticks before, $after after"
fi
