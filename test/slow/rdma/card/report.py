"""The report: findings as they come, on stdout, and one text file with a summary first.

A finding is a line "ok - WHAT", "note - WHAT" or "not ok - WHAT". A note or a failure has its remedy on the next line.
Figures are lines without a mark. The appendix has the complete output of other programs; it is in the file only.
"""

from __future__ import annotations

import time
from typing import Optional, TextIO

MARKS = ("ok", "note", "not ok")


class Stop(Exception):
    """The run cannot go on: the report ends here. Exit status 2."""


class Report:
    """Collects findings. `out` gets each line at once."""

    def __init__(self, out: TextIO, command: str) -> None:
        self.out = out
        self.command = command
        self.begun = time.time()
        self.lines: list[str] = []
        self.appendix: list[str] = []
        self.findings: list[tuple[str, str, Optional[str]]] = []

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} findings)"

    def line(self, text: str = "") -> None:
        self.lines.append(text)
        print(text, file=self.out, flush=True)

    def section(self, title: str) -> None:
        self.line()
        self.line(f"== {title} ({time.time() - self.begun:.0f} s)")

    def _finding(self, mark: str, what: str, remedy: Optional[str]) -> None:
        what = " ".join(what.split())
        self.findings.append((mark, what, remedy))
        self.line(f"{mark} - {what}")
        if remedy:
            self.line(f"    remedy: {remedy}")

    def ok(self, what: str) -> None:
        """A contract that holds."""
        self._finding("ok", what, None)

    def note(self, what: str, remedy: str) -> None:
        """Something that was not tested, or that costs speed."""
        self._finding("note", what, remedy)

    def not_ok(self, what: str, remedy: str) -> None:
        """A contract that is broken, or a fault of the host."""
        self._finding("not ok", what, remedy)

    def attach(self, title: str, text: str) -> None:
        """Adds a program's output to the appendix."""
        self.appendix += ["", f"-- {title}", *text.rstrip().splitlines()]

    def count(self, mark: str) -> int:
        return sum(finding[0] == mark for finding in self.findings)

    def status(self) -> int:
        """0: no finding is "not ok"; else 1."""
        return 1 if self.count("not ok") else 0

    def summary(self) -> list[str]:
        """The lines of the summary: what is not ok, the notes, and the counts."""
        lines = []
        for mark in ("not ok", "note"):
            for found, what, remedy in self.findings:
                if found == mark:
                    lines.append(f"{mark} - {what}")
                    lines += [f"    remedy: {remedy}"] if remedy else []
        took = time.time() - self.begun
        counts = ", ".join(f"{self.count(mark)} {mark}" for mark in MARKS)
        return [*lines, f"{counts}; {took:.0f} s"]

    def write(self, path: str) -> None:
        """Writes the file, and prints the summary and the file's name."""
        summary = self.summary()
        head = [
            "Graphwire on RDMA",
            f"command: {self.command}",
            f"begun: {time.strftime('%F %T %z', time.localtime(self.begun))}",
            "",
            "== summary",
            *summary,
        ]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*head, *self.lines, "", "== appendix", *self.appendix]) + "\n")
        self.line()
        self.line("== summary")
        for text in summary:
            self.line(text)
        self.line(f"the report: {path}")
