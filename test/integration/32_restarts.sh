#!/usr/bin/env bash
# A client streams while its servers are stopped, killed and started again, and while pending clients connect; the output
# of stat; and the servers' memory.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"

holds "a graph" "$GRAPHWIRE" generate rmat --scale 13 --seed 5 --features 64 --labels 4 --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --out parts

declare -A address process
start() { # start NAME ARGUMENT…: a server in the background; its address in ${address[NAME]}
	local name=$1
	shift
	: >"$name.log"
	# Over TCP only: from mapped memory the epoch would end before the servers do.
	"$GRAPHWIRE" serve --part-config parts --part "$name" --transport tcp "$@" >"$name.log" 2>&1 </dev/null &
	process[$name]=$!
	started+=($!)
	within 100 grep -q '^serving part' "$name.log" || not_ok "server $name: $(tail -n 1 "$name.log")"
	address[$name]=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$name.log")
}
start 0 --listen 127.0.0.1:0
start 1 --listen 127.0.0.1:0

# Clients reach part 1 through a gate (gate.py) at the same port of another address of this host, and so find the same
# key. Their epoch cannot end before the gate opens, however fast they are.
gate=127.0.0.2:${address[1]##*:}
servers=${address[0]},$gate
mkfifo orders said
python3 "$top/test/integration/gate.py" "$gate" "${address[1]}" <orders >said 2>gate.err &
started+=($!)
exec 6>orders 7<said
says() { # says WORD: waits until the gate prints the word
	local word=''
	read -r -t 100 -u 7 word
	[ "$word" = "$1" ] || not_ok "the gate says \"$word\", not \"$1\": $(tail -n 1 gate.err)"
}
says ready

# stream NAME: starts 1500 batches in the background, each compared with the standalone client's. Returns after the
# first ones; the gate holds back the last ones until `streamed`.
stream() {
	"$GRAPHWIRE" epoch --part-config parts --servers "$servers" --batch-size 2 --steps 1500 --fanouts 8,5 --check --json \
		>"$1.json" 2>"$1.err" </dev/null &
	streaming=$!
	started+=($!)
	go_on
}
# go_on: lets the epoch continue for a while; the gate then holds it within a batch.
go_on() {
	echo "pass 200000" >&6
	says held
}
streamed() { # streamed NAME WHAT: lets the epoch end; it has succeeded, with all batches
	local status
	if gone "$streaming"; then not_ok "$1: the epoch was over too soon: $(tail -n 1 "$1.err")"; fi
	echo open >&6
	within 100 gone "$streaming" || kill -KILL "$streaming"
	wait "$streaming"
	status=$?
	if [ $status -ne 0 ]; then
		not_ok "$2: status $status: $(tail -n 1 "$1.err")"
	elif ! grep -q '"batches": *1500[,}]' "$1.json"; then
		not_ok "$2: not all 1500 batches came: $(head -c 300 "$1.json")"
	else
		ok "$2"
	fi
}
quietly() { # ends a process without a line of the shell about it
	kill -"$1" "$2"
	wait "$2" 2>/dev/null
}

stream killed
for _ in 1 2 3; do
	for part in 0 1; do
		quietly KILL "${process[$part]}"
		start $part --listen "${address[$part]}"
		go_on
	done
done
streamed killed "servers that are killed and started again cost no batch"

stream drained
quietly TERM "${process[1]}"
start 1 --listen "${address[1]}"
streamed drained "a server that is stopped and started again costs no batch"

stream knocked
port=${address[0]##*:}
for bytes in 1 20 3000 200000 40 7; do
	{ head -c $bytes /dev/urandom >"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null
done
exec 8<>"/dev/tcp/127.0.0.1/$port"
streamed knocked "pending clients cost no batch"
exec 8>&-
exec 6>&- 7<&-

# --- stat. ---
holds "stat" "$GRAPHWIRE" stat "${address[0]}" "${address[1]}"
if [ "$(wc -l <out)" -eq 3 ] && grep -q "^${address[0]} .* 0/2 .*${process[0]}" out &&
	grep -q "^${address[1]} .* 1/2 .*${process[1]}" out; then
	ok "stat has a line for each server"
else
	not_ok "stat has a line for each server" && cat out
fi
holds "stat --json" "$GRAPHWIRE" stat --json "${address[0]}"
if python3 -c 'import json,sys; s=json.loads(open("out").read()); sys.exit(not (s["part"]==0 and s["parts"]==2 and s["read_bytes"]>0 and s["errors"]==0))'; then
	ok "stat --json is JSON that says what was read"
else
	not_ok "stat --json is JSON that says what was read: $(cat out)"
fi
refuses "stat of a server that does not exist" 1 '127\.0\.0\.1:1:' "$GRAPHWIRE" stat 127.0.0.1:1 "${address[0]}"
if [ "$(grep -c "^${address[0]} " out)" -eq 1 ]; then ok "and of the one that is"; else not_ok "and of the one that is"; fi
head -c 40 /dev/urandom >other.key && chmod 600 other.key
refuses "stat with a wrong key" 1 "${address[0]}.*key" "$GRAPHWIRE" stat --key-file other.key "${address[0]}"
refuses "stat of an invalid address" 2 'nowhere' "$GRAPHWIRE" stat nowhere:port
exec 8<>"/dev/tcp/127.0.0.1/$port"
holds "stat while a client sends nothing" "$GRAPHWIRE" stat "${address[0]}"
exec 8>&-

# --- Options of serve. ---
refuses "serve: no part" 2 'part' "$GRAPHWIRE" serve --part-config parts
refuses "serve: an invalid number of threads" 2 'threads' "$GRAPHWIRE" serve --part-config parts --part 0 --threads none
refuses "serve: pages of another kind" 2 'hugepages' "$GRAPHWIRE" serve --part-config parts --part 0 --hugepages big
refuses "serve: an invalid name" 2 'name' "$GRAPHWIRE" serve --part-config parts --part 0 --name $'a\nb'
refuses "serve: a key file that does not exist" 1 'absent.key' \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --key-file absent.key
cp other.key open.key && chmod 644 open.key
refuses "serve: a key file that others may read" 1 'open.key.*chmod' \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --key-file open.key
chmod 755 "$XDG_RUNTIME_DIR/graphwire"
refuses "serve: a runtime folder that others may enter" 1 'graphwire' \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0
chmod 700 "$XDG_RUNTIME_DIR/graphwire"

# --- A key file, which both sides need. ---
quietly TERM "${process[0]}"
quietly TERM "${process[1]}"
start 0 --listen 127.0.0.1:0 --key-file other.key --name keyed
start 1 --listen 127.0.0.1:0 --key-file other.key --name keyed
servers=${address[0]},${address[1]}
refuses "a client without the key" 1 'key' "$GRAPHWIRE" epoch --part-config parts --servers "$servers"
holds "a client with the key" "$GRAPHWIRE" epoch --part-config parts --servers "$servers" --key-file other.key --check
holds "stat with the key" "$GRAPHWIRE" stat --key-file other.key "${address[0]}"
if grep -q ' keyed ' out; then ok "stat knows its name"; else not_ok "stat knows its name"; fi
quietly TERM "${process[0]}"
quietly TERM "${process[1]}"
left=$(find "$XDG_RUNTIME_DIR" -name 'key-*')
if [ -z "$left" ]; then ok "no key is left behind"; else not_ok "keys are left behind: $left"; fi

# --- Mapped memory: a suspended client keeps the memory of a killed server, and the refusal names this client. ---
: >mapped.log
"$GRAPHWIRE" serve --part-config graph --part 0 --transport shm --listen 127.0.0.1:0 >mapped.log 2>&1 </dev/null &
server=$!
started+=("$server")
within 100 grep -q '^serving part' mapped.log || not_ok "a server: $(tail -n 1 mapped.log)"
at=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' mapped.log)
"$GRAPHWIRE" epoch --servers "$at" --transport shm --threads 1 --batch-size 1 --fanouts 300,300,300 >mapped.out 2>&1 </dev/null &
client=$!
started+=("$client")
within 100 grep -qs memfd:graphwire-part "/proc/$client/maps" || not_ok "a client maps it: $(tail -n 1 mapped.out)"
suspend "$client"
refuses "serve: too little memory next to a running server" 1 'are limited to' \
	bash -c "ulimit -f 100; exec '$GRAPHWIRE' serve --part-config parts --part 0 --listen 127.0.0.1:0"
if grep -q "process $client " err; then not_ok "a client of a server that lives is named"; else ok "its client is not named"; fi
quietly KILL "$server"
refuses "serve: too little memory, and a client still maps some" 1 "process $client \(.*graphwire epoch.*\) still maps .*suspended" \
	bash -c "ulimit -f 100; exec '$GRAPHWIRE' serve --part-config graph --part 0 --listen $at"
quietly KILL "$client" || true
