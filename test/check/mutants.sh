#!/usr/bin/env bash
# Checks the step `mutants` of `./check soak`, which breaks lines to find what no test notices: a planted project has
# breaks of each outcome. And every exception that it knows is still a break of a line.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
python3 test/slow/soak/mutants.py --self-test || status=1
python3 test/slow/soak/mutants.py --check-allowed || status=1
exit $status
