"""graphwire import --tables FILE: the description of tables in a JSON file becomes a one-part graph.

    words ─▶ from_database ─▶ files in a temporary folder ─▶ `graphwire import`, with the other words ─▶ the record

The result has the bytes that partition_graph divides. The program has no reader of Parquet, so this package takes the
command before the program runs.

Errors: one line on stderr, and exit status 1, or 2 for wrong words; the program's status if it fails.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.native import GraphwireError
from graphwire._base.program import program
from graphwire._base.scratch import Scratch, descriptors
from graphwire._files.database import from_database
from graphwire._files.descriptions import MISSING, UNITS

_OTHERS = ("--from", "--edges", "--triples")  # other inputs


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise _Usage(message)


class _Usage(ValueError):
    """Words that are no import of tables."""


def _parsed(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--name")
    parser.add_argument("--missing", choices=MISSING)
    parser.add_argument("--unit", choices=UNITS)
    parser.add_argument("--replace", action="store_true")
    given, others = parser.parse_known_args(words)
    wrong = next((one for one in others if one.partition("=")[0] in _OTHERS), None)
    if wrong is not None:
        raise _Usage(f"--tables describes the whole graph: leave out {wrong.partition('=')[0]}")
    if not given.replace and os.path.lexists(given.out):
        raise ValueError(f"{given.out} exists already: remove it, choose another --out, or pass --replace")
    return given, others + (["--replace"] if given.replace else [])


def _import(words: Sequence[str]) -> int:
    given, others = _parsed(words)
    database = from_database(given.tables, missing=given.missing, unit=given.unit)
    out, name = Path(given.out), given.name or database.name or "graph"
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with Scratch(out.absolute().parent, f".{out.name}") as folder:
        made, _ = database.write(folder, False if "--quiet" in others else None)
        with descriptors() as kept:
            status = subprocess.run([program(), "import", *made, "--edge-ids", "--name", name, "--out", str(out),
                                     *others], pass_fds=kept).returncode
    if status == 0:
        database.write_record(out / f"{name}.json")
    return status


def main(words: Sequence[str]) -> int:
    """Runs the command. words: those behind `import`. Returns the exit status."""
    logging.basicConfig(format="graphwire import: %(message)s", stream=sys.stderr)
    status = 1
    try:
        return _import(words)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    except (ValueError, TypeError, ImportError, GraphwireError) as error:
        status, said = 2 if isinstance(error, _Usage) else 1, str(error)
    print(f"graphwire import: {said}", file=sys.stderr)
    return status
