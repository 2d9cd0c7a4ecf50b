#!/usr/bin/env bash
# Checks that no include and no Python import goes up a layer or in a circle, and that the headers of one object are
# named so; plants violations to check that they are found.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
for check in includes.sh circles.sh private.sh py_rooms.py py_circles.py; do
	"test/check/$check" --self-test || status=1
	"test/check/$check" || status=1
done
exit $status
