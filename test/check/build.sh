#!/usr/bin/env bash
# Three builds where every warning is an error: gcc for release and dev, and clang, which has other warnings, for the
# fuzz targets. (clang-tidy, in the step lint, gives clang's warnings for the tests.)
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
exit $status
