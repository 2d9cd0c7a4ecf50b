"""dgl.backend's functions of tensors that libraries call, over torch."""

from __future__ import annotations

from typing import Any

import torch

from graphwire.dgl.host import missing

backend_name = "pytorch"


def shape(input: torch.Tensor) -> torch.Size:
    return input.shape


def dtype(input: torch.Tensor) -> torch.dtype:
    return input.dtype


def context(input: torch.Tensor) -> torch.device:
    """The tensor's device."""
    return input.device


def repeat(input: torch.Tensor, repeats: Any, dim: int) -> torch.Tensor:
    """Each row, or each slice of another dimension, `repeats` times in succession."""
    return torch.repeat_interleave(input, repeats, dim)


def randint(shape: Any, dtype: torch.dtype, ctx: Any, low: int, high: int) -> torch.Tensor:
    return torch.randint(low, high, shape, dtype=dtype, device=ctx)


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing(f"dgl.backend.{name}")
