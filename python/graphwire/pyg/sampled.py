"""The sampled subgraph of a mini-batch with frontier="new", as PyTorch Geometric's SamplerOutput.

    Batch -> Sampled -> SamplerOutput or HeteroSamplerOutput, whose ids are those of the user's data

The batch has its nodes in the order of hops already, so that rows of nodes are used as they are, without a copy. Only a
batch in which a seed repeats takes another way (subgraph.py): each seed gets a node and edges of its own.
"""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import torch
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from graphwire._native import ffi, lib
from graphwire.batch import Batch
from graphwire.pyg.original_ids import ORIGINAL, OriginalIds
from graphwire.pyg.subgraph import Subgraph, triple

Output = Union[SamplerOutput, HeteroSamplerOutput]


def _widened(ids: torch.Tensor) -> torch.Tensor:
    """A copy as int64. NumPy makes it in one thread: torch would start threads of its own for each batch, which compete
    with the library's and take longer than the copy."""
    return torch.from_numpy(ids.numpy().astype(np.int64))


def _pointer(ids: torch.Tensor) -> Any:
    return ffi.cast("int64_t *", ids.data_ptr())


class Sampled:
    """The subgraph of a batch whose loader fetches "orig_id" of the types that `ids` translates."""

    def __init__(self, batch: Batch, ids: OriginalIds):
        self.batch, self._ids = batch, ids
        seeds = batch.blocks[-1].num_dst
        again = any(len(rows) != seeds[ntype] for ntype, rows in batch.seed_rows.items())
        self._copies = Subgraph(batch, batch.seed_rows, ids.graph.etypes) if again else None
        self._hops = batch.blocks[::-1]  # from the seeds outwards
        self._own_ids: dict[str, torch.Tensor] = {}
        self._given: dict[str, torch.Tensor] = {}
        self._edge_index: dict[str, torch.Tensor] = {}
        self._rows: dict[str, torch.Tensor] = {}

    def __reduce__(self) -> Any:
        """Pickles as None: the memory of a batch stays in its process."""
        return type(None), ()

    def node_rows(self, ntype: str, rows: Any) -> torch.Tensor:
        """Rows of the subgraph's nodes. rows: a row for each node of the batch."""
        rows = torch.as_tensor(rows)
        return rows if self._copies is None else rows[self._copies.rows[ntype]]

    def edge_rows(self, etype: str, name: str) -> torch.Tensor:
        """The rows of a feature for the subgraph's edges."""
        if self._copies is None or not self.has_edges(etype):
            return torch.as_tensor(self.batch._edge_rows[etype][name])
        return self._copies.edge_rows(triple(etype), lambda edges: edges.data[name])

    def has_edges(self, etype: str) -> bool:
        """Whether a hop samples edges of the type."""
        return any(etype in block.edges for block in self._hops)

    def nodes(self, ntype: str) -> torch.Tensor:
        """n_id. A copy, because a kept view would keep the memory of the whole batch."""
        if self._ids.has_nodes(ntype):
            return _widened(self.node_rows(ntype, self.batch.features[ntype][ORIGINAL]))
        return self.node_rows(ntype, self.batch.nodes[ntype])

    def edges(self, etype: str) -> torch.Tensor:
        """e_id, a copy as n_id is."""
        if self._ids.has_edges(etype):
            return _widened(self.edge_rows(etype, ORIGINAL))
        if self._copies is not None:
            return self._copies.edge_rows(triple(etype), lambda edges: edges.edge_ids)
        return self._own_ids[etype]

    def _ends(self, etype: str) -> torch.Tensor:
        """edge_index, [2, edges]. Its rows are used as row and col of the SamplerOutput. Also stores the graph's ids
        of the edges, if these are e_id."""
        if self._copies is not None:
            return torch.stack([self._copies.src[triple(etype)], self._copies.dst[triple(etype)]])
        assert self.batch._lease is not None
        graph, count = self._ids.graph, sum(self._num_edges(etype))
        ends, ids = torch.empty(2, count, dtype=torch.int64), ffi.NULL
        if not self._ids.has_edges(etype):
            self._own_ids[etype] = torch.empty(count, dtype=torch.int64)
            ids = _pointer(self._own_ids[etype])
        lib.hops_edges(self.batch._lease.minibatch, graph.etypes.index(etype), _pointer(ends[0]), _pointer(ends[1]),
                       ids)
        return ends

    def _num_nodes(self, ntype: str) -> list[int]:
        """The number of nodes that each hop has added, the seeds first."""
        if self._copies is not None:
            return self._copies.num_nodes[ntype]
        totals = [self.batch.blocks[-1].num_dst[ntype], *[block.num_src[ntype] for block in self._hops]]
        return totals[:1] + [after - before for before, after in zip(totals, totals[1:])]

    def _num_edges(self, etype: str) -> list[int]:
        if self._copies is not None:
            return self._copies.num_edges[triple(etype)]
        return [block.edges[etype].num_edges if etype in block.edges else 0 for block in self._hops]

    def given(self, kind: str) -> torch.Tensor | None:
        """The ids of a type in output(), as the same object."""
        return self._given.get(kind)

    def edge_index(self, etype: str, row: torch.Tensor, col: torch.Tensor) -> torch.Tensor:
        """[row, col] as one tensor, without a copy if row is that of output()."""
        return self._edge_index[etype] if row is self._rows.get(etype) else torch.stack([row, col])

    def output(self, typed: bool) -> Output:
        """The SamplerOutput; typed: the HeteroSamplerOutput, with all types of the graph."""
        ntypes, etypes = self._ids.graph.ntypes, self._ids.graph.etypes
        node = {ntype: self.nodes(ntype) for ntype in ntypes}
        ends = {triple(etype): self._ends(etype) for etype in etypes}
        edge = {triple(etype): self.edges(etype) for etype in etypes}
        rows = {etype: both[0] for etype, both in ends.items()}
        self._given = {**node, **{":".join(etype): ids for etype, ids in edge.items()}}
        self._edge_index = {":".join(etype): both for etype, both in ends.items()}
        self._rows = {":".join(etype): one for etype, one in rows.items()}
        num_nodes = {ntype: self._num_nodes(ntype) for ntype in ntypes}
        num_edges = {triple(etype): self._num_edges(etype) for etype in etypes}
        if typed:
            return HeteroSamplerOutput(
                node=node, row=rows,
                col={etype: both[1] for etype, both in ends.items()}, edge=edge, num_sampled_nodes=num_nodes,
                num_sampled_edges=num_edges)
        ntype, etype = ntypes[0], triple(etypes[0])
        return SamplerOutput(node=node[ntype], row=rows[etype], col=ends[etype][1], edge=edge[etype],
                             num_sampled_nodes=num_nodes[ntype], num_sampled_edges=num_edges[etype])
