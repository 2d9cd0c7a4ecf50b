"""A gate in front of files: a process on any host that opens one of them waits in open() until the test opens the
gate. The gate consists of the kernel's leases (fcntl, F_SETLEASE): this process has a write lease on each file, and
gets a signal when another process opens one. The kernel opens the gate by itself after /proc/sys/fs/lease-break-time
(45 s)."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType


class Gate:
    """Closed from `with` on; open() or the end of `with` opens it. Only one gate at a time, because the signal is
    SIGIO."""

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
        """Waits until processes wait at this many of the files."""
        end = time.monotonic() + seconds
        while self._waited_for() < count:
            # A signal is lost while another one is pending, so the check above decides.
            if not signal.sigtimedwait([signal.SIGIO], min(1.0, max(0.0, end - time.monotonic()))):
                if time.monotonic() >= end:
                    return False
        return True

    def _waited_for(self) -> int:
        """While the kernel breaks a lease, it reports the lease that will remain: none, or one for reading."""
        return sum(fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK for fd in self._fds)

    def open(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        while signal.sigtimedwait([signal.SIGIO], 0):
            pass  # signals that arrived meanwhile

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.open()
