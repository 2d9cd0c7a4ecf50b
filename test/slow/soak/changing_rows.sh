#!/usr/bin/env bash
# Rows that change: 10⁸ of them read over every way while two writers change them, none torn; 1,000 links cut under pushes,
# each push applied once. GRAPHWIRE_SOAK_SECONDS (900) bounds each of the runs: what is done is kept in build/check/soak and
# counts the next time, as long as the program is the same. Exit status 0: nothing failed, be it done or not.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
reads=${GRAPHWIRE_SOAK_READS:-25000000} # over each of four ways
cuts=${GRAPHWIRE_SOAK_CUTS:-1000}
seconds=${GRAPHWIRE_SOAK_SECONDS:-900}
kept=build/check/soak
status=0
mkdir -p "$kept"

# resume NAME GOAL WHAT PROGRAM [ARGUMENT…]: runs it for what is missing, adds what its last line "done N …" says.
resume() {
	local name=$1 goal=$2 what=$3 program=$4 before=0 same now
	shift 4
	same=$(sha1sum "$program" | cut -d ' ' -f 1)
	[ "$(cut -d ' ' -f 1 "$kept/$name" 2>/dev/null)" = "$same" ] && before=$(cut -d ' ' -f 2 "$kept/$name")
	if [ "$before" -lt "$goal" ]; then
		if ! "$program" "$@" $((goal - before)) "$seconds" >"$kept/$name.log" 2>&1; then
			tail -n 5 "$kept/$name.log"
			not_ok "$what: failed after $before and $(sed -n 's/^done //p' "$kept/$name.log" | tail -n 1)"
			rm -f "$kept/$name"
			status=1
			return
		fi
		now=$(sed -n 's/^done \([0-9]*\).*/\1/p' "$kept/$name.log" | tail -n 1)
		echo "$name: $(grep '^done' "$kept/$name.log" | tail -n 1)"
		before=$((before + ${now:-0}))
		echo "$same $before" >"$kept/$name.new" && mv "$kept/$name.new" "$kept/$name"
	fi
	ok "$what: $before of $goal"
	[ "$before" -ge "$goal" ] || note "$what: the time was over at $before of $goal; run it again for the rest"
}

for way in memory shm epoll io_uring; do
	resume "rows-$way" "$reads" "rows read over $way, none torn" build/dev/test/soak_rows "$way"
done
resume cuts "$cuts" "links cut under pushes, all applied once" build/dev/test/soak_cuts
exit $status
