#!/usr/bin/env bash
# 268 million edges (R-MAT 24 × 16) generated, sorted and written within 4 GiB of a control group; 60 bytes of disk an edge,
# in $TMPDIR. SCALE=N: 2^N nodes, within 2^(N-24) of the memory. 26_import_memory.sh of test/integration is the small case.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
scale=${SCALE:-24}
budget=$(((4 << 30) >> (24 - scale)))
allowed=$((budget + 8 * (1 << scale) + (64 << 20))) # 8 bytes a node, and the program itself
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
groups=test/support/control_groups.py
if ! group=$(python3 $groups make soak); then
	note "this machine makes no control group for memory"
	exit 0
fi
SECONDS=0
python3 $groups limit "$group" $allowed && python3 $groups run "$group" "$GRAPHWIRE" generate rmat --scale "$scale" \
	--edge-factor 16 --memory $budget --out "$folder/graph" >"$folder/said" 2>&1
status=$?
python3 $groups remove "$group"
runs=$(sed -n 's/^memory: edges sorted in \([0-9]*\) runs.*/\1/p' "$folder/said")
if [ $status = 0 ] && [ "${runs:-0}" -ge 4 ] && "$GRAPHWIRE" verify "$folder/graph" --quiet; then
	ok "$((16 << scale)) edges within $((budget >> 20)) MiB in $runs runs: $SECONDS s"
else
	not_ok "$((16 << scale)) edges within $((budget >> 20)) MiB: $(tail -n 1 "$folder/said")"
	exit 1
fi
