#!/usr/bin/env bash
# The counts of test_fabric_scale for 64 servers and 64 clients, in one process. The test itself counts small systems.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
build_tests dev '^test_fabric_scale$' || exit 1
log=$(mktemp)
if timeout 1200 build/dev/test/test_fabric_scale 64 64 1 >"$log" 2>&1; then
	grep ' by the formula' "$log"
	ok "64 servers and 64 clients: counts equal docs/SCALING.md's formulas"
else
	tail -n 20 "$log"
	not_ok "64 servers and 64 clients: counts differ from docs/SCALING.md's formulas"
fi
rm -f "$log"
