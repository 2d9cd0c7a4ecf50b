#!/usr/bin/env bash
# A server whose output nobody reads, or whose descriptors 0 to 2 are closed: it serves, and ends when it is told to.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"
folder=$XDG_RUNTIME_DIR/graphwire

holds "a graph" "$GRAPHWIRE" generate rmat --scale 8 --seed 5 --features 8 --out graph --quiet

# --- Nobody reads its lines: the pipe is full from the start. It serves, drops lines, and ends. ---
# shellcheck disable=SC2016
fill='import os, sys
os.set_blocking(1, False)
try:
    while True: os.write(1, b"." * 4096)
except BlockingIOError: os.set_blocking(1, True)'
mkfifo full
exec 7<>full
python3 -c "$fill" >&7
port_of_key() { find "$folder" -name 'key-*' 2>/dev/null | sed 's/.*key-//' | grep .; }
answers() { timeout 20 "$GRAPHWIRE" stat --json "127.0.0.1:$(port_of_key)"; }
silent_end() { # silent_end WHAT: the server $silent answers, and ends with 0 after SIGTERM
	local status=none
	within 60 answers || not_ok "$1 does not answer"
	kill -TERM "$silent"
	within 60 gone "$silent" && wait "$silent" && status=0
	if [ $status = 0 ]; then ok "$1 answers and ends"; else not_ok "$1 does not end"; fi
}
for form in text json; do
	: >ready
	GRAPHWIRE_LOG=debug "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 --log-format $form >ready 2>&7 </dev/null 7>&- &
	silent=$!
	started+=("$silent")
	within 60 grep -q '^serving part' ready || not_ok "a server whose stderr is full, as $form, does not serve"
	silent_end "a server whose stderr is full, as $form,"
done
GRAPHWIRE_LOG=debug "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 >&7 2>&1 </dev/null 7>&- &
silent=$!
started+=("$silent")
silent_end "a server whose output is full"

# A reader that comes late gets whole lines, in the log's form, with the number of those that were lost.
GRAPHWIRE_LOG=debug "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0 --log-format json --drain 60000 >ready 2>&7 </dev/null 7>&- &
silent=$!
started+=("$silent")
within 60 answers || not_ok "a server with a late reader does not answer"
kill -TERM "$silent"
timeout 60 sed -u '/draining/q' <full >late.log
exec 7>&-
wait "$silent"
holds "a reader that comes late gets whole lines" python3 -c "
import json
lines = [json.loads(line) for line in open('late.log').read().lstrip('.').splitlines()]
assert lines and all(set(line) == {'time', 'level', 'message'} for line in lines), lines
assert [line['time'] for line in lines] == sorted(line['time'] for line in lines)"

# --- Closed descriptors: their numbers stay in use, so that no line ends in a socket. ---
for closed in '2>&-' '</dev/null <&-' '>&- 2>&-' '<&- >&- 2>&-'; do
	(eval "exec $closed" && GRAPHWIRE_LOG=debug exec "$GRAPHWIRE" serve --part-config graph --part 0 --listen 127.0.0.1:0) \
		>ready 2>closed.log </dev/null &
	silent=$!
	started+=("$silent")
	within 60 answers || not_ok "a server with $closed does not answer: $(cat closed.log)"
	others=$(for fd in 0 1 2; do readlink "/proc/$silent/fd/$fd"; done | grep -vE '^(/dev/null|.*/(ready|closed\.log))$')
	if [ -z "$others" ]; then ok "no descriptor of a server takes a closed number ($closed)"; else not_ok "with $closed: $others"; fi
	silent_end "a server with $closed"
done
# shellcheck disable=SC2016
refuses "a command whose standard output is closed" 1 'standard output: Bad file descriptor' \
	bash -c 'exec "$0" inspect graph >&-' "$GRAPHWIRE"
