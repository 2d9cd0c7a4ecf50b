#!/usr/bin/env bash
# The counts of test_fabric_scale for many servers and clients, in one process. The test itself counts small systems.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
build_tests dev '^test_fabric_scale$' || exit 1
log=$(mktemp)
# 512 servers have 13 descriptors each, and a connection has two, one at each end: as many clients as they allow.
clients=$((($(ulimit -n) - 512 * 13) / (512 * 2)))
for system in "64 64" "128 16" "512 $((clients < 16 ? clients : 16))"; do
	read -r servers clients <<<"$system"
	if timeout 1200 build/dev/test/test_fabric_scale "$servers" "$clients" 1 >"$log" 2>&1; then
		grep ' by the formula' "$log"
		ok "$servers servers and $clients clients: counts equal docs/SCALING.md's formulas"
	else
		tail -n 20 "$log"
		not_ok "$servers servers and $clients clients: counts differ from docs/SCALING.md's formulas"
	fi
done
rm -f "$log"
