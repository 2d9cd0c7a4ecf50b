"""Draws edges by a column that this process looks up: a column that the script has added, or out-edges.

all edges of the nodes -> their rows of the column -> a key for each edge -> the edges with the least keys of each node

The servers draw in-edges by the graph's own columns; sampling.py chooses. The law is the same as theirs. Without
replacement, each draw of a node is in proportion to the weights of the edges that remain; for a mask, every set of
masked edges is equally likely. No pick depends on an edge's position in its list. Every draw reads all edges of its
nodes, so nodes with many edges are slow.

Errors: ValueError for a column that holds no weights; those of graphwire.Graph.neighbours and of the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from graphwire import EdgeList
from graphwire.dgl.types import Canonical


def neighbours_by_column(g: Any, ids: torch.Tensor, etype: Canonical, fanout: int, column: Any, *, out_edges: bool,
                         replace: bool, seed: int, stream: int) -> EdgeList:
    """As graphwire.Graph.neighbours with a weight, whose values are the rows of `column` for DGL's edge ids: [edges] or
    [edges, 1], finite numbers of 0 or more, or bools. Raises ValueError for other columns."""
    found = g.graph.neighbours(ids, etype, -1, out_edges=out_edges)
    weights = _weights(column, g._user_edges.of(etype, found.edge_ids), etype)
    node = np.repeat(np.arange(len(ids)), np.diff(np.asarray(found.offsets)))
    random = np.random.default_rng([seed, stream, g.canonical_etypes.index(etype)])
    some = np.flatnonzero(weights > 0)
    if fanout >= 0:
        draw = _with_replacement if replace else _least_keys
        some = some[draw(random, node[some], weights[some], fanout)]
    offsets = np.searchsorted(node[some], np.arange(len(ids) + 1))
    chosen = torch.from_numpy(some)
    return EdgeList(torch.from_numpy(offsets), found.src[chosen], found.dst[chosen], found.edge_ids[chosen])


def _weights(column: Any, ids: torch.Tensor, etype: Canonical) -> np.ndarray:
    """[len(ids)] float64. Raises ValueError."""
    rows = torch.as_tensor(column[ids])
    if rows.ndim > 2 or (rows.ndim == 2 and rows.shape[1] != 1):
        raise ValueError(f"the column of {':'.join(etype)} has shape {list(rows.shape)}: a weight is one number for "
                         "each edge")
    weights = rows.reshape(-1).to(torch.float64).numpy()
    wrong = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(wrong):
        raise ValueError(f"edge {int(ids[wrong[0]])} of {':'.join(etype)}: its weight is {weights[wrong[0]]}: weights "
                         "are finite and 0 or more")
    return weights


def _least_keys(random: np.random.Generator, node: np.ndarray, weights: np.ndarray, fanout: int) -> np.ndarray:
    """The positions of at most `fanout` edges of each node, ascending. An edge's key is an exponential time of the rate
    of its weight; the first `fanout` times are successive draws in proportion to the weights. node: ascending."""
    order = np.lexsort((random.standard_exponential(len(node)) / weights, node))
    rank = np.arange(len(node)) - np.searchsorted(node, node)
    return np.sort(order[rank < fanout])


def _with_replacement(random: np.random.Generator, node: np.ndarray, weights: np.ndarray, fanout: int) -> np.ndarray:
    """The positions of `fanout` edges of each node that has edges, each in proportion to the weights."""
    nodes, first = np.unique(node, return_index=True)
    ends = np.append(first[1:], len(node))
    if not len(nodes):
        return np.empty(0, np.int64)
    sums = np.cumsum(weights / np.add.reduceat(weights, first)[np.searchsorted(nodes, node)])  # each node's sum is 1
    places = (sums[ends - 1] - 1)[:, None] + random.random((len(nodes), fanout))
    found = np.searchsorted(sums, places, side="right")
    return np.sort(np.clip(found, first[:, None], (ends - 1)[:, None]), 1).reshape(-1)
