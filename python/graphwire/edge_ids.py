"""The ids that edges had before they were part of a graph, and those that they have in it.

    ids = EdgeIds(graph)
    if ids.translates("cites"):
        rows = ids.to_original("cites", batch_edges)         # rows of the caller's own arrays
        edges = ids.to_position("cites", rows)               # what graph.find_edges and features take

In the graph an edge's id is its position among the edges of its type (docs/FORMAT.md). Its original id is the row of
the input. A graph in one part has both ways as arrays, of which a call fetches the rows that it needs from their owner,
over any transport: no process holds an array of all edges. `graphwire.dgl` and `graphwire.pyg` translate by them; all
other names of the package, and C, take and return positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphwire import _arrays
from graphwire._arrays import Array, Ids
from graphwire._native import NotFoundError, OutOfRangeError
from graphwire._opened import Etype
from graphwire.graph import Feature, Graph

_ORIGINAL, _INVERSE = "orig_id", "orig_id.inverse"


class EdgeIds:
    """Translates edge ids of one graph, which it keeps. It passes through pickle and forks as the graph does.

    Ids are what graph.feature(…)[ids] takes: integers in any order, repeated or none at all, a slice, a mask. Results
    are int64, [len(ids)], the caller's own memory: torch tensors of the host, or NumPy arrays of a graph that was
    opened with numpy=True.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._found: dict[int, tuple[Feature, Feature] | None] = {}

    def _arrays(self, number: int) -> tuple[Feature, Feature] | None:
        """(orig_id, orig_id.inverse) of an edge type; None: the graph does not have both."""
        if number not in self._found:
            found = None
            if self._graph.num_parts == 1:
                etype = self._graph.etypes[number]
                try:
                    inverse = self._graph.feature(_INVERSE, etype=etype)
                    found = self._graph.feature(_ORIGINAL, etype=etype), inverse
                except NotFoundError:
                    pass
            self._found[number] = found
        return self._found[number]

    def translates(self, etype: Etype | None = None) -> bool:
        """Whether every edge of the type has an original id of its own, 0 to num_edges(etype) - 1, and the graph has
        the way back: one part, no edges doubled by undirected=True, no graph of version 0.1. Raises NotFoundError for
        a type."""
        number = self._graph.etype_number(etype)
        found = self._arrays(number)
        return found is not None and len(found[1]) == self._graph._edge_counts[number]

    def is_known(self, etype: Etype | None = None) -> bool:
        """Whether original ids are known, 0 to num_originals(etype) - 1, of which several edges may share one: those
        of an undirected graph, whose two directions are one row of the input. Raises NotFoundError for a type."""
        return self._arrays(self._graph.etype_number(etype)) is not None

    def num_originals(self, etype: Etype | None = None) -> int:
        """How many original ids there are. Raises NotFoundError for a type, and where they are not known."""
        return len(self._both(etype)[1])

    def _both(self, etype: Etype | None) -> tuple[Feature, Feature]:
        number = self._graph.etype_number(etype)
        found = self._arrays(number)
        if found is None:
            parts = self._graph.num_parts
            why = (f"the graph is in {parts} parts" if parts > 1 else
                   f'it has no "{_INVERSE}": make the graph again (graphwire import --edge-ids)')
            raise NotFoundError("GW_NOT_FOUND", f"{self._graph.etypes[number]}: ids of edges cannot be translated: "
                                                f"{why}")
        return found

    def _fetch(self, rows: Feature, ids: Ids, what: str) -> Array:
        array = _arrays.ids_array(ids, len(rows))
        wrong = array[(array < 0) | (array >= len(rows))]
        if len(wrong):
            raise OutOfRangeError("GW_RANGE", f"{rows.type}: no edge has the {what} {wrong[0]}; there are {len(rows)}")
        found: Any = rows[array]
        return found.astype(np.int64) if isinstance(found, np.ndarray) else found

    def to_original(self, etype: Etype | None, positions: Ids) -> Array:
        """The original id of each edge, [len(positions)] int64.

        etype: None: the only one. positions: ids of edges as native calls have them.

        Raises NotFoundError for a type, and where original ids are not known (is_known); OutOfRangeError, which names
        the first id that no edge has; TypeError for what are no ids; PeerError and DeadlineError where the server
        cannot be asked.
        """
        return self._fetch(self._both(etype)[0], positions, "position")

    def to_position(self, etype: Etype | None, originals: Ids) -> Array:
        """The edge of each original id, [len(originals)] int64; where several share one, the first of them.

        Errors as to_original's; OutOfRangeError names the first original id that no edge has.
        """
        return self._fetch(self._both(etype)[1], originals, "original id")
