#!/usr/bin/env bash
# Three builds, every warning an error: gcc for release and dev; clang, which warns of other things, with the fuzz targets
# (and clang-tidy, in the step lint, says what clang has to say of the tests). Then, by the objects: no file calls another
# one that leads back to it.
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
