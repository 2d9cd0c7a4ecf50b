#!/usr/bin/env bash
# Runs the small inputs of former bugs (../shared/cases) through the interface that a user would take. Each case must
# give the right value or an error that names the fault. Cases of DGL's interface run over DGL 1.1.3 and over the subset.
# One case runs on each processor at a time. If the folder does not exist, CI fails and other machines skip the step.
# Cases are skipped if this machine cannot make their namespace or control group.
#
#   cases.sh [CASE…]   runs these cases, by their names below ../shared/cases; without names, those of the table below
cd "$(dirname "$0")/../.." && . test/check/lib.sh && . test/check/venv.sh
cases=$PWD/../shared/cases
folders='questions rows python tables dgl pyg more'
# Cases of the folder ops that take more than 15 s are in test/slow/soak/cases.sh.
files='ops/dlclose_lookup.sh ops/doctor_fix.sh ops/key_of_unit.sh ops/memlock.sh ops/memlock_doctor.sh ops/memory_limit.sh
	ops/own_name.sh ops/pid1_load.sh ops/runtime_folder_gone.sh ops/seccomp_fix.sh ops/two_runtime_folders.sh'

if [ ! -x "$cases/run" ]; then
	[ "${CI:-}" = true ] && not_ok "there are no cases in ../shared/cases" && exit 1
	note "skipped: ../shared/cases does not exist"
	exit 0
fi
python_ready
extras_ready && tables_ready || exit 1
dgl_ready || note "DGL 1.1.3 has no wheel for this Python: cases that need it are skipped"
export GRAPHWIRE=$PWD/build/release/graphwire PATH=$PWD/build/release:$PATH TOP=$PWD PY=$venv/bin/python
export PYTHONPATH=$beside/dgl:$beside/extras:$beside/tables

# Prints the names of all cases, in the form that `run` takes.
names() { # names [CASE…]
	local folder found
	[ $# -eq 0 ] || { printf '%s\n' "$@" && return; }
	for folder in $folders; do
		for found in "$cases/$folder"/*.py "$cases/$folder"/*.sh "$cases/$folder"/*/case.py "$cases/$folder"/*/case.sh; do
			[ -e "$found" ] && echo "${found#"$cases"/}"
		done
	done
	xargs -n 1 <<<"$files"
}

# Cases of ops start first, because one of them waits for a minute while the other cases run.
in_order() { awk '/^ops\// { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }'; }

# Adds each case of the folder dgl once more, over the subset.
twice() { awk '{ print } /^dgl\// { print $0, "subset" }'; }

# Processes of Python cases are forked from one for each dgl, which has imported what most of them import. Scripts start
# Python themselves, in namespaces and control groups of their own.
one() { # one CASE [subset]
	local said path=$PYTHONPATH python=$warm/${2:-dgl}/python
	[ -z "${2:-}" ] || path=$beside/extras:$beside/tables
	[[ $1 = *.py ]] || python=$PY
	said=$(PYTHONPATH=$path PY=$python "$cases/run" "$1")
	case $said in
	*" 1 skipped"*) note "skipped${2:+ over the subset of dgl}: ${said%%$'\n'*}" ;;
	"0 of 1 cases go wrong"*) ok "case $1${2:+ over the subset of dgl}" ;;
	*) not_ok "case${2:+ over the subset of dgl} ${said%%$'\n'*}" && return 1 ;;
	esac
}
export -f one ok not_ok note
export cases beside warm

# Runs the cases on its input, N at a time.
run() { # run N
	# shellcheck disable=SC2016 # bash -c expands it
	xargs -r -P "$1" -L 1 bash -c 'one "$@"' one
}

warm=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}"; wait "${servers[@]}" 2>/dev/null; rm -rf "$warm"' EXIT
for one in dgl subset; do
	mkdir "$warm/$one"
	printf '#!/bin/sh\nexec python3 -I -S "%s" "%s" "%s" "$@"\n' "$PWD/test/support/warm_python.py" "$warm/$one/socket" "$PY" >"$warm/$one/python"
	chmod +x "$warm/$one/python"
	path=$PYTHONPATH
	[ $one = dgl ] || path=$beside/extras:$beside/tables
	PYTHONPATH=$path OMP_NUM_THREADS=1 "$PY" -W ignore test/support/warm_python.py serve "$warm/$one/socket" \
		torch torch._dynamo pandas scipy.sparse torch_geometric.data >"$warm/$one/log" 2>&1 &
	servers+=($!)
done
for one in dgl subset; do
	until grep -q '^ready' "$warm/$one/log"; do
		kill -0 "${servers[@]}" || { not_ok "a server of Python processes ended: $(tail -n 1 "$warm/$one/log")"; exit 1; }
		sleep 0.1
	done
done

# The scripts of dgl serve the same graph, which a host does once at a time.
status=0
names "$@" | twice | in_order | awk '!/^dgl\/.*[.]sh/' | run "$(nproc)" || status=1
names "$@" | twice | awk '/^dgl\/.*[.]sh/' | run 1 || status=1
[ "$status" = 0 ]
