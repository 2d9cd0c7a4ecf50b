"""Removes the nodes without edges from the graphs of a batch of edges.

    lists of ends of each node type -> different ids in the order in which they appear -> graphs of these nodes

dgl.compact_graphs does the same with a table of 2 MiB for each node type, which takes longer than a batch's edges do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from graphwire.dgl import host


def _renumbered(lists: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """(different ids in the order of their first appearance, the lists with places among these for ids)."""
    sizes = [len(ids) for ids in lists]
    every = torch.cat(list(lists)).numpy() if lists else np.empty(0, np.int64)
    ascending, first, places = np.unique(every, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return (torch.from_numpy(ascending[order].astype(np.int64)),
            list(torch.from_numpy(number[places.reshape(-1)].astype(np.int64)).split(sizes)))


def compacted(graphs: Sequence[Any]) -> list[Any]:
    """The graphs, which have the same node types, without the nodes that have no edge in any of them. ndata[dgl.NID]
    has the former ids. Ids are int64. Edges keep their order; columns are not kept."""
    lists: dict[str, list[torch.Tensor]] = {ntype: [] for ntype in graphs[0].ntypes}
    for graph in graphs:
        for etype in graph.canonical_etypes:
            for ntype, ids in zip((etype[0], etype[2]), graph.edges(form="uv", order="eid", etype=etype)):
                lists[ntype].append(ids)
    found = {ntype: _renumbered(some) for ntype, some in lists.items()}
    places = {ntype: iter(some) for ntype, (_, some) in found.items()}
    counts = {ntype: len(ids) for ntype, (ids, _) in found.items()}
    made = []
    for graph in graphs:
        small = host.dgl().heterograph({etype: (next(places[etype[0]]), next(places[etype[2]]))
                                        for etype in graph.canonical_etypes}, counts)
        for ntype in small.ntypes:
            small.nodes[ntype].data[host.NID] = found[ntype][0]
        made.append(small)
    return made
