# Shared by the scripts in test/integration, which source it. Each script is a separate program: run it with bash.
#
#   $GRAPHWIRE   the program (build/release/graphwire)
#   $work        a folder that is removed when the script ends
#
# Results are lines "ok - …" and "not ok - …". A script exits with 0 if it ran to its end and each result was ok, with 1
# if a result was not ok, and else with the status with which it ended early.
# shellcheck shell=bash
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export GRAPHWIRE=${GRAPHWIRE:-$top/build/release/graphwire}
work=$(mktemp -d)
failures=0
started=() # process ids

# Some scripts lower the limit of open files. So they close the descriptors that their caller left open; bash has the
# script itself at 255.
for descriptor in /proc/self/fd/*; do
	descriptor=${descriptor##*/}
	if [ "$descriptor" -gt 2 ] && [ "$descriptor" -ne 255 ]; then eval "exec $descriptor>&-"; fi
done

finish() {
	local status=$? pid # the status first: each command replaces it
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$work"
	[ "$failures" -eq 0 ] || status=1
	exit "$status"
}
trap finish EXIT

ok() { printf 'ok - %s\n' "$*"; }
not_ok() {
	printf 'not ok - %s\n' "$*"
	failures=$((failures + 1))
}

# holds WHAT COMMAND…: the command succeeds.
holds() {
	local what=$1
	shift
	if "$@" >"$work/out" 2>"$work/err"; then
		ok "$what"
	else
		not_ok "$what (status $?): $*"
		tail -n 5 "$work/out" "$work/err"
	fi
}

# refuses WHAT STATUS PATTERN COMMAND…: the command ends with this status and exactly one line on stderr, which matches.
refuses() {
	local what=$1 expected=$2 pattern=$3 status lines
	shift 3
	timeout 300 "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	lines=$(wc -l <"$work/err")
	if [ "$status" -ne "$expected" ]; then
		not_ok "$what: status $status, not $expected: $*"
	elif [ "$lines" -ne 1 ]; then
		not_ok "$what: $lines lines on stderr, not one: $*"
	elif ! grep -qE -- "$pattern" "$work/err"; then
		not_ok "$what: the line does not say \"$pattern\": $*"
	else
		ok "$what"
		return
	fi
	head -n 5 "$work/err"
}

# within SECONDS COMMAND…: the command succeeds within this time; it is tried ten times a second.
within() {
	local tries=$(($1 * 10))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $((tries--)) -gt 0 ] || return 1
		sleep 0.1
	done
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# suspend PROCESS: returns when all of its threads are stopped. One that runs when the signal comes may still answer.
suspend() { kill -STOP "$1" && within 100 all_stopped "$1"; }
all_stopped() { ! grep -h '^State:' "/proc/$1/task"/*/status | grep -qv 'T (stopped)'; }
