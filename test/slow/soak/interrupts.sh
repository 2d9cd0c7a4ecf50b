#!/usr/bin/env bash
# 10,000 interrupts of the Python package, at random moments and at each line: each comes to the program, and nothing is
# left of what it cut short.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
GRAPHWIRE_INTERRUPTS=${GRAPHWIRE_INTERRUPTS:-10000} run_pytest test/python/test_interrupts.py
