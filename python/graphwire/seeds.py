"""Seeds as C takes them: nodes or edges, of one type or of several. Checked, and kept while a loader reads them or may
begin again, in memory of their own: what the caller does with the arrays afterwards changes no batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy as np

from graphwire import _arrays, _checks
from graphwire._arrays import Ids
from graphwire._native import ResourceError, ffi, lib, owned
from graphwire._opened import Etype
from graphwire.graph import Graph

Seeds = Union[Ids, Mapping[Any, Union[Ids, None]], None]  # ids; of several types {type: ids}
_EXCLUDE = {"edges": "GW_EXCLUDE_EDGES", "ends": "GW_EXCLUDE_ENDS", "reverse": "GW_EXCLUDE_REVERSE"}


class _Lists:
    """gw_seeds of each type: `types` their numbers, `ids` their arrays (None: all), `lists` both, for C. memory: of
    what a loader reads until it ends; the rest is copied when it opens.

    one: of one mini-batch, where None is no short word for all of a type. {} names no type: no seeds of any.
    """

    memory: Any = None

    def __init__(self, given: Mapping[Any, Any], number: Callable[[Any], int], counts: Sequence[int], one: bool):
        self.empty = not given
        if self.empty and one:
            raise ValueError("seeds: {} names no type")
        self.types = [number(kind) for kind in given] or list(range(len(counts)))
        every = list(given.values()) or [()] * len(counts)
        array = _arrays.ids_array if one else _arrays.own_ids
        self.ids = [None if ids is None and not one else
                    array(slice(None) if ids is None else ids, counts[kind], "seeds")
                    for kind, ids in zip(self.types, every)]
        self.lists = ffi.new("struct gw_seeds[]", [
            {"type": kind, "count": 0 if ids is None else len(ids),  # to C, NULL is all of a type
             "ids": ffi.NULL if ids is None else _arrays.pointer(ids, "int64_t *")}
            for kind, ids in zip(self.types, self.ids)])


def _of_rank(graph: Graph, given: Mapping[Any, Any]) -> bool:
    """Are some of the seeds one rank's share already, as Graph.split gave it?"""
    def is_share(ids: Any) -> bool:
        known = graph._shares.get(id(ids))
        return known is not None and known() is ids

    return any(ids is not None and is_share(ids) for ids in given.values())


class NodeSeeds(_Lists):
    """Seeds that are nodes: NodeLoader tells."""

    def __init__(self, graph: Graph, seeds: Seeds, ntype: str | None, one: bool = False):
        self.several = isinstance(seeds, Mapping)
        if self.several and ntype is not None:
            raise ValueError("ntype is told by the seeds, which are {node type: ids}")
        given = seeds if isinstance(seeds, Mapping) else {ntype: seeds}
        super().__init__(given, graph.ntype_number, graph._node_counts, one)
        self.of_rank = _of_rank(graph, given)


class EdgeSeeds(_Lists):
    """Seeds that are edges, with gw_edge_seeds of each type at `pointer`: EdgeLoader tells."""

    def __init__(self, graph: Graph, seeds: Seeds, etype: Etype | None, **options: Any):
        self.several = isinstance(seeds, Mapping)
        if self.several and etype is not None:
            raise ValueError("etype is told by the seeds, which are {edge type: ids}")
        given = seeds if isinstance(seeds, Mapping) else {etype: seeds}
        super().__init__(given, graph.etype_number, graph._edge_counts, False)
        self.of_rank = _of_rank(graph, given)
        by_type = {name: self._by_type(graph, name, option) for name, option in options.items()}
        self._kept: list[np.ndarray] = []
        self.pointer = ffi.new("struct gw_edge_seeds[]", len(self.types))
        for place, kind in enumerate(self.types):
            self.pointer[place].etype = kind
            if not self.empty:
                self._fill(graph, self.pointer[place], **{name: option[place] for name, option in by_type.items()})

    def _by_type(self, graph: Graph, name: str, option: Any) -> list[Any]:
        """An option of each type with seeds: one for all, or {edge type: its own}, None where it is not named."""
        if not isinstance(option, Mapping):
            return [option] * len(self.types)
        found = {graph.etype_number(kind): value for kind, value in option.items()}
        other = found.keys() - set(self.types)
        if other:
            raise ValueError(f"{name}: {graph.etypes[min(other)]} has no seeds")
        return [found.get(kind) for kind in self.types]

    def _fill(self, graph: Graph, out: Any, negatives: int | None, negative_end: str | None, negative_ids: Ids | None,
              no_true_edges: bool | None, exclude: Sequence[str] | None, reverse_etype: Etype | None,
              reverse_ids: Ids | None) -> None:
        end = _checks.choice("negative_end", "dst" if negative_end is None else negative_end, ("dst", "src"))
        words = {exclude} if isinstance(exclude, str) else set(exclude or ())
        if words - _EXCLUDE.keys():
            raise ValueError(f"exclude has {', '.join(sorted(map(str, words - _EXCLUDE.keys())))}; there are "
                             f"{', '.join(_EXCLUDE)}")
        out.exclude = sum(getattr(lib, _EXCLUDE[word]) for word in words)
        out.no_true_edges = no_true_edges is not None and _checks.flag("no_true_edges", no_true_edges)
        out.negatives_each = 0 if negatives is None else _checks.integer("negatives", negatives)
        if out.negatives_each:
            out.negatives = lib.GW_NEGATIVES_DST if end == "dst" else lib.GW_NEGATIVES_SRC
        if negative_ids is not None:
            some = self._keep("negative_ids", negative_ids, graph._node_counts[graph._ends[out.etype][end == "dst"]])
            out.negative_ids, out.negative_id_count = _arrays.pointer(some, "int64_t *"), len(some)
        if reverse_etype is not None or reverse_ids is not None:
            out.reverse_etype = graph.etype_number(reverse_etype)
            out.exclude |= lib.GW_EXCLUDE_REVERSE_TYPE if reverse_ids is None else lib.GW_EXCLUDE_REVERSE_IDS
        if reverse_ids is not None:
            some = _arrays.ids_array(reverse_ids, graph.num_edges(reverse_etype), "reverse_ids")
            out.reverse_ids, out.reverse_id_count = self._copied(some), len(some)

    def _copied(self, ids: np.ndarray) -> Any:
        """Ids in memory that a loader shares."""
        if self.memory is None:
            self.memory = owned("struct held_memory *", lib.memory_end)
        copy = lib.memory_copy(self.memory, ffi.from_buffer(ids), ids.nbytes)
        if copy == ffi.NULL:
            raise ResourceError("GW_NO_MEMORY", f"reverse_ids: there is no memory for a copy of {len(ids)} ids")
        return ffi.cast("int64_t *", copy)

    def _keep(self, what: str, ids: Ids, count: int) -> np.ndarray:
        self._kept.append(_arrays.own_ids(ids, count, what))
        return self._kept[-1]
