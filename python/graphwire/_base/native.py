"""Waits for operations of the C library, and turns its errors into exceptions.

    start(ticket) for each operation -> wait in slices of SLICE_MS -> the result, or the exception of its status
                                        after each slice: the library's log lines go to the logger

Calls into C run without the GIL. Waits are divided into slices, and Python handles signals between two slices: Ctrl-C
ends a wait within SLICE_MS and cancels the operations under way.

A call writes its result into memory from owned(). When the last reference is gone, a C function (python/owned.h)
frees what the result holds. The package releases nothing in Python code, for this reason: if a signal arrives within
__del__ or a weak reference's callback, Python drops the signal's exception and skips the rest of that code.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Callable
from weakref import ref

from graphwire._base.escape import escaped_type, readable
from graphwire._base.keywords import keywords
from graphwire._base.library import ffi as ffi
from graphwire._base.library import lib as lib  # modules of the package import both from here
from graphwire._base.log import deliver

SLICE_MS = 50  # Python handles signals after each slice of a wait


@keywords
class GraphwireError(Exception):
    """A failed call. The text is the C library's line: what, where, what to do. status: the name of the gw_status, such
    as "GW_EXISTS".

    Called with a text alone, as torch's DataLoader does for an error of a worker process, the status is the first of
    the exception's type."""

    __module__ = "graphwire"

    def __init__(self, status: str, text: str | None = None):
        if text is None:
            status, text = next((name for name, kind in _ERRORS.items() if kind is type(self)), "GW_INVALID"), status
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.status, str(self))


class InvalidError(GraphwireError, ValueError):
    """An argument is invalid."""

    __module__ = "graphwire"


class OutOfRangeError(GraphwireError, IndexError):
    """An id, a rank or a loader's start position does not exist."""

    __module__ = "graphwire"


class NotFoundError(GraphwireError, LookupError):
    """A type, a feature, a tensor or a file does not exist. The text lists the existing types or features."""

    __module__ = "graphwire"


class DeadlineError(GraphwireError, TimeoutError):
    """An operation did not end within its timeout."""

    __module__ = "graphwire"


class PeerError(GraphwireError, ConnectionError):
    """A server cannot be reached, refuses the request, or was replaced by another server."""

    __module__ = "graphwire"


class ResourceError(GraphwireError, MemoryError):
    """Memory has run out, or a request exceeds a limit."""

    __module__ = "graphwire"


_ERRORS: dict[str, type[GraphwireError]] = {
    "GW_INVALID": InvalidError, "GW_RANGE": OutOfRangeError, "GW_NOT_FOUND": NotFoundError,
    "GW_DEADLINE": DeadlineError, "GW_PEER_LOST": PeerError, "GW_REFUSED": PeerError, "GW_STALE": PeerError,
    "GW_WRONG_GRAPH": PeerError, "GW_PROTOCOL": PeerError, "GW_VERSION": PeerError, "GW_NO_MEMORY": ResourceError,
    "GW_LOCKED_MEMORY": ResourceError, "GW_LIMIT": ResourceError}


def text(chars: Any) -> str:
    """Converts a C string. Bytes that are not UTF-8 become surrogates, as os.fsdecode makes them."""
    return os.fsdecode(ffi.string(chars))


def c_text(what: str, value: str | bytes | os.PathLike) -> bytes:
    """Encodes a name or path for C. what: the argument's name, for errors.

    Raises ValueError for a text with a NUL byte, because C would read a shorter name; TypeError for other types.
    """
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is a str, not {type(value).__name__}")
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError(f"{what} has half of a character, which UTF-8 does not hold: {value!r:.100}") from None
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL byte: {value!r:.100}")
    return encoded


def c_name(what: str, name: str | bytes | os.PathLike) -> bytes:
    """Encodes the name of an existing type or feature for C, in the format's alphabet (escape.py). Raises the errors
    of c_text."""
    encoded = c_text(what, name)
    if not isinstance(name, str) or any("\ud800" <= one <= "\udfff" for one in name):  # no name has surrogates
        return encoded
    return escaped_type(name).encode()


