#!/usr/bin/env bash
# Checks that product text has none of the constructions that make a reader stop (words.py), that the files which comments
# and pages name exist (paths.py), and that both checks find planted faults. README has at most README_LINES lines, for a reader who has never heard of Graphwire.
README_LINES=150
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
python3 test/check/words.py --self-test || status=1
python3 test/check/words.py || status=1
python3 test/check/paths.py --self-test || status=1
python3 test/check/paths.py || status=1
lines=$(wc -l <README.md)
if [ "$lines" -le $README_LINES ]; then ok "README has at most $README_LINES lines"; else
	not_ok "README has $lines lines, more than $README_LINES: docs/TUTORIAL.md has room"
	status=1
fi
exit $status
