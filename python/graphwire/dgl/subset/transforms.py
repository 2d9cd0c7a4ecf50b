"""Makes graphs from graphs: to_block, compact_graphs, remove_edges, subgraphs, reverse edges, self loops.

Errors: DGLError and MissingError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphwire.dgl.host import EID, NID
from graphwire.dgl.subset.adjacency import Adjacency
from graphwire.dgl.subset.frame import DGLError
from graphwire.dgl.subset.graph import DGLBlock, DGLGraph, as_ids


def _by_type(g: DGLGraph, ids: Any) -> dict[str, torch.Tensor]:
    if isinstance(ids, Mapping):
        return {ntype: as_ids(some, count=g.num_nodes(ntype)) for ntype, some in ids.items()}
    if len(g.ntypes) != 1:
        raise DGLError("{node type: ids} for a graph of several node types")
    return {g.ntypes[0]: as_ids(ids, count=g.num_nodes())}


def _numbered(lists: Sequence[torch.Tensor], first: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, map from an id to its place): `first` in its order, then the other ids of the lists in ascending order."""
    rest = torch.unique(torch.cat([*[ids.to(torch.int64) for ids in lists], first.new_empty(0)]))
    if len(first):
        rest = rest[~torch.isin(rest, first)]
    ids = torch.cat([first.to(torch.int64), rest])
    if count <= max(1 << 20, 8 * len(ids)):
        number = torch.empty(count, dtype=torch.int64)
        number[ids] = torch.arange(len(ids))
        return ids, number
    return ids, torch.empty(0, dtype=torch.int64)


class _Renumber:
    """Translates old ids of one node type to new ids: by a table, or by search if the type has very many nodes."""

    def __init__(self, lists: Sequence[torch.Tensor], first: torch.Tensor, count: int):
        self.ids, self._table = _numbered(lists, first, count)
        if not len(self._table) and len(self.ids):
            self._sorted, self._order = torch.sort(self.ids)

    def __call__(self, old: torch.Tensor) -> torch.Tensor:
        if not len(old):
            return old.to(torch.int64)
        if len(self._table):
            return self._table[old]
        return self._order[torch.searchsorted(self._sorted, old)]


def to_block(g: DGLGraph, dst_nodes: Any = None, include_dst_in_src: bool = True, src_nodes: Any = None) -> DGLGraph:
    """Converts g to a block, whose first source nodes are the destination nodes. dst_nodes: the destination nodes in
    their order, which must include every node at which an edge ends; else DGLError."""
    if src_nodes is not None:
        raise DGLError("to_block(src_nodes=…) is not in Graphwire's subset of dgl: install dgl")
    ends: dict[str, list[torch.Tensor]] = {ntype: [] for ntype in g.ntypes}
    begins: dict[str, list[torch.Tensor]] = {ntype: [] for ntype in g.ntypes}
    for (src, _, dst) in g.canonical_etypes:
        some = g.adjacency((src, _, dst))
        begins[src].append(some.src)
        ends[dst].append(some.dst)
    none = torch.empty(0, dtype=torch.int64)
    given = None if dst_nodes is None else _by_type(g, dst_nodes)
    targets, sources = {}, {}
    for ntype in g.ntypes:
        if given is None:
            targets[ntype] = _Renumber(ends[ntype], none, g.num_nodes(ntype))
        else:
            own = given.get(ntype, none)
            targets[ntype] = _Renumber([], own, g.num_nodes(ntype))
            if any(len(ids) and not bool(torch.isin(ids, own).all()) for ids in ends[ntype]):
                raise DGLError("Right hand side nodes are not a superset of nodes that edges end at")
        sources[ntype] = _Renumber(begins[ntype], targets[ntype].ids if include_dst_in_src else none,
                                   g.num_nodes(ntype))
    num_src = {ntype: len(sources[ntype].ids) for ntype in g.ntypes}
    num_dst = {ntype: len(targets[ntype].ids) for ntype in g.ntypes}
    edges = {}
    for etype in g.canonical_etypes:
        some = g.adjacency(etype)
        edges[etype] = Adjacency((num_src[etype[0]], num_dst[etype[2]]),
                                 (sources[etype[0]](some.src), targets[etype[2]](some.dst)))
    block = DGLGraph(num_src, num_dst, edges, is_block=True)
    block.__class__ = DGLBlock
    for ntype in g.ntypes:
        block._src_frames[ntype][NID] = sources[ntype].ids
        block._dst_frames[ntype][NID] = targets[ntype].ids
    for etype in g.canonical_etypes:
        block._edge_frames[etype][EID] = torch.arange(g.num_edges(etype))
    return block


