#!/usr/bin/env bash
# circles.sh [ROOT]: checks that no file includes another file that leads back to it. Then each file can be read, tested
# and changed with only the files below it. A source and its header count as one file. A header without a source belongs
# to the file whose name begins its name: load_job.h to load.c. Prints the circles.
# circles.sh --self-test: plants circles and checks that they are found.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/check/planted.sh
. "$here/planted.sh"

folders='core transport sampler protocol metrics tensors client server tools bench cmd'

circles() { # circles ROOT: prints the files of each circle, a line for each circle
	local folder there=()
	cd "$1" || return 1
	for folder in $folders; do
		[ -d "$folder" ] && there+=("$folder")
	done
	[ ${#there[@]} -eq 0 ] && return
	find "${there[@]}" -path bench/peers -prune -o -name '*.[ch]' -print | sort | awk '
	function stem(path) { sub(/\.[ch]$/, "", path); return path }
	function unit(s, shorter) {
		if (!(s in sources)) {
			shorter = s
			while (sub(/_[^_\/]*$/, "", shorter))
				if (shorter in files) return shorter
		}
		return s
	}
	# Whether b can be reached from a. Marks visited files with this number.
	function reaches(a, b, mark, next_of, n, i) {
		seen[a] = mark
		n = split(includes[a], next_of, " ")
		for (i = 1; i <= n; i++) {
			if (next_of[i] == b) return 1
			if (seen[next_of[i]] != mark && reaches(next_of[i], b, mark)) return 1
		}
		return 0
	}
	{ path[++paths] = $0; files[stem($0)] = 1; if ($0 ~ /\.c$/) sources[stem($0)] = 1 }
	END {
		for (p = 1; p <= paths; p++) {
			from = unit(stem(path[p]))
			if (!(from in order)) { order[from] = ++count; name[count] = from }
			while ((getline line < path[p]) > 0) {
				if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/) continue
				match(line, /"[^"]*/)
				to = stem(substr(line, RSTART + 1, RLENGTH - 1))
				if (!(to in files)) continue
				to = unit(to)
				if (to != from && index(" " includes[from] " ", " " to " ") == 0) includes[from] = includes[from] " " to
			}
			close(path[p])
		}
		for (i = 1; i <= count; i++) {
			if (listed[i] || !reaches(name[i], name[i], ++mark)) continue
			circle = name[i]
			for (j = i + 1; j <= count; j++)
				if (reaches(name[i], name[j], ++mark) && reaches(name[j], name[i], ++mark)) {
					circle = circle " " name[j]
					listed[j] = 1
				}
			print circle
		}
	}'
}

self_test() {
	planted circles <<-'PLANTED'
		client/a.c:client/b.h client/b.h:client/a.h client/a.h:stdio.h|caught
		client/a.c:client/b.h client/b.c:client/c.h client/c.c:client/a.h client/a.h:x client/b.h:x client/c.h:x|caught
		client/a.c:client/a.h client/a.h:client/b.h client/b.h:client/b_part.h client/b_part.c:client/a.h client/b_part.h:x|caught
		core/base/a.c:core/graph/b.h core/graph/b.h:core/base/a.h core/base/a.h:x|caught
		client/a.c:client/a.h client/a.h:client/b.h client/b.c:client/b.h client/b.h:x|allowed
		client/a.c:client/a_inside.h client/a_inside.h:client/a.h client/a.h:x|allowed
		client/a.c:client/b.h client/a.c:client/c.h client/b.h:client/c.h client/c.h:x|allowed
	PLANTED
}

if [ "${1:-}" = --self-test ]; then
	self_test
	exit
fi
found=$(circles "${1:-$here/../..}" | sort)
if [ -n "$found" ]; then
	printf 'a circle: %s\n' "${found//$'\n'/, and }"
	echo "not ok - these files include each other"
	exit 1
fi
echo "ok - no file includes another one that leads back to it"
