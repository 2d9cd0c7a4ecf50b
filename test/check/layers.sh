#!/usr/bin/env bash
# Checks that no include goes up a layer or in a circle, that the headers of one object are named so, and that no Python
# import goes in a circle; plants violations to check that they are found.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
for check in includes.sh circles.sh private.sh py_circles.py; do
	"test/check/$check" --self-test || status=1
	"test/check/$check" || status=1
done
exit $status
