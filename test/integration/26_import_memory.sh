#!/usr/bin/env bash
# Imports that exceed the memory of their control group: 20 million edges, 480 MB as they are read and as much to sort
# them, within 512 MiB; 1.5 million edges between text ids within 48 MiB; 128 MB of features, also when they are split
# into parts, within 40 MiB. (test_import_memory.py compares the bytes with those of imports without a limit.)
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

groups=$top/test/support/control_groups.py
if group=$(python3 "$groups" make import) && python3 "$groups" remove "$group"; then
	within_group() { # within_group MIB COMMAND…: the command in a control group of this much memory
		local status
		group=$(python3 "$groups" make import) && python3 "$groups" limit "$group" $(($1 << 20)) &&
			(exec python3 "$groups" run "$group" "${@:2}")
		status=$?
		python3 "$groups" remove "$group"
		return $status
	}
else
	note "this machine makes no control group for memory: the limit of the program alone is tested"
	within_group() { "${@:2}"; }
fi

within_group 576 "$GRAPHWIRE" generate rmat --scale 20 --edge-factor 20 --memory 512M --out graph >said 2>&1
status=$?
holds "20 M edges are sorted within 512 MiB: $(tail -n 1 said)" test $status -eq 0
runs=$(sed -n 's/^memory: edges sorted in \([0-9]*\) runs.*/\1/p' said)
holds "in several runs: ${runs:-none}" test "${runs:-0}" -ge 4
holds "the temporary files are announced" grep -q '^memory: sorting takes temporary files of up to' said
holds "and gone" test -z "$(find . -name '.*' -type f)"
holds "the graph is whole" "$GRAPHWIRE" verify graph --quiet

# A disk that cannot hold them: one line, before the sort.
if { mkdir disk && mount -t tmpfs -o size=24m tmpfs disk; } 2>/dev/null; then
	"$GRAPHWIRE" generate rmat --scale 16 --edge-factor 8 --memory 1M --out disk/graph --quiet >full 2>&1
	status=$?
	left=$(ls -A disk)
	umount disk
	holds "a full disk is one line: $(cat full)" test "$status $(wc -l <full)" = "1 1"
	holds "which names the file's folder" grep -q 'disk.*temporary file' full
	holds "and leaves nothing: $left" test -z "$left"
else
	note "this user cannot mount a small disk"
fi

# A part whose lists exceed the limit has the same bytes.
"$GRAPHWIRE" partition graph --num-parts 2 --method random --out whole >/dev/null
"$GRAPHWIRE" partition graph --num-parts 2 --method random --memory 2M --out little >/dev/null
holds "the parts are the same with a limit of 2 MiB" diff -r whole little

# Text ids that exceed the memory.
awk 'BEGIN { srand(7); for (i = 0; i < 1500000; i++) printf "user-%d\tfilm-%d\n", 300000 * rand() * rand(), 200000 * rand() }' >edges.tsv
within_group 64 "$GRAPHWIRE" import --from edges.tsv --memory 48M --out texts >said 2>&1
holds "1.5 M edges between text ids are imported within 48 MiB: $(tail -n 1 said)" test $? -eq 0
runs=$(sed -n 's/^memory: ids numbered in \([0-9]*\) runs$/\1/p' said)
holds "their ids are numbered in several runs: ${runs:-none}" test "${runs:-0}" -ge 4
holds "the temporary files are announced" grep -q '^memory: numbering takes temporary files of up to' said
"$GRAPHWIRE" import --from edges.tsv --quiet --out whole-texts
holds "the graph has the same bytes" diff -r whole-texts texts

# An end at any time leaves no files: signals come when the files exist.
for signal in KILL TERM; do
	rm -f said # of the command before
	"$GRAPHWIRE" import --from edges.tsv --memory 4M --out ended >said 2>&1 &
	within 100 grep -q '^memory: numbering' said
	kill -s $signal $!
	wait $! 2>/dev/null
	left=$(find . -name '.*' -type f; ls -d ended 2>/dev/null)
	holds "an import that is ended by SIG$signal leaves nothing: $left" test -z "$left"
done
if mount -t tmpfs -o size=24m tmpfs disk 2>/dev/null; then
	"$GRAPHWIRE" import --from edges.tsv --memory 4M --out disk/graph --quiet >full 2>&1
	status=$?
	left=$(ls -A disk)
	umount disk
	holds "a disk that is too small for ids is one line: $(cat full)" test "$status $(wc -l <full)" = "1 1"
	holds "and leaves nothing: $left" test -z "$left"
fi

# Features that exceed the memory, in another order than their nodes: imported, and split into two parts.
awk 'BEGIN { srand(3); for (i = 0; i < 400000; i++) print int(200000 * rand()) "\t" int(200000 * rand()) }' >wide.tsv
{
	printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (200000, 640), }"
	head -c 128000000 /dev/urandom
} >wide.npy
words=(import --from wide.tsv --ids compact --node-feature feat=wide.npy)
within_group 64 "$GRAPHWIRE" "${words[@]}" --memory 40M --out wide >said 2>&1
holds "128 MB of features are imported within 40 MiB: $(tail -n 1 said)" test $? -eq 0
holds "in blocks" grep -q '^memory: a feature in another order takes temporary files of up to' said
"$GRAPHWIRE" "${words[@]}" --quiet --out whole-wide
holds "the graph has the same bytes" diff -r whole-wide wide
within_group 64 "$GRAPHWIRE" partition wide --num-parts 2 --method random --memory 40M --out wide-parts >said 2>&1
holds "and split within 40 MiB, each part of 64 MB: $(tail -n 1 said)" test $? -eq 0
"$GRAPHWIRE" partition whole-wide --num-parts 2 --method random --out whole-parts >/dev/null 2>&1
holds "the parts have the same bytes" diff -r whole-parts wide-parts
