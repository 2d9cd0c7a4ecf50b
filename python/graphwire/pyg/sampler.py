"""PyTorch Geometric's BaseSampler over a graph.

NodeLoader or LinkLoader asks for the neighbourhood of a batch -> graphwire.loader.sample -> Subgraph -> SamplerOutput

torch's random numbers determine the sampling, like PyG's shuffling and negatives. So torch.manual_seed repeats it. The
workers of a loader are forks, or get the sampler by pickle; each opens its own connections.

Errors: ValueError, TypeError and NotImplementedError for arguments; those of graphwire.sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

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
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import HeldOut
from graphwire._graph.rules import Weight
from graphwire._train.loader import sample
from graphwire.pyg.draws import Draws
from graphwire.pyg.edges import EdgePermutations
from graphwire.pyg.existing import NegativesAtTimes
from graphwire.pyg.induced import Among
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.stores import GraphStore
from graphwire.pyg.subgraph import EdgeType, Subgraph, triple
from graphwire.pyg.times import SeedTimes, Times

Output = Union[SamplerOutput, HeteroSamplerOutput]


@keywords
class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples the neighbours of nodes, and of the ends of links, as torch_geometric.sampler.NeighborSampler does.

    graph_store: a GraphStore, or its graph.
    num_neighbors: a count for each hop, from the seeds outwards (-1: all neighbours); or {(source, relation,
        destination): such a list}; or NumNeighbors.
    replace: sample with replacement.
    subgraph_type: "directional" or "bidirectional"; or "induced", with all edges among the sampled nodes, of disjoint
        batches among those of each seed.
    weight_attr: a feature of the graph's edges, for all edge types that have it, or {(source, relation, destination):
        feature}. Edges are drawn in proportion to it; graphwire.NodeLoader describes the draws. None: all edges are
        equally likely.
    held_out: edges that are not sampled, a graphwire.HeldOut.
    disjoint: each seed, and each end of a link, has nodes of its own, which SamplerOutput.batch names.
    time_attr: a feature of nodes or of edges, int64, int32, float64 or float32: only edges are drawn whose time is not
        later than that of the batch's seed. With times of nodes, the time of an edge is that of its source. Edges of
        types without times are drawn uniformly. Seeds without times of their own (input_time) have that of their node.
        Batches are disjoint. graphwire.pyg.NeighborLoader says what the graph needs.
    temporal_strategy: "uniform" draws among these edges, "last" takes the latest.

    As in PyG, seeds of a homogeneous graph have no type; seeds with a type give a heterogeneous batch.

    ids: "orig": seeds and sampled nodes have the ids of the user's data, where the graph keeps them. sample_from_nodes
        and sample_from_edges return the graph's ids of edges, and edge_permutation translates them. PyG's loaders apply
        it, so that a batch's e_id are columns of the edge_index from which the graph was made. "graph": all ids are the
        graph's. The stores must have the same `ids`.

    Raises NotImplementedError for weight_attr with time_attr, and for negatives that
    graphwire.pyg.LinkNeighborLoader refuses;
    ValueError for seeds without a type in a heterogeneous graph, for times that do not exist, and for "last" without
    times; TypeError and InvalidError for num_neighbors; TypeError and NotFoundError for weight_attr; and the errors of
    graphwire.sample.
    """

    def __init__(self, graph_store: GraphStore | Graph,
                 num_neighbors: NumNeighbors | Sequence[int] | Mapping[Any, Sequence[int]], *, replace: bool = False,
                 subgraph_type: str | SubgraphType = "directional", weight_attr: Weight = None, ids: str = "orig",
                 held_out: HeldOut | None = None, disjoint: bool = False, temporal_strategy: str = "uniform",
                 time_attr: str | Times | None = None):
        graph = graph_store.graph if isinstance(graph_store, GraphStore) else graph_store
        self.graph, self.held_out = graph, held_out
        time = time_attr if isinstance(time_attr, Times) or time_attr is None else Times.of_graph(graph, time_attr)
        self._draws = Draws(graph, num_neighbors, replace, subgraph_type, weight_attr, disjoint, temporal_strategy,
                            time)
        self.replace, self.weight_attr, self.disjoint = self._draws.replace, weight_attr, self._draws.disjoint
        self.temporal_strategy = temporal_strategy
        self.subgraph_type = self._draws.subgraph_type
        self.edge_types = [triple(name) for name in graph.etypes]
        self._ids = OriginalIds(graph, ids)
        self._permutations = EdgePermutations(self._ids)

    @property
    def num_neighbors(self) -> NumNeighbors:
        """The counts. They can be set, as PyTorch Lightning's LightningNodeData sets them in a copy of the sampler; the
        original keeps its counts."""
        return self._draws.num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, counts: NumNeighbors | Sequence[int] | Mapping[Any, Sequence[int]]) -> None:
        self._draws = Draws(self.graph, counts, self.replace, self.subgraph_type, self.weight_attr, self.disjoint,
                            self.temporal_strategy, self._draws.time)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> Output:
        return self._directed(node_sample(index, self._sample))

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> Output:
        counts: Any = {ntype: self.graph.num_nodes(ntype) for ntype in self.graph.ntypes}
        if index.input_type is None:
            counts = self.graph.num_nodes()
        time, typed = self._draws.time, index.input_type
        if neg_sampling is not None and time is not None:
            if index.time is None:
                raise ValueError("edge_label_time is not set, and the sampler has a time_attr: negatives need times")
            kinds = (typed[0], typed[-1]) if typed else (self.graph.ntypes[0], self.graph.ntypes[0])
            times = SeedTimes(index.time, len(index.time), "edge_label_time", self._draws.unit).numbers
            neg_sampling = NegativesAtTimes(neg_sampling, time, kinds, times, self._ids)
        return self._directed(edge_sample(index, self._sample, counts, self.disjoint, None, neg_sampling))

    @property
    def edge_permutation(self) -> EdgePermutations | None:
        """{(source, relation, destination): translation from the graph's ids of edges to those of the user's data}, of
        the edge types that keep them; None if no type does. In a homogeneous graph, edge_permutation[edges] translates
        directly."""
        return self._permutations or None

    def _directed(self, out: Output) -> Output:
        return out.to_bidirectional() if self.subgraph_type == SubgraphType.bidirectional else out

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> Output:
        """PyG's node_sample and edge_sample call this. seed: ids, or {node type: ids}."""
        ntypes, draws = self.graph.ntypes, self._draws
        typed = isinstance(seed, Mapping)
        if not typed and len(ntypes) != 1:
            raise ValueError(f"seeds of which node type? give (type, ids); there are {', '.join(ntypes)}")
        if not typed and len(self.edge_types) != 1:
            raise ValueError(f"a graph of {len(self.edge_types)} edge types is heterogeneous: give seeds as "
                             f'("{ntypes[0]}", ids)')
        given = {ntype: _arrays.ids_array(ids, None, "seeds (input_nodes, edge_label_index)")
                 for ntype, ids in (seed.items() if typed else [(ntypes[0], seed)])}
        seeds = {ntype: self._ids.nodes_to_graph(ntype, ids) for ntype, ids in given.items()}
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
            return draws.counted(self._output(found, ntypes[0], self.edge_types[0], groups))
        return draws.counted(HeteroSamplerOutput(
            node={ntype: self._nodes(found, ntype) for ntype in found.num_nodes},
            row={etype: ends[0] for etype, ends in found.ends.items()},
            col={etype: ends[1] for etype, ends in found.ends.items()},
            edge={etype: _ids(found, etype) for etype in found.ends}, batch=groups,
            num_sampled_nodes=found.num_nodes, num_sampled_edges=found.num_edges))

    def _times(self, seeds: Mapping[str, torch.Tensor], given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The times of seeds; None if no edge is drawn by time. given: the caller's, or None."""
        draws = self._draws
        if given is not None and draws.time is None:
            raise ValueError("input_time, edge_label_time: the sampler has no time_attr, which they need")
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
            return HeteroSamplerOutput(
                node=node, row={etype: ends[0] for etype, (ends, _) in among.items()},
                col={etype: ends[1] for etype, (ends, _) in among.items()},
                edge={etype: ids for etype, (_, ids) in among.items()}, batch=groups)
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
