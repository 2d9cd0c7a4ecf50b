# The Python of the steps: a virtual environment with this package installed. Sourced after lib.sh.
# shellcheck shell=bash
#
# The environment is in build/python/venv and is made again when its list of packages changes. Nothing is compiled in
# advance, because most of torch is never imported. What the first process compiles is kept in build/python/compiled: the
# steps start hundreds of processes, and compiling torch_geometric, scipy and pandas takes 1.5 s of each. No file is
# written to the folders of sources, some of which are in ../shared. If a file of the package is newer than the installed
# one, the wheel is built into build/python/wheel and installed. It is the portable wheel, as of a release, where that can
# be built: with glibc 2.38 or newer, compiled code calls functions that have no older version (__isoc23_strtol).
# The linters have fixed versions, because other versions find other faults.
packages='torch==2.13.0 numpy cffi pytest pytest-timeout pytest-xdist mypy==2.4.1 ruff==0.17.6 torch_geometric==2.8.1 tqdm matplotlib sphinx==9.0.4'
venv=$PWD/build/python/venv
wheel=$PWD/build/python/wheel
beside=$PWD/build/python
log=build/python/$(basename "$0" .sh).log # of pip
export PYTHONPYCACHEPREFIX=$PWD/build/python/compiled
unset PYTHONDONTWRITEBYTECODE
export PYTHONFAULTHANDLER=1 # a process that dies of a signal prints its stack

portable=OFF
[ "$(printf '%s\n' 2.37 "$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)" | sort -V | tail -n 1)" = 2.37 ] && portable=ON

make_venv() {
	[ "$(cat "$venv/packages" 2>/dev/null)" = "$packages" ] && return
	rm -rf "$venv"
	mkdir -p "${log%/*}"
	# Older versions of pip take twice as long to choose versions.
	python3 -m venv "$venv" && "$venv/bin/pip" install -q --no-compile 'pip>=24.1' >"$log" 2>&1
	# shellcheck disable=SC2086 # a list
	"$venv/bin/pip" install -q --no-compile $packages >"$log" 2>&1 && echo "$packages" >"$venv/packages"
}

# Builds the program and installs the package; ends the step on failure. Steps that run at the same time wait for the
# first of them.
python_ready() { locked python python_ready_alone || exit 1; }
python_ready_alone() {
	mkdir -p build/python
	build release >/dev/null || { not_ok "the release build fails" && exit 1; }
	make_venv || { tail -n 5 "$log"; not_ok "the virtual environment could not be made; all of pip's output: $log"; exit 1; }
	if [ -e "$venv/installed" ] && [ -e "$wheel" ] && [ -z "$(find CMakeLists.txt pyproject.toml cmake include core transport sampler protocol metrics tensors \
		client server tools cmd bench python deploy -type f -newer "$venv/installed" -not -path '*/__pycache__*' -print -quit)" ]; then
		return
	fi
	touch "$venv/installing"
	rm -rf "$wheel"
	# The release build has the same commands, so ninja takes its object files over.
	[ -e build/wheel ] || { mkdir build/wheel && (cd build/release && cp -a --parents .ninja_log .ninja_deps CMakeFiles/gw_*.dir ../wheel); }
	if CC=$(sed -n 's/^CMAKE_C_COMPILER:.*=//p' build/release/CMakeCache.txt) "$venv/bin/pip" wheel -q --no-deps -w "$wheel" -C cmake.define.GRAPHWIRE_PORTABLE=$portable \
		-C cmake.define.GRAPHWIRE_WERROR=ON . >"$log" 2>&1 &&
		"$venv/bin/pip" install -q --force-reinstall --no-deps "$wheel"/*.whl >>"$log" 2>&1; then
		mv "$venv/installing" "$venv/installed"
		ok "pip wheel ., and its installation"
	else
		tail -n 20 "$log"
		not_ok "pip wheel ., and its installation; all of its output: $log"
		exit 1
	fi
	echo "installed after $SECONDS s"
}

# install_beside FOLDER PACKAGE…: installs packages without their dependencies into a folder for PYTHONPATH, outside the
# environment.
install_beside() { locked python install_beside_alone "$@"; }
install_beside_alone() {
	local folder=$1
	shift
	[ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && return
	rm -rf "$folder"
	"$venv/bin/pip" install -q --no-compile --no-deps --target "$folder" "$@" >"$log" 2>&1 && echo "$*" >"$folder/packages"
}

# Packages that other projects' scripts import, in a folder of their own.
extras_ready() {
	install_beside "$beside/extras" pyinstrument 'scikit-learn<1.8' scipy joblib threadpoolctl cloudpickle ogb pandas python-dateutil six || {
		tail -n 5 "$log"
		not_ok "packages of scripts could not be installed; all of pip's output: $log"
		return 1
	}
}

# What reads tables, in a folder of its own.
tables_ready() {
	install_beside "$beside/tables" pyarrow polars polars-runtime-32 pandas python-dateutil six duckdb \
		jsonschema jsonschema-specifications referencing rpds-py attrs || {
		tail -n 5 "$log"
		not_ok "packages of tables could not be installed; all of pip's output: $log"
		return 1
	}
}

# What parses metrics as scrapers do, in a folder of its own.
scrapers_ready() {
	install_beside "$beside/scrapers" prometheus_client==0.26.0 pyyaml==6.0.4 || {
		tail -n 5 "$log"
		not_ok "the parser of metrics could not be installed; all of pip's output: $log"
		return 1
	}
}

# The partitioner of --method kaminpar, in a folder of its own.
kaminpar_ready() {
	install_beside "$beside/kaminpar" kaminpar==3.7.3 || {
		tail -n 5 "$log"
		not_ok "kaminpar could not be installed; all of pip's output: $log"
		return 1
	}
}

# RelBench 2.1.1 and what it imports, in a folder for the front of PYTHONPATH, and 3.0.2 in one for its end. With pandas 3,
# times of 2.1.1 are wrong by a factor of 1,000.
relbench_ready() {
	if ! install_beside "$beside/relbench" relbench==2.1.1 pytorch_frame==0.3.0 'pandas<3' pytz tzdata duckdb pooch platformdirs packaging pillow ||
		! install_beside "$beside/relbench3" relbench==3.0.2; then
		tail -n 5 "$log"
		not_ok "packages of RelBench could not be installed; all of pip's output: $log"
		return 1
	fi
}

# DGL itself, in a folder of its own; fails if DGL has no wheel for this Python. Its wheel imports setuptools.extern.
dgl_ready() {
	install_beside "$beside/dgl" dgl==1.1.3 'setuptools<70' networkx psutil requests packaging &&
		PYTHONPATH=$beside/dgl:$beside/extras "$venv/bin/python" -c 'import dgl' >>"$log" 2>&1
}

# run_pytest FOLDER [ARGUMENT…]: runs the folder's tests on the installed package; one file runs on each processor at a
# time. A test that takes ten minutes ($PYTEST_TIMEOUT: other seconds) fails with the stacks of its threads, and the
# others go on. A minute later, a test that waits in C, or has used the timer itself, ends its process.
run_pytest() {
	export PYTEST_TIMEOUT=${PYTEST_TIMEOUT:-600}
	GRAPHWIRE=$PWD/build/release/graphwire OMP_NUM_THREADS=1 \
		"$venv/bin/python" -m pytest -q -p no:cacheprovider -n "$(env -u OMP_NUM_THREADS nproc)" --dist loadfile \
		-o faulthandler_timeout=$((PYTEST_TIMEOUT + 60)) -o faulthandler_exit_on_timeout=true --max-worker-restart=1 \
		--durations=10 "$@"
}
