"""DGLGraph and DGLBlock of the subset: nodes and edges of one or several types, and their columns.

convert.py and transforms.py make graphs; message.py sends messages along edges. Errors: DGLError and MissingError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Callable

import torch

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire.dgl.host import missing
from graphwire.dgl.subset import message
from graphwire.dgl.subset.adjacency import Adjacency
from graphwire.dgl.subset.frame import DGLError, Frame, TypeView, View
from graphwire.dgl.types import Canonical, Types


def as_ids(ids: Any, device: Any = None, count: int | None = None) -> torch.Tensor:
    """Ids as int64; a mask of `count` rows stands for the ids that it selects. A tensor of int32 keeps its type, as in
    DGL. NumPy's int32, which SciPy's matrices have, becomes int64. Raises DGLError for ids that
    arrays.ids_array refuses."""
    if isinstance(ids, torch.Tensor) and ids.dtype in (torch.int32, torch.int64) and ids.dim() == 1:
        return ids if device is None else ids.to(device)
    try:
        found = torch.from_numpy(_arrays.ids_array(ids, count))
    except (TypeError, ValueError, IndexError) as error:
        raise DGLError(str(error)) from error
    if isinstance(ids, torch.Tensor):
        found = found.to(torch.int32 if ids.dtype == torch.int32 else torch.int64).to(ids.device)
    return found if device is None else found.to(device)


class DGLGraph(Types):
    """A graph, or a block (is_block), which has separate source and destination nodes."""

    def __init__(self, num_src: Mapping[str, int], num_dst: Mapping[str, int], edges: Mapping[Canonical, Adjacency],
                 is_block: bool = False):
        names = [*num_src, *[name for name in num_dst if name not in num_src]]
        super().__init__(names, list(edges))
        self.is_block = is_block
        self._num_src, self._num_dst, self._adjacencies = dict(num_src), dict(num_dst), dict(edges)
        self._src_frames = {ntype: Frame(count) for ntype, count in num_src.items()}
        self._dst_frames = {ntype: Frame(count) for ntype, count in num_dst.items()} if is_block else self._src_frames
        self._edge_frames = {etype: Frame(some.num_edges) for etype, some in edges.items()}
        self.batch_size = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise missing(f"DGLGraph.{name}")

    def __repr__(self) -> str:
        kind = "Block" if self.is_block else "Graph"
        edges = {etype: some.num_edges for etype, some in self._adjacencies.items()}
        return f"{kind}(num_src_nodes={self._num_src}, num_dst_nodes={self._num_dst}, num_edges={edges})"

    # --- Sizes. ---

    @property
    def srctypes(self) -> list[str]:
        return list(self._num_src)

    @property
    def dsttypes(self) -> list[str]:
        return list(self._num_dst)

    @property
    def is_multigraph(self) -> bool:
        return any(len(torch.unique(torch.stack(some.pairs), dim=1)[0]) < some.num_edges
                   for some in self._adjacencies.values())

    @property
    def idtype(self) -> torch.dtype:
        return next((some.dtype for some in self._adjacencies.values()), torch.int64)

    @property
    def device(self) -> torch.device:
        return next((some.device for some in self._adjacencies.values()), torch.device("cpu"))

    def _of(self, counts: Mapping[str, int], ntype: str | None) -> int:
        if ntype is None:
            return sum(counts.values())
        return counts[ntype if ntype in counts else self._only(counts, ntype)]

    @staticmethod
    def _only(types: Mapping[str, Any], ntype: str | None) -> str:
        if ntype in types:
            return ntype  # type: ignore[return-value]
        if ntype in (None, "_N") and len(types) == 1:
            return next(iter(types))
        raise DGLError(f'Node type "{ntype}" does not exist; there are {", ".join(types)}.')

    def num_nodes(self, ntype: str | None = None) -> int:
        if self.is_block:
            if ntype is None:
                return sum(self._num_src.values()) + sum(self._num_dst.values())
            return self._num_src[ntype] if ntype in self._num_src else self._num_dst[self._only(self._num_dst, ntype)]
        return self._of(self._num_src, ntype)

    def num_src_nodes(self, ntype: str | None = None) -> int:
        return self._of(self._num_src, ntype)

    def num_dst_nodes(self, ntype: str | None = None) -> int:
        return self._of(self._num_dst, ntype)

    def num_edges(self, etype: Any = None) -> int:
        if etype is None:
            return sum(some.num_edges for some in self._adjacencies.values())
        return self.adjacency(etype).num_edges

    number_of_nodes = num_nodes
    number_of_src_nodes = num_src_nodes
    number_of_dst_nodes = num_dst_nodes
    number_of_edges = num_edges

    def __len__(self) -> int:
        return self.num_nodes()

    def adjacency(self, etype: Any = None) -> Adjacency:
        """The Adjacency of an edge type."""
        return self._adjacencies[self.to_canonical_etype(etype)]

    # --- Columns. ---

    @property
    def ndata(self) -> View:
        return View(self._src_frames, lambda ntype: self._only(self._src_frames, ntype))

    @property
    def srcdata(self) -> View:
        return View(self._src_frames, lambda ntype: self._only(self._src_frames, ntype))

    @property
    def dstdata(self) -> View:
        return View(self._dst_frames, lambda ntype: self._only(self._dst_frames, ntype))

    @property
    def edata(self) -> View:
        return View(self._edge_frames, self.to_canonical_etype)

    @property
    def nodes(self) -> TypeView:
        return TypeView(self._src_frames, lambda ntype: self._only(self._src_frames, ntype),
                        lambda ntype=None: torch.arange(self.num_nodes(ntype), dtype=self.idtype, device=self.device))

    @property
    def srcnodes(self) -> TypeView:
        return TypeView(self._src_frames, lambda ntype: self._only(self._src_frames, ntype),
                        lambda ntype=None: torch.arange(self.num_src_nodes(ntype), dtype=self.idtype))

    @property
    def dstnodes(self) -> TypeView:
        return TypeView(self._dst_frames, lambda ntype: self._only(self._dst_frames, ntype),
                        lambda ntype=None: torch.arange(self.num_dst_nodes(ntype), dtype=self.idtype))

    @property
    def edges(self) -> TypeView:
        return TypeView(self._edge_frames, self.to_canonical_etype, self._edges)

    def _edges(self, form: str = "uv", order: str | None = "eid", etype: Any = None) -> Any:
        some = self.adjacency(etype)
        ids = torch.arange(some.num_edges, device=some.device)
        if order == "srcdst":
            ids = torch.argsort(some.src.to(torch.int64) * some.num_dst + some.dst, stable=True)
        if form == "eid":
            return ids
        src, dst = (some.src[ids], some.dst[ids]) if order == "srcdst" else some.pairs
        return (src, dst, ids) if form == "all" else (src, dst)

    all_edges = _edges

    @contextlib.contextmanager
    def local_scope(self) -> Iterator[None]:
        """A context. Columns that are set within the context are removed at its end."""
        saved = self._src_frames, self._dst_frames, self._edge_frames
        self._copy_frames()
        try:
            yield
        finally:
            self._src_frames, self._dst_frames, self._edge_frames = saved

    def _copy_frames(self) -> None:
        self._src_frames = {ntype: frame.copied() for ntype, frame in self._src_frames.items()}
        self._dst_frames = {ntype: frame.copied() for ntype, frame in self._dst_frames.items()} \
            if self.is_block else self._src_frames
        self._edge_frames = {etype: frame.copied() for etype, frame in self._edge_frames.items()}

    def local_var(self) -> DGLGraph:
        made = DGLGraph(self._num_src, self._num_dst, self._adjacencies, self.is_block)
        made._src_frames, made._dst_frames, made._edge_frames = self._src_frames, self._dst_frames, self._edge_frames
        made._copy_frames()
        return made

    # --- Copies: other devices, other id types. ---

    def _changed(self, structure: Callable[[torch.Tensor], torch.Tensor],
                 rows: Callable[[torch.Tensor], torch.Tensor]) -> DGLGraph:
        made = DGLGraph(self._num_src, self._num_dst,
                        {etype: some.changed(structure) for etype, some in self._adjacencies.items()}, self.is_block)
        made._src_frames = {ntype: frame.changed(rows) for ntype, frame in self._src_frames.items()}
        made._dst_frames = {ntype: frame.changed(rows) for ntype, frame in self._dst_frames.items()} \
            if self.is_block else made._src_frames
        made._edge_frames = {etype: frame.changed(rows) for etype, frame in self._edge_frames.items()}
        return made

    def to(self, device: Any, *, non_blocking: bool = False, copy: bool = False) -> DGLGraph:
        if torch.device(device) == self.device:
            return self

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, non_blocking=non_blocking, copy=copy)

        return self._changed(moved, moved)

    def cpu(self) -> DGLGraph:
        return self.to("cpu")

    def int(self) -> DGLGraph:
        return self._changed(lambda tensor: tensor.to(torch.int32), lambda tensor: tensor)

    def long(self) -> DGLGraph:
        return self._changed(lambda tensor: tensor.to(torch.int64), lambda tensor: tensor)

    def formats(self, formats: Any = None) -> Any:
        return {"created": ["coo"], "not created": ["csr", "csc"]} if formats is None else self

    def create_formats_(self) -> None:
        for some in self._adjacencies.values():
            _ = some.csc

    def __getitem__(self, etype: Any) -> DGLGraph:
        """The graph of one edge type. It shares its columns with this graph."""
        full = self.to_canonical_etype(etype)
        src, dst = full[0], full[2]
        made = DGLGraph({src: self._num_src[src]}, {dst: self._num_dst[dst]}, {full: self._adjacencies[full]},
                        is_block=self.is_block or src != dst)
        made._src_frames, made._dst_frames = {src: self._src_frames[src]}, {dst: self._dst_frames[dst]}
        made._edge_frames = {full: self._edge_frames[full]}
        return made

    # --- Structure. ---

    def in_degrees(self, v: Any = None, etype: Any = None) -> Any:
        degrees = self.adjacency(etype).in_degrees()
        return _some(degrees, v)

    def out_degrees(self, u: Any = None, etype: Any = None) -> Any:
        return _some(self.adjacency(etype).out_degrees(), u)

    def find_edges(self, eid: Any, etype: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        some = self.adjacency(etype)
        ids = as_ids(eid, count=some.num_edges)
        return some.src[ids], some.dst[ids]

    def has_edges_between(self, u: Any, v: Any, etype: Any = None) -> Any:
        u, v = torch.broadcast_tensors(as_ids(u), as_ids(v))
        question, _ = self.adjacency(etype).edges_between(u, v)
        found = torch.zeros(len(u), dtype=torch.bool)
        found[question] = True
        return found

    def edge_ids(self, u: Any, v: Any, return_uv: bool = False, etype: Any = None, **_: Any) -> Any:
        """The ids of the edges between pairs of nodes.

        return_uv: return (sources, destinations, ids) of all edges from u[i] to v[i], including parallel edges. Else
        return the first id for each pair; a pair without an edge raises DGLError.
        """
        u, v = torch.broadcast_tensors(as_ids(u), as_ids(v))
        question, ids = self.adjacency(etype).edges_between(u, v)
        if return_uv:
            return u[question], v[question], ids
        first = torch.full((len(u),), -1, dtype=torch.int64)
        first[question.flip(0)] = ids.flip(0)
        lacking = torch.nonzero(first < 0)
        if len(lacking):
            at = int(lacking[0])
            raise DGLError(f"Error: edge ({int(u[at])}, {int(v[at])}) does not exist.")
        return first

    # --- Messages. ---

    def apply_edges(self, func: Any, edges: Any = None, etype: Any = None) -> None:
        if edges is not None and not isinstance(edges, str):
            raise missing("apply_edges(edges=…)")
        message.apply_edges(self, func, self.to_canonical_etype(etype))

    def update_all(self, message_func: Any, reduce_func: Any, apply_node_func: Any = None, etype: Any = None) -> None:
        message.update_all(self, message_func, reduce_func, apply_node_func, self.to_canonical_etype(etype))

    def multi_update_all(self, etype_dict: Mapping[Any, Any], cross_reducer: str,
                         apply_node_func: Any = None) -> None:
        message.multi_update_all(self, etype_dict, cross_reducer, apply_node_func)

    def apply_nodes(self, func: Any, ntype: str | None = None) -> None:
        message.apply_nodes(self._dst_frames[self._only(self._dst_frames, ntype)], func)

    # --- Transforms: transforms.py, which imports this file, sets these methods. ---

    subgraph: Callable[..., DGLGraph]
    edge_subgraph: Callable[..., DGLGraph]


def _some(values: torch.Tensor, ids: Any) -> Any:
    if ids is None or (isinstance(ids, str)):
        return values
    found = values[as_ids(ids, count=len(values))]
    return found if checks.as_integer(ids) is None else int(found[0])


class DGLBlock(DGLGraph):
    """The type of blocks, for isinstance."""
