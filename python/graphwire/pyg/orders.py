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
            return _in_order(len(sampler), batches)
        if type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(
                sampler.data_source):
            return _shuffled(sampler, batches)
    return iter(loader.sampler if batches is None else batches)


def _ranges(count: int, batches: BatchSampler) -> Iterator[tuple[int, int]]:
    """The begin and the end of each batch among `count` seeds. Nothing here is of the size of an epoch."""
    size = batches.batch_size
    for begin in range(0, count - size + 1 if batches.drop_last else count, size):
        yield begin, min(begin + size, count)


def _in_order(count: int, batches: BatchSampler) -> Iterator[torch.Tensor]:
    for begin, end in _ranges(count, batches):
        yield torch.arange(begin, end)


def _shuffled(sampler: RandomSampler, batches: BatchSampler) -> Iterator[torch.Tensor]:
    """Draws as RandomSampler does: it seeds a generator of its own if it has none, and draws one more order, which it
    does not use, when the epoch ends."""
    generator = sampler.generator
    if generator is None:
        generator = torch.Generator().manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
    count = len(sampler)
    order = torch.randperm(count, generator=generator)
    for begin, end in _ranges(count, batches):
        yield order[begin:end]
    del order
    torch.randperm(count, generator=generator)
