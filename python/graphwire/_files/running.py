"""Runs the program `graphwire` on files, with a bar, and its log as this process's.

    run(["import", …], {file: what it holds}) ─▶ a line of progress moves the bar, another line is logged
    ─▶ the last line of a program that fails is the error, in the caller's terms

Errors: ProgramError, a RuntimeError; FileNotFoundError without the program.
"""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from graphwire._base import progress as _progress
from graphwire._base.program import ProgramError, logged, program, without_options
from graphwire._base.scratch import descriptors

_log = logging.getLogger("graphwire")
_PROGRESS = re.compile(r"(.+?) \d[^(]* of [^(]*\((\d+) %\)[^,]*, .*/s$")  # as core/system/progress.c writes it


def _in_arguments(line: str, names: Mapping[str, str]) -> str:
    """Translates an error line of the program to the caller's terms: arguments instead of options, and the caller's
    data instead of temporary files. names: {file: what it holds}."""
    for path in sorted(names, key=len, reverse=True):
        line = line.replace(path, names[path])
    line = re.sub(r'feature "[^"]*": (?=(node|edge) feature )', "", line)  # the option names the feature again
    options = "node-feature|node-mask|edge-feature|edges|num-nodes|name|weight|time|store|assignment"
    line = re.sub(f"--({options}): ", "", line)
    return without_options(line.replace("--edge-feature", "edge_features"))


class _Report:
    """What the program writes to stderr: its progress moves the bar, other lines are logged."""

    def __init__(self, bar: _progress.Bar, names: Mapping[str, str]):
        self._bar, self._names = bar, names
        self.last = ""

    def take(self, line: str) -> None:
        """Takes one line. The last one is the error, if the program fails, and is not logged before the next one."""
        self.log()
        moved = _PROGRESS.match(line)
        if moved:
            self._bar.to(int(moved.group(2)))
            self._bar.say(moved.group(1))
        self.last = "" if moved else line

    def log(self) -> None:
        if self.last:
            level, text = logged(self.last)
            _log.log(level, "%s", _in_arguments(text, self._names))


def run(words: Sequence[Any], names: Mapping[str, str] | None = None, progress: bool = False,
        held: tuple[int, ...] = (), prints: bool = False) -> None:
    """Runs the program. names: {file: what it holds}, for messages. progress: show a bar. held: descriptors that the
    program inherits. prints: its standard output is this process's. Raises RuntimeError with the program's last
    line."""
    with _progress.Bar(str(words[0]), progress, total=100, unit="%") as bar:
        report = _Report(bar, names or {})
        with descriptors() as kept, subprocess.Popen(
                [program(), *map(str, words)], stderr=subprocess.PIPE, stdout=None if prints else subprocess.DEVNULL,
                text=True, errors="surrogateescape", pass_fds=(*kept, *held)) as process:
            try:
                assert process.stderr is not None
                for line in process.stderr:
                    if line.strip():
                        report.take(line.strip())
            except BaseException:  # a signal's exception ends the program too
                process.kill()
                raise
        if process.returncode:
            raise ProgramError(_in_arguments(report.last, names or {}) if report.last else
                               f"graphwire {words[0]} ended with {process.returncode}", report.last,
                               process.returncode)
        report.log()
