#!/usr/bin/env bash
# Tests scripts of other packages over Graphwire: test/adapters with our subset of dgl, then with DGL itself if its
# wheel can be installed; then the guide of DGL's example on four hosts; RelBench's scripts, test/relbench. Scripts and
# data are in ../shared; without them the tests are skipped.
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh

status=0
python_ready
extras_ready || exit 1

export PYTHONPATH=$beside/extras
run_pytest test/adapters || status=1
echo "over the subset of dgl: $SECONDS s"
GRAPHWIRE=$PWD/build/release/graphwire OMP_NUM_THREADS=1 GRAPHWIRE_PYTHON=$venv/bin/python GRAPHWIRE_BESIDE=$beside/extras \
	/usr/bin/python3 test/deploy/run.py dgl_guide || status=1
echo "and the guide: $SECONDS s"
if tables_ready && relbench_ready; then
	PYTHONPATH=$beside/relbench:$beside/extras:$beside/tables:$beside/relbench3 run_pytest test/relbench || status=1
else
	status=1
fi
echo "and RelBench's scripts: $SECONDS s"
PYTHONPATH=$beside/dgl:$beside/extras
if dgl_ready; then
	run_pytest test/adapters -m 'not slow' --ignore-glob='*/test_pyg*' | sed 's/ok - python: /ok - dgl: /'
	[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
else
	note "over the subset of dgl alone: DGL 1.1.3 has no wheel for this Python"
fi
exit $status
