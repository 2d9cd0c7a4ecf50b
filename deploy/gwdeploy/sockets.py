"""A folder for the sockets of shared connections. Its path is short, because a socket's path is limited.

    remove the folders of killed owners -> make -> lock -> use -> remove

The kernel drops the lock of a killed owner. The next owner removes folders without a lock, as writers of graphs do
(core/files/leftovers.h). Other users' folders stay.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

from .errors import DeployError

_PLACE, _PREFIX = "/tmp", "gw-sockets-"
_TRIES = 100  # attempts to make and lock a folder; another process may sweep it before it is locked


def _lock(path: str) -> int | None:
    """Locks a folder and returns a descriptor that holds the lock. Returns None for another owner's folder, or one that
    does not exist."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_uid == os.geteuid() and os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _sweep() -> None:
    for name in os.listdir(_PLACE):
        if name.startswith(_PREFIX):
            path = os.path.join(_PLACE, name)
            fd = _lock(path)
            if fd is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(fd)


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Makes the folder, yields its path, and removes it."""
    _sweep()
    for _ in range(_TRIES):
        try:
            path = tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE)
        except OSError as error:
            raise DeployError(f"{_PLACE}: a folder for sockets cannot be made: {error.strerror}") from None
        fd = _lock(path)
        if fd is not None:
            break
    else:
        raise DeployError(f"{_PLACE}: a folder for sockets cannot be locked")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(fd)
