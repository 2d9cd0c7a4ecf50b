#!/usr/bin/env bash
# Three builds, every warning an error: gcc for release and dev; clang, which warns of other things, with the fuzz targets
# (and clang-tidy, in the step lint, says what clang has to say of the tests).
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
