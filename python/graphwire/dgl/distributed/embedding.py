"""DistEmbedding: a row for each node or edge of a type, which the servers store and train."""

from __future__ import annotations

from typing import Any

import torch

from graphwire._base.arrays import dtype_code
from graphwire._base.keywords import keywords
from graphwire.dgl.distributed.book import PartitionPolicy
from graphwire.dgl.distributed.tensor import DistTensor, InitFunc
from graphwire.dgl.id_arrays import ids_tensor


@keywords
class DistEmbedding:
    """dgl.distributed.DistEmbedding, which dgl.distributed.optim trains.

    num_embeddings, embedding_dim: the shape of its DistTensor. init_func: as DistTensor's; None: zeros.
    name, part_policy: as DistTensor's. dtype: not an argument of DGL: torch.float32; or torch.bfloat16 or
    torch.float16, in which rows are stored, while they are read as float32 (graphwire.Embedding).

    Raises the errors of DistTensor, and ValueError for another dtype.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, name: str | None = None,
                 init_func: InitFunc | None = None, part_policy: PartitionPolicy | None = None, *,
                 dtype: torch.dtype = torch.float32):
        dtype_code(dtype, ("float32", "bfloat16", "float16"))
        self._tensor = DistTensor((num_embeddings, embedding_dim), dtype, name, init_func, part_policy)
        self._trace: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._optm_state: tuple[DistTensor, ...] | None = None

    def __call__(self, idx: Any, device: Any = "cpu") -> torch.Tensor:
        """Reads rows, [len(idx), embedding_dim]. While gradients are recorded, the rows are a leaf of autograd, whose
        gradient the optimizer pushes."""
        ids = ids_tensor(idx, self._tensor.rows_of, "idx").clone()  # the caller may change its array before step()
        rows = self._tensor._wide(ids).to(device)
        if torch.is_grad_enabled():
            rows.requires_grad_()
            self._trace.append((ids.clone(), rows))
        return rows

    def reset_trace(self) -> None:
        """Clears the list of rows that were read."""
        self._trace = []

    @property
    def optm_state(self) -> tuple[DistTensor, ...] | None:
        """The state of the optimizer that was made last for these rows; None without an optimizer."""
        return self._optm_state

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
