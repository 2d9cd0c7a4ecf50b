#!/usr/bin/env bash
# A server in a container or a pod (docs/DEPLOY.md): process 1, a user without a name and without capabilities, a read-only
# root file system, a key from a Secret, few processes, little locked memory, no io_uring. A client in another container of
# the pod maps its memory, the probe reports when it is ready, and SIGTERM ends it.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
user=61235
holds "a graph" "$GRAPHWIRE" generate rmat --scale 10 --features 16 --out graph --quiet
chmod 755 "$work"
mkdir volume empty && chown $user:$user volume && chmod 700 volume # an emptyDir that the containers of a pod share
head -c 32 /dev/urandom >job.key && chgrp $user job.key && chmod 440 job.key

# A container may write only to the volume, and may lock 64 KiB of memory.
cat >container <<'CONTAINER'
#!/bin/sh
# container WORK USER COMMAND…
exec unshare --mount --pid --fork --kill-child --mount-proc sh -c '
	work=$1 user=$2
	shift 2
	mount --make-rprivate / && mount --bind "$work/volume" "$work/volume" && mount -o remount,ro,bind / && ulimit -l 64 || exit 77
	exec env -i "PATH=$PATH" setpriv --reuid "$user" --regid "$user" --groups "$user" --bounding-set -all --inh-caps -all \
		--no-new-privs -- "$@"' sh "$@"
CONTAINER
chmod +x container
contained=(./container "$work" "$user")
if [ "$(id -u)" -ne 0 ] || ! "${contained[@]}" "$GRAPHWIRE" --version >out 2>err; then
	echo "# containers are not tried: $(tail -n 1 err 2>/dev/null)"
	exit
fi
"${contained[@]}" sh -c 'touch elsewhere' 2>/dev/null
holds "the root file system is read-only there" test ! -e elsewhere

group=
if [ -d /sys/fs/cgroup/pids ]; then group=/sys/fs/cgroup/pids/gw-pod-$$; else group=/sys/fs/cgroup/gw-pod-$$; fi
if mkdir "$group" 2>/dev/null && [ -w "$group/pids.max" ]; then echo 64 >"$group/pids.max"; else group=; fi
: >log
(
	[ -z "$group" ] || echo "$BASHPID" >"$group/cgroup.procs"
	exec "${contained[@]}" "$GRAPHWIRE" serve --part-config graph --part 0 --listen 0.0.0.0:0 --key-file job.key \
		--runtime-dir "$work/volume" --threads 2
) >log 2>&1 </dev/null &
server=$!
started+=("$server")
within 100 grep -q '^serving part' log
holds "it serves as process 1 of a user without capabilities" grep -q '^serving part .*, pid 1$' log
holds "over TCP and mapped memory" grep -q 'over tcp+[a-z+]*shm' log
port=$(sed -n 's/^serving part .* at [^ ]*:\([0-9]*\): .*/\1/p' log)
first=$(tr -d ' ' <"/proc/$server/task/$server/children")
holds "the probe reports that it is ready" "${contained[@]}" "$GRAPHWIRE" stat --ready "127.0.0.1:$port" --key-file job.key
"${contained[@]}" "$GRAPHWIRE" stat --ready "127.0.0.1:$port" --key-file job.key >said 2>&1
holds "without output, despite the limits" test ! -s said
holds "another container of the pod maps its memory" "${contained[@]}" env XDG_RUNTIME_DIR="$work/volume" "$GRAPHWIRE" \
	epoch --servers "127.0.0.1:$port" --key-file job.key --transport shm --steps 3
holds "a container without the volume reads over TCP" "${contained[@]}" env XDG_RUNTIME_DIR="$work/empty" "$GRAPHWIRE" \
	epoch --servers "127.0.0.1:$port" --key-file job.key --steps 3
rm -rf volume/graphwire
mapped() { "${contained[@]}" env XDG_RUNTIME_DIR="$work/volume" "$GRAPHWIRE" epoch --servers "127.0.0.1:$port" --key-file job.key \
	--transport shm --steps 3; }
holds "also after the volume was emptied, once the server has created its files again" within 50 mapped
"${contained[@]}" "$GRAPHWIRE" doctor >doctor.txt 2>&1
holds "the doctor finds no problem there" test $? -eq 0
kill "$first"
wait "$server"
holds "SIGTERM ends it with status 0" test $? -eq 0
"${contained[@]}" "$GRAPHWIRE" stat --ready --timeout 1000 "127.0.0.1:$port" --key-file job.key
holds "and the probe reports that it is not ready" test $? -eq 1
[ -z "$group" ] || within 50 rmdir "$group"
