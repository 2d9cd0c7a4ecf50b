"""Converts ids, in the forms that DGL's callers use, to int64 tensors. _base/arrays.py defines ids and masks."""

from __future__ import annotations

from typing import Any

import torch

from graphwire._base import arrays as _arrays
from graphwire._graph.graph import Feature
from graphwire._graph.tensor import Tensor


def nodes_of(g: Any, ntype: Any = None) -> int:
    """The number of nodes of a type, or of all types; of a DistGraph, the RowsOf that a mask of them must have."""
    count: int = getattr(g, "_nodes_of", g.num_nodes)(ntype)
    return count


def edges_of(g: Any, etype: Any = None) -> int:
    """As nodes_of, for edges."""
    count: int = getattr(g, "_edges_of", g.num_edges)(etype)
    return count


def ids_tensor(ids: Any, count: int | None, what: str = "ids") -> torch.Tensor:
    """Converts ids, or a mask or slice of `count` rows. The result of a contiguous int64 tensor shares its memory.
    Raises the errors of arrays.ids_array, and TypeError for a graphwire.Feature of edges, whose rows are not
    in the order of DGL's edge ids."""
    if isinstance(ids, (Feature, Tensor)) and getattr(ids.rows_of, "of_edges", False):
        raise TypeError(f"{what}: {ids!r} is in the order of the graph's own edges: give the DistTensor")
    return torch.from_numpy(_arrays.ids_array(ids, count, what))
