"""A limit for processes that tests fork. Such a process may wait for a lock of a thread that it does not have, and what
waits for the process then waits as long. Programs that these processes become keep the limit."""

from __future__ import annotations

import os
import signal

SECONDS = int(os.environ.get("PYTEST_TIMEOUT", "600")) + 60  # the test fails first, with its stack


def _limit() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)


def limit_forks() -> None:
    os.register_at_fork(after_in_child=_limit)
