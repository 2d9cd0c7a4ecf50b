#!/usr/bin/env bash
# A cluster of two without any fault: an epoch by every way to the other host's part is the standalone client's.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all

# epoch WAY0 WAY1 WHAT ARGUMENT…: one epoch, the parts reached so.
epoch() {
	local ways="$1 $2" what=$3 status
	shift 3
	start_trainer "$@"
	wait "$trainer"
	status=$?
	if [ $status -ne 0 ]; then
		not_ok "$what: status $status"
	elif [ "$(sed -n 's/^part .: //p' "$said" | xargs)" != "$ways" ]; then
		not_ok "$what: the parts are reached by other ways than $ways"
	else
		ok "$what"
	fi
}
epoch verbs shm "an epoch, the other host's part by RDMA, one's own mapped"
epoch verbs shm "an epoch by requests over RDMA" --neighbours requests
epoch tcp tcp "an epoch over TCP" --transport tcp
