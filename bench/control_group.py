"""A control group with a limit of memory, of version 1 or 2, for benchmarks of more than memory. Root makes it."""

from __future__ import annotations

import os
from pathlib import Path


class ControlGroup:
    """With ControlGroup(bytes) as group: a process started with preexec_fn=group.enter is in it. The processes have
    ended when the block does."""

    def __init__(self, bytes_: int) -> None:
        first = os.path.isdir("/sys/fs/cgroup/memory")
        self.folder = Path(f"/sys/fs/cgroup/{'memory/' if first else ''}gw-bench-{os.getpid()}")
        self.limit = (self.folder / ("memory.limit_in_bytes" if first else "memory.max"), str(bytes_))

    def __enter__(self) -> ControlGroup:
        self.folder.mkdir()
        self.limit[0].write_text(self.limit[1])
        return self

    def enter(self) -> None:
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def __exit__(self, *_: object) -> None:
        self.folder.rmdir()


def drop_page_cache() -> None:
    """The next process reads its files from the disk."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("1")
