"""python -m graphwire.when_dgl SCRIPT [ARGUMENT…], or -m MODULE [ARGUMENT…]: runs a program, and runs it over Graphwire
if it imports dgl, itself or through a package.

    the program -> import dgl -> DGL, or the subset -> graphwire.dgl takes the place of dgl.distributed

A program that does not import dgl runs as without this module, and torch is not imported.

Errors: those of the program; status 2 and a line on stderr without a program.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class _Installing(Loader):
    """Executes the installed dgl, if one is there and can be imported, and then installs Graphwire under its names."""

    def __init__(self, original: ModuleSpec | None):
        self._original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if self._original is None or self._original.loader is None:
            return importlib.import_module("graphwire.dgl.subset")
        return self._original.loader.create_module(self._original)

    def exec_module(self, module: ModuleType) -> None:
        if self._original is not None and self._original.loader is not None:
            os.environ.setdefault("DGLBACKEND", "pytorch")
            module.__spec__, module.__loader__ = self._original, self._original.loader
            with contextlib.suppress(Exception):  # install() imports it again, and reports the error
                self._original.loader.exec_module(module)
                return install()
            for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
                del sys.modules[name]
        install()


def install() -> None:
    """Installs Graphwire under dgl's names."""
    importlib.import_module("graphwire.dgl.__main__").prepare()


class _Watch(MetaPathFinder):
    """An import hook that finds dgl, once."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if fullname != "dgl":
            return None
        sys.meta_path.remove(self)
        original = PathFinder.find_spec(fullname, path)
        found = ModuleSpec(fullname, _Installing(original), origin=None if original is None else original.origin,
                           is_package=True)
        if original is not None:
            found.submodule_search_locations = original.submodule_search_locations
        return found


def watch() -> None:
    """Makes the first import of dgl in this process install Graphwire."""
    if "dgl" not in sys.modules:
        sys.meta_path.insert(0, _Watch())


def run(words: Sequence[str], who: str) -> None:
    """Runs a program as __main__: words are SCRIPT or -m MODULE, and its arguments. who: for the line of an error, with
    status 2."""
    usage = f"usage: python -m {who} SCRIPT [ARGUMENT…], or -m MODULE [ARGUMENT…]"
    if not words or words[0] in ("-h", "--help"):
        print(usage, file=sys.stdout if words else sys.stderr)
        sys.exit(0 if words else 2)
    if words[0] == "-m" and len(words) > 1:
        sys.argv, sys.path[0] = list(words[1:]), os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    script = Path(words[0])
    if not script.is_file():
        print(f"{who}: {script}: no such script; {usage}", file=sys.stderr)
        sys.exit(2)
    sys.argv, sys.path[0] = list(words), str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


def main() -> None:
    watch()
    run(sys.argv[1:], "graphwire.when_dgl")
    if "graphwire.dgl.__main__" in sys.modules:
        sys.modules["graphwire.dgl.__main__"].finish()


if __name__ == "__main__":
    main()
