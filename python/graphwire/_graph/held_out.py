"""Edges that sampling keeps out of every mini-batch: validation and test edges.

    held = graphwire.HeldOut(graph, valid_edges)                            # by ids
    held = graphwire.HeldOut(graph, ends=(src, dst), by="orig")             # by ends, in the caller's own ids
    loader = graphwire.EdgeLoader(graph, train_edges, [10, 5], held_out=held)

ids or ends -> the graph's ids -> a gw_held_out, which loaders and calls of sample share

Errors: TypeError, ValueError and IndexError for values that are not ids; OutOfRangeError and NotFoundError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._base.native import check, ffi, lib, owned
from graphwire._base.opened import Etype, OpenedGraph
from graphwire._graph import ids as ids_module


def pair_of(ends: Any, what: str) -> tuple[Any, Any]:
    """(sources, destinations) of ends: a pair of arrays, or one array [2, n]. Raises ValueError."""
    shape = getattr(ends, "shape", None)
    two = hasattr(ends, "__len__") and shape != () and len(ends) == 2
    if isinstance(ends, (str, bytes, Mapping)) or not two or (shape is not None and len(shape) != 2):
        raise ValueError(f"{what} are (sources, destinations), or an array of shape [2, n]"
                         + ("" if shape is None else f", not {list(shape)}"))
    return ends[0], ends[1]


def _by_type(given: Any, etype: Etype | None) -> dict[Any, Any]:
    return {} if given is None else dict(given) if isinstance(given, Mapping) else {etype: given}


def pointer_of(held_out: Any) -> Any:
    """The gw_held_out of a HeldOut; NULL for None. Raises TypeError for other values."""
    if held_out is None:
        return ffi.NULL
    if not isinstance(held_out, HeldOut):
        raise TypeError(f"held_out is a graphwire.HeldOut, not {checks.shown(held_out)}")
    return held_out.pointer


@keywords
class HeldOut:
    """Edges that are not sampled, whatever the seeds of a mini-batch: NodeLoader, EdgeLoader, sample and
    graphwire.pyg.NeighborSampler take it as held_out=.

    graph: the graph. The object can be used with the graph's copies in other processes too.
    ids: ids of edges, or a mask of all edges of the type; or {edge type: such}.
    ends: (sources, destinations), or an array [2, n]: all edges with these ends, including parallel ones; or {edge
        type: such}. A pair need not be an edge of the graph.
    etype: the edge type; None: the only one.
    by: "orig": ids are the edges' rows in the input, and ends are original ids of nodes; see Graph.ids_of.

    An edge is left out after the draw, so a node may get fewer edges than its fanout. Give reverse edges too, if the
    graph has them. To draw as if the edges did not exist, make a graph without them. The object takes 48 to 100 bytes
    for each edge.

    Raises OutOfRangeError, which names the first id that does not exist; NotFoundError for an edge type that does not
    exist, and the errors of ids_of with by="orig"; ValueError and TypeError for other values.
    """

    __module__ = "graphwire"

    def __init__(self, graph: OpenedGraph, ids: Any = None, *, ends: Any = None, etype: Etype | None = None,
                 by: str = "graph"):
        lists: list[tuple[int, tuple[np.ndarray, ...]]] = []
        for kind, some in _by_type(ids, etype).items():
            number = graph.etype_number(kind)
            lists.append((number, (ids_module.edge_array(graph, number, some, by).copy(),)))
        for kind, pair in _by_type(ends, etype).items():
            number = graph.etype_number(kind)
            lists.append((number, tuple(
                ids_module.node_array(graph, end, some, by, "ends").copy()
                for some, end in zip(pair_of(pair, "ends"), graph._ends[number]))))
        self._make(graph, lists)

    def _make(self, graph: OpenedGraph, lists: list[tuple[int, tuple[np.ndarray, ...]]]) -> None:
        self._graph, self._lists = graph, lists
        given = ffi.new("struct gw_held_out_list[]", len(lists))
        for out, (number, arrays) in zip(given, lists):
            if len({len(array) for array in arrays}) > 1:
                raise ValueError(f"ends: {len(arrays[0])} sources and {len(arrays[1])} destinations")
            out.etype, out.count = number, len(arrays[0])
            names = ("ids",) if len(arrays) == 1 else ("src", "dst")
            for name, array in zip(names, arrays):
                setattr(out, name, _arrays.pointer(array, "int64_t *"))
        self._held = owned("struct gw_held_out **", lib.held_out_end)
        check(lib.gw_held_out_open(graph._opened().pointer, given, len(lists), self._held))

    @property
    def pointer(self) -> Any:
        return self._held[0]

    def __len__(self) -> int:
        """The number of ids and pairs."""
        return sum(len(arrays[0]) for _, arrays in self._lists)

    def __getstate__(self) -> dict[str, Any]:
        return {"graph": self._graph, "lists": self._lists}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._make(state["graph"], state["lists"])

    def __repr__(self) -> str:
        return f"<graphwire.HeldOut of {self._graph.name}: {len(self)} ids and pairs>"
