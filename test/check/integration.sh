#!/usr/bin/env bash
# Runs the scripts of test/integration in order with the release build's program (test/integration/lib.sh).
cd "$(dirname "$0")/../.." && . test/check/lib.sh
build release || exit 1
export GRAPHWIRE=$PWD/build/release/graphwire
status=0
for script in test/integration/*.sh; do
	[ "${script##*/}" = lib.sh ] && continue
	start=$SECONDS
	log=$(mktemp)
	timeout -k 10 600 bash "$script" 2>&1 | tee "$log"
	if [ "${PIPESTATUS[0]}" -ne 0 ]; then
		status=1
		# A script that died before it reported a failed test counts as one failed test.
		grep -q '^not ok - ' "$log" || not_ok "$script ended early"
	fi
	rm -f "$log"
	echo "$script: $((SECONDS - start)) s"
done
exit $status
