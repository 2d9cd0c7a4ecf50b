"""Batches in pinned memory, which a GPU reads directly: pin_memory=True of the neighbour loaders.

    a batch under way -> a thread waits for it, and copies its rows, while the trainer uses the batch before
        -> the caller's thread makes Data of it, and copies the rest: ids, edges, what transforms have made

torch keeps pinned memory that is freed, in blocks of powers of two, and hands a block out again after GPUs have read
it. So a loop allocates in its first batches only, and a buffer is never written while a copy to a GPU reads it. Buffers
of our own would not see such copies. NumPy makes the copies, in the calling thread: torch's copy would start threads
for each tensor, which compete with the library's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional
from weakref import ref

import numpy as np
import torch
from torch.utils.data._utils.pin_memory import pin_memory
from torch_geometric.data.data import BaseData

from graphwire._base.native import SLICE_MS, Call, Workers, check, lib
from graphwire._base.trace import traced
from graphwire.pyg.fetched import Fetched


def available() -> bool:
    """Whether pinned memory has a use: torch's loaders ignore pin_memory without a GPU."""
    return torch.accelerator.is_available()


def empty(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, pin_memory=True)


def is_pinned(tensor: torch.Tensor) -> bool:
    return tensor.is_pinned()


def _bytes(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def pinned(value: Any) -> Any:
    """The tensor in pinned memory: itself, or a copy. Other objects: as their pin_memory() returns them."""
    if type(value) is not torch.Tensor:
        return value.pin_memory() if hasattr(value, "pin_memory") else value
    if value.device.type != "cpu" or is_pinned(value):
        return value
    if value.layout != torch.strided or not value.is_contiguous() or value.is_complex() or value.requires_grad:
        return value.pin_memory()
    copy = empty(value.shape, value.dtype)
    if value.numel():
        np.copyto(_bytes(copy), _bytes(value))
    return copy


def pinned_batch(data: Any, device: Optional[str]) -> Any:
    """A batch of a loader in pinned memory. What a transform returns instead of Data: as torch's loaders pin it."""
    return data.apply(pinned) if isinstance(data, BaseData) else pin_memory(data, device)


class PinsAhead:
    """The thread of one loop that copies a batch ahead. It ends when this object is freed, also while it waits."""

    def __init__(self) -> None:
        self._workers = Workers(1)

    def start(self, fetched: Fetched) -> Call:
        """Starts to wait for a batch and to copy its rows."""
        return self._workers.submit(_copy(fetched, ref(self._workers)))


def _copy(fetched: Fetched, going: Callable[[], Any]) -> Callable[[], None]:
    @traced("to pinned memory")
    def call() -> None:
        status = lib.GW_AGAIN
        while status == lib.GW_AGAIN:
            if going() is None:  # the loop has ended
                return
            status = lib.wait_for(fetched.lease.ticket, SLICE_MS)
        check(status)
        fetched.replace(pinned)

    return call
