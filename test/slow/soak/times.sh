#!/usr/bin/env bash
# 10^8 sampled edges of bitcoin-otc, drawn by time, uniformly and the last ones: none is later than its own seed
# (test/python/test_times.py). EDGES=N: so many edges.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
GRAPHWIRE_TIME_EDGES=$((${EDGES:-100000000} / 2)) run_pytest test/python/test_times.py -k future