def error_of(status: int) -> GraphwireError:
    """The exception for the call that has just failed in this thread."""
    name: str = ffi.string(ffi.cast("gw_status", status))
    said = readable(text(lib.gw_last_error())) or text(lib.gw_status_text(status))
    return _ERRORS.get(name, GraphwireError)(name, said)


def check(status: int) -> None:
    if status != lib.GW_OK:
        raise error_of(status)


def finish(*starts: Callable[[Any], int], goes_on: Callable[[], bool] | None = None) -> None:
    """Calls each start(ticket), which begins an operation, and waits for the end of all.

    goes_on: asked after each slice; False, or the end of the process, cancels the operations with a ClosedError. For
    operations in a thread that wait for what other threads may never do.

    If one operation fails, or a signal's exception ends the wait, all operations are cancelled before the exception
    leaves this function. One call into C cancels them, so that a second signal cannot interrupt the cancelling. A
    signal may come before that call: then the tickets cancel the operations when they are freed, which happens before
    the caller's frame frees the operations' arrays.
    """
    tickets = ffi.gc(ffi.new("struct tickets *", {"count": len(starts), "each": len(starts)}), lib.cancel_tickets)
    each = tickets.each
    try:
        for i, start in enumerate(starts):
            check(start(each + i))
        for i in range(len(starts)):
            status = lib.GW_AGAIN
            while status == lib.GW_AGAIN:
                status = lib.wait_for(each + i, SLICE_MS)
                deliver()
                if status == lib.GW_AGAIN and goes_on is not None and (_ending.is_set() or not goes_on()):
                    raise ClosedError("the loop has ended")
            check(status)
    finally:
        ffi.release(tickets)


def wait(ticket: Any) -> None:
    """Waits for the end of one operation, and raises its error. ticket: a struct gw_ticket **, in memory of owned(). A
    signal's exception ends the wait, and the operation continues until that memory is freed."""
    status = lib.GW_AGAIN
    while status == lib.GW_AGAIN:
        status = lib.wait_for(ticket, SLICE_MS)
    check(status)


def owned(kind: str, end: Any) -> Any:
    """Returns zeroed memory of a type of owned.h, into which a call writes its result. end: the library's function that
    ends the result; cffi calls it, without Python code, when the last reference is gone."""
    return ffi.gc(ffi.new(kind), end)


class OfProcess:
    """Base of objects that belong to the process that made them: pickle and copy raise TypeError."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError(f"this {type(self).__name__.lstrip('_')} belongs to the process that made it and cannot be "
                        "pickled or copied: make one in each process; a graphwire.Graph can be sent there")


class ClosedError(ValueError):
    """A graph or a loader is closed."""


class Call:
    """A call that another thread runs. has_failed: wait() has raised the exception of the call.

    start(run): gives `run` to the thread. threads: those that take it from a queue; without them, a new thread has it.
    """

    def __init__(self, call: Callable[[], Any], start: Callable[[Callable[[], None]], Any],
                 threads: Sequence[ref[Any]] = ()):
        self._result: Any = None
        self._failure: BaseException | None = None
        self._has_ended = self.has_failed = False
        self._under_way = _thread.allocate_lock()
        self._under_way.acquire()
        run = _Run(self, call)
        self._run, self._threads = ref(run), threads
        start(run)

    def _is_lost(self) -> bool:
        """Whether no thread will run the call any more."""
        return self._run() is None or (len(self._threads) > 0 and not any(thread() for thread in self._threads))

    def join(self) -> None:
        """Waits for the end of the call. A signal's exception ends the wait, and the call continues. A thread that gets
        no memory at its start ends without a word; the call then has failed with a ResourceError."""
        while not self._has_ended:
            self._under_way.acquire(timeout=SLICE_MS / 1000)
            deliver()
            if self._is_lost() and not self._has_ended:
                self._failure, self._has_ended = ResourceError(
                    "GW_NO_MEMORY", "a thread of this process got no memory and ended before its call"), True

    def wait(self) -> Any:
        """Waits for the end of the call, and returns its result, or raises its exception once."""
        self.join()
        deliver()
        failure, self._failure = self._failure, None
        if failure is None:
            return self._result
        self.has_failed = True
        try:
            raise failure
        finally:
            del failure  # its traceback refers to this frame, which would be a cycle


class _Run:
    """Runs a call once. Only a thread refers to it, or the threads' queue, so it is freed if its thread ends first."""

    __slots__ = ("__weakref__", "_call", "_of")

    def __init__(self, of: Call, call: Callable[[], Any]):
        self._of, self._call = of, call

    def __call__(self) -> None:
        of, call = self._of, self._call
        del self._call
        try:
            of._result = call()
        except BaseException as error:
            of._failure = error
        finally:
            del call
            of._has_ended = True
            of._under_way.release()


