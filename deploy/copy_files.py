#!/usr/bin/env python3
"""Copies each part of a graph to its host, with the list of hosts and the scripts. Has all options of DGL's
copy_files.py.

copy_files.py --help lists the options.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gwdeploy.copying import copy_all, parse
from gwdeploy.main import run


async def main(words: Sequence[str]) -> int:
    """Runs the command. Returns 0, or 1 if a copy to a host failed."""
    failures = await copy_all(parse(words), lambda line: print(line, flush=True))
    for failure in failures:
        print(f"copy_files: {failure}", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(run("copy_files", main, sys.argv[1:]))
