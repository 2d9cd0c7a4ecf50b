#!/usr/bin/env bash
# Tests the Python package: builds the wheel and installs it into a virtual environment; runs ruff, mypy and the tests
# of test/python on the installed package; makes the files of a release and uses the wheel's own program; then uses the
# package from the build tree.
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh

checked() { # checked WHAT COMMAND…
	local what=$1
	shift
	if "$@"; then ok "$what"; else not_ok "$what" && status=1; fi
}

status=0
python_ready
checked "ruff" "$venv/bin/ruff" check --quiet --config pyproject.toml python examples docs bench deploy test test/slow/rdma/run test/gpu/run
checked "mypy" "$venv/bin/mypy" --config-file pyproject.toml --cache-dir build/python/mypy python/graphwire python/graphwire_commands.py
checked "mypy deploy" env MYPYPATH=deploy "$venv/bin/mypy" --config-file pyproject.toml \
	--cache-dir build/python/mypy deploy/gwdeploy deploy/launch.py deploy/copy_files.py deploy/cluster.py

export GRAPHWIRE=$PWD/build/release/graphwire OMP_NUM_THREADS=1
tables_ready && scrapers_ready && kaminpar_ready || status=1
PYTHONPATH=$beside/tables:$beside/scrapers:$beside/kaminpar run_pytest test/python || status=1

# The files of a release, and the wheel in an environment with nothing else: what it names is all that it needs.
released=$(mktemp -d)
if [ "$portable" = OFF ]; then
	note "this host's glibc is too new for the wheel of a release (RELEASING.md); its own wheel is used instead"
	cp -r "$wheel" "$released/files"
elif TOOLS=$beside/tools WHEEL=$wheel python/release.sh --quick "$released/files" >"$log" 2>&1; then
	ok "an sdist, and a wheel of manylinux_2_28; twine accepts both"
else
	tail -n 5 "$log"
	not_ok "python/release.sh makes no files of a release; all of its output: $log"
	status=1
fi
if python3 -m venv --without-pip "$released/venv" &&
	"$venv/bin/pip" --python "$released/venv/bin/python" install -q --no-compile "$released"/files/*.whl >"$log" 2>&1; then
	mkdir "$released/work"
	env -u GRAPHWIRE "$released/venv/bin/python" -I test/install/wheel.py "$released/work" || status=1
else
	not_ok "the wheel does not install into an empty environment; pip's output: $log"
	status=1
fi
checked "the build ends with one line on other systems" python3 -c '
import subprocess, sys
done = subprocess.run([sys.executable, "-c", "import sys; sys.platform = \"darwin\"; import build_backend"], cwd="python",
                      capture_output=True, text=True)
sys.exit(done.returncode != 1 or len(done.stderr.splitlines()) != 1 or "Linux only" not in done.stderr)'
rm -rf "$released"

checked "the package works from the build tree" env PYTHONPATH=python \
	GRAPHWIRE_BUILD=build/wheel "$venv/bin/python" \
	-c 'import graphwire, sys; sys.exit("site-packages" in graphwire.__file__)'

# Runs trainers on several hosts under torchrun; prints a line for each test.
GRAPHWIRE_PYTHON=$venv/bin/python /usr/bin/python3 test/deploy/run.py ddp_trainers || status=1

# ./quickstart trains with this environment's Python.
quick=$(mktemp -d)
export XDG_RUNTIME_DIR=$quick/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
if PYTHON=$venv/bin/python locked release timeout 1200 ./quickstart --rmat --dir "$quick/graph" --epochs 1 >"$quick/out" 2>&1 &&
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
