#!/usr/bin/env bash
# Imports of tables at full size: memory of 100 M edges between 50 M text ids, and the rate of Parquet beside that of CSV
# (test/slow/soak/tables.py). EDGES=N: so many edges, and half as many ids. Takes 40 bytes of disk an edge, in $TMPDIR.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
edges=${EDGES:-100000000} status=0
python_ready
tables_ready || exit 1
export GRAPHWIRE=$PWD/build/release/graphwire PYTHONPATH=$beside/tables
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for what in memory rate; do
	if "$venv/bin/python" test/slow/soak/tables.py $what "$folder" --edges "$edges" --ids $((edges / 2)) >"$folder/out" 2>&1; then
		ok "tables: $what: $(tail -n 1 "$folder/out")"
	else
		not_ok "tables: $what: $(tail -n 1 "$folder/out")" && status=1
	fi
done
exit $status
