#!/usr/bin/env bash
# Runs the tests of test/kge (knowledge graphs) on the installed package, in the environment of the step python.
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
run_pytest test/kge
