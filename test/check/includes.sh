#!/usr/bin/env bash
# includes.sh [ROOT]: checks that every include stays on its layer or goes down (docs/ARCHITECTURE.md). Prints includes
# that go up, and C files without a layer. Inside a layer, folders with a row of their own are floors; a folder without
# one belongs to the folder above it.
# includes.sh --self-test: plants one violation of each kind and checks that it is found.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Folder: the folders that it may include from. The longest folder that fits a file counts.
base='core/errors core/system core/memory core/numbers core/files'
contract='transport/service transport' # the interface of a transport, and the server's half
tcp='transport/tcp/driver transport/tcp'
backends="$tcp transport/tcp/client transport/tcp/server transport/memory transport/shm transport/verbs"
below_client="$base core/graph $contract sampler sampler/blocks protocol tensors metrics"
client='client/state client/link client/engine client/rows client/tensors client/batch client/queries client'
layers="
core/errors: core/errors
core/system: core/errors core/system
core/memory: core/errors core/system core/memory
core/numbers: core/errors core/system core/memory core/numbers
core/files: $base
core/graph: $base core/graph
core/rows: $base core/rows
transport/service: $base transport/service
transport/memory: $base $contract transport/memory
transport/tcp/driver: $base transport/tcp/driver
transport/tcp/client: $base $contract $tcp transport/tcp/client
transport/tcp/server: $base $contract $tcp transport/tcp/server
transport/tcp: $base $contract $tcp transport/tcp/client transport/tcp/server
transport/shm: $base $contract $tcp transport/tcp/client transport/tcp/server transport/shm
transport/verbs: $base $contract $tcp transport/tcp/client transport/verbs
transport: $base $contract $backends
sampler/lanes: $base sampler/lanes
sampler: $base core/graph sampler/lanes sampler
sampler/kinds: $base core/graph sampler/lanes sampler sampler/kinds
sampler/blocks: $base core/graph sampler sampler/blocks
protocol: $base core/graph core/rows protocol
metrics: $base $contract metrics
tensors: $base core/graph core/rows $contract protocol tensors
client/state: $below_client client/state
client/link: $below_client client/state client/link
client/engine: $below_client client/state client/link client/engine
client/rows: $below_client client/state client/link client/engine client/rows
client/tensors: $below_client client/state client/link client/engine client/rows client/tensors
client/batch: $below_client client/state client/link client/engine client/rows client/batch
client/queries: $below_client client/state client/link client/engine client/rows client/batch client/queries
client: $below_client $client
server: $below_client server
tools: $below_client $client core/rows transport/verbs server tools
bench: $below_client $client core/rows transport/verbs sampler/lanes server bench
cmd: $below_client $client core/rows server tools bench cmd
include: graphwire
examples: graphwire
python: graphwire python
"
# All layers may include the public headers, except the client's own header: only the client and its callers may.
callers_of_the_client='client tools bench cmd include examples python'
# C files without a layer: tests may include every layer; bench/peers and cmake/bundle are separate programs.
beside='./test ./bench/peers ./cmake/bundle ./build ./.git ./.cache'

