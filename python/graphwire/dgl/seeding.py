"""Makes torch.manual_seed and dgl.seed take effect on sampling within a process.

    torch.manual_seed(n), dgl.seed(n) -> seeds.began(n) -> streams, loaders and epochs are counted from 0 again

Sampling draws from a seed, which only the last of these calls decides, and from a stream, the number of a call or of a
loader's epoch. So the same seed repeats what follows, as in torch.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Seeds:
    """The seed of this process's sampling. number: how often it was set."""

    def __init__(self) -> None:
        self.number = 0
        self._own: int | None = None  # dgl.seed's; None: torch's
        self.streams: Iterator[int] = itertools.count(1)
        self.loaders: Iterator[int] = itertools.count()

    @property
    def seed(self) -> int:
        return torch.initial_seed() if self._own is None else self._own

    def began(self, own: int | None) -> None:
        """Counts from 0 again. own: the seed of dgl.seed; None: torch's seed has been set."""
        self.number, self._own = self.number + 1, own
        self.streams, self.loaders = itertools.count(1), itertools.count()


seeds = Seeds()


def _watched(call: Callable[..., Any], own: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def watched(value: Any, *arguments: Any) -> Any:
        found = call(value, *arguments)
        seeds.began(int(value) if own else None)
        return found

    return watched


def watch_torch() -> None:
    """Makes torch.manual_seed report to seeds. A second call changes nothing."""
    if not hasattr(torch.manual_seed, "__wrapped__"):
        torch.manual_seed = torch.random.manual_seed = _watched(torch.manual_seed, False)


def watch_dgl(dgl: Any) -> None:
    """Makes the seed function of an installed dgl report to seeds. The subset's function calls torch's."""
    if not hasattr(dgl.seed, "__wrapped__"):
        dgl.seed = _watched(dgl.seed, True)
        dgl.random.seed = dgl.seed
