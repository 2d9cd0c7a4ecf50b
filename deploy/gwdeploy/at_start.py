"""The sitecustomize of a trainer's Python: command.py writes it into a folder of the host and puts the folder into
PYTHONPATH, if it sees no Python script in the trainers' command (a shell script, a torchrun of the command's own).
Python imports a module of that name when it starts.

    any Python of the command -> import dgl -> graphwire.when_dgl installs Graphwire

The module imports nothing of Graphwire before that, because it runs in each Python of the job. A sitecustomize of the
host runs too.

Errors: a Python without graphwire prints one line when it imports dgl, and goes on with DGL.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType


class _FirstImport:
    """An import hook that watches for dgl."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if fullname != "dgl" or "graphwire.dgl" in sys.modules:  # graphwire.dgl imports the installed dgl itself
            return None
        sys.meta_path[:] = [one for one in sys.meta_path if one is not self]
        try:
            from graphwire import when_dgl
        except ImportError:
            print(f"graphwire: {sys.executable} imports dgl and has no graphwire: DGL waits for servers of its own; "
                  "install graphwire there", file=sys.stderr, flush=True)
            return PathFinder.find_spec(fullname, path, target)
        atexit.register(when_dgl.finish)
        return when_dgl.watch().find_spec(fullname, path, target)


def _run_the_hosts() -> None:
    """Runs the sitecustomize that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [one for one in sys.path if os.path.abspath(one) != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_run_the_hosts()
sys.meta_path.insert(0, _FirstImport())
