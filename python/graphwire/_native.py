"""The C library: found, called, waited for; its errors as exceptions.

Everything here runs without the GIL while it is in C. What waits does so in slices, between which Python looks for
signals: Ctrl-C ends a wait within SLICE_MS, and what was under way is cancelled.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from pathlib import Path
from typing import Any, Callable

SLICE_MS = 50  # between two looks for signals


def _load() -> Any:
    """graphwire._c: beside this file in an installed package, else in the checkout's build folder.

    GRAPHWIRE_BUILD names another build folder.
    """
    try:
        from graphwire import _c

        return _c
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


class Owner:
    """What a call makes, and the client that it needs until it is released. There before the call, which writes into
    `cell`: a signal's exception may come at any line, and finds everything with somebody who gives it back, once.

    kind: of the cell; close: the call that takes what is in it, NULL too.
    """

    __slots__ = ("__weakref__", "_close", "cell", "client")

    def __init__(self, client: Any, kind: str, close: Callable[[Any], None]):
        self._close, self.client = close, client  # the library's names may be gone before the last owner
        self.cell = ffi.new(kind)
        client.take(self.cell)

    def __del__(self) -> None:
        cell = getattr(self, "cell", None)
        if cell is not None:
            try:
                self._close(cell[0])
            finally:
                self.client.give(cell)


def aside(call: Callable[[], Any]) -> Any:
    """Runs a call that cannot be cancelled. The main thread waits for it beside, so that a signal ends the wait; then
    the call goes on alone: it holds all that it reads, none of it the caller's arrays, and its result goes when it
    ends."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    result: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="graphwire", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(SLICE_MS / 1000)
    if failure:
        raise failure[0]
    return result[0]
