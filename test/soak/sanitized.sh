#!/usr/bin/env bash
# The sanitizers over all that tests do many times, of which the steps asan and tsan take a part (gw_many).
cd "$(dirname "$0")/../.." || exit 1
export GRAPHWIRE_TEST_MANY=1
status=0
for sanitizer in asan tsan; do
	bash test/check/sanitized.sh $sanitizer || status=1
done
exit $status
