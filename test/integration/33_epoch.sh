#!/usr/bin/env bash
# Arguments that epoch, stat and doctor accept and refuse: limits, contradictory options, invalid masks, and servers on
# loopback without a key. test/conformance/test_epoch_errors.c tests the errors of an epoch that has begun.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"
holds "a graph" "$GRAPHWIRE" generate rmat --scale 8 --features 8 --labels 4 --time when --node-time born --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --time born --out parts

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

# --- Times. ---
python3 - <<'END'
import struct


def saved(name, dtype, rows, pack):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(rows)},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(rows)}{pack}", *rows))


saved("whole.npy", "<i8", range(256), "q")
saved("real.npy", "<f8", [row / 2 for row in range(256)], "d")
saved("few.npy", "<i8", range(255), "q")
saved("nan.npy", "<f8", [float("nan")] * 256, "d")
saved("dates.npy", "<M8[s]", range(256), "q")
saved("bytes.npy", "|u1", range(256), "B")
END
for option in "--at 3" "--times whole.npy" "--window 3" "--end born" "--pick last" --strict; do
	# shellcheck disable=SC2086 # an option and its value
	refuses "epoch: $option without --time" 2 "${option%% *} is for edges.*--time is missing" "${epoch[@]}" $option
done
refuses "epoch: times twice" 2 '--at and --times exclude' "${epoch[@]}" --time born --at 3 --times whole.npy
refuses "epoch: a negative window" 2 'window: a length is 0 or more' "${epoch[@]}" --time born --window -1
refuses "epoch: NaN" 2 'at: "nan" is not a number' "${epoch[@]}" --time born --at nan
refuses "epoch: no pick" 2 'pick: "first" is not one of: uniform, last' "${epoch[@]}" --time born --pick first
refuses "epoch: no such times" 1 'time: no edge type has times "nonsense"' "${epoch[@]}" --time nonsense --at 3
refuses "epoch: seeds without times" 1 '--at or --times is missing.*no feature "when"' "${epoch[@]}" --time when
refuses "epoch: features of other forms" 1 '"feat" is a feature of the sources.*partition --time feat' "${epoch[@]}" --time feat --at 3
refuses "epoch: too few times" 1 'few.npy" has 255 times for 256 seeds' "${epoch[@]}" --time born --times few.npy
refuses "epoch: times that are NaN" 1 'seed 0 is NaN' "${epoch[@]}" --time born --times nan.npy
refuses "epoch: dates for numbers" 1 'dates.npy" is in s, and the graph.s times are plain numbers' "${epoch[@]}" --time born --times dates.npy
refuses "epoch: bytes" 1 'bytes.npy" is not one int64' "${epoch[@]}" --time born --times bytes.npy
refuses "epoch: no file" 1 'absent.npy: cannot open' "${epoch[@]}" --time born --times absent.npy
refuses "epoch: times that fractions do not have" 1 '9223372036854775807 is not exact' "${epoch[@]}" --time born --at 9223372036854775807 --window 0.5
refuses "epoch: negatives without times" 1 'negatives: _N has no feature "when".*--negatives 0' "${epoch[@]}" --edges _E --time when
for name in born born.source; do
	holds "epoch: seeds have the times of $name" "${epoch[@]}" --time $name
	holds "epoch: negatives that exist by $name" "${epoch[@]}" --edges _E --time $name --at 300
done

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
for options in "--time born" "--time born --times real.npy --window 30 --pick last" "--time when --at 128 --strict" \
	"--time born --times whole.npy --end when --replace" "--edges _E --time when --negatives 0 --fanouts 4" --disjoint; do
	# shellcheck disable=SC2086 # words
	holds "epoch: batches with $options are the standalone client's" "${epoch[@]}" --servers "$servers" --insecure --check $options
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
