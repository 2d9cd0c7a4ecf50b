"""The sampled subgraph of a mini-batch with frontier="new", as PyTorch Geometric's SamplerOutput.

    Fetched -> Sampled -> SamplerOutput or HeteroSamplerOutput, whose ids are those of the user's data

The mini-batch has its nodes and edges in the order of hops already, so that all arrays are used as they are, without a
copy. Only a batch in which a seed repeats takes another way (subgraph.py): each seed gets a node and edges of its own.
"""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import torch
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from graphwire._train.minibatch import make_batch
from graphwire.pyg.fetched import EDGES, NODES, ORIGINAL, Fetched
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.subgraph import EdgeType, Hops, Subgraph, triple

Output = Union[SamplerOutput, HeteroSamplerOutput]


class Sampled:
    """The subgraph of a mini-batch whose loader fetches "orig_id" of the types that `ids` translates."""

    def __init__(self, fetched: Fetched, ids: OriginalIds):
        self._fetched, self._ids, graph = fetched, ids, ids.graph
        self._hops = Hops(graph.ntypes, graph.etypes, fetched.lease.minibatch)
        self._copies: Subgraph | None = None
        if self._hops.repeats:
            batch = make_batch(graph, fetched.lease, fetched.spec)
            self._copies = Subgraph(batch, batch.seed_rows, graph.etypes)
        self._given: dict[str, torch.Tensor | None] = {}
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

    def _nodes(self) -> dict[str, torch.Tensor]:
        """{node type: n_id}."""
        return {ntype: self.node_rows(ntype, ORIGINAL) if self._ids.has_nodes(ntype) else self._of_nodes(ntype, ids)
                for ntype, ids in zip(self._ids.graph.ntypes, self._fetched.nodes())}

    def _edges(self) -> tuple[dict[EdgeType, torch.Tensor], dict[EdgeType, torch.Tensor | None]]:
        """({edge type: edge_index}, {edge type: e_id; None without ids of edges}). The rows of edge_index are row and
        col of the SamplerOutput."""
        names = {etype: triple(etype) for etype in self._ids.graph.etypes}
        wanted = self._fetched.spec.form.edge_ids
        original = {etype: self.edge_rows(etype, ORIGINAL) for etype in names if wanted and self._ids.has_edges(etype)}
        if self._copies is not None:
            return self._copies.ends, {etype: original[name] if name in original else self._copies.edges(etype)
                                       for name, etype in names.items()}
        found = self._fetched.edges([wanted and name not in original for name in names])
        return ({etype: ends for etype, (ends, _) in zip(names.values(), found)},
                {etype: original.get(name) if ids is None else ids
                 for (name, etype), (_, ids) in zip(names.items(), found)})

    def _counts(self) -> tuple[dict[str, list[int]] | None, dict[EdgeType, list[int]] | None]:
        """(num_sampled_nodes, num_sampled_edges)."""
        if self._copies is not None:
            return self._copies.num_nodes, self._copies.num_edges
        return self._hops.nodes, {triple(etype): counts for etype, counts in self._hops.edges.items()}

    def given(self, kind: str) -> torch.Tensor | None:
        """The ids of a type in output(), as the same object."""
        return self._given.get(kind)

    def edge_index(self, etype: str, row: torch.Tensor, col: torch.Tensor) -> torch.Tensor:
        """[row, col] as one tensor, without a copy if row is that of output()."""
        return self._edge_index[etype] if row is self._rows.get(etype) else torch.stack([row, col])

    def output(self, typed: bool, slots: np.ndarray | None = None) -> Output:
        """The SamplerOutput; typed: the HeteroSamplerOutput, with all types of the graph. Its batch, in a disjoint
        batch: the place of each node's seed; with slots, slots[place]."""
        node, (ends, edge) = self._nodes(), self._edges()
        both = {etype: some.unbind() for etype, some in ends.items()}
        rows, cols = ({etype: some[end] for etype, some in both.items()} for end in (0, 1))
        names = {etype: ":".join(etype) for etype in ends}
        self._given = {**node, **{names[etype]: ids for etype, ids in edge.items()}}
        self._edge_index = {names[etype]: some for etype, some in ends.items()}
        self._rows = {names[etype]: some for etype, some in rows.items()}
        num_nodes, num_edges = self._counts()
        batch = self._fetched.groups(slots)
        if typed:
            return HeteroSamplerOutput(
                node=node, row=rows, col=cols, edge=edge, batch=None if batch is None else dict(zip(node, batch)),
                num_sampled_nodes=num_nodes, num_sampled_edges=num_edges)
        ntype, etype = next(iter(node)), next(iter(ends))
        return SamplerOutput(node=node[ntype], row=rows[etype], col=cols[etype], edge=edge[etype],
                             batch=None if batch is None else batch[0],
                             num_sampled_nodes=None if num_nodes is None else num_nodes[ntype],
                             num_sampled_edges=None if num_edges is None else num_edges[etype])


def without(out: Output, etypes: list[EdgeType]) -> Output:
    """Removes edge types of the graph that the caller's data lacks."""
    for etype in etypes:
        for name in ("row", "col", "edge", "num_sampled_edges"):
            (getattr(out, name) or {}).pop(etype, None)
    return out
