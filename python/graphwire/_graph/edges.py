"""Finds edges by id or by their ends, lists edges around nodes, and divides ids among ranks.

ids -> int64 -> one C operation -> new arrays, or an EdgeList over the library's memory

Graph's methods of the same names call these functions, and document them and their errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Callable

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Ids
from graphwire._base.keywords import keywords
from graphwire._base.native import check, ffi, finish, in_thread, lib, owned
from graphwire._base.opened import Etype, OpenedGraph
from graphwire._base.times import Times
from graphwire._graph import fanouts, time_ranges
from graphwire._graph import ids as ids_module
from graphwire._graph.held_out import pointer_of
from graphwire._graph.rules import Rules
from graphwire._graph.seed_times import SeedTimes, own_times


@keywords
class EdgeList:
    """The edges that a call found for each of its questions. A question is one pair of ends, or one node. The edges of
    question i are src[offsets[i]:offsets[i + 1]], and likewise dst and edge_ids.

    offsets: [questions + 1] int64.
    src, dst, edge_ids: [edges] int64, global ids; in a result of Graph.subgraph, src and dst are rows of its nodes.

    All arrays are views of one piece of the library's memory, which is freed with the last array. The arrays of an
    EdgeList that of() returns are views too. pickle copies only this list's own edges.
    """

    __module__ = "graphwire"

    def __init__(self, offsets: Array, src: Array, dst: Array, edge_ids: Array):
        self.offsets, self.src, self.dst, self.edge_ids = offsets, src, dst, edge_ids

    def __len__(self) -> int:
        return len(self.edge_ids)

    def of(self, question: int) -> EdgeList:
        """The edges of one question, as an EdgeList of one question; -1 is the last question. Raises IndexError."""
        question = range(len(self.offsets) - 1)[question]
        part = slice(int(self.offsets[question]), int(self.offsets[question + 1]))
        return EdgeList(self.offsets[question:question + 2] - self.offsets[question], self.src[part], self.dst[part],
                        self.edge_ids[part])

    def __getstate__(self) -> dict[str, Array]:
        """Copies the arrays: torch pickles the whole memory of a tensor that is a slice."""
        return {name: array.clone() if hasattr(array, "clone") else array for name, array in self.__dict__.items()}

    def __repr__(self) -> str:
        return f"<graphwire.EdgeList: {len(self)} edges, {len(self.offsets) - 1} questions>"


def _copied(graph: OpenedGraph, pointer: Any, count: int) -> Array:
    array = np.empty(count, np.int64)
    if count:
        ffi.memmove(array, pointer, 8 * count)
    return _arrays.public(array, graph._torch)


def _list(graph: OpenedGraph, start: Callable[[Any, Any], int]) -> EdgeList:
    """Runs start(out, ticket), which makes a gw_edge_list."""
    return _lists(graph, [start])[0]


def _lists(graph: OpenedGraph, starts: list[Callable[[Any, Any], int]]) -> list[EdgeList]:
    """Runs each start(out, ticket) at the same time."""
    outs = [owned("struct gw_edge_list **", lib.edge_list_end) for _ in starts]
    finish(*[partial(start, out) for start, out in zip(starts, outs)])
    return [_edge_list(graph, out) for out in outs]


def _edge_list(graph: OpenedGraph, out: Any) -> EdgeList:
    """The arrays of the result own the gw_edge_list together."""
    found = out[0]
    return EdgeList(*[_arrays.public(_arrays.window(out, part, (count,), np.int64), graph._torch) for part, count in (
        (found.offsets, found.question_count + 1), (found.src, found.edge_count), (found.dst, found.edge_count),
        (found.edge_ids, found.edge_count))])


def _output(graph: OpenedGraph, count: int, start: Callable[[Any, Any], int], rows: int = 1) -> list[Array]:
    """Runs start(pointers, ticket), which fills `rows` int64 arrays of `count` elements. Returns the arrays."""
    arrays = [np.empty(count, np.int64) for _ in range(rows)]
    finish(lambda ticket: start([_arrays.pointer(array, "int64_t *") for array in arrays], ticket))
    return [_arrays.public(array, graph._torch) for array in arrays]


def _pairs(graph: OpenedGraph, number: int, src: Ids, dst: Ids, by: str) -> tuple[np.ndarray, np.ndarray]:
    ends = graph._ends[number]
    arrays = [ids_module.node_array(graph, end, ids, by, what)
              for ids, end, what in zip((src, dst), ends, ("src", "dst"))]
    if len(arrays[0]) != len(arrays[1]):
        raise ValueError(f"{len(arrays[0])} sources and {len(arrays[1])} destinations")
    return arrays[0], arrays[1]


def find_edges(graph: OpenedGraph, ids: Ids, etype: Etype | None, by: str) -> tuple[Array, Array]:
    number, client = graph.etype_number(etype), graph._opened()
    array = ids_module.edge_array(graph, number, ids, by)
    src, dst = _output(graph, len(array), lambda out, ticket: lib.gw_find_edges_start(
        client.pointer, number, _arrays.ids_pointer(array), len(array), *out, ticket), 2)
    return src, dst


def edge_ids(graph: OpenedGraph, src: Ids, dst: Ids, etype: Etype | None, by: str) -> EdgeList:
    number, client = graph.etype_number(etype), graph._opened()
    ends = _pairs(graph, number, src, dst, by)
    return _list(graph, lambda out, ticket: lib.gw_edge_ids_start(
        client.pointer, number, *map(_arrays.ids_pointer, ends), len(ends[0]), out, ticket))


def has_edges(graph: OpenedGraph, src: Ids, dst: Ids, etype: Etype | None, by: str) -> Array:
    number, client = graph.etype_number(etype), graph._opened()
    ends = _pairs(graph, number, src, dst, by)
    out = np.empty(len(ends[0]), np.bool_)
    finish(lambda ticket: lib.gw_has_edges_start(
        client.pointer, number, *map(_arrays.ids_pointer, ends), len(out), _arrays.pointer(out, "bool *"), ticket))
    return _arrays.public(out, graph._torch)


def degrees(graph: OpenedGraph, ids: Ids, etype: Etype | None, out_edges: bool, by: str) -> Array:
    number, client = graph.etype_number(etype), graph._opened()
    array = ids_module.node_array(graph, graph._ends[number][0 if out_edges else 1], ids, by)
    call = lib.gw_out_degrees_start if out_edges else lib.gw_degrees_start
    return _output(graph, len(array), lambda out, ticket: call(
        client.pointer, number, _arrays.ids_pointer(array), len(array), out[0], ticket))[0]


def neighbours(graph: OpenedGraph, ids: Ids, etype: Etype | None, fanout: int, out_edges: bool, replace: bool,
               seed: int, stream: int, by: str, times: Times, window: Times, strict: bool, **rule: Any) -> EdgeList:
    number, client = graph.etype_number(etype), graph._opened()
    array = ids_module.node_array(graph, graph._ends[number][0 if out_edges else 1], ids, by)
    seed, stream = checks.integer("seed", seed, 0, checks.U64), checks.integer("stream", stream, 0, checks.U64)
    rules = Rules(graph, only=number, **rule)
    given = times
    if rules.times and times is None:
        times = own_times(graph, rules, False, [graph._ends[number][0 if out_edges else 1]], [array])[0]
    seen = SeedTimes(rules, [len(array)], [times], [window], strict)
    if given is not None:
        time_ranges.compare(graph, rules, seen.until)
    spec = ffi.new("struct gw_neighbours_spec *", {
        "etype": number, "direction": lib.GW_OUT if checks.flag("out_edges", out_edges) else lib.GW_IN,
        "fanout": fanouts.count(fanout, "fanout"), "replace": checks.flag("replace", replace),
        "strict_times": seen.strict, "real_times": seen.real})
    if rules.pointer != ffi.NULL:
        spec.rule = rules.pointer[0]
    seen.put(spec, 0)
    return _list(graph, lambda out, ticket: lib.gw_neighbours_start(
        client.pointer, spec, seed, stream, _arrays.ids_pointer(array), len(array), out, ticket))


def _by_ntype(graph: OpenedGraph, given: Any, what: str) -> dict[int, Any]:
    """Arrays of one node type, or {node type: array}, by the number of the type."""
    if not isinstance(given, Mapping):
        if len(graph.ntypes) > 1:
            raise TypeError(f"{what}: {{node type: values}}; the types are {', '.join(graph.ntypes)}")
        return {0: given}
    return {graph.ntype_number(ntype): some for ntype, some in given.items()}


def subgraph(graph: OpenedGraph, nodes: Any, etypes: Iterable[Etype] | None, groups: Any, held_out: Any,
             by: str) -> dict[str, EdgeList]:
    client, lists = graph._opened(), {}
    numbers = {} if groups is None else _by_ntype(graph, groups, "groups")
    kept: list[Any] = []  # what the calls read
    for number, ids in _by_ntype(graph, nodes, "nodes").items():
        array = ids_module.node_array(graph, number, ids, by, "nodes")
        kept.append(array)
        lists[number] = {"ids": _arrays.ids_pointer(array), "count": len(array)}
        if groups is None:
            continue
        own = _arrays.ids_array(numbers.get(number, ()), None, "groups")
        if len(own) != len(array):
            raise ValueError(f"groups: {len(own)} values for {len(array)} nodes of {graph.ntypes[number]}")
        if len(own) and not 0 <= own.min() <= own.max() < 1 << 32:
            raise ValueError("groups are numbers from 0 to 2^32 - 1")
        own = own.astype(np.uint32)
        kept.append(own)
        lists[number]["groups"] = _arrays.pointer(own, "uint32_t *")
    if isinstance(etypes, str) or not (etypes is None or isinstance(etypes, Iterable)):
        raise TypeError(f"etypes is a list of edge types, not {checks.shown(etypes)}")
    wanted = ([number for number, ends in enumerate(graph._ends) if set(ends) <= lists.keys()] if etypes is None
              else [graph.etype_number(etype) for etype in etypes])
    specs = []
    for number in wanted:
        for end in graph._ends[number]:
            if end not in lists:
                raise ValueError(f"nodes: edge type {graph.etypes[number]} needs those of {graph.ntypes[end]}")
        src, dst = graph._ends[number]
        specs.append(ffi.new("struct gw_subgraph_spec *", {
            "etype": number, "src": lists[src], "dst": lists[dst],
            "held_out": pointer_of(held_out)}))
    found = _lists(graph, [partial(lib.gw_subgraph_start, client.pointer, spec) for spec in specs])
    return {graph.etypes[number]: some for number, some in zip(wanted, found)}


def split(graph: OpenedGraph, what: Any, ntype: str | None, etype: Etype | None, world: int, rank: int) -> Array:
    """Graph.split. what: None, a mask or ids, or the gw_tensor of a mask."""
    client = graph._opened()
    number = graph.ntype_number(ntype) if etype is None else graph.etype_number(etype)
    count = (graph._node_counts if etype is None else graph._edge_counts)[number]
    options = ffi.new("struct gw_split_options *", {
        "of_edges": etype is not None, "type": number, "world": world, "rank": rank})
    kept: list[np.ndarray] = []  # what the call reads; after a signal the call outlives this function
    if isinstance(what, ffi.CData):
        options.mask_tensor = what
    elif what is not None:
        array = _arrays.own_ids(what, count, "what")
        if not len(array):
            return _copied(graph, ffi.NULL, 0)
        options.ids, options.id_count = _arrays.pointer(array, "int64_t *"), len(array)
        kept.append(array)
        del array

    def call() -> Any:
        out = ffi.new("struct gw_rank_ids **")
        check(lib.gw_split_ids(client.pointer, options, out))
        try:
            return _copied(graph, out[0].ids, out[0].count)
        finally:
            lib.gw_rank_ids_free(out[0])
            kept.clear()

    return in_thread(call)
