"""Control groups of memory for processes of a test.

    with within(megabytes, name) as enter: subprocess.run([...], preexec_fn=enter)
"""

from __future__ import annotations

import contextlib
import os


@contextlib.contextmanager
def within(megabytes, name):
    """Yields what a child process calls to enter a new group with this limit; None: this user can make none."""
    first = os.path.isdir("/sys/fs/cgroup/memory")
    folder = f"/sys/fs/cgroup/{'memory/' if first else ''}gw-{name}-{os.getpid()}"

    def enter():
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))

    try:
        os.mkdir(folder)
        with open(f"{folder}/{'memory.limit_in_bytes' if first else 'memory.max'}", "w") as file:
            file.write(str(megabytes << 20))
    except OSError:
        if os.path.isdir(folder):
            os.rmdir(folder)
        yield None
        return
    try:
        yield enter
    finally:
        while True:
            with contextlib.suppress(OSError):  # processes that outlive the child, such as a guard of a folder
                os.rmdir(folder)
                break
