#!/usr/bin/env bash
# Files that become shorter or fail while they are read, writers that are killed, and limits of the process: one line that
# names the error and its place, status 1, and no file left behind.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
preload=$work/file_faults.so
holds "the faults build without a warning" cc -Wall -Wextra -Werror -O1 -shared -fPIC -D_GNU_SOURCE \
	"$top/test/integration/file_faults.c" -o "$preload" -ldl

nothing_left() { # nothing_left WHAT
	local found
	found=$(find . -maxdepth 1 -name 'made*')
	if [ -z "$found" ]; then ok "$1 leaves nothing behind"; else not_ok "$1 leaves something behind: $found"; fi
	rm -rf made*
}

# faulty "SETTING…" WHAT PATTERN ARGUMENT…: graphwire with these faults ends with status 1 and one line.
faulty() {
	local settings=$1 what=$2 pattern=$3
	shift 3
	# shellcheck disable=SC2086 # several settings
	refuses "$what" 1 "$pattern" env LD_PRELOAD="$preload" $settings "$GRAPHWIRE" "$@"
}

holds "a graph" "$GRAPHWIRE" generate rmat --scale 12 --features 4 --labels 4 --train-share 0.5 --quiet --out whole
holds "its parts" "$GRAPHWIRE" partition whole --num-parts 2 --method random --out parts
seq 0 9999 | awk '{ print $1 "\t" ($1 * 7) % 10000 }' >edges.tsv
seq 0 9999 | awk '{ print $1 "\t" ($1 * 3) % 10000 }' >more.tsv
python3 - <<'PY'
import numpy as np
n = 9999
np.save("edges.npy", np.stack([np.arange(n), np.arange(n)[::-1]]))
np.savez("edges.npz", src=np.arange(n), dst=np.arange(n)[::-1])
PY

# --- A graph that replaces another one: files of users in its folder stay, or the command changes nothing. ---
mine() { # mine FOLDER: adds files of a user
	mkdir -p "$1/notes/empty" && echo "$1" >"$1/notes/all" && echo 1 >"$1/labels.csv" && echo 2 >"$1/part0/node/_N/mine.npy"
}
is_mine() { # is_mine WHAT FOLDER: the user's files exist, and the graph in the folder is valid
	if [ -d "$2/notes/empty" ] && [ "$(cat "$2/notes/all")" = "$2" ] && [ "$(cat "$2/labels.csv")" = 1 ] &&
		[ "$(cat "$2/part0/node/_N/mine.npy")" = 2 ] && "$GRAPHWIRE" verify --quiet "$2"; then
		ok "$1 keeps other files"
	else
		not_ok "$1 removes other files: $(find "$2" | tr '\n' ' ')"
	fi
}
holds "a graph to replace" "$GRAPHWIRE" generate rmat --scale 8 --features 4 --name old --quiet --out again
mine again
holds "import --replace" "$GRAPHWIRE" import --quiet --from edges.tsv --name new --replace --out again
is_mine "import --replace" again
if [ ! -e again/old.json ] && [ ! -e again/part0/node/_N/feat.npy ]; then ok "and removes the old graph"; else not_ok "the old graph stays"; fi
holds "partition --replace" "$GRAPHWIRE" partition whole --num-parts 2 --method random --replace --out again
is_mine "partition --replace" again
holds "partition --replace with fewer parts" "$GRAPHWIRE" partition whole --num-parts 1 --method random --replace --out again
is_mine "partition --replace with fewer parts" again
if [ ! -e again/part1 ]; then ok "and removes its part 1"; else not_ok "its part 1 stays"; fi
holds "generate --replace" "$GRAPHWIRE" generate rmat --scale 8 --quiet --replace --out again
is_mine "generate --replace" again

refuses "a cache that is larger than the memory" 1 'stop programs that use it, or use a smaller --disk-cache$' \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --on-disk feat --disk-cache 900Ti

