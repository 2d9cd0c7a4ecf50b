"""The C library: found, called, waited for; its errors as exceptions.

Everything here runs without the GIL while it is in C. What waits does so in slices, between which Python looks for
signals: Ctrl-C ends a wait within SLICE_MS, and what was under way is cancelled.

What a call makes is written into memory of owned(), which C ends (python/owned.h). Nothing of this package ends by a
line of Python: Python drops the exception of a signal that comes within __del__, or a weak reference's call, and the
rest of it does not run.
"""

from __future__ import annotations

import _thread
import atexit
import importlib
import importlib.util
import os
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Callable

SLICE_MS = 50  # between two looks for signals


def _load() -> Any:
    """graphwire._c: beside this file in an installed package, else in the checkout's build folder.

    GRAPHWIRE_BUILD names another build folder.
    """
    try:
        return importlib.import_module("graphwire._c")
    except ImportError as error:
        missing = error
    top = Path(__file__).resolve().parents[2]
    folders = [Path(os.environ["GRAPHWIRE_BUILD"])] if "GRAPHWIRE_BUILD" in os.environ else [
        top / "build" / name for name in ("release", "dev")]
    for folder in folders:
        path = folder / "python" / "_c.abi3.so"
        if path.is_file():
            spec = importlib.util.spec_from_file_location("graphwire._c", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(
        f"graphwire's library is not there: {missing}; `pip install ./python` builds and installs it, and in a "
        "checkout `cmake --preset release -DGRAPHWIRE_PYTHON=ON && cmake --build --preset release` does") from missing


_module = _load()
ffi: Any = _module.ffi
lib: Any = _module.lib


class GraphwireError(Exception):
    """What a call failed with; the text is the C library's line: what, where, what to do. `status` is its name."""

    def __init__(self, status: str, text: str):
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.status, str(self))


class InvalidError(GraphwireError, ValueError):
    """An argument makes no sense."""


class OutOfRangeError(GraphwireError, IndexError):
    """An id, a rank or a start that does not exist."""


class NotFoundError(GraphwireError, LookupError):
    """No such type, feature, file; the text lists those there are."""


class DeadlineError(GraphwireError, TimeoutError):
    """An operation's time was used up."""


class PeerError(GraphwireError, ConnectionError):
    """A server cannot be reached, refuses, or is not the one that was."""


class ResourceError(GraphwireError, MemoryError):
    """No memory, or more than a limit allows."""


_ERRORS: dict[str, type[GraphwireError]] = {
    "GW_INVALID": InvalidError, "GW_RANGE": OutOfRangeError, "GW_NOT_FOUND": NotFoundError,
    "GW_DEADLINE": DeadlineError, "GW_PEER_LOST": PeerError, "GW_REFUSED": PeerError, "GW_STALE": PeerError,
    "GW_WRONG_GRAPH": PeerError, "GW_PROTOCOL": PeerError, "GW_VERSION": PeerError, "GW_NO_MEMORY": ResourceError,
    "GW_LOCKED_MEMORY": ResourceError, "GW_LIMIT": ResourceError}


def text(chars: Any) -> str:
    """A C string; bytes that are no UTF-8 are kept as os.fsdecode keeps them."""
    return os.fsdecode(ffi.string(chars))


