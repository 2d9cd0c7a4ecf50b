#!/usr/bin/env bash
# PyTorch Geometric's own examples with Graphwire's neighbour loaders, unedited: over data in memory, and over a graph of
# two parts on two servers. pyg_examples.py makes their data. $PYG_EXAMPLES is the folder examples/ of PyG's repository.
# Without it nothing runs. About 40 minutes.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
if [ ! -e "${PYG_EXAMPLES:-}/graph_sage_unsup.py" ]; then
	note "pyg_examples: skipped: \$PYG_EXAMPLES has no examples of PyTorch Geometric"
	exit 0
fi
python_ready
extras_ready || exit 1
install_beside "$beside/frames" pytorch_frame psutil faiss-cpu || exit 1
export PYTHONPATH=$beside/frames:$beside/extras GRAPHWIRE=$PWD/build/release/graphwire
examples='graph_sage_unsup graph_sage_unsup_ppi reddit cluster_gcn_reddit infomax_inductive hierarchical_sampling
	ogbn_train hetero/to_hetero_mag hetero/hierarchical_sage hetero/bipartite_sage_unsup hetero/temporal_link_pred
	hetero/recommender_system'
status=0
for over in memory servers; do
	for example in $examples; do
		words=()
		[ "$example" != ogbn_train ] || words=(--model sage --epochs 10 --hidden_channels 32)
		if said=$("$venv/bin/python" -W ignore test/slow/soak/pyg_examples.py $over "$PYG_EXAMPLES/$example.py" "${words[@]}" 2>&1); then
			ok "pyg_examples: over $over: ${said##*$'\n'}"
		else
			not_ok "pyg_examples: over $over: $example: ${said##*$'\n'}"
			status=1
		fi
	done
done
exit $status
