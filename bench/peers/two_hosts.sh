#!/usr/bin/env bash
# two_hosts.sh up|down: makes or removes two hosts on one machine: the network namespaces gwh0 (10.77.0.1) and gwh1
# (10.77.0.2), joined by a virtual cable. Needs root. The hosts share the file system. Each has its own loopback and,
# with unshare -m, its own /dev/shm.
set -euo pipefail

down() {
	local host
	for host in 0 1; do
		ip netns del gwh$host 2>/dev/null || true
	done
}

up() {
	local host
	ip netns add gwh0
	ip netns add gwh1
	ip link add gwv0 netns gwh0 type veth peer name gwv1 netns gwh1
	for host in 0 1; do
		ip -n gwh$host addr add 10.77.0.$((host + 1))/24 dev gwv$host
		ip -n gwh$host link set lo up
		ip -n gwh$host link set gwv$host up
	done
}

case ${1:-} in
up)
	trap '[ $? -eq 0 ] || down' EXIT
	up
	;;
down) down ;;
*)
	echo "usage: two_hosts.sh up|down" >&2
	exit 2
	;;
esac
