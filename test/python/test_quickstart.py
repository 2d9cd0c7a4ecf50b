"""The Python with which ./quickstart trains; test/check/python.sh checks that it trains."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import TOP

ABLE = re.search(r"^able\(\) {.*?^}$", (TOP / "quickstart").read_text(), re.MULTILINE | re.DOTALL).group()


@pytest.mark.parametrize("lacks, able", [
    ("", True), ("import sys; sys.modules['torch'] = None", False), ("import sys; sys.modules['cffi'] = None", False),
    ("import sysconfig; sysconfig.get_path = lambda name: '/nowhere'", False)])
def test_a_python_that_can_train(tmp_path, lacks, able):
    """The module is built for that Python; without its headers the build ended with an error of CMake."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{lacks}\n$2"\n')
    python.chmod(0o755)
    done = subprocess.run(["bash", "-c", f'{ABLE}\nable "$1"', "bash", python])
    assert (done.returncode == 0) == able
