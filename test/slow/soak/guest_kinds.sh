#!/usr/bin/env bash
# The kinds of draws over Soft-RoCE in a guest. `./check` runs the same program over a made-up device.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
deploy/packages.sh guest && build dev test_client_kinds || exit 1
test/slow/guest/run -n kinds -t 1500 -- env GRAPHWIRE_TEST_BED=verbs CMOCKA_MESSAGE_OUTPUT=TAP CI= \
	"$PWD/test/slow/guest/each" -t 1200 "$PWD/build/dev/test/test_client_kinds" |
	sed -nE 's/^(ok|not ok) [0-9]+ - /\1 - kinds in a guest: /p'
exit "${PIPESTATUS[0]}"
