"""Batches of torch's DataLoader that can be tried again.

    torch's iterator -> Collates, perhaps in a worker process -> an Attempt: the places of its seeds, and a
        SamplerOutput or the error of a server -> the loop asks the Attempt for its batch, again after each such error

torch has forgotten a batch once its collate_fn has raised an error, so Collates returns errors of servers instead. A
batch of a worker is made again in the loop's own process. For this a worker draws one number for each batch, which
seeds torch's random numbers while it makes the batch: so neither a failure nor the process has an effect on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import get_worker_info
from torch.utils.data._utils.pin_memory import pin_memory

from graphwire._train.loops import keeps, repeatable


class Attempt:
    """index: the places of the seeds. random: the number that a worker has drawn for the batch, or the state of torch's
    random numbers in the loop's process. out: what collate_fn has returned, or None. error: of collate_fn, or None."""

    def __init__(self, index: Any, random: Any, out: Any, error: BaseException | None):
        self.index, self.random, self.out, self.error = index, random, out, error

    def batch(self, loader: Any) -> Any:
        """The batch of PyG's loader. Raises the error of the attempt once; the next call tries again, with the same
        random numbers. It makes all of the batch anew, because transforms may have changed a part of it."""
        error, out, self.error, self.out = self.error, self.out, None, None
        if error is not None:
            raise error
        if isinstance(self.random, int):
            return repeatable(lambda: _finished(
                loader, _seeded(self.random, loader.collate_fn, self.index) if out is None else out))
        try:
            return _finished(loader, loader.collate_fn(self.index) if out is None else out)
        except BaseException as failure:
            if keeps(failure):
                torch.set_rng_state(self.random)
            raise

    def pin_memory(self, device: Any = None) -> Attempt:
        """torch's loaders call it."""
        self.out = pin_memory(self.out, device)
        return self


def _seeded(seed: int, collate: Callable[[Any], Any], index: Any) -> Any:
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        return collate(index)
    finally:
        torch.set_rng_state(before)


def _finished(loader: Any, out: Any) -> Any:
    return out if loader.filter_per_worker else loader.filter_fn(out)


class Collates:
    """The collate_fn of an iterator of torch, which returns Attempts. A worker gets a copy."""

    def __init__(self, collate: Callable[[Any], Any]):
        self._collate = collate

    def __call__(self, index: Any) -> Attempt:
        in_worker = get_worker_info() is not None
        random: Any = int(torch.randint(2**63 - 1, ()).item()) if in_worker else torch.get_rng_state()
        try:
            out = _seeded(random, self._collate, index) if in_worker else self._collate(index)
        except StopIteration as error:
            raise RuntimeError("a function of the loader raised StopIteration") from error
        except BaseException as error:
            if not keeps(error) or (in_worker and not isinstance(error, Exception)):
                raise
            if not in_worker:
                torch.set_rng_state(random)
            return Attempt(index, random, None, error)
        return Attempt(index, random, out, None)
