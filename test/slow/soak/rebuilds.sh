#!/usr/bin/env bash
# Graphs of tables with keys: 200 random databases, rebuilt after random changes, and 50 builds, killed and resumed
# (test/python/test_rebuild.py). DATABASES=N, KILLS=N: so many.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
tables_ready || exit 1
GRAPHWIRE_REBUILDS=${DATABASES:-200} GRAPHWIRE_KILLS=${KILLS:-50} PYTHONPATH=$beside/tables \
	run_pytest test/python/test_rebuild.py -k "full_build or killed"
