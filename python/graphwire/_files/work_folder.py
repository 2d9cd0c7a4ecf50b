"""A folder for the pieces of a build, next to its result. It stays if the build is interrupted.

    WorkFolder(out) ─▶ locked: no other build of `out` uses it ─▶ waits for programs of an interrupted build
    ─▶ pieces ─▶ remove(), when the result is complete

    .NAME.build/
      running     locked by the programs that the build runs, which may outlive it
      piece-*/    graphs in one part

Errors: ValueError if another build uses the folder; OSError.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

RUNNING = "running"


class WorkFolder:
    """The folder `path`, which this object has locked. held: descriptors for the programs that write to it."""

    def __init__(self, out: Path):
        self.path = out.absolute().parent / f".{out.name}.build"
        self._lock = self._locked(out)
        self._running = os.open(self.path / RUNNING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._running, fcntl.LOCK_EX)
        self.held = (self._running,)

    def _locked(self, out: Path) -> int:
        while True:
            self.path.mkdir(0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another build has just removed it
                lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(lock), os.lstat(self.path)):
                        return lock
                except BlockingIOError:
                    os.close(lock)
                    raise ValueError(f"{out}: another build of it uses {self.path}: wait for its end") from None
                except FileNotFoundError:
                    pass
                os.close(lock)

    def remove(self) -> None:
        """Removes the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        """Unlocks the folder, and leaves the pieces in it."""
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(self.path) == [RUNNING]:
                self.remove()
        os.close(self._running)
        os.close(self._lock)

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_left(out: Path) -> None:
    """Removes the folder that an interrupted build of `out` left, if it did. Raises ValueError if one uses it."""
    if os.path.isdir(out.absolute().parent / f".{out.name}.build"):
        with WorkFolder(out) as work:
            work.remove()
