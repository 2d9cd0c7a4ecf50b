#!/usr/bin/env bash
# perftest.sh: the row benchmarks over RDMA beside perftest's ib_read_lat and ib_read_bw, in one boot of the guest
# (test/guest/run): Soft-RoCE under emulation, so only the ratios mean something.
#
#   bench/peers/perftest.sh [SIZE…]          bytes of a row (64 512 4096)
#
# perftest runs before and after the benchmark of its size, with as many queue pairs and reads in flight; the table's
# last lines give both. Builds the release build first.
set -euo pipefail
cd "$(dirname "$0")/../.."
sizes=${*:-64 512 4096}
deploy/packages.sh build guest
cmake --preset release -DGRAPHWIRE_TESTS=OFF >/dev/null
cmake --build --preset release --target graphwire-cmd
# shellcheck disable=SC2016 # the guest's shell expands these
exec test/guest/run -n bench -t 1800 -- env GRAPHWIRE="$PWD/build/release/graphwire" SIZES="$sizes" bash -c '
lat() { # lat SIZE: the typical time
	ib_read_lat -d rxe0 -x 1 -s "$1" -n 1000 >/dev/null 2>&1 &
	sleep 1.5
	ib_read_lat -d rxe0 -x 1 -s "$1" -n 1000 10.0.3.1 2>/dev/null |
		awk -v s="$1" "\$1 == s { printf \"perftest  ib_read_lat %s B: typical %s us, 99 of 100 within %s us\n\", s, \$5, \$8 }"
	wait
}
bw() { # bw SIZE: average
	ib_read_bw -d rxe0 -x 1 -s "$1" -q 2 -t 128 -D 4 -f 1 >/dev/null 2>&1 &
	sleep 1.5
	ib_read_bw -d rxe0 -x 1 -s "$1" -q 2 -t 128 -D 4 -f 1 10.0.3.1 2>/dev/null |
		awk -v s="$1" "\$1 == s { printf \"perftest  ib_read_bw %s B, 2 queue pairs x 128: %.4g MB/s\n\", s, \$4 * 1.048576 }"
	wait
}
for size in $SIZES; do
	lat "$size"
	"$GRAPHWIRE" bench latency --transport verbs --row "$size" --spin 20000 --rounds 1000 --repeats 5
	lat "$size"
	bw "$size"
	"$GRAPHWIRE" bench gather --transport verbs --row "$size" --table 64Mi --batch 1000 --seconds 1 --repeats 5
	bw "$size"
done'
