"""Temporary folders that are removed when their process ends, however it ends; and files that appear complete.

    Scratch() removes the folders of killed processes -> starts a guard, which waits for the end of a pipe
    -> makes the folder and locks it -> the caller uses it
    -> close(), the object's end or the process's normal end removes the folder; the pipe ends, and so does the guard
    -> SIGTERM, SIGKILL, a crash or os._exit(): the kernel closes the pipe, and the guard removes the folder

Signal handlers do not suffice: a library leaves signals to its program, and Python drops an interrupt in a finalizer.
So the guard is a shell in a session of its own. It ignores the signals that a terminal or a batch system sends to all
processes of a job. Forked children inherit the pipe, and so do programs that were started with descriptors(): the
folder stays until all of them have ended.

If the guard is killed too, or no shell exists, the folder remains without a lock. The next process that makes such a
folder in the same place removes it, as core/files/leftovers.h does.

Errors: OSError if the folder, the pipe or the lock cannot be made.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

from graphwire._base.native import ffi, lib, owned

_TRIES = 100  # attempts to make and lock a folder; another process may sweep it before it is locked
_OTHERS = 3  # the first descriptor that is no standard one
_GUARD = """exec 3<&0 </dev/null
(trap '' HUP INT QUIT TERM; read -r line <&3; exec rm -rf -- "$1") &"""
_made: list[ref[Scratch]] = []


def _host() -> str:
    """This host's name as a number, for folders' names. A lock is visible only on its own host, and other hosts may use
    the same file system."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def _sweep(parent: str, prefix: str) -> None:
    """Removes the folders with this prefix, user and host that no process has locked. Their names end in ".tmp", which
    backups and copies commonly leave out; those of older versions do not."""
    ours = re.compile(rf"{re.escape(prefix)}\.tmp-\d+-{_host()}-[0-9a-f]{{8}}(\.tmp)?")
    for name in os.listdir(parent):
        if not ours.fullmatch(name):
            continue
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(folder).st_uid == os.geteuid() and os.path.samestat(os.fstat(folder), os.lstat(path)):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(folder)


class Scratch:
    """A temporary folder, `path`, which this object owns. Leaving the context removes the folder. Without a context the
    guard removes it soon after the object is freed, and at the latest when the process ends.

    parent: the folder to make it in; None: the system's folder for temporary files. prefix: how its name begins.

    Raises OSError.
    """

    def __init__(self, parent: str | os.PathLike | None = None, prefix: str = "graphwire"):
        parent = os.path.abspath(tempfile.gettempdir() if parent is None else parent)
        self._process = os.getpid()
        _sweep(parent, prefix)
        for _ in range(_TRIES):
            self.path = Path(parent, f"{prefix}.tmp-{self._process}-{_host()}-{secrets.token_hex(4)}.tmp")
            self._held = owned("struct held_guard *", lib.guard_end)
            self._guarded()
            self.path.mkdir(0o700)
            if lib.guard_lock(self._held, os.fsencode(self.path)) == 0:
                break
        else:
            raise OSError(f"{parent}: a temporary folder cannot be made: each one was swept away at once")
        _made[:] = [one for one in _made if one() is not None] + [ref(self)]

    def _guarded(self) -> None:
        """Starts the guard. The folder does not exist yet, so a kill at any time leaves no folder without a guard."""
        error = lib.guard_pipe(self._held)
        if error:
            raise OSError(error, os.strerror(error))
        with contextlib.suppress(FileNotFoundError):  # no shell
            subprocess.run(["/bin/sh", "-c", _GUARD, "graphwire", self.path], stdin=self._held.reads - 1, cwd="/",
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, check=False)
        lib.guard_reads_end(self._held)

    def close(self) -> None:
        """Removes the folder. In a process that did not make the folder, close() only closes the descriptors."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)
        ffi.release(self._held)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_folders() -> list[Scratch]:
    return [scratch for scratch in (one() for one in _made) if scratch is not None and scratch._held.writes]


@contextlib.contextmanager
def descriptors() -> Iterator[tuple[int, ...]]:
    """Descriptors for subprocess's pass_fds, for a program that works in these folders. The folders stay until the
    program has ended. The descriptors are copies, which the context closes: a garbage collection or another thread may
    close a folder's own descriptor before the program starts.
    """
    with contextlib.ExitStack() as stack:
        copies = []
        for scratch in _open_folders():
            with contextlib.suppress(OSError):  # another thread has closed it
                copies.append(fcntl.fcntl(scratch._held.writes - 1, fcntl.F_DUPFD_CLOEXEC, _OTHERS))
                stack.callback(os.close, copies[-1])
        yield tuple(copies)


def _close_all() -> None:
    for scratch in _open_folders():
        scratch.close()


atexit.register(_close_all)


def _sync(path: Path, flags: int) -> None:
    one = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(one)
    finally:
        os.close(one)


def moved(ready: Path, path: Path) -> None:
    """Renames a complete file to `path`. The file's bytes reach the disk before its name does."""
    _sync(ready, os.O_NOFOLLOW)
    os.replace(ready, path)
    with contextlib.suppress(OSError):  # a file system that cannot sync folders
        _sync(path.absolute().parent, os.O_DIRECTORY)


@contextlib.contextmanager
def whole(path: str | os.PathLike) -> Iterator[Path]:
    """Yields a temporary path to write to, and on success renames the file to `path`. So `path` is either complete or
    unchanged, even if several processes write it. The temporary folder is in the same folder as `path`, and no other
    user can write into it. It is removed even if a signal kills the writer. A link at `path` is replaced, and never
    followed. Raises OSError."""
    path = Path(path)
    with Scratch(path.absolute().parent, f".{path.name[:40]}") as scratch:
        temporary = scratch / path.name
        yield temporary
        moved(temporary, path)
