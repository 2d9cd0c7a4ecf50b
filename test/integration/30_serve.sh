#!/usr/bin/env bash
# Servers as processes: refusals, faults that they survive, and ends.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"

for seed in 1 2; do
	holds "graph $seed" "$GRAPHWIRE" generate rmat --scale 12 --seed $seed --features 16 --labels 4 --train-share 0.5 \
		--out graph$seed
	holds "its parts" "$GRAPHWIRE" partition graph$seed --num-parts 2 --method random --out parts$seed
done

# start NAME ARGUMENT…: a server in the background; its address in ${address[NAME]}, its process in ${process[NAME]}.
declare -A address process
start() {
	local name=$1
	shift
	: >"$name.log"
	"$GRAPHWIRE" serve "$@" >"$name.log" 2>&1 </dev/null &
	process[$name]=$!
	started+=($!)
	within 100 grep -q '^serving part' "$name.log"
	address[$name]=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$name.log")
	if [ -n "${address[$name]}" ]; then ok "server $name is up"; else not_ok "server $name: $(tail -n 1 "$name.log")"; fi
}

ends() { # ends NAME SIGNAL STATUS
	kill -"$2" "${process[$1]}"
	if ! within 100 gone "${process[$1]}"; then
		not_ok "server $1 continues after SIG$2"
		return
	fi
	wait "${process[$1]}"
	local status=$?
	if [ $status -eq "$3" ]; then ok "server $1 ends on SIG$2"; else not_ok "server $1 ends with $status, not $3"; fi
}

start zero --part-config parts1 --part 0 --listen 127.0.0.1:0
start one --part-config parts1 --part 1 --listen 127.0.0.1:0
both=${address[zero]},${address[one]}

# placed WHAT NAME PYTHON: the expression is true for every thread of the server. t: the thread's allowed processors;
# may: ours; nodes: those of the NUMA nodes.
placed() {
	if python3 - "${process[$2]}" "$3" <<-'CHECK' >why 2>&1; then
		import glob, os, sys
		def numbers(text):
		    ends = [part.split("-") for part in text.strip().split(",") if part]
		    return {n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)}
		may = os.sched_getaffinity(0)
		nodes = [may & numbers(open(path).read()) for path in glob.glob("/sys/devices/system/node/node*/cpulist")]
		threads = os.listdir(f"/proc/{sys.argv[1]}/task")
		for thread in threads:
		    t = os.sched_getaffinity(int(thread))
		    assert eval(sys.argv[2]), f"thread {thread} of {threads}: {t}"
	CHECK
		ok "$1"
	else
		not_ok "$1: $(tail -n 1 why)"
	fi
}
placed "threads share the processors of a node with others" zero 't == may or t in nodes'
epoch=("$GRAPHWIRE" epoch --part-config parts1 --servers "$both" --batch-size 256)

holds "an epoch over TCP equals the standalone client's" "${epoch[@]}" --transport tcp --check
holds "so does an epoch from mapped memory" "${epoch[@]}" --transport shm --check
holds "clients on this host choose mapped memory" bash -c '"$@" | grep -q "mapped memory of servers on this host"' - "${epoch[@]}"
holds "also with many threads and a deep prefetch" "${epoch[@]}" --check --threads 8 --depth 8

refuses "a second server of a part on this host" 1 "part 0.*pid ${process[zero]}" \
	"$GRAPHWIRE" serve --part-config parts1 --part 0 --listen 127.0.0.1:0
refuses "a port in use, with the process that uses it" 1 "${address[zero]}.*pid ${process[zero]}" \
	"$GRAPHWIRE" serve --part-config parts2 --part 0 --listen "${address[zero]}"
refuses "a key file together with --insecure" 2 'key-file.*insecure' \
	"$GRAPHWIRE" serve --part-config parts2 --part 0 --key-file wrong.key --insecure
