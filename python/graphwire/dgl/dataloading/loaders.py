"""DistNodeDataLoader and DistEdgeDataLoader: apply a sampler to batches of nodes or edges of a DistGraph.

ids -> DistDataLoader -> a batch of ids -> the sampler -> a mini-batch

Errors: TypeError, NotImplementedError and AssertionError for arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from graphwire._keywords import keywords
from graphwire.dgl.dataloading.samplers import EdgePredictionSampler
from graphwire.dgl.distributed.dataloader import DistDataLoader, Pairs
from graphwire.dgl.host import error_type
from graphwire.dgl.id_arrays import ids_tensor


def _dataset(ids: Any, what: str, count: Callable[..., int]) -> Any:
    """The dataset of a DistDataLoader: ids, or pairs (type, id) for {type: ids}. Masks stand for the ids that they
    select. count(type): the number of nodes or edges of a type."""
    if isinstance(ids, Mapping):
        return Pairs({kind: ids_tensor(some, _count_of(kind, count), what) for kind, some in ids.items()})
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
    if items and isinstance(items[0], tuple):
        found: dict[Any, list[int]] = {}
        for kind, one in items:
            found.setdefault(kind, []).append(one)
        return {kind: torch.tensor(some) for kind, some in found.items()}
    return torch.tensor(items, dtype=torch.int64)


def _only_cpu(device: Any) -> str:
    if device is not None and torch.device(device).type != "cpu":
        raise AssertionError("Only cpu is supported in the case of a DistGraph: move the batch, batch.to(device)")
    return "cpu"


class _Collator:
    """Makes a mini-batch from a batch's items. It can be pickled, so that child processes make batches too."""

    def __init__(self, g: Any, call: Callable[[Any, Any], Any]):
        self.g, self.call = g, call

    def __call__(self, items: list[Any]) -> Any:
        return self.call(self.g, _grouped(items))


@keywords
class DistNodeDataLoader(DistDataLoader):
    """dgl.dataloading.DistNodeDataLoader: (input nodes, output nodes, blocks) for each batch of nodes.

    nids: ids, or {node type: ids}, of this trainer.
    graph_sampler: a NeighborSampler of DGL or of graphwire.dgl, or an object with sample or sample_blocks(g, seeds).
    device: None or the CPU.

    The other arguments are those of DistDataLoader.

    Raises AssertionError for another device, and the errors of DistDataLoader.
    """

    def __init__(self, g: Any, nids: Any, graph_sampler: Any, device: Any = None, *, batch_size: int = 1,
                 shuffle: bool = False, drop_last: bool = False, queue_size: int | None = None,
                 num_workers: Any = None, pin_memory: Any = None, use_uva: Any = None, persistent_workers: Any = None):
        self.device = _only_cpu(device)
        call = getattr(graph_sampler, "sample", None) if not _is_dgl(graph_sampler) else None
        self.collator = _Collator(g, call or graph_sampler.sample_blocks)
        self.fanouts = getattr(graph_sampler, "fanouts", None)
        dataset = _dataset(nids, "nids", g.num_nodes)
        super().__init__(dataset, batch_size, shuffle, self.collator, drop_last, queue_size)


@keywords
class DistEdgeDataLoader(DistDataLoader):
    """dgl.dataloading.DistEdgeDataLoader: (input nodes, graph of the edges, [graph of the negatives,] blocks) for each
    batch of edges.

    eids: ids, or {edge type: ids}, of this trainer.
    graph_sampler: a result of as_edge_prediction_sampler; or a sampler of nodes, and then exclude, reverse_eids,
        reverse_etypes and negative_sampler are arguments of the loader.

    The other arguments are those of DistNodeDataLoader.

    Raises TypeError if both the sampler and the loader define exclusion or negatives; NotImplementedError for
    g_sampling; and the errors of DistNodeDataLoader.
    """

    def __init__(self, g: Any, eids: Any, graph_sampler: Any, device: Any = None, *, exclude: Any = None,
                 reverse_eids: Any = None, reverse_etypes: Any = None, negative_sampler: Any = None,
                 g_sampling: Any = None, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False,
                 queue_size: int | None = None, num_workers: Any = None, pin_memory: Any = None, use_uva: Any = None,
                 persistent_workers: Any = None):
        self.device = _only_cpu(device)
        given = {"exclude": exclude, "reverse_eids": reverse_eids, "reverse_etypes": reverse_etypes,
                 "negative_sampler": negative_sampler}
        options = {name: value for name, value in given.items() if value is not None}
        around = _edge_sampler(graph_sampler)
        if around is not None and options:
            raise TypeError(f"DistEdgeDataLoader({', '.join(options)}): pass these to as_edge_prediction_sampler only, "
                            "which made the sampler")
        if g_sampling is not None:
            raise NotImplementedError("DistEdgeDataLoader(g_sampling=…): the loader samples from its own graph only")
        if around is None:
            around = EdgePredictionSampler(_Simple(graph_sampler), **options)
        self.collator = _Collator(g, around.sample)
        self.fanouts = getattr(getattr(graph_sampler, "sampler", graph_sampler), "fanouts", None)
        dataset = _dataset(eids, "eids", g.num_edges)
        super().__init__(dataset, batch_size, shuffle, self.collator, drop_last, queue_size)


def _is_dgl(sampler: Any) -> bool:
    """Whether a sampler is DGL's own. Its sample() marks columns as lazy, which a DistGraph does not support."""
    return type(sampler).__module__.split(".")[0] == "dgl"


def _edge_sampler(sampler: Any) -> Any:
    """The EdgePredictionSampler of a sampler of edges, which DGL or Graphwire made; None for a sampler of nodes."""
    if isinstance(sampler, EdgePredictionSampler):
        return sampler
    if not _is_dgl(sampler) or not hasattr(sampler, "negative_sampler"):
        return None
    return EdgePredictionSampler(_Simple(sampler.sampler), sampler.exclude, sampler.reverse_eids,
                                 sampler.reverse_etypes, sampler.negative_sampler, sampler.prefetch_labels)


class _Simple:
    """Calls any sampler of nodes. A script's own sampler may lack the argument exclude_eids."""

    def __init__(self, sampler: Any):
        call = sampler.sample_blocks if _is_dgl(sampler) else getattr(sampler, "sample", None) or sampler.sample_blocks
        self._call, self._excludes = call, "exclude_eids" in inspect.signature(call).parameters

    def sample(self, g: Any, seeds: Any, exclude_eids: Any = None) -> Any:
        if exclude_eids is None:
            return self._call(g, seeds)
        if not self._excludes:
            raise TypeError("exclude: the sampler's sample_blocks has no argument exclude_eids")
        return self._call(g, seeds, exclude_eids=exclude_eids)
