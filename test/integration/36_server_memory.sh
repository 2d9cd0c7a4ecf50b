#!/usr/bin/env bash
# A server's memory in addition to its arrays, while eight clients stream: PSS minus the arena, at most 5 % of the arena
# plus 64 MiB. SCALE=N: a graph of 2^N nodes (16). The figure is printed as a note.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

holds "a graph" "$GRAPHWIRE" generate rmat --scale "${SCALE:-16}" --features 128 --labels 4 --out graph --quiet
"$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 2 >serve.log 2>&1 </dev/null &
server=$!
started+=("$server")
within 100 grep -q '^serving part' serve.log || not_ok "the server: $(tail -n 1 serve.log)"
address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' serve.log)

stream() { # stream SEED: streams parts of epochs until it is stopped
	local child
	trap 'kill "$child"; exit 0' TERM
	while :; do
		"$GRAPHWIRE" epoch --servers "$address" --transport tcp --threads 2 --seed "$1" --batch-size 1000 --steps 10 --fanouts 15,10,5 &
		child=$!
		wait "$child"
	done
}
clients=()
for number in 1 2 3 4 5 6 7 8; do
	stream $number >client$number.log 2>&1 </dev/null &
	clients+=($!)
done

streamed_all() { # every client has streamed a part
	local number
	for number in 1 2 3 4 5 6 7 8; do
		grep -q 'mini-batches of' client$number.log || return 1
	done
}

# The arena is shared memory; the server's other memory is private. The loop samples it until all clients have streamed.
bytes=0 most=0 all=no
for round in $(seq 1000); do
	sleep 0.2
	read -r kib < <(awk '/^Pss:/ { print $2 }' "/proc/$server/smaps_rollup")
	[ "${kib:-0}" -gt "$most" ] && most=$kib
	if [ $all = no ] && streamed_all; then all=yes; fi
	if [ $all = yes ] && [ "$round" -ge 20 ]; then break; fi
done
"$GRAPHWIRE" stat --json "$address" >stat.json
kill -TERM "${clients[@]}"
wait "${clients[@]}" 2>/dev/null
value() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" stat.json; }
bytes=$(($(value bytes) / 1024))
connections=$(value connections)
sent=$(($(value read_bytes) / 1048576))
over=$((most - bytes))
printf 'note: server memory: PSS %d KiB at most, arrays %d KiB, besides %d KiB; %d connections, %d MiB sent\n' \
	"$most" "$bytes" "$over" "$connections" "$sent"
if [ $all = no ] || [ "$sent" -lt 1 ]; then not_ok "eight clients streamed: $(cat stat.json)"; fi
if [ "$bytes" -gt 0 ] && [ "$over" -le $((bytes / 20 + 65536)) ]; then
	ok "a server uses the memory of its arrays and at most 5 % + 64 MiB"
else
	not_ok "a server uses $over KiB in addition to arrays of $bytes KiB"
fi

# In a memory group with the limit that the doctor advises, the server loads, and clients do not end it.
groups=$top/test/support/control_groups.py
if group=$(python3 "$groups" make server); then
	within_group() { exec python3 "$groups" run "$group" "$@"; } # in a process of its own
	kill "$server"
	wait "$server" 2>/dev/null
	arrays=$(find graph/part0 -name '*.npy' -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
	python3 "$groups" limit "$group" 67108864
	advised=$(within_group "$GRAPHWIRE" doctor --bytes "$arrays" | sed -n 's/.*MemoryMax=\([0-9]*\).*/\1/p' | head -n 1)
	python3 "$groups" limit "$group" "$advised"
	(within_group "$GRAPHWIRE" doctor --bytes "$arrays") >doctor.txt
	holds "the doctor has no objection to the limit that it advised" test "$(grep -cE '^ +problem +memory' doctor.txt)" -eq 0
	: >serve.log # of the server before
	within_group "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 2 >serve.log 2>&1 </dev/null &
	server=$!
	started+=("$server")
	within 100 grep -q '^serving part' serve.log || not_ok "a server within the advised limit: $(tail -n 1 serve.log)"
	address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' serve.log)
	clients=() served=0
	for number in 1 2 3 4; do
		"$GRAPHWIRE" epoch --servers "$address" --transport tcp --threads 4 --seed $number --steps 5 >/dev/null 2>&1 &
		clients+=($!)
	done
	for client in "${clients[@]}"; do wait "$client" && served=$((served + 1)); done
	holds "four clients are served within it" test $served -eq 4
	holds "and the kernel ended nothing" test "$(python3 "$groups" kills "$group")" = 0
	kill "$server"
	wait "$server" 2>/dev/null
	# Limits around the arrays' size: the server names the limit and its need in one line, or it serves eight clients.
	for extra in -2 1 2 3 4 8 16 32 64; do
		kills=$(python3 "$groups" kills "$group")
		python3 "$groups" limit "$group" $((arrays + extra * 1048576))
		: >serve.log
		within_group "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 2 >serve.log 2>&1 </dev/null &
		server=$!
		started+=("$server")
		within 100 grep -qE '^(serving part|graphwire serve:)' serve.log || not_ok "part + $extra MiB: $(tail -n 1 serve.log)"
		if grep -q '^graphwire serve:' serve.log; then
			wait "$server"
			status=$?
			holds "part + $extra MiB: one line names the limit and the need" test "$status $(wc -l <serve.log) \
$(grep -cE 'connections: [0-9.]+ MiB wanted, .* available in the control group: raise its limit of [0-9.]+ MiB' serve.log)" = '1 1 1'
			continue
		fi
		address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' serve.log)
		clients=() served=0
		for number in 1 2 3 4 5 6 7 8; do
			"$GRAPHWIRE" epoch --servers "$address" --transport tcp --threads 4 --seed $number --steps 5 --reconnect 3000 >/dev/null 2>&1 &
			clients+=($!)
		done
		for client in "${clients[@]}"; do wait "$client" && served=$((served + 1)); done
		holds "part + $extra MiB: eight clients are served" test $served -eq 8
		holds "part + $extra MiB: the kernel ends nothing" test "$(python3 "$groups" kills "$group")" = "$kills"
		kill "$server"
		wait "$server" 2>/dev/null
	done
	python3 "$groups" remove "$group"
else
	echo "# no memory group can be made: the advised limit is not tried"
fi
