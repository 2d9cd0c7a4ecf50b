#!/bin/bash
# tour.sh NAME PROGRAM EXAMPLE: runs the commands of the last section of docs/TUTORIAL.md on a host that has only Debian's
# essential packages. test/check/install.sh runs it in the host's root, in a network namespace of its own. EXAMPLE is
# examples/minibatch.c, compiled.
set -uo pipefail
name=$1 program=$2 example=$3
work=$(mktemp -d)
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
servers=()

# shellcheck disable=SC2317 # the trap calls it
finish() {
	[ ${#servers[@]} -eq 0 ] || kill -KILL "${servers[@]}" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT

# does WHAT PATTERN COMMAND…: the command succeeds, and what it prints has a line that matches.
does() {
	local what=$1 pattern=$2
	shift 2
	if timeout 120 "$@" >out 2>&1 </dev/null && grep -qE -- "$pattern" out; then
		echo "ok - $name: $what"
	else
		echo "not ok - $name: $what"
		echo "    $*"
		tail -n 5 out
	fi
}

# serve PART [ADDRESS]: a server at the tutorial's port; waits until it is ready.
serve() {
	: >"$1.log"
	"$program" serve --part-config parts/ --part "$1" --listen "${2:-127.0.0.1}:3005$1" --key-file job.key \
		>"$1.log" 2>&1 </dev/null &
	servers+=($!)
	for ((i = 0; i < 600; i++)); do
		grep -q '^serving part' "$1.log" && return
		sleep 0.1
	done
	echo "not ok - $name: server $1 is not ready"
	tail -n 3 "$1.log"
}

awk 'BEGIN { for (i = 0; i < 2000; i++) print i "\t" (i * 7 + 3) % 2000 "\n" i "\t" (i * 13 + 5) % 2000 }' | gzip >edges.tsv.gz
head -c 32 /dev/urandom >job.key && chmod 600 job.key
does "--version" '^graphwire [0-9]' "$program" --version
does "import" 'nodes' "$program" import --from edges.tsv.gz --out graph/
does "generate" 'nodes' "$program" generate rmat --scale 10 --features 16 --out made/
does "partition by METIS" 'by metis' "$program" partition made/ --num-parts 2 --method metis --out parts/
does "verify" 'is whole' "$program" verify parts/
does "inspect" 'rmat' "$program" inspect parts/
serve 0
serve 1
does "stat" '127.0.0.1:30051' "$program" stat 127.0.0.1:30050 127.0.0.1:30051 --key-file job.key
does "epoch, compared" 'the same bytes as the standalone client' "$program" epoch --part-config parts/ --servers 127.0.0.1:30050,127.0.0.1:30051 \
	--key-file job.key --fanouts 15,10,5 --check
does "the example, from the folder" 'mini-batches, [1-9][0-9]* sampled edges' "$example" parts/
does "doctor names the packages that RDMA needs" 'apt install libibverbs1 librdmacm1 ibverbs-providers' "$program" doctor
does "doctor reaches the servers" '127.0.0.1:30050' "$program" doctor --server 127.0.0.1:30050 --key-file job.key
if "$program" epoch --part-config parts/ --servers 127.0.0.1:30050,127.0.0.1:30051 --key-file job.key --fanouts 5 \
	--transport verbs >out 2>&1 || ! grep -q 'libibverbs.so.1: not installed' out; then
	echo "not ok - $name: RDMA that must be is refused in words"
	tail -n 3 out
else
	echo "ok - $name: RDMA that must be is refused in words"
fi

# stop: the servers end well on SIGTERM.
stop() {
	local server
	kill -TERM "${servers[@]}"
	for server in "${servers[@]}"; do
		wait "$server" || echo "not ok - $name: a server ended with $?"
	done
	servers=()
}
stop

# A host with a card, and without the libraries: said once. (There is no sysfs here.)
mkdir -p /sys/class/infiniband/card0
serve 0 10.77.7.7
does "a server without RDMA's libraries serves over TCP" '^serving part 0 .*over tcp' cat 0.log
does "and says once what its card lacks" '^1$' grep -c 'libibverbs.so.1: not installed; sudo apt install' 0.log
rmdir /sys/class/infiniband/card0
stop
