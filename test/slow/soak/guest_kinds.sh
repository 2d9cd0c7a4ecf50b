#!/usr/bin/env bash
# Programs over Soft-RoCE in a guest whose reads and calls are, for the transport, those of other programs: kinds of draws,
# edges, texts, look-ahead, the client's memory, and checkpoints in the background. `./check` runs them over a made-up device.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
programs='test_client_edges test_client_kinds test_lookahead test_client_texts test_client_memory test_checkpoint_background'
# shellcheck disable=SC2086 # a list of words
deploy/packages.sh guest && build dev $programs || exit 1
words=()
for program in $programs; do words+=("$PWD/build/dev/test/$program"); done
test/slow/guest/run -n kinds -t 2700 -- env GRAPHWIRE_TEST_BED=verbs CMOCKA_MESSAGE_OUTPUT=TAP CI= \
	"$PWD/test/slow/guest/each" -t 1200 -j 2 "${words[@]}" |
	sed -nE 's/^(ok|not ok) [0-9]+ - /\1 - kinds in a guest: /p'
exit "${PIPESTATUS[0]}"
