#!/usr/bin/env bash
# private.sh [ROOT]: checks the names of headers. A header whose name ends in _private.h is for one object: only files of
# its folder include it, two sources at least, so that the object's files may call each other (test/check/calls.sh). And
# the reverse: a header that two or more sources of its object include, and no other file, has such a name. An object's
# files begin with the header's name: endpoint.c and endpoint_read.c with endpoint_private.h. Tests may include every header.
# Prints the headers that break the rule.
# private.sh --self-test: plants violations and checks that they are found.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/check/planted.sh
. "$here/planted.sh"

folders='core transport sampler protocol metrics tensors client server tools bench cmd'

misnamed() { # misnamed ROOT: prints a line for each header that breaks the rule
	local folder there=()
	cd "$1" || return 1
	for folder in $folders; do
		[ -d "$folder" ] && there+=("$folder")
	done
	[ ${#there[@]} -eq 0 ] && return
	find "${there[@]}" -path bench/peers -prune -o -name '*.[ch]' -print | sort | awk '
	function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
	{ path[++paths] = $0 }
	END {
		for (p = 1; p <= paths; p++) {
			while ((getline line < path[p]) > 0) {
				if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/) continue
				match(line, /"[^"]*/)
				header = substr(line, RSTART + 1, RLENGTH - 1)
				users[header]++
				if (path[p] ~ /\.c$/) sources[header]++
				if (folder_of(path[p]) != folder_of(header)) outside[header] = outside[header] " " path[p]
				stem = header; sub(/\.h$/, "", stem)
				if (path[p] == stem ".c" || index(path[p], stem "_") == 1) own[header]++
			}
			close(path[p])
		}
		for (p = 1; p <= paths; p++) {
			header = path[p]
			if (header ~ /_private\.h$/) {
				if (outside[header] != "") print header ": files of other folders include it:" outside[header]
				if (sources[header] < 2) print header ": fewer than two sources include it"
			} else if (header ~ /\.h$/ && sources[header] > 1 && own[header] == users[header])
				print header ": only the files of its object include it, so its name ends in _private.h"
		}
	}'
}

self_test() {
	planted misnamed <<-'PLANTED'
		tools/a_private.h:x tools/a.c:tools/a_private.h tools/a_b.c:tools/a_private.h server/c.c:tools/a_private.h|caught
		client/rows/a_private.h:x client/rows/a.c:client/rows/a_private.h client/rows/b.c:client/rows/a_private.h client/c.c:client/rows/a_private.h|caught
		tools/a_private.h:x tools/a.c:tools/a_private.h tools/b.c:tools/a_private.h tools/import/c.h:tools/a_private.h|caught
		tools/a_private.h:x tools/a.c:tools/a_private.h|caught
		tools/a_private.h:x tools/a.h:tools/a_private.h tools/a.c:tools/a_private.h|caught
		tools/a.h:x tools/a.c:tools/a.h tools/a_b.c:tools/a.h|caught
		tools/a.h:x tools/a_b.c:tools/a.h tools/a_c.c:tools/a.h tools/a_c.h:tools/a.h|caught
		tools/a_private.h:x tools/a.c:tools/a_private.h tools/b.c:tools/a_private.h|allowed
		tools/a_private.h:x tools/a.c:tools/a_private.h tools/b.c:tools/a_private.h test/unit/c.c:tools/a_private.h|allowed
		tools/a.h:x tools/a.c:tools/a.h tools/a_b.c:tools/a.h tools/c.c:tools/a.h|allowed
		tools/a.h:x tools/a.c:tools/a.h tools/a_b.c:tools/a.h server/c.c:tools/a.h|allowed
		tools/a.h:x tools/a.c:tools/a.h tools/b.c:tools/a.h|allowed
		tools/a.h:x tools/a.c:tools/a.h|allowed
	PLANTED
}

if [ "${1:-}" = --self-test ]; then
	self_test
	exit
fi
found=$(misnamed "${1:-$here/../..}")
if [ -n "$found" ]; then
	echo "$found"
	echo "not ok - these headers' names do not say who may include them"
	exit 1
fi
echo "ok - every header of one object ends in _private.h, and no other file includes it"
