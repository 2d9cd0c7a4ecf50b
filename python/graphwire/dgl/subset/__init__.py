"""A subset of dgl, used if dgl is not installed: the graphs, blocks, messages and layers that distributed training
needs. A name that the subset lacks raises MissingError, which names it and asks to install dgl."""

from __future__ import annotations

import random as _random
from typing import Any

import numpy as _numpy
import torch as _torch

from graphwire.dgl.host import EID, ETYPE, NID, NTYPE, missing
from graphwire.dgl.subset import function
from graphwire.dgl.subset.convert import create_block, from_scipy, graph, heterograph
from graphwire.dgl.subset.data import load_graphs, save_graphs
from graphwire.dgl.subset.frame import DGLError
from graphwire.dgl.subset.graph import DGLBlock, DGLGraph
from graphwire.dgl.subset.transforms import (
    add_edges,
    add_reverse_edges,
    add_self_loop,
    compact_graphs,
    edge_subgraph,
    in_subgraph,
    node_subgraph,
    remove_edges,
    remove_self_loop,
    reverse,
    to_bidirected,
    to_block,
)

__version__ = "1.1.3+graphwire"
__all__ = [
    "ALL", "EID", "ETYPE", "NID", "NTYPE", "DGLBlock", "DGLError", "DGLGraph", "add_edges", "add_reverse_edges",
    "add_self_loop", "compact_graphs", "create_block", "edge_subgraph", "from_scipy", "function", "graph",
    "heterograph", "in_subgraph", "load_graphs", "node_subgraph", "remove_edges", "remove_self_loop", "reverse",
    "save_graphs", "seed", "to_bidirected", "to_block"]
is_graphwire_subset = True
backend_name = "pytorch"
DEFAULT_NTYPE, DEFAULT_ETYPE = "_N", ("_N", "_E", "_N")
ALL = "__ALL__"
DGLHeteroGraph = DGLGraph


def seed(value: int) -> None:
    """Sets the seed of Python's, NumPy's and PyTorch's random numbers. PyTorch's determine the sampling too."""
    _random.seed(value)
    _numpy.random.seed(value % 2**32)
    _torch.manual_seed(value)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing(f"dgl.{name}")
