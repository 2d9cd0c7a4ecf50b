#!/usr/bin/env bash
# Runs the tests under the sanitizers with all repetitions. The steps asan and tsan run a part of them (gw_many).
cd "$(dirname "$0")/../../.." || exit 1
export GRAPHWIRE_TEST_MANY=1
status=0
for sanitizer in asan tsan; do
	bash test/check/sanitized.sh $sanitizer || status=1
done
exit $status
