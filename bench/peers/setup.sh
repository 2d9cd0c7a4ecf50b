#!/usr/bin/env bash
# setup.sh DIR [full|pyg|kumo|shop]: makes everything that the comparison needs in DIR. Existing parts are not made again.
# "pyg" makes what a comparison with PyTorch Geometric needs: its environments and the R-MAT graph. "kumo" makes what one
# with kumo-engine needs, and "shop" what loading from the shop needs; they alone make it.
#
#   DIR/dgl                      virtual environment: dgl 1.1.3 on torch 2.13.0
#   DIR/pyg                      virtual environment: PyTorch Geometric 2.8.1 on torch 2.13.0, with torch-sparse and torch-scatter
#                                built from source (twenty minutes of two processors)
#   DIR/pyglib                   the same with pyg-lib, if $PYG_LIB_SOURCE is a folder with its source and submodules
#   DIR/kumo                     virtual environment: kumo-engine 1.0.0 without torch, which its sampler does not need, and DuckDB;
#                                only with "kumo" (Python 3.11 or newer)
#   DIR/shop                     virtual environment: PyTorch Geometric 2.8.1 and PyTorch Frame 0.3.0 on torch 2.13.0,
#                                kumo-engine 1.0.0 and, as DIR/pyglib, pyg-lib; only with "shop"
#   DIR/gb                       virtual environment: dgl 2.1.0 on torch 2.2.1 for GraphBolt; only with "full" (several GB)
#   DIR/r20                      R-MAT graph, scale 20 x 16, as indptr.npy and indices.npy
#   DIR/dgl2                     the same graph in DGL's two METIS parts
#   DIR/limit_sample, limit_tcp  the prototypes
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mkdir -p "$1" && cd "$1" && pwd)

say() { printf '%s\n' "setup: $*" >&2; }

# The file "ready" marks a complete environment.
if [ "${2:-}" = kumo ]; then
	if [ ! -e "$dir/kumo/ready" ]; then
		say "kumo-engine 1.0.0 into $dir/kumo"
		[ -e "$dir/kumo/bin/pip" ] || python3 -m venv "$dir/kumo"
		"$dir/kumo/bin/pip" install -q numpy pyarrow==24.0.0 cffi duckdb==2.0.1
		# Its other dependencies are for training; torch, for CUDA, is several GB.
		"$dir/kumo/bin/pip" install -q --no-deps kumo-engine==1.0.0
		"$dir/kumo/bin/python" -c 'from diskgraph import SamplerEngine'
		touch "$dir/kumo/ready"
	fi
	exit 0
fi

if [ "${2:-}" = shop ]; then
	if [ ! -e "$dir/shop/ready" ]; then
		say "PyTorch Geometric 2.8.1, PyTorch Frame 0.3.0 and kumo-engine 1.0.0 into $dir/shop"
		[ -e "$dir/shop/bin/pip" ] || python3 -m venv "$dir/shop"
		"$dir/shop/bin/pip" install -q torch==2.13.0 torch_geometric==2.8.1 pyarrow==24.0.0 pandas cffi 'setuptools<80' wheel ninja
		"$dir/shop/bin/pip" install -q --no-deps pytorch-frame==0.3.0 kumo-engine==1.0.0
		[ -z "${PYG_LIB_SOURCE:-}" ] || FORCE_CUDA=0 CMAKE_BUILD_PARALLEL_LEVEL=2 "$dir/shop/bin/python" -m pip install -q \
			--no-deps --no-build-isolation "$PYG_LIB_SOURCE"
		"$dir/shop/bin/python" -c 'import diskgraph, torch_frame, torch_geometric'
		touch "$dir/shop/ready"
	fi
	exit 0
fi

if [ "${2:-}" != pyg ] && [ ! -e "$dir/dgl/ready" ]; then
	say "dgl 1.1.3 on torch 2.13.0 into $dir/dgl (a few minutes)"
	python3 -m venv "$dir/dgl"
	"$dir/dgl/bin/pip" install -q torch==2.13.0 'numpy<2' packaging scipy networkx psutil requests tqdm
	# dgl 1.1.3 imports setuptools.extern, which later versions of setuptools lack.
	"$dir/dgl/bin/pip" install -q --no-deps 'setuptools<70' dgl==1.1.3
	touch "$dir/dgl/ready"
fi

if [ ! -e "$dir/pyg/ready" ]; then
	say "PyTorch Geometric 2.8.1 with torch-sparse on torch 2.13.0 into $dir/pyg (twenty minutes: it is compiled)"
	[ -e "$dir/pyg/bin/pip" ] || python3 -m venv "$dir/pyg"
	"$dir/pyg/bin/pip" install -q torch==2.13.0 'numpy<2' scipy 'setuptools<80' wheel ninja packaging tqdm torch_geometric==2.8.1
	# One at a time: building torch-sparse needs torch-scatter's installed files.
	for package in torch-scatter==2.1.2 torch-sparse==0.6.18; do
		MAX_JOBS=2 FORCE_CUDA=0 "$dir/pyg/bin/pip" install -q --no-deps --no-build-isolation "$package"
	done
	"$dir/pyg/bin/python" -c 'import torch_geometric.typing as t; assert t.WITH_TORCH_SPARSE'
	touch "$dir/pyg/ready"
fi

if [ -n "${PYG_LIB_SOURCE:-}" ] && [ ! -e "$dir/pyglib/ready" ]; then
	say "pyg-lib of $PYG_LIB_SOURCE into $dir/pyglib (an hour of two processors: it is compiled)"
	[ -e "$dir/pyglib/bin/python" ] || cp -a "$dir/pyg" "$dir/pyglib"
	rm -f "$dir/pyglib/ready"
	FORCE_CUDA=0 CMAKE_BUILD_PARALLEL_LEVEL=2 "$dir/pyglib/bin/python" -m pip install -q --no-deps --no-build-isolation \
		"$PYG_LIB_SOURCE"
	"$dir/pyglib/bin/python" -c 'import torch_geometric.typing as t; assert t.WITH_PYG_LIB'
	touch "$dir/pyglib/ready"
fi

if [ "${2:-}" = full ] && [ ! -e "$dir/gb/ready" ]; then
	say "dgl 2.1.0 with GraphBolt on torch 2.2.1 into $dir/gb (several GB, many minutes)"
	python3 -m venv "$dir/gb"
	"$dir/gb/bin/pip" install -q torch==2.2.1 torchdata==0.7.1 'numpy<2' scipy networkx pandas pyarrow psutil requests \
		tqdm pyyaml pydantic
	"$dir/gb/bin/pip" install -q dgl==2.1.0
	touch "$dir/gb/ready"
fi

for prototype in limit_sample limit_tcp; do
	if [ "$here/$prototype.c" -nt "$dir/$prototype" ]; then
		cc -O3 -march=native "$here/$prototype.c" -o "$dir/$prototype" -lpthread
	fi
done

if [ ! -e "$dir/r20/indptr.npy" ]; then # rmat.py writes this file last
	say "R-MAT scale 20 x 16 into $dir/r20"
	mkdir -p "$dir/r20"
	"$dir/pyg/bin/python" "$here/rmat.py" "$dir/r20" 20 16 >&2
fi

[ "${2:-}" != pyg ] || exit 0

if [ ! -e "$dir/dgl2/ready" ]; then
	say "DGL's METIS parts of it into $dir/dgl2 (half a minute, 5 GB of memory)"
	"$dir/dgl/bin/python" "$here/dgl_partition.py" "$dir/r20" "$dir/dgl2" metis >&2
	touch "$dir/dgl2/ready"
fi
