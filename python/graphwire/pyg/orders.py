"""The batches of a loop's seeds, in the order of torch's samplers.

torch's BatchSampler yields lists of Python integers, which takes as long as the conversion of a whole mini-batch. For
torch's own RandomSampler and SequentialSampler, index_batches draws the same order with the same random numbers, as
tensors. Other samplers are iterated as torch does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler


def index_batches(loader: DataLoader) -> Iterator[Any]:
    """The places of the seeds of each batch: int64 tensors, or what the sampler yields."""
    batches = loader.batch_sampler
    if type(batches) is BatchSampler:
        sampler = batches.sampler
        if type(sampler) is SequentialSampler:
            return _InOrder(len(sampler), batches)
        if type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(
                sampler.data_source):
            return _Shuffled(sampler, batches)
    return iter(loader.sampler if batches is None else batches)


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
