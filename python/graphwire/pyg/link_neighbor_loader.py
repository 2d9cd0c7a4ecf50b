"""PyTorch Geometric's LinkNeighborLoader over a graph, stores, or data in memory.

    edge_label_index in the user's ids -> the graph's ids, once -> negatives and seeds of a batch -> ahead.py
        -> batches in the user's ids
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch_geometric.loader as pyg
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling
from torch_geometric.sampler.base import SubgraphType

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._graph.rules import Weight
from graphwire._train.lookahead import checked
from graphwire.pyg.ahead import Asked, SamplesAhead
from graphwire.pyg.draws import Counts, check_together
from graphwire.pyg.links import Apart, Links, Negatives, Shared, labels_with_negatives, repeated
from graphwire.pyg.loaders import Loops
from graphwire.pyg.options import kind_of, negatives_of, without_effect
from graphwire.pyg.rows import selected, stacked, taken
from graphwire.pyg.sampler import NeighborSampler, own_sampler
from graphwire.pyg.sources import Source
from graphwire.pyg.times import SeedTimes


def _negatives(asked: Any, ratio: float | None, edge_label: Any) -> NegativeSampling | None:
    """neg_sampling as PyG understands it and the older neg_sampling_ratio. Raises ValueError."""
    found = negatives_of(("binary", ratio) if ratio else asked)
    if found is not None and found.is_triplet() and edge_label is not None:
        raise ValueError('edge_label must be None with neg_sampling "triplet": src_index, dst_pos_index and '
                         "dst_neg_index of a batch name positives and negatives")
    return found


def _values(name: str, given: Any, links: int) -> torch.Tensor | None:
    """One value for each link, [links, …]. Raises TypeError and ValueError, which have `name`."""
    if given is None:
        return None
    try:
        values = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} has numbers, one or several for each link, not {given!r:.100}: {error}") from error
    if values.dim() == 0 or len(values) != links:
        raise ValueError(f"{name}: {len(values) if values.dim() else 'no list of'} values for {links} links")
    return values


@keywords
class LinkNeighborLoader(Loops, SamplesAhead, pyg.LinkNeighborLoader):  # type: ignore[misc]
    """torch_geometric.loader.LinkNeighborLoader, with its arguments, batches and attributes. docs/PYG.md has a table of
    all arguments.

    edge_label_index: the links, [2, links] ids of nodes, which need not be edges of the graph; None: all edges, which
        the loader then reads, or looks up with each batch if there are more than 4,194,304. With several edge types: a
        type, or (type, one of these).
    edge_label: [links, …], a label for each link.
    neg_sampling: PyG's NegativeSampling, "binary", "triplet", or (mode, amount). Negatives may be edges of the graph.
        Their ends are drawn uniformly, or in proportion to src_weight and dst_weight, which have a weight for each row
        of the user's data; with times of nodes, among the nodes whose time is not later than the link's.

    The other arguments, the batches and the errors are NeighborLoader's. Batches also have edge_label_index and
    edge_label; with "triplet" src_index, dst_pos_index and dst_neg_index instead. Each end of a batch's links and
    negatives is a seed, once, in the order of the graph's ids; in disjoint batches each is a seed of its own, in the
    order of PyG: the sources, those of negatives behind them, then the destinations likewise. batch is then the place
    of the link, and of the link that a negative belongs to.

    edge_label_time: with time_attr, the time of each link, [links], for both its ends and its negatives. Batches have
    it as edge_label_time, with "triplet" as seed_time.
    """

    __repr__ = SamplesAhead.__repr__

    _times_argument = "edge_label_time"
    _draws_numbers = True

    def __init__(self, data: Any, num_neighbors: Counts, edge_label_index: Any = None, edge_label: Any = None,
                 edge_label_time: Any = None, replace: bool = False, subgraph_type: SubgraphType | str = "directional",
                 disjoint: bool = False, temporal_strategy: str = "uniform", neg_sampling: Any = None,
                 neg_sampling_ratio: float | None = None, time_attr: str | None = None, weight_attr: Weight = None,
                 transform: Callable[[Any], Any] | None = None,
                 transform_sampler_output: Callable[[Any], Any] | None = None, is_sorted: bool = False,
                 filter_per_worker: bool | None = None, neighbor_sampler: Any = None, directed: bool = True, *,
                 ids: str = "orig", dtype: Any = None, edge_ids: bool = True, depth: int = 4, lookahead: int = 1,
                 cache_bytes: int | str = 0, cache_batches: int = 0, **kwargs: Any):
        subgraph_type = kind_of(subgraph_type, directed)
        check_together(weight_attr, temporal_strategy, time_attr is not None)
        without_effect({**kwargs, "is_sorted": is_sorted})
        given = own_sampler(neighbor_sampler, disjoint, temporal_strategy, time_attr)
        if (edge_label_time is None) != (time_attr is None and (given is None or given._draws.time is None)):
            there, missing = ("edge_label_time", "time_attr")[::-1 if edge_label_time is None else 1]
            raise ValueError(f"'{missing}' is not set, and '{there}' is: they go together")
        self.neg_sampling = _negatives(neg_sampling, neg_sampling_ratio, edge_label)
        self._source = Source(data, ids, weight_attr, kwargs.pop("custom_cls", None),
                              None if given is None else given.graph, None if given is not None else time_attr,
                              dtype)
        self._ahead = self._source.looking(checked(depth, lookahead, cache_bytes, cache_batches))
        self._edge_ids = checks.flag("edge_ids", edge_ids)
        self.data = self._source.data
        self.link_sampler = self._sampler = given or NeighborSampler(
            self._source, num_neighbors, subgraph_type, replace, disjoint, temporal_strategy, weight_attr=weight_attr)
        self.edge_label_index = edge_label_index
        self.transform, self.transform_sampler_output = transform, transform_sampler_output
        self.filter_per_worker, self.custom_cls = filter_per_worker, self._source.custom_cls
        self._take_links(Links(self._source, edge_label_index), edge_label, edge_label_time,
                         kwargs.pop("input_id", None))
        self._begin_loops()
        self._begin(self._links.count, list(dict.fromkeys((self._links.kind[0], self._links.kind[2]))), kwargs)

    def _take_links(self, links: Links, edge_label: Any, edge_label_time: Any, input_id: Any) -> None:
        count, draws = links.count, self._sampler._draws
        label, input_id = _values("edge_label", edge_label, count), _values("input_id", input_id, count)
        if label is not None and len(label) and self.neg_sampling is not None and label.min() == 0:
            label = label + 1  # 0 stands for negatives
        times = None if edge_label_time is None else SeedTimes(edge_label_time, count, "edge_label_time", draws.unit)
        self._link_times = None if times is None else times.numbers
        self._times = self._link_times if draws.rules else None
        self._links, self._typed = links, links.typed
        self._negatives = Negatives(self.neg_sampling, self._source, links.kind, draws.time)
        self.input_data = EdgeSamplerInput(input_id=input_id, row=links.given[0], col=links.given[1], label=label,
                                           time=None if times is None else times.given,
                                           input_type=links.kind if links.typed else None)

    def _asked(self, index: torch.Tensor, generator: torch.Generator) -> Asked:
        links, given, count = self._links, self.input_data, len(index)
        until = None if self._link_times is None else selected(self._link_times, index)
        src, dst = self._negatives.added_to(*links.ends(index), index, until, generator)
        seeds = (Apart if self._sampler.disjoint else Shared)(links.kind, count, src, dst)
        times = None
        if until is not None and self._times is not None and isinstance(seeds, Apart):
            times = seeds.of_links(until)
        input_id = index if given.input_id is None else selected(given.input_id, index)
        time = None if given.time is None else selected(given.time, index)
        if self._negatives.triplet:
            return Asked(seeds.nodes, (input_id, seeds.rows[0], *seeds.of_triplet(), time), times, seeds.slots)
        label = None if given.label is None else selected(given.label, index)
        if self._negatives.binary:
            label = labels_with_negatives(label, count, len(src) - count)
        time = None if time is None else taken(time, repeated(len(src), count))
        return Asked(seeds.nodes, (input_id, stacked(*seeds.rows), label, time), times, seeds.slots)

    def _add_seeds(self, data: Any, metadata: tuple[Any, ...]) -> None:
        kind = self._links.kind
        link = data[kind] if self._typed else data
        link.input_id = metadata[0]
        if not self._negatives.triplet:
            link.edge_label_index, link.edge_label, link.edge_label_time = metadata[1:]
            return
        source, target = (data[kind[0]], data[kind[2]]) if self._typed else (data, data)
        source.src_index = metadata[1]
        target.dst_pos_index, target.dst_neg_index = metadata[2:4]
        source.seed_time = target.seed_time = metadata[4]
        for name in ("edge_label_index", "edge_label_time"):  # of the user's data
            if name in link:
                del link[name]
