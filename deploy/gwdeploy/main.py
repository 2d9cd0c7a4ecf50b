"""Runs a command's main(): an event loop that signals cancel, and errors printed as one line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Sequence
from typing import Any, Callable

from . import clock
from .errors import DeployError, Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def _with_signals(work: Awaitable[Any]) -> Any:
    """Runs the work. The first signal cancels it; later signals do not interrupt its clean-up."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    received: list = []

    def stop(number: int) -> None:
        if not received:
            received.append(number)
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise  # the loop ends for another reason: --help
        raise Interrupted() from None


def _hold_standard_files() -> None:
    """Opens /dev/null for standard files that are closed. Else a socket or pipe gets the number of one, and children
    take it for theirs."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = open(os.devnull, mode)  # it gets the lowest free number, and stays open as sys.NAME
            os.set_inheritable(file.fileno(), True)
            setattr(sys, name, file)


def run(name: str, main: Callable[[Sequence[str]], Awaitable[int]], words: Sequence[str]) -> int:
    """Runs a command and returns its exit status. Prints an error as one line on stderr."""
    _hold_standard_files()
    try:
        return int(clock.run(_with_signals(main(words))))
    except DeployError as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return error.status
    except KeyboardInterrupt:  # before the loop had begun, or after its end
        print(f"{name}: interrupted", file=sys.stderr, flush=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
