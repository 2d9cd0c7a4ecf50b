# What the scenarios on host b share; to be sourced by each of them (test/faults/NN_*.sh), which then runs a flow or two
# and says "ok - …" or "not ok - …" for each.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ok() { printf 'ok - %s\n' "$*"; }
not_ok() {
	printf 'not ok - %s\n' "$*"
	cat "$said" 2>/dev/null | head -n 5
}
said=/tmp/said

# on_a COMMAND…: host a does it; prints what it said and returns its status, 124 when it does not answer.
on_a() {
	local number status
	number=$(cat /tmp/asked 2>/dev/null || echo 0)
	echo $((number + 1)) >/tmp/asked
	echo "$*" >"$box/asking"
	mv "$box/asking" "$box/$number.ask"
	within $((step_limit + 5)) [ -e "$box/$number.did" ] || return 124
	cat "$box/$number.said"
	read -r status <"$box/$number.did"
	return "$status"
}

# serve_all ARGUMENT…: both parts.
serve_all() {
	on_a "serve $*" && serve "$@" && return
	not_ok "servers come up"
	exit 1
}
end_all() {
	on_a 'ends KILL' && ends KILL
}

# train ARGUMENT…: a trainer in the background, which goes on until `trained`; returns when it is in mid-epoch.
train() {
	rm -f /tmp/until /tmp/progress
	timeout -k 5 $trainer_limit "$programs/test/faults_trainer" --part-config "$parts" --digests "$parts.digests" --threads 1 \
		--servers "$servers" --key-file /tmp/key --until /tmp/until --progress /tmp/progress "$@" \
		</dev/null >$said 2>&1 &
	trainer=$!
	within $step_limit batches 10
}

# batches N: whether the trainer has had N batches.
batches() {
	local done=0
	read -r done _ 2>/dev/null </tmp/progress
	[ "${done:-0}" -ge "$1" ]
}

# more N: waits until N more batches have come.
more() {
	local done=0
	read -r done _ </tmp/progress
	within $step_limit batches $((done + $1))
}

# way PART NAME: whether the trainer reaches that part so now.
way() {
	local words
	read -r -a words </tmp/progress
	[ "${words[$1 + 1]:-}" = "$2" ]
}

# trained WHAT: the trainer ends its epoch, and every batch was right.
trained() {
	touch /tmp/until
	if wait "$trainer"; then ok "$*"; else not_ok "$*: status $?"; fi
}

# gives_up SECONDS PATTERN WHAT: the trainer ends by itself within so many seconds, with one line that matches.
gives_up() {
	local begun=$EPOCHSECONDS status
	wait "$trainer"
	status=$?
	if [ $status -ne 1 ]; then
		not_ok "$3: status $status"
	elif [ $((EPOCHSECONDS - begun)) -gt "$1" ]; then
		not_ok "$3: after $((EPOCHSECONDS - begun)) s"
	elif [ "$(wc -l <$said)" -ne 1 ] || ! grep -qE -- "$2" $said; then
		not_ok "$3: the line does not say \"$2\""
	else
		ok "$3"
	fi
}

# netem ARGUMENT…: what tc-netem(8) does to what this host sends; none: nothing any more.
netem() {
	tc qdisc del dev eth0 root 2>/dev/null
	[ $# -eq 0 ] || tc qdisc add dev eth0 root netem "$@"
}
servers=verbs:10.0.3.1:$port,verbs:10.0.3.2:$port
