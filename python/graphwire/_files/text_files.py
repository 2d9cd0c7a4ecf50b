"""Reads tables of text through the program, so that they have the rules of `graphwire import`.

    paths ─▶ graphwire import columns ─▶ a Text of each: delimiter, header or not, names, columns of text ids
    a Text, columns ─▶ graphwire import columns --column N … ─▶ a stream of CSV: c0,c1,…

docs/PYTHON.md has the table of rules. In the stream, a field that was in quotes is in quotes; an empty field without
them is a missing value. Lines of the program's log go to logging.getLogger("graphwire").

Errors: ValueError, which names the file, the line and the column; FileNotFoundError without the program.
"""

from __future__ import annotations

import csv
import logging
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from graphwire._base.program import logged, program, without_options
from graphwire._base.scratch import descriptors

_log = logging.getLogger("graphwire")
_INSTEAD = {
    "use --header; if it is an edge, use --no-header": "pass header=True; if it is an edge, pass header=False",
    "with --no-header or --header": "with header=False or header=True",
    "; --ids compact or dense refuses it": "",
    ", or use --ids text": "",
    " (for names: --ids text)": "",
    "use --ids text, or dense or compact to drop the zeros": "pass a frame whose ids are text",
    'use --comment ""': "pass a frame",
    "name the columns with --src-column and --dst-column": "name the columns with src=… and dst=…",
    "use --delimiter": "write it with another one",
}


class Text(NamedTuple):
    """A file of text. texts: {column, from 0: whether the ids in it are text} of the ends of edges."""

    path: Path
    delimiter: int
    header: bool
    texts: dict[int, bool]
    names: list[str]


def _in_arguments(line: str) -> str:
    """The program's line, with arguments of from_tables instead of options."""
    line = re.sub(r"^(graphwire )?import columns: ", "", line)
    for words, instead in _INSTEAD.items():
        line = line.replace(words, instead)
    return without_options(line)


def _ended(status: int, said: str) -> None:
    """Logs what the program said. Raises ValueError with its last line if it failed."""
    lines = [line for line in said.splitlines() if line.strip()]
    failed = lines.pop() if status and lines else f"graphwire import columns ended with {status}"
    for line in lines:
        level, text = logged(line)
        _log.log(level, "%s", _in_arguments(text))
    if status:
        raise ValueError(_in_arguments(failed))


def _said(paths: Sequence[Path], words: Sequence[str]) -> list[list[str]]:
    """The program's answer: a row for each file."""
    files = [f"--from={path.absolute()}" for path in paths]
    with descriptors() as kept:
        done = subprocess.run([program(), "import", "columns", *files, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, pass_fds=kept, encoding="utf-8", errors="surrogateescape")
    said = done.stderr
    for path in paths:
        said = said.replace(str(path.absolute()), str(path))
    _ended(done.returncode, said)
    return list(csv.reader(done.stdout.splitlines()))


def examined(paths: Sequence[Path], words: Sequence[str]) -> list[Text]:
    """What the program decides on the files of one table. words: its options."""
    edges = "--node-table" not in words
    return [Text(path, int(row[0]), row[1] == "1", {
        int(row[place]) - 1: row[place + 1] == "1" for place in (2, 4) if edges}, row[6:])
            for path, row in zip(paths, _said(paths, words))]


def _form(text: Text) -> list[str]:
    return [f"--delimiter={text.delimiter}", "--header" if text.header else "--no-header"]


def kind_of_ids(text: Text, column: int) -> str:
    """number, signed or text: the kind of all ids in a column, from 0."""
    return _said([text.path], [*_form(text), f"--kind={column + 1}"])[0][0]


@contextmanager
def rows(text: Text, columns: Sequence[tuple[str, int]]) -> Iterator[IO[bytes]]:
    """A stream of columns as CSV. columns: (column, text-id, number-id or signed-id; the column, from 0). At the end,
    raises the program's error, which comes before one of the reader that met the end of the stream."""
    words = [f"--{use}={column + 1}" for use, column in columns]
    command = [program(), "import", "columns", f"--from={text.path.absolute()}", *_form(text), *words]
    said_by_program = os.fdopen(os.memfd_create("stderr"), "w+", encoding="utf-8", errors="surrogateescape")
    with descriptors() as kept, said_by_program as said, \
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
                             pass_fds=kept) as process:
        assert process.stdout is not None

        def ended() -> None:
            said.seek(0)
            _ended(process.wait(), said.read().replace(str(text.path.absolute()), str(text.path)))

        try:
            yield process.stdout
        except Exception:
            if process.stdout.closed or process.stdout.read(1) == b"":
                ended()
            process.kill()
            raise
        except BaseException:
            process.kill()
            raise
        ended()
