"""Ids as DGL's callers give them, as int64 tensors: graphwire._arrays says what ids are, and what is a mask."""

from __future__ import annotations

from typing import Any

import torch

from graphwire import _arrays


def ids_tensor(ids: Any, count: int | None, what: str = "ids") -> torch.Tensor:
    """Ids, or a mask or slice of `count`; errors as graphwire._arrays.ids_array's. Of an int64 tensor it is the memory.
    """
    return torch.from_numpy(_arrays.ids_array(ids, count, what))
