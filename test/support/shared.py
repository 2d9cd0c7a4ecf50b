"""What tests need that is no part of a checkout: scripts and real graphs, which lie beside it in shared/, packages and
root. A test that asks for what is not there is skipped; in CI it fails.
"""

from __future__ import annotations

import importlib
import os
import unittest
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).resolve().parents[2]


def find(path: str) -> Path | None:
    """Returns a path in the nearest shared/ above the checkout that has it, or None. If $GRAPHWIRE_TEST_DATA is set,
    real graphs are searched only there."""
    folder, _, rest = path.partition("/")
    if folder == "data" and "GRAPHWIRE_TEST_DATA" in os.environ:
        found = [Path(os.environ["GRAPHWIRE_TEST_DATA"]) / rest]
    else:
        found = [above / "shared" / path for above in TOP.parents]
    return next((one for one in found if one.exists()), None)


def given(path: str) -> Path:
    """Returns the path. If it does not exist, raises lacking()'s exception."""
    found = find(path)
    if found is not None:
        return found
    raise lacking(f"there is no shared/{path} above this checkout")


def imported(name: str) -> ModuleType:
    """Imports a module. If it cannot be imported, raises lacking()'s exception."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise lacking(f"{name} cannot be imported: {error}") from error


def need_root(what: str) -> None:
    if os.geteuid() != 0:
        raise lacking(f"{what} need root")


def lacking(what: str) -> Exception:
    """Returns the exception for a test that lacks a file or a module: a skip, in CI a failure."""
    return AssertionError(what) if os.environ.get("CI") == "true" else unittest.SkipTest(what)
