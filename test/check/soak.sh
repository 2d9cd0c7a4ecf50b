#!/usr/bin/env bash
# Runs each script of test/slow/soak with the release build's program and the dev build's tests. They take too long for daily
# use, so only `./check soak` runs them. SOAK=NAME runs one of them alone.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
build release && build dev || exit 1
export GRAPHWIRE=$PWD/build/release/graphwire PYTEST_TIMEOUT=3600
status=0
for script in test/slow/soak/${SOAK:-*}.sh; do
	bash "$script" || status=1
done
exit $status
