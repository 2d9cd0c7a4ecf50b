"""Spans of Python code in the library's trace (GRAPHWIRE_TRACE; include/graphwire/trace.h).

    trace(name) -> gw_trace_begin -> the code -> gw_trace_end -> the file, between the library's own spans

A worker process of multiprocessing ends without C's exit functions, so its events are written when its target returns.
"""

from __future__ import annotations

import functools
import os
from types import TracebackType
from typing import Any, Callable, TypeVar, cast

from graphwire._base.keywords import keywords
from graphwire._base.library import lib

Of = TypeVar("Of", bound=Callable[..., Any])


@keywords
class trace:
    """A span of the trace: `with graphwire.trace("forward"): …`. Without GRAPHWIRE_TRACE it does nothing.

    name: the span's name; its first 80 bytes in UTF-8 are shown. A block that raises ends its span too. The spans of a
    thread nest, so a block must not await.

    Raises TypeError unless the name is a str.
    """

    __module__ = "graphwire"
    __slots__ = ("_began", "_name")

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"name is a str, not {type(name).__name__}")
        self._name = name.encode(errors="replace").replace(b"\0", b"?")
        self._began: list[int] = []  # the object may be entered again within its own block

    def __enter__(self) -> trace:
        self._began.append(lib.gw_trace_begin())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        lib.gw_trace_end(self._began.pop(), self._name)

    def __repr__(self) -> str:
        return f"<graphwire.trace {self._name.decode()[:80]!r}>"


def traced(name: str) -> Callable[[Of], Of]:
    """Makes each call of a function a span."""
    encoded = name.encode()

    def of(call: Of) -> Of:
        @functools.wraps(call)
        def run(*args: Any, **given: Any) -> Any:
            began = lib.gw_trace_begin()
            if not began:
                return call(*args, **given)
            try:
                return call(*args, **given)
            finally:
                lib.gw_trace_end(began, encoded)

        return cast(Of, run)

    return of


def _flush_at_end(_: Any = None) -> None:
    from multiprocessing import util

    util.Finalize(None, lib.gw_trace_flush, exitpriority=0)


if os.environ.get("GRAPHWIRE_TRACE"):
    from multiprocessing import util as _util

    _flush_at_end()
    _util.register_after_fork(trace, _flush_at_end)  # multiprocessing forgets the finalizers of the parent
