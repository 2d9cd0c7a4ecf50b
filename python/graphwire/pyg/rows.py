"""Copies of rows of tensors, made by NumPy in the calling thread.

torch's own operations on long tensors start its pool of threads. These threads wait for their next work in a loop that
uses their processors, which the library's threads need to sample the next batches. So what is done for each batch is
done here.

Tensors on another device, and those that record gradients, are left to torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

_OF_NUMPY = frozenset((torch.int64, torch.float64, torch.int32, torch.float32))  # of ids and times


def numbers(values: Any) -> np.ndarray:
    """Integers, a tensor or an array, as an array over the same memory."""
    return np.asarray(values)


def _is_plain(rows: torch.Tensor) -> bool:
    return rows.device.type == "cpu" and rows.layout == torch.strided and not rows.requires_grad and rows.dim() > 0


def _bytes(rows: torch.Tensor) -> np.ndarray:
    """The bytes of contiguous rows, [rows, bytes of a row], of any dtype."""
    return rows.reshape(len(rows), -1).view(torch.uint8).numpy()


def joined(parts: Sequence[tuple[Any, np.ndarray | None]]) -> torch.Tensor:
    """Rows of several tensors or arrays, one after the other, as a tensor that owns its memory. parts: (rows, index),
    at least one; an index of None selects all rows. All parts have the same dtype and the same shape of a row."""
    tensors = [torch.as_tensor(rows) for rows, _ in parts]
    indices = [index for _, index in parts]
    if not all(map(_is_plain, tensors)):
        return torch.cat([rows if index is None else rows[torch.from_numpy(index)]
                          for rows, index in zip(tensors, indices)])
    counts = [len(rows) if index is None else len(index) for rows, index in zip(tensors, indices)]
    out = tensors[0].new_empty((sum(counts), *tensors[0].shape[1:]))
    if not out.numel():
        return out
    to, begin = _bytes(out), 0
    for rows, index, count in zip(tensors, indices, counts):
        if not count:
            continue
        if index is None:
            np.copyto(to[begin:begin + count], _bytes(rows.contiguous()))
        else:  # "clip" writes to `out` directly; all places exist
            np.take(_bytes(rows.contiguous()), index, axis=0, out=to[begin:begin + count], mode="clip")
        begin += count
    return out


def taken(rows: Any, index: np.ndarray | None) -> torch.Tensor:
    """rows[index], a copy; None: of all rows. The places exist and are not negative."""
    return joined([(rows, index)])


def selected(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """rows[index] for the caller's places, of one dimension: negative ones count from the end. Raises IndexError."""
    at, count = index.numpy(), rows.shape[0]
    if rows.dtype in _OF_NUMPY and _is_plain(rows):
        try:
            return torch.from_numpy(rows.numpy()[at])
        except IndexError:
            return rows[index]  # torch's error
    if len(at) and (int(at.min()) < -count or int(at.max()) >= count):
        return rows[index]  # torch's error
    return taken(rows, np.where(at < 0, at + count, at))


def with_zeros(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The rows, and `count` rows of zeros behind them."""
    if not _is_plain(rows):
        return torch.cat([rows, rows.new_zeros((count, *rows.shape[1:]))])
    out = rows.new_empty((len(rows) + count, *rows.shape[1:]))
    if out.numel():
        to = _bytes(out)
        to[len(rows):] = 0
        if len(rows):
            np.copyto(to[:len(rows)], _bytes(rows.contiguous()))
    return out


def stacked(first: Any, second: Any) -> torch.Tensor:
    """[2, n] int64 of two lists of numbers."""
    both = np.empty((2, len(first)), np.int64)
    both[0], both[1] = numbers(first), numbers(second)
    return torch.from_numpy(both)
