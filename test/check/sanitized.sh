#!/usr/bin/env bash
# sanitized.sh asan|tsan: runs test programs under sanitizers. The thread sanitizer runs only programs that make
# threads: all of conformance and client, and other programs whose source mentions threads. Two programs read thousands
# of times on the same threads; the thread sanitizer runs one of the two. test_draw_kinds draws in one thread. Left to
# test/slow/soak/sanitized.sh, which sets GRAPHWIRE_TEST_MANY: real graphs and test_client_kinds, which run the same code and
# threads as other programs do, and larger counts. (test_client_kinds runs here over the simulated RDMA device.) So are
# client programs over the simulated device whose calls, and threads, are those of the remaining ones, and of the thread
# sanitizer test_means: it counts what loaders move, which test_lookahead, test_client_lists and test_client_replicas run.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
# Eight frames of an allocation show where it is. To record the default of thirty takes more processor time.
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:malloc_context_size=8 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

left='_real$|^test_client_kinds$|^test_(checkpoint|client_(ed|li|node|rep|texts)|disk_lists|lookahead|mutable|tensor_writes|tensors_[fls]).*_fabric$'
[ "$1" = tsan ] && left+='|^test_means$'
[ -n "${GRAPHWIRE_TEST_MANY:-}" ] && left='^$'

all() { find test/{unit,conformance,fabric,client,oracle} -name 'test_*.c'; }
threaded() {
	find test/conformance test/client test/fabric -name 'test_*.c' ! -name test_transport_reads.c ! -name test_draw_kinds.c
	grep -lE 'thread|parallel' test/{unit,oracle}/test_*.c
}
regex_of() { # regex_of FILE…
	local names IFS='|'
	mapfile -t names < <(printf '%s\n' "$@" | sed 's#.*/##; s/\.c$//; p; s/$/_fabric/' | grep -vE "$left")
	echo "^(${names[*]:-none})\$"
}

# shellcheck disable=SC2046 # names of files
case $1 in
asan) regex=$(regex_of $(all)) ;;
tsan) regex=$(regex_of $(threaded)) ;;
esac
# With mapped memory, the second driver runs the same code as the first. Spinning changes what one thread does: the thread
# sanitizer sees it in test_transport_spin.
if [ -z "${GRAPHWIRE_TEST_MANY:-}" ]; then
	export GRAPHWIRE_TEST_WITHOUT=shm/io_uring
	[ "$1" = tsan ] && GRAPHWIRE_TEST_WITHOUT+=',tcp/io_uring spinning'
fi
build_tests "$1" "$regex" && run_tests "$1" "$regex"
