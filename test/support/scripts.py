"""Scripts in processes that are forked from one which has imported torch already: importing it takes several times what
a test's own work does. No interpreter is taken down when such a script ends: a test of that starts Python itself.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch._dynamo", "matplotlib.pyplot", "graphwire.nn", "graphwire.optim"])


def _run(script: str, arguments: Sequence[str], environment: Mapping[str, str], folder: str, out, errors: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(out.fileno(), 1)
    os.dup2(os.open(errors, os.O_WRONLY), 2)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")


class Script:
    """A script that runs; with what the tests use of a subprocess.Popen whose output goes into pipes."""

    def __init__(self, script: Path, arguments: Sequence[str], environment: Mapping[str, str]):
        read, write = _context.Pipe(duplex=False)
        self._errors = tempfile.NamedTemporaryFile("r")
        self._process = _context.Process(target=_run, args=(
            str(script), list(arguments), dict(environment), os.getcwd(), write, self._errors.name))
        self._process.start()
        write.close()
        self.stdout = os.fdopen(os.dup(read.fileno()))
        read.close()

    def kill(self) -> None:
        self._process.kill()

    def communicate(self) -> tuple[str, str]:
        """Waits for the end; returns its output and its errors."""
        with self.stdout:
            out = self.stdout.read()
        self._process.join()
        with self._errors:
            return out, self._errors.read()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode
