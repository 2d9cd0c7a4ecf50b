#!/usr/bin/env bash
# A server under a service manager: what it tells the socket of NOTIFY_SOCKET, when, and that it serves without one that
# listens.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
holds "a graph" "$GRAPHWIRE" generate rmat --scale 8 --name told --out graph
holds "its part" "$GRAPHWIRE" partition graph --num-parts 1 --method random --out parts

# A manager: appends every message to the file `told`, a line for each of its fields, until it is ended. Both kinds of
# socket: a path, and a name in the abstract namespace.
manager() { # manager ADDRESS
	: >told
	rm -f bound
	python3 - "$1" <<-'PYTHON' &
		import socket, sys
		name = sys.argv[1]
		receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		receiver.bind("\0" + name[1:] if name[0] == "@" else name)
		open("bound", "w").close()
		while True:
		    with open("told", "a") as told:
		        print(receiver.recv(4096).decode(), file=told)
	PYTHON
	started+=($!)
	manager=$!
	within 100 test -e bound
}

# serves WHAT SOCKET: starts a server and waits until it says that it is ready; its process is in $server.
serves() {
	: >log
	NOTIFY_SOCKET=$2 "$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 >log 2>&1 </dev/null &
	server=$!
	started+=("$server")
	if within 100 grep -q '^serving part' log; then ok "$1"; else not_ok "$1: $(tail -n 1 log)"; fi
}

ends() {
	kill "$server"
	wait "$server"
	holds "$1" test $? -eq 0
}

is_told() { # is_told WHAT PATTERN
	if within 100 grep -q "$2" told; then ok "$1"; else not_ok "$1: the manager was told \"$(xargs <told)\""; fi
}

for socket in "$work/notify" "@graphwire-test-$$"; do
	manager "$socket"
	serves "it serves, with a manager at ${socket:0:1}…" "$socket"
	is_told "the manager hears that it loads" '^STATUS=loading part 0 of parts$'
	is_told "that it is ready" '^READY=1$'
	address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
	is_told "of what, and where" "^STATUS=serving part 0 of 1 of told at $address\$"
	ends "it ends on SIGTERM"
	is_told "and the manager heard that it would" '^STOPPING=1$'
	holds "in this order" test "$(grep -E '^(READY|STOPPING)=|^STATUS=loading' told | cut -c 1-12 | xargs)" = \
		"STATUS=loadi READY=1 STOPPING=1"
	kill "$manager"
	wait "$manager" 2>/dev/null
done

for socket in "$work/nobody" "relative" "@$(printf '%0200d' 0)"; do
	serves "it serves where nobody can be told (${socket:0:8})" "$socket"
	holds "and says so in the log" grep -q 'NOTIFY_SOCKET=.*: the service manager does not know' log
	ends "it ends as ever"
done
