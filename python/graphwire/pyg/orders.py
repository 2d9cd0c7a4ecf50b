"""The batches of a loop's seeds, in the order of torch's samplers.

torch's BatchSampler yields lists of Python integers, which takes as long as the conversion of a whole mini-batch. For
torch's own RandomSampler and SequentialSampler, index_batches draws the same order with the same random numbers, as
tensors. Other samplers are iterated as torch does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from graphwire._base import checks

# Samplers that draw all that an epoch needs for its first seed: to read them to the end draws no other numbers.
_AT_ONCE = (SequentialSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler, list, tuple, range,
            torch.Tensor)


def index_batches(loader: DataLoader, at_once: bool = False) -> Iterator[Any]:
    """The places of the seeds of each batch: int64 tensors, or what the sampler yields. at_once: the order passes
    check_known(), and the result has a method coming()."""
    batches = loader.batch_sampler
    if type(batches) is BatchSampler:
        sampler = batches.sampler
        if type(sampler) is SequentialSampler:
            return _InOrder(len(sampler), batches)
        if isinstance(sampler, RandomSampler) and _is_shuffle(sampler):
            return _Shuffled(sampler, batches)
    given = loader.sampler if batches is None else batches
    return _Listed(given) if at_once else iter(given)


def _is_shuffle(sampler: Any) -> bool:
    return type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(
        sampler.data_source)


def check_known(loader: DataLoader, option: str) -> None:
    """Raises InvalidError unless the order of an epoch's seeds is known when it begins, which the option needs."""
    batches = loader.batch_sampler
    given = batches.sampler if type(batches) is BatchSampler else loader.sampler if batches is None else batches
    if type(given) not in _AT_ONCE and not _is_shuffle(given):
        raise checks.invalid(f"{option}: the order of an epoch's seeds must be known when it begins, and "
                             f"{type(given).__name__} may draw it later: give shuffle=True, a DistributedSampler or a "
                             "list")


class _Listed:
    """The batches of a sampler that is read to its end, for the first batch."""

    def __init__(self, sampler: Any):
        self._sampler, self._at = sampler, 0
        self._places: list[Any] | None = None

    def __iter__(self) -> _Listed:
        return self

    def __next__(self) -> Any:
        if self._places is None:
            self._places = list(self._sampler)
        if self._at >= len(self._places):
            raise StopIteration
        self._at += 1
        return self._places[self._at - 1]

    def coming(self, most: int) -> list[Any]:
        """The next batches, at most so many. They stay."""
        return [] if self._places is None else self._places[self._at:self._at + most]


class _InOrder:
    """The places of the seeds of each batch, in order. Nothing here is of the size of an epoch. An interrupt does not
    end the iterator, and no batch is lost to it."""

    def __init__(self, count: int, batches: BatchSampler):
        self._size, self._begin = batches.batch_size, 0
        self._count = count - count % self._size if batches.drop_last else count

    def __iter__(self) -> _InOrder:
        return self

    def __next__(self) -> torch.Tensor:
        begin = self._begin
        if begin >= self._count:
            raise StopIteration
        places = self._places(begin, min(begin + self._size, self._count))
        self._begin = begin + self._size
        return places

    def coming(self, most: int) -> list[torch.Tensor]:
        """The next batches, at most so many. They stay."""
        begins = range(self._begin, self._count, self._size)[:most]
        return [self._places(begin, min(begin + self._size, self._count)) for begin in begins]

    def _places(self, begin: int, end: int) -> torch.Tensor:
        return torch.arange(begin, end)


class _Shuffled(_InOrder):
    """Draws as RandomSampler does: it seeds a generator of its own if it has none, and draws one more order, which it
    does not use, when the epoch ends."""

    def __init__(self, sampler: RandomSampler, batches: BatchSampler):
        super().__init__(len(sampler), batches)
        self._generator, self._seeds = sampler.generator, len(sampler)
        self._order: torch.Tensor | None = None
        self._over = False

    def _drawn(self) -> torch.Tensor:
        if self._order is None:
            if self._generator is None:
                self._generator = torch.Generator().manual_seed(
                    int(torch.empty((), dtype=torch.int64).random_().item()))
            self._order = torch.randperm(self._seeds, generator=self._generator)
        return self._order

    def __next__(self) -> torch.Tensor:
        if self._begin >= self._count and not self._over:
            self._drawn()
            self._over = True
            torch.randperm(self._seeds, generator=self._generator)
            self._order = None
        return super().__next__()

    def _places(self, begin: int, end: int) -> torch.Tensor:
        return self._drawn()[begin:end]
