"""PyTorch Geometric's NeighborLoader over a graph, stores, or data in memory.

    input_nodes in the user's ids -> the graph's ids, once -> ahead.py -> batches in the user's ids
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch_geometric.loader as pyg
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.sampler.base import SubgraphType

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._graph.rules import Weight
from graphwire._train.lookahead import checked
from graphwire.pyg.ahead import Asked, SamplesAhead
from graphwire.pyg.draws import Counts, check_together
from graphwire.pyg.input_nodes import InputNodes
from graphwire.pyg.loaders import Loops
from graphwire.pyg.options import kind_of, without_effect
from graphwire.pyg.rows import selected
from graphwire.pyg.sampler import NeighborSampler, own_sampler
from graphwire.pyg.sources import Source, store_of
from graphwire.pyg.times import SeedTimes


@keywords
class NeighborLoader(Loops, SamplesAhead, pyg.NeighborLoader):  # type: ignore[misc]
    """torch_geometric.loader.NeighborLoader, with its arguments, batches and attributes. docs/PYG.md has a table of all
    arguments.

    data: a graphwire.Graph, graphwire.pyg.stores(…), Data, HeteroData, or (FeatureStore, GraphStore) of your own
        classes. A batch of a graph gets every feature of nodes and edges; a batch of stores, their attributes; a batch
        of data in memory, what PyG selects. The loader stores the edges of data in memory and of your own stores when
        it is made, so that a later change of them has no effect.
    num_neighbors: a count for each hop, or {edge type: counts}; -1: all neighbours.
    input_nodes: the seeds: None (all nodes), ids, a mask of bools, a feature of the graph, "type", or ("type", one of
        these).
    subgraph_type: "induced": batches have all edges among their nodes, which the draws decide; disjoint ones, those
        among the nodes of each seed; with times, those that are not later. num_sampled_nodes and num_sampled_edges are
        None then, as in PyG.
    weight_attr: an edge feature, or {edge type: feature}; graphwire.NodeLoader describes the draws.
    disjoint: each seed has nodes of its own, also if seeds are equal. The batch has the attribute batch of each node
        type, the place of each node's seed.
    time_attr: an attribute of nodes or of edges, int64, int32, float64 or float32, by which edges are drawn: only those
        whose time is not later than that of the batch's seed, at every hop. With times of nodes, the time of an edge is
        that of its source. Edges of types without times are drawn uniformly. Batches are disjoint. If the times are of
        nodes, a graph must be made with time=time_attr (from_pyg, partition_graph, graphwire partition --time).
    input_time: the time of each seed, numbers as those of time_attr, [seeds]. None: the times of the seeds' nodes.
    temporal_strategy: "uniform" draws among the edges of the time, "last" takes the latest of them.
    neighbor_sampler: a graphwire.pyg.NeighborSampler, which replaces num_neighbors, replace, subgraph_type and
        weight_attr, and whose held_out edges are not sampled. disjoint, time_attr and temporal_strategy must be the
        sampler's, if they are given. None: the loader makes one. The sampler is the attribute node_sampler (of links:
        link_sampler); its num_neighbors can be set.
    ids: "orig": all ids are those of the user's data, where the graph keeps them; "graph": the graph's ids.
    dtype: of a graph and its stores, the type of the features of real numbers: float32, float16, bfloat16 or float64.
        The library's threads convert the rows. None: their own; of those that were stored narrow, the original.
    edge_ids: False: batches have neither e_id nor other attributes of edges. Sampling then takes less time, and servers
        send half the bytes for each edge.
    depth, lookahead, cache_bytes, cache_batches: as graphwire.NodeLoader's, with the same batches as without. Each loop
        begins anew; the rows that are kept stay from loop to loop. cache_bytes reads the order of an epoch when it
        begins, so that it needs a sampler that knows it then. Edges of "induced" batches take no part.
    kwargs: custom_cls and input_id of PyG's NodeLoader; the arguments of torch's DataLoader.

    Batches are Data or HeteroData and have n_id, e_id, batch_size, input_id, num_sampled_nodes and num_sampled_edges;
    with input_time also seed_time.
    Rows of a graph's features, e_id and edge_index are views of the library's memory: one that is kept keeps the memory
    of its batch, and clone() of it does not. n_id and rows of nodes of at most 16 bytes are copies.
    The library's threads sample a few batches ahead. num_workers and other arguments for worker processes have no
    effect, which one UserWarning says. torch's random numbers, or `generator`, decide the order and the draws. Loops,
    states and the warning for unequal ranks are as graphwire.pyg.NodeLoader's.

    Raises NotImplementedError, which names the options, for weight_attr with time_attr; ValueError, TypeError and
    LookupError for other arguments; the errors of from_pyg for data in memory; NotFoundError and InvalidError for ids
    that belong to no node or to several. A batch raises PeerError or DeadlineError if a server does not answer.
    """

    __repr__ = SamplesAhead.__repr__

    def __init__(self, data: Any, num_neighbors: Counts, input_nodes: Any = None, input_time: Any = None,
                 replace: bool = False, subgraph_type: SubgraphType | str = "directional", disjoint: bool = False,
                 temporal_strategy: str = "uniform", time_attr: str | None = None, weight_attr: Weight = None,
                 transform: Callable[[Any], Any] | None = None,
                 transform_sampler_output: Callable[[Any], Any] | None = None, is_sorted: bool = False,
                 filter_per_worker: bool | None = None, neighbor_sampler: Any = None, directed: bool = True, *,
                 ids: str = "orig", dtype: Any = None, edge_ids: bool = True, depth: int = 4, lookahead: int = 1,
                 cache_bytes: int | str = 0, cache_batches: int = 0, **kwargs: Any):
        subgraph_type = kind_of(subgraph_type, directed)
        check_together(weight_attr, temporal_strategy, time_attr is not None)
        without_effect({**kwargs, "is_sorted": is_sorted})
        given = own_sampler(neighbor_sampler, disjoint, temporal_strategy, time_attr)
        if input_time is not None and time_attr is None:
            raise ValueError("input_time needs time_attr, which names the times of nodes or edges")
        self._source = Source(data, ids, weight_attr, kwargs.pop("custom_cls", None),
                              None if given is None else given.graph, None if given is not None else time_attr,
                              dtype)
        self._ahead = self._source.looking(checked(depth, lookahead, cache_bytes, cache_batches))
        self._edge_ids = checks.flag("edge_ids", edge_ids)
        self.data = self._source.data
        self.node_sampler = self._sampler = given or NeighborSampler(
            self._source, num_neighbors, subgraph_type, replace, disjoint, temporal_strategy, weight_attr=weight_attr)
        self.input_nodes, self.input_time = input_nodes, input_time
        self.transform, self.transform_sampler_output = transform, transform_sampler_output
        self.filter_per_worker, self.custom_cls = filter_per_worker, self._source.custom_cls
        self.input_id = kwargs.pop("input_id", None)
        found = self._seeds_of(data, input_nodes)
        self._typed, self._nodes = found.typed, found.nodes
        self._ntype = found.ntype
        times = None if input_time is None else self._times_given(input_time)
        self._times, self._times_argument = self._times_of(times), None if times is None else "input_time"
        self.input_data = NodeSamplerInput(input_id=found.input_id, node=found.given,
                                           time=None if times is None else times.given,
                                           input_type=found.ntype if found.typed else None)
        self._begin_loops()
        self._begin(len(self._nodes), [found.ntype], kwargs)

    def _seeds_of(self, data: Any, input_nodes: Any) -> InputNodes:
        return InputNodes(self._source, data, input_nodes, self.input_id)

    def _times_given(self, input_time: Any) -> SeedTimes:
        return SeedTimes(input_time, len(self._nodes), "input_time", self._sampler._draws.unit)

    def _times_of(self, given: SeedTimes | None) -> torch.Tensor | None:
        """The times of all seeds; None if no edge is drawn by time."""
        draws = self._sampler._draws
        if draws.time is None or draws.rules is None:
            return None
        return given.numbers if given is not None else draws.time.own(
            self._ntype, self._nodes, "input_time", draws.unit)

    def _asked(self, index: torch.Tensor, generator: torch.Generator) -> Asked:
        given, ntype = self.input_data, self._ntype
        input_id = index if given.input_id is None else selected(given.input_id, index)
        return Asked({ntype: selected(self._nodes, index)},
                     (input_id, None if given.time is None else selected(given.time, index)),
                     None if self._times is None else {ntype: selected(self._times, index)})

    def _add_seeds(self, data: Any, metadata: tuple[Any, ...]) -> None:
        store = store_of(data, self._ntype if self._typed else None)
        store["input_id"], store["seed_time"] = metadata
        store["batch_size"] = len(metadata[0])
