"""DistNodeDataLoader and DistEdgeDataLoader: a sampler around batches of nodes or edges of a DistGraph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from graphwire.dgl.dataloading.samplers import EdgePredictionSampler
from graphwire.dgl.distributed.dataloader import DistDataLoader, Pairs
from graphwire.dgl.host import error_type
from graphwire.dgl.id_arrays import ids_tensor

_EDGE_OPTIONS = ("exclude", "reverse_eids", "reverse_etypes", "negative_sampler")


def _dataset(ids: Any, what: str, count: Callable[..., int]) -> Any:
    """Ids, or pairs (type, id) for {type: ids}; masks stand for the ids that they set. count(type): of all ids."""
    if isinstance(ids, Mapping):
        return Pairs({kind: ids_tensor(some, _count_of(kind, count), what) for kind, some in ids.items()})
    return ids_tensor(ids, count(), what)


def _count_of(kind: Any, count: Callable[..., int]) -> int | None:
    """None for a type that there is not: that is for the sampler to say, whose types they are."""
    try:
        return count(kind)
    except error_type():
        return None


def _grouped(items: list[Any]) -> Any:
    """Ids as a tensor, pairs as {type: tensor}."""
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
    """Callable on a batch's items; what a child of a process needs to make batches too."""

    def __init__(self, g: Any, call: Callable[[Any, Any], Any]):
        self.g, self.call = g, call

    def __call__(self, items: list[Any]) -> Any:
        return self.call(self.g, _grouped(items))


class DistNodeDataLoader(DistDataLoader):
    """(input nodes, output nodes, blocks) for each batch of nids: ids, or {type: ids}.

    graph_sampler: a NeighborSampler of DGL's or of graphwire.dgl, or whatever has sample or sample_blocks(g, seeds).
    """

    def __init__(self, g: Any, nids: Any, graph_sampler: Any, device: Any = None, **named: Any):
        self.device = _only_cpu(device)
        call = getattr(graph_sampler, "sample", None) if not _is_dgl(graph_sampler) else None
        self.collator = _Collator(g, call or graph_sampler.sample_blocks)
        dataset = _dataset(nids, "nids", g.num_nodes)
        super().__init__(dataset, named.pop("batch_size", 1), collate_fn=self.collator, **named)


class DistEdgeDataLoader(DistDataLoader):
    """(input nodes, graph of the edges, [graph of the negatives,] blocks) for each batch of eids: ids, or {type: ids}.

    graph_sampler: of nodes, with exclude, reverse_eids, reverse_etypes and negative_sampler here; or what
    as_edge_prediction_sampler made.
    """

    def __init__(self, g: Any, eids: Any, graph_sampler: Any, device: Any = None, **named: Any):
        self.device = _only_cpu(device)
        options = {name: named.pop(name) for name in _EDGE_OPTIONS if name in named}
        around = _edge_sampler(graph_sampler)
        if around is not None and options:
            raise TypeError(f"DistEdgeDataLoader({', '.join(options)}): as_edge_prediction_sampler was told already")
        if named.pop("g_sampling", None) is not None:
            raise NotImplementedError("DistEdgeDataLoader(g_sampling=…): sampling is around the loader's own graph")
        if around is None:
            around = EdgePredictionSampler(_Simple(graph_sampler), **options)
        self.collator = _Collator(g, around.sample)
        dataset = _dataset(eids, "eids", g.num_edges)
        super().__init__(dataset, named.pop("batch_size", 1), collate_fn=self.collator, **named)


def _is_dgl(sampler: Any) -> bool:
    """DGL's own samplers: their sample() marks columns as lazy, which a DistGraph has none of."""
    return type(sampler).__module__.split(".")[0] == "dgl"


def _edge_sampler(sampler: Any) -> Any:
    """What as_edge_prediction_sampler made, DGL's as Graphwire's own; None: a sampler of nodes."""
    if isinstance(sampler, EdgePredictionSampler):
        return sampler
    if not _is_dgl(sampler) or not hasattr(sampler, "negative_sampler"):
        return None
    return EdgePredictionSampler(_Simple(sampler.sampler), sampler.exclude, sampler.reverse_eids,
                                 sampler.reverse_etypes, sampler.negative_sampler, sampler.prefetch_labels)


class _Simple:
    """sample() of any sampler of nodes; a script's own may have no exclude_eids."""

    def __init__(self, sampler: Any):
        call = sampler.sample_blocks if _is_dgl(sampler) else getattr(sampler, "sample", None) or sampler.sample_blocks
        self._call, self._excludes = call, "exclude_eids" in inspect.signature(call).parameters

    def sample(self, g: Any, seeds: Any, exclude_eids: Any = None) -> Any:
        if exclude_eids is None:
            return self._call(g, seeds)
        if not self._excludes:
            raise TypeError("exclude: the sampler's sample_blocks has no argument exclude_eids")
        return self._call(g, seeds, exclude_eids=exclude_eids)
