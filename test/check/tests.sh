#!/usr/bin/env bash
# tests.sh PRESET FOLDER…: runs the test programs of these folders of test/ from the preset's build.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
preset=$1
shift
build "$preset" && run_tests "$preset" "$(test_regex "$@")"
