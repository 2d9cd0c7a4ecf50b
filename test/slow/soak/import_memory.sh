#!/usr/bin/env bash
# 268 million edges (R-MAT 24 × 16) within 4 GiB of a control group: generated, sorted and written; and imported from a file,
# the edges compared with the file's, and partitioned within 6 GiB, the cut counted again (bench/import_memory.py). 70 bytes
# of disk an edge, in $TMPDIR. SCALE=N: 2^N nodes, within 2^(N-24) of the memory. 26_import_memory.sh of test/integration is
# the small case.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
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
rm -rf "$folder/graph"
locked python make_venv || { not_ok "the virtual environment could not be made" && exit 1; }
if "$venv/bin/python" bench/import_memory.py --scale "$scale" --memory $((budget >> 20))Mi --forms npy --folder "$folder" \
	--parts 4 --partition-memory $((6 * budget / 4 >> 20))Mi >"$folder/said" 2>&1; then
	cat "$folder/said"
	ok "$((16 << scale)) edges of a file within $((budget >> 20)) MiB, in 4 parts within $((6 * budget / 4 >> 20)) MiB"
else
	cat "$folder/said"
	not_ok "$((16 << scale)) edges of a file within $((budget >> 20)) MiB: $(tail -n 1 "$folder/said")"
	exit 1
fi
