#!/usr/bin/env bash
# Makes three builds in which every warning is an error: gcc for release and dev, and clang for the fuzz targets. (In the
# step lint, clang-tidy gives clang's warnings for every file.) Then checks the object files: source files must not call
# each other in a circle.
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
