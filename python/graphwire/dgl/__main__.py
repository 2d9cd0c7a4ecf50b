"""python -m graphwire.dgl SCRIPT [ARGUMENT…], or -m MODULE [ARGUMENT…]: runs an unchanged DGL script over Graphwire."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any

import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401, since a later import, in a group, would keep the group

from graphwire._base.run_program import run_program
from graphwire.dgl.install import install


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


def prepare() -> None:
    """Installs Graphwire under dgl's names, and watches argparse."""
    install()
    _watch_arguments()


def finish() -> None:
    """Ends torch.distributed, whose threads could abort the exit."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def main() -> None:
    words = sys.argv[1:]
    if words and words[0] not in ("-h", "--help"):
        prepare()
    run_program(words, "graphwire.dgl")
    finish()


if __name__ == "__main__":
    main()
