"""Edge ids as a script has them, and as the graph has them.

    a script's ids -> positions -> native calls -> positions -> a script's ids

DGL keeps edge ids in one part and gives new ones in several. The graph's own are always new: positions. In one part
each id that enters or leaves graphwire.dgl is translated here, by arrays of the graph's that are fetched row by row
(graphwire.edge_ids). In several parts, and in a graph without these arrays, ids are positions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

import graphwire
from graphwire.dgl.types import Canonical
from graphwire.edge_ids import EdgeIds

_told = False


class UserEdges:
    """Of one graph. Any thread may use it. Errors as graphwire.edge_ids.EdgeIds': OutOfRangeError names an id that no
    edge has."""

    def __init__(self, graph: graphwire.Graph):
        self._ids = EdgeIds(graph)
        self._kept: dict[Canonical, bool] = {}

    def keeps(self, etype: Canonical) -> bool:
        """Are ids of this type those that its edges had before the graph was cut?"""
        if etype not in self._kept:
            self._kept[etype] = self._ids.translates(":".join(etype))
        return self._kept[etype]

    def positions(self, etype: Canonical, ids: Any) -> Any:
        """What native calls take for a script's ids: [len(ids)] int64, or ids as they are."""
        return self._ids.to_position(":".join(etype), ids) if self.keeps(etype) else ids

    def of(self, etype: Canonical, positions: Any) -> torch.Tensor:
        """The script's ids of edges that native calls gave, [len(positions)] int64."""
        return torch.as_tensor(self._ids.to_original(":".join(etype), positions) if self.keeps(etype) else positions)


def tell_lost(edges: UserEdges, etypes: Sequence[Canonical]) -> None:
    """Once in a process: a graph in one part does not know the ids of its edges."""
    global _told
    lost = [":".join(etype) for etype in etypes if not edges.keeps(etype)]
    if lost and not _told:
        _told = True
        warnings.warn(f"edge ids of {', '.join(lost)} are new ones, although the graph is in one part: its files have "
                      "no own id for each edge. Cut the graph again with partition_graph, or graphwire import "
                      "--edge-ids, of this version, without --undirected", stacklevel=3)
