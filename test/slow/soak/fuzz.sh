#!/usr/bin/env bash
# A minute of new inputs for each fuzz target, where the step fuzz takes three seconds.
cd "$(dirname "$0")/../../.." || exit 1
FUZZ_SECONDS=${FUZZ_SECONDS:-60} bash test/check/fuzz.sh
