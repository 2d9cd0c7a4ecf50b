"""Describes mini-batches to C, and makes a Batch of each gw_minibatch that C returns.

Spec(graph, fanouts, …) -> gw_sample_spec -> the library fills a gw_minibatch -> make_batch(graph, lease, spec)

Errors: Spec raises TypeError, ValueError (InvalidError) and NotFoundError for arguments; make_batch raises none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Lease, Records, window, windows
from graphwire._base.eager import is_compiling
from graphwire._base.native import ffi, lib
from graphwire._base.trace import traced
from graphwire._graph.fanouts import Fanouts, hops_of
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import HeldOut, pointer_of
from graphwire._graph.rules import Rules, Time, Weight
from graphwire._train.batch import Batch, Block, Edges
from graphwire._train.seeds import EdgeSeeds, NodeSeeds

_EDGES = Records("struct gw_block_edges", "etype", "dst_count", "edge_count", "indptr", "indices", "edge_ids",
                 "dst_first")
_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_ALL = 1 << 62  # rows of any length are copied
View = Callable[[int, Any, Any], np.ndarray]
_FRONTIERS = {"all": "GW_FRONTIER_ALL", "new": "GW_FRONTIER_NEW"}
Names = Union[str, Sequence[str], Mapping[Any, Union[str, Sequence[str]]], None]


def _names(graph: Graph, given: Names, kinds: list[str], what: str, number: Any) -> list[tuple[str, str]]:
    """(type, feature) for each feature in `given`. Names without a type belong to the only type; with several types
    they raise ValueError."""
    if given is None:
        return []
    for names in given.values() if isinstance(given, Mapping) else [given]:
        if not isinstance(names, (str, Sequence)):
            raise TypeError(f"{what} are names of features, or {{type: names}}, not {given!r:.100}")
    if isinstance(given, Mapping):
        return [(kinds[number(kind)], name) for kind, names in given.items()
                for name in ([names] if isinstance(names, str) else names)]
    if len(kinds) != 1:
        raise ValueError(f"{what}: there are several types: give {{type: names}} of {', '.join(kinds)}")
    return [(kinds[0], name) for name in ([given] if isinstance(given, str) else given)]


class Spec:
    """What each mini-batch consists of. pointer: the gw_sample_spec; fetches: (gw_tensor, type, feature, place) of each
    feature, in the order of gw_minibatch.rows; places: {(place, type, feature): index among fetches}; several: the
    seeds are given by type; form: makes the parts of a Batch. dtype: of all features of real numbers; None: their own.
    for_pyg: the library lists the edges of all hops, and rows of uint32 come as int64.

    The object owns all memory that the gw_sample_spec points to.
    """

    def __init__(self, graph: Graph, fanouts: Fanouts, *, nodes: NodeSeeds | None, features: Names,
                 labels: Names, edge_features: Names, replace: bool, index_dtype: str, weight: Weight = None,
                 time: Time = None, end: Time = None, pick: str = "uniform", disjoint: bool = False,
                 frontier: str = "all", edges: EdgeSeeds | None = None, held_out: HeldOut | None = None,
                 edge_ids: bool = True, dtype: Any = None, for_pyg: bool = False):
        checks.choice("index_dtype", index_dtype, ("int32", "int64"))
        hops, replace = hops_of(graph, fanouts), checks.flag("replace", replace)
        self.frontier = checks.choice("frontier", frontier, _FRONTIERS)
        wide = index_dtype == "int64"
        self.edges = edges  # the gw_sample_spec points into it
        self._held_out = held_out
        self.several = any(seeds is not None and seeds.several for seeds in (nodes, edges))
        self._client = graph._opened()  # owns the tensors of `fetches`
        self.rules = Rules(graph, weight, time=time, end=end, pick=pick)
        self.disjoint = checks.flag("disjoint", disjoint) or len(self.rules.times) > 0
        self._counts = ffi.new("int32_t[]", [count for hop in hops for count in hop])
        named = [(kind, name, lib.GW_AT_INPUTS) for kind, name in _names(
            graph, features, graph.ntypes, "features", graph.ntype_number)]
        named += self._labels(graph, labels, nodes, edges)
        named += [(kind, name, lib.GW_AT_EDGES) for kind, name in _names(
            graph, edge_features, graph.etypes, "edge_features", graph.etype_number)]
        if not checks.flag("edge_ids", edge_ids) and any(at == lib.GW_AT_EDGES for _, _, at in named):
            raise ValueError("edge_features are fetched by the ids of edges: edge_ids=False leaves no ids")
        self.fetches = []
        for kind, name, at in named:
            of_edges = at == lib.GW_AT_EDGES or (at == lib.GW_AT_SEEDS and edges is not None)
            feature = graph.feature(name, etype=kind) if of_edges else graph.feature(name, kind)
            self.fetches.append((feature.pointer(), kind, name, at))
        self.places = {(at, kind, name): place for place, (_, kind, name, at) in enumerate(self.fetches)}
        real = _arrays.real_code(dtype, graph._torch) if for_pyg else _arrays.used_code(
            dtype, graph._torch, (tensor for tensor, _, _, at in self.fetches if at != lib.GW_AT_SEEDS))
        codes = [self._code(graph, tensor, None if at == lib.GW_AT_SEEDS else real, for_pyg)
                 for tensor, _, _, at in self.fetches]
        self.form = Form(graph, self.fetches, codes, wide, edge_ids)
        self._fetches = ffi.new("struct gw_fetch[]", [
            {"tensor": tensor, "at": at, "convert": code} for (tensor, _, _, at), code in zip(self.fetches, codes)])
        self.pointer = ffi.new("struct gw_sample_spec *", {
            "ntype": nodes.types[0] if nodes is not None else 0, "hops": len(hops), "fanouts": self._counts,
            "replace": replace, "wide_indices": wide, "fetch_count": len(self.fetches), "fetches": self._fetches,
            "rules": self.rules.pointer, "disjoint": self.disjoint,
            "frontier": getattr(lib, _FRONTIERS[self.frontier]),
            "held_out": pointer_of(held_out),
            "sampled_edges": for_pyg, "no_edge_ids": not edge_ids,
            "edges": ffi.NULL if edges is None else edges.pointer,
            "edge_type_count": len(edges.types) if edges is not None and edges.several else 0})

    @staticmethod
    def _code(graph: Graph, tensor: Any, real: int | None, for_pyg: bool) -> int:
        """The gw_dtype in which rows of a fetch come."""
        if for_pyg and tensor.dtype == lib.GW_UINT32:
            return int(lib.GW_INT64)
        return _arrays.fetched_as(tensor, graph._torch, real, stored=True)

    def take_times(self, graph: Graph, seeds: NodeSeeds | EdgeSeeds, times: Any, window: Any, strict: bool) -> None:
        """Sets the times of the seeds. NodeLoader documents the arguments."""
        found = seeds.take_times(graph, self.rules, times, window, strict)
        self.pointer.real_times, self.pointer.strict_times = found.real, found.strict

    @staticmethod
    def _labels(graph: Graph, labels: Names, nodes: NodeSeeds | None,
                edges: EdgeSeeds | None) -> list[tuple[str, str, Any]]:
        """(type, feature, place) for each label. Raises ValueError for labels of a type without seeds."""
        if nodes is not None:
            kinds = [graph.ntypes[one] for one in nodes.types]
        else:
            kinds = [] if edges is None else [graph.etypes[one] for one in edges.types]

        def place(kind: Any) -> int:
            name = graph.ntypes[graph.ntype_number(kind)] if edges is None else graph.etypes[graph.etype_number(kind)]
            if name not in kinds:
                raise ValueError(f"labels: {name} has no seeds; there are seeds of {', '.join(kinds)}")
            return kinds.index(name)

        return [(kind, name, lib.GW_AT_SEEDS) for kind, name in _names(graph, labels, kinds, "labels", place)]


class Form:
    """Makes the parts of a batch, each when it is asked for. A batch keeps this object, which keeps neither the graph
    nor the seeds. ntypes, etypes: those of the graph. fetches: those of the Spec; codes: the gw_dtype in which each of
    them comes. wide: indices are int64. edge_ids: blocks have ids of edges."""

    def __init__(self, graph: Graph, fetches: list[tuple[Any, str, str, Any]], codes: list[int], wide: bool,
                 edge_ids: bool):
        self.edge_ids = edge_ids
        self.ntypes, self.etypes, self.wide, self._torch = graph.ntypes, graph.etypes, wide, graph._torch
        self._ends = [(graph.ntypes[src], graph.ntypes[dst]) for src, dst in graph._ends]
        self._index = np.dtype(np.int64 if wide else np.int32)
        self._places = [(kind, name, at) for _, kind, name, at in fetches]
        self._codes = codes
        self._rows = [_arrays.fetched_rows(tensor, code, 0) for (tensor, *_), code in zip(fetches, codes)]
        self._tensors = [_arrays.tensor_dtype(code, graph._torch) for code in codes]

    def rows(self, lease: Lease, place: int, view: View, copied: int = 0) -> Array:
        """The rows of a fetch in the caller's type: a view of the memory in which they landed, or a copy if a row has
        at most `copied` bytes. view: of the lease (windows)."""
        mini, (form, dtype) = lease.minibatch, self._rows[place]
        address, shape = int(ffi.cast("uintptr_t", mini.rows[place])), (int(mini.row_counts[place]), *form[1:])
        width = dtype.itemsize * math.prod(form[1:])
        copies = width <= copied
        if lease.landing is not None and not copies and self._tensors[place] is not None:
            landed = lease.landing.rows(address, width * shape[0], shape, self._tensors[place])
            if landed is not None:
                return landed
        stored = view(address, shape, dtype)
        return _arrays.public_rows(stored.copy() if copies else stored, self._codes[place], self._torch)

    def nodes(self, lease: Lease) -> dict[str, Array]:
        """{node type: ids}, copies."""
        mini, view, torch = lease.minibatch, windows(lease), self._torch
        counts = ffi.unpack(mini.node_counts, len(self.ntypes))
        return {ntype: _arrays.public(view(ids, count, _INT64).copy(), torch) for ntype, ids, count in zip(
            self.ntypes, _arrays.addresses(mini.nodes, len(counts)), counts)}

    def groups(self, lease: Lease) -> dict[str, Array] | None:
        """{node type: the group of each node}, copies; None if the batch is not disjoint."""
        mini, view, torch = lease.minibatch, windows(lease), self._torch
        if mini.groups == ffi.NULL:
            return None
        counts = ffi.unpack(mini.node_counts, len(self.ntypes))
        return {ntype: _arrays.public(view(groups, count, _UINT32).astype(np.int64), torch)
                for ntype, groups, count in zip(self.ntypes, _arrays.addresses(mini.groups, len(counts)), counts)}

    @traced("to tensors: features")
    def features(self, lease: Lease) -> dict[str, dict[str, Array]]:
        """{node type: {feature: rows}}, views."""
        found: dict[str, dict[str, Array]] = {ntype: {} for ntype in self.ntypes}
        view = windows(lease)
        for place, (kind, name, at) in enumerate(self._places):
            if at == lib.GW_AT_INPUTS:
                found[kind][name] = self.rows(lease, place, view)
        return found

    def edge_rows(self, lease: Lease, copy: bool = False) -> dict[str, dict[str, Array]]:
        """{edge type: {feature: rows}} of all hops, the seeds' hop first; views, or copies. Types that no block has are
        left out."""
        found: dict[str, dict[str, Array]] = {}
        mini = lease.minibatch
        asked = [(place, kind, name) for place, (kind, name, at) in enumerate(self._places) if at == lib.GW_AT_EDGES]
        if asked:
            view, blocks = windows(lease), [mini.blocks[hop] for hop in range(mini.hops)]
            there = {self.etypes[block.edges[i].etype] for block in blocks for i in range(block.edges_count)}
            for place, kind, name in asked:
                if kind in there:
                    found.setdefault(kind, {})[name] = self.rows(lease, place, view, _ALL if copy else 0)
        return found

    @traced("to tensors: blocks")
    def blocks(self, lease: Lease) -> list[Block]:
        """The blocks of all hops, outermost first, whose arrays are views."""
        mini, view, names, torch = lease.minibatch, windows(lease), self.ntypes, self._torch
        public = (lambda array: array) if torch is None else torch.from_numpy
        blocks = []
        for hop in range(mini.hops):
            block, edges = mini.blocks[hop], {}
            src = dict(zip(names, ffi.unpack(block.src_counts, len(names))))
            dst = dict(zip(names, ffi.unpack(block.dst_counts, len(names))))
            for number, rows, count, indptr, indices, ids, first in _EDGES.read(block.edges, block.edges_count):
                etype, ends = self.etypes[number], self._ends[number]
                edges[etype] = Edges(etype, ends, (src[ends[0]], rows), (
                    public(view(indptr, rows + 1, _INT64)), public(view(indices, count, self._index)),
                    public(view(ids, count, _INT64)) if ids else None), first)
            blocks.append(Block(src, dst, edges))
        for kind, named in self.edge_rows(lease).items():
            for name, rows in named.items():
                begin = 0
                for some in [block.edges[kind] for block in blocks if kind in block.edges]:
                    some.data[name] = rows[begin:begin + some.num_edges]
                    begin += some.num_edges
        return blocks[::-1]


def _ids(pointer: Any, count: int, torch: Any) -> Array:
    return _arrays.public(_arrays.copied(pointer, (count,), np.int64), torch)


def _row_numbers(lease: Lease, pointer: Any, shape: tuple[int, ...], torch: Any) -> Array:
    """Copies uint32 row numbers to int64, because torch indexes by signed integers."""
    return _arrays.public(window(lease, pointer, shape, np.uint32).astype(np.int64), torch)


def _seeds(graph: Graph, lease: Lease, spec: Spec) -> tuple[Any, Any]:
    """The seeds and their row numbers. Both are {node type: …} if the seeds were given by type."""
    mini, torch = lease.minibatch, graph._torch
    if not spec.several:
        count = int(mini.seed_count)
        return _ids(mini.seeds, count, torch), _row_numbers(lease, mini.seed_rows, (count,), torch)
    found: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    begin = 0
    for i in range(mini.seed_list_count):
        ntype, count = graph.ntypes[mini.seed_lists[i].type], int(mini.seed_lists[i].count)
        found[0][ntype] = _ids(mini.seeds + begin, count, torch)
        found[1][ntype] = _row_numbers(lease, mini.seed_rows + begin, (count,), torch)
        begin += count
    return found


def _seed_times(batch: Batch, lease: Lease, spec: Spec, torch: Any) -> Any:
    """The times of the seeds, in the form of batch.seeds; None: they have none."""
    mini = lease.minibatch
    if mini.seed_times == ffi.NULL:
        return None
    kind = np.float64 if spec.pointer.real_times else np.int64
    every = _arrays.public(_arrays.copied(mini.seed_times, (int(mini.seed_count),), kind), torch)
    if not spec.several:
        return every
    ends = np.cumsum([len(ids) for ids in batch.seeds.values()]).tolist()
    return {name: every[end - len(ids):end] for (name, ids), end in zip(batch.seeds.items(), ends)}


def _add_edges(batch: Batch, graph: Graph, lease: Lease, spec: Spec) -> None:
    """Sets the attributes that only a batch of edges has. Each is {edge type: …} if the seeds were given by type."""
    mini, torch = lease.minibatch, graph._torch
    parts: dict[str, dict[str, Any]] = {
        name: {} for name in ("seeds", "src_rows", "dst_rows", "negative_rows", "true_edges")}
    for i, kind in enumerate(spec.edges.types if spec.edges is not None else ()):
        edges, etype = mini.edges[i], graph.etypes[kind]
        count = int(edges.count)
        parts["seeds"][etype] = _ids(edges.ids, count, torch)
        parts["src_rows"][etype] = _row_numbers(lease, edges.src_rows, (count,), torch)
        parts["dst_rows"][etype] = _row_numbers(lease, edges.dst_rows, (count,), torch)
        parts["negative_rows"][etype] = _row_numbers(
            lease, edges.negative_rows, (count, int(edges.negatives_each)), torch)
        parts["true_edges"][etype] = int(edges.true_edges)
    for name, part in parts.items():
        setattr(batch, name, part if spec.several else next(iter(part.values())))
    batch.edge_type = None if spec.several else next(iter(parts["seeds"]))


@traced("to tensors")
def make_batch(graph: Graph, lease: Lease, spec: Spec) -> Batch:
    """The Batch of the lease's gw_minibatch. Feature rows and blocks are views of its memory; the rest is copied.
    Nodes, blocks and features are made when they are asked for; if torch.compile is in use, now, because dynamo cannot
    trace how they are made."""
    mini = lease.minibatch
    seeds, seed_rows = _seeds(graph, lease, spec) if spec.edges is None else (None, None)
    batch = Batch._of_lease(lease, spec.form, seeds, seed_rows)
    if spec.edges is not None:
        _add_edges(batch, graph, lease, spec)
    if spec.several:
        batch.labels = {kind: {} for kind in batch.seeds}
    batch.seed_times = _seed_times(batch, lease, spec, graph._torch)
    batch.frontier, batch.etypes = spec.frontier, graph.etypes
    batch.epoch, batch.step = int(mini.epoch), int(mini.step)
    for place, (_, kind, name, at) in enumerate(spec.fetches):
        if at == lib.GW_AT_SEEDS:
            labels = batch.labels[kind] if spec.several else batch.labels
            labels[name] = spec.form.rows(lease, place, windows(lease), _ALL)
    if is_compiling():
        batch._make()
    return batch
