#!/usr/bin/env bash
# Host b: runs the scenarios, all of them or those that are given.
#
# Between two scenarios nothing is wrong with the link. If host a's kernel then answers nothing all the same, the emulated
# network card has stalled (its kernel says so: "NETDEV WATCHDOG: transmit queue timed out"), which no program in the guests
# can do: we end with status 126, and test/check/verbs.sh boots both hosts again.

# A port without a listener: the kernel at the other end refuses it, whatever else runs there.
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
