#!/usr/bin/env bash
# 50 epochs over two parts and over each transport of this host, while each server is replaced ten times at random
# moments, tensors are trained and metrics are scraped (test/python/test_take_over.py). UPGRADES=N, EPOCHS=N: so many.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
GRAPHWIRE_UPGRADES=${UPGRADES:-10} GRAPHWIRE_UPGRADE_EPOCHS=${EPOCHS:-50} \
	run_pytest test/python/test_take_over.py -k replaced_under_trainers