# --- No command replaces its own input. ---
holds "a graph that is input and output" "$GRAPHWIRE" generate rmat --scale 8 --features 4 --quiet --out own
files_of() { find "$1" -type f -exec sha256sum {} + | sort; }
files_of own >before
own_input() { # own_input COMMAND…: refused, and the graph stays
	refuses "$1 $2: its own input as output" 1 'own.*choose another --out' "$GRAPHWIRE" "$@" --replace --out own
	if files_of own | cmp -s - before; then ok "and the graph stays"; else not_ok "the graph is another one"; fi
}
rows=own/part0/node/_N/feat.npy
own_input partition own --num-parts 2 --method random
own_input partition own/rmat.json --num-parts 2 --method random
ln "$rows" linked.npy
for file in "$rows" "own/../$rows" linked.npy; do
	own_input import --quiet --from edges.tsv --num-nodes 10000 --node-feature "feat=$file"
done
own_input import combine --quiet --node-type _N=own --edge-type _N:_E:_N=own
own_input import combine --quiet --node-type _N=own/rmat.json
refuses "partition: its assignment as output" 1 'parts.*choose another --out' \
	"$GRAPHWIRE" partition whole --num-parts 2 --assignment parts/part0/node/_N/label.npy --replace --out parts
holds "combine --renew" "$GRAPHWIRE" import combine --quiet --renew --node-type _N=own --edge-type _N:_E:_N=own --replace --out own
holds "and the graph is sound" "$GRAPHWIRE" verify --quiet own
rm linked.npy before

echo '{"format": "graphwire-checkpoint-1"}' >again/checkpoint.json
holds "a checkpoint's JSON next to a graph's is not read as a graph" "$GRAPHWIRE" verify --quiet again
mkdir checkpoint && cp again/checkpoint.json checkpoint
refuses "import --replace: a checkpoint" 1 'checkpoint: holds something other than a graph' \
	"$GRAPHWIRE" import --quiet --from edges.tsv --replace --out checkpoint
mkdir again/part1 && mkdir -p again/part1/node/_N && echo 3 >again/part1/node/_N/indptr.npy
refuses "partition --replace: a foreign file is in the way" 1 'indptr.npy: no file of the replaced content.*move it elsewhere' \
	"$GRAPHWIRE" partition whole --num-parts 2 --method random --replace --out again
is_mine "what cannot be replaced" again
sed -i 's|"format"|format"|' again/rmat.json
refuses "generate --replace: an invalid JSON" 1 'again.*cannot be known; remove it' \
	"$GRAPHWIRE" generate rmat --scale 8 --quiet --replace --out again
if [ -e again/labels.csv ] && [ -e again/part0/node/_N/indptr.npy ]; then ok "and no file is removed"; else not_ok "a file is removed"; fi
if [ -z "$(find . -maxdepth 1 -name '*.tmp-*' -o -maxdepth 1 -name '*.old-*')" ]; then ok "replacing leaves nothing else behind"; else not_ok "left: $(ls)"; fi

# --- A file that becomes shorter while it is mapped. ---
shrinks() { # shrinks FILE WHAT ARGUMENT…: the same with FILE, which is restored afterwards
	local file=$1 what=$2
	shift 2
	cp "$file" kept
	faulty "FILE_FAULTS_AT=/${at:-$file} FILE_FAULTS_SHRINK=$file" "$what" "${file##*/}.*cut short while it was read.*(again|complete)" "$@"
	cat kept >"$file"
	nothing_left "$what"
}
shrinks edges.tsv "import: its text is cut short" import --quiet --from edges.tsv --out made
shrinks edges.npy "import: its array is cut short" import --quiet --from edges.npy --out made
shrinks edges.npz "import: its archive is cut short" import --quiet --from edges.npz --out made
at=more.tsv shrinks edges.tsv "import: cut short once it was looked at" \
	import --quiet --from edges.tsv --from more.tsv --out made
indices=part0/edge/_N___E___N/indices.npy
shrinks parts/$indices "verify: a part is cut short" verify --quiet parts
shrinks parts/$indices "inspect: a part is cut short" inspect --deep parts
shrinks whole/$indices "partition: its graph is cut short" partition whole --num-parts 2 --method random --out made
# The last array of a part is mapped when the others have been verified.
last=$(grep -o 'part0/[^"]*\.npy' whole/rmat.json | tail -n 1)
at=$last shrinks whole/part0/node/_N/feat.npy "partition: its graph is cut short once it was verified" \
	partition whole --num-parts 2 --method random --out made

# Commands that load a graph map none of its files.
holds "epoch maps no file" env LD_PRELOAD="$preload" FILE_FAULTS_LOSE=.npy "$GRAPHWIRE" epoch --part-config parts

