#!/usr/bin/env bash
# The Python package: its wheel built and installed into a virtual environment, ruff, mypy, and the tests of
# test/python against what was installed; then from the build tree.
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh

checked() { # checked WHAT COMMAND…
	local what=$1
	shift
	if "$@"; then ok "$what"; else not_ok "$what" && status=1; fi
}

status=0
python_ready
checked "ruff" "$venv/bin/ruff" check --quiet --config python/pyproject.toml python test/python test/kge test/adapters \
	examples docs/api bench/accuracy.py deploy test/deploy test/support test/check
checked "mypy" "$venv/bin/mypy" --config-file python/pyproject.toml --cache-dir build/python/mypy python/graphwire
checked "mypy deploy" env MYPYPATH=deploy "$venv/bin/mypy" --config-file python/pyproject.toml \
	--cache-dir build/python/mypy deploy/gwdeploy deploy/launch.py deploy/copy_files.py deploy/cluster.py

export GRAPHWIRE=$PWD/build/release/graphwire OMP_NUM_THREADS=1
run_pytest test/python || status=1

# The wheel brings the library along, and names what else it needs.
empty=$(mktemp -d)
if python3 -m venv --without-pip "$empty/venv" &&
	"$venv/bin/pip" --python "$empty/venv/bin/python" install -q --no-compile "$wheel"/*.whl >"$log" 2>&1 &&
	"$GRAPHWIRE" generate rmat --scale 8 --features 4 --out "$empty/graph" --quiet >/dev/null &&
	"$empty/venv/bin/python" -I -c '
import sys, graphwire
batch = next(iter(graphwire.NodeLoader(graphwire.open(sys.argv[1]), None, [3], features="feat")))
sys.exit(batch.x.shape[1] != 4 or not graphwire.__file__.startswith(sys.prefix))' "$empty/graph"; then
	ok "the wheel installs into an empty environment, and works there"
else
	not_ok "the wheel does not install into an empty environment, or not work there; pip's output: $log"
	status=1
fi
rm -rf "$empty"

checked "the package works from the build tree" env PYTHONPATH=python \
	GRAPHWIRE_BUILD=build/wheel "$venv/bin/python" \
	-c 'import graphwire, sys; sys.exit("site-packages" in graphwire.__file__)'

# Trainers of several hosts, under torchrun; prints a line for each test.
GRAPHWIRE_PYTHON=$venv/bin/python /usr/bin/python3 test/deploy/run.py ddp_trainers || status=1

# ./quickstart goes on to train, with this environment's Python.
quick=$(mktemp -d)
export XDG_RUNTIME_DIR=$quick/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
if PYTHON=$venv/bin/python timeout 400 ./quickstart --rmat --dir "$quick/graph" --epochs 1 >"$quick/out" 2>&1 &&
	grep -q '^  test accuracy [01]' "$quick/out" && grep -q "^  a node's own features alone" "$quick/out"; then
	ok "quickstart trains two trainers over its servers:$(grep '^  epoch 0' "$quick/out")"
else
	tail -n 15 "$quick"/graph/*.log "$quick/out"
	not_ok "quickstart does not train"
	status=1
fi
if pgrep -f "graphwire serve --part-config $quick/" >/dev/null; then not_ok "quickstart leaves a server" && status=1; fi
rm -rf "$quick"
exit $status
