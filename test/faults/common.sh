# What both hosts of the fault scenarios know: to be sourced, in a guest of test/guest/pair. Host a is 10.0.3.1 and serves
# part 0, host b 10.0.3.2 and serves part 1; b trains.
# shellcheck shell=bash disable=SC2034 # those who source it use them
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=$top/build/dev
graphs=$top/build/guest/faults-graph # test/check/verbs.sh makes it: the guests see the checkout, and only read it
box=/tmp/shared
server=''
case $GRAPHWIRE_GUEST in
*-a) own_ip=10.0.3.1 own_part=0 ;;
*) own_ip=10.0.3.2 own_part=1 ;;
esac
servers=10.0.3.1:7000,10.0.3.2:7000
# Whatever happens, a trainer ends within so many seconds, and a step of a scenario is given up after so many.
trainer_limit=400 step_limit=200

# A wait without a process: those are dear in an emulated guest.
mkfifo "/tmp/silence.$$"
exec {silence}<>"/tmp/silence.$$"
pause() { read -rt "$1" -u "$silence" || :; }

# within SECONDS COMMAND…: the command succeeds sooner or later; it is tried every 50 ms.
within() {
	local until=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $until ] || return 1
		pause 0.05
	done
}

# begins FILE TEXT: its first line begins so.
begins() {
	local line=''
	read -r line <"$1"
	[[ $line == "$2"* ]]
}

# serve PROGRAM…: starts this host's server, on its port; its process is in $server.
serve() {
	(umask 077 && echo 'a key for two guests and nobody else' >/tmp/key)
	: >/tmp/server.log # no ready line of the one before
	"$@" --part-config "$graphs/parts" --part "$own_part" --listen "$own_ip:7000" --threads 1 --key-file /tmp/key \
		</dev/null >/tmp/server.log 2>&1 &
	server=$!
	within $step_limit begins /tmp/server.log 'serving part' && return
	echo "the server of part $own_part does not come up: $(tail -n 1 /tmp/server.log)"
	return 1
}
serve_usual() { serve "$programs/graphwire" serve; }

# ends SIGNAL: this host's server, without the shell's line about it.
ends() {
	[ -n "$server" ] || return 0
	kill "-$1" "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=''
}

# The processor time of this host's server until now, in ticks.
server_ticks() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'; }

# stop_server: this host's, and all of its threads have stopped.
is_stopped() {
	local state
	for state in /proc/"$server"/task/*/stat; do
		read -r state <"$state"
		[[ $state == *') T '* ]] || return 1
	done
}
stop_server() { kill -STOP "$server" && within $step_limit is_stopped; }

# netem ARGUMENT…: what tc-netem(8) does to all that this host sends; none: nothing any more.
netem() {
	tc qdisc del dev eth0 root 2>/dev/null
	[ $# -eq 0 ] || tc qdisc add dev eth0 root netem "$@"
}

# mute_rdma: what this host sends by RDMA is lost, and nothing else, as behind a firewall that knows TCP alone.
mute_rdma() {
	tc qdisc add dev eth0 root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
		tc qdisc add dev eth0 parent 1:3 handle 30: netem loss 100% &&
		tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff \
			flowid 1:3
}

device_away() { timeout $((step_limit - 5)) rdma link delete rxe0; }
device_back() { rdma link add rxe0 type rxe netdev eth0; }
