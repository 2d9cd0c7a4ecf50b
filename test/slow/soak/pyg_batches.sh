#!/usr/bin/env bash
# Batches of graphwire.pyg's neighbour loaders over 200 random graphs, in memory and in one and three parts, half of them
# over servers: every attribute is compared with plain Python.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
extras_ready || exit 1
PYTHONPATH=$beside/extras GRAPHWIRE_PYG_GRAPHS=${GRAPHWIRE_PYG_GRAPHS:-200} run_pytest test/adapters/test_pyg_batches.py
