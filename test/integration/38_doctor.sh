#!/usr/bin/env bash
# The doctor as a command: this host, a server over each transport, servers that are away or require a key, other programs,
# and invalid options. It changes nothing, and ends in time.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys, locks and sockets of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"

# finds WHAT STATUS "PYTHON" ARGUMENT…: runs the doctor with --json. Its status is right, and each line of the text is true:
# f("NAME") is a finding, whose fields include its figures, and a is the address of the server.
finds() {
	local what=$1 expected=$2 holds=$3 status
	shift 3
	timeout 300 "$GRAPHWIRE" doctor --json "$@" >out 2>err </dev/null
	status=$?
	if [ $status -ne "$expected" ] || [ -s err ]; then
		not_ok "$what: status $status, not $expected: $(head -n 3 err)"
	elif python3 - "$address" "$holds" >why 2>&1 <<-'CHECK'; then
		import json, sys
		report = json.load(open("out"))
		a, order = sys.argv[1], ["ok", "note", "warning", "problem"]
		names = {}
		for x in report["findings"]:
		    assert x["section"] and x["name"] and x["value"], x
		    assert x["status"] in order and isinstance(x["costs"], str) and isinstance(x["fix"], str), x
		    assert x["status"] != "ok" or x["costs"] == x["fix"] == "", x
		    names[x["name"]] = {**x, **x.get("figures", {})}
		assert len(names) == len(report["findings"]), "two findings of one name"
		assert report["status"] == max((x["status"] for x in report["findings"]), key=order.index)
		def f(name):
		    return names[name]
		for line in sys.argv[2].splitlines():
		    assert not line.strip() or eval(line.strip()), line + json.dumps(names, indent=1)
	CHECK
		ok "$what"
	else
		not_ok "$what: $(tail -n 30 why)"
	fi
}

address=none
finds "this host" 0 '
	f("memory")["section"] == "memory" and "available" in f("memory")["value"]
	f("tcp")["range_cost_constant"] == 64
	all(name in names for name in ("locked memory", "io_uring", "open files", "sealed memory", "NUMA nodes"))
	not any(x["section"] == "servers" for x in names.values())'
finds "more memory than any host has" 1 'f("memory")["status"] == "problem" and f("memory")["fix"]' --bytes 1000Ti
finds "a little memory" 0 'f("memory")["status"] == "ok"' --bytes 1Mi
if "$GRAPHWIRE" doctor >out 2>err && grep -qE '^  (ok|note|warning) +memory ' out &&
	tail -n 1 out | grep -qE '^0 problems, [0-9]+ warnings?, [0-9]+ notes?$' && [ ! -s err ]; then
	ok "the same for people"
else
	not_ok "the same for people: $(tail -n 3 out err)"
fi

# Without /sys and /proc, as in a minimal container.
if unshare -m true 2>/dev/null; then
	bare() { unshare -m sh -c 'mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec "$@"' sh "$@"; }
	holds "a host without /proc and /sys" bare "$GRAPHWIRE" doctor
	if grep -qE '^  note +memory ' out && grep -qE '^  note +NUMA nodes ' out && grep -q '^0 problems' out; then
		ok "is full of notes"
	else
		not_ok "missing facts are not notes: $(cat out)"
	fi
fi

# --- Limits: the doctor predicts the refusal, and the server names the same limit and its file. ---
holds "a small graph" "$GRAPHWIRE" generate rmat --scale 8 --out little --quiet
little=(serve --part-config little --part 0 --listen 127.0.0.1:0)
if [ -d /sys/fs/cgroup/pids ]; then group=/sys/fs/cgroup/pids/gw-test-$$; else group=/sys/fs/cgroup/gw-test-$$; fi
# shellcheck disable=SC2016 # what the inner shell expands
within_group=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group")
if mkdir "$group" 2>/dev/null && [ -w "$group/pids.max" ]; then
	echo 6 >"$group/pids.max"
	"${within_group[@]}" "$GRAPHWIRE" doctor >doctor.txt
	holds "a group of six threads is no problem yet" test $? -eq 0
	holds "warns, and names the group's file" grep -qE "^ +warning +threads +.*may have 6, has [0-9].*/gw-test-$$/pids.max" doctor.txt
	holds "and the command for units and containers" grep -q 'fix: .*TasksMax=.*docker update --pids-limit' doctor.txt
	refuses "a server with more threads is refused so" 1 "cannot start thread .* limit of 6 .*/gw-test-$$/pids.max.*TasksMax=" \
		"${within_group[@]}" "$GRAPHWIRE" "${little[@]}" --threads 8
	within 50 rmdir "$group"
else
	echo "# no group of processes can be made: its limit is not tried"
fi
# Version 2 of control groups limits huge pages if the kernel has them.
for root in /sys/fs/cgroup/unified /sys/fs/cgroup; do [ ! -e $root/cgroup.controllers ] || break; done
group=$root/gw-test-$$
if { echo +hugetlb >"$root/cgroup.subtree_control" && mkdir "$group"; } 2>/dev/null && [ -w "$group/hugetlb.2MB.max" ]; then
	within_group[3]=$group
	echo 4M >"$group/hugetlb.2MB.max"
	"${within_group[@]}" "$GRAPHWIRE" doctor >doctor.txt
	holds "a group's huge pages, and the file of their limit" grep -qE \
		"^ +[a-z]+ +huge pages of the group +2 MiB: at most 4.00 MiB, 0 B in use \(.*/gw-test-$$/hugetlb.2MB.max\)" doctor.txt
	within 50 rmdir "$group"
else
	echo "# no group of huge pages can be made: its limit is not tried"
fi
(ulimit -f 64 && "$GRAPHWIRE" doctor --bytes 1Mi | cat) >doctor.txt
holds "files of at most 64 KiB are a problem for shared memory" grep -qE '^ +problem +file size +soft 64.0 KiB' doctor.txt
# shellcheck disable=SC2016
refuses "which a server's refusal names" 1 'files and shared memory are limited to 4096: .*LimitFSIZE=infinity' \
	bash -c 'ulimit -f 4; exec "$0" "$@"' "$GRAPHWIRE" "${little[@]}"

# --- A server. ---
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >good.key
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >wrong.key
chmod 600 good.key wrong.key
holds "a graph" "$GRAPHWIRE" generate rmat --scale 12 --features 32 --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 1 --method random --out parts

serve() { # serve ARGUMENT…: $address, $process
	: >log # of the server before
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 "$@" >log 2>&1 </dev/null &
	process=$!
	started+=("$process")
	within 100 grep -q '^serving part' log || not_ok "a server: $(tail -n 1 log)"
	address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
}
stop() {
	kill -TERM "$process"
	wait "$process"
}

quick=(--measure 60)
serve
finds "a server over TCP and mapped memory, with its key" 0 '
	all(f(f"{a} {way}")["status"] == "ok" for way in ("tcp", "shm"))
	all(0 < f(f"{a} {way}")["p50_us"] <= f(f"{a} {way}")["p99_us"] for way in ("tcp", "shm"))
	all(f(f"{a} {way}")["row_bytes"] == 100 for way in ("tcp", "shm"))
	abs(f(a + " tcp")["bytes_per_second"] - 100 * f(a + " tcp")["rows_per_second"]) < 1e-3 * f(a + " tcp")["bytes_per_second"]
	"compared with tcp, the same" in f(a + " shm")["value"]
	f(a + " shm ranges")["range_cost_constant"] == 64
	f(a)["value"] == "clients here read over shm"
	f(a + " verbs")["status"] in ("note", "warning", "ok")' \
	--server "$address" --row 100 "${quick[@]}"
stop
finds "a server that has ended" 1 '
	"refused" in f(a + " tcp")["value"] and "not tried" in f(a + " shm")["value"]
	f(a)["status"] == "problem" and "no process listens on its port" in f(a)["value"]
	"ss -ltn" in f(a)["fix"] and "graphwire serve" in f(a)["fix"]' --server "$address" "${quick[@]}"

serve --key-file good.key --transport tcp
mkdir -m 700 bare
XDG_RUNTIME_DIR=$work/bare finds "a server with a key, over TCP alone" 0 '
	f(a + " tcp")["status"] == "ok" and f(a + " shm")["status"] == "note"
	f(a)["value"] == "clients here read over tcp"' --server "$address" --key-file good.key "${quick[@]}"
