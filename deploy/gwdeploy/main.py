"""What all commands share: an event loop that ends well on signals, and errors as one line."""

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
    """Runs the work; a signal cancels it, once: its own ending is not interrupted again."""
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


def run(name: str, main: Callable[[Sequence[str]], Awaitable[int]], words: Sequence[str]) -> int:
    """A command: its exit status. An error is one line on stderr."""
    try:
        return int(clock.run(_with_signals(main(words))))
    except DeployError as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return error.status
    except KeyboardInterrupt:  # before the loop had begun, or behind its end
        print(f"{name}: interrupted", file=sys.stderr, flush=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
