#!/usr/bin/env bash
# The Python package: its wheel built and installed into a virtual environment, ruff, mypy, and the tests of
# test/python against what was installed; then from the build tree.
#
# The environment lies in build/python/venv and is made again when its list of packages changes.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
packages='torch==2.13.0 numpy cffi pytest mypy==2.4.1 ruff==0.17.6 torch_geometric==2.8.1 tqdm matplotlib sphinx==9.0.4' # linters fixed: others judge differently
venv=$PWD/build/python/venv
log=build/python/pip.log

make_venv() {
	[ "$(cat "$venv/packages" 2>/dev/null)" = "$packages" ] && return
	rm -rf "$venv"
	mkdir -p "${log%/*}"
	# shellcheck disable=SC2086 # a list
	python3 -m venv "$venv" && "$venv/bin/pip" install -q $packages >"$log" 2>&1 && echo "$packages" >"$venv/packages"
}

checked() { # checked WHAT COMMAND…
	local what=$1
	shift
	if "$@"; then ok "$what"; else not_ok "$what" && status=1; fi
}

status=0
build release >/dev/null || { not_ok "the release build fails" && exit 1; }
make_venv || { tail -n 5 "$log"; not_ok "the virtual environment could not be made; all of pip's output: $log"; exit 1; }
if "$venv/bin/pip" install -q --force-reinstall --no-deps ./python >"$log" 2>&1; then
	ok "pip install ./python"
else
	tail -n 20 "$log"
	not_ok "pip install ./python; all of its output: $log"
	exit 1
fi
echo "installed after $SECONDS s"
checked "ruff" "$venv/bin/ruff" check --quiet --config python/pyproject.toml python test/python examples docs/api deploy test/deploy
checked "mypy" "$venv/bin/mypy" --config-file python/pyproject.toml --cache-dir build/python/mypy python/graphwire
checked "mypy deploy" env MYPYPATH=deploy "$venv/bin/mypy" --config-file python/pyproject.toml \
	--cache-dir build/python/mypy deploy/gwdeploy deploy/launch.py deploy/copy_files.py deploy/cluster.py

export GRAPHWIRE=$PWD/build/release/graphwire OMP_NUM_THREADS=1
tests=$(mktemp)
"$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=10 test/python 2>&1 | tee "$tests"
if [ "${PIPESTATUS[0]}" -ne 0 ]; then
	status=1
	grep -q '^not ok - ' "$tests" || not_ok "pytest ended early"
fi
rm -f "$tests"

checked "the package works from the build tree" env PYTHONPATH=python \
	GRAPHWIRE_BUILD=build/wheel "$venv/bin/python" \
	-c 'import graphwire, sys; sys.exit("site-packages" in graphwire.__file__)'

# ./quickstart goes on to train, with this environment's Python.
quick=$(mktemp -d)
export XDG_RUNTIME_DIR=$quick/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
if PYTHON=$venv/bin/python timeout 400 ./quickstart --rmat --dir "$quick/graph" --epochs 1 >"$quick/out" 2>&1 &&
	grep -q '^  test accuracy [01]' "$quick/out" && grep -q "^  a node's own features alone" "$quick/out"; then
	ok "quickstart trains two trainers over its servers:$(grep '^  epoch 0' "$quick/out")"
else
	tail -n 15 "$quick/out" "$quick"/graph/*.log
	not_ok "quickstart does not train"
	status=1
fi
if pgrep -f "graphwire serve --part-config $quick/" >/dev/null; then not_ok "quickstart leaves a server" && status=1; fi
rm -rf "$quick"
exit $status
