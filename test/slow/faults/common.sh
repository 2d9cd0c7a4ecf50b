# Shared by both hosts of the fault scenarios: source it in a guest of test/slow/guest/pair. Host a is 10.0.3.1 and serves part
# 0. Host b is 10.0.3.2, serves part 1, and runs the trainer.
# shellcheck shell=bash disable=SC2034 # the scripts that source this file use the variables
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
programs=$top/build/dev
graphs=$top/build/guest/faults-graph # test/check/verbs.sh creates it, because the guests can only read the checkout
box=/tmp/shared
server=''
case $GRAPHWIRE_GUEST in
*-a) own_ip=10.0.3.1 own_part=0 ;;
*) own_ip=10.0.3.2 own_part=1 ;;
esac
servers=10.0.3.1:7000,10.0.3.2:7000
# Limits in seconds: of a trainer, and of a step of a scenario.
trainer_limit=400 step_limit=200

# Waits without a process: processes are expensive in an emulated guest.
mkfifo "/tmp/silence.$$"
exec {silence}<>"/tmp/silence.$$"
pause() { read -rt "$1" -u "$silence" || :; }

# within SECONDS COMMAND…: tries the command every 50 ms until it succeeds; fails after SECONDS.
within() {
	local until=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $until ] || return 1
		pause 0.05
	done
}

# begins FILE TEXT: whether the file's first line begins with TEXT.
begins() {
	local line=''
	read -r line <"$1"
	[[ $line == "$2"* ]]
}

# serve PROGRAM…: starts this host's server on its port, and sets $server to its process id.
serve() {
	(umask 077 && echo 'a key that only two guests have' >/tmp/key)
	: >/tmp/server.log # remove the ready line of the server before
	"$@" --part-config "$graphs/parts" --part "$own_part" --listen "$own_ip:7000" --threads 1 --key-file /tmp/key \
		</dev/null >/tmp/server.log 2>&1 &
	server=$!
	within $step_limit begins /tmp/server.log 'serving part' && return
	echo "the server of part $own_part does not start: $(tail -n 1 /tmp/server.log)"
	return 1
}
serve_usual() { serve "$programs/graphwire" serve; }

# ends SIGNAL: ends this host's server with a signal, without a line of the shell about it.
ends() {
	[ -n "$server" ] || return 0
	kill "-$1" "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=''
}

# Prints the processor time that this host's server has used, in ticks.
server_ticks() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'; }

# stop_server: stops this host's server, and waits until all of its threads have stopped.
is_stopped() {
	local state
	for state in /proc/"$server"/task/*/stat; do
		read -r state <"$state"
		[[ $state == *') T '* ]] || return 1
	done
}
stop_server() { kill -STOP "$server" && within $step_limit is_stopped; }

# netem ARGUMENT…: applies tc-netem(8) to all packets that this host sends; without an argument, removes it.
netem() {
	tc qdisc del dev eth0 root 2>/dev/null
	[ $# -eq 0 ] || tc qdisc add dev eth0 root netem "$@"
}

# mute_rdma: drops the RDMA packets that this host sends, and no others, as a firewall that only passes TCP does.
mute_rdma() {
	tc qdisc add dev eth0 root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
		tc qdisc add dev eth0 parent 1:3 handle 30: netem loss 100% &&
		tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff \
			flowid 1:3
}

device_away() { timeout $((step_limit - 5)) rdma link delete rxe0; }
device_back() { rdma link add rxe0 type rxe netdev eth0; }
