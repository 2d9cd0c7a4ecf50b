"""PyTorch Geometric's BaseSampler over a graph.

NodeLoader or LinkLoader asks for the neighbourhood of a batch -> graphwire.sample -> Subgraph -> SamplerOutput

torch's random numbers determine the sampling, like PyG's shuffling and negatives. So torch.manual_seed repeats it. The
workers of a loader are forks, or get the sampler by pickle; each opens its own connections.

Errors: ValueError, TypeError and NotImplementedError for arguments; those of graphwire.sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    NumNeighbors,
    SamplerOutput,
)
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from graphwire._base import arrays as _arrays
from graphwire._base.keywords import keywords
from graphwire._graph.held_out import HeldOut
from graphwire._graph.rules import Weight
from graphwire._train.single import sample
from graphwire.pyg.draws import Counts, Draws, check_together
from graphwire.pyg.edges import EdgePermutations
from graphwire.pyg.existing import NegativesAtTimes
from graphwire.pyg.induced import Among
from graphwire.pyg.options import check_direction, kind_of, negatives_of, without_effect
from graphwire.pyg.sampled import Output, without
from graphwire.pyg.sources import Origin
from graphwire.pyg.subgraph import EdgeType, Subgraph, triple
from graphwire.pyg.times import SeedTimes


@keywords
class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples the neighbours of nodes, and of the ends of links, as torch_geometric.sampler.NeighborSampler does.

    data: what NeighborLoader takes as data, or a graphwire.pyg.GraphStore: the sampler needs the graph alone. The edges
        of Data, of HeteroData and of stores of your own classes are read once, when the sampler is made.
    num_neighbors: a count for each hop, from the seeds outwards (-1: all neighbours); or {(source, relation,
        destination): such a list}; or NumNeighbors.
    subgraph_type: "directional" or "bidirectional"; or "induced", with all edges among the sampled nodes, of disjoint
        batches among those of each seed.
    replace: sample with replacement.
    disjoint: each seed, and each end of a link, has nodes of its own, which SamplerOutput.batch names.
    temporal_strategy: "uniform" draws among the edges of the time, "last" takes the latest of them.
    time_attr: a feature of nodes or of edges, int64, int32, float64 or float32: only edges are drawn whose time is not
        later than that of the batch's seed. With times of nodes, the time of an edge is that of its source. Edges of
        types without times are drawn uniformly. Seeds without times of their own (NodeSamplerInput.time) have that of
        their node. Batches are disjoint. graphwire.pyg.NeighborLoader says what the graph needs.
    weight_attr: a feature of the graph's edges, for all edge types that have it, or {(source, relation, destination):
        feature}. Edges are drawn in proportion to it; graphwire.NodeLoader describes the draws. None: all edges are
        equally likely.
    is_sorted, share_memory: without effect, which a UserWarning says.
    directed: False is the older word for subgraph_type="induced".
    sample_direction: "backward", along the edges, is refused.
    ids: "orig": seeds and sampled nodes have the ids of the user's data, where the graph keeps them. sample_from_nodes
        and sample_from_edges return the graph's ids of edges, and edge_permutation translates them. PyG's loaders apply
        it, so that a batch's e_id are columns of the edge_index from which the graph was made. "graph": all ids are the
        graph's. The stores must have the same `ids`.
    held_out: edges that are not sampled, a graphwire.HeldOut.

    As in PyG, seeds without a type give a SamplerOutput, and seeds with a type a HeteroSamplerOutput. A Graph of one
    node type and one edge type takes both.

    num_neighbors, disjoint and keep_orig_edges can be set; the last makes bidirectional results keep orig_row and
    orig_col.

    Negatives are those of graphwire.pyg.LinkNeighborLoader where links have times, and otherwise PyG's.

    Raises NotImplementedError for "backward", and for time_attr with weight_attr;
    ValueError for seeds with or without a type where the data has none or several, for times that do not exist, and for
    "last" without times; TypeError and InvalidError for num_neighbors; TypeError and NotFoundError for weight_attr; the
    errors of from_pyg for data in memory; and those of graphwire.sample.
    """

    def __init__(self, data: Any, num_neighbors: Counts, subgraph_type: str | SubgraphType = "directional",
                 replace: bool = False, disjoint: bool = False, temporal_strategy: str = "uniform",
                 time_attr: str | None = None, weight_attr: Weight = None, is_sorted: bool = False,
                 share_memory: bool = False, directed: bool = True, sample_direction: str = "forward", *,
                 ids: str = "orig", held_out: HeldOut | None = None):
        subgraph_type = kind_of(subgraph_type, directed)
        check_direction(sample_direction)
        without_effect({"is_sorted": is_sorted, "share_memory": share_memory})
        if not isinstance(data, Origin):
            check_together(weight_attr, temporal_strategy, time_attr is not None)
        origin = data if isinstance(data, Origin) else Origin(data, ids, weight_attr, time_attr)
        self.graph, self.held_out = origin.graph, held_out
        self._ids, self._typed, self._hidden = origin.ids, origin.typed, origin.hidden
        self._draws = Draws(self.graph, num_neighbors, replace, subgraph_type, weight_attr, disjoint, temporal_strategy,
                            origin.time)
        self.replace, self.weight_attr = self._draws.replace, weight_attr
        self.temporal_strategy = temporal_strategy
        self.subgraph_type, self.keep_orig_edges = self._draws.subgraph_type, False
        self.node_types, self.edge_types = self.graph.ntypes, [triple(name) for name in origin.etypes]
        self._permutations = EdgePermutations(self._ids, origin.etypes)

    @property
    def num_neighbors(self) -> NumNeighbors:
        """The counts. They can be set, as PyTorch Lightning's LightningNodeData sets them in a copy of the sampler; the
        original keeps its counts."""
        return self._draws.num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, counts: Counts) -> None:
        self._draw(counts, self.disjoint)

    @property
    def disjoint(self) -> bool:
        """Whether each seed has nodes of its own, as always with times. It can be set."""
        return self._draws.disjoint

    @disjoint.setter
    def disjoint(self, disjoint: bool) -> None:
        self._draw(self.num_neighbors, disjoint)

    def _draw(self, counts: Counts, disjoint: bool) -> None:
        self._draws = Draws(self.graph, counts, self.replace, self.subgraph_type, self.weight_attr, disjoint,
                            self.temporal_strategy, self._draws.time)

    @property
    def is_hetero(self) -> bool:
        """Whether seeds need a type."""
        return bool(self._typed)

    @property
    def is_temporal(self) -> bool:
        return self._draws.time is not None

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> Output:
        return self._directed(node_sample(index, self._sample))

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> Output:
        counts: Any = {ntype: self.graph.num_nodes(ntype) for ntype in self.graph.ntypes}
        if index.input_type is None:
            counts = self.graph.num_nodes()
        time, typed = self._draws.time, index.input_type
        self._check_time(index.time)
        asked = negatives_of(neg_sampling)
        times = None if index.time is None else SeedTimes(index.time, len(index.row), "edge_label_time",
                                                          self._draws.unit)
        negatives: Any = asked
        if asked is not None and time is not None:
            if times is None:
                raise ValueError("edge_label_time is not set, and the sampler has a time_attr: negatives need times")
            kinds = (typed[0], typed[-1]) if typed else (self.graph.ntypes[0], self.graph.ntypes[0])
            negatives = NegativesAtTimes(asked, time, kinds, times.numbers, index.input_id, self._ids)
        return self._directed(edge_sample(index, self._sample, counts, self.disjoint, None, negatives))

    @property
    def edge_permutation(self) -> EdgePermutations | None:
        """{(source, relation, destination): translation from the graph's ids of edges to those of the user's data}, of
        the edge types that keep them; None if no type does. In a homogeneous graph, edge_permutation[edges] translates
        directly."""
        return self._permutations or None

    def _directed(self, out: Output) -> Output:
        return out.to_bidirectional(self.keep_orig_edges) if self.subgraph_type == SubgraphType.bidirectional else out

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> Output:
        """PyG's node_sample and edge_sample call this. seed: ids, or {node type: ids}."""
        ntypes, draws = self.graph.ntypes, self._draws
        typed = isinstance(seed, Mapping)
        if typed and self._typed is False:
            raise ValueError(f"the seeds name a type, {', '.join(map(repr, seed))}, and the data has none")
        if not typed and self._typed:
            raise ValueError(f"seeds of which node type? give (type, ids); there are {', '.join(ntypes)}")
        what = "seeds (input_nodes, edge_label_index)"
        given = {ntype: _arrays.ids_array(ids, None, what)
                 for ntype, ids in (seed.items() if typed else [(ntypes[0], seed)])}
        seeds = {ntype: self._ids.nodes_to_graph(ntype, ids, what) for ntype, ids in given.items()}
        times = self._times(seeds, seed_time if typed or seed_time is None else {ntypes[0]: seed_time})
        number, stream = torch.randint(0, 2**63 - 1, (2,)).tolist()
        batch = sample(self.graph, seeds, draws.hops, replace=self.replace, weight=self.weight_attr, time=draws.rules,
                       times=times, pick=draws.pick, disjoint=draws.disjoint, frontier="new", held_out=self.held_out,
                       seed=number, stream=stream)
        found = Subgraph(batch, batch.seed_rows, self.graph.etypes)
        groups = None if batch.groups is None else {
            ntype: found.node_rows(ntype, some) for ntype, some in batch.groups.items()}
        if draws.induced:
            return self._induced(found, groups, times, typed)
        if not typed:
            return draws.counted(self._output(found, ntypes[0], triple(self.graph.etypes[0]), groups))
        return draws.counted(without(HeteroSamplerOutput(
            node={ntype: self._nodes(found, ntype) for ntype in found.num_nodes},
            row={etype: ends[0] for etype, ends in found.ends.items()},
            col={etype: ends[1] for etype, ends in found.ends.items()},
            edge={etype: _ids(found, etype) for etype in found.ends}, batch=groups,
            num_sampled_nodes=found.num_nodes, num_sampled_edges=found.num_edges), self._hidden))

    def _check_time(self, given: Any) -> None:
        if given is not None and self._draws.time is None:
            raise ValueError("input_time, edge_label_time: the sampler has no time_attr, which they need")

    def _times(self, seeds: Mapping[str, torch.Tensor], given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The times of seeds; None if no edge is drawn by time. given: the caller's, or None."""
        draws = self._draws
        self._check_time(given)
        if draws.time is None or draws.rules is None:
            return None
        if given is None:
            return {ntype: draws.time.own(ntype, ids, "input_time", draws.unit) for ntype, ids in seeds.items()}
        return {ntype: SeedTimes(given[ntype], len(ids), "input_time", draws.unit).numbers
                for ntype, ids in seeds.items()}

    def _induced(self, found: Subgraph, groups: dict[str, torch.Tensor] | None, times: dict[str, Any] | None,
                 typed: bool) -> Output:
        among = Among(self.graph, self.held_out, self._draws.rules, times).find(
            {ntype: found.nodes(ntype) for ntype in self.graph.ntypes}, groups)
        node = {ntype: self._nodes(found, ntype) for ntype in found.num_nodes}
        if typed:
            return without(HeteroSamplerOutput(
                node=node, row={etype: ends[0] for etype, (ends, _) in among.items()},
                col={etype: ends[1] for etype, (ends, _) in among.items()},
                edge={etype: ids for etype, (_, ids) in among.items()}, batch=groups), self._hidden)
        ((ends, ids),) = among.values()
        (only,) = node
        return SamplerOutput(node=node[only], row=ends[0], col=ends[1], edge=ids,
                             batch=None if groups is None else groups[only])

    def _nodes(self, found: Subgraph, ntype: str) -> torch.Tensor:
        return self._ids.nodes_to_user(ntype, found.nodes(ntype))

    def _output(self, found: Subgraph, ntype: str, etype: EdgeType, groups: Mapping[str, Any] | None) -> SamplerOutput:
        return SamplerOutput(node=self._nodes(found, ntype), row=found.ends[etype][0], col=found.ends[etype][1],
                             edge=_ids(found, etype), batch=None if groups is None else groups[ntype],
                             num_sampled_nodes=found.num_nodes[ntype], num_sampled_edges=found.num_edges[etype])


def own_sampler(sampler: Any, disjoint: bool, temporal_strategy: str, time_attr: str | None) -> NeighborSampler | None:
    """Returns a loader's neighbor_sampler. Raises TypeError for a sampler of another package, and ValueError if the
    loader's other arguments ask for disjoint batches or times that the sampler does not have."""
    if sampler is None:
        return None
    if not isinstance(sampler, NeighborSampler):
        raise TypeError(f"neighbor_sampler is a graphwire.pyg.NeighborSampler, not {type(sampler).__name__}")
    time, strategy = sampler._draws.time, None if temporal_strategy == "uniform" else temporal_strategy
    for name, given, own in (("disjoint", disjoint or None, sampler.disjoint),
                             ("temporal_strategy", strategy, sampler.temporal_strategy),
                             ("time_attr", time_attr, None if time is None else time.name)):
        if given is not None and given != own:
            raise ValueError(f"{name}={given!r}, and the neighbor_sampler, which decides, has {own!r}")
    return sampler


def _ids(found: Subgraph, etype: EdgeType) -> torch.Tensor:
    return found.edge_rows(etype, lambda edges: edges.edge_ids)