# Within the last page no access faults, so the import must compare the file before and after.
printf '0\t1\n' >small.tsv
mkfifo pipe
"$GRAPHWIRE" import --quiet --from small.tsv --from pipe --out made 2>err &
writer=$!
started+=("$writer")
# The program opens the pipe after it has mapped the first file.
timeout 60 bash -c 'exec 7>pipe && printf "3\t4\n" >>small.tsv && printf "1\t2\n" >&7'
wait "$writer"
status=$?
if [ $status -eq 1 ] && grep -q 'small.tsv: written to while it was read' err; then
	ok "import: a file that was written to meanwhile"
else
	not_ok "import: a file that was written to meanwhile: status $status, $(cat err)"
fi
nothing_left "import: a file that was written to meanwhile"

# --- A disk that fails. ---
faulty "FILE_FAULTS_LOSE=/edges.tsv" "import: the disk fails" 'edges.tsv: cannot be read at byte [0-9]+: the disk' \
	import --quiet --from edges.tsv --out made
faulty "FILE_FAULTS_FAIL=/indices.npy" "verify: the disk fails" 'indices.npy.*cannot read at byte.*Input/output error' \
	verify --quiet --part 0 parts
faulty "FILE_FAULTS_LOSE=/indices.npy" "inspect: the disk fails" 'indices.npy: cannot be read at byte' \
	inspect --deep parts
faulty "FILE_FAULTS_FAIL=/indices.npy" "partition: the disk fails" 'indices.npy.*Input/output error' \
	partition whole --num-parts 2 --method random --out made
faulty "FILE_FAULTS_LOSE=/feat.npy" "partition: the disk fails later" 'feat.npy: cannot be read at byte' \
	partition whole --num-parts 2 --method random --out made
nothing_left "a disk that fails"

# --- Writers that are killed: the next writer of the same folder removes their files. ---
killed() { # killed NAME ARGUMENT…: the program is killed when it opens NAME
	local name=$1 status
	shift
	{ LD_PRELOAD=$preload FILE_FAULTS_DIE=$name "$GRAPHWIRE" "$@" >/dev/null; } 2>/dev/null
	status=$?
	[ $status -eq 137 ] || not_ok "killed at $name: status $status: $*"
}
for name in /orig_id.npy /indices.xxh /rmat.json; do
	killed $name generate rmat --scale 8 --name rmat --quiet --out made
done
left=$(find . -maxdepth 1 -name 'made.tmp-*' | wc -l)
if [ "$left" -eq 1 ]; then ok "a killed writer leaves one folder, and earlier ones none"; else not_ok "$left folders of killed writers"; fi
mkdir made.tmp-1-00000000-00000000 made.tmp-12345-0123456789abcdef made.tmp-mine
holds "the next writer" "$GRAPHWIRE" generate rmat --scale 8 --quiet --out made
found=$(find . -maxdepth 1 -name 'made*' | sort | tr '\n' ' ')
if [ "$found" = "./made ./made.tmp-1-00000000-00000000 ./made.tmp-12345-0123456789abcdef ./made.tmp-mine " ]; then
	ok "what killed writers left is swept, and nothing else"
else
	not_ok "after the next writer there is: $found"
fi
rm -rf made*

killed /orig_id.npy import --quiet --from edges.tsv --out made
killed /orig_id.npy partition whole --num-parts 2 --method random --out made
holds "an import after a partition that was killed" "$GRAPHWIRE" import --quiet --from edges.tsv --out made
left=$(find . -maxdepth 1 -name 'made.tmp-*' | wc -l)
if [ "$left" -eq 0 ]; then ok "whichever command was killed"; else not_ok "$left folders are left"; fi
rm -rf made*

# --- Limits of the process. ---
# shellcheck disable=SC2016
holds "scripts close what their caller left open" bash -c \
	'exec 3<&0 12<&0; exec bash -c ". \"\$0\" && [ ! -e /proc/\$\$/fd/3 ] && [ ! -e /proc/\$\$/fd/12 ]" "$0"' "$top/test/integration/lib.sh"
