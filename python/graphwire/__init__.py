"""Graphwire: mini-batches and features of a partitioned graph as PyTorch tensors (NumPy arrays without torch).

    graph = graphwire.open("parts/")                            # standalone, or servers=["host:port", …]
    loader = graphwire.NodeLoader(graph, train, [15, 10], features="feat", labels="label", shuffle=True)
    for batch in loader:                                        # one epoch
        loss = criterion(model(batch.blocks, batch.x)[batch.seed_rows], batch.y)

graphwire.nn has layers over blocks. docs/PYTHON.md is the guide to the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from graphwire._native import (
    DeadlineError,
    GraphwireError,
    InvalidError,
    NotFoundError,
    OutOfRangeError,
    PeerError,
    ResourceError,
    lib,
    text,
)
from graphwire._save import save
from graphwire.batch import Batch, Block, Edges
from graphwire.edge_ids import EdgeIds
from graphwire.edges import EdgeList
from graphwire.graph import Feature, Graph, open
from graphwire.held_out import HeldOut
from graphwire.loader import EdgeLoader, NodeLoader, sample
from graphwire.partition import partition_graph
from graphwire.tables import Tables, from_tables
from graphwire.tensor import Tensor

if TYPE_CHECKING:
    from graphwire import chunks, datasets, nn, optim, pyg
    from graphwire.optim import Embedding

__version__ = text(lib.package_version())
__all__ = [
    "Batch",
    "Block",
    "DeadlineError",
    "EdgeIds",
    "EdgeList",
    "EdgeLoader",
    "Edges",
    "Embedding",
    "Feature",
    "Graph",
    "GraphwireError",
    "HeldOut",
    "InvalidError",
    "NodeLoader",
    "NotFoundError",
    "OutOfRangeError",
    "PeerError",
    "ResourceError",
    "Tables",
    "Tensor",
    "chunks",
    "datasets",
    "from_tables",
    "nn",
    "open",
    "optim",
    "partition_graph",
    "pyg",
    "sample",
    "save",
]

# Batch.to_pyg needs graphwire.pyg, which imports batch.py: the import happens at the first call.
Batch._converter = staticmethod(lambda batch, attributes: __getattr__("pyg").to_pyg(batch, attributes))


def __getattr__(name: str) -> Any:
    """Imports a submodule at its first use, because it needs torch or because few programs use it."""
    if name in ("chunks", "datasets", "nn", "optim", "pyg"):
        return importlib.import_module(f"graphwire.{name}")
    if name == "Embedding":
        return importlib.import_module("graphwire.optim").Embedding
    raise AttributeError(f"module 'graphwire' has no attribute {name!r}")
