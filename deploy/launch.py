#!/usr/bin/env python3
"""Starts a graph's servers and a program's trainers on all hosts of an ip_config.txt. Accepts the options of
launch.py of DGL 1.1.3.

launch.py --help lists the options; docs/DEPLOY.md is the guide.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gwdeploy.dry_run import print_plan
from gwdeploy.job import Job
from gwdeploy.main import run
from gwdeploy.options import parse_launch


async def main(words: Sequence[str]) -> int:
    """Runs the command and returns 0; failures are raised."""
    options = parse_launch(words)
    if options.dry_run:
        print_plan(options)
        return 0
    await Job(options, lambda line: print(line, flush=True)).run()
    return 0


if __name__ == "__main__":
    sys.exit(run("launch", main, sys.argv[1:]))
