"""dgl.distributed over Graphwire, with the names, arguments and meanings of DGL 1.1.3."""

from __future__ import annotations

from typing import Any

from graphwire.dgl.distributed import optim
from graphwire.dgl.distributed.book import (
    EdgePartitionPolicy,
    GraphPartitionBook,
    NodePartitionPolicy,
    PartitionPolicy,
    RangePartitionBook,
)
from graphwire.dgl.distributed.context import exit_client, initialize, is_initialized
from graphwire.dgl.distributed.dataloader import DistDataLoader
from graphwire.dgl.distributed.embedding import DistEmbedding
from graphwire.dgl.distributed.graph import DistGraph
from graphwire.dgl.distributed.partition import load_partition, load_partition_book, partition_graph
from graphwire.dgl.distributed.sampling import (
    find_edges,
    in_degrees,
    in_subgraph,
    out_degrees,
    sample_etype_neighbors,
    sample_neighbors,
)
from graphwire.dgl.distributed.split import edge_split, node_split
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.host import not_here

SparseNodeEmbedding = DistEmbedding
SparseAdagrad, SparseAdam = optim.SparseAdagrad, optim.SparseAdam  # as in DGL before 0.7
DistNodeDataLoader: Any  # of graphwire.dgl.dataloading; graphwire/dgl/__init__.py sets both
DistEdgeDataLoader: Any
__all__ = [
    "DistDataLoader", "DistEdgeDataLoader", "DistEmbedding", "DistGraph", "DistNodeDataLoader", "DistTensor",
    "EdgePartitionPolicy", "GraphPartitionBook", "NodePartitionPolicy", "PartitionPolicy", "RangePartitionBook",
    "edge_split", "exit_client", "find_edges", "in_degrees", "in_subgraph", "initialize", "is_initialized",
    "load_partition", "load_partition_book", "node_split", "optim", "out_degrees", "partition_graph",
    "sample_etype_neighbors", "sample_neighbors"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise not_here(f"dgl.distributed.{name}")
