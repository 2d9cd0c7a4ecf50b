"""PyTorch Geometric over Graphwire: PyG's loaders read a partitioned graph, from a folder or over servers.

    graph = graphwire.open("parts/")
    loader = graphwire.pyg.NeighborLoader(graph, [15, 10], input_nodes=train, batch_size=1024)

NeighborLoader and LinkNeighborLoader have the arguments and batches of PyG's, and the library's threads sample ahead.
relational() makes one of a task's table, whose rows are entities, times and targets. Stores and a sampler are for PyG's
own loaders:

    stores = graphwire.pyg.stores(graph, {"x": "feat", "y": "label"})         # (FeatureStore, GraphStore)
    sampler = graphwire.pyg.NeighborSampler(graph, [15, 10])
    loader = graphwire.pyg.NodeLoader(stores, node_sampler=sampler, input_nodes=train, batch_size=1024)

Data in memory and stores of your own classes may take the place of the graph. PyG's own NodeLoader takes the same
arguments. The loaders of graphwire.pyg also warn if ranks have unequal numbers of batches. Neither kind divides the
nodes among ranks, as graphwire.NodeLoader does.

`graphwire.NodeLoader` samples ahead, and batch.to_pyg() converts its batches to PyG's. from_pyg() makes a graph from
PyG's data in memory. docs/PYG.md is the guide.
"""

from __future__ import annotations

from graphwire.pyg.convert import from_pyg, to_pyg
from graphwire.pyg.frames import TensorFrames
from graphwire.pyg.link_neighbor_loader import LinkNeighborLoader
from graphwire.pyg.loaders import LinkLoader, NodeLoader
from graphwire.pyg.neighbor_loader import NeighborLoader
from graphwire.pyg.sampler import NeighborSampler
from graphwire.pyg.sources import served
from graphwire.pyg.stores import FeatureStore, GraphStore, stores
from graphwire.pyg.task_loader import relational

__all__ = ["FeatureStore", "GraphStore", "LinkLoader", "LinkNeighborLoader", "NeighborLoader", "NeighborSampler",
           "NodeLoader", "TensorFrames", "from_pyg", "relational", "served", "stores", "to_pyg"]
