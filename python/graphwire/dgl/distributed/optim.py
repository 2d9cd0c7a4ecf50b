"""dgl.distributed.optim: SparseAdam and SparseAdagrad, which run on the servers.

sync=True: step() exchanges the trainers' gradients, as in DGL. Gradients of equal ids are averaged over all trainers,
and rank 0 pushes them. step() ends with a barrier, so every trainer must call it.

sync=False: each trainer pushes its own gradients without waiting. Gradients of equal ids within a push are averaged.

Errors: AssertionError for other tables; those of graphwire.Tensor.push.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from graphwire import _checks
from graphwire._keywords import keywords
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.embedding import DistEmbedding
from graphwire.optim import _joined, _of_all_ranks
from graphwire.tensor import check_optimizer


@keywords
class DistSparseGradOptimizer:
    """The common part of both optimizers. params: a list of DistEmbedding; lr: the learning rate."""

    kind = ""

    def __init__(self, params: Sequence[DistEmbedding], lr: float, sync: bool, **options: Any):
        for table in params:
            if not isinstance(table, DistEmbedding):
                raise AssertionError(f"{type(self).__name__} only supports dgl.distributed.DistEmbedding")
        check_optimizer(self.kind, lr, "mean", **options)
        self._params, self._lr, self._options = list(params), lr, options
        self._sync = _checks.flag("sync", sync)
        self._clean_grad = False

    def zero_grad(self) -> None:
        """Makes the next step() clear the lists of rows that were read, as in DGL. Without zero_grad(), the lists
        stay."""
        self._clean_grad = True

    def step(self) -> None:
        shared = self._sync and context.world > 1
        for table in self._params:
            traced = [(ids, rows.grad.detach().cpu()) for ids, rows in table._trace if rows.grad is not None]
            ids = _joined([ids for ids, _ in traced], torch.empty(0, dtype=torch.int64))
            gradients = _joined([gradient for _, gradient in traced], torch.empty(0, table.embedding_dim))
            if shared:
                ids, gradients = _of_all_ranks(ids, gradients)
            if len(ids) and (not shared or context.rank == 0):
                table.weight.push(ids, gradients, kind=self.kind, lr=self._lr, combine="mean", **self._options)
        if self._clean_grad:
            for table in self._params:
                table.reset_trace()
            self._clean_grad = False
        if shared:
            context.barrier()

    def save(self, f: str) -> None:
        """Writes the rows and the optimizer's state to the folder f. All trainers must call it; rank 0 writes."""
        if context.rank == 0:
            graph = context.open()
            graph.checkpoint(os.fspath(f), [table.weight._data.name for table in self._params], replace=True)
        context.barrier()

    def load(self, f: str) -> None:
        if context.rank == 0:
            context.open().restore(os.fspath(f), [table.weight._data.name for table in self._params])
        context.barrier()


@keywords
class SparseAdagrad(DistSparseGradOptimizer):
    """Adagrad: s += g²; w -= lr · g / (√s + eps)."""

    kind = "adagrad"

    def __init__(self, params: Sequence[DistEmbedding], lr: float, eps: float = 1e-10, sync: bool = True):
        super().__init__(params, lr, sync, eps=eps)


@keywords
class SparseAdam(DistSparseGradOptimizer):
    """Adam for the rows that a step reads. Each row counts its own steps."""

    kind = "adam"

    def __init__(self, params: Sequence[DistEmbedding], lr: float, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, sync: bool = True):
        super().__init__(params, lr, sync, eps=eps, betas=betas)
