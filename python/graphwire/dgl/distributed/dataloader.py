"""DistDataLoader: batches of ids, each handed to a function of the script's.

DGL_NUM_SAMPLER (launch.py --num_samplers) threads call the function ahead, so that sampling and fetching, which run
without the GIL, go on while the trainer computes. Without samplers it is called when the batch is asked for. Batches
come in order.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Callable
from weakref import ref

import numpy as np
import torch

from graphwire._native import Call, Workers
from graphwire.dgl.distributed.context import context

_numbers = itertools.count()


class Pairs:
    """(type, id) of {type: ids}, type by type: a pair is made when a batch has it."""

    def __init__(self, ids: Mapping[Any, Any]):
        self._kinds = list(ids)
        every = [torch.as_tensor(some, dtype=torch.int64).reshape(-1).cpu() for some in ids.values()]
        self._ids = torch.cat([*every, torch.empty(0, dtype=torch.int64)])
        self._ends = torch.tensor([len(some) for some in every], dtype=torch.int64).cumsum(0)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.at(torch.tensor([range(len(self))[number]]))[0]

    def at(self, numbers: torch.Tensor) -> list[tuple[Any, int]]:
        """The pairs of these numbers."""
        kinds = torch.searchsorted(self._ends, numbers, right=True).tolist()
        return [(self._kinds[kind], one) for kind, one in zip(kinds, self._ids[numbers].tolist())]


class _Loop:
    """A loop over a loader that is going on."""


class DistDataLoader:
    """dgl.distributed.DistDataLoader.

    dataset: ids, or a list of (type, id); collate_fn gets a list of them, as integers. queue_size: batches ahead.
    """

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False,
                 collate_fn: Callable[[list[Any]], Any] | None = None, drop_last: bool = False,
                 queue_size: int | None = None, **ignored: Any):
        unknown = set(ignored) - {"num_workers", "pin_memory", "use_uva", "persistent_workers"}
        if unknown:
            raise TypeError(f"DistDataLoader has no argument {', '.join(sorted(unknown))}")
        if batch_size < 1:
            raise ValueError(f"batch_size is 1 or more, not {batch_size}")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, int(batch_size), shuffle, drop_last
        self.collate_fn = collate_fn or (lambda items: items)
        self.num_workers = context.samplers
        self.queue_size = queue_size or max(4, 4 * self.num_workers)
        self._number, self._epoch = next(_numbers), 0
        self._pool: Workers | None = None
        self._batches: Iterator[Any] | None = None
        self._typed = dataset if isinstance(dataset, Pairs) else None
        pairs = len(dataset) and not isinstance(dataset, (torch.Tensor, np.ndarray, Pairs)) and isinstance(
            dataset[0], tuple)
        self._pairs = [(kind, int(item)) for kind, item in dataset] if pairs else None
        plain = not pairs and self._typed is None
        self._ids = torch.as_tensor(np.asarray(dataset), dtype=torch.int64) if plain else None

    @property
    def expected_idxs(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    def __len__(self) -> int:
        return self.expected_idxs

    def _collate(self, epoch: int, step: int, order: torch.Tensor) -> Any:
        """One batch; what it draws depends on where it is, whichever thread makes it."""
        chosen = order[step * self.batch_size:(step + 1) * self.batch_size]
        if self._typed is not None:
            items: list[Any] = self._typed.at(chosen)
        elif self._pairs is not None:
            items = [self._pairs[i] for i in chosen.tolist()]
        else:
            assert self._ids is not None
            items = self._ids[chosen].tolist()
        context.at(((self._number << 16) + epoch << 24) + step)
        try:
            return self.collate_fn(items)
        finally:
            context.at(None)

    def _epoch_of(self, epoch: int) -> Iterator[Any]:
        order = torch.randperm(len(self.dataset)) if self.shuffle else torch.arange(len(self.dataset))
        if not self.num_workers:
            for step in range(self.expected_idxs):
                yield self._collate(epoch, step, order)
            return
        if self._pool is None:
            self._pool = Workers(self.num_workers)
        loop = _Loop()  # this frame's alone: it goes with the loop, however that ends
        going = ref(loop)

        def made(step: int) -> Any:
            return None if going() is None else self._collate(epoch, step, order)

        ahead: deque[Call] = deque()
        for step in range(self.expected_idxs):
            ahead.append(self._pool.submit(partial(made, step)))
            if len(ahead) >= self.queue_size:
                yield ahead.popleft().wait()
        while ahead:
            yield ahead.popleft().wait()

    def __iter__(self) -> DistDataLoader:
        self._batches = self._epoch_of(self._epoch)
        self._epoch += 1
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Another process has loops and threads of its own."""
        return {**self.__dict__, "_batches": None, "_pool": None}

    def __next__(self) -> Any:
        if self._batches is None:
            iter(self)
        assert self._batches is not None
        return next(self._batches)
