#!/usr/bin/env bash
# Host b: runs the scenarios, then lets host a go.
. "$(dirname "$0")/common.sh"
[ $# -gt 0 ] || set -- "$(dirname "$0")"/[0-9]*.sh
for scenario in "$@"; do
	begun=${EPOCHREALTIME/[.,]/}
	timeout -k 5 100 bash "$scenario"
	status=$?
	name=$(basename "$scenario" .sh)
	[ $status -eq 0 ] || echo "not ok - $name: ended with status $status"
	printf '# %s: %d ms\n' "$name" $(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
done
