#!/usr/bin/env bash
# Random kills of any process of a job by the hundred (test/deploy/test_kills.py), and the figures of launching.
cd "$(dirname "$0")/../../.." || exit 1
/usr/bin/python3 test/deploy/figures.py || exit 1
exec /usr/bin/python3 test/deploy/run.py --soak test_kills
