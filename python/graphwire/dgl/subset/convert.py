"""Makes graphs and blocks from arrays: dgl.graph, heterograph, create_block, from_scipy. Errors: DGLError and
MissingError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwire.dgl.host import missing
from graphwire.dgl.subset.adjacency import Adjacency
from graphwire.dgl.subset.frame import DGLError
from graphwire.dgl.subset.graph import DGLBlock, DGLGraph, as_ids
from graphwire.dgl.types import Canonical


class _Parsed:
    """The edges of one type, parsed from the forms that dgl.graph takes."""

    def __init__(self, data: Any, idtype: torch.dtype | None, device: Any):
        self.csc: tuple[torch.Tensor, torch.Tensor] | None = None
        self.ids: torch.Tensor | None = None
        form, content = "coo", data
        if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str):
            form, content = data
        if hasattr(content, "tocoo"):
            matrix = content.tocoo()
            content = (matrix.row, matrix.col)
        if form in ("csr", "csc"):
            indptr, indices, ids = (as_ids(array, device) for array in content)
            self.ids = ids if len(ids) else None
            counts = indptr[1:] - indptr[:-1]
            if form == "csc" and self.ids is None:
                self.csc = indptr, indices if idtype is None else indices.to(idtype)
            other = torch.repeat_interleave(torch.arange(len(counts), dtype=indices.dtype), counts)
            self.src, self.dst = (indices, other) if form == "csc" else (other, indices)
            self.least = (0, len(counts)) if form == "csc" else (len(counts), 0)
            if self.ids is not None:
                order = torch.argsort(self.ids)
                self.src, self.dst = self.src[order], self.dst[order]
        elif form == "coo":
            if not isinstance(content, tuple) or len(content) != 2:
                raise missing(f"a graph from {type(content).__name__}")
            self.src, self.dst = (as_ids(array, device) for array in content)
            self.least = (0, 0)
        else:
            raise DGLError(f"Invalid format {form!r}: coo, csr or csc")
        if len(self.src) != len(self.dst):
            raise DGLError(f"{len(self.src)} sources and {len(self.dst)} destinations")
        if idtype is not None:
            self.src, self.dst = self.src.to(idtype), self.dst.to(idtype)

    def sizes(self) -> tuple[int, int]:
        """The smallest number of nodes that the edges need."""
        most = [int(ids.max()) + 1 if len(ids) else 0 for ids in (self.src, self.dst)]
        return max(most[0], self.least[0]), max(most[1], self.least[1])

    def adjacency(self, sizes: tuple[int, int]) -> Adjacency:
        for ids, count in zip((self.src, self.dst), sizes):
            if len(ids) and (int(ids.max()) >= count or int(ids.min()) < 0):
                raise DGLError(f"The num_nodes argument must be larger than the max ID in the data: there are {count} "
                               f"nodes, and an id is {int(ids.max())}.")
        if self.csc is not None and len(self.csc[0]) == sizes[1] + 1:
            return Adjacency(sizes, csc=self.csc)
        return Adjacency(sizes, (self.src, self.dst))


def graph(data: Any, *, num_nodes: int | None = None, idtype: torch.dtype | None = None, device: Any = None,
          **_: Any) -> DGLGraph:
    parsed = _Parsed(data, idtype, device)
    count = max(parsed.sizes()) if num_nodes is None else int(num_nodes)
    return DGLGraph({"_N": count}, {"_N": count}, {("_N", "_E", "_N"): parsed.adjacency((count, count))})


def heterograph(data_dict: Mapping[Canonical, Any], num_nodes_dict: Mapping[str, int] | None = None,
                idtype: torch.dtype | None = None, device: Any = None) -> DGLGraph:
    parsed = {etype: _Parsed(data, idtype, device) for etype, data in data_dict.items()}
    counts: dict[str, int] = {}
    for (src, _, dst), some in parsed.items():
        for ntype, least in zip((src, dst), some.sizes()):
            counts[ntype] = max(counts.get(ntype, 0), least)
    if num_nodes_dict is not None:
        lacking = [ntype for ntype in counts if ntype not in num_nodes_dict]
        if lacking:
            raise DGLError(f"num_nodes_dict has no {', '.join(lacking)}")
        counts = {ntype: int(count) for ntype, count in num_nodes_dict.items()}
    counts = dict(sorted(counts.items()))
    etypes = sorted(parsed, key=lambda etype: (etype[0], etype[1], etype[2]))
    return DGLGraph(counts, counts, {etype: parsed[etype].adjacency((counts[etype[0]], counts[etype[2]]))
                                     for etype in etypes})


def create_block(data_dict: Any, num_src_nodes: Any = None, num_dst_nodes: Any = None,
                 idtype: torch.dtype | None = None, device: Any = None, **_: Any) -> DGLGraph:
    if not isinstance(data_dict, Mapping):
        data_dict = {("_N", "_E", "_N"): data_dict}
        num_src_nodes = None if num_src_nodes is None else {"_N": num_src_nodes}
        num_dst_nodes = None if num_dst_nodes is None else {"_N": num_dst_nodes}
    parsed = {etype: _Parsed(data, idtype, device) for etype, data in data_dict.items()}
    src: dict[str, int] = dict(num_src_nodes or {})
    dst: dict[str, int] = dict(num_dst_nodes or {})
    for (source, _, target), some in parsed.items():
        least = some.sizes()
        if num_src_nodes is None:
            src[source] = max(src.get(source, 0), least[0])
        if num_dst_nodes is None:
            dst[target] = max(dst.get(target, 0), least[1])
    edges = {etype: some.adjacency((src[etype[0]], dst[etype[2]])) for etype, some in parsed.items()}
    block = DGLGraph(src, dst, edges, is_block=True)
    block.__class__ = DGLBlock
    return block


def from_scipy(sp_mat: Any, eweight_name: str | None = None, idtype: torch.dtype | None = None,
               device: Any = None) -> DGLGraph:
    matrix = sp_mat.tocoo()
    made = graph((matrix.row, matrix.col), num_nodes=max(matrix.shape), idtype=idtype, device=device)
    if eweight_name is not None:
        made.edata[eweight_name] = torch.as_tensor(matrix.data)
    return made