if [ -e bare/graphwire ]; then
	not_ok "the doctor made a runtime folder"
else
	ok "the doctor makes no runtime folder"
fi
finds "a wrong key" 1 '
	"key" in f(a + " tcp")["value"] and "--key-file" in f(a + " tcp")["fix"]
	f(a)["status"] == "problem" and "key" in f(a)["value"] and "sha256sum" in f(a)["fix"]' \
	--server "$address" --key-file wrong.key "${quick[@]}"
finds "no key" 1 '"key" in f(a + " tcp")["value"]' --server "$address" "${quick[@]}"
finds "a requested transport that is missing" 1 'f(a + " shm")["status"] == "problem"' \
	--server "$address" --key-file good.key --transport shm "${quick[@]}"
finds "a requested transport that works" 0 'f(a + " tcp")["status"] == "ok"' \
	--server "tcp:$address" --server "$address" --key-file good.key --transport tcp "${quick[@]}"
suspend "$process"
finds "a server that is stopped, in time" 1 '
	f(a)["status"] == "problem" and "not reached" in f(a + " tcp")["value"]
	"answers nothing" in f(a)["value"] and "kill -CONT" in f(a)["fix"]' \
	--server "$address" --key-file good.key --timeout 500
kill -CONT "$process"
stop

address=nobody.invalid:30050
finds "no such name" 1 '
	"nobody.invalid" in f(a + " tcp")["value"]
	"name is not known" in f(a)["value"] and f(a)["fix"].startswith("getent hosts nobody.invalid; ")' \
	--server "$address" --timeout 5000

# Another program on the port, which answers, or sends first.
other_program() { # other_program GREETING ANSWER: $address
	rm -f other_program.at
	python3 - "$1" "$2" <<-'PYTHON' &
		import socket, sys
		listener = socket.create_server(("127.0.0.1", 0))
		with open("other_program.part", "w") as told:
		    print("127.0.0.1:%d" % listener.getsockname()[1], file=told)
		import os; os.rename("other_program.part", "other_program.at")
		kept = []
		while True:
		    client, _ = listener.accept()
		    client.sendall(sys.argv[1].encode())
		    # Like a web server: bytes that are not a request get no answer while more may come.
		    if sys.argv[2] and client.recv(64).startswith(b"HEAD / HTTP/1.0"):
		        client.sendall(sys.argv[2].encode())
		        client.close()
		    kept.append(client)
	PYTHON
	started+=($!)
	within 100 test -s other_program.at
	address=$(cat other_program.at)
}
other_program "" "HTTP/1.0 501 Unsupported method"
finds "a web server on the port" 1 '
	"another program has the port, an HTTP server (\"HTTP/1.0 501" in f(a)["value"]
	"ss -ltnp" in f(a)["fix"] and "--listen" in f(a)["fix"]' --server "$address" --insecure --timeout 2000
other_program "SSH-2.0-OpenSSH_9.2" ""
finds "an SSH server on the port" 1 '"an SSH server (\"SSH-2.0-OpenSSH_9.2\")" in f(a)["value"]' \
	--server "$address" --insecure --timeout 2000

# at_the_end_of KIND WHAT STATUS "PYTHON": the findings for a server at the end of such a path (the file way).
at_the_end_of() {
	local program=$GRAPHWIRE kind=$1
	shift
	printf '#!/bin/sh\nexec unshare -n -m sh "%s/test/integration/way" %s "%s" "%s" "$@"\n' "$top" "$kind" "$program" \
		"$program" >on_way
	chmod +x on_way
	address=10.93.0.2:30050 GRAPHWIRE=./on_way
	finds "$@" --server "$address" --key-file good.key "${quick[@]}"
	GRAPHWIRE=$program
}
way_is_there() { unshare -n -m sh "$top/test/integration/way" "$1" "$GRAPHWIRE" true; }

# A distant server works for clients, so it is not a problem. Through a relay, and through the network itself.
far='f(a + " tcp")["status"] == "note" and f(a + " tcp")["p50_us"] >= 300000 and "round trip" in f(a + " tcp")["costs"]
	f(a)["status"] == "ok" and f(a)["value"] == "clients here read over tcp"'
