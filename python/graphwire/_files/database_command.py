"""graphwire import --tables FILE: the description of tables in a JSON file becomes a one-part graph.

    words ─▶ from_database ─▶ Build, with the other words for `graphwire import`

The result has the bytes that partition_graph divides. The program has no reader of Parquet, so this package takes the
command before the program runs.

Errors: one line on stderr, and exit status 1, or 2 for wrong words; the program's status if it fails.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.escape import plain
from graphwire._base.native import GraphwireError
from graphwire._base.program import ProgramError
from graphwire._files.database import from_database
from graphwire._files.database_build import FOR_TYPES, Build, is_full
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
    for option in ("--threads", "--memory"):
        parser.add_argument(option)
    for flag in ("--replace", "--rebuild", "--resume", "--quiet"):
        parser.add_argument(flag, action="store_true")
    given, others = parser.parse_known_args(words)
    wrong = next((one for one in others if one.partition("=")[0] in _OTHERS), None)
    if wrong is not None:
        raise _Usage(f"--tables describes the whole graph: leave out {wrong.partition('=')[0]}")
    wrong = next((one for one in others if one not in FOR_TYPES), None)
    if wrong is not None and (given.rebuild or given.resume):
        raise _Usage(f"--{'rebuild' if given.rebuild else 'resume'} makes types one at a time: leave out {wrong}")
    return given, others


class _Shown(logging.Filter):
    """Warnings, and what the memory does not hold."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.getMessage().startswith("memory: ")


def _import(given: argparse.Namespace, options: Sequence[str]) -> None:
    database = from_database(given.tables, missing=given.missing, unit=given.unit)
    others = [*(["--threads", given.threads] if given.threads is not None else []),
              *(["--memory", given.memory] if given.memory is not None else []), *(["--quiet"] if given.quiet else [])]
    name = given.name if given.name is not None else database.name or "graph"
    build = Build(database, Path(given.out), name, options, replace=given.replace,
                  rebuild=given.rebuild, resume=given.resume, progress=False if given.quiet else None, others=others,
                  prints=True)
    build.run()
    if build.said and not given.quiet:
        print(build.said)


def main(words: Sequence[str]) -> int:
    """Runs the command. words: those behind `import`. Returns the exit status."""
    handler, log = logging.StreamHandler(sys.stderr), logging.getLogger("graphwire")
    handler.addFilter(_Shown())
    logging.basicConfig(format="graphwire import: %(message)s", handlers=[handler])
    status, level, given = 1, log.level, argparse.Namespace(resume=False)
    try:
        given, options = _parsed(words)
        log.setLevel(logging.WARNING if given.quiet else logging.INFO)
        _import(given, options)
        return 0
    except ProgramError as error:
        status, said = error.status, error.line.partition(": ")[2] or str(error)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    except (ValueError, TypeError, ImportError, GraphwireError) as error:
        status, said = 2 if isinstance(error, _Usage) else 1, str(error)
    finally:
        log.setLevel(level)
    if given.resume and is_full(said):
        said += "; finished steps are kept, and the same command goes on from them"
    print(f"graphwire import: {plain(said)}", file=sys.stderr)
    return status
