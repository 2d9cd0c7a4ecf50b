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

from graphwire._base.native import (
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
from graphwire._base.trace import trace
from graphwire._files.database import Database, from_database
from graphwire._files.descriptions import ForeignKey, Table
from graphwire._files.partition import partition_graph
from graphwire._files.replicas import replicate
from graphwire._files.tables import Tables, from_tables
from graphwire._graph.edge_ids import EdgeIds
from graphwire._graph.edges import EdgeList
from graphwire._graph.graph import Feature, Graph, open
from graphwire._graph.held_out import HeldOut
from graphwire._graph.save import save
from graphwire._graph.tensor import Tensor
from graphwire._train.batch import Batch, Block, Edges
from graphwire._train.loader import EdgeLoader, NodeLoader
from graphwire._train.single import Sampler, sample

if TYPE_CHECKING:
    from graphwire import batch, chunks, datasets, fetch, graph, ids, loader, nn, optim, partition, pyg  # noqa: F401
    from graphwire.optim import Embedding

__version__ = text(lib.package_version())
__all__ = [
    "Batch",
    "Block",
    "Database",
    "DeadlineError",
    "EdgeIds",
    "EdgeList",
    "EdgeLoader",
    "Edges",
    "Embedding",
    "Feature",
    "ForeignKey",
    "Graph",
    "GraphwireError",
    "HeldOut",
    "InvalidError",
    "NodeLoader",
    "NotFoundError",
    "OutOfRangeError",
    "PeerError",
    "ResourceError",
    "Sampler",
    "Table",
    "Tables",
    "Tensor",
    "chunks",
    "datasets",
    "from_database",
    "from_tables",
    "nn",
    "open",
    "optim",
    "partition_graph",
    "pyg",
    "replicate",
    "sample",
    "save",
    "trace",
]

# Batch.to_pyg needs graphwire.pyg, which imports _train/batch.py: the import happens at the first call.
Batch._converter = staticmethod(lambda batch, attributes: __getattr__("pyg").to_pyg(batch, attributes))

_MODULES = ("batch", "chunks", "datasets", "fetch", "graph", "ids", "loader", "nn", "optim", "partition", "pyg")


def __getattr__(name: str) -> Any:
    """Imports a submodule at its first use, because it needs torch or because few programs use it."""
    if name in _MODULES:
        return importlib.import_module(f"graphwire.{name}")
    if name == "Embedding":
        return importlib.import_module("graphwire.optim").Embedding
    raise AttributeError(f"module 'graphwire' has no attribute {name!r}")
