"""Hands the log lines of the C library to logging.getLogger("graphwire").

    a thread of the library -> the queue in C (python/log_queue.h) -> deliver() -> the logger

deliver() runs in the threads that wait for the library, after each slice of a wait and at the end of each call. So a
handler runs in a thread that Python made, and no thread of its own could outlive the interpreter or be missing after a
fork. A record has the time at which the library logged the line. Lines that are logged while no thread waits come with
the next call; the rest comes at exit. Later lines, such as those of a client that closes while the interpreter ends, go
to stderr.

A handler may raise, and may call graphwire: lines that come meanwhile stay in the queue for the outer deliver().
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import traceback
from typing import Any

from graphwire._base.library import ffi, lib

_logger = logging.getLogger("graphwire")
_LEVELS = {lib.GW_LOG_ERROR: logging.ERROR, lib.GW_LOG_WARN: logging.WARNING, lib.GW_LOG_INFO: logging.INFO,
           lib.GW_LOG_DEBUG: logging.DEBUG}


class _Here(threading.local):
    delivers = False  # whether a handler of this thread is running


_here = _Here()


def deliver() -> None:
    """Hands the lines that wait in the queue to the logger."""
    if not lib.log_waits() or _here.delivers:
        return
    taken = ffi.gc(ffi.new("struct log_entry **"), lib.log_entry_end)
    lib.log_take(taken)
    while taken[0] != ffi.NULL:
        try:
            _here.delivers = True
            _handle(taken[0])
        except Exception:
            if logging.raiseExceptions and sys.stderr is not None:  # as a handler's own handleError does
                traceback.print_exc()
        finally:
            _here.delivers = False
        lib.log_entry_end(taken)
        lib.log_take(taken)


def _handle(entry: Any) -> None:
    if entry.dropped:
        _logger.warning("%d lines of the library's log were dropped", entry.dropped)
    level = _LEVELS[entry.level]
    if not _logger.isEnabledFor(level):
        return
    # Names in a line may have any bytes; a handler could not encode the surrogates of os.fsdecode.
    line = ffi.string(entry.line).decode(errors="backslashreplace")
    record = _logger.makeRecord(_logger.name, level, "libgraphwire", 0, line, (), None)
    record.relativeCreated -= (record.created - entry.time) * 1000
    record.created, record.msecs = entry.time, entry.time % 1 * 1000
    _logger.handle(record)


def follow_level() -> None:
    """Makes the library log what the logger takes, unless GRAPHWIRE_LOG sets the library's level."""
    if os.environ.get("GRAPHWIRE_LOG") in ("error", "warn", "info", "debug"):
        return
    enabled = [level for level, theirs in _LEVELS.items() if _logger.isEnabledFor(theirs)]
    lib.gw_log_set_level(max(enabled, default=lib.GW_LOG_ERROR))


def _at_exit() -> None:
    deliver()
    lib.log_end()
    deliver()


lib.log_begin()
atexit.register(_at_exit)