def compact_graphs(graphs: Any, always_preserve: Any = None, copy_ndata: bool = True, copy_edata: bool = True) -> Any:
    """Removes the nodes that have no edge in any of the graphs. ndata[dgl.NID] has the old ids of the remaining
    nodes."""
    several = isinstance(graphs, Sequence)
    every = list(graphs) if several else [graphs]
    keep = {} if always_preserve is None else _by_type(every[0], always_preserve)
    found: dict[str, list[torch.Tensor]] = {ntype: [ids] for ntype, ids in keep.items()}
    for g in every:
        for etype in g.canonical_etypes:
            some = g.adjacency(etype)
            found.setdefault(etype[0], []).append(some.src)
            found.setdefault(etype[2], []).append(some.dst)
    none = torch.empty(0, dtype=torch.int64)
    renumber = {ntype: _Renumber(found.get(ntype, []), none, every[0].num_nodes(ntype)) for ntype in every[0].ntypes}
    made = []
    for g in every:
        counts = {ntype: len(renumber[ntype].ids) for ntype in g.ntypes}
        edges = {etype: Adjacency((counts[etype[0]], counts[etype[2]]), (
            renumber[etype[0]](g.adjacency(etype).src), renumber[etype[2]](g.adjacency(etype).dst)))
            for etype in g.canonical_etypes}
        small = DGLGraph(counts, counts, edges)
        for ntype in g.ntypes:
            if copy_ndata:
                small._src_frames[ntype].update(g._src_frames[ntype].rows_of(renumber[ntype].ids))
            small._src_frames[ntype][NID] = renumber[ntype].ids
        for etype in g.canonical_etypes:
            if copy_edata:
                small._edge_frames[etype].update(g._edge_frames[etype])
        made.append(small)
    return made if several else made[0]


def _with_edges(g: DGLGraph, keep: Mapping[Any, torch.Tensor], store_ids: bool) -> DGLGraph:
    """A graph with the nodes of g, and the given edges of each type."""
    edges = {}
    for etype in g.canonical_etypes:
        some, ids = g.adjacency(etype), keep[etype]
        edges[etype] = Adjacency((some.num_src, some.num_dst), (some.src[ids], some.dst[ids]))
    made = DGLGraph(g._num_src, g._num_dst, edges, g.is_block)
    for ntype, frame in g._src_frames.items():
        made._src_frames[ntype].update(frame)
    for etype, edge_frame in g._edge_frames.items():
        made._edge_frames[etype].update(edge_frame.rows_of(keep[etype]))
        if store_ids:
            made._edge_frames[etype][EID] = keep[etype]
    return made


def remove_edges(g: DGLGraph, eids: Any, etype: Any = None, store_ids: bool = False) -> DGLGraph:
    full = g.to_canonical_etype(etype)
    gone = as_ids(eids, count=g.num_edges(full))
    keep = {some: torch.arange(g.num_edges(some)) for some in g.canonical_etypes}
    stay = torch.ones(g.num_edges(full), dtype=torch.bool)
    stay[gone] = False
    keep[full] = torch.nonzero(stay).flatten()
    return _with_edges(g, keep, store_ids)


def edge_subgraph(g: DGLGraph, edges: Any, *, relabel_nodes: bool = True, store_ids: bool = True, **_: Any) -> DGLGraph:
    given = edges if isinstance(edges, Mapping) else {g.to_canonical_etype(None): edges}
    keep = {etype: torch.empty(0, dtype=torch.int64) for etype in g.canonical_etypes}
    keep.update({g.to_canonical_etype(etype): as_ids(ids, count=g.num_edges(etype)) for etype, ids in given.items()})
    made = _with_edges(g, keep, store_ids)
    return compact_graphs(made) if relabel_nodes else made


