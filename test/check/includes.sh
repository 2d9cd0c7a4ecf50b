#!/usr/bin/env bash
# includes.sh [ROOT]: every include stays on its layer or goes down (docs/ARCHITECTURE.md). Prints the ones that go up,
# and the C files of which nobody said what layer they are on. Folders below a layer's are of that layer.
# includes.sh --self-test: plants one violation of each kind and sees that it is caught.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Folder: the folders it may include from. The longest folder that fits a file counts.
layers='
core/base: core/base
core/graph: core/base core/graph
core/rows: core/base core/rows
transport: core/base transport
sampler: core/base core/graph sampler
protocol: core/base core/graph sampler protocol
tensors: core/base core/graph core/rows transport protocol tensors
client: core/base core/graph transport sampler protocol tensors client
server: core/base core/graph transport sampler protocol tensors server
tools: core/base core/graph core/rows transport sampler protocol tensors client server tools
bench: core/base core/graph core/rows transport sampler protocol tensors client server bench
cmd: core/base core/graph core/rows transport sampler protocol tensors client server tools bench cmd
include: graphwire
examples: graphwire
python: graphwire python
'
# The public headers are vocabulary for all, except the client's own: that belongs to it and to who calls it.
callers_of_the_client='client tools bench cmd include examples python'
# C that stands on no layer: tests look at everything, peers are compared from outside, the bundle is made after all.
beside='./test ./bench/peers ./cmake/bundle ./build ./.git ./.cache'

upward() { # upward ROOT: "file:line: include" of each one that climbs
	cd "$1" || return 1
	local files
	local prune=()
	for folder in $beside; do
		prune+=(-path "$folder" -prune -o)
	done
	mapfile -t files < <(find . "${prune[@]}" -name '*.[ch]' -printf '%P\n' | sort)
	[ ${#files[@]} -eq 0 ] && return
	awk -v layers="$layers" -v callers="$callers_of_the_client" '
	BEGIN {
		rows = split(layers, row, "\n")
		for (i = 1; i <= rows; i++)
			if (split(row[i], part, ": ") == 2) allowed[part[1]] = " " part[2] " "
	}
	function folder_of(path) {
		if (path ~ /^core\//) { split(path, p, "/"); return p[1] "/" p[2] }
		split(path, p, "/"); return p[1]
	}
	FNR == 1 && !(folder_of(FILENAME) in allowed) {
		printf "%s: a file on no layer: say in test/check/includes.sh which it is\n", FILENAME
	}
	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		match($0, /["<][^">]*/); name = substr($0, RSTART + 1, RLENGTH - 1)
		quoted = substr($0, RSTART, 1) == "\""; own = folder_of(FILENAME)
		if (name ~ /^graphwire\//)
			ok = name != "graphwire/graphwire.h" || index(" " callers " ", " " own " ")
		else if (quoted)
			ok = index(allowed[own], " " folder_of(name) " ")
		else
			ok = !(folder_of(name) in allowed) || name !~ /\//
		if (!ok) printf "%s:%d: %s\n", FILENAME, FNR, $0
	}' "${files[@]}"
}

self_test() {
	local root failed=0
	root=$(mktemp -d)
	trap 'rm -rf "$root"' RETURN
	while IFS='|' read -r file include verdict; do
		mkdir -p "$root/$(dirname "$file")"
		printf '#include <stdio.h>\n#include %s\n' "$include" >"$root/$file"
		local found=allowed
		[ -n "$(upward "$root")" ] && found=caught
		if [ "$found" = "$verdict" ]; then
			echo "ok - $file including $include is $verdict"
		else
			echo "not ok - $file including $include is $found, not $verdict"
			failed=1
		fi
		rm "$root/$file"
	done <<-'PLANTED'
		core/base/x.c|"core/graph/meta.h"|caught
		core/base/x.h|<core/graph/meta.h>|caught
		core/base/x.c|<graphwire/graphwire.h>|caught
		core/graph/x.c|"transport/transport.h"|caught
		core/rows/x.c|"core/graph/meta.h"|caught
		core/rows/x.c|"transport/transport.h"|caught
		transport/x.c|"core/rows/store.h"|caught
		transport/tcp/x.c|"core/graph/meta.h"|caught
		transport/verbs/x.c|"core/graph/part.h"|caught
		transport/verbs/x.c|<graphwire/graphwire.h>|caught
		transport/shm/x.h|"sampler/plan.h"|caught
		transport/shm/map/x.c|"client/client.h"|caught
		core/net/x.c|"core/base/status.h"|caught
		core/net/x.c|<stdlib.h>|caught
		deploy/x.c|<stdlib.h>|caught
		python/graphwire/x.c|"core/base/status.h"|caught
		python/x.h|"client/client.h"|caught
		sampler/x.c|"transport/transport.h"|caught
		protocol/x.c|"transport/transport.h"|caught
		protocol/x.c|"client/client.h"|caught
		client/x.c|"server/server.h"|caught
		server/x.h|"client/client.h"|caught
		server/x.c|<graphwire/graphwire.h>|caught
		tensors/x.c|"client/client.h"|caught
		client/x.c|"core/rows/store.h"|caught
		tools/x.c|"bench/bench.h"|caught
		bench/x.c|"tools/tools.h"|caught
		client/x.c|"../server/server.h"|caught
		sampler/x.c|"local.h"|caught
		examples/x.c|"core/base/status.h"|caught
		server/x.c|"protocol/catalog.h"|allowed
		tensors/x.c|"protocol/ops.h"|allowed
		client/x.c|"tensors/plan.h"|allowed
		cmd/x.c|"tools/tools.h"|allowed
		sampler/x.c|"core/graph/part.h"|allowed
		transport/tcp/x.c|"transport/transport.h"|allowed
		transport/verbs/x.c|"core/base/arena.h"|allowed
		transport/shm/x.c|"transport/transport.h"|allowed
		transport/verbs/x.c|<infiniband/verbs.h>|allowed
		python/graphwire/x.c|<graphwire/graphwire.h>|allowed
		python/x.c|"python/x.h"|allowed
		client/x.c|"python/x.h"|caught
		test/unit/x.c|"client/client.h"|allowed
		bench/peers/x.c|"mpi.h"|allowed
		core/base/x.h|<graphwire/types.h>|allowed
		client/x.c|<sys/uio.h>|allowed
	PLANTED
	return $failed
}

if [ "${1:-}" = --self-test ]; then
	self_test
	exit
fi
found=$(upward "${1:-$here/../..}")
if [ -n "$found" ]; then
	echo "$found"
	echo "not ok - these includes go up a layer"
	exit 1
fi
echo "ok - no include goes up a layer"
