#!/usr/bin/env bash
# examples/minibatch.c, used as its first comment says: built with the shared library and the public header, run on the
# folder and on servers.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"
library=$(dirname "$GRAPHWIRE")
export LD_LIBRARY_PATH=$library

holds "the example builds without a warning" cc -Wall -Wextra -Werror "$top/examples/minibatch.c" -I"$top/include" \
	-L"$library" -lgraphwire -o minibatch
holds "a graph" "$GRAPHWIRE" generate rmat --scale 12 --features 16 --out graph
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --out parts
holds "the example reads a folder" ./minibatch parts
cp out alone

addresses=()
for part in 0 1; do
	"$GRAPHWIRE" serve --part-config parts --part $part --listen 127.0.0.1:0 >server$part.log 2>&1 &
	started+=($!)
	within 100 grep -q '^serving part' server$part.log
	addresses+=("$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' server$part.log)")
done
holds "the example reads servers" ./minibatch parts "${addresses[@]}"
if cmp -s out alone && grep -q '^5 mini-batches' out; then
	ok "it prints the same for both: $(cat out)"
else
	not_ok "it prints \"$(cat out)\" with servers and \"$(cat alone)\" without"
fi
refuses "the example names the error" 1 'absent' ./minibatch absent
