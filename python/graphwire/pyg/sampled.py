"""The sampled subgraph of a mini-batch with frontier="new", as PyTorch Geometric's SamplerOutput.

    Fetched -> Sampled -> SamplerOutput or HeteroSamplerOutput, whose ids are those of the user's data

The mini-batch has its nodes and edges in the order of hops already, so that all arrays are used as they are, without a
copy. Only a batch in which a seed repeats takes another way (subgraph.py): each seed gets a node and edges of its own.
"""

from __future__ import annotations

from typing import Any, Union

import torch
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from graphwire._base.native import ffi, lib
from graphwire._graph.graph import Graph
from graphwire._train.minibatch import make_batch
from graphwire.pyg.fetched import EDGES, NODES, ORIGINAL, Fetched
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.subgraph import Subgraph, triple

Output = Union[SamplerOutput, HeteroSamplerOutput]


class _Hops:
    """The number of nodes and edges that each hop has added: nodes[ntype], the seeds first; edges[etype].
    repeats: whether a seed repeats."""

    def __init__(self, graph: Graph, minibatch: Any):
        hops, ntypes, etypes = minibatch.hops, graph.ntypes, graph.etypes
        of_nodes = ffi.new("uint64_t[]", len(ntypes) * (hops + 1))
        of_edges = ffi.new("uint64_t[]", len(etypes) * hops)
        self.repeats = lib.hops_counts(minibatch, len(etypes), of_nodes, of_edges)
        nodes, edges = ffi.unpack(of_nodes, len(of_nodes)), ffi.unpack(of_edges, len(of_edges))
        self.nodes = {ntype: nodes[i * (hops + 1):(i + 1) * (hops + 1)] for i, ntype in enumerate(ntypes)}
        self.edges = {etype: edges[i * hops:(i + 1) * hops] for i, etype in enumerate(etypes)}


class Sampled:
    """The subgraph of a mini-batch whose loader fetches "orig_id" of the types that `ids` translates."""

    def __init__(self, fetched: Fetched, ids: OriginalIds):
        self._fetched, self._ids, graph = fetched, ids, ids.graph
        self._hops = _Hops(graph, fetched.lease.minibatch)
        self._copies: Subgraph | None = None
        if self._hops.repeats:
            batch = make_batch(graph, fetched.lease, fetched.spec)
            self._copies = Subgraph(batch, batch.seed_rows, graph.etypes)
        self._given: dict[str, torch.Tensor] = {}
        self._edge_index: dict[str, torch.Tensor] = {}
        self._rows: dict[str, torch.Tensor] = {}

    def __reduce__(self) -> Any:
        """Pickles as None: the memory of a batch stays in its process."""
        return type(None), ()

    def _of_nodes(self, ntype: str, rows: torch.Tensor) -> torch.Tensor:
        return rows if self._copies is None else self._copies.node_rows(ntype, rows)

    def node_rows(self, ntype: str, name: str) -> torch.Tensor:
        """The rows of a feature for the subgraph's nodes."""
        return self._of_nodes(ntype, self._fetched.rows(NODES, ntype, name))

    def edge_rows(self, etype: str, name: str) -> torch.Tensor:
        """The rows of a feature for the subgraph's edges."""
        if self._copies is None or not any(self._hops.edges[etype]):
            return self._fetched.rows(EDGES, etype, name)
        return self._copies.edge_rows(triple(etype), lambda edges: edges.data[name])

    def nodes(self, ntype: str) -> torch.Tensor:
        """n_id."""
        if self._ids.has_nodes(ntype):
            return self.node_rows(ntype, ORIGINAL)
        return self._of_nodes(ntype, self._fetched.nodes(self._ids.graph.ntypes.index(ntype)))

    def edges(self, etype: str) -> torch.Tensor:
        """e_id."""
        if self._ids.has_edges(etype):
            return self.edge_rows(etype, ORIGINAL)
        if self._copies is not None:
            return self._copies.edge_rows(triple(etype), lambda edges: edges.edge_ids)
        return self._fetched.edges(self._ids.graph.etypes.index(etype))

    def _ends(self, etype: str) -> torch.Tensor:
        """edge_index, [2, edges]. Its rows are used as row and col of the SamplerOutput."""
        if self._copies is not None:
            return self._copies.ends[triple(etype)]
        return self._fetched.ends(self._ids.graph.etypes.index(etype))

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
        num_nodes = self._hops.nodes if self._copies is None else self._copies.num_nodes
        num_edges = ({triple(etype): counts for etype, counts in self._hops.edges.items()} if self._copies is None
                     else self._copies.num_edges)
        if typed:
            return HeteroSamplerOutput(
                node=node, row=rows,
                col={etype: both[1] for etype, both in ends.items()}, edge=edge, num_sampled_nodes=num_nodes,
                num_sampled_edges=num_edges)
        ntype, etype = ntypes[0], triple(etypes[0])
        return SamplerOutput(node=node[ntype], row=rows[etype], col=ends[etype][1], edge=edge[etype],
                             num_sampled_nodes=num_nodes[ntype], num_sampled_edges=num_edges[etype])