def node_subgraph(g: DGLGraph, nodes: Any, *, relabel_nodes: bool = True, store_ids: bool = True,
                  **_: Any) -> DGLGraph:
    """The graph of the given nodes and the edges between them."""
    given = _by_type(g, nodes)
    number, counts = {}, {}
    for ntype in g.ntypes:
        ids = given.get(ntype, torch.empty(0, dtype=torch.int64))
        number[ntype] = torch.full((g.num_nodes(ntype),), -1, dtype=torch.int64)
        number[ntype][ids] = torch.arange(len(ids))
        counts[ntype] = len(ids)
    edges, kept = {}, {}
    for etype in g.canonical_etypes:
        src, dst = number[etype[0]][g.adjacency(etype).src], number[etype[2]][g.adjacency(etype).dst]
        kept[etype] = torch.nonzero((src >= 0) & (dst >= 0)).flatten()
        edges[etype] = Adjacency((counts[etype[0]], counts[etype[2]]), (src[kept[etype]], dst[kept[etype]]))
    if not relabel_nodes:
        return _with_edges(g, kept, store_ids)
    made = DGLGraph(counts, counts, edges)
    for ntype, ids in given.items():
        made._src_frames[ntype].update(g._src_frames[ntype].rows_of(ids))
        if store_ids:
            made._src_frames[ntype][NID] = ids
    for etype, ids in kept.items():
        made._edge_frames[etype].update(g._edge_frames[etype].rows_of(ids))
        if store_ids:
            made._edge_frames[etype][EID] = ids
    return made


def in_subgraph(g: DGLGraph, nodes: Any, *, store_ids: bool = True, **_: Any) -> DGLGraph:
    """A graph with the nodes of g, and the edges that end at the given nodes."""
    given = _by_type(g, nodes)
    none = torch.empty(0, dtype=torch.int64)
    keep = {etype: torch.nonzero(torch.isin(g.adjacency(etype).dst, given.get(etype[2], none))).flatten()
            for etype in g.canonical_etypes}
    return _with_edges(g, keep, store_ids)


def _homogeneous(g: DGLGraph, src: torch.Tensor, dst: torch.Tensor) -> DGLGraph:
    etype = g.to_canonical_etype(None)
    return DGLGraph(g._num_src, g._num_dst, {etype: Adjacency((g.num_nodes(), g.num_nodes()), (src, dst))})


def to_bidirected(g: DGLGraph, copy_ndata: bool = False, readonly: Any = None) -> DGLGraph:
    """A graph with every edge in both directions, without parallel edges."""
    some = g.adjacency()
    src, dst = (ids.to(torch.int64) for ids in some.pairs)  # the number of a pair may exceed int32
    pairs = torch.unique(torch.cat([src * some.num_dst + dst, dst * some.num_dst + src]))
    src = torch.div(pairs, max(1, some.num_dst), rounding_mode="floor")
    made = _homogeneous(g, src.to(some.dtype), (pairs % max(1, some.num_dst)).to(some.dtype))
    if copy_ndata:
        made.ndata.update(g.ndata)
    return made


def add_reverse_edges(g: DGLGraph, copy_ndata: bool = True, **_: Any) -> DGLGraph:
    some = g.adjacency()
    made = _homogeneous(g, torch.cat(some.pairs), torch.cat(some.pairs[::-1]))
    if copy_ndata:
        made.ndata.update(g.ndata)
    return made


def reverse(g: DGLGraph, copy_ndata: bool = True, copy_edata: bool = False, **_: Any) -> DGLGraph:
    made = _homogeneous(g, g.adjacency().dst, g.adjacency().src)
    if copy_ndata:
        made.ndata.update(g.ndata)
    if copy_edata:
        made.edata.update(g.edata)
    return made


def remove_self_loop(g: DGLGraph, etype: Any = None) -> DGLGraph:
    some = g.adjacency(etype)
    return remove_edges(g, torch.nonzero(some.src == some.dst).flatten(), etype)


def add_self_loop(g: DGLGraph, etype: Any = None, **_: Any) -> DGLGraph:
    some = g.adjacency(etype)
    ids = torch.arange(g.num_nodes(), dtype=some.dtype)
    made = _homogeneous(g, torch.cat([some.src, ids]), torch.cat([some.dst, ids]))
    made.ndata.update(g.ndata)
    for name, rows in g.edata.items():
        made.edata[name] = torch.cat([rows, rows.new_zeros(len(ids), *rows.shape[1:])])
    return made


def add_edges(g: DGLGraph, u: Any, v: Any, data: Any = None, etype: Any = None) -> DGLGraph:
    some = g.adjacency(etype)
    u, v = torch.broadcast_tensors(as_ids(u), as_ids(v))
    made = _homogeneous(g, torch.cat([some.src, u]), torch.cat([some.dst, v]))
    made.ndata.update(g.ndata)
    for name, rows in g.edata.items():
        more = (data or {}).get(name, rows.new_zeros(len(u), *rows.shape[1:]))
        made.edata[name] = torch.cat([rows, more])
    return made


DGLGraph.subgraph, DGLGraph.edge_subgraph = node_subgraph, edge_subgraph
