#!/usr/bin/env bash
# 300 random databases beside pandas' merge, by Python and by the command line (test/python/test_databases.py).
# DATABASES=N: so many.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
tables_ready || exit 1
GRAPHWIRE_DATABASES=${DATABASES:-300} PYTHONPATH=$beside/tables run_pytest test/python/test_databases.py -k merge