def c_text(what: str, value: str | bytes | os.PathLike) -> bytes:
    """A name or path for the C library, whose texts end at the first NUL: one that has a NUL would be another name.
    what: the argument, for the ValueError; other types are a TypeError."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is a str, not {type(value).__name__}")
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL byte: {value!r:.100}")
    return encoded


def error_of(status: int) -> GraphwireError:
    """The exception of the call that just failed in this thread."""
    name: str = ffi.string(ffi.cast("gw_status", status))
    return _ERRORS.get(name, GraphwireError)(name, text(lib.gw_last_error()) or text(lib.gw_status_text(status)))


def check(status: int) -> None:
    if status != lib.GW_OK:
        raise error_of(status)


def finish(*starts: Callable[[Any], int]) -> None:
    """Each start(ticket) begins an operation; waits for the end of all. An exception of a signal, or of one that fails,
    cancels them first: in one call of C, which no second signal divides, or, where that comes before the call, when the
    tickets go, and they go before what the caller's frame holds."""
    tickets = ffi.gc(ffi.new("struct tickets *", {"count": len(starts), "each": len(starts)}), lib.cancel_tickets)
    each = tickets.each
    try:
        for i, start in enumerate(starts):
            check(start(each + i))
        for i in range(len(starts)):
            status = lib.GW_AGAIN
            while status == lib.GW_AGAIN:
                status = lib.wait_for(each + i, SLICE_MS)
            check(status)
    finally:
        ffi.release(tickets)


def owned(kind: str, end: Any) -> Any:
    """Zeroed memory of a kind of owned.h, for what a call makes. end: the function of the library that is called when
    the last reference has gone, in C alone."""
    return ffi.gc(ffi.new(kind), end)


class OfProcess:
    """What belongs to the process that made it."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__.lstrip('_')} belongs to the process that made it and cannot be "
                        "pickled or copied: make one in each process; a graphwire.Graph can be sent there")


class Call:
    """A call in another thread, and what became of it: wait() gives that, once."""

    def __init__(self, call: Callable[[], Any]):
        self._call: Callable[[], Any] | None = call
        self._result: Any = None
        self._failure: BaseException | None = None
        self._under_way = _thread.allocate_lock()
        self._under_way.acquire()

    def run(self) -> None:
        call, self._call = self._call, None
        try:
            assert call is not None
            self._result = call()
        except BaseException as error:
            self._failure = error
        finally:
            self._under_way.release()

    def wait(self) -> Any:
        """Its result, or its exception; a signal's exception ends the wait."""
        while not self._under_way.acquire(timeout=SLICE_MS / 1000):
            pass
        result, failure = self._result, self._failure
        self._result = self._failure = None
        if failure is None:
            return result
        try:
            raise failure
        finally:
            del failure  # its traceback holds this frame


def aside(call: Callable[[], Any]) -> Any:
    """Runs a call that cannot be cancelled. The main thread waits for it beside, so that a signal ends the wait; then
    the call goes on alone: it holds all that it reads, none of it the caller's arrays, and its result goes when it
    ends."""
    if threading.get_ident() != threading.main_thread().ident:
        return call()
    one = Call(call)
    # Not threading.Thread: a signal within its start() would leave it, and all that it holds, in a list for ever; and
    # Python calls a function of Python's when it goes.
    _thread.start_new_thread(one.run, ())
    return one.wait()


class Workers:
    """Threads that run calls, in the order of submit(). They end when this object is gone, without a line of Python
    that a signal could divide: what is left in the queue is run, and then the queue gives them the end. The end of the
    process waits for what they run."""

    def __init__(self, count: int):
        self._asked: SimpleQueue[Any] = SimpleQueue()
        self._end = ffi.gc(ffi.new("char *"), self._asked.put)  # put() is C
        for _ in range(count):
            _thread.start_new_thread(_work, (self._asked,))

    def submit(self, call: Callable[[], Any]) -> Call:
        one = Call(call)
        self._asked.put(one)
        return one


_busy: set[Any] = set()  # a lock of each worker that runs a call
_ending = threading.Event()


def _work(asked: SimpleQueue[Any]) -> None:
    while True:
        one = asked.get()
        if not isinstance(one, Call) or _ending.is_set():
            asked.put(one)  # for the others
            return
        runs = _thread.allocate_lock()
        runs.acquire()
        _busy.add(runs)
        try:
            one.run()
        finally:
            del one
            _busy.discard(runs)
            runs.release()


def _end_workers() -> None:
    """A thread that comes back from torch when Python has ended ends the process."""
    _ending.set()
    for runs in list(_busy):
        runs.acquire()


atexit.register(_end_workers)
