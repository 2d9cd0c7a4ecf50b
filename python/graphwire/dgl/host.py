"""Chooses the dgl module that makes graphs and blocks: an installed dgl, else Graphwire's subset.

dgl() -> the module, which makes blocks, frontiers and compacted graphs, so that its own layers accept them

Errors: MissingError for a name that the subset lacks.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from types import ModuleType
from typing import Any, Callable

# DGL's names of the columns with original ids and types (dgl.NID, …).
NID = EID = "_ID"
NTYPE = ETYPE = "_TYPE"

INSTALL = 'pip install dgl==1.1.3 "setuptools<70"'  # the last version that PyPI has wheels of for any PyTorch

_log = logging.getLogger("graphwire.dgl")
subset: Callable[[], ModuleType] | None = None  # imports the subset; graphwire/dgl/__init__.py sets it
_chosen: ModuleType | None = None


class MissingError(NotImplementedError, AttributeError):
    """Graphwire's subset of dgl lacks a name. The text names a remedy."""

    __module__ = "graphwire.dgl"


def missing(name: str) -> MissingError:
    return MissingError(f"{name} is not in Graphwire's subset of dgl: install dgl, {INSTALL}")


def not_here(name: str) -> AttributeError:
    """The error for a name that Graphwire's dgl.distributed lacks. An installed dgl would not help."""
    return AttributeError(f"{name} is not in Graphwire's dgl.distributed, and an installed dgl would not add it; "
                          "help(graphwire.dgl.distributed) lists what is, and docs/DGL.md in Graphwire's source says "
                          "what takes the place of other names")


def is_installed() -> bool:
    """Whether a dgl other than the subset is installed or imported."""
    imported = sys.modules.get("dgl")
    if imported is not None:
        return not getattr(imported, "is_graphwire_subset", False)
    return importlib.util.find_spec("dgl") is not None


def dgl() -> Any:
    """The dgl of this process. If an installed dgl cannot be imported, a warning of the logger reports it, and the
    subset is used."""
    global _chosen
    if _chosen is None:
        if is_installed():
            os.environ.setdefault("DGLBACKEND", "pytorch")  # dgl reads it when it is imported
            try:
                _chosen = importlib.import_module("dgl")
            except Exception as error:  # a wheel for another PyTorch or NumPy: OSError, ImportError, …
                for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
                    del sys.modules[name]
                _log.warning("graphwire.dgl: dgl is installed and cannot be imported (%s): Graphwire's subset takes "
                             "its place", str(error)[:200])
        if _chosen is None:
            assert subset is not None
            _chosen = subset()
    return _chosen


def error_type() -> type[Exception]:
    """dgl.DGLError, which scripts catch."""
    found: type[Exception] = dgl().DGLError
    return found
