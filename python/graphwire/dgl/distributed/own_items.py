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

from graphwire._base.keywords import keywords
from graphwire._train.loops import END, Loop, repeatable


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
        self._own: _Own | None = None  # what gives the batches
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
        if self._own is None:
            self._own = _Own(self)
        self._own.is_over = False  # a class may begin an epoch by setting the attributes
        return next(self._own)

    def pickled(self) -> dict[str, Any]:
        """The attributes that are pickled in place of batches under way."""
        return {"_under_way": deque(), "num_pending": 0, "_own": None}


class _Making:
    """A batch under way."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make
        self.call: Any = None

    def batch(self) -> Any:
        """Raises the error of the batch; the next call makes it again."""
        if self.call is None:
            return repeatable(self.make)
        call = self.call
        try:
            return call.wait()
        except BaseException:
            if call.has_failed:
                self.call = None
            raise


class _Own(Loop):
    """The batches of the items that a class chooses."""

    def __init__(self, of: OwnItems):
        super().__init__()
        self._of, self._at_batch = of, False

    def _make(self) -> Any:
        of = self._of
        self._at_batch = False
        if not of.num_pending:  # an epoch begins; batches of an epoch that was left may be here
            of._under_way.clear()
            if not of.recv_idxs:
                of._epoch, of._step = (of._epoch + 1) % 2**16, 0
        while of.num_pending < (of.queue_size if of.num_workers else 1):
            items = of._next_data()
            if items is None:
                break
            of._under_way.append(_Making(partial(of._collate, of._epoch, of._step, items)))
            of._step += 1
            of.num_pending += 1
        for making in of._under_way if of.num_workers else ():
            if making.call is None:
                making.call = of._workers().submit(making.make)
        if of.recv_idxs >= of.expected_idxs or not of._under_way:
            return END
        self._at_batch = True
        return of._under_way[0].batch()

    def _took(self) -> None:
        of = self._of
        of.recv_idxs += 1
        of.num_pending -= 1
        of._under_way.popleft()

    def _skip(self) -> None:
        if self._at_batch:
            self._took()
