"""A folder for the sockets of shared connections: short, as a socket's path has to be, and gone with its owner.

    swept of what killed ones left -> made -> locked by its owner -> used -> removed

The kernel drops the lock of whoever is killed; the next owner sweeps what nobody holds, as writers of graphs do
(core/files/leftovers.h). Another user's folders are left alone.
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
_TRIES = 100  # to have it locked before a sweeper takes it for a dead one's


def _lock(path: str) -> int | None:
    """A descriptor of the folder that holds it; None where it is another's, or gone."""
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
    """The folder, for as long as it is used."""
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
