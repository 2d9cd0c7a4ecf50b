#!/usr/bin/env bash
# perftest.sh: runs the row benchmarks over RDMA and perftest's ib_read_lat and ib_read_bw, in one boot of the guest
# (test/slow/guest/run). The guest has an emulated Soft-RoCE device, so only the ratios are meaningful.
#
#   bench/peers/perftest.sh [--rounds N] [--queue-pairs N] [--out FOLDER] [SIZE…]     bytes of a row (64 512 4096)
#   bench/peers/perftest.sh --count [SIZE…]          by a clock that counts instructions: repeatable figures
#   bench/peers/perftest.sh --sweep [--rounds N] [--out FOLDER]        8 B to 64 KiB, on 1, 2, 4 and 8 queue pairs
#
# Each of N (3) rounds runs the following for each size, one after the other: ib_read_lat, single rows; ib_read_bw,
# gathers of random rows, gathers of runs of 8 neighbours. perftest and Graphwire use equally many queue pairs. perftest
# has 128 reads in flight on each; Graphwire adapts their number, up to 192. The last lines are the medians of the
# rounds' ratios. The two figures of a ratio are measured within seconds. The benchmarks check every row.
# Makes the release build first. No other work should run on the machine. All output stays in FOLDER (build/perftest).
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=3 pairs=2 sweep='' sizes='' out=build/perftest guest=()
usage() {
	sed -n '2,/^set/p' bench/peers/perftest.sh | sed -n 's/^# \{0,1\}//p' >&2
	exit 2
}
number() { case $1 in '' | *[!0-9]* | 0*) echo "perftest.sh: \"$1\" is not a number" >&2 && exit 2 ;; esac; }
while [ $# -gt 0 ]; do
	case $1 in
	--sweep) sweep=1 ;;
	--count) rounds=1 guest=(-c 1 -m 1024) && export GRAPHWIRE_GUEST_ACCEL=icount ;;
	--rounds | --queue-pairs | --out)
		[ -n "${2:-}" ] || usage
		case $1 in
		--rounds) number "$2" && rounds=$2 ;;
		--queue-pairs) number "$2" && pairs=$2 ;;
		--out) out=$2 ;;
		esac
		shift
		;;
	-*) usage ;;
	*) number "$1" && sizes="$sizes $1" ;;
	esac
	shift
done
if [ -n "$sweep" ]; then
	sizes=${sizes:-8 64 512 4096 32768 65536} pairs='1 2 4 8'
fi
sizes=${sizes:-64 512 4096}
deploy/packages.sh build guest
cmake --preset release >/dev/null
cmake --build --preset release --target graphwire-cmd
mkdir -p "$out"

# The script that runs in the guest. It prints lines "ROUND SIZE PAIRS WHAT FIGURE [CEILING]".
cat >"$out/inside" <<'INSIDE'
lat() {
	ib_read_lat -d rxe0 -x 1 -s "$1" -n 500 >/dev/null 2>&1 &
	sleep 1.2
	ib_read_lat -d rxe0 -x 1 -s "$1" -n 500 10.0.3.1 2>/dev/null | awk -v s="$1" '$1 == s { print $5 }'
	wait
}
bw() { # bw SIZE PAIRS: GB/s, average
	ib_read_bw -d rxe0 -x 1 -s "$1" -q "$2" -t 128 -D 3 -f 1 >/dev/null 2>&1 &
	sleep 1.2
	ib_read_bw -d rxe0 -x 1 -s "$1" -q "$2" -t 128 -D 3 -f 1 10.0.3.1 2>/dev/null |
		awk -v s="$1" '$1 == s { print $4 * 1.048576e-3 }'
	wait
}
ours() { # ours ARGUMENT…: value and ceiling of the last figure
	"$GRAPHWIRE" bench "$@" --transport verbs --repeats 5 --json - 2>/dev/null |
		sed -n 's/.*"value":\([^,]*\),.*"ceiling":\([^,]*\),.*/\1 \2/p' | tail -n 1
}
for ((round = 1; round <= ROUNDS; round++)); do
	for size in $SIZES; do
		if [ -z "$SWEEP" ]; then
			echo "$round $size 1 ib_read_lat $(lat "$size")"
			echo "$round $size 1 row $(ours latency --row "$size" --spin 20000 --rounds 200 --table 16Mi)"
		fi
		for pairs in $PAIRS; do
			gather="gather --row $size --table 64Mi --batch $((size > 4096 ? 64 : 1000)) --seconds 0.6 --queue-pairs $pairs"
			echo "$round $size $pairs ib_read_bw $(bw "$size" "$pairs")"
			# shellcheck disable=SC2086 # words
			echo "$round $size $pairs gather $(ours $gather)"
			# shellcheck disable=SC2086
			[ -n "$SWEEP" ] || echo "$round $size $pairs runs $(ours $gather --run 8)"
		done
	done
done
INSIDE

test/slow/guest/run -n perftest "${guest[@]}" -o "$out" -t 3000 -- env GRAPHWIRE="$PWD/build/release/graphwire" SIZES="$sizes" \
	PAIRS="$pairs" ROUNDS="$rounds" SWEEP="$sweep" bash -c "$(cat "$out/inside")" | tee "$out/lines"
python3 bench/peers/perftest_ratios.py "$out/lines"
