#!/usr/bin/env bash
# Random kills of any process of a job by the hundred (test/deploy/test_kills.py).
cd "$(dirname "$0")/../.." && exec /usr/bin/python3 test/deploy/run.py --soak test_kills
