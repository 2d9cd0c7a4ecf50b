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
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from graphwire._base.run_program import run_program


class _Installing(Loader):
    """Executes the installed dgl, if one is there and can be imported, and then installs Graphwire under its names."""

    def __init__(self, original: ModuleSpec | None, watch: _Watch):
        self._original, self._watch = original, watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        self._watch.end()
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
    """An import hook that finds dgl until dgl is imported. Other packages look for dgl, and do not import it."""

    watches_dgl = True

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if fullname != "dgl":
            return None
        # The launcher's at_start.py has such a hook too. Old finders have no find_spec.
        others = [one for one in sys.meta_path if hasattr(one, "find_spec") and not getattr(one, "watches_dgl", False)]
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        original = next((spec for spec in specs if spec is not None), None)
        found = ModuleSpec(fullname, _Installing(original, self), origin=None if original is None else original.origin,
                           is_package=True)
        if original is not None:
            found.submodule_search_locations = original.submodule_search_locations
        return found

    def end(self) -> None:
        sys.meta_path[:] = [one for one in sys.meta_path if one is not self]


def watch() -> _Watch:
    """Makes the first import of dgl in this process install Graphwire."""
    hook = _Watch()
    if "dgl" not in sys.modules:
        sys.meta_path.insert(0, hook)
    return hook


def finish() -> None:
    """Ends what install() began, if it was called."""
    if "graphwire.dgl.__main__" in sys.modules:
        sys.modules["graphwire.dgl.__main__"].finish()


def main() -> None:
    watch()
    run_program(sys.argv[1:], "graphwire.when_dgl")
    finish()


if __name__ == "__main__":
    main()
