#!/usr/bin/env bash
# sanitized.sh asan|tsan: test programs under sanitizers. The thread sanitizer sees only programs that make threads.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

threaded_regex() {
	local names
	mapfile -t names < <(grep -lE 'thread|parallel' test/{unit,conformance,oracle}/test_*.c 2>/dev/null |
		xargs -r -n 1 basename | sed 's/\.c$//')
	local IFS='|'
	echo "^(${names[*]:-none})\$"
}

# The real graphs all the way take minutes under a sanitizer and run no line that made ones have not run.
without_real() { sed -E 's/test_(client|partition)_real//g; s/\|+/|/g; s/\(\|/(/; s/\|\)/)/'; }

case $1 in
asan) regex=$(test_regex unit conformance oracle | without_real) ;;
tsan) regex=$(threaded_regex | without_real) ;;
esac
build "$1" && run_tests "$1" "$regex"
