#!/usr/bin/env bash
# Each fuzz target replays its corpus (test/fuzz/corpus/TARGET, which contains every crash ever found), then searches
# for new inputs for FUZZ_SECONDS (3; test/slow/soak/fuzz.sh: a minute). One target runs on each processor at a time. A crash leaves its input in
# build/check/fuzz. An input counts as hanging after a minute: libFuzzer measures wall time, and a process may wait long
# for a busy processor.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
build fuzz || exit 1
export FUZZ_SECONDS=${FUZZ_SECONDS:-3} ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

one() { # one PROGRAM
	local target corpus=test/fuzz/corpus/${1##*/} found=build/check/fuzz/${1##*/} status=0
	target=${1##*/}
	mkdir -p "$found/new"
	local limits=(-timeout=60 -rss_limit_mb=2048 -artifact_prefix="$found/" -print_final_stats=1)
	if [ ! -d "$corpus" ]; then
		not_ok "$target has no corpus: $corpus"
		return 1
	fi
	if "$1" "${limits[@]}" -runs=0 "$corpus"; then ok "$target replays its corpus"; else not_ok "$target fails on its corpus" && status=1; fi
	if "$1" "${limits[@]}" -max_total_time="$FUZZ_SECONDS" "$found/new" "$corpus"; then
		ok "$target finds nothing in $FUZZ_SECONDS s"
	else
		not_ok "$target: the input is in $found" && status=1
	fi
	return $status
}

if [ "${1:-}" = --one ]; then
	one "$2" >"build/check/fuzz/${2##*/}.log" 2>&1
	exit
fi
mkdir -p build/check/fuzz
rm -f build/check/fuzz/*.log
find build/fuzz -type f -name 'fuzz_*' -perm -u+x | sort |
	xargs -r -P "$(nproc)" -n 1 bash "$0" --one
status=$?
cat build/check/fuzz/*.log || not_ok "there is no fuzz target"
exit $status
