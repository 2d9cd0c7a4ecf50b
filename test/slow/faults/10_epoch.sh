#!/usr/bin/env bash
# A cluster of two hosts without a fault: over every transport to the other host's part, an epoch equals the standalone
# client's.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all

# epoch TRANSPORT0 TRANSPORT1 WHAT ARGUMENT…: runs one epoch, and checks the transport to each part.
epoch() {
	local transports="$1 $2" what=$3 status
	shift 3
	start_trainer "$@"
	wait "$trainer"
	status=$?
	if [ $status -ne 0 ]; then
		not_ok "$what: status $status"
	elif [ "$(sed -n 's/^part .: //p' "$said" | xargs)" != "$transports" ]; then
		not_ok "$what: the transports to the parts are not $transports"
	else
		ok "$what"
	fi
}
epoch verbs shm "an epoch with the other host's part over RDMA, and this host's part mapped"
epoch verbs shm "an epoch by requests over RDMA" --neighbours requests
epoch tcp tcp "an epoch over TCP" --transport tcp
