#!/usr/bin/env bash
# A server with shortages: silent sockets, few descriptors, many clients that leave or are killed, a runtime folder that
# is a file, an output that is full, and an end while clients are busy.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"
folder=$XDG_RUNTIME_DIR/graphwire

holds "a graph" "$GRAPHWIRE" generate rmat --scale 12 --seed 5 --features 32 --labels 4 --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --out parts
head -c 40 /dev/urandom >job.key && chmod 600 job.key

declare -A address process
start() { # start NAME FILES ARGUMENT…: starts a server with this limit of open files; its address in ${address[NAME]}
	local name=$1 files=$2
	shift 2
	: >"$name.log"
	(ulimit -n "$files" && exec "$GRAPHWIRE" serve --listen 127.0.0.1:0 --transport tcp --threads 2 "$@") \
		>"$name.log" 2>&1 </dev/null &
	process[$name]=$!
	started+=($!)
	within 60 grep -q '^serving part' "$name.log" || not_ok "server $name: $(tail -n 1 "$name.log")"
	address[$name]=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$name.log")
}
ends() { # ends NAME SIGNAL: waits until its process has ended
	kill -"$2" "${process[$1]}"
	within 60 gone "${process[$1]}" || not_ok "server $1 continues after SIG$2"
	wait "${process[$1]}" 2>/dev/null
}
value() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2"; } # value KEY FILE
says() { # says WHAT PATTERN FILE
	if grep -qE -- "$2" "$3"; then ok "$1"; else not_ok "$1: $(head -c 500 "$3")"; fi
}

