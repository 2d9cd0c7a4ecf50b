"""A gate before files: whoever opens one of them waits in open() for as long as a test wants it to, on whatever host.

Made of the kernel's leases (fcntl, F_SETLEASE): this process has the files leased for writing, and is told by a signal
that somebody wants to read one. The kernel opens the gate by itself after /proc/sys/fs/lease-break-time (45 s).
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType


class Gate:
    """Closed from `with` on; open() or the end of `with` opens it. One at a time: the signal is SIGIO."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._fds: list[int] = []

    def __enter__(self) -> Gate:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
        for path in self._paths:
            self._fds.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
            fcntl.fcntl(self._fds[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)
        return self

    def held(self, count: int, seconds: float = 40.0) -> bool:
        """Waits until somebody waits at so many of the files."""
        end = time.monotonic() + seconds
        while self._waited_for() < count:
            # A signal that comes while another is pending is lost: the look above is what counts.
            if not signal.sigtimedwait([signal.SIGIO], min(1.0, max(0.0, end - time.monotonic()))):
                if time.monotonic() >= end:
                    return False
        return True

    def _waited_for(self) -> int:
        """A lease that is being broken says what it will be: none, or one for reading."""
        return sum(fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK for fd in self._fds)

    def open(self) -> None:
        """Lets everybody pass."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        while signal.sigtimedwait([signal.SIGIO], 0):
            pass  # what came meanwhile

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.open()
