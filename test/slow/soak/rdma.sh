#!/usr/bin/env bash
# The whole report for a host with an RDMA card (test/slow/rdma/run), in one guest with Soft-RoCE and in two guests, where the
# peer's link goes down too. An emulated host needs several times the ten minutes of a real one.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
deploy/packages.sh guest || exit 1
status=0
for kind in one two; do
	test/slow/rdma/guests "$kind" 2400 | sed -n "/^== summary/q; s/^\\(ok\\|not ok\\) - /\\1 - rdma, $kind guest(s): /p"
	[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
done
exit $status
