#!/usr/bin/env bash
# An import whose edges exceed the memory of its control group: 20 million edges, 480 MB as they are read and as much
# to sort them, within 512 MiB. (test_import_memory.py compares the bytes with those of imports without a limit.)
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

if [ -d /sys/fs/cgroup/memory ]; then
	group=/sys/fs/cgroup/memory/gw-import-$$ limit=memory.limit_in_bytes
else
	group=/sys/fs/cgroup/gw-import-$$ limit=memory.max
fi
if { mkdir "$group" && echo $((576 << 20)) >"$group/$limit"; } 2>/dev/null; then
	grouped=yes
	within_group() { (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@"); }
else
	note "this machine makes no control group for memory: the limit of the program alone is tested"
	grouped=no
	within_group() { "$@"; }
fi

within_group "$GRAPHWIRE" generate rmat --scale 20 --edge-factor 20 --memory 512M --out graph >said 2>&1
status=$?
[ "$grouped" = no ] || within 50 rmdir "$group"
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
