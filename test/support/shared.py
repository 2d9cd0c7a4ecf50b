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
    """A path in the nearest shared/ above the checkout that has it; real graphs are looked for in $GRAPHWIRE_TEST_DATA
    alone, where that is set."""
    folder, _, rest = path.partition("/")
    if folder == "data" and "GRAPHWIRE_TEST_DATA" in os.environ:
        found = [Path(os.environ["GRAPHWIRE_TEST_DATA"]) / rest]
    else:
        found = [above / "shared" / path for above in TOP.parents]
    return next((one for one in found if one.exists()), None)


def given(path: str) -> Path:
    """The same, for a test that cannot do without."""
    found = find(path)
    if found is not None:
        return found
    raise lacking(f"there is no shared/{path} above this checkout")


def imported(name: str) -> ModuleType:
    """A module that a test cannot do without."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise lacking(f"{name} cannot be imported: {error}") from error


def need_root(what: str) -> None:
    if os.geteuid() != 0:
        raise lacking(f"{what} need root")


def lacking(what: str) -> Exception:
    """What a test ends with that lacks something."""
    return AssertionError(what) if os.environ.get("CI") == "true" else unittest.SkipTest(what)
