"""Translates between an edge's id in the graph and its original id, the row of the input.

    ids = EdgeIds(graph)
    if ids.translates("cites"):
        rows = ids.to_original("cites", batch_edges)         # rows of the caller's own arrays
        edges = ids.to_position("cites", rows)               # what graph.find_edges and features take

In the graph an edge's id is its position among the edges of its type (docs/FORMAT.md). A graph in one part stores two
arrays for each edge type: from positions to original ids, and back. A call fetches the rows that it needs from the
arrays' owner, over any transport. This costs a request for each call, but no process needs an array of all edges.

`graphwire.dgl` and `graphwire.pyg` take and return original ids. All other parts of the package, and C, take and return
positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base.arrays import Array, Ids
from graphwire._base.keywords import keywords
from graphwire._base.native import NotFoundError, OutOfRangeError
from graphwire._base.opened import Etype
from graphwire._graph.graph import Feature, Graph

_ORIGINAL, _INVERSE = "orig_id", "orig_id.inverse"


@keywords
class EdgeIds:
    """Translates the edge ids of one graph. It keeps the graph open, and can be pickled and forked as the graph can.

    Methods take ids in the forms that graph.feature(…)[ids] takes: integers in any order, also repeated or empty; a
    slice; a mask. Results are int64, [len(ids)], and own their memory: torch tensors on the CPU, or NumPy arrays if the
    graph was opened with numpy=True.
    """

    __module__ = "graphwire"

    def __init__(self, graph: Graph):
        self._graph = graph
        self._found: dict[int, tuple[Feature, Feature] | None] = {}

    def __repr__(self) -> str:
        return f"<graphwire.EdgeIds of {self._graph.name}>"

    def _parts_translate(self) -> bool:
        """Whether ids are translated in a graph in several parts too."""
        return False

    def _arrays(self, number: int) -> tuple[Feature, Feature] | None:
        """(orig_id, orig_id.inverse) of an edge type; None unless the graph has both."""
        if number not in self._found:
            found = None
            if self._graph.num_parts == 1 or self._parts_translate():
                etype = self._graph.etypes[number]
                try:
                    inverse = self._graph.feature(_INVERSE, etype=etype)
                    found = self._graph.feature(_ORIGINAL, etype=etype), inverse
                except NotFoundError:
                    pass
            self._found[number] = found
        return self._found[number]

    def translates(self, etype: Etype | None = None) -> bool:
        """Whether every edge of the type has a unique original id, 0 to num_edges(etype) - 1, and to_position can
        translate it back. False for a graph in several parts, for edges that undirected=True has doubled, and for a
        graph of version 0.1. Raises NotFoundError for an edge type that does not exist."""
        number = self._graph.etype_number(etype)
        found = self._arrays(number)
        return found is not None and len(found[1]) == self._graph._edge_counts[number]

    def is_known(self, etype: Etype | None = None) -> bool:
        """Whether the edges of the type have original ids, 0 to num_originals(etype) - 1. Several edges may share an
        original id: in an undirected graph both directions of an edge are one row of the input. Raises NotFoundError
        for an edge type that does not exist."""
        return self._arrays(self._graph.etype_number(etype)) is not None

    def num_originals(self, etype: Etype | None = None) -> int:
        """The number of original ids of an edge type. Raises NotFoundError if the type does not exist, or if is_known()
        is false."""
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
        array = _arrays.ids_array(ids, rows.rows_of)
        wrong = array[(array < 0) | (array >= len(rows))]
        if len(wrong):
            raise OutOfRangeError("GW_RANGE", f"{rows.type}: no edge has the {what} {wrong[0]}; there are {len(rows)}")
        found: Any = rows[array]
        return found.astype(np.int64) if isinstance(found, np.ndarray) else found

    def to_original(self, etype: Etype | None, positions: Ids) -> Array:
        """The original id of each edge, [len(positions)] int64.

        etype: None: the only edge type. positions: the graph's ids of edges.

        Raises NotFoundError if the type does not exist or is_known() is false; OutOfRangeError, which names the first
        id that no edge has; TypeError for values that are not ids; PeerError and DeadlineError if the server does not
        answer.
        """
        return self._fetch(self._both(etype)[0], positions, "position")

    def to_position(self, etype: Etype | None, originals: Ids) -> Array:
        """The graph's id of the edge with each original id, [len(originals)] int64. If several edges share an original
        id, the result is the first of them.

        Raises the errors of to_original. OutOfRangeError names the first original id that no edge has.
        """
        if getattr(type(originals), "rows_by_id", False):
            raise TypeError(f"originals: {originals!r} is in the order of the positions: to_original takes it")
        return self._fetch(self._both(etype)[1], originals, "original id")
