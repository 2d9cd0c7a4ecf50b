"""Control groups of memory, of version 1 or 2, for processes of a test or a benchmark. Root makes them.

    with within(megabytes, name) as enter: subprocess.run([...], preexec_fn=enter)

For shell scripts:

    group=$(control_groups.py make NAME)     prints the new group's folder; status 1: this user can make none
    control_groups.py limit "$group" BYTES
    control_groups.py run "$group" COMMAND…  in the group, as this process
    control_groups.py kills "$group"         prints how many processes the kernel has ended in it
    control_groups.py remove "$group"        waits until its processes have ended
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_FIRST = os.path.isdir("/sys/fs/cgroup/memory")
_LIMIT, _EVENTS = ("memory.limit_in_bytes", "memory.oom_control") if _FIRST else ("memory.max", "memory.events")


class Group:
    """The group with this folder."""

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)

    def limit(self, bytes_: int) -> None:
        (self.folder / _LIMIT).write_text(str(bytes_))

    def enter(self) -> None:
        """Moves this process into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self) -> int:
        lines = (self.folder / _EVENTS).read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self) -> None:
        """Waits for processes that outlive the one that a test has started, such as a guard of a folder."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.001)


def make(name: str) -> Group | None:
    """A new group; None: this user can make none."""
    group = None
    try:
        group = Group(tempfile.mkdtemp(prefix=f"gw-{name}-", dir=f"/sys/fs/cgroup/{'memory' if _FIRST else ''}"))
        group.limit(1 << 40)
    except OSError:
        if group is not None:
            group.remove()
        return None
    return group


@contextlib.contextmanager
def within(megabytes: int, name: str) -> Iterator[Callable[[], None] | None]:
    """Yields what a child process calls to enter a new group with this limit; None: this user can make none."""
    group = make(name)
    if group is None:
        yield None
        return
    try:
        group.limit(megabytes << 20)
        yield group.enter
    finally:
        group.remove()


def drop_page_cache() -> None:
    """The next process reads its files from the disk."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("1")


def main(what: str, of: str, *words: str) -> int:
    if what == "make":
        group = make(of)
        print(*([] if group is None else [group.folder]))
        return group is None
    group = Group(of)
    if what == "run":
        group.enter()
        os.execvp(words[0], words)
    elif what == "limit":
        group.limit(int(words[0]))
    elif what == "kills":
        print(group.kills())
    elif what == "remove":
        group.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
