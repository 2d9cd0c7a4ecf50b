"""DistEmbedding: rows that are trained where they lie, a row for each node or edge of a type."""

from __future__ import annotations

from typing import Any

import torch

from graphwire.dgl.distributed.book import PartitionPolicy
from graphwire.dgl.distributed.tensor import DistTensor, InitFunc
from graphwire.dgl.id_arrays import ids_tensor


class DistEmbedding:
    """dgl.distributed.DistEmbedding. init_func: None for zeros. Trained by dgl.distributed.optim."""

    def __init__(self, num_embeddings: int, embedding_dim: int, name: str | None = None,
                 init_func: InitFunc | None = None, part_policy: PartitionPolicy | None = None):
        self._tensor = DistTensor((num_embeddings, embedding_dim), torch.float32, name, init_func, part_policy)
        self._trace: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __call__(self, idx: Any, device: Any = "cpu") -> torch.Tensor:
        """Rows; while gradients are recorded, a leaf whose gradient the optimizer pushes."""
        ids = ids_tensor(idx, len(self._tensor), "idx").clone()  # which the caller may change before the step
        rows = self._tensor[ids].to(device)
        if torch.is_grad_enabled():
            rows.requires_grad_()
            self._trace.append((ids.clone(), rows))  # the caller may change the ids before step()
        return rows

    def reset_trace(self) -> None:
        """Forgets the rows that were read."""
        self._trace = []

    @property
    def weight(self) -> DistTensor:
        return self._tensor

    @property
    def name(self) -> str:
        return self._tensor.tensor_name

    @property
    def data_name(self) -> str:
        return self._tensor.name

    @property
    def part_policy(self) -> PartitionPolicy:
        return self._tensor.part_policy

    @property
    def kvstore(self) -> Any:
        return self._tensor.kvstore

    @property
    def num_embeddings(self) -> int:
        return self._tensor.shape[0]

    @property
    def embedding_dim(self) -> int:
        return self._tensor.shape[1]
