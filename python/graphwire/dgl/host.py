"""Which dgl gives graphs and blocks: the installed one, or else the subset that comes with Graphwire.

dgl() -> the module          blocks, frontiers and compacted graphs are made by it, so that its layers take them
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any, Callable

# DGL's names of what a node, an edge and their types were called before (dgl.NID, …).
NID = EID = "_ID"
NTYPE = ETYPE = "_TYPE"

subset: Callable[[], ModuleType] | None = None  # imports the subset; graphwire/dgl/__init__.py sets it
_chosen: ModuleType | None = None


class MissingError(NotImplementedError, AttributeError):
    """What Graphwire's part of dgl lacks; the text says what to do."""


def missing(name: str) -> MissingError:
    return MissingError(f"{name} is not in Graphwire's subset of dgl: install dgl")


def not_here(name: str) -> AttributeError:
    """Of dgl.distributed, which is Graphwire's whether dgl is installed or not."""
    return AttributeError(f"{name} is not in Graphwire: docs/DGL.md lists what is")


def is_installed() -> bool:
    """Whether there is a dgl besides the subset."""
    there = sys.modules.get("dgl")
    if there is not None:
        return not getattr(there, "is_graphwire_subset", False)
    return importlib.util.find_spec("dgl") is not None


def dgl() -> Any:
    """The dgl of this process. One that is installed and cannot be imported counts as none, and is told."""
    global _chosen
    if _chosen is None:
        if is_installed():
            os.environ.setdefault("DGLBACKEND", "pytorch")  # scripts set it before they import dgl; this is before them
            try:
                _chosen = importlib.import_module("dgl")
            except Exception as error:  # its wheel is for another PyTorch or NumPy: OSError, ImportError, …
                for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
                    del sys.modules[name]
                print(f"graphwire.dgl: dgl is installed and cannot be imported ({str(error)[:200]}): Graphwire's "
                      "subset takes its place", file=sys.stderr)
        if _chosen is None:
            assert subset is not None
            _chosen = subset()
    return _chosen


def error_type() -> type[Exception]:
    """dgl.DGLError, which scripts catch."""
    found: type[Exception] = dgl().DGLError
    return found
