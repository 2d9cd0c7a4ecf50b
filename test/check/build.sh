#!/usr/bin/env bash
# Three builds where every warning is an error: gcc for release and dev, and clang, which has other warnings, for the
# fuzz targets. (clang-tidy, in the step lint, gives clang's warnings for the tests.) Then, from the objects: no file calls
# a file that leads back to it.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
status=0
for preset in release dev fuzz; do
	if build "$preset"; then
		ok "$preset builds"
	else
		not_ok "$preset does not build"
		status=1
	fi
done
test/check/calls.sh --self-test || status=1
test/check/calls.sh build/dev || status=1
exit $status