upward() { # upward ROOT: prints "file:line: include" for each include that goes up
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
	# The longest folder of the path that has a row; without one, the first.
	function folder_of(path, folder) {
		folder = path
		while (sub(/\/[^\/]*$/, "", folder))
			if (folder in allowed) return folder
		return folder
	}
	FNR == 1 && !(folder_of(FILENAME) in allowed) {
		printf "%s: a file on no layer: say in test/check/includes.sh which it is\n", FILENAME
	}
	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		match($0, /["<][^">]*/); name = substr($0, RSTART + 1, RLENGTH - 1)
		quoted = substr($0, RSTART, 1) == "\""; own = folder_of(FILENAME)
		if (name ~ /^graphwire\//)
			ok = name != "graphwire/graphwire.h" || index(" " callers " ", " " substr(own, 1, index(own "/", "/") - 1) " ")
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
		core/errors/x.c|"core/graph/meta.h"|caught
		core/files/x.h|<core/graph/meta.h>|caught
		core/memory/x.c|<graphwire/graphwire.h>|caught
		core/errors/x.c|"core/system/clock.h"|caught
		core/memory/x.h|"core/files/load.h"|caught
		core/base/x.c|<stdlib.h>|caught
		core/graph/x.c|"transport/transport.h"|caught
		core/rows/x.c|"core/graph/meta.h"|caught
		core/rows/x.c|"transport/transport.h"|caught
		transport/x.c|"core/rows/store.h"|caught
		transport/tcp/x.c|"core/graph/meta.h"|caught
		transport/verbs/x.c|"core/graph/part.h"|caught
		transport/verbs/x.c|<graphwire/graphwire.h>|caught
		transport/shm/x.h|"sampler/plan.h"|caught
		transport/shm/map/x.c|"client/state/client.h"|caught
		transport/service/x.c|"transport/transport.h"|caught
		transport/service/x.h|"transport/tcp/loop.h"|caught
		transport/tcp/client/x.c|"transport/tcp/server/server.h"|caught
		transport/tcp/server/x.c|"transport/tcp/client/client.h"|caught
		transport/tcp/driver/x.c|"transport/tcp/loop.h"|caught
		transport/tcp/x.c|"transport/verbs/verbs.h"|caught
		transport/memory/x.c|"transport/shm/shm.h"|caught
		transport/verbs/x.c|"transport/tcp/server/server.h"|caught
		sampler/lanes/x.c|"sampler/draw.h"|caught
		sampler/x.c|"sampler/blocks/blocks.h"|caught
		sampler/kinds/x.c|"sampler/blocks/blocks.h"|caught
		client/batch/x.c|"sampler/lanes/wide.h"|caught
		client/link/x.c|"transport/tcp/client/client.h"|caught
		server/x.c|"transport/verbs/verbs.h"|caught
		core/x.c|"core/errors/status.h"|caught
		core/net/x.c|"core/errors/status.h"|caught
		core/net/x.c|<stdlib.h>|caught
		deploy/x.c|<stdlib.h>|caught
		python/graphwire/x.c|"core/errors/status.h"|caught
		python/x.h|"client/state/client.h"|caught
		sampler/x.c|"transport/transport.h"|caught
		protocol/x.c|"transport/transport.h"|caught
		protocol/x.h|"sampler/pick.h"|caught
		protocol/x.c|"client/state/client.h"|caught
		client/x.c|"server/server.h"|caught
		client/link/x.c|"client/engine/engine.h"|caught
		client/engine/x.h|"client/rows/gather.h"|caught
		client/rows/x.c|"client/tensors/checkpoint.h"|caught
		client/tensors/x.c|"client/batch/batch.h"|caught
		client/batch/x.c|"client/queries/neighbours.h"|caught
		client/state/x.c|"client/standalone.h"|caught
		client/other/x.c|"core/rows/store.h"|caught
		server/x.h|"client/state/client.h"|caught
		server/x.c|<graphwire/graphwire.h>|caught
		tensors/x.c|"client/state/client.h"|caught
		metrics/x.c|"server/server.h"|caught
		metrics/x.c|"core/graph/part.h"|caught
		transport/service/x.c|"metrics/figure.h"|caught
		metrics/x.c|"transport/address.h"|allowed
		client/x.c|"core/rows/store.h"|caught
		tools/x.c|"bench/bench.h"|caught
		bench/x.c|"tools/tools.h"|caught
		client/x.c|"../server/server.h"|caught
		sampler/x.c|"local.h"|caught
		examples/x.c|"core/errors/status.h"|caught
		server/x.c|"protocol/catalog.h"|allowed
		tensors/x.c|"protocol/ops.h"|allowed
		client/x.c|"tensors/plan.h"|allowed
		client/x.c|"client/queries/neighbours.h"|allowed
		client/batch/x.c|"client/rows/gather.h"|allowed
		client/link/x.c|<graphwire/graphwire.h>|allowed
		cmd/x.c|"tools/tools.h"|allowed
		sampler/x.c|"core/graph/part.h"|allowed
		transport/tcp/x.c|"transport/transport.h"|allowed
		transport/x.c|"transport/verbs/verbs.h"|allowed
		transport/tcp/server/x.c|"transport/service/task.h"|allowed
		transport/tcp/client/other/x.c|"transport/tcp/loop.h"|allowed
		transport/shm/x.c|"transport/tcp/client/client.h"|allowed
		sampler/kinds/x.c|"sampler/lanes/wide_table.h"|allowed
		client/batch/x.c|"sampler/blocks/blocks.h"|allowed
		transport/verbs/x.c|"core/memory/arena.h"|allowed
		transport/shm/x.c|"transport/transport.h"|allowed
		transport/verbs/x.c|<infiniband/verbs.h>|allowed
		python/graphwire/x.c|<graphwire/graphwire.h>|allowed
		python/x.c|"python/x.h"|allowed
		client/x.c|"python/x.h"|caught
		test/unit/x.c|"client/state/client.h"|allowed
		bench/peers/x.c|"mpi.h"|allowed
		core/errors/x.h|<graphwire/types.h>|allowed
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
