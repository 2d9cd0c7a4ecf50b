#!/usr/bin/env bash
# A server under a service manager: its messages to the socket of NOTIFY_SOCKET, and their times; and it serves even if
# no process listens there.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
holds "a graph" "$GRAPHWIRE" generate rmat --scale 8 --name told --out graph
holds "its part" "$GRAPHWIRE" partition graph --num-parts 1 --method random --out parts

# A manager: appends every message to the file `told`, one line per field, until it is stopped. Both kinds of socket: a
# path, and a name in the abstract namespace.
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

# serves WHAT SOCKET: starts a server, and waits for its ready line; its process is in $server.
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
	is_told "with the part and the address" "^STATUS=serving part 0 of 1 of told at $address\$"
	ends "it ends on SIGTERM"
	is_told "and the manager heard that it would" '^STOPPING=1$'
	holds "in this order" test "$(grep -E '^(READY|STOPPING)=|^STATUS=loading' told | cut -c 1-12 | xargs)" = \
		"STATUS=loadi READY=1 STOPPING=1"
	kill "$manager"
	wait "$manager" 2>/dev/null
done

for socket in "$work/nobody" "relative" "@$(printf '%0200d' 0)"; do
	serves "it serves without a manager that listens (${socket:0:8})" "$socket"
	holds "and says so in the log" grep -q 'NOTIFY_SOCKET=.*: the service manager does not learn' log
	ends "it ends as usual"
done

# stat --ready prints nothing, before the server listens and after.
refuses_ready() { # refuses_ready WHAT ADDRESS
	"$GRAPHWIRE" stat --ready --timeout 1000 "$2" >out 2>err
	holds "$1" test $? -eq 1 -a ! -s out -a ! -s err
}
refuses_ready "no process listens: not ready" 127.0.0.1:1
serves "it serves" "$work/nobody"
address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
holds "it is ready" "$GRAPHWIRE" stat --ready "$address"
"$GRAPHWIRE" stat --ready "$address" >out 2>&1
holds "and nothing is printed" test ! -s out
ends "it ends"
refuses_ready "and is not ready any more" "$address"

# Process 1 of a container gets only signals with a handler. A client that waits for a server, and a server.
if unshare --pid --fork true 2>/dev/null; then
	first() { # first NAME COMMAND…: runs it as process 1; its process is in $first when NAME.log has a line
		local name=$1
		shift
		: >"$name.log"
		unshare --pid --fork --kill-child --mount-proc "$@" >"$name.log" 2>&1 </dev/null &
		started+=($!)
		unshared=$!
		within 100 test -s "$name.log" || echo "# $name says nothing"
		first=$(tr -d ' ' <"/proc/$unshared/task/$unshared/children")
	}
	for signal in INT TERM HUP; do
		first waits "$GRAPHWIRE" epoch --part-config parts --servers 127.0.0.1:1 --insecure
		kill -$signal "$first"
		if within 50 gone "$first"; then ok "SIG$signal ends a command that waits, as process 1"; else
			not_ok "SIG$signal does not end a command that waits, as process 1: $(tail -n 1 waits.log)"
		fi
	done
	first serves "$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0
	holds "it serves as process 1" grep -q '^serving part' serves.log
	kill "$first"
	wait "$unshared"
	holds "and ends on SIGTERM with status 0" test $? -eq 0
else
	echo "# no PID namespace: signals to process 1 are not tried"
fi

# A host that resolves its own name to a loopback address (Debian's 127.0.1.1): the ready line has the number, and a line
# of the log has the remedy.
head -c 32 /dev/urandom >name.key && chmod 600 name.key
printf '127.0.0.1 localhost\n127.0.1.1 trainer-7\n' >hosts
if unshare -n -m sh -c "mount --bind '$work/hosts' /etc/hosts && ip link set lo up" 2>/dev/null; then
	named() { # named NAME: starts a server at this name, and waits for its ready line
		: >named.log
		unshare -n -m sh -c "mount --bind '$work/hosts' /etc/hosts && ip link set lo up && exec '$GRAPHWIRE' serve --part-config \
			parts --part 0 --listen $1:30050 --key-file name.key" >named.log 2>&1 </dev/null &
		named=$!
		started+=("$named")
		within 100 grep -q '^serving part' named.log || echo "# $(tail -n 1 named.log)"
	}
	named trainer-7
	holds "a name of loopback: the ready line has its numbers" grep -q '^serving part .* at 127.0.1.1:30050: ' named.log
	holds "and a warning names /etc/hosts" grep -q 'warn trainer-7 is 127.0.1.1 on this host: .*/etc/hosts' named.log
	kill "$named"
	wait "$named"
	named localhost
	holds "localhost is meant so" test "$(grep -c ' warn ' named.log)" -eq 0
	kill "$named"
	wait "$named"
else
	echo "# no namespaces: a host's own name is not tried"
fi

# A client whose session has another runtime folder finds no key, and says where it looked. A full folder is named.
serves "it serves with its own key" "$work/nobody"
address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
mkdir -m 700 other
refuses "another runtime folder: the client says where it looked for the key" 1 \
	"other/graphwire/key-${address##*:} does not exist: .*XDG_RUNTIME_DIR" \
	env XDG_RUNTIME_DIR="$work/other" "$GRAPHWIRE" stat "$address"
