"""Keeps the best of many scores that arrive block by block; memory grows with the best scores only.

    best = Best(rows=len(heads), k=10, width=3)
    best.add(first_row, scores, [heads, relations, tails])    # scores [n, m], and the ids that each score belongs to
    for row in range(rows): ids, scores = best.of(row)        # descending; fewer than k if fewer were added
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.data import BLANKS, DataError, lines_of, number_of, read_dictionary, written

BLOCK = 1024  # ids on each side of a block


class Best:
    """The k highest scores of each row, and the ids that the scores belong to."""

    def __init__(self, rows: int, k: int, width: int):
        self.scores = torch.full((rows, k), float("-inf"))
        self.ids = torch.full((rows, k, width), -1, dtype=torch.int64)

    def add(self, first: int, scores: Tensor, ids: Sequence[Tensor]) -> None:
        """Adds scores [n, m] to the rows from first to first + n - 1. ids: `width` tensors that broadcast to [n, m]."""
        n, m = scores.shape
        k = self.scores.shape[1]
        top, places = scores.topk(min(k, m), dim=1)
        found = torch.stack([torch.broadcast_to(some, (n, m)).gather(1, places) for some in ids], -1)
        rows = slice(first, first + n)
        merged = torch.cat([self.scores[rows], top], 1)
        order = merged.sort(dim=1, descending=True, stable=True).indices[:, :k]
        self.scores[rows] = merged.gather(1, order)
        every = torch.cat([self.ids[rows], found], 1)
        self.ids[rows] = every.gather(1, order.unsqueeze(-1).expand(-1, -1, every.shape[-1]))

    def of(self, row: int) -> tuple[list[list[int]], list[float]]:
        """Returns the ids of each of a row's scores, and the scores."""
        filled = self.ids[row, :, 0] >= 0
        return self.ids[row][filled].tolist(), self.scores[row][filled].tolist()


class Names:
    """Turns names into numbers and back. Without a dictionary (path is None), a name is the number itself.
    Raises DataError unless the dictionary has a name for each of `count` rows."""

    def __init__(self, path: str | Path | None, count: int):
        self.path, self.count = path, count
        self.numbers = None if path is None else read_dictionary(path)
        self.names = None if self.numbers is None else {number: name for name, number in self.numbers.items()}
        if self.numbers is not None and len(self.numbers) != count:
            raise DataError(f"{path} has {len(self.numbers)} names, but the model has {count} rows: it is the "
                            "dictionary of another model")

    def read(self, path: str | Path) -> np.ndarray:
        """Returns the numbers of the names in a file, one name a line; raises DataError."""
        found = []
        for line, text in lines_of(path):
            word = text.strip(BLANKS)
            if self.numbers is not None:
                number = self.numbers.get(word, -1)
            else:
                number = number_of(word)
            if not 0 <= number < self.count:
                what = f"{self.path} does not have {word!r}" if self.numbers is not None else (
                    f"{word!r} is not a number below {self.count} (names need --raw_data)")
                raise DataError(f"{path}: line {line}: {what}")
            found.append(number)
        if not found:
            raise DataError(f"{path}: the file is empty")
        return np.array(found, dtype=np.int64)

    def of(self, number: int) -> str:
        return str(number) if self.names is None else self.names[number]


def blocks(ids: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Cuts ids into pieces of at most BLOCK; each comes with the position of its first id."""
    return [(first, ids[first:first + BLOCK]) for first in range(0, len(ids), BLOCK)]


def write_table(path: str | Path, header: Sequence[str], best: Best, names: Sequence[Names], sign: int = 1) -> int:
    """Writes names and scores, row by row of `best`. Returns the number of lines. After an error the file is as it was,
    unless the path is a pipe or a terminal."""
    lines, path = 0, Path(path)
    special = path.exists() and not path.is_file()  # a pipe, a terminal
    with open(path, "w", encoding="utf-8") if special else written(path) as file:
        file.write("\t".join(header) + "\n")
        for row in range(len(best.scores)):
            for ids, score in zip(*best.of(row)):
                words = [some.of(number) for some, number in zip(names, ids)]
                file.write("\t".join([*words, f"{sign * score:.5f}"]) + "\n")
                lines += 1
    return lines
