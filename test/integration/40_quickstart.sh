#!/usr/bin/env bash
# ./quickstart as a new user runs it: from start to end, a second time, and interrupted. No process remains. The step python
# tests the training.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
dir=$work/graph
export XDG_RUNTIME_DIR=$work/runtime # keys and locks of these servers only
mkdir -m 700 "$XDG_RUNTIME_DIR"

servers_left() { pgrep -f "graphwire serve --part-config $dir/" >/dev/null; }
none_left() { if servers_left; then not_ok "$1: servers are left"; else ok "$1: no server is left"; fi; }

refuses "quickstart: no epochs" 2 'number' "$top/quickstart" --epochs 0
refuses "quickstart: an unknown option" 2 'nonsense' "$top/quickstart" --nonsense
holds "quickstart --help" "$top/quickstart" --help

holds "quickstart with a made graph" "$top/quickstart" --no-train --rmat --dir "$dir"
if grep -q 'the same bytes as the standalone client' "$work/out"; then
	ok "quickstart compares its epoch with the standalone client"
else
	not_ok "quickstart does not say that it compared its epoch"
fi
none_left "the first run"

holds "quickstart again" "$top/quickstart" --no-train --rmat --dir "$dir"
if [ "$(grep -c "found in $dir" "$work/out")" -eq 2 ]; then
	ok "the second run finds graph and parts"
else
	not_ok "the second run makes graph or parts again"
fi
none_left "the second run"

# Interrupted once it has started a server, which is stopped so that it cannot end earlier. Without job control a background
# process would ignore SIGINT. If quickstart runs to its end, the loop tries again: bash 5.2 loses about one signal in
# fifty, when it reaps a child or reads a command substitution.
status=0
for _ in $(seq 20); do
	set -m
	"$top/quickstart" --no-train --rmat --dir "$dir" >"$work/out" 2>&1 &
	set +m
	interrupted=$!
	started+=("$interrupted")
	until held=$(pgrep -f "graphwire serve --part-config $dir/") || gone "$interrupted"; do :; done
	# shellcheck disable=SC2086 # one or two
	kill -STOP $held
	kill -INT "$interrupted"
	# shellcheck disable=SC2086
	kill -CONT $held
	within 100 gone "$interrupted" || break
	wait "$interrupted"
	status=$?
	[ $status -eq 0 ] || break
done
if gone "$interrupted"; then ok "an interrupt ends it"; else not_ok "an interrupt does not end it"; fi
if [ "$status" -eq 130 ]; then ok "its status says so"; else not_ok "its status is $status, not 130"; fi
none_left "the interrupted run"

# The machine's own packages, if it has lists of them.
if command -v apt-cache >/dev/null && [ "$(apt-cache dumpavail 2>/dev/null | grep -c '^Package:')" -gt 5000 ]; then
	holds "quickstart with this machine's packages" "$top/quickstart" --no-train --dir "$dir"
	none_left "the run with packages"
fi
