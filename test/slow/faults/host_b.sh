#!/usr/bin/env bash
# Host b: runs all scenarios, or the scenarios that the arguments name.
#
# Between two scenarios the link has no fault. If host a's kernel does not answer then, the emulated network card has
# stalled (its kernel logs "NETDEV WATCHDOG: transmit queue timed out"). No program in the guests can cause that. Host b
# then ends with status 126, and test/check/verbs.sh boots both hosts again.

# No program listens on port 9, so the other host's kernel refuses the connection, whatever runs there.
answers() { timeout 10 bash -c ': </dev/tcp/10.0.3.1/9' 2>&1 | grep -q refused; }
link_stalled() { ! answers && ! answers && ! answers; }

[ $# -gt 0 ] || set -- "$(dirname "$0")"/[0-9]*.sh
for scenario in "$@"; do
	begun=${EPOCHREALTIME/[.,]/}
	timeout -k 5 900 bash "$scenario"
	status=$?
	name=$(basename "$scenario" .sh)
	[ $status -eq 0 ] || echo "not ok - $name: ended with status $status"
	printf '# %s: %d ms\n' "$name" $(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
	if link_stalled; then
		echo "# the emulated network card has stalled"
		exit 126
	fi
done
