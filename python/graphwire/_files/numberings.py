"""The numberings of the node types of one graph, within a limit of memory.

    numbers(batch), note(batch) … ─▶ those that take too much memory are spilled: their further ids get places
    settle() ─▶ fill(edges): places become numbers

Errors: those of Numbering.
"""

from __future__ import annotations

import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from graphwire._base.program import program
from graphwire._files import npy
from graphwire._files.columns import Where
from graphwire._files.graph_arrays import Canonical
from graphwire._files.numbering import Numbering
from graphwire._files.table_files import BLOCK, Files

_SURE = 64 << 20  # bytes that any process has: no need to ask for the limit
_SHARE = 2  # of the limit of a step; a numbering that grows has its old memory too


class Missing(NamedTuple):
    """An end of an edge that is in no row of its table of nodes."""

    end: int
    where: str
    value: Any


class Numberings:
    """{node type: its numbering}. limit: the option of the program that limits memory; none: 7 tenths of what is free.
    """

    def __init__(self, files: Files, limit: Sequence[str]):
        self._files, self._words, self._bytes = files, list(limit), -1
        self._all: dict[str, Numbering] = {}
        self._counts: dict[str, int] = {}  # the rows of tables of nodes
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

    def end_nodes(self, ntype: str) -> None:
        """The rows of the table of nodes have been numbered: no other node exists."""
        self._counts[ntype] = len(self._all[ntype])

    def note(self, key: Any, ntypes: Iterable[str], first: int, where: Optional[Where] = None) -> None:
        """To be called after a batch was numbered. key: its table; first: its first row there; where: for errors."""
        for ntype in ntypes:
            if self._all[ntype].is_spilled:
                self._begins.setdefault((key, ntype), first)
                if where is not None and (not self._wheres[key] or self._wheres[key][-1][0] != first):
                    self._wheres[key].append((first, where))
        held = {ntype: one.memory() for ntype, one in self._all.items()}
        while sum(held.values()) > (0 if self._words else _SURE) and sum(held.values()) > self._limit():
            largest = max(held, key=held.__getitem__)
            self._all[largest].spill(self._files.path(""))
            del held[largest]

    def _limit(self) -> int:
        if self._bytes < 0:
            said = subprocess.run([program(), "import", "ids", *self._words], check=True, stdout=subprocess.PIPE,
                                  text=True)
            self._bytes = int(said.stdout) // _SHARE
        return self._bytes

    def _where(self, key: Any, row: int) -> str:
        wheres = self._wheres[key]
        first, where = wheres[bisect_right([begin for begin, _ in wheres], row) - 1]
        return where(row - first)

    def settle(self) -> Iterator[tuple[str, str, Any]]:
        """Numbers the ids of spilled numberings. Yields (node type, place, id) for each type with two nodes of one id:
        the second of the first two."""
        for ntype, numbering in self._all.items():
            if not numbering.is_spilled:
                continue
            numbering.settle(self._files.path(""), self._words)
            rows = self._counts.get(ntype, 0)
            for begin in range(0, rows, BLOCK):
                block = numbering.by_place[begin:min(begin + BLOCK, rows)]
                wrong = block != np.arange(begin, begin + len(block))
                if wrong.any():
                    row = begin + int(np.argmax(wrong))
                    yield ntype, self._where(ntype, row), numbering.at_place(row)
                    break

    def fill(self, etype: Canonical, rows: npy.Rows) -> Optional[Missing]:
        """Replaces places in a file of edges by numbers, or returns the first end that is missing."""
        begins = {end: self._begins[etype, etype[2 * end]] for end in (0, 1) if (etype, etype[2 * end]) in self._begins}
        edges = np.load(rows.path, mmap_mode="r+") if begins else np.empty((0, 2), np.int64)
        for first in range(min(begins.values(), default=0), len(edges), BLOCK):
            block = edges[first:first + BLOCK]
            for end, begin in begins.items():
                numbering, skipped = self._all[etype[2 * end]], max(begin - first, 0)
                places = block[skipped:, end]
                found = numbering.by_place[places]
                missing = found >= self._counts.get(etype[2 * end], 2**63 - 1)
                if missing.any():
                    row = int(np.argmax(missing))
                    return Missing(end, self._where(etype, first + skipped + row), numbering.at_place(int(places[row])))
                places[:] = found
        return None
