#!/usr/bin/env bash
# Host a: does what host b asks for, one thing after the other, in one shell, so that $server is known to the next.
#
#   b writes box/N.ask ─▶ evaluated here ─▶ its output in box/N.said, then its status in box/N.did ─▶ N + 1
#
# The folder is shared beside the link, so that the hosts understand each other while the link is down. Ends when it is
# asked to "exit", and with the guest.
. "$(dirname "$0")/common.sh"
for ((number = 0; ; number++)); do
	until [ -e "$box/$number.ask" ]; do sleep 0.02; done
	eval "$(cat "$box/$number.ask")" >"$box/$number.said" 2>&1 </dev/null
	echo $? >"$box/doing"
	mv "$box/doing" "$box/$number.did"
done
