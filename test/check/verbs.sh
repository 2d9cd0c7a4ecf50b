#!/usr/bin/env bash
# Tests RDMA over Soft-RoCE devices in small guests (test/slow/guest/run), which need neither root nor a device here. At the
# same time run:
#
#   one guest    the transport suite, RDMA's own faults, and the client, in one boot
#   one guest    the report for a host with a card (test/slow/rdma/run --short), and the doctor, in the same boot
#   two guests   two hosts: a server and a trainer, with faults of servers, links and devices (test/slow/faults)
#
# Each test prints one ok/not ok line; a program that dies or runs out of time is one failed test.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
# Runs two programs at a time, the longest first, over RDMA only. soak adds test/slow/soak/guest_kinds.sh: programs whose
# reads and calls are, for the transport, those of the programs here. The step client runs them over a made-up device.
together='test_client test_tensor_writes test_client_landing test_disk_rows test_client_bad_servers test_transport_dynamic
	test_checkpoint test_tensors test_transport_reads test_mutable_features test_transport_several test_transport_versioned test_doctor_bad_servers test_transport_calls test_client_links
	test_client_subgraph test_doctor_peer test_transport_life test_tensor_slices test_transport_verbs_trust test_transport_once test_transport_verbs_together test_client_small
	test_transport_fork test_client_split test_transport_deferred test_request_cancel test_client_lists test_client_replicas'
choosing='test_client_transports test_arena_numa' # may choose another transport
alone='test_transport_verbs'                # runs alone, because it removes the device and adds it again
# The programs of the doctor's test, which removes the device last, and of the faults between two hosts.
actors='graphwire-cmd faults_trainer faults_server faults_stopped faults_deadline faults_connections'
limit=1200 whole=2400 # seconds for one program, and for a boot; whole is less than the step's limit of 2480 s

deploy/packages.sh guest || exit 1
# shellcheck disable=SC2086 # lists of words
build dev $together $choosing $alone $actors || exit 1
test/slow/faults/graphs.sh build/guest/faults-graph >/dev/null || exit 1
one=$(mktemp) two=$(mktemp) hosts=''
# shellcheck disable=SC2317 # the trap calls it
finish() {
	[ -z "$hosts" ] || kill "$hosts" 2>/dev/null && wait "$hosts" 2>/dev/null
	rm -f "$one" "$two"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Runs the scenarios on two hosts. If a pair's emulated link stalls (host_b.sh reports it), the pair boots again, at
# most twice.
# shellcheck disable=SC2317 # the trap calls it
faults() {
	local pair='' status=0
	trap 'kill "$pair" 2>/dev/null; wait "$pair"; exit 130' INT TERM
	trap - EXIT
	for try in 1 2 3; do
		test/slow/guest/pair -n faults -t $whole "bash '$PWD/test/slow/faults/host_a.sh'" \
			"bash '$PWD/test/slow/faults/host_b.sh'" >"$two" 2>&1 &
		pair=$!
		wait "$pair"
		status=$?
		[ $status -eq 126 ] && [ $try -lt 3 ] || return $status
		echo "note: the emulated link between the two hosts stalled: both are booted again"
	done
}
faults &
hosts=$!
words=''
for program in $together; do words+=" '$PWD/build/dev/test/$program'"; done
for program in $choosing; do words+=" 'env GRAPHWIRE_TEST_BED= $PWD/build/dev/test/$program'"; done
test/slow/guest/run -n check -t $whole -- env GRAPHWIRE_TEST_BED=verbs CMOCKA_MESSAGE_OUTPUT=TAP CI= bash -c "
	'$PWD/test/slow/guest/each' -t $limit -j 2 $words
	together=\$?
	'$PWD/test/slow/guest/each' -t $limit '$PWD/build/dev/test/$alone' \
		'python3 -B $PWD/test/slow/rdma/run --short --limit 600 --build $PWD/build/dev --out /tmp/out/report.txt' \
		'env GRAPHWIRE_TEST_BED= $PWD/test/slow/guest/doctor $PWD/build/dev/graphwire' && exit \$together" 2>&1 | tee "$one"
status=${PIPESTATUS[0]}
wait "$hosts" || status=1
hosts=''

awk '
/^# start / { last = $NF; sub(/.*\//, "", last) }
/^# begin / { program = $NF; sub(/.*\//, "", program); bad = 0; ended = 0; began++ }
/# SKIP/ { skipped++; next }
# The findings of test/slow/rdma/run; its summary repeats them.
/^== summary/ { report = 1 }
/^# (begin|end) / { report = 0 }
report { next }
/^ok - / { sub(/^ok - /, ""); print "ok - verbs rdma/run: " $0; next }
/^not ok - / { sub(/^not ok - /, ""); print "not ok - verbs rdma/run: " $0; bad++; next }
/^ok [0-9]+ - / { sub(/^ok [0-9]+ - /, ""); print "ok - verbs " program ": " $0; good++ }
/^not ok [0-9]+ - / { sub(/^not ok [0-9]+ - /, ""); print "not ok - verbs " program ": " $0; bad++ }
/^# end / {
	ended++
	if ($(NF - 1) != 0 && !bad) print "not ok - verbs " program ": ended with status " $(NF - 1)
	print program ": " $NF " s"
}
END {
	if (began && !ended) print "not ok - verbs " program ": the guest ended before it did"
	if (!began) print "not ok - verbs: " (last ? "nothing ended; the last that the guest started is " last : "the guest did not begin")
	if (skipped) print "note: " skipped " skipped"
}' "$one"
awk -v scenarios="$(find test/slow/faults -name '[0-9]*.sh' | wc -l)" '
/^ok - / { sub(/^ok - /, ""); print "ok - verbs faults: " $0; next }
/^not ok - / { sub(/^not ok - /, ""); print "not ok - verbs faults: " $0; failed = 1; next }
/^# [0-9]+_.* ms$/ { ended++ }
{ print }
END { if (ended != scenarios) print "not ok - verbs faults: " scenarios - ended " scenarios did not end" }' "$two"
exit "$status"
