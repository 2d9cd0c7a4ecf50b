"""The part of DistDataLoader for classes that choose the items of a batch themselves: they override _next_data().

    _next_data() -> items -> collate_fn, in a sampling thread or in the caller's -> the mini-batch, in order

Such a class has DGL's attributes, which its own __iter__ may set to begin an epoch:

    expected_idxs   the number of batches of an epoch
    recv_idxs       the number of batches that the epoch has given
    num_pending     the number of batches under way
    current_pos     the place in data_idx at which the next batch of the base class begins
    data_idx        the order of the dataset's items, in the base class's _next_data()

Errors: those of _next_data() and of collate_fn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from graphwire._keywords import keywords


@keywords
class OwnItems:
    """The base of DistDataLoader, which has the other attributes. is_own: whether the class overrides _next_data()."""

    dataset: Any
    batch_size: int
    shuffle: bool
    drop_last: bool
    queue_size: int
    num_workers: int
    _items: Callable[[torch.Tensor], list[Any]]
    _collate: Callable[[int, int, list[Any]], Any]
    _workers: Callable[[], Any]

    def __init__(self, dataset: Any):
        self.is_own = type(self)._next_data is not OwnItems._next_data
        whole, rest = divmod(len(dataset), self.batch_size)
        self.expected_idxs = whole + (1 if rest and not self.drop_last else 0)
        self.data_idx: Any = torch.arange(len(dataset))
        self.current_pos: Any = 0
        self.recv_idxs = self.num_pending = 0
        self._under_way: deque[Any] = deque()
        self._epoch = self._step = 0

    def _next_data(self) -> Any:
        """The items of the next batch; None after the last. Classes override it."""
        end = min(self.current_pos + self.batch_size, len(self.data_idx))
        if end == self.current_pos or (self.drop_last and end - self.current_pos < self.batch_size):
            return None
        items = self._items(self.data_idx[self.current_pos:end])
        self.current_pos = end
        return items

    def begin(self) -> None:
        """Begins an epoch, as the base class's __iter__."""
        if self.shuffle:
            self.data_idx = self.data_idx[torch.randperm(len(self.data_idx))]
        self.current_pos = self.recv_idxs = self.num_pending = 0

    def next_own(self) -> Any:
        """The next batch of the items of _next_data(). With sampling threads, batches are made ahead. Raises
        StopIteration after expected_idxs batches, or when _next_data() returns None."""
        if not self.num_pending:  # an epoch begins; batches of an epoch that was left may be here
            self._under_way.clear()
            if not self.recv_idxs:
                self._epoch, self._step = (self._epoch + 1) % 2**16, 0
        while self.num_pending < (self.queue_size if self.num_workers else 1):
            items = self._next_data()
            if items is None:
                break
            make = partial(self._collate, self._epoch, self._step, items)
            self._under_way.append(self._workers().submit(make).wait if self.num_workers else make)
            self._step += 1
            self.num_pending += 1
        if self.recv_idxs >= self.expected_idxs or not self._under_way:
            raise StopIteration
        self.recv_idxs += 1
        self.num_pending -= 1
        return self._under_way.popleft()()

    def pickled(self) -> dict[str, Any]:
        """The attributes that are pickled in place of batches under way."""
        return {"_under_way": deque(), "num_pending": 0}