def in_thread(call: Callable[[], Any]) -> Any:
    """Runs a call that cannot be cancelled, and returns its result.

    In the main thread, the call runs in a thread of its own, so that a signal can end the wait. After a signal the call
    continues in its thread, and its result is freed when it ends. So the call must own everything that it reads, and
    must not read the caller's arrays. In other threads, which get no signals, the call runs directly.
    """
    if threading.get_ident() != threading.main_thread().ident:
        try:
            return call()
        finally:
            deliver()
    # threading.Thread does not fit, for three reasons. A signal within its start() would leave the thread, and all that
    # it refers to, in a list for ever. When a Thread is freed, Python calls a function written in Python. And start()
    # waits for ever for a thread that gets no memory.
    one = Call(call, lambda run: _thread.start_new_thread(run, ()))
    return one.wait()


class _Alive:
    """A thread of Workers, and nothing else, refers to it."""

    __slots__ = ("__weakref__",)


class Workers:
    """Threads that run calls in the order of submit().

    When this object is freed, C code puts an end mark into the queue; no signal can interrupt that. The threads run the
    calls before the mark and then end. At the end of the process, Python waits for the calls that are running. If all
    threads have ended, because memory was short, their calls raise ResourceError, and the next submit() starts others.
    """

    def __init__(self, count: int):
        self._count = count
        self._start()

    def _start(self) -> None:
        self._asked: SimpleQueue[Any] = SimpleQueue()
        self._end = ffi.gc(ffi.new("char *"), self._asked.put)  # put() is written in C
        self._alive: list[ref[_Alive]] = []
        for _ in range(self._count):
            alive = _Alive()
            self._alive.append(ref(alive))
            _thread.start_new_thread(_work, (self._asked, alive))

    def submit(self, call: Callable[[], Any]) -> Call:
        if not any(alive() for alive in self._alive):
            self._start()
        return Call(call, self._asked.put, self._alive)


_busy: set[Any] = set()  # a lock for each worker that is running a call; the worker holds the lock
_ending = threading.Event()


def _work(asked: SimpleQueue[Any], _alive: _Alive) -> None:
    while True:
        one = asked.get()
        runs = _thread.allocate_lock()
        runs.acquire()
        _busy.add(runs)  # before the look at _ending: either _end_workers sees the lock, or this worker sees the end
        try:
            if not isinstance(one, _Run) or _ending.is_set():
                asked.put(one)  # the mark for the other workers
                return
            one()
        finally:
            del one
            _busy.discard(runs)
            runs.release()


def _end_workers() -> None:
    """Waits for the workers' calls: a thread that returns from torch after the interpreter's end aborts the process."""
    _ending.set()
    for runs in list(_busy):
        runs.acquire()


atexit.register(_end_workers)
