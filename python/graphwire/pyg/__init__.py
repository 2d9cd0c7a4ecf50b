"""PyTorch Geometric over Graphwire: its loaders read a partitioned graph, from a folder or over servers.

    graph = graphwire.open("parts/")
    stores = graphwire.pyg.stores(graph, {"x": "feat", "y": "label"})         # (FeatureStore, GraphStore)
    sampler = graphwire.pyg.NeighborSampler(graph, [15, 10])
    loader = graphwire.pyg.NodeLoader(stores, node_sampler=sampler, input_nodes=train, batch_size=1024)

PyG's own loaders take the same; graphwire.pyg's warn where ranks have unequal numbers of batches. Neither divides the
nodes among ranks, as graphwire.NodeLoader does.

`graphwire.NodeLoader` samples ahead, and its batches become PyG's too: batch.to_pyg(). from_pyg() makes a graph of what
PyG has in memory. docs/PYG.md tells the whole of it.
"""

from __future__ import annotations

from graphwire.pyg.convert import from_pyg, to_pyg
from graphwire.pyg.loaders import LinkLoader, NodeLoader
from graphwire.pyg.sampler import NeighborSampler
from graphwire.pyg.stores import FeatureStore, GraphStore, stores

__all__ = ["FeatureStore", "GraphStore", "LinkLoader", "NeighborSampler", "NodeLoader", "from_pyg", "stores", "to_pyg"]
