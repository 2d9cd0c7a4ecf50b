"""NodeCollator and EdgeCollator: what a distributed loader calls for a batch.

    ids -> dataset, whose items a loader batches -> collate(items) -> the mini-batch

Errors: AssertionError for ids without types in a graph of several types; those of the samplers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from graphwire._base.keywords import keywords
from graphwire.dgl.dataloading.samplers import EdgePredictionSampler
from graphwire.dgl.distributed.dataloader import Pairs
from graphwire.dgl.host import error_type
from graphwire.dgl.id_arrays import edges_of, ids_tensor, nodes_of


def _by_type(ids: Any, what: str, types: int, count: Callable[..., int]) -> Any:
    """Ids as a tensor, or as {type: tensor}. Masks stand for the ids that they select. types: the number of types.
    count(type): the number of nodes or edges of a type. Raises AssertionError for ids without types if there are
    several types."""
    if isinstance(ids, Mapping):
        return {kind: ids_tensor(some, _count_of(kind, count), what) for kind, some in ids.items()}
    if types != 1:
        raise AssertionError(f"{what} should be a dict of type and ids for a graph with multiple types")
    return ids_tensor(ids, count(), what)


def _count_of(kind: Any, count: Callable[..., int]) -> int | None:
    """The count of a type; None if the type does not exist. The sampler, which uses the types, then reports the
    error."""
    try:
        return count(kind)
    except error_type():
        return None


def _grouped(items: list[Any]) -> Any:
    """A batch of ids as a tensor, or of pairs as {type: tensor}."""
    if len(items) and isinstance(items[0], tuple):
        found: dict[Any, list[int]] = {}
        for kind, one in items:
            found.setdefault(kind, []).append(int(one))
        return {kind: torch.tensor(some) for kind, some in found.items()}
    return torch.as_tensor(items, dtype=torch.int64)


@keywords
class Collator:
    """The common part of both collators, which can be pickled. dataset: the items that a loader batches: ids, or pairs
    (type, id)."""

    def __init__(self, ids: Any):
        self._dataset = Pairs(ids) if isinstance(ids, Mapping) else ids

    @property
    def dataset(self) -> Any:
        return self._dataset

    def collate(self, items: list[Any]) -> Any:
        """The mini-batch of a list of ids, or of pairs (type, id)."""
        raise NotImplementedError

    def __call__(self, items: list[Any]) -> Any:
        return self.collate(items)


@keywords
class NodeCollator(Collator):
    """Makes (input nodes, output nodes, blocks) for batches of nodes.

    nids: ids, or {node type: ids}; the attribute nids has them as int64 tensors.
    graph_sampler: as DistNodeDataLoader's.
    """

    def __init__(self, g: Any, nids: Any, graph_sampler: Any):
        self.g, self.graph_sampler = g, graph_sampler
        self.nids = _by_type(nids, "nids", len(g.ntypes), partial(nodes_of, g))
        self._sampler = Simple(graph_sampler)
        super().__init__(self.nids)

    def collate(self, items: list[Any]) -> Any:
        return self._sampler.sample(self.g, _grouped(items))


@keywords
class EdgeCollator(Collator):
    """Makes (input nodes, graph of the edges, [graph of the negatives,] blocks) for batches of edges.

    eids: ids, or {edge type: ids}; the attribute eids has them as int64 tensors.
    graph_sampler: a sampler of nodes, or a result of as_edge_prediction_sampler.
    g_sampling: another graph to sample in; None: g. Edges are then excluded from none of the graphs, as in DGL.

    The other arguments are those of DistEdgeDataLoader. Raises TypeError for g_sampling with a sampler of edges.
    """

    def __init__(self, g: Any, eids: Any, graph_sampler: Any, g_sampling: Any = None, exclude: Any = None,
                 reverse_eids: Any = None, reverse_etypes: Any = None, negative_sampler: Any = None):
        self.g, self.graph_sampler = g, graph_sampler
        self.eids = _by_type(eids, "eids", len(g.canonical_etypes), partial(edges_of, g))
        self.g_sampling = g if g_sampling is None else g_sampling
        self.exclude = exclude if g_sampling is None else None
        self.reverse_eids, self.reverse_etypes = reverse_eids, reverse_etypes
        self.negative_sampler = negative_sampler
        around = edge_sampler(graph_sampler)
        if around is not None and g_sampling is not None:
            raise TypeError("g_sampling: the sampler of edges samples in its own graph; pass a sampler of nodes")
        self._around = around or EdgePredictionSampler(Simple(graph_sampler, g_sampling), self.exclude, reverse_eids,
                                                       reverse_etypes, negative_sampler)
        super().__init__(self.eids)

    def collate(self, items: list[Any]) -> Any:
        return self._around.sample(self.g, _grouped(items))


def edge_sampler(sampler: Any) -> EdgePredictionSampler | None:
    """The EdgePredictionSampler of a sampler of edges, which DGL or Graphwire made; None for a sampler of nodes."""
    if isinstance(sampler, EdgePredictionSampler):
        return sampler
    if type(sampler).__module__.split(".")[0] != "dgl" or not hasattr(sampler, "negative_sampler"):
        return None
    return EdgePredictionSampler(Simple(sampler.sampler), sampler.exclude, sampler.reverse_eids,
                                 sampler.reverse_etypes, sampler.negative_sampler, sampler.prefetch_labels)


class Simple:
    """Calls any sampler of nodes. A script's own sampler may lack the argument exclude_eids. around: the graph to
    sample in; None: the graph of the call."""

    def __init__(self, sampler: Any, around: Any = None):
        call = getattr(sampler, "sample", None)
        if call is None or str(getattr(call, "__module__", "")).split(".")[0] == "dgl":
            call = sampler.sample_blocks  # DGL's own sample() marks columns as lazy, which a DistGraph does not support
        self._call, self._excludes = call, "exclude_eids" in inspect.signature(call).parameters
        self._around = around

    def sample(self, g: Any, seeds: Any, exclude_eids: Any = None) -> Any:
        g = g if self._around is None else self._around
        if exclude_eids is None:
            return self._call(g, seeds)
        if not self._excludes:
            raise TypeError("exclude: the sampler's sample_blocks has no argument exclude_eids")
        return self._call(g, seeds, exclude_eids=exclude_eids)
