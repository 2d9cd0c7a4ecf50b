#!/usr/bin/env bash
# docs/FORMAT.md is correct: the reader on the page finds the edges of the input in the parts.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"

if ! python3 -c 'import numpy' 2>/dev/null; then
	echo "# NumPy is not installed: the reader of docs/FORMAT.md is not tried"
	exit 0
fi
# shellcheck disable=SC2016 # a fence, not a command
sed -n '/^```python$/,/^```$/p' "$top/docs/FORMAT.md" | sed '1d;$d' >"$work/reader.py"

# The edges of all parts together, in the ids of the input.
read_parts() { # FOLDER NAME PARTS
	for part in $(seq 0 $(($3 - 1))); do
		python3 "$work/reader.py" "$1/$2.json" "$part" || return 1
	done | sed 's/.* from \(.*\) to \(.*\)/\1\t\2/' | sort
}

# Five nodes, because the reader prints five rows; a loop and a parallel edge.
printf '%s\t%s\n' ada bob cyd bob bob ada dan dan ada bob eve cyd >"$work/text.tsv"
printf '%s\t%s\n' 70 9000000000 12 9000000000 9000000000 70 3 3 70 9000000000 55 12 >"$work/numbers.tsv"
for kind in text numbers; do
	"$GRAPHWIRE" import --from "$work/$kind.tsv" --quiet --name "$kind" --out "$work/$kind" >/dev/null
	for method in metis random; do
		"$GRAPHWIRE" partition "$work/$kind" --num-parts 2 --method "$method" --replace --out "$work/parts" >/dev/null
		if diff <(sort "$work/$kind.tsv") <(read_parts "$work/parts" "$kind" 2) >"$work/out"; then
			ok "docs/FORMAT.md: its reader finds the edges of $kind ids in two parts ($method)"
		else
			not_ok "docs/FORMAT.md: its reader finds other edges of $kind ids ($method)"
			head -n 10 "$work/out"
		fi
	done
done

# Names that are not UTF-8 stay unchanged, and readers accept them.
printf 'Jos\351\tann\nann\tJos\351\n' >"$work/latin.tsv"
"$GRAPHWIRE" import --from "$work/latin.tsv" --name latin --out "$work/latin" >/dev/null 2>"$work/err"
if grep -q 'not UTF-8' "$work/err" && read_parts "$work/latin" latin 1 | grep -qxF "$(printf 'Jos\\xe9\tann')"; then
	ok "docs/FORMAT.md: its reader reads names that are not UTF-8, and import reports them"
else
	not_ok "docs/FORMAT.md: its reader fails on names that are not UTF-8, or import does not report them"
	read_parts "$work/latin" latin 1 2>&1 | tail -n 3
	cat "$work/err"
fi
