"""Temporary folders that go with their process, whatever ends that.

    killed ones of before are swept -> a guard waits for the end of a pipe -> the folder is made, and locked -> used
    -> it is removed, at the end of the process too -> the pipe ends: the guard removes what is there, and ends
    SIGTERM, SIGKILL, a crash, os._exit(): the kernel closes the pipe, and the guard removes the folder

A library leaves the signals to its program; and Python drops an interrupt in a finalizer. The guard is a shell in a
session of its own, which ignores what a terminal or a batch system sends to all. Children that were forked have the
pipe too, and so have programs that work there: the folder stays until they have ended. Where the guard is killed as
well, or a shell does not exist, the next process that makes such a folder there removes it (as core/files/leftovers.h
does): nobody holds its lock.
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
from pathlib import Path
from weakref import ref

from graphwire._native import ffi, lib, owned

_TRIES = 100  # to have a new folder locked before a sweeper takes it for a dead one's
_GUARD = """exec 3<&0 </dev/null
(trap '' HUP INT QUIT TERM; read -r line <&3; exec rm -rf -- "$1") &"""
_made: list[ref[Scratch]] = []


def _host() -> str:
    """Locks are told between processes of one kernel, and file systems may be others' too."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def _sweep(parent: str, prefix: str) -> None:
    """Removes folders of this name that nobody holds, of this user and host."""
    ours = re.compile(rf"{re.escape(prefix)}\.tmp-\d+-{_host()}-[0-9a-f]{{8}}")
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
    """A folder, `path`, for as long as this object is there: as a context, or held by who needs the folder. In a
    context it is removed when that is left, else soon after the object is gone, and before the process ends.

    parent: None: where temporary files are. prefix: of its name.
    """

    def __init__(self, parent: str | os.PathLike | None = None, prefix: str = "graphwire"):
        parent = os.path.abspath(tempfile.gettempdir() if parent is None else parent)
        self._process = os.getpid()
        _sweep(parent, prefix)
        for _ in range(_TRIES):
            self.path = Path(parent, f"{prefix}.tmp-{self._process}-{_host()}-{secrets.token_hex(4)}")
            self._held = owned("struct held_guard *", lib.guard_end)
            self._guarded()
            self.path.mkdir(0o700)
            if lib.guard_lock(self._held, os.fsencode(self.path)) == 0:
                break
        else:
            raise OSError(f"{parent}: a temporary folder cannot be made: each one was swept away at once")
        _made[:] = [one for one in _made if one() is not None] + [ref(self)]

    def _guarded(self) -> None:
        """Starts the guard, before there is anything to remove."""
        error = lib.guard_pipe(self._held)
        if error:
            raise OSError(error, os.strerror(error))
        with contextlib.suppress(FileNotFoundError):  # no shell
            subprocess.run(["/bin/sh", "-c", _GUARD, "graphwire", self.path], stdin=self._held.reads - 1, cwd="/",
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, check=False)
        lib.guard_reads_end(self._held)

    def close(self) -> None:
        """Removes it, in the process that made it."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)
        ffi.release(self._held)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _there() -> list[Scratch]:
    return [scratch for scratch in (one() for one in _made) if scratch is not None and scratch._held.writes]


def descriptors() -> tuple[int, ...]:
    """For pass_fds of a program that works in such folders: they stay until the program has ended."""
    return tuple(scratch._held.writes - 1 for scratch in _there())


def _close_all() -> None:
    for scratch in _there():
        scratch.close()


atexit.register(_close_all)
