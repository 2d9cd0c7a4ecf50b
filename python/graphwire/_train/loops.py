"""What a loop over a loader does after an error. The iterators of all loaders derive from Loop.

    next() -> _make(): the batch at the loop's position -> the position moves -> the batch
        a server is lost, a deadline, an interrupt -> the position stays: the next call tries the same batch again
        the graph or the loader is closed          -> likewise, so each call raises this error
        another error, as of a transform           -> the batch is skipped, as in torch's DataLoader

StopIteration comes at the end of the epoch only. A generator would end at its first error.
"""

from __future__ import annotations

import _thread
import os
import threading
from typing import Any, Callable

from graphwire._base import arrays as _arrays
from graphwire._base.eager import eager
from graphwire._base.native import ClosedError, DeadlineError, OfProcess, PeerError
from graphwire._base.trace import traced

END = object()  # what _make() returns after the last batch


def keeps(error: BaseException) -> bool:
    """Whether a loop tries the batch of this error again. An interrupt (KeyboardInterrupt) is not an Exception."""
    return isinstance(error, (PeerError, DeadlineError, ClosedError)) or not isinstance(error, Exception)


def repeatable(make: Callable[[], Any]) -> Any:
    """make(). If the loop tries its batch again, torch's random numbers are then those of the first time."""
    torch = _arrays.torch_module()
    assert torch is not None
    before = torch.get_rng_state()
    try:
        return make()
    except BaseException as error:
        if keeps(error):
            torch.set_rng_state(before)
        raise


class Loop(OfProcess):
    """The iterator of a loop. Threads that share it get batches in turn.

    A subclass defines _make(), which returns the batch at the loop's position or END. If a thread of the library or of
    torch moves the position on, _make() itself skips. is_over: the loop has ended.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._begin_turns()

    def _begin_turns(self) -> None:
        self._turn, self._pid, self._thread = _thread.allocate_lock(), os.getpid(), 0

    def _make(self) -> Any:
        raise NotImplementedError

    def _skip(self) -> None:
        """Moves the position over the batch that has failed."""

    def _took(self) -> None:
        """Moves the position over the batch that the caller gets now."""

    def _end(self) -> None:
        """Called once, after the last batch."""

    def __iter__(self) -> Any:
        return self

    @eager
    @traced("next batch")
    def __next__(self) -> Any:
        if self._pid != os.getpid():  # another thread may have held the lock during the fork
            self._begin_turns()
        if self._thread == threading.get_ident() and self._turn.locked():
            raise ValueError("the loop already makes a batch: a transform or a signal's handler asks for another one")
        with self._turn:
            self._thread = threading.get_ident()
            try:
                return self._batch()
            finally:
                self._thread = 0

    def _batch(self) -> Any:
        if self.is_over:
            raise StopIteration
        try:
            batch = self._make()
        except BaseException as error:
            if not keeps(error):
                self._skip()
            if isinstance(error, StopIteration):
                raise RuntimeError("a function of the loader raised StopIteration") from error
            raise
        if batch is END:
            self.is_over = True
            self._end()
            raise StopIteration
        self._took()
        return batch
