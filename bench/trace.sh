#!/usr/bin/env bash
# trace.sh: what a trace costs (GRAPHWIRE_TRACE), in instructions, which repeat where times do not. valgrind counts those
# of a client that streams an epoch of mini-batches.
#
#   bench/trace.sh [--rounds N] [--scale N] [--out FOLDER] [OTHER]
#
# OTHER is another build of the program, as of the commit before a change: its epoch must take as many instructions as one
# without a trace. Each of N (3) rounds counts, in turn: OTHER, without a trace, with a trace; standalone, and over TCP from
# two servers, which valgrind does not count. The graph has 2^N (16) nodes and 128 features; a batch has 1000 seeds, and
# fanouts 10,25. The last lines compare the least counts of all rounds: the client may begin one batch of the next epoch
# before it ends, and over TCP it polls more often in some rounds.
# Makes the release build first. All output stays in FOLDER (build/bench-trace), with the last traces.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=3 scale=16 out=build/bench-trace other=''
usage() {
	sed -n '2,/^set/p' bench/trace.sh | sed -n 's/^# \{0,1\}//p' >&2
	exit 2
}
while [ $# -gt 0 ]; do
	case $1 in
	--rounds | --scale | --out)
		[ -n "${2:-}" ] || usage
		case $1 in
		--rounds) rounds=$2 ;;
		--scale) scale=$2 ;;
		--out) out=$2 ;;
		esac
		shift
		;;
	-*) usage ;;
	*) [ -x "$1" ] || usage && other=$1 ;;
	esac
	shift
done
command -v valgrind >/dev/null || { echo "trace.sh: valgrind is missing: install it (apt install valgrind)" >&2 && exit 1; }
cmake --preset release >/dev/null
cmake --build --preset release --target graphwire-cmd >/dev/null
program=$PWD/build/release/graphwire
mkdir -p "$out/runtime" && chmod 700 "$out/runtime"
XDG_RUNTIME_DIR=$(realpath "$out/runtime") && export XDG_RUNTIME_DIR
unset GRAPHWIRE_TRACE
rm -rf "$out/whole" "$out/parts"
"$program" generate rmat --scale "$scale" --features 128 --labels 5 --out "$out/whole" --quiet
"$program" partition "$out/whole" --num-parts 2 --method random --out "$out/parts" >/dev/null

servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait' EXIT
addresses=''
for part in 0 1; do
	"$program" serve --part-config "$out/parts" --part $part --listen 127.0.0.1:0 >"$out/server$part.log" 2>&1 &
	servers+=($!)
	until address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$out/server$part.log") && [ -n "$address" ]; do
		kill -0 "${servers[$part]}" && sleep 0.1
	done
	addresses=$addresses${addresses:+,}$address
done

count() { # count PROGRAM WAY: instructions of an epoch
	local ways=()
	[ "$2" = tcp ] && ways=(--servers "$addresses" --transport tcp)
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$1" epoch --part-config "$out/parts" --threads 1 --depth 1 \
		--fanouts 10,25 "${ways[@]}" 2>&1 >/dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
: >"$out/counts"
for ((round = 1; round <= rounds; round++)); do
	for way in standalone tcp; do
		[ -n "$other" ] && echo "$way other $(count "$other" $way)" >>"$out/counts"
		echo "$way off $(count "$program" $way)" >>"$out/counts"
		echo "$way on $(GRAPHWIRE_TRACE=$out/$way.json count "$program" $way)" >>"$out/counts"
	done
done
awk '
{ if (!(($1, $2) in least) || $3 < least[$1, $2]) least[$1, $2] = $3 }
END {
	split("standalone tcp", ways, " ")
	for (i = 1; i <= 2; i++) {
		way = ways[i]
		off = least[way, "off"]
		printf "%-10s  off %.1f M instructions", way, off / 1e6
		if ((way, "other") in least) printf " (OTHER %+.3f %%)", 100 * (least[way, "other"] - off) / off
		printf ", on %+.2f %%\n", 100 * (least[way, "on"] - off) / off
	}
}' "$out/counts"
