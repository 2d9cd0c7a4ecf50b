"""Finds the program `graphwire`, which this package runs for files: import, partition, serve.

    $GRAPHWIRE ─▶ this package's own (the wheel has it) ─▶ PATH ─▶ the checkout's build
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_TOP = _PACKAGE.parents[1]


class ProgramError(RuntimeError):
    """The program `graphwire` failed; the text names the cause. line: the program's own last line."""

    def __init__(self, text: str, line: str = ""):
        super().__init__(text)
        self.line = line


def program() -> str:
    """The path of the program. Raises FileNotFoundError, which lists the places that were searched."""
    named = os.environ.get("GRAPHWIRE")
    for found in (named, _PACKAGE / "bin/graphwire", shutil.which("graphwire"), _TOP / "build/release/graphwire",
                  _TOP / "build/dev/graphwire"):
        if found and os.access(found, os.X_OK) and Path(found).is_file():
            return str(found)
    raise FileNotFoundError("the program graphwire is neither $GRAPHWIRE nor in this package nor in PATH nor built: "
                            "docs/INSTALL.md")
