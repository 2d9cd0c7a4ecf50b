#!/usr/bin/env bash
# No include climbs a layer, and the test that says so would notice.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
test/check/includes.sh --self-test
planted=$?
test/check/includes.sh && exit $planted
