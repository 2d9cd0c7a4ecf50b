"""DistNodeDataLoader and DistEdgeDataLoader: apply a sampler to batches of nodes or edges of a DistGraph.

ids -> DistDataLoader -> a batch of ids -> the sampler -> a mini-batch

Errors: TypeError and AssertionError for arguments.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from graphwire._base.keywords import keywords
from graphwire.dgl.dataloading.collators import EdgeCollator, NodeCollator, edge_sampler
from graphwire.dgl.dataloading.samplers import columns
from graphwire.dgl.distributed.dataloader import DistDataLoader


def _only_cpu(device: Any) -> str:
    if device is not None and torch.device(device).type != "cpu":
        raise AssertionError("Only cpu is supported in the case of a DistGraph: move the batch, batch.to(device)")
    return "cpu"


@keywords
class DistNodeDataLoader(DistDataLoader):
    """dgl.dataloading.DistNodeDataLoader: (input nodes, output nodes, blocks) for each batch of nodes.

    nids: ids, or {node type: ids}, of this trainer.
    graph_sampler: a NeighborSampler of DGL or of graphwire.dgl, or an object with sample or sample_blocks(g, seeds).
    device: None or the CPU.
    lookahead: how many batches a row serves that was fetched from a server: its own and the next lookahead - 1, at most
        queue_size in all; of the features that the sampler fetches (prefetch_node_feats). No batch differs.

    The other arguments are those of DistDataLoader.

    Raises AssertionError for another device, and the errors of DistDataLoader.
    """

    def __init__(self, g: Any, nids: Any, graph_sampler: Any, device: Any = None, *, batch_size: int = 1,
                 shuffle: bool = False, drop_last: bool = False, queue_size: int | None = None,
                 num_workers: Any = None, pin_memory: Any = None, use_uva: Any = None, persistent_workers: Any = None,
                 lookahead: int = 1):
        self.device = _only_cpu(device)
        self.collator = NodeCollator(g, nids, graph_sampler)
        self.fanouts = getattr(graph_sampler, "fanouts", None)
        super().__init__(self.collator.dataset, batch_size, shuffle, self.collator, drop_last, queue_size)
        self._look(lookahead, partial(columns, g, graph_sampler))


@keywords
class DistEdgeDataLoader(DistDataLoader):
    """dgl.dataloading.DistEdgeDataLoader: (input nodes, graph of the edges, [graph of the negatives,] blocks) for each
    batch of edges.

    eids: ids, or {edge type: ids}, of this trainer.
    graph_sampler: a result of as_edge_prediction_sampler; or a sampler of nodes, and then exclude, reverse_eids,
        reverse_etypes, negative_sampler and g_sampling are arguments of the loader, as EdgeCollator's.

    The other arguments are those of DistNodeDataLoader.

    Raises TypeError if both the sampler and the loader define exclusion or negatives, and the errors of EdgeCollator
    and of DistNodeDataLoader.
    """

    def __init__(self, g: Any, eids: Any, graph_sampler: Any, device: Any = None, *, exclude: Any = None,
                 reverse_eids: Any = None, reverse_etypes: Any = None, negative_sampler: Any = None,
                 g_sampling: Any = None, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False,
                 queue_size: int | None = None, num_workers: Any = None, pin_memory: Any = None, use_uva: Any = None,
                 persistent_workers: Any = None, lookahead: int = 1):
        self.device = _only_cpu(device)
        given = {"exclude": exclude, "reverse_eids": reverse_eids, "reverse_etypes": reverse_etypes,
                 "negative_sampler": negative_sampler}
        options = {name: value for name, value in given.items() if value is not None}
        if options and edge_sampler(graph_sampler) is not None:
            raise TypeError(f"DistEdgeDataLoader({', '.join(options)}): pass these to as_edge_prediction_sampler only, "
                            "which made the sampler")
        self.collator = EdgeCollator(g, eids, graph_sampler, g_sampling, **options)
        self.fanouts = getattr(getattr(graph_sampler, "sampler", graph_sampler), "fanouts", None)
        super().__init__(self.collator.dataset, batch_size, shuffle, self.collator, drop_last, queue_size)
        self._look(lookahead, partial(columns, self.collator.g_sampling, graph_sampler))
