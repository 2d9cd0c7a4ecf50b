"""Builds the one-part graph of a database in a folder: anew, from an earlier graph, or from an interrupted build.

    Build(database, out, name) ─▶ run()
      nothing to take over: all types by one `graphwire import`
      rebuild: `out` is an earlier graph ─▶ Steps, with pieces in a temporary folder
      resume: .NAME.build/ has pieces ─▶ Steps, with pieces in this folder, which goes when the graph is complete

All ways give the same bytes.

Errors: FileExistsError, ValueError if another build of `out` is running; those of partition_graph.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from graphwire._base import progress as _progress
from graphwire._base.scratch import Scratch
from graphwire._files.database import Database
from graphwire._files.database_steps import Steps
from graphwire._files.earlier_graph import Earlier, Unfit, found_in
from graphwire._files.running import run
from graphwire._files.work_folder import WorkFolder, remove_left

_log = logging.getLogger("graphwire")
FOR_TYPES = ("--transpose", "--edge-ids")  # options of `graphwire import` that are good for one type at a time
_FULL = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))


def is_full(said: str) -> bool:
    """Whether an error's text says that a disk is full."""
    return any(text in said for text in _FULL)


class Build:
    """One build of a graph. out: its folder. name: the graph's. options: of `graphwire import`, which change bytes.
    replace: a graph in `out` is replaced. rebuild: and what has not changed is taken over from it. resume: pieces stay
    if the build is interrupted, and those of an interrupted build are taken over. others: options that change no
    bytes. prints: the program's standard output is this process's. said: after run(), how much was taken over, or
    None."""

    def __init__(self, database: Database, out: Path, name: str, options: Sequence[str] = (), *, replace: bool = False,
                 rebuild: bool = False, resume: bool = False, progress: Optional[bool] = None,
                 others: Sequence[str] = (), prints: bool = False):
        self._database, self._out, self._name, self._options = database, out, name, options
        self._replace, self._rebuild, self._resume = replace or rebuild, rebuild, resume
        self._progress, self._others, self._prints = _progress.wanted(progress), others, prints
        self.said: Optional[str] = None

    def run(self) -> None:
        out = self._out
        if not (self._replace or self._resume) and os.path.lexists(out):
            raise self._exists()
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        if self._resume:
            with WorkFolder(out) as folder:
                self._in_steps(folder.path, folder.held)
                folder.remove()
            return
        remove_left(out)
        if not (self._rebuild and os.path.lexists(out)):
            self._anew()
            return
        with Scratch(out.absolute().parent, f".{out.name}") as work:
            self._in_steps(work, ())

    def _exists(self) -> FileExistsError:
        return FileExistsError(f"{self._out} exists already: remove it, choose another --out, or pass --replace")

    def _last(self) -> list[str]:
        """The options for the command that makes `out`."""
        replace = ["--replace"] if self._replace and os.path.lexists(self._out) else []
        return [*self._others, *replace, "--name", self._name, "--out", str(self._out)]

    def _anew(self) -> None:
        steps = Steps(self._database, self._options, self._others)
        with Scratch(self._out.absolute().parent, f".{self._out.name}") as folder:
            words, names = self._database.write(folder, self._progress, steps.settled, steps.limit)
            steps.note()
            words = ["import", *words, *steps.records(folder), *self._options, "--edge-ids", *self._last()]
            run(words, names, self._progress, prints=self._prints)

    def _in_steps(self, work: Path, held: tuple[int, ...]) -> None:
        steps, sources = Steps(self._database, self._options, self._others), list(found_in(work))
        if os.path.lexists(self._out):
            earlier = self._earlier(steps)
            if self._resume and earlier is not None and steps.is_in(earlier, self._name):
                self.said = f"{self._out} is complete already"
                return
            if not self._replace:
                raise self._exists()
            if self._rebuild and earlier is not None:
                sources.append(earlier)
        self.said = steps.make(self._out, ["combine", "--renew", *self._last()], work, sources, self._progress, held,
                               self._prints)

    def _earlier(self, steps: Steps) -> Optional[Earlier]:
        """The graph in `out`, unless nothing can be taken over from it. One line of the log says why."""
        try:
            found = Earlier(self._out)
            reason = steps.unlike(found)
        except Unfit as error:
            found, reason = None, str(error)
        if reason and self._rebuild:
            _log.warning("%s: nothing is taken over from it: %s", self._out, reason)
        return None if reason else found
