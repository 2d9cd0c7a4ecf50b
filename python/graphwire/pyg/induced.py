"""The induced subgraph of a batch: all edges among its nodes, in the place of those that were drawn.

    nodes of a batch, their groups if it is disjoint -> Graph.subgraph -> edge_index and edge ids -> rows of the edges

The draws decide which nodes a batch has. Each row of edge_index[1] has all edges that end at it, in the order of the
graph; a node that repeats, because a seed does, is a source at its first row. In a disjoint batch an edge is among the
nodes of one seed. Parallel edges, loops, and edges of weight 0 are edges; held-out edges are not. With times, an edge
whose time is later than that of its seed is no edge.

Errors: those of Graph.subgraph, and of reading rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from graphwire._base.arrays import gather_all, real_code
from graphwire._base.times import not_later
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import HeldOut
from graphwire._graph.rules import Rules
from graphwire.pyg.fetched import ORIGINAL, Fetched
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.rows import stacked
from graphwire.pyg.sampled import Sampled
from graphwire.pyg.subgraph import EdgeType, triple


class Among:
    """All edges among nodes. times: {edge type: its time} of the types whose edges have times, or None; until: the time
    of each group's seed, or None. held_out: edges that are left out."""

    def __init__(self, graph: Graph, held_out: HeldOut | None, times: Mapping[str, str] | None,
                 until: Mapping[str, torch.Tensor] | None):
        self._graph, self._held_out, self._times = graph, held_out, times
        self._until = None if until is None else np.concatenate([np.asarray(some) for some in until.values()])

    def find(self, nodes: Mapping[str, torch.Tensor],
             groups: Mapping[str, torch.Tensor] | None) -> dict[EdgeType, tuple[torch.Tensor, torch.Tensor]]:
        """{edge type: (edge_index, the graph's ids of the edges)} of all edge types. nodes: the graph's ids, by type;
        groups: the seed of each, or None: the batch is not disjoint."""
        graph = self._graph
        found = {etype: [np.asarray(some) for some in (among.src, among.dst, among.edge_ids)] for etype, among in (
            graph.subgraph(nodes, groups=groups, held_out=self._held_out).items())}
        if self._until is not None and groups is not None:
            columns = {graph.etypes[number]: column for number, column in (
                Rules(graph, time=self._times).columns.items())}
            read = gather_all(graph._opened(), [(column, found[etype][2]) for etype, column in columns.items()], None)
            for etype, times in zip(columns, read):
                seeds = np.asarray(groups[graph.ends(etype)[1]])[found[etype][1]]
                eligible = not_later(np.asarray(times), self._until[seeds])
                found[etype] = [some[eligible] for some in found[etype]]
        return {triple(etype): (stacked(src, dst), torch.from_numpy(np.asarray(ids)))
                for etype, (src, dst, ids) in found.items()}


class Induced(Sampled):
    """features: what is read for edges, {edge type: features}; None: the caller does without ids of edges. dtype: of
    those of real numbers, or None."""

    def __init__(self, fetched: Fetched, ids: OriginalIds, features: Mapping[str, list[str]] | None,
                 dtype: Any, among: Among):
        super().__init__(fetched, ids)
        graph, groups = ids.graph, fetched.groups()
        nodes = {ntype: self._of_nodes(ntype, some) for ntype, some in zip(graph.ntypes, fetched.nodes())}
        self._among = among.find(nodes, None if groups is None else dict(zip(graph.ntypes, groups)))
        self._ids_wanted = features is not None
        named = [(etype, name) for etype, names in (features or {}).items() for name in names]
        asked = [(graph.feature(name, etype=etype).pointer(), self._among[triple(etype)][1]) for etype, name in named]
        read = gather_all(graph._opened(), asked, torch, [real_code(dtype, torch)] * len(asked))
        self._edge_rows = dict(zip(named, map(torch.as_tensor, read)))

    def edge_rows(self, etype: str, name: str) -> torch.Tensor:
        return self._edge_rows[etype, name]

    def _edges(self) -> tuple[dict[EdgeType, torch.Tensor], dict[EdgeType, torch.Tensor | None]]:
        return ({etype: ends for etype, (ends, _) in self._among.items()},
                {etype: self._edge_rows.get((":".join(etype), ORIGINAL), ids) if self._ids_wanted else None
                 for etype, (_, ids) in self._among.items()})

    def _counts(self) -> tuple[None, None]:
        """None, as in PyG: the edges do not come hop by hop."""
        return None, None
