#!/usr/bin/env bash
# The transport suite, what only RDMA can suffer, and the client, over a Soft-RoCE device in one boot of a small guest
# (test/guest/run). Each test of theirs is one ok/not ok line; a program that dies or runs out of time is one failed test.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
together='test_client test_transport_reads test_transport_calls test_transport_life' # two at a time
alone='test_transport_verbs'                                                         # takes the device away
limit=600 # seconds for one program; the guest has three times that: a machine that is busy otherwise slows it down

deploy/packages.sh guest || exit 1
# shellcheck disable=SC2086 # lists of words
cmake --preset dev >/dev/null && cmake --build --preset dev --target $together $alone || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
test/guest/run -n check -t $((3 * limit)) -- env GRAPHWIRE_TEST_BED=verbs CMOCKA_MESSAGE_OUTPUT=TAP CI= bash -c "
	'$PWD/test/guest/each' -t $limit -j 2 ${together//test_/$PWD/build/dev/test/test_}
	together=\$?
	'$PWD/test/guest/each' -t $limit ${alone//test_/$PWD/build/dev/test/test_} && exit \$together" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
awk '
/^# begin / { program = $3; sub(/.*\//, "", program); bad = 0; ended = 0; began++ }
/# SKIP/ { skipped++; next }
/^ok [0-9]+ - / { sub(/^ok [0-9]+ - /, ""); print "ok - verbs " program ": " $0; good++ }
/^not ok [0-9]+ - / { sub(/^not ok [0-9]+ - /, ""); print "not ok - verbs " program ": " $0; bad++ }
/^# end / {
	ended++
	if ($4 != 0 && !bad) print "not ok - verbs " program ": ended with status " $4
	print program ": " $5 " s"
}
END {
	if (began && !ended) print "not ok - verbs " program ": the guest ended before it did"
	if (!began) print "not ok - verbs: the guest did not begin"
	if (skipped) print "note: " skipped " skipped"
}' "$log"
exit "$status"
