"""gwke_emb_sim: the most similar rows of a .npy; * stands for all rows.

cosine  x · y / (‖x‖ ‖y‖)               dot  x · y
l2, l1  ‖x - y‖, smallest first          ext_jaccard  x · y / (‖x‖² + ‖y‖² - x · y)

The file is mapped and read block by block.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.best import Best, Names, blocks, write_table
from graphwire.kge.data import DataError, warn
from graphwire.kge.dictionaries import check_named
from graphwire.kge.dictionaries import of as dictionaries_of
from graphwire.kge.models import check_finite
from graphwire.kge.outputs import rows_of

FORMATS = {"l_r": (True, True), "l_*": (True, False), "*_r": (False, True), "*": (False, False)}
DISTANCES = ("l2", "l1")


def likeness(x: Tensor, y: Tensor, kind: str) -> Tensor:
    """Returns the similarities [n, m] of rows [n, width] and [m, width]. Distances are negated, so that a higher value
    is more similar."""
    if kind == "l1":
        return -torch.cdist(x, y, p=1.0)
    if kind == "l2":
        return -torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    product = x @ y.T
    if kind == "dot":
        return product
    squares = x.square().sum(1, keepdim=True), y.square().sum(1).unsqueeze(0)
    if kind == "cosine":
        return product / (squares[0].sqrt() * squares[1].sqrt())
    return product / (squares[0] + squares[1] - product)


class Similar:
    """Finds similar rows. rows: [n, width]; may be a mapped file."""

    def __init__(self, rows: np.ndarray, kind: str = "cosine", device: str = "cpu"):
        self.rows, self.kind, self.device = rows, kind, device

    def _of(self, ids: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(self.rows[ids], dtype=np.float32)).to(self.device)

    def _checked(self, scores: Tensor, ids: Sequence[Tensor]) -> Tensor:
        check_finite(scores, f"the {self.kind} of {{}} and {{}}", ids,
                     "the rows have NaN or infinity, are too large, or are all 0")
        return scores.cpu()

    def pairwise(self, left: np.ndarray, right: np.ndarray, k: int) -> Best:
        """Returns the best of the pairs (left[i], right[i])."""
        if len(left) != len(right):
            raise DataError(f"pairwise: {len(left)} left and {len(right)} right objects: give the same number of each")
        best = Best(1, k, 2)
        for first, some in blocks(left):
            other = right[first:first + len(some)]
            x, y = self._of(some), self._of(other)
            scores = torch.cat([likeness(x[i:i + 1], y[i:i + 1], self.kind) for i in range(len(some))], 1)
            ids = [torch.from_numpy(numbers).unsqueeze(0) for numbers in (some, other)]
            best.add(0, self._checked(scores, ids), ids)
        return best

    def combined(self, left: np.ndarray, right: np.ndarray, k: int, each: bool) -> Best:
        """Returns the best of all pairs; with `each`, the best pairs of each row on the left."""
        best = Best(len(left) if each else 1, k, 2)
        for first, some in blocks(left):
            x = self._of(some)
            for _, other in blocks(right):
                ids = [torch.from_numpy(some).unsqueeze(1), torch.from_numpy(other).unsqueeze(0)]
                scores = self._checked(likeness(x, self._of(other), self.kind), ids)
                if each:
                    best.add(first, scores, ids)
                else:
                    best.add(0, scores.reshape(1, -1), [array.expand_as(scores).reshape(1, -1) for array in ids])
        return best


def _names_file(args: argparse.Namespace) -> Optional[Path]:
    """Finds the dictionary of the rows: --mfile, else the model's in the folder of the rows. Raises DataError if the
    two contradict each other."""
    if not args.raw_data:
        if args.mfile:
            warn(f"--mfile {args.mfile} is not read without --raw_data")
        return None
    path = Path(args.emb_file)
    found = dictionaries_of(path.parent)
    own = None if found is None else found.entities if path.stem.endswith("_entity") else found.relations if (
        path.stem.endswith(("_relation", "projection"))) else None
    if args.mfile:
        check_named(own, args.mfile)
        return Path(args.mfile)
    if own is None:
        raise DataError("--raw_data needs --mfile, a file with the names of the rows")
    return own


def emb_sim(args: argparse.Namespace) -> None:
    """Runs the command."""
    if args.format not in FORMATS:
        raise DataError(f"there is no format {args.format}: choose one of {', '.join(FORMATS)}")
    rows = rows_of(Path(args.emb_file), listed=False)
    names, files = Names(_names_file(args), len(rows)), list(args.data_files or ())
    given = FORMATS[args.format]
    if len(files) != sum(given):
        raise DataError(f"--data_files: format {args.format} takes {sum(given)}, not {len(files)} files")
    left, right = (names.read(files.pop(0)) if has_file else np.arange(len(rows)) for has_file in given)
    similar = Similar(rows, args.sim_func, "cpu" if args.gpu < 0 else f"cuda:{args.gpu}")
    if args.exec_mode == "pairwise":
        best = similar.pairwise(left, right, args.topK)
    else:
        best = similar.combined(left, right, args.topK, args.exec_mode == "batch_left")
    lines = write_table(args.output, ("left", "right", "score"), best, (names, names),
                        -1 if args.sim_func in DISTANCES else 1)
    print(f"{lines} pairs: {args.output}")