serve --key-file good.key --transport tcp
mkfifo far.in
python3 "$top/test/integration/far.py" "$address" 150 <far.in >far.at &
started+=($!)
exec 7>far.in
within 100 test -s far.at
address=$(cat far.at)
finds "a distant server" 0 "$far" --server "$address" --key-file good.key "${quick[@]}"
exec 7>&-
stop
if way_is_there far 2>/dev/null; then
	at_the_end_of far "a server at the end of a way that takes 300 ms" 0 "$far"
else
	echo "# no netem in network namespaces: a server that is far away is tried by a relay alone"
fi
if way_is_there narrow 2>/dev/null; then
	at_the_end_of narrow "a server at the end of a way that drops packets above 1500 bytes" 1 '
	"reads fail" in f(a + " tcp")["value"] and f(a)["status"] == "problem"
	"short answers arrive, long ones do not" in f(a)["value"]
	"tracepath 10.93.0.2" in f(a)["fix"] and "mtu 1400" in f(a)["fix"]' --timeout 1000
	at_the_end_of cut "the same way with the remedy" 0 'f(a)["status"] == "ok"'
else
	echo "# no bridge between network namespaces: a way that drops large packets is not tried"
fi

# Routes that fail, in a separate network: no route, a route that rejects packets, and one without an answer.
cat >ways.sh <<'WAYS'
ip link set lo up && ip link add here type veth peer name there && ip link set there up || exit 77
ip addr add 10.91.0.1/24 dev here && ip link set here up && ip route add prohibit 10.92.0.0/16 &&
	ip neigh add 10.91.0.9 lladdr 02:00:00:00:00:99 dev here || exit 77
exec "$@"
WAYS
if unshare -n sh ways.sh true 2>/dev/null; then
	printf '#!/bin/sh\nexec unshare -n sh ways.sh "%s" "$@"\n' "$GRAPHWIRE" >in_ways
	chmod +x in_ways
	outside=$GRAPHWIRE
	leads() { # leads WHAT ADDRESS "PYTHON"
		address=$2
		GRAPHWIRE=./in_ways
		finds "$1" 1 "$3" --server "$2" --key-file good.key --timeout 500
		GRAPHWIRE=$outside
	}
	leads "no route" 10.99.0.1:30050 '"no route leads to its host" in f(a)["value"] and "ip route get 10.99.0.1" in f(a)["fix"]'
	leads "a route that forbids" 10.92.0.1:30050 '"forbids connections" in f(a)["value"] and "nft list" in f(a)["fix"]'
	leads "packets that vanish" 10.91.0.9:30050 '
		"firewall" in f(a)["value"] and "TCP port 30050" in f(a)["fix"] and "ping -c 3 10.91.0.9" in f(a)["fix"]'
	leads "no server there" 10.91.0.1:30050 '"no process listens" in f(a)["value"] and "graphwire serve" in f(a)["fix"]'
else
	echo "# no network namespaces: ways that lead nowhere are not tried"
fi

refuses "an unknown option" 2 'unrecognized' "$GRAPHWIRE" doctor --nonsense
refuses "a server without its option" 2 '127.0.0.1:1.*--server' "$GRAPHWIRE" doctor 127.0.0.1:1
refuses "a name of this host" 2 'HOST:PORT' "$GRAPHWIRE" doctor --server shm:abc
refuses "an invalid port" 2 'port' "$GRAPHWIRE" doctor --server host:0
refuses "an invalid transport" 2 'transport' "$GRAPHWIRE" doctor --server host:1 --transport smoke
refuses "a key without a server" 2 'key-file.*server' "$GRAPHWIRE" doctor --key-file good.key
refuses "a row of zero bytes" 2 'row' "$GRAPHWIRE" doctor --server host:1 --row 0
refuses "a key file that does not exist" 1 'absent.key' "$GRAPHWIRE" doctor --server 127.0.0.1:1 --key-file absent.key
many=()
for port in $(seq 1 257); do many+=(--server "127.0.0.1:$port"); done
refuses "too many servers" 2 '256' "$GRAPHWIRE" doctor "${many[@]}"