# --- Silent sockets, more than the server's limit of open files. ---
start few 200 --part-config graph --part 0 --key-file job.key
says "a low limit of open files is logged" 'at most [0-9]+ connections: the limit of open files is 200' few.log
port=${address[few]##*:}
silent=()
for _ in $(seq 300); do
	exec {socket}<>"/dev/tcp/127.0.0.1/$port" && silent+=("$socket")
done
holds "a client with the key is admitted despite 300 silent sockets" \
	"$GRAPHWIRE" epoch --part-config graph --servers "${address[few]}" --transport tcp --key-file job.key --check --batch-size 256
holds "so does stat" "$GRAPHWIRE" stat --json --key-file job.key "${address[few]}"
# Each of the server's threads drops its own sockets, perhaps not at once.
given_way() {
	"$GRAPHWIRE" stat --json --key-file job.key "${address[few]}" >given_way.json &&
		[ "$(value dropped given_way.json)" -ge 200 ] && [ "$(value unproven given_way.json)" -le 40 ]
}
if within 60 given_way; then
	ok "the oldest silent sockets are dropped"
else
	not_ok "the oldest silent sockets are dropped: $(cat given_way.json)"
fi
for socket in "${silent[@]}"; do exec {socket}>&-; done
# shellcheck disable=SC2016
refuses "more connections than files" 1 'limit of open files is 200.*ulimit -n' bash -c \
	'ulimit -n 200; exec "$0" serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 2 --connections 500' "$GRAPHWIRE"
# shellcheck disable=SC2016
refuses "too few files for one connection" 1 'limit of open files is 40.*ulimit -n' bash -c \
	'ulimit -n 40; exec "$0" serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 2' "$GRAPHWIRE"
ends few TERM

# --- Many clients that connect, read and leave: the server frees their memory. ---
# clients.py PORT NUMBER stay|busy VERSION: this many clients without a key. stay: they read a large answer, and stay until
# the input ends. busy: they read complete answers until the server closes its side after one.
cat >clients.py <<'P'
import socket, struct, sys
port, number, mode, version = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
def exactly(s, n, may_end=False):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more and not data and may_end:
            return None
        assert more, "the server closed the connection inside a frame"
        data += more
    return data
def frame(s, may_end=False):
    head = exactly(s, 16, may_end)
    if head is None:
        return None
    size, kind, status, op, tag = struct.unpack("<IBBHQ", head)
    return kind, exactly(s, size)
def header(size, kind, tag=0, op=0):
    return struct.pack("<IBBHQ", size, kind, 0, op, tag)
def enter():
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(header(80, 1) + struct.pack("<QII32s16sQII", 0x3157472d54504157, version, version, b"n", b"u", 0, 0, 0))
    assert frame(s)[0] == 2
    s.sendall(header(32, 3) + bytes(32))
    kind, body = frame(s)
    assert kind == 4, body
    return s, struct.unpack("<QII", body[64:80])
def read(s, region, tag):
    length = min(region[0], 400000)
    s.sendall(header(36, 5, tag) + struct.pack("<IIIIQBBHII", region[1], region[2], 1, length, 0, 0, 4, 0, 0, 0))
clients = [enter() for _ in range(number)]
for s, region in clients:
    read(s, region, 1)
    if mode == "stay":
        s.sendall(header(60000, 7, 2, 63) + bytes(60000))
    assert frame(s)[0] == 9
    if mode == "stay":
        frame(s)
    else:
        read(s, region, 2)
print(len(clients), flush=True)
if mode == "stay":
    sys.stdin.read()
tag, open_ends = 3, clients if mode == "busy" else []
while open_ends:
    left = []
    for s, region in open_ends:
        if frame(s, may_end=True) is None:
            continue
        try:
            read(s, region, tag)
        except (BrokenPipeError, ConnectionResetError):
            pass
        left.append((s, region))
    tag, open_ends = tag + 1, left
P
version=$(sed -n 's/^#define WIRE_VERSION *\([0-9]*\)u$/\1/p' "$top/transport/tcp/wire.h")
start storm 1024 --part-config graph --part 0 --insecure
resident() { awk '/^RssAnon:/ { print $2 }' "/proc/${process[storm]}/status"; }
before=$(resident)
mkfifo go
python3 clients.py "${address[storm]##*:}" 300 stay "$version" <go >storm.out 2>storm.err &
stormers=$!
started+=("$stormers")
exec 7>go
within 60 grep -q 300 storm.out || not_ok "300 clients: $(tail -n 1 storm.err)"
during=$(resident)
exec 7>&-
wait "$stormers"
printf 'note: private memory of a server: %d KiB, with 300 clients %d KiB\n' "$before" "$during"
# Their buffers belong to the threads, which keep a few: test_transport_tcp_memory.c.
if [ $((during - before)) -le $((300 * 24)) ]; then
	ok "300 clients take at most 24 KiB each"
else
	not_ok "300 clients take at most 24 KiB each: $before, $during KiB"
fi
ends storm TERM

# --- Clients that are killed while they read: the server frees all that it had for them. ---
start bereft 1024 --part-config graph --part 0 --insecure
stat_bereft() { "$GRAPHWIRE" stat --json --insecure "${address[bereft]}" >bereft.json; }
has_read() { stat_bereft && [ "$(value reads bereft.json)" -ge "$1" ]; }
held() { stat_bereft && echo "$(value connections bereft.json) connections, $(value reply_bytes bereft.json) bytes"; }
as_before() { [ "$(held)" = "$held_before" ]; }
held_before=$(held)
rounds=0
while [ "$rounds" -lt 5 ] && as_before; do
	readers=()
	python3 clients.py "${address[bereft]##*:}" 20 busy "$version" >readers.out 2>&1 &
	readers+=($!)
	for seed in 1 2; do
		"$GRAPHWIRE" epoch --part-config graph --servers "${address[bereft]}" --transport tcp --insecure --batch-size 1 \
			--seed "$seed" >epoch.out 2>&1 &
		readers+=($!)
	done
	started+=("${readers[@]}")
	within 60 has_read $(($(value reads bereft.json) + 1000)) || not_ok "clients read: $(tail -n 1 readers.out epoch.out)"
	kill -KILL "${readers[@]}"
	wait "${readers[@]}" 2>/dev/null
	within 60 as_before || break
	rounds=$((rounds + 1))
done
if [ "$rounds" -eq 5 ] && [ "$held_before" = "1 connections, 0 bytes" ]; then
	ok "nothing is left of clients that were killed while they read"
else
	not_ok "nothing is left of clients that were killed while they read: $held_before, after $rounds rounds $(held)"
fi
ends bereft TERM

# --- A runtime folder that is a file: only a key for loopback needs the folder. ---
rm -rf "$folder" && : >"$folder"
refuses "a server that makes a key needs its folder" 1 'XDG_RUNTIME_DIR' \
	"$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0
start keyed 1024 --part-config graph --part 0 --key-file job.key
says "a server with a key file starts without it, and logs that" 'XDG_RUNTIME_DIR' keyed.log
holds "and serves" "$GRAPHWIRE" epoch --part-config graph --servers "${address[keyed]}" --transport tcp --key-file job.key --check
ends keyed TERM
rm -f "$folder"

# --- The next server removes the files of killed ones; a server that ends leaves no file. ---
locks() { find "$folder" -name 'part-*.lock' | wc -l; }
start zero 1024 --part-config parts --part 0
start one 1024 --part-config parts --part 1
if [ "$(locks)" -eq 2 ]; then ok "servers have their locks"; else not_ok "servers have their locks: $(ls "$folder")"; fi
ends zero KILL
start one_more 1024 --part-config graph --part 0
if [ "$(locks)" -eq 2 ]; then ok "a dead server's lock is removed"; else not_ok "a dead server's lock is removed: $(ls "$folder")"; fi
refuses "a running server's lock is not" 1 "part 1.*pid ${process[one]}" \
	"$GRAPHWIRE" serve --part-config parts --part 1 --listen 127.0.0.1:0
ends one_more TERM
ends one TERM
if [ "$(locks)" -eq 0 ]; then ok "servers that end leave no lock"; else not_ok "servers that end leave no lock: $(ls "$folder")"; fi

# --- The server cannot print its ready line. ---
# shellcheck disable=SC2016
refuses "an output that is full" 1 'standard output.*No space left' \
	bash -c 'exec "$0" serve --part-config graph --part 0 --listen 127.0.0.1:0 >/dev/full' "$GRAPHWIRE"

# --- An end while clients are busy: it waits for their open requests, not for the whole drain time. ---
start busy 1024 --part-config graph --part 0 --insecure --drain 3600000
python3 clients.py "${address[busy]##*:}" 3 busy "$version" >busy.out 2>busy.err &
clients=$!
started+=("$clients")
within 60 grep -q 3 busy.out || not_ok "three clients are busy: $(tail -n 1 busy.err)"
kill -TERM "${process[busy]}"
if within 60 gone "${process[busy]}"; then
	ok "a server ends with its clients' open work, though it may take an hour"
else
	not_ok "a server continues though it has answered its clients"
fi
if wait "$clients"; then
	ok "and its clients have got their answers whole"
else
	not_ok "and its clients have got their answers whole: $(tail -n 1 busy.err)"
fi