limited() { # limited OPTION VALUE ARGUMENT…: ends with 0, 1 or 2; prints one line unless it ends with 0
	local option=$1 value=$2 status lines
	shift 2
	(
		ulimit -c 0
		ulimit "$option" "$value" && exec "$GRAPHWIRE" "$@"
	) 2>&1 >out </dev/null | cat >err
	status=${PIPESTATUS[0]}
	lines=$(wc -l <err)
	found=$(find . -maxdepth 1 -name 'made*')
	if [ "$status" -gt 2 ] || { [ "$status" -ne 0 ] && [ "$lines" -lt 1 ]; } ||
		{ [ "$status" -ne 0 ] && [ -n "$found" ]; }; then
		not_ok "ulimit $option $value: status $status, $lines lines, left \"$found\": $*"
		head -n 3 err
	fi
	rm -rf made*
	return "$status"
}
commands=(
	"import --quiet --from edges.tsv --out made"
	"import --quiet --from edges.npz --out made"
	"generate rmat --scale 10 --quiet --out made"
	"partition whole --num-parts 2 --method metis --out made"
	"partition whole --num-parts 2 --method random --out made"
	"verify --quiet parts"
	"inspect parts"
	"epoch --part-config parts"
	"stat 127.0.0.1:1"
	"doctor"
)
before=$failures
for files in 4 5 6 7 8 9 10 12 14; do
	for command in "${commands[@]}"; do
		# shellcheck disable=SC2086 # words of a command
		limited -n $files $command
	done
	[ $files -gt 6 ] && continue
	# A server that starts would not end; one that cannot start prints a line.
	refuses "serve with $files open files" 1 'ulimit -n' bash -c "ulimit -n $files; exec \"$GRAPHWIRE\" serve --part-config parts --part 0 --listen 127.0.0.1:0"
done
[ $failures -ne "$before" ] || ok "few open files end in a line"
for command in "${commands[@]:0:5}"; do
	# shellcheck disable=SC2086
	refuses "four open files: ${command%% *}" 1 'ulimit -n' bash -c "ulimit -n 4; exec \"$GRAPHWIRE\" $command"
	for blocks in 0 8 32; do # of 1 KiB
		# shellcheck disable=SC2086
		refuses "files of at most $blocks KiB: ${command%% *}" 1 'made.*File too large.*ulimit -f' \
			bash -c "(ulimit -f $blocks; exec \"$GRAPHWIRE\" $command) 2>&1 >/dev/null | cat >&2; exit \${PIPESTATUS[0]}"
		nothing_left "ulimit -f $blocks: ${command%% *}"
	done
done

# Replicas that cannot be written leave the graph as it was.
holds "replicas of parts" "$GRAPHWIRE" replicate parts --rows 5% --fanouts 5,5
before=$(find parts -type f -exec sha1sum {} + | sort)
for name in /indices.npy /feat.replica.npy /replica.index.xxh /rmat.json; do
	killed $name replicate parts --rows 50% --fanouts 5,5
done
for blocks in 0 4 8; do
	refuses "replicate with files of at most $blocks KiB" 1 'parts.*File too large.*ulimit -f' \
		bash -c "(ulimit -f $blocks; exec \"$GRAPHWIRE\" replicate parts --rows 50% --fanouts 5,5) 2>&1 >/dev/null | cat >&2; exit \${PIPESTATUS[0]}"
done
if [ "$before" = "$(find parts -type f -exec sha1sum {} + | sort)" ] && [ "$(find . -maxdepth 1 -name 'parts.*' | wc -l)" -eq 0 ]; then
	ok "they leave the graph as it was"
else
	not_ok "they change the graph: $(find . -maxdepth 1 -name 'parts*' | tr '\n' ' ')"
fi
holds "no replicas again" "$GRAPHWIRE" replicate parts --rows 0

# Address space: from the minimum that loads the program to enough for all.
before=$failures
for kib in 14000 17000 18500 20000 21500 23000 24500 26000 30000 35000 40000 50000 70000 100000 150000 250000; do
	for command in "${commands[@]:0:8}"; do
		# Below this the dynamic loader ends the program, with a line and status 127.
		(ulimit -v $kib && "$GRAPHWIRE" --version >/dev/null 2>&1)
		[ $? -eq 127 ] && continue
		# shellcheck disable=SC2086
		limited -v $kib $command
	done
done
[ $failures -ne "$before" ] || ok "little address space ends in a line"
