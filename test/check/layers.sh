#!/usr/bin/env bash
# No include climbs a layer or goes in a circle, no import of Python goes in a circle, and the tests would notice.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
for check in includes.sh circles.sh py_circles.py; do
	"test/check/$check" --self-test || status=1
	"test/check/$check" || status=1
done
exit $status
