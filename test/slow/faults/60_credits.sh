#!/usr/bin/env bash
# More requests than a slow server gives credits for: the server is stopped again and again, and answers all of them.
# shellcheck disable=SC2016 # host a expands $server
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --transport verbs --neighbours requests --depth 64 --digests "$graphs/digests-small" --batch-size 2
on_a 'for round in 1 2 3 4 5; do stop_server; pause 0.3; kill -CONT $server; pause 0.1; done'
more 50
trained "more requests than credits, to a server that is slow, are all answered"
