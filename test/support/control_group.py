"""A control group that limits memory."""

import contextlib
import os

import pytest


@contextlib.contextmanager
def control_group(megabytes):
    """A function for preexec_fn of subprocess: the process is in a new control group with this limit. Skips the test if
    this user can make none."""
    first = os.path.isdir("/sys/fs/cgroup/memory")
    folder = f"/sys/fs/cgroup/{'memory/' if first else ''}gw-python-{os.getpid()}"

    def within():
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))

    try:
        os.mkdir(folder)
        with open(f"{folder}/{'memory.limit_in_bytes' if first else 'memory.max'}", "w") as file:
            file.write(str(megabytes << 20))
    except OSError:
        if os.path.isdir(folder):
            os.rmdir(folder)
        pytest.skip("this user can make no control group of memory")
    try:
        yield within
    finally:
        os.rmdir(folder)
