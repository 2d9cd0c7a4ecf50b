"""What tests read that is no part of a checkout, and lies beside it in shared/: DGL's scripts, real graphs. A test that
asks for what is not there is skipped; in CI it fails.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path

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
    if os.environ.get("CI") == "true":
        raise AssertionError(f"there is no shared/{path} above this checkout")
    raise unittest.SkipTest(f"no shared/{path}")
