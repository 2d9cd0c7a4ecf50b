"""Runs a program as __main__, for python -m graphwire.dgl and python -m graphwire.when_dgl.

    SCRIPT [ARGUMENT…] or -m MODULE [ARGUMENT…] -> sys.argv and sys.path as Python sets them -> the program

Errors: those of the program; status 2 and a line on stderr without a program.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.escape import plain


def run_program(words: Sequence[str], who: str) -> None:
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
        print(f"{who}: {plain(str(script))}: no such script; {usage}", file=sys.stderr)
        sys.exit(2)
    sys.argv, sys.path[0] = list(words), str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
