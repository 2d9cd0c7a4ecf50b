"""graphwire import --tables FILE: the description of tables in a JSON file becomes a one-part graph.

    words ─▶ from_database ─▶ files in a temporary folder ─▶ `graphwire import`, with the other words ─▶ the record

The result has the bytes that partition_graph divides. The program has no reader of Parquet, so this package takes the
command before the program runs.

Errors: one line on stderr, and exit status 1, or 2 for wrong words; the program's status if it fails.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.native import GraphwireError
from graphwire._base.program import ProgramError, program
from graphwire._base.scratch import Scratch, descriptors
from graphwire._files.database import from_database
from graphwire._files.database_steps import FOR_PIECES, Steps
from graphwire._files.descriptions import MISSING
from graphwire._files.earlier_graph import Earlier, Unfit, found_in
from graphwire._files.relational_columns import UNITS
from graphwire._files.work_folder import WorkFolder, remove_left

_log = logging.getLogger("graphwire")
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
    parser.add_argument("--threads")
    for flag in ("--replace", "--rebuild", "--resume", "--quiet"):
        parser.add_argument(flag, action="store_true")
    given, others = parser.parse_known_args(words)
    wrong = next((one for one in others if one.partition("=")[0] in _OTHERS), None)
    if wrong is not None:
        raise _Usage(f"--tables describes the whole graph: leave out {wrong.partition('=')[0]}")
    wrong = next((one for one in others if one not in FOR_PIECES), None)
    if wrong is not None and (given.rebuild or given.resume):
        raise _Usage(f"--{'rebuild' if given.rebuild else 'resume'} makes types one at a time: leave out {wrong}")
    return given, others


class _Import:
    """One run of the command."""

    def __init__(self, given: argparse.Namespace, others: Sequence[str]):
        database = from_database(given.tables, missing=given.missing, unit=given.unit)
        self._out, self._name = Path(given.out), given.name or database.name or "graph"
        self._given, self._others, self._database = given, others, database
        self._progress = False if given.quiet else None
        self._last = [*(["--threads", given.threads] if given.threads else []), *(["--quiet"] if given.quiet else [])]

    def run(self) -> int:
        out, given = self._out, self._given
        if not (given.replace or given.rebuild or given.resume) and os.path.lexists(out):
            raise self._exists()
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        if not given.resume:
            remove_left(out)
            if not (given.rebuild and os.path.lexists(out)):
                return self._anew()
            with Scratch(out.absolute().parent, f".{out.name}") as work:
                return self._in_steps(work, ())
        with WorkFolder(out) as folder:
            status = self._in_steps(folder.path, folder.held)
            folder.remove()
            return status

    def _exists(self) -> ValueError:
        return ValueError(f"{self._out} exists already: remove it, choose another --out, or pass --replace")

    def _anew(self) -> int:
        """All types at once."""
        steps = Steps(self._database, self._others)
        with Scratch(self._out.absolute().parent, f".{self._out.name}") as folder:
            made, _ = self._database.write(folder, self._progress, steps.settled)
            steps.note()
            replace = ["--replace"] if self._given.replace or self._given.rebuild else []
            with descriptors() as kept:
                return subprocess.run([program(), "import", *made, *steps.records(folder), "--edge-ids", "--name",
                                       self._name, "--out", str(self._out), *self._others, *replace, *self._last],
                                      pass_fds=kept).returncode

    def _in_steps(self, work: Path, held: tuple[int, ...]) -> int:
        out, there = self._out, os.path.lexists(self._out)
        steps = Steps(self._database, self._others)
        sources = list(found_in(work))
        if there:
            try:
                sources.append(Earlier(out))
                if self._given.resume and steps.is_in(sources[-1], self._name):
                    self._say(f"{out} is complete already")
                    return 0
            except Unfit as error:
                if self._given.rebuild:
                    _log.warning("%s: nothing is taken over from it: %s", out, error)
            if not (self._given.replace or self._given.rebuild):
                raise self._exists()
            if not self._given.rebuild:
                sources = [one for one in sources if one.folder != out]
        said = steps.make(out, self._name, [*(["--replace"] if there else []), *self._last], work, sources,
                          self._progress, held)
        self._say(said)
        return 0

    def _say(self, line: str) -> None:
        if not self._given.quiet:
            print(line)


def _full(said: str) -> bool:
    return any(text in said for text in (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT),
                                         os.strerror(errno.EFBIG)))


def main(words: Sequence[str]) -> int:
    """Runs the command. words: those behind `import`. Returns the exit status."""
    logging.basicConfig(format="graphwire import: %(message)s", stream=sys.stderr)
    status, given = 1, argparse.Namespace(resume=False)
    try:
        given, others = _parsed(words)
        return _Import(given, others).run()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    except (ValueError, TypeError, ImportError, GraphwireError, ProgramError) as error:
        status, said = 2 if isinstance(error, _Usage) else 1, str(error)
    if given.resume and _full(said):
        said += "; finished steps are kept, and the same command goes on from them"
    print(f"graphwire import: {said}", file=sys.stderr)
    return status
