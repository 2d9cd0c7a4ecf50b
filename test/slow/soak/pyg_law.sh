#!/usr/bin/env bash
# The law of graphwire.pyg's neighbour loaders, compared with PyTorch Geometric's own, where `bench/peers/run setup` has
# built torch-sparse: in $GRAPHWIRE_PEERS (/var/tmp/graphwire-peers).
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
peers=${GRAPHWIRE_PEERS:-/var/tmp/graphwire-peers}
if [ ! -e "$peers/pyg/ready" ]; then
	note "no torch-sparse in $peers: the law is compared with plain Python only"
	exit 0
fi
bench/peers/run law --dir "$peers"
