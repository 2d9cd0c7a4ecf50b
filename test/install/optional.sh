#!/bin/bash
# optional.sh: removes the optional packages of the build from this root, and checks that the checkout where this script
# lies configures without them and names each; that an option asks for one in vain; and that the tests name what they need.
# Compiles only the file that differs without METIS.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
optional='libmetis-dev libjemalloc-dev libibverbs-dev librdmacm-dev'
# shellcheck disable=SC2086 # a list
dpkg --force-depends -r $optional >/dev/null || exit 1
build=$(mktemp -d)
cmake -S . -B "$build" -G Ninja >"$build/out" 2>&1 || { tail "$build/out"; exit 1; }
for package in $optional; do
	grep -q "^-- .* not found: built without .*$package" "$build/out" || { echo "$package is not named"; exit 1; }
done
cmake --build "$build" --target CMakeFiles/gw_tools.dir/tools/partition/metis_run.c.o || exit 1
for option in METIS JEMALLOC VERBS TESTS; do
	if cmake -S . -B "$build/on" -G Ninja "-DGRAPHWIRE_$option=ON" >"$build/out" 2>&1 || ! grep -q 'install lib.*-dev' "$build/out"; then
		echo "GRAPHWIRE_$option=ON does not name a package"
		exit 1
	fi
	rm -rf "$build/on"
done
