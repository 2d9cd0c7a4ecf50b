# What the scenarios on host b share; to be sourced by each of them (test/faults/NN_*.sh), which then runs a flow or two
# and says "ok - …" or "not ok - …" for each.
# shellcheck shell=bash
# shellcheck source=test/faults/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

said=/tmp/said # what the trainer says
ok() { printf 'ok - %s\n' "$*"; }
not_ok() {
	printf 'not ok - %s\n' "$*"
	tail -n 5 "$said"
}
: >"$said"

# on_a COMMAND…: host a does it; prints what it said and returns its status, 124 when it does not answer.
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

# Both parts, until the scenario ends.
serve_all() {
	trap end_all EXIT
	on_a serve_usual && serve_usual && return
	not_ok "servers come up"
	exit 1
}
end_all() {
	touch /tmp/until
	on_a 'ends KILL'
	ends KILL
	wait
}

# train ARGUMENT…: a trainer in the background, which goes on until it is `trained`; returns when it is in mid-epoch.
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

# more N: N more batches come.
more() {
	local had=0
	read -r had _ </tmp/progress
	within $step_limit batches $((had + $1)) || not_ok "the trainer does not go on"
}

# way PART NAME: whether the trainer reaches that part so now; "by NAME" waits for it.
way() {
	local words
	read -r -a words </tmp/progress
	[ "${words[$1 + 1]:-}" = "$2" ]
}
comes_by() { within $step_limit way 0 "$1" || not_ok "part 0 is not reached by $1, but: $(cat /tmp/progress)"; }

# trained WHAT: the trainer ends its epoch, and every batch was right.
trained() {
	touch /tmp/until
	if wait "$trainer"; then ok "$*"; else not_ok "$*: status $?"; fi
	[ -z "${VERBOSE:-}" ] || cat "$said"
}

# gives_up PATTERN WHAT: the trainer ends by itself, before somebody else ends it, with one line that matches.
gives_up() {
	local status
	wait "$trainer"
	status=$?
	if [ $status -ne 1 ]; then
		not_ok "$2: status $status"
	elif [ "$(grep -c '^trainer: ' "$said")" -ne 1 ] || ! grep -qE -- "^trainer: .*$1" "$said"; then
		not_ok "$2: the line does not say \"$1\""
	else
		ok "$2"
	fi
	[ -z "${VERBOSE:-}" ] || cat "$said"
}
