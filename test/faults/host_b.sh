#!/usr/bin/env bash
# Host b: runs the scenarios, all of them or those that are given.
[ $# -gt 0 ] || set -- "$(dirname "$0")"/[0-9]*.sh
for scenario in "$@"; do
	begun=${EPOCHREALTIME/[.,]/}
	timeout -k 5 900 bash "$scenario"
	status=$?
	name=$(basename "$scenario" .sh)
	[ $status -eq 0 ] || echo "not ok - $name: ended with status $status"
	printf '# %s: %d ms\n' "$name" $(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
done
