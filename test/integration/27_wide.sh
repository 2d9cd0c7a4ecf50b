#!/usr/bin/env bash
# Graphs whose numbers need 8 bytes: node ids, positions and offsets beyond 2^32. The program wide_limit writes 8 bytes from
# 2^16 on (core/graph/width.h), so a small graph takes the ways of a large one: import, lists by source, positions of
# original ids, and partition. Its arrays have the values of the usual program's; the usual program verifies and serves them.
# The original ids are beyond 2^32, or text.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
built=$(dirname "$GRAPHWIRE")
wide=$built/wide_limit
cmake --build "$built" --target wide_limit >"$work/build.log" 2>&1 || {
	not_ok "wide_limit does not build: $(tail -n 1 "$work/build.log")"
	exit 1
}
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
NODES=70000

# edges FIRST PREFIX: three edges of each node, with a time.
edges() {
	awk -v first="$1" -v prefix="$2" -v n=$NODES 'BEGIN {
		for (i = 0; i < n; i++)
			for (k = 1; k <= 3; k++)
				printf "%s%.0f\t%s%.0f\t%d\n", prefix, first + i, prefix,
					first + (i * 7919 + k * k * 104729) % n, (i * 31 + k) % 997
	}'
}

# type_of FILE: the element type of an array: <u4, <i8.
type_of() { head -c 128 "$1" | tr -d '\0' | LC_ALL=C sed -n "s/.*'descr': '\([^']*\)'.*/\1/p"; }

# values FILE: its values, as unsigned numbers, or its bytes.
values() {
	local width=1 type
	type=$(type_of "$1")
	case $type in ??4 | ??8) width=${type: -1} ;; esac
	tail -c +$((11 + $(od -An -tu2 -j8 -N2 "$1"))) "$1" | od -An -v -w"$width" -tu"$width" | tr -d ' '
}

# same_values NARROW WIDE: every array of the one has the other's values; those of ids and offsets have 8 bytes.
same_values() {
	local file wide=0 narrow=()
	(cd "$1" && find part* -name '*.npy') | sort >arrays
	diff <(cd "$2" && find part* -name '*.npy' | sort) arrays || return 1
	while read -r file; do
		cmp -s <(values "$1/$file") <(values "$2/$file") || {
			echo "$file differs"
			return 1
		}
		case $(type_of "$1/$file")$(type_of "$2/$file") in
		"<u4<u8" | "<u4<i8") wide=$((wide + 1)) ;;
		"<u4<u4") narrow+=("$file") ;;
		esac
	done <arrays
	echo "$wide of $(wc -l <arrays) arrays are wide, these are not: ${narrow[*]}"
	((${#narrow[@]} == 0 && wide >= 6 * $(find "$1" -maxdepth 1 -name 'part*' | wc -l)))
}

edges 1099511627776 '' >numbers.tsv
edges 0 paper- >text.tsv
for kind in numbers text; do
	ids=(--ids auto)
	[ $kind = numbers ] && ids=(--ids compact)
	for program in graphwire wide_limit; do
		folder=$kind.$program
		holds "$kind: $program imports" "$built/$program" import --from $kind.tsv --time 3 --transpose "${ids[@]}" --quiet \
			--out "$folder"
		holds "$kind: $program partitions" "$built/$program" partition "$folder" --num-parts 2 --method random \
			--out "$folder.parts"
		holds "$kind: what $program wrote is whole" "$GRAPHWIRE" verify "$folder.parts"
	done
	holds "$kind: wide_limit imports in runs" "$wide" import --from $kind.tsv --time 3 --transpose "${ids[@]}" --memory 16Mi \
		--quiet --out $kind.runs
	holds "$kind: the imported arrays have the same values" same_values $kind.graphwire $kind.wide_limit
	holds "$kind: in runs too" same_values $kind.graphwire $kind.runs
	holds "$kind: the parts have the same values" same_values $kind.graphwire.parts $kind.wide_limit.parts
	# A graph that is wide already is partitioned by the usual program, which finds that 4 bytes suffice.
	holds "$kind: a wide graph becomes narrow parts" "$GRAPHWIRE" partition $kind.wide_limit --num-parts 2 --method random \
		--out $kind.back
	holds "$kind: they have the same values" same_values $kind.back $kind.wide_limit.parts
done

servers=()
for part in 0 1; do
	"$GRAPHWIRE" serve --part-config text.wide_limit.parts --part $part --listen 127.0.0.1:0 >server.$part 2>&1 </dev/null &
	started+=("$!")
	within 100 grep -q '^serving part' server.$part || not_ok "the server is not ready: $(tail -n 1 server.$part)"
	servers+=("$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' server.$part)")
done
list=$(IFS=, && echo "${servers[*]}")
for transport in tcp shm; do
	holds "mini-batches of wide parts over $transport equal the standalone client's" "$GRAPHWIRE" epoch \
		--part-config text.wide_limit.parts --servers "$list" --transport $transport --ntype _N --fanouts 3,2 --steps 8 --check
	holds "the same by time over $transport" "$GRAPHWIRE" epoch --part-config text.wide_limit.parts --servers "$list" \
		--transport $transport --ntype _N --fanouts 3,2 --steps 8 --time time --at 500 --check
done
