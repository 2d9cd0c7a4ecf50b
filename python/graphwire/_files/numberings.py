"""The numberings of the node types of one graph, within a limit of memory.

    numbers(batch), note(batch) … ─▶ those that take too much memory are spilled: their further ids get places
    settle() ─▶ looked_up(edges): the numbers of places

Two nodes of one id, and an end that does not exist, are found in memory while rows are read, and in files by settle()
and looked_up(). checked() lets the first error of both be raised.

Errors: those of Numbering; OSError, ENOSPC, if the files do not fit on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from graphwire._base.program import ProgramError, program, without_options
from graphwire._files import npy
from graphwire._files.columns import Where
from graphwire._files.graph_arrays import Canonical
from graphwire._files.numbering import Numbering
from graphwire._files.table_files import BLOCK, Files

_SURE = 64 << 20  # bytes that any process has: no need to ask for the limit
_SHARE = 2  # of the limit of a step; a numbering that grows has its old memory too
_MEMORY = "--memory"  # the option of the program

_log = logging.getLogger("graphwire")


class Missing(NamedTuple):
    """An end of an edge that is in no row of its table of nodes. batch: the first row of its batch, for the order of
    errors."""

    end: int
    where: str
    value: Any
    batch: int


class Looked(NamedTuple):
    """Edges with places of a spilled numbering. first: the first row. rows: of the file, mapped. found: the numbers of
    the places. missing: whether no row of the table of nodes has the id, bool."""

    end: int
    first: int
    rows: np.ndarray
    found: np.ndarray
    missing: np.ndarray


class Numberings:
    """{node type: its numbering}. limit: options of the program, also the one that limits memory; without it 7 tenths
    of what is free."""

    def __init__(self, files: Files, limit: Sequence[str]):
        self._files, self._words, self._bytes = files, list(limit), -1
        self._all: dict[str, Numbering] = {}
        self._counts: dict[str, int] = {}  # the rows of tables of nodes
        self._expected: dict[str, int] = defaultdict(int)  # rows with ids of a type, as far as they are known
        self._begins: dict[tuple[Any, str], int] = {}  # {(table, node type): the first row whose ids have places}
        self._wheres: dict[Any, list[tuple[int, Where]]] = defaultdict(list)  # {table: (first row, place of a row)}

    def __contains__(self, ntype: str) -> bool:
        return ntype in self._all

    def __getitem__(self, ntype: str) -> Numbering:
        return self._all[ntype]

    def items(self) -> Iterable[tuple[str, Numbering]]:
        return self._all.items()

    def add(self, ntypes: Iterable[str]) -> None:
        self._all.update({ntype: Numbering() for ntype in ntypes})

    def expect(self, ntype: str, rows: Optional[int]) -> None:
        """A table has so many ids of a type; None: unknown."""
        self._expected[ntype] += rows or 0

    def begin(self, files: Files) -> None:
        """The files of further numberings. Those of spilled ones may go: release() was called."""
        self._files = files

    def release(self) -> None:
        """Frees the numberings, except those in memory without a limit: a program that runs next may use all of it."""
        limited = _MEMORY in self._words
        for ntype in [ntype for ntype, one in self._all.items() if limited or one.is_spilled]:
            del self._all[ntype]
        self._begins.clear()
        self._wheres.clear()
        self._expected.clear()

    def end_nodes(self, ntype: str) -> None:
        """The rows of the table of nodes have been numbered: no other node exists."""
        self._counts[ntype] = len(self._all[ntype])

    def note(self, key: Any, ntypes: Iterable[str], first: int, where: Optional[Where] = None,
             row: Optional[int] = None) -> None:
        """To be called after a batch was numbered. key: its table, a node type or an edge type; first: its first row
        there, or in the file of edges; where: for errors; row: the first row for `where`, if it is not `first`."""
        if isinstance(key, str):
            self.end_nodes(key)
        for ntype in ntypes:
            if self._all[ntype].is_spilled:
                self._begins.setdefault((key, ntype), first)
                begun = first if row is None else row
                if where is not None and (not self._wheres[key] or self._wheres[key][-1][0] != begun):
                    self._wheres[key].append((begun, where))
        while self._held() > (0 if self._words else _SURE) and self._held() > self._step() // _SHARE:
            largest = max(self._all, key=lambda ntype: 0 if self._all[ntype].is_spilled else self._all[ntype].memory())
            self._announce(largest)
            self._all[largest].spill(self._files.path(""))

    def _held(self) -> int:
        return sum(one.memory() for one in self._all.values() if not one.is_spilled)

    def _step(self) -> int:
        """The bytes of memory of a step of the program, half of the limit."""
        if self._bytes < 0:
            said = subprocess.run([program(), "import", "ids", *self._words], capture_output=True, text=True)
            if said.returncode:  # such as an option that is no size
                line = said.stderr.strip().rpartition("\n")[2]
                raise ProgramError(without_options(line), line, said.returncode)
            self._bytes = int(said.stdout)
        return self._bytes

    def _limited(self) -> list[str]:
        """The options for a program that runs while numberings are in memory: their memory is not its own."""
        if _MEMORY not in self._words:
            return self._words
        place = self._words.index(_MEMORY) + 1
        left = max(2 * self._step() - self._held(), 1)
        return [*self._words[:place], str(left), *self._words[place + 1:]]

    def _announce(self, ntype: str) -> None:
        """Says how much the disk must hold for a numbering that is spilled. Raises OSError if it cannot."""
        one, folder = self._all[ntype], self._files.path("").parent
        ids = max(len(one), 1)
        rows = max(self._expected[ntype], ids)
        needed, free = int(rows * (2 * one.file_bytes() / ids + 8)), shutil.disk_usage(folder).free
        said = f"temporary files of about {needed / 2**20:,.1f} MiB"
        if needed > free:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {said} for the ids of {ntype} do not fit: "
                          f"{free / 2**20:,.1f} MiB are free (--memory)", str(folder))
        _log.info("memory: the ids of %s take %s in %s, where %s MiB are free", ntype, said, folder,
                  f"{free / 2**20:,.1f}")

    def _batch(self, key: Any, row: int) -> tuple[int, Where]:
        """(the first row of a row's batch, the places of its rows)"""
        wheres = self._wheres[key]
        return wheres[bisect_right([begin for begin, _ in wheres], row) - 1]

    def _where(self, key: Any, row: int) -> str:
        first, where = self._batch(key, row)
        return where(row - first)

    @contextlib.contextmanager
    def checked(self, check: Callable[[], None]) -> Iterator[None]:
        """Numbers rows, and then calls check(), which calls settle() and raises errors. So it does after an error of a
        row: rows before it, whose ids have places, may be wrong."""
        found: Optional[Exception] = None
        try:
            yield
        except (ValueError, TypeError) as error:
            found = error
        if found is None or any(one.is_spilled for one in self._all.values()):
            check()
        if found is not None:
            raise found

    def settle(self) -> Iterator[tuple[str, str, Any]]:
        """Numbers the ids of spilled numberings. Yields (node type, place, id) for each type with two nodes of one id:
        the second of the first two."""
        for ntype, numbering in self._all.items():
            if not numbering.is_spilled:
                continue
            numbering.settle(self._files.path(""), self._limited(), self._counts.get(ntype))
            rows = self._counts.get(ntype, 0)
            for begin in range(0, rows, BLOCK):
                block = numbering.by_place[begin:min(begin + BLOCK, rows)]
                wrong = block != np.arange(begin, begin + len(block))
                if wrong.any():
                    row = begin + int(np.argmax(wrong))
                    yield ntype, self._where(ntype, row), numbering.at_place(row)
                    break

    def looked_up(self, etype: Canonical, edges: npy.Rows, ends: Sequence[int] = (0, 1)) -> Iterator[Looked]:
        """The edges with places, which stay what they are. ends: the columns that may have places."""
        begins = {end: self._begins[etype, etype[2 * end]] for end in ends if (etype, etype[2 * end]) in self._begins}
        rows = edges.so_far() if begins else np.empty((0, 2), np.int64)
        for first in range(min(begins.values(), default=0), len(rows), BLOCK):
            for end, begin in begins.items():
                ntype, skipped = etype[2 * end], max(begin - first, 0)
                block = rows[first + skipped:first + BLOCK]
                found = self._all[ntype].by_place[block[:, end]]
                yield Looked(end, first + skipped, block, found, found >= self._counts.get(ntype, 2**63 - 1))

    def missing(self, etype: Canonical, one: Looked, row: Optional[int] = None) -> Missing:
        """The first missing end. row: the row for its place; None: that in the file."""
        at = int(np.argmax(one.missing))
        row = one.first + at if row is None else row
        return Missing(one.end, self._where(etype, row), self._all[etype[2 * one.end]].at_place(
            int(one.rows[at, one.end])), self._batch(etype, row)[0])

    def fill(self, etype: Canonical, edges: npy.Rows) -> Optional[Missing]:
        """Replaces places in a file of edges by numbers. Returns the end that is missing and that is found first if
        batches are looked up one after the other, and in each the sources first."""
        wrong: dict[int, Missing] = {}
        for one in self.looked_up(etype, edges):
            if one.missing.any() and one.end not in wrong:
                wrong[one.end] = self.missing(etype, one)
            one.rows[:, one.end] = one.found
        return min(wrong.values(), key=lambda missing: (missing.batch, missing.end), default=None)
