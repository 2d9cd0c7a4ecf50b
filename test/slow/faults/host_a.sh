#!/usr/bin/env bash
# Host a: runs the commands of host b, one after the other, in one shell, so that a command knows the $server of earlier ones.
#
#   b writes N.ask into the box ─▶ evaluated here ─▶ its output in N.said, then its status in N.did ─▶ N + 1
#
# The box is a folder that both hosts see without the link, so it works while the link is down. Runs until the guest ends.
# shellcheck source=test/slow/faults/common.sh
. "$(dirname "$0")/common.sh"
for ((number = 0; ; number++)); do
	until [ -e "$box/$number.ask" ]; do pause 0.05; done
	read -r asked <"$box/$number.ask"
	eval "$asked" >"$box/$number.said" 2>&1 </dev/null
	echo $? >"$box/doing"
	mv "$box/doing" "$box/$number.did"
done
