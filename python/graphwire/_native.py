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


def error_of(status: int) -> GraphwireError:
    """The exception of the call that just failed in this thread."""
    name: str = ffi.string(ffi.cast("gw_status", status))
    return _ERRORS.get(name, GraphwireError)(name, text(lib.gw_last_error()) or text(lib.gw_status_text(status)))


def check(status: int) -> None:
    if status != lib.GW_OK:
        raise error_of(status)


def finish(*starts: Callable[[Any], int]) -> None:
    """Each start(ticket) begins an operation; waits for the end of all. An exception of a signal, or of one that fails,
    cancels them first."""
    tickets = [ffi.new("struct gw_ticket **") for _ in starts]
    try:
        for start, ticket in zip(starts, tickets):
            check(start(ticket))
        for ticket in tickets:
            status = lib.GW_AGAIN
            while status == lib.GW_AGAIN:
                status = lib.wait_for(ticket, SLICE_MS)
            check(status)
    finally:
        for ticket in tickets:
            lib.gw_cancel(ticket[0])


def aside(call: Callable[[], Any], undo: Callable[[Any], None] = lambda _: None) -> Any:
    """Runs a call that cannot be cancelled. The main thread waits for it beside, so that a signal ends the wait; then
    the call goes on alone, and undo(result) takes back what it makes."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    result: list[Any] = []
    failure: list[BaseException] = []
    lock, left = threading.Lock(), [False]

    def run() -> None:
        try:
            made = call()
        except BaseException as error:
            failure.append(error)
            return
        with lock:
            if not left[0]:
                result.append(made)
                return
        undo(made)

    thread = threading.Thread(target=run, name="graphwire", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(SLICE_MS / 1000)
    except BaseException:
        with lock:
            left[0] = True
        for made in result:
            undo(made)
        raise
    if failure:
        raise failure[0]
    return result[0]
