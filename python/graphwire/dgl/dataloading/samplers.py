"""Samplers over a DistGraph: NeighborSampler, MultiLayerFullNeighborSampler, as_edge_prediction_sampler.

sampler.sample(g, seeds) -> (input nodes, output nodes, blocks)

DGL's own samplers, if DGL is installed, work too: they call g.sample_neighbors for each layer. These samplers sample
all layers in one call of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._graph.fanouts import check_hops, count
from graphwire.dgl import host
from graphwire.dgl.dataloading.blocks import sample_blocks
from graphwire.dgl.dataloading.compacted import compacted
from graphwire.dgl.dataloading.exclude import exclude_ids
from graphwire.dgl.distributed.context import context
from graphwire.dgl.id_arrays import edges_of, ids_tensor


@keywords
class Sampler:
    """The interface of samplers: sample(g, indices) returns a mini-batch."""

    def sample(self, g: Any, indices: Any) -> Any:
        raise NotImplementedError


@keywords
class BlockSampler(Sampler):
    """The base class of scripts' own samplers, which implement sample_blocks(g, seed_nodes, exclude_eids)."""

    def __init__(self, prefetch_node_feats: Any = None, prefetch_labels: Any = None, prefetch_edge_feats: Any = None,
                 output_device: Any = None):
        self.prefetch_node_feats, self.prefetch_labels = prefetch_node_feats or [], prefetch_labels or []
        self.prefetch_edge_feats, self.output_device = prefetch_edge_feats or [], output_device

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        raise NotImplementedError

    def sample(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """(input nodes, output nodes, blocks), with the columns that the arguments prefetch_… name."""
        inputs, outputs, blocks = self.sample_blocks(g, seed_nodes, exclude_eids)
        for ntype, name in _named(g.ntypes, self.prefetch_node_feats):
            ids = blocks[0].srcnodes[ntype].data[host.NID]
            blocks[0].srcnodes[ntype].data[name] = context.rows(g.nodes[ntype].data[name], ids)
        for ntype, name in _named(g.ntypes, self.prefetch_labels):
            ids = blocks[-1].dstnodes[ntype].data[host.NID]
            blocks[-1].dstnodes[ntype].data[name] = g.nodes[ntype].data[name][ids]
        for etype, name in _named(g.canonical_etypes, self.prefetch_edge_feats):
            full = g.to_canonical_etype(etype)
            for block in (block for block in blocks if full in block.canonical_etypes):
                ids = block.edges[full].data[host.EID]
                block.edges[full].data[name] = g.edges[full].data[name][ids]
        return inputs, outputs, blocks


def columns(g: Any, sampler: Any) -> list[Any]:
    """The columns of nodes that a sampler fetches for the inputs of a batch."""
    around = getattr(sampler, "sampler", sampler)
    named = around.prefetch_node_feats if isinstance(around, BlockSampler) else []
    return [g.nodes[ntype].data[name] for ntype, name in _named(g.ntypes, named)]


def _named(kinds: Sequence[Any], names: Any) -> list[tuple[Any, str]]:
    if isinstance(names, Mapping):
        return [(kind, name) for kind, some in names.items() for name in ([some] if isinstance(some, str) else some)]
    return [(kinds[0], name) for name in ([names] if isinstance(names, str) else names)]


@keywords
class NeighborSampler(BlockSampler):
    """dgl.dataloading.NeighborSampler.

    fanouts: a count, or {edge type: count}, for each layer from the first to the last, which ends at the seeds. This is
        DGL's order; graphwire.NodeLoader's fanouts begin at the seeds.
    prob: the name of a column of edges, numbers of 0 or more: edges are drawn in proportion to it, and never if it is
        0. Edge types without the column are sampled uniformly.
    mask: as prob, for a column of bools, or of 0 and 1: only the edges that are set are drawn, all equally likely.

    Raises TypeError and ValueError for arguments. Sampling raises KeyError if no edge type has the column of prob or
    mask.
    """

    def __init__(self, fanouts: Sequence[Any], edge_dir: str = "in", prob: Any = None, mask: Any = None,
                 replace: bool = False, prefetch_node_feats: Any = None, prefetch_labels: Any = None,
                 prefetch_edge_feats: Any = None, output_device: Any = None, fused: bool = True):
        super().__init__(prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device)
        if mask is not None and prob is not None:
            raise ValueError("Mask and probability arguments are mutually exclusive.")
        if isinstance(fanouts, (str, Mapping)) or not isinstance(fanouts, Iterable):
            raise TypeError(f"fanouts: a list with a count, or {{edge type: count}}, for each layer, not {fanouts!r}")
        self.fanouts = [fanout if fanout is None or isinstance(fanout, Mapping) else count(fanout, "fanouts")
                        for fanout in fanouts]
        check_hops(len(self.fanouts))
        self.edge_dir, self.replace, self.fused = edge_dir, checks.flag("replace", replace), fused
        self.prob = prob if mask is None else mask

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        return sample_blocks(g, seed_nodes, self.fanouts, edge_dir=self.edge_dir, prob=self.prob, replace=self.replace,
                             exclude_eids=exclude_eids)


MultiLayerNeighborSampler = NeighborSampler


@keywords
class MultiLayerFullNeighborSampler(NeighborSampler):
    """All neighbours in each of num_layers layers."""

    def __init__(self, num_layers: int, *, edge_dir: str = "in", prob: Any = None, mask: Any = None,
                 replace: bool = False, prefetch_node_feats: Any = None, prefetch_labels: Any = None,
                 prefetch_edge_feats: Any = None, output_device: Any = None, fused: bool = True):
        super().__init__([-1] * checks.integer("num_layers", num_layers, 1), edge_dir, prob, mask, replace,
                         prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device, fused)


@keywords
class EdgePredictionSampler(Sampler):
    """A sampler of edges. as_edge_prediction_sampler makes it and documents the arguments."""

    def __init__(self, sampler: Any, exclude: Any = None, reverse_eids: Any = None, reverse_etypes: Any = None,
                 negative_sampler: Any = None, prefetch_labels: Any = None):
        self.sampler, self.exclude, self.reverse_eids = sampler, exclude, reverse_eids
        self.reverse_etypes, self.negative_sampler = reverse_etypes, negative_sampler
        self.prefetch_labels, self.output_device = prefetch_labels or [], None

    def sample(self, g: Any, seed_edges: Any) -> Any:
        """(input nodes, graph of the edges, graph of the negatives, blocks). If negative_sampler is None, the result
        lacks the graph of the negatives."""
        if isinstance(seed_edges, Mapping):
            seed_edges = {g.to_canonical_etype(etype): ids_tensor(ids, edges_of(g, etype), "seed_edges")
                          for etype, ids in seed_edges.items()}
        else:
            seed_edges = ids_tensor(seed_edges, edges_of(g), "seed_edges")
        pair = g.edge_subgraph(seed_edges, relabel_nodes=False)
        ids = {etype: pair.edges[etype].data[host.EID] for etype in pair.canonical_etypes}
        negatives = [] if self.negative_sampler is None else [self._negative_graph(g, seed_edges)]
        graphs = compacted([pair, *negatives])
        for etype, some in ids.items():
            graphs[0].edges[etype].data[host.EID] = some
        for etype, name in _named(list(ids), self.prefetch_labels):
            if g.to_canonical_etype(etype) not in ids:
                continue
            graphs[0].edges[etype].data[name] = g.edges[etype].data[name][ids[g.to_canonical_etype(etype)]]
        seeds = graphs[0].ndata[host.NID]
        exclude = exclude_ids(g, self.exclude, seed_edges, self.reverse_eids, self.reverse_etypes)
        inputs, _, blocks = self.sampler.sample(g, seeds, exclude)
        return (inputs, *graphs, blocks)

    def _negative_graph(self, g: Any, seed_edges: Any) -> Any:
        found = self.negative_sampler(g, seed_edges)
        if not isinstance(found, Mapping):
            found = {g.to_canonical_etype(None): found}
        found = {g.to_canonical_etype(etype): pair for etype, pair in found.items()}
        none = torch.empty(0, dtype=torch.int64)
        if len(g.canonical_etypes) == 1 and len(g.ntypes) == 1:
            return host.dgl().graph(next(iter(found.values())), num_nodes=g.num_nodes())
        return host.dgl().heterograph({etype: found.get(etype, (none, none)) for etype in g.canonical_etypes},
                                      {ntype: g.num_nodes(ntype) for ntype in g.ntypes})


@keywords
def as_edge_prediction_sampler(sampler: Any, exclude: Any = None, reverse_eids: Any = None, reverse_etypes: Any = None,
                               negative_sampler: Any = None, prefetch_labels: Any = None) -> EdgePredictionSampler:
    """Makes a sampler of edges from a sampler of nodes.

    sampler: the sampler of nodes. exclude, reverse_eids, reverse_etypes: as exclude_ids has them; exclude is None,
    "self", "reverse_id", "reverse_types" or a function. negative_sampler: makes (sources, destinations) of negatives.
    prefetch_labels: names of columns of the edges.
    """
    return EdgePredictionSampler(sampler, exclude, reverse_eids, reverse_etypes, negative_sampler, prefetch_labels)
