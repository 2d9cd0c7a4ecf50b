"""The program `graphwire`, which this package runs for files (import, partition, serve): where it is, what it says.

    $GRAPHWIRE ─▶ this package's own (the wheel has it) ─▶ PATH ─▶ the checkout's build
    a line on its stderr ─▶ its level and text for logging, with arguments instead of options
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path

from graphwire._base.escape import readable

_PACKAGE = Path(__file__).resolve().parents[1]
_TOP = _PACKAGE.parents[1]
_LOGGED = re.compile(r"[-\d]+T[:.\d]+Z (error|warn|info|debug) ")  # as core/errors/log_line.c writes it
_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}


class ProgramError(RuntimeError):
    """The program `graphwire` failed; the text names the cause. line: the program's own last line. status: its exit
    status."""

    def __init__(self, text: str, line: str = "", status: int = 1):
        super().__init__(text)
        self.line, self.status = line, status


def program() -> str:
    """The path of the program. Raises FileNotFoundError, which lists the places that were searched."""
    named = os.environ.get("GRAPHWIRE")
    for found in (named, _PACKAGE / "bin/graphwire", shutil.which("graphwire"), _TOP / "build/release/graphwire",
                  _TOP / "build/dev/graphwire"):
        if found and os.access(found, os.X_OK) and Path(found).is_file():
            return str(found)
    raise FileNotFoundError("the program graphwire is neither $GRAPHWIRE nor in this package nor in PATH nor built: "
                            "docs/INSTALL.md")


def logged(line: str) -> tuple[int, str]:
    """(the level of logging, the text) of a line on stderr. What is no line of the log is INFO."""
    found = _LOGGED.match(line)
    return (_LEVELS[found.group(1)], line[found.end():]) if found else (logging.INFO, line)


def without_options(line: str) -> str:
    """The readable line with arguments instead of options: num_parts for --num-parts. What is in quotes is the
    user's."""
    return readable(re.sub(r'(?<![\w"-])--([a-z][a-z-]*)', lambda option: option.group(1).replace("-", "_"), line))
