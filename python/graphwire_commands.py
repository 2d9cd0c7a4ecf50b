"""The console scripts of the wheel. Each takes its arguments from sys.argv and returns its exit status.

    graphwire                          ─▶ the program, in this process's place
    graphwire import --tables FILE     ─▶ graphwire/_files/database_command.py, which runs the program
    graphwire-launch, -copy, -cluster  ─▶ deploy/launch.py, copy_files.py, cluster.py, which need Python only
    gwke_NAME, dglke_NAME              ─▶ graphwire.kge; without its packages one line says what to install

This module is no part of the package, and imports it for gwke_NAME and for tables only. The other commands therefore
run without cffi and NumPy, and do not wait for their import.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _find(*places: str) -> Path:
    """Returns the first file that exists: in the installed package, else in the checkout."""
    for place in places:
        if (_HERE / place).is_file():
            return _HERE / place
    sys.exit(f"{Path(sys.argv[0]).name}: {_HERE / places[0]} does not exist; install the package again, or build the "
             "program in a checkout: docs/INSTALL.md")


def _has_tables(words: list[str]) -> bool:
    """Whether the words are an import of tables, and no call for help."""
    return words[:1] == ["import"] and any(word.partition("=")[0] == "--tables" for word in words) and not any(
        word in ("--help", "-?", "--usage") for word in words)


def graphwire() -> int:
    """Becomes the program; runs an import of tables, which the program does not read."""
    if _has_tables(sys.argv[1:]):
        try:
            from graphwire._files.database_command import main
        except ImportError as error:
            print(f"graphwire import: {error}", file=sys.stderr)
            return 1
        return main(sys.argv[2:])
    path = _find("graphwire/bin/graphwire", "../build/release/graphwire", "../build/dev/graphwire")
    try:
        os.execv(path, ["graphwire", *sys.argv[1:]])
    except OSError as error:
        print(f"graphwire: {path} cannot be run: {error.strerror}", file=sys.stderr)
    return 126


def _deploy(name: str) -> int:
    path = _find(f"graphwire/deploy/{name}", f"../deploy/{name}")
    sys.path.insert(0, str(path.parent))
    runpy.run_path(str(path), run_name="__main__")  # ends in sys.exit
    return 0


def launch() -> int:
    """graphwire-launch: deploy/launch.py."""
    return _deploy("launch.py")


def copy() -> int:
    """graphwire-copy: deploy/copy_files.py."""
    return _deploy("copy_files.py")


def cluster() -> int:
    """graphwire-cluster: deploy/cluster.py."""
    return _deploy("cluster.py")


def kge() -> int:
    """gwke_NAME and dglke_NAME: the script's name gives the command."""
    try:
        from graphwire.kge.commands import script
    except ImportError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    return script()
