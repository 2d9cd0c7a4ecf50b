"""The sampled subgraph of a mini-batch with frontier="new", as PyTorch Geometric's SamplerOutput.

    Batch -> Sampled -> SamplerOutput or HeteroSamplerOutput, whose ids are those of the user's data

The batch has its nodes in the order of hops already, so that rows of nodes are used as they are, without a copy. Only a
batch in which a seed repeats takes another way (subgraph.py): each seed gets a node and edges of its own.
"""

from __future__ import annotations

from typing import Any, Callable, Union

import torch
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from graphwire.batch import Batch, Edges
from graphwire.pyg.original_ids import ORIGINAL, OriginalIds
from graphwire.pyg.subgraph import Subgraph, triple

Output = Union[SamplerOutput, HeteroSamplerOutput]


class Sampled:
    """The subgraph of a batch whose loader fetches "orig_id" of the types that `ids` translates."""

    def __init__(self, batch: Batch, ids: OriginalIds):
        self.batch, self._ids = batch, ids
        seeds = batch.blocks[-1].num_dst
        again = any(len(rows) != seeds[ntype] for ntype, rows in batch.seed_rows.items())
        self._copies = Subgraph(batch, batch.seed_rows, ids.graph.etypes) if again else None
        self._hops = batch.blocks[::-1]  # from the seeds outwards
        self._given: dict[str, torch.Tensor] = {}
        self._edge_index: dict[str, torch.Tensor] = {}
        self._rows: dict[str, torch.Tensor] = {}

    def node_rows(self, ntype: str, rows: Any) -> torch.Tensor:
        """Rows of the subgraph's nodes. rows: a row for each node of the batch."""
        rows = torch.as_tensor(rows)
        return rows if self._copies is None else rows[self._copies.rows[ntype]]

    def edge_rows(self, etype: str, of: Callable[[Edges], Any]) -> torch.Tensor:
        """Rows of the subgraph's edges. of(edges): a row for each edge of a block."""
        if self._copies is not None:
            return self._copies.edge_rows(triple(etype), of)
        found = [torch.as_tensor(of(block.edges[etype])) for block in self._hops if etype in block.edges]
        return torch.cat(found) if found else torch.empty(0, dtype=torch.int64)

    def has_edges(self, etype: str) -> bool:
        """Whether a hop samples edges of the type. The other types have no rows of edges at all."""
        return any(etype in block.edges for block in self._hops)

    def nodes(self, ntype: str) -> torch.Tensor:
        """n_id. A copy, because a kept view would keep the memory of the whole batch."""
        if self._ids.has_nodes(ntype):
            return self.node_rows(ntype, self.batch.features[ntype][ORIGINAL]).to(torch.int64, copy=True)
        return self.node_rows(ntype, self.batch.nodes[ntype])

    def edges(self, etype: str) -> torch.Tensor:
        """e_id."""
        if self._ids.has_edges(etype):
            return self.edge_rows(etype, lambda edges: edges.data[ORIGINAL]).to(torch.int64)
        return self.edge_rows(etype, lambda edges: edges.edge_ids)

    def _ends(self, etype: str) -> torch.Tensor:
        """edge_index, [2, edges]. Its rows are used as row and col of the SamplerOutput."""
        if self._copies is not None:
            return torch.stack([self._copies.src[triple(etype)], self._copies.dst[triple(etype)]])
        found = [block.edges[etype] for block in self._hops if etype in block.edges]
        ends = torch.empty(2, sum(edges.num_edges for edges in found), dtype=torch.int64)
        if found:
            torch.cat([torch.as_tensor(edges.indices) for edges in found], out=ends[0])
            torch.cat([torch.as_tensor(edges.dst) for edges in found], out=ends[1])
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
