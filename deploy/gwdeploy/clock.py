"""The launcher's clock, which stands still while the process is suspended (as core/system/clock.h for servers).

A launcher that was stopped (Ctrl-Z, SIGSTOP, a frozen control group, a machine that was moved) has not waited for its
hosts: each stage continues with the time that it had left. The event loop reads its clock four times a second. In a gap
of more than a second between two readings, the process did not run, and the loop subtracts the gap from its clock. All
time-outs of asyncio use this clock, and so does now().
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

_BEAT_S = 0.25
_PAUSE_S = 1.0


class Loop(asyncio.SelectorEventLoop):
    """An event loop with this clock."""

    def __init__(self) -> None:
        self._suspended_s = 0.0  # the sum of all suspensions
        self._read_at = super().time()
        super().__init__()
        self._beat()

    def time(self) -> float:
        """The monotonic clock, without the time for which the process was suspended."""
        at = super().time()
        if at - self._read_at > _PAUSE_S:
            self._suspended_s += at - self._read_at
        self._read_at = at
        return at - self._suspended_s

    def _beat(self) -> None:
        self.call_later(_BEAT_S, self._beat)


def now() -> float:
    """Seconds, by the clock of the loop that runs."""
    return asyncio.get_running_loop().time()


async def _end_of(tasks: Iterable[asyncio.Task]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """As asyncio.run, in a loop of this kind."""
    loop = Loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work)
    finally:
        try:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(_end_of(tasks))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
