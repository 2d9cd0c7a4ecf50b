"""Converts ids, in the forms that DGL's callers use, to int64 tensors. graphwire._arrays defines ids and masks."""

from __future__ import annotations

from typing import Any

import torch

from graphwire import _arrays


def ids_tensor(ids: Any, count: int | None, what: str = "ids") -> torch.Tensor:
    """Converts ids, or a mask or slice of `count` rows. The result of a contiguous int64 tensor shares its memory.
    Raises the errors of graphwire._arrays.ids_array."""
    return torch.from_numpy(_arrays.ids_array(ids, count, what))
