#!/usr/bin/env bash
# No include climbs a layer or goes in a circle, and the tests that say so would notice.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
for check in includes circles; do
	"test/check/$check.sh" --self-test || status=1
	"test/check/$check.sh" || status=1
done
exit $status
