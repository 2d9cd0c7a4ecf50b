"""Graphwire: mini-batches and features of a partitioned graph as PyTorch tensors (NumPy arrays without torch).

    graph = graphwire.open("parts/")                            # standalone, or servers=["host:port", …]
    loader = graphwire.NodeLoader(graph, train, [15, 10], features="feat", labels="label", shuffle=True)
    for batch in loader:                                        # one epoch
        loss = criterion(model(batch.blocks, batch.x)[batch.seed_rows], batch.y)

graphwire.nn has layers over blocks. docs/PYTHON.md tells the whole of it.
"""

from graphwire._native import (
    DeadlineError,
    GraphwireError,
    InvalidError,
    NotFoundError,
    OutOfRangeError,
    PeerError,
    ResourceError,
)
from graphwire.batch import Batch, Block, Edges
from graphwire.graph import Feature, Graph, open
from graphwire.loader import NodeLoader, sample

__version__ = "0.1.0"
__all__ = [
    "Batch",
    "Block",
    "DeadlineError",
    "Edges",
    "Feature",
    "Graph",
    "GraphwireError",
    "InvalidError",
    "NodeLoader",
    "NotFoundError",
    "OutOfRangeError",
    "PeerError",
    "ResourceError",
    "open",
    "sample",
]
