"""The place of a warning: the line of the user's program that called the package."""

from __future__ import annotations

import sys


def level_of_the_caller() -> int:
    """The stacklevel of the first frame outside of this package, so that a warning names the caller's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("graphwire."):
        frame, level = frame.f_back, level + 1
    return level
