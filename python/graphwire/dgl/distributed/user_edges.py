"""Translates edge ids between a script's ids and the graph's own, the positions.

    a script's ids -> positions -> native calls -> positions -> a script's ids

DGL keeps edge ids in a graph of one part, and renumbers the edges of several parts. Graphwire always renumbers them. So
in one part, each id that enters or leaves graphwire.dgl is translated here, by arrays of the graph whose rows are
fetched as needed (graphwire.edge_ids). In several parts, and in a graph without these arrays, ids are positions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

import graphwire
from graphwire._base.caller import level_of_the_caller
from graphwire._graph.edge_ids import EdgeIds
from graphwire.dgl.types import Canonical

_warned = False


class UserEdges:
    """Translates the edge ids of one graph. Any thread may use it. It raises the errors of graphwire.EdgeIds, such as
    OutOfRangeError for an id that no edge has."""

    def __init__(self, graph: graphwire.Graph):
        self._ids = EdgeIds(graph)
        self._kept: dict[Canonical, bool] = {}

    def keeps(self, etype: Canonical) -> bool:
        """Whether the ids of an edge type are those before the partition."""
        if etype not in self._kept:
            self._kept[etype] = self._ids.translates(":".join(etype))
        return self._kept[etype]

    def positions(self, etype: Canonical, ids: Any) -> Any:
        """The positions of a script's ids, [len(ids)] int64; `ids` itself if they are positions."""
        return self._ids.to_position(":".join(etype), ids) if self.keeps(etype) else ids

    def of(self, etype: Canonical, positions: Any) -> torch.Tensor:
        """The script's ids for positions that native calls returned, [len(positions)] int64."""
        return torch.as_tensor(self._ids.to_original(":".join(etype), positions) if self.keeps(etype) else positions)


def warn_lost(edges: UserEdges, etypes: Sequence[Canonical]) -> None:
    """Warns, once in a process, that a graph in one part does not have the original ids of its edges."""
    global _warned
    lost = [":".join(etype) for etype in etypes if not edges.keeps(etype)]
    if lost and not _warned:
        _warned = True
        warnings.warn(f"edge ids of {', '.join(lost)} are new ones, although the graph is in one part: its files have "
                      "no original id for each edge. Partition the graph again with this version, by partition_graph, "
                      "or by graphwire import --edge-ids without --undirected", stacklevel=level_of_the_caller())
