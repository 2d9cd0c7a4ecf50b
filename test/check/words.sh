#!/usr/bin/env bash
# Checks that product text has none of the constructions that make a reader stop (words.py), and that the check finds
# planted ones.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
python3 test/check/words.py --self-test || status=1
python3 test/check/words.py || status=1
exit $status