refuses "an address of this process only" 2 'listen.*TCP' \
	"$GRAPHWIRE" serve --part-config parts2 --part 0 --listen memory:here
refuses "the same server twice" 1 'server 127.0.0.1:.* is given twice' \
	"$GRAPHWIRE" epoch --part-config parts1 --servers "${address[zero]},${address[zero]}"
refuses "too few servers" 1 'part 1.*no server' "$GRAPHWIRE" epoch --part-config parts1 --servers "${address[zero]}"
refuses "servers of another graph" 1 "${address[zero]}.*graph" \
	"$GRAPHWIRE" epoch --part-config parts2 --servers "$both"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >wrong.key
chmod 600 wrong.key
refuses "a wrong key" 1 "key" "$GRAPHWIRE" epoch --part-config parts1 --servers "$both" \
	--key-file wrong.key

# --- Pending clients: garbage, silence, half a frame. The server continues to serve the others. ---
garbage() { # garbage BYTES: sends noise and closes
	exec 9<>"/dev/tcp/127.0.0.1/${address[zero]##*:}" && head -c "$1" /dev/urandom >&9 2>/dev/null
	exec 9>&-
}
for bytes in 1 16 1000 1000000; do
	garbage $bytes 2>/dev/null
done
exec 8<>"/dev/tcp/127.0.0.1/${address[zero]##*:}" # a client that sends nothing
holds "the server still works after garbage" "${epoch[@]}" --check
exec 8>&-

# --- A server that ends and is started again. ---
kill -KILL "${process[one]}"
wait "${process[one]}" 2>/dev/null
refuses "a lost server is named" 1 "${address[one]}" "${epoch[@]}" --timeout 1000
start one --part-config parts1 --part 1 --listen "${address[one]}"
holds "a restarted server works" "${epoch[@]}" --check

ends zero TERM 0
ends one INT 0

start zero --part-config parts1 --part 0 --listen 127.0.0.1:0 --threads 2 --pin core
placed "threads with a processor each, if asked for" zero 't == may or len(t) == 1'
start one --part-config parts1 --part 1 --listen 127.0.0.1:0 --pin off
placed "threads that run anywhere" one 't == may'
refuses "an invalid place" 2 'pin' "$GRAPHWIRE" serve --part-config parts1 --part 0 --pin socket
ends zero TERM 0
ends one TERM 0

# --- The log as JSON: every line on stderr is one object, whatever bytes a name has. ---
cat >json_lines.py <<'E2'
import json, re, sys

lines = open(sys.argv[1], "rb").read().decode("utf-8").splitlines()  # strict: bytes that are not UTF-8 raise
for line in lines:
    one = json.loads(line, parse_constant=lambda word: sys.exit(f"{word} is not JSON"))
    assert list(one) == ["time", "level", "message"], line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["time"]), line
    assert one["level"] in ("error", "warn", "info", "debug"), line
assert len(lines) >= int(sys.argv[2]) and re.search(sys.argv[3], one["message"]), lines
E2
named=$'gr"a\\p\nh\xff'
cp -r parts1 "$named"
GRAPHWIRE_LOG=debug "$GRAPHWIRE" serve --part-config "$named" --part 0 --listen 127.0.0.1:0 --log-format json \
	>json.out 2>json.log </dev/null &
json=$!
started+=("$json")
within 100 grep -q '^serving part 0' json.out
kill "$json"
wait "$json"
holds "--log-format json: the lines of a server" python3 json_lines.py json.log 3 'signal 15: draining'
rm -r "$named"
"$GRAPHWIRE" serve --part-config "$named" --part 0 --log-format json 2>json.log
holds "and the error that ends it, with quotes, a backslash, and bytes that are not UTF-8" \
	python3 json_lines.py json.log 1 $'^graphwire serve: .*gr"a\\\\p.h\ufffd'
refuses "a log format that does not exist" 2 'log-format.*xml' "$GRAPHWIRE" serve --part-config parts1 --part 0 --log-format xml
