"""python -m graphwire.dgl SCRIPT [ARGUMENT…]: runs an unchanged DGL script over Graphwire."""

from __future__ import annotations

import argparse
import functools
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401, since a later import, in a group, would keep the group

from graphwire.dgl.install import install

USAGE = "usage: python -m graphwire.dgl SCRIPT [ARGUMENT…]"


def _watch_arguments() -> None:
    """Watches argparse, for two purposes. Scripts assert that a launcher has set DGL_NUM_SAMPLER and DGL_NUM_SERVER.
    Without a launcher, the script's own options set these variables. A script's --standalone is passed to
    initialize()."""
    original = argparse.ArgumentParser.parse_args

    @functools.wraps(original)
    def parse_args(self: argparse.ArgumentParser, *arguments: Any, **named: Any) -> Any:
        found: Any = original(self, *arguments, **named)
        for variable, name in (("DGL_NUM_SAMPLER", "num_workers"), ("DGL_NUM_SERVER", "num_servers")):
            value = getattr(found, name, None)
            if variable not in os.environ and isinstance(value, int):
                os.environ[variable] = str(value)
        if getattr(found, "standalone", False) is True:
            os.environ["GRAPHWIRE_DGL_STANDALONE"] = "1"
        return found

    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign]


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if len(sys.argv) > 1 else sys.stderr)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    script = Path(sys.argv[1])
    if not script.is_file():
        print(f"graphwire.dgl: {script}: no such script; {USAGE}", file=sys.stderr)
        sys.exit(2)
    install()
    _watch_arguments()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    if dist.is_available() and dist.is_initialized():  # the group's threads could abort the exit
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
