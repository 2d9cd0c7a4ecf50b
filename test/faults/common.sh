# What both hosts of the fault scenarios know: to be sourced, in a guest of test/guest/pair. Host a is 10.0.3.1 and serves
# part 0, host b 10.0.3.2 and serves part 1; b trains.
# shellcheck shell=bash
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=$top/build/dev
parts=$top/build/guest/faults-graph/parts # of the checkout, which the guests see and only read
box=/tmp/shared
port=7000
serve_with="$programs/graphwire serve"
# The trainer's side of a scenario ends within so many seconds whatever happens; a step of one, within so many.
trainer_limit=60 step_limit=20

# within SECONDS COMMAND…: the command succeeds sooner or later; it is tried every 20 ms.
within() {
	local until=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $until ] || return 1
		sleep 0.02
	done
}

# serve ARGUMENT…: this host's server, in the background; its process in $server. On the port that it had before.
serve() {
	: >/tmp/server.log
	umask 077
	echo 'a key for two guests and nobody else' >/tmp/key
	case $GRAPHWIRE_GUEST in *-a) part=0 ip=10.0.3.1 ;; *) part=1 ip=10.0.3.2 ;; esac
	$serve_with --part-config "$parts" --part $part --listen "verbs:$ip:$port" --threads 1 --key-file /tmp/key \
		"$@" </dev/null >/tmp/server.log 2>&1 &
	server=$!
	within $step_limit grep -q '^serving part' /tmp/server.log && return
	echo "the server of part $part does not come up: $(tail -n 1 /tmp/server.log)"
	return 1
}

# ends SIGNAL: this host's server, without the shell's line about it.
ends() {
	kill "-$1" "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=''
}

# The processor time that a process has used, user and system, in ticks.
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
