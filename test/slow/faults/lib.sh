# Shared by the scenarios on host b (test/slow/faults/NN_*.sh). Each scenario sources this file, runs a flow or two, and prints
# "ok - …" or "not ok - …" for each.
# shellcheck shell=bash
# shellcheck source=test/slow/faults/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

said=/tmp/said # the trainer's output
ok() { printf 'ok - %s\n' "$*"; }
not_ok() {
	printf 'not ok - %s\n' "$*"
	tail -n 5 "$said"
}
: >"$said"

# on_a COMMAND…: runs the command on host a; prints its output and returns its status, or 124 without an answer.
on_a() {
	local number=0 status
	[ ! -e /tmp/asked ] || read -r number </tmp/asked
	echo $((number + 1)) >/tmp/asked
	echo "$*" >"$box/asking"
	mv "$box/asking" "$box/$number.ask"
	within $((step_limit + 5)) [ -e "$box/$number.did" ] || return 124
	[ ! -s "$box/$number.said" ] || cat "$box/$number.said"
	read -r status <"$box/$number.did"
	return "$status"
}

# Serves both parts until the scenario ends.
serve_all() {
	trap end_all EXIT
	on_a serve_usual && serve_usual && return
	not_ok "servers do not start"
	exit 1
}
end_all() {
	touch /tmp/until
	on_a 'ends KILL'
	ends KILL
	wait
}

# train ARGUMENT…: starts a trainer in the background, which runs until `trained`; returns when it is in mid-epoch.
train() {
	rm -f /tmp/until
	: >/tmp/progress
	start_trainer --until /tmp/until "$@"
	within $step_limit batches 5 || not_ok "the trainer does not begin"
}
start_trainer() {
	GRAPHWIRE_LOG=${LOG:-warn} timeout -k 5 $trainer_limit "$programs/test/faults_trainer" --part-config "$graphs/parts" \
		--digests "$graphs/digests" --threads 1 --batch-size 8 --servers "$servers" --key-file /tmp/key \
		--progress /tmp/progress "$@" </dev/null >"$said" 2>&1 &
	trainer=$!
}

# batches N: whether the trainer has had N batches.
batches() {
	local had=0
	read -r had _ </tmp/progress
	[ "${had:-0}" -ge "$1" ]
}

# more N: waits for N more batches.
more() {
	local had=0
	read -r had _ </tmp/progress
	within $step_limit batches $((had + $1)) || not_ok "the trainer does not go on"
}

# is_reached PART NAME: whether the trainer now reaches the part over transport NAME. comes_by NAME: waits for that of part 0.
is_reached() {
	local words
	read -r -a words </tmp/progress
	[ "${words[$1 + 1]:-}" = "$2" ]
}
comes_by() { within $step_limit is_reached 0 "$1" || not_ok "part 0 is not reached over $1, but: $(cat /tmp/progress)"; }

# trained WHAT: lets the trainer end its epoch; checks that every batch was right.
trained() {
	touch /tmp/until
	if wait "$trainer"; then ok "$*"; else not_ok "$*: status $?"; fi
	[ -z "${VERBOSE:-}" ] || cat "$said"
}

# gives_up PATTERN WHAT: checks that the trainer ends by itself, before its time limit, with one line that matches PATTERN.
gives_up() {
	local status
	wait "$trainer"
	status=$?
	if [ $status -ne 1 ]; then
		not_ok "$2: status $status"
	elif [ "$(grep -c '^trainer: ' "$said")" -ne 1 ] || ! grep -qE -- "^trainer: .*$1" "$said"; then
		not_ok "$2: no single line matches \"$1\""
	else
		ok "$2"
	fi
	[ -z "${VERBOSE:-}" ] || cat "$said"
}
