#!/usr/bin/env bash
# Arguments that epoch, stat and doctor accept and refuse: limits, contradictory options, invalid masks, and servers on
# loopback without a key. test/conformance/test_epoch_errors.c tests the errors of an epoch that has begun.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"
holds "a graph" "$GRAPHWIRE" generate rmat --scale 8 --features 8 --labels 4 --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --out parts

# --- Options. ---
epoch=("$GRAPHWIRE" epoch --part-config parts)
refuses "epoch: a check against itself" 2 'compares nothing' "${epoch[@]}" --check
refuses "epoch: a transport to no server" 2 'transport.*without --servers' "${epoch[@]}" --transport tcp
refuses "epoch: a key file together with --insecure" 2 'key-file.*insecure' "${epoch[@]}" --servers 127.0.0.1:1,127.0.0.1:2 \
	--key-file some.key --insecure
refuses "epoch: too deep a prefetch" 2 'depth.*256' "${epoch[@]}" --depth 257
refuses "epoch: too many threads" 2 'threads.*64' "${epoch[@]}" --threads 65
refuses "epoch: a fanout above the largest" 2 'fanouts.*1048576' "${epoch[@]}" --fanouts 1048577
deepest=$(printf '1,%.0s' {1..63})1
refuses "epoch: too many hops" 2 'fanouts.*more than 64' "${epoch[@]}" --fanouts "$deepest,1"
refuses "epoch: too many hops of an edge type" 2 'fanout.*more than 64' "${epoch[@]}" --fanouts "$deepest" --fanout "_E=$deepest,1"
refuses "epoch: an edge type with other hops" 2 '3 fanouts.*2 hops' "${epoch[@]}" --fanout _E=1,2,3
refuses "epoch: a budget of zero" 2 'reconnect' "${epoch[@]}" --reconnect 0
holds "epoch: the largest values" "${epoch[@]}" --depth 256 --threads 64 --fanouts 1048576,1
holds "epoch: the most hops" "${epoch[@]}" --fanouts "$deepest"
refuses "epoch: a part that does not exist" 1 'part 9: .*parts 0 to 1$' "${epoch[@]}" --seeds-of-part 9
refuses "epoch: a mask of ids" 1 'mask "label" is int64' "${epoch[@]}" --mask label
refuses "epoch: a mask of rows" 1 'mask "feat" has 2 dimensions' "${epoch[@]}" --mask feat
refuses "epoch: edges of a node type" 2 'ntype.*with --edges' "${epoch[@]}" --edges _E --ntype _N
refuses "epoch: edges of one part" 2 'seeds-of-part.*with --edges' "${epoch[@]}" --edges _E --seeds-of-part 0
refuses "epoch: --keep-edges for nodes" 2 'keep-edges.*--edges is missing' "${epoch[@]}" --keep-edges
refuses "epoch: an invalid edge type" 1 'nonsense' "${epoch[@]}" --edges nonsense
refuses "epoch: a mask that does not exist" 1 'nonsense' "${epoch[@]}" --edges _E --mask nonsense
holds "epoch: edges without negatives" "${epoch[@]}" --edges _E --negatives 0 --keep-edges

# --- Servers without a key. ---
declare -a address
for part in 0 1; do
	"$GRAPHWIRE" serve --part-config parts --part $part --listen 127.0.0.1:0 --insecure >"$part.log" 2>&1 </dev/null &
	started+=($!)
	within 30 grep -q '^serving part' "$part.log" || not_ok "server $part: $(tail -n 1 "$part.log")"
	address[part]=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$part.log")
done
servers=${address[0]},${address[1]}
refuses "epoch: a server without a key" 1 "127.0.0.1:.*no key to prove.*insecure" "${epoch[@]}" --servers "$servers"
holds "epoch: --insecure allows it" "${epoch[@]}" --servers "$servers" --insecure --check
for transport in tcp shm; do
	holds "epoch: edges over $transport are the standalone client's" "${epoch[@]}" --servers "$servers" --insecure --check \
		--edges _E --negatives 3 --no-true-edges --batch-size 300 --transport $transport
done
refuses "stat: a server without a key" 1 "${address[0]}.*no key to prove" "$GRAPHWIRE" stat "${address[0]}"
holds "stat: --insecure allows it" "$GRAPHWIRE" stat --insecure "${address[@]}"
if "$GRAPHWIRE" doctor --measure 10 --server "${address[0]}" >doctor.out 2>&1; then
	not_ok "doctor: a server without a key"
elif grep -q 'no key to prove' doctor.out && grep -q -- '--insecure' doctor.out; then
	ok "doctor: a server without a key"
else
	not_ok "doctor does not say why: $(cat doctor.out)"
fi
holds "doctor: --insecure allows it" "$GRAPHWIRE" doctor --measure 10 --insecure --server "${address[0]}"
