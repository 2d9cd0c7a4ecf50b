"""Checks seeds, which are nodes or edges of one type or of several, and converts them to C's structures.

seeds as given -> NodeSeeds or EdgeSeeds -> gw_seeds, gw_edge_seeds -> a loader, or one mini-batch

A loader reads its seeds until it closes, and again when it starts anew. So the seeds are copies, which the loader
keeps: a caller that changes its arrays afterwards changes no batch.

Errors: ValueError, TypeError and IndexError; InvalidError and NotFoundError; ResourceError if memory runs out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Ids
from graphwire._base.escape import plain
from graphwire._base.native import ResourceError, c_name, ffi, lib, owned
from graphwire._base.opened import Etype
from graphwire._graph import time_ranges
from graphwire._graph.fanouts import etype_of
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import pair_of
from graphwire._graph.rules import Rules, listed
from graphwire._graph.seed_times import SeedTimes, by_list, node_time, own_times

Seeds = Union[Ids, Mapping[Any, Union[Ids, None]], None]  # ids, or {type: ids}
_EXCLUDE = {"edges": "GW_EXCLUDE_EDGES", "ends": "GW_EXCLUDE_ENDS", "reverse": "GW_EXCLUDE_REVERSE"}


class _Lists:
    """Seeds by type. types: the types' numbers; ids: their arrays, None for all of a type; lists: a gw_seeds for each
    type, for C. empty: the seeds are {}, which names no type, and so there are no batches.

    memory: a held_memory with copies that the loader reads until it closes. The loader copies everything else when it
    opens.

    one: the seeds are of one mini-batch. Then None does not mean all nodes of a type, and {} raises ValueError.
    """

    memory: Any = None
    of_edges = False
    several: bool
    pairs: Mapping[int, Any] = {}  # the types whose ids are places among pairs of ends

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
        self.counts = [counts[kind] if ids is None else len(ids) for kind, ids in zip(self.types, self.ids)]
        self.lists = ffi.new("struct gw_seeds[]", [
            {"type": kind, "count": 0 if ids is None else len(ids),  # C reads NULL as all of a type
             "ids": ffi.NULL if ids is None else _arrays.pointer(ids, "int64_t *")}
            for kind, ids in zip(self.types, self.ids)])

    def _for_negatives(self, graph: Graph, rules: Rules) -> bool:
        """Whether negatives need times."""
        return False

    def take_times(self, graph: Graph, rules: Rules, times: Any, window: Any, strict: bool) -> SeedTimes:
        """Sets the times of the lists; this object keeps the arrays. NodeLoader documents the arguments."""
        for_negatives = self._for_negatives(graph, rules)
        if for_negatives and not rules.times and times is None:
            raise checks.invalid("exist_time and exist_end need times=, one for each seed")
        types, number = (graph.etypes, graph.etype_number) if self.of_edges else (graph.ntypes, graph.ntype_number)
        names = [] if self.empty else [types[kind] for kind in self.types]

        def of_lists(given: Any, what: str) -> list[Any]:
            found = by_list(given, names, lambda kind: types[number(kind)], what, self.several)
            return [None if given is None else ()] * len(self.types) if self.empty else found

        every = of_lists(times, "times")
        if times is None and rules.times and self.empty:
            every = [()] * len(self.types)
        elif times is None and rules.times:
            if self.pairs:
                raise checks.invalid(f"times: {types[min(self.pairs)]} has seeds by their ends, which have no feature: "
                                     "give times, one for each seed")
            every = own_times(graph, rules, self.of_edges, self.types, self.ids)
        self.times = SeedTimes(rules, self.counts, every, of_lists(window, "window"), strict, for_negatives)
        if times is not None:
            time_ranges.compare(graph, rules, self.times.until)
        for place in range(len(self.types) if self.times.until else 0):
            self.times.put(self.lists[place], place)
            self.lists[place].count = self.counts[place]
        return self.times


def _of_rank(graph: Graph, given: Mapping[Any, Any]) -> bool:
    """Whether some of the seeds are an array that Graph.split returned, and so one rank's share already."""
    def is_share(ids: Any) -> bool:
        known = graph._shares.get(id(ids))
        return known is not None and known() is ids

    return any(ids is not None and is_share(ids) for ids in given.values())


