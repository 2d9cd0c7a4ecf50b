"""dgl.dataloading over a DistGraph."""

from __future__ import annotations

from typing import Any

from graphwire.dgl.dataloading import negative_sampler
from graphwire.dgl.dataloading.collators import Collator, EdgeCollator, NodeCollator
from graphwire.dgl.dataloading.loaders import DistEdgeDataLoader, DistNodeDataLoader
from graphwire.dgl.dataloading.samplers import (
    BlockSampler,
    EdgePredictionSampler,
    MultiLayerFullNeighborSampler,
    MultiLayerNeighborSampler,
    NeighborSampler,
    Sampler,
    as_edge_prediction_sampler,
)
from graphwire.dgl.distributed.dataloader import DistDataLoader
from graphwire.dgl.host import missing

__all__ = [
    "BlockSampler", "Collator", "DistDataLoader", "DistEdgeDataLoader", "DistNodeDataLoader", "EdgeCollator",
    "EdgePredictionSampler", "MultiLayerFullNeighborSampler", "MultiLayerNeighborSampler", "NeighborSampler",
    "NodeCollator", "Sampler", "as_edge_prediction_sampler", "negative_sampler"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing(f"dgl.dataloading.{name}")
