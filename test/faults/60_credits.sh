#!/usr/bin/env bash
# More requests than the server gives credits for, while it is slow: it is stopped again and again. All are answered.
# shellcheck disable=SC2016 # host a knows its server
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --transport verbs --neighbours requests --depth 64 --digests "$graphs/digests-small" --batch-size 2
on_a 'for round in 1 2 3 4 5; do stop_server; pause 0.3; kill -CONT $server; pause 0.1; done'
more 50
trained "more requests than credits, to a server that is slow, are all answered"