class NodeSeeds(_Lists):
    """Seeds that are nodes. NodeLoader documents the arguments."""

    def __init__(self, graph: Graph, seeds: Seeds, ntype: str | None, one: bool = False):
        self.several = isinstance(seeds, Mapping)
        if self.several and ntype is not None:
            raise ValueError("ntype: the seeds are {node type: ids}, which names the types: leave ntype out")
        given = seeds if isinstance(seeds, Mapping) else {graph.ntypes[graph.ntype_number(ntype)]: seeds}
        super().__init__(given, graph.ntype_number, graph._node_counts, one)
        self.of_rank = _of_rank(graph, given)


class EdgeSeeds(_Lists):
    """Seeds that are edges. pointer: an array with a gw_edge_seeds for each type. EdgeLoader documents the arguments.
    """

    of_edges = True

    def __init__(self, graph: Graph, seeds: Seeds, etype: Etype | None, ends: Any = None, **options: Any):
        if seeds is None and isinstance(ends, Mapping):
            seeds = dict.fromkeys(ends)
        self.several = isinstance(seeds, Mapping)
        if self.several and etype is not None:
            raise ValueError("etype: the seeds are {edge type: ids}, which names the types: leave etype out")
        given = seeds if isinstance(seeds, Mapping) else {graph.etypes[graph.etype_number(etype)]: seeds}
        self.pairs = pairs = self._pairs(graph, given, ends)
        counts = [len(pairs[kind][0]) if kind in pairs else count for kind, count in enumerate(graph._edge_counts)]
        super().__init__(given, graph.etype_number, counts, False)
        self.of_rank = _of_rank(graph, given)
        by_type = {name: self._by_type(graph, name, option) for name, option in options.items()}
        self._exist = list(zip(by_type.pop("exist_time"), by_type.pop("exist_end")))
        self._texts: list[Any] = []
        self._kept: list[np.ndarray] = []
        self.pointer = ffi.new("struct gw_edge_seeds[]", len(self.types))
        for place, kind in enumerate(self.types):
            self.pointer[place].etype = kind
            if not self.empty:
                self._fill(graph, self.pointer[place], **{name: option[place] for name, option in by_type.items()})
            if kind in pairs:
                self._take(self.pointer[place], pairs[kind], graph.etypes[kind])

    def _for_negatives(self, graph: Graph, rules: Rules) -> bool:
        """Sets which nodes are negatives: those that exist at the times of the edges."""
        found = False
        for out, (time, end) in zip(self.pointer[0:len(self.types)], self._exist):
            ntype = graph._ends[out.etype][out.negatives == lib.GW_NEGATIVES_DST]
            if time is None and rules.times and out.negatives_each and out.negative_ids == ffi.NULL:
                time = node_time(graph, rules, ntype)
            if checks.is_bool(time) and time:
                raise TypeError("exist_time: the name of a node feature, or False, not True")
            for field, name in (("exist_time", None if checks.is_bool(time) else time), ("exist_end", end)):
                if name is not None:
                    self._texts.append(ffi.new("char[]", c_name(field, name)))
                    setattr(out, field, self._texts[-1])
                    rules.compare_with(graph, [tensor for tensor, one in listed(graph) if not tensor.of_edges
                                               and tensor.type == ntype and one == name])
                    found = True
        return found

    @staticmethod
    def _pairs(graph: Graph, given: Mapping[Any, Any], ends: Any) -> dict[int, tuple[np.ndarray, ...]]:
        """{edge type's number: (sources, destinations)} of the types whose seeds are given by their ends."""
        if ends is not None and not isinstance(ends, Mapping):
            if len(given) != 1:
                raise ValueError("ends: the seeds are of several edge types: give {edge type: ends}")
            ends = {next(iter(given)): ends}
        found: dict[int, tuple[np.ndarray, ...]] = {}
        for etype, pair in (ends or {}).items():
            number = graph.etype_number(None) if etype is None else etype_of(graph, etype, found, "ends")
            found[number] = tuple(_arrays.ids_array(ids, graph._node_counts[end], "ends")
                                  for ids, end in zip(pair_of(pair, "ends"), graph._ends[number]))
            if len(found[number][0]) != len(found[number][1]):
                raise ValueError(f"ends: {len(found[number][0])} sources and {len(found[number][1])} destinations")
        other = found.keys() - {graph.etype_number(etype) for etype in given}
        if other:
            raise ValueError(f"ends: {graph.etypes[min(other)]} has no seeds")
        return found

    def _take(self, out: Any, pair: tuple[np.ndarray, ...], etype: str) -> None:
        if out.exclude & (lib.GW_EXCLUDE_EDGES | lib.GW_EXCLUDE_REVERSE_IDS):
            raise ValueError(f'{etype}: seeds given by their ends have no ids: exclude "ends" instead of "edges", and '
                             "reverses without reverse_ids")
        out.src, out.dst, out.pair_count = self._copied(pair[0]), self._copied(pair[1]), len(pair[0])

    def _by_type(self, graph: Graph, name: str, option: Any) -> list[Any]:
        """The option's value for each type with seeds. `option` is one value for all types, or {edge type: value};
        types that it does not name get None."""
        if not isinstance(option, Mapping):
            return [option] * len(self.types)
        found: dict[int, Any] = {}
        for kind, value in option.items():
            found[etype_of(graph, kind, found, name)] = value
        other = found.keys() - set(self.types)
        if other:
            raise ValueError(f"{name}: {graph.etypes[min(other)]} has no seeds")
        return [found.get(kind) for kind in self.types]

    def _fill(self, graph: Graph, out: Any, negatives: int | None, negative_end: str | None, negative_ids: Ids | None,
              no_true_edges: bool | None, exclude: Sequence[str] | None, reverse_etype: Etype | None,
              reverse_ids: Ids | None) -> None:
        end = checks.choice("negative_end", "dst" if negative_end is None else negative_end, ("dst", "src"))
        words = {exclude} if isinstance(exclude, str) else set(exclude or ())
        if words - _EXCLUDE.keys():
            raise ValueError(f"exclude has {plain(', '.join(sorted(map(str, words - _EXCLUDE.keys()))))}; the words "
                             f"are {', '.join(_EXCLUDE)}")
        out.exclude = sum(getattr(lib, _EXCLUDE[word]) for word in words)
        out.no_true_edges = no_true_edges is not None and checks.flag("no_true_edges", no_true_edges)
        out.negatives_each = 0 if negatives is None else checks.integer("negatives", negatives)
        if not out.negatives_each:
            checks.unused("negatives is 0", negative_ids=negative_ids, no_true_edges=no_true_edges or None,
                          negative_end=end if end == "src" else None)
        if out.negatives_each:
            out.negatives = lib.GW_NEGATIVES_DST if end == "dst" else lib.GW_NEGATIVES_SRC
        if negative_ids is not None:
            some = self._keep("negative_ids", negative_ids, graph._node_counts[graph._ends[out.etype][end == "dst"]])
            out.negative_ids, out.negative_id_count = _arrays.pointer(some, "int64_t *"), len(some)
        if reverse_etype is not None or reverse_ids is not None:
            out.reverse_etype = graph.etype_number(reverse_etype)
            out.exclude |= lib.GW_EXCLUDE_REVERSE_TYPE if reverse_ids is None else lib.GW_EXCLUDE_REVERSE_IDS
        if reverse_ids is not None:
            some = _arrays.ids_array(reverse_ids, graph._edge_counts[graph.etype_number(reverse_etype)], "reverse_ids")
            out.reverse_ids, out.reverse_id_count = self._copied(some), len(some)

    def _copied(self, ids: np.ndarray) -> Any:
        """Copies ids to `memory`, which the loader shares."""
        if self.memory is None:
            self.memory = owned("struct held_memory *", lib.memory_end)
        copy = lib.memory_copy(self.memory, ffi.from_buffer(ids), ids.nbytes)
        if copy == ffi.NULL:
            raise ResourceError("GW_NO_MEMORY", f"no memory for a copy of {len(ids)} ids")
        return ffi.cast("int64_t *", copy)

    def _keep(self, what: str, ids: Ids, count: int) -> np.ndarray:
        self._kept.append(_arrays.own_ids(ids, count, what))
        return self._kept[-1]
