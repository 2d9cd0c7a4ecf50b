#!/usr/bin/env bash
# Knowledge graphs: the tests of test/kge against the installed package, in the environment of the step python.
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh
python_ready
run_pytest test/kge