ends "it ends"
mkdir full
if mount -t tmpfs -o size=4k,mode=700 none full 2>/dev/null; then
	mkdir -m 700 full/graphwire
	head -c 4096 /dev/zero >full/taken
	refuses "a full runtime folder is named" 1 "full/graphwire/(key|part)-.*No space left" \
		env XDG_RUNTIME_DIR="$work/full" "$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0
	umount full
else
	echo "# no mounts: a full runtime folder is not tried"
fi

# The runtime folder is removed while a server serves, as at the end of a login session: the server creates it again, or
# logs once that it cannot. An option gives a folder that no session removes; clients use the variable.
serves "it serves" "$work/nobody"
address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
rm -rf "$XDG_RUNTIME_DIR/graphwire"
finds() { "$GRAPHWIRE" epoch --servers "$address" --transport shm; }
if within 50 finds; then ok "its runtime folder was removed: a new client maps its memory again"; else
	not_ok "its runtime folder was removed, and no client finds it: $(tail -n 1 log)"
fi
refuses "and a second server of the part is refused" 1 "serves part 0 of told already: pid $server " \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0
holds "without a warning" test "$(grep -c ' warn ' log)" -eq "$(grep -c NOTIFY_SOCKET log)"
rm -rf "$XDG_RUNTIME_DIR"
within 50 grep -q 'warn .*runtime/graphwire: .*--runtime-dir' log || echo "# $(tail -n 1 log)"
holds "a folder that it cannot create again is logged, with the remedy" grep -q 'warn .*runtime/graphwire: .*--runtime-dir' log
mkdir -m 700 "$XDG_RUNTIME_DIR"
if within 50 finds; then ok "and it is found when the folder can be made again"; else
	not_ok "the folder can be made again, and no client finds the server: $(tail -n 1 log)"
fi
holds "it was logged once" test "$(grep -c 'warn .*--runtime-dir' log)" -eq 1
ends "it ends"
mkdir own
: >log
"$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --runtime-dir own >log 2>&1 </dev/null &
server=$!
started+=("$server")
within 100 grep -q '^serving part' log || echo "# $(tail -n 1 log)"
address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
holds "serve --runtime-dir: clients find it by the variable" env XDG_RUNTIME_DIR="$work/own" "$GRAPHWIRE" epoch --servers "$address" \
	--transport shm
refuses "and not without it" 1 "runtime/graphwire/key-${address##*:} does not exist" "$GRAPHWIRE" stat "$address"
ends "it ends"
refuses "an invalid runtime folder" 2 "absent: mkdir -m 700 it" "$GRAPHWIRE" serve --part-config parts --part 0 --runtime-dir absent

# Key files of service managers and orchestrators: they belong to root, and an access control list (systemd's credentials:
# mode 0440 with a user's entry) or a group (a Kubernetes Secret with fsGroup) lets the server's user read them. The server
# has the unit's restrictions: another user, no capabilities, no new privileges, a separate runtime folder.
if [ "$(id -u)" -ne 0 ]; then
	echo "# not root: keys that root gives to another user are not tried"
	exit
fi
user=61234
chmod 755 "$work"
mkdir -m 700 unit && chown $user:$user unit
confined=(env -i "PATH=$PATH" "XDG_RUNTIME_DIR=$work/unit" setpriv --reuid "$user" --regid "$user" --groups "$user"
	--bounding-set -all --inh-caps -all --no-new-privs --)
head -c 32 /dev/urandom >key

# key WHAT OWNER MODE [ACL]: creates the server's key file.
key() {
	setfacl -b key && chown "$1" key && chmod "$2" key && { [ -z "${3:-}" ] || setfacl -m "$3" key; }
}

takes() { # takes WHAT: a server with this key serves, and a client with it reads
	: >log
	"${confined[@]}" "$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --key-file key >log 2>&1 </dev/null &
	server=$!
	started+=("$server")
	if ! within 100 grep -q '^serving part' log; then
		not_ok "$1: $(tail -n 1 log)"
		return
	fi
	address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' log)
	holds "$1" "${confined[@]}" "$GRAPHWIRE" stat "$address" --key-file key
	kill "$server"
	wait "$server"
}

refuses_key() { # refuses_key WHAT PATTERN
	refuses "$1" 1 "$2" "${confined[@]}" "$GRAPHWIRE" serve --part-config parts --part 0 --listen 127.0.0.1:0 --key-file key
}

if "${confined[@]}" "$GRAPHWIRE" --version >/dev/null 2>&1; then
	key root:root 400 "u:$user:r"
	takes "a unit's credential: root's file with a list that names the user"
	key root:$user 440
	takes "a pod's Secret: root's file that a group may read"
	key $user:$user 400
	takes "a file of the user's own"
	key root:root 444
	refuses_key "root's file that every user may read" 'key: every user has access'
	key root:$user 460
	refuses_key "a file that its group may write" 'key: its group may write'
	key $user:$user 440
	refuses_key "a user's own file that a group may read" 'key: its group may read it, and root does not own it'
	key nobody:$user 440
	refuses_key "a file of a third user" 'key: user [0-9]* owns it, neither root nor user'
else
	echo "# another user cannot run $GRAPHWIRE: keys that root gives to another user are not tried"
fi
