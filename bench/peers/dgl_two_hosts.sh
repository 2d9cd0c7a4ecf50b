#!/usr/bin/env bash
# dgl_two_hosts.sh DIR [BATCHES]: runs DGL's distributed service on the two hosts of two_hosts.sh (which must be up),
# with a server on each host, one trainer on the first, and a separate /dev/shm on each. Takes about a minute. Needs
# root, and the files that setup.sh made in DIR. Prints dgl_trainer.py's two JSON objects; the servers' output stays in
# DIR/dgl-logs. DGL_TRAINER: another script to run instead of dgl_trainer.py, with its arguments. DGL_SECONDS: a time
# limit (300).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
logs=$dir/dgl-logs
mkdir -p "$logs" && cd "$logs" || exit 1
printf '10.77.0.1 30050\n10.77.0.2 30050\n' >ip_config.txt

# The variables that DGL's launcher would set.
export DGL_DIST_MODE=distributed DGL_CONF_PATH=$dir/dgl2/r20.json DGL_IP_CONFIG=ip_config.txt DGL_GRAPH_FORMAT=csc
export DGL_NUM_SERVER=1 DGL_NUM_CLIENT=1 DGL_NUM_SAMPLER=0 DGL_KEEP_ALIVE=0 DGLBACKEND=pytorch OMP_NUM_THREADS=1
export BATCHES=${2:-40}
trainer=${DGL_TRAINER:-"'$here/dgl_trainer.py'"}
process="exec timeout ${DGL_SECONDS:-300} '$dir/dgl/bin/python' $trainer"

# on_host N COMMAND: runs a command in the namespace of host N, with a separate /dev/shm.
on_host() {
	ip netns exec "gwh$1" unshare -m bash -c "mount -t tmpfs -o size=8G tmpfs /dev/shm || exit 1; $2"
}

# Background jobs of a script ignore Ctrl-C. So they are ended by process id, here and on the first host.
end_jobs() {
	local pid
	for pid in $(jobs -p); do
		kill -TERM "$pid" 2>/dev/null
	done
}
trap end_jobs EXIT
trap 'exit 130' INT TERM HUP

on_host 1 "DGL_ROLE=server DGL_SERVER_ID=1 $process" >server1.log 2>&1 &
# The trainer shares memory with the server of its own host, so both start in one namespace.
on_host 0 "(DGL_ROLE=server DGL_SERVER_ID=0 $process) >server0.log 2>&1 & server=\$!
	trap 'kill -TERM \$server 2>/dev/null' INT TERM HUP
	sleep 1
	(DGL_ROLE=client $process) 2>trainer.log | grep --line-buffered '^{'; wait"
wait
