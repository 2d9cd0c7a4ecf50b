#!/usr/bin/env bash
# Transductive training with SparseAdam on cora and facebook of ../shared/data, to convergence: ten seeds over Graphwire
# and ten over DGL 1.1.3. The test runs where a python with graphwire and dgl 1.1.3 is: $DGL_PYTHON, or python. Else it is
# skipped. About 25 minutes; $SEEDS: fewer seeds; $TASKS: one of the graphs.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
python=${DGL_PYTHON:-python} bed=$PWD/test/slow/soak/transductive_bed.py data=$PWD/../shared/data
export DGLBACKEND=pytorch OMP_NUM_THREADS=1
if [ ! -d "$data/cora" ] || ! "$python" -W ignore -c 'import graphwire, dgl' >/dev/null 2>&1; then
	note "transductive: skipped: no data, or $python has no graphwire and dgl"
	exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# system NAME WORD…: runs the bed over a system.
system() {
	local way=()
	[ "$1" = dgl ] || way=(-m graphwire.dgl)
	shift
	"$python" -W ignore "${way[@]}" "$bed" "$@" 2>>"$folder/errors"
}

for task in ${TASKS:-cora facebook}; do
	for name in dgl graphwire; do
		system "$name" graph "$task" "$data" "$name-$task" >/dev/null || { cat errors && exit 1; }
	done
	for ((seed = 1; seed <= ${SEEDS:-10}; seed++)); do
		for name in dgl graphwire; do
			found=$(system "$name" train "$name-$task" "$seed" | sed -n 's/^accuracy //p')
			[ -n "$found" ] || { echo "not ok - transductive: $task over $name" && cat errors && exit 1; }
			echo "$name $task $seed $found" | tee -a results
		done
	done
done
"$python" "$bed" compare results
