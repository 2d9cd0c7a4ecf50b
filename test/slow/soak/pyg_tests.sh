#!/usr/bin/env bash
# PyTorch Geometric's own tests of its neighbour loaders, with Graphwire's: over data in memory, and over a graph of two
# parts on two servers. $PYG_TESTS is the folder test/ of PyG's repository, at the version of the installed package
# without its last number. Without it nothing runs. docs/PYG.md says which functions pass.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
if [ ! -e "${PYG_TESTS:-}/loader/test_neighbor_loader.py" ]; then
	note "pyg_tests: skipped: \$PYG_TESTS has no tests of PyTorch Geometric"
	exit 0
fi
python_ready
extras_ready || exit 1
install_beside "$beside/frames" pytorch_frame psutil faiss-cpu || exit 1
export PYTHONPATH=$PWD/test/slow/soak:$beside/frames:$beside/extras GRAPHWIRE=$PWD/build/release/graphwire
files='loader/test_neighbor_loader.py loader/test_link_neighbor_loader.py loader/test_cache.py
	loader/test_imbalanced_sampler.py loader/test_zip_loader.py loader/test_mixin.py nn/conv/test_pna_conv.py
	nn/models/test_basic_gnn.py utils/test_trim_to_layer.py'
# over WAY FUNCTION,…: runs the files; the functions fail, as docs/PYG.md says.
over() {
	# shellcheck disable=SC2086 # a list
	(cd "$PYG_TESTS" && "$venv/bin/python" -m pytest -q -c /dev/null --rootdir . --import-mode importlib -p no:cacheprovider \
		-p pyg_tests --over "$1" --fails "$2" --tb=line -W ignore $files)
	local rc=$?
	[ $rc = 0 ] && ok "pyg_tests: over $1" && return
	not_ok "pyg_tests: over $1: other functions fail than $2"
	return $rc
}
status=0
over memory test_cpu_affinity_neighbor_loader || status=1
over servers test_cpu_affinity_neighbor_loader,test_neighbor_loader_with_tensor_frame,test_custom_hetero_neighbor_loader || status=1
exit $status
