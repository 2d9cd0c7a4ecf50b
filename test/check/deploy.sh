#!/usr/bin/env bash
# Tests the scripts of deploy/ and `graphwire agent` with the release build's program (test/deploy/bed.py).
cd "$(dirname "$0")/../.." && . test/check/lib.sh
build release bundle || exit 1
export GRAPHWIRE=$PWD/build/release/graphwire
/usr/bin/python3 test/deploy/run.py
