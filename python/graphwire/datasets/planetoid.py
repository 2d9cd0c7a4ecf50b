"""Cora, CiteSeer and PubMed in Planetoid's format: ROOT/Cora/raw/ind.cora.{x,tx,allx,y,ty,ally,graph,test.index}.

The files are pickles of Python 2, which _files/pickles.py reads. Shapes and ids are compared before they are used.

Errors: DatasetError, which names the file; FetchError.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._files import pickles
from graphwire._files.fetch import fetch
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays
from graphwire._files.reading import reading
from graphwire.datasets.dataset import Dataset, DatasetError, masks_of, there

NAMES = ("Cora", "CiteSeer", "PubMed")
ADDRESS = "https://github.com/kimiyoung/planetoid/raw/master/data"
PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION = 500  # nodes for validation, after the training nodes


def _read(path: Path) -> Any:
    with reading(path, DatasetError, what="no file of Planetoid's sets"):
        if not path.name.endswith("test.index"):
            return pickles.load(path)
        ids = np.array([int(line) for line in path.read_text(encoding="ascii").split()], np.int64)
        if not len(ids) or ids.min() < 0 or len(np.unique(ids)) < len(ids) or (
                ids.max() - ids.min() >= path.stat().st_size):  # CiteSeer has 15 ids more than lines, of 5 bytes
            raise ValueError("its ids are no range of nodes")
        return ids


def _check(found: dict[str, Any]) -> None:
    """Raises ValueError unless the arrays are of the same nodes."""
    features, labels, test = ("x", "tx", "allx"), ("y", "ty", "ally"), found["test.index"]
    for names in (features, labels):
        rows = [found[name] for name in names]
        if any(not isinstance(some, np.ndarray) or some.ndim != 2 or some.dtype.kind not in "biuf" for some in rows):
            raise ValueError(f"{', '.join(names)} are not rows of numbers")
        if len({some.shape[1] for some in rows}) != 1 or not rows[0].shape[1]:
            raise ValueError(f"rows of {', '.join(names)} differ in length")
    for one, other in zip(features, labels):
        if len(found[one]) != len(found[other]):
            raise ValueError(f"{one} has {len(found[one])} rows, and {other} {len(found[other])}")
    if len(found["tx"]) != len(test) or len(found["x"]) > len(found["allx"]) or test.min() != len(found["allx"]):
        raise ValueError(f"allx has {len(found['allx'])} rows and tx {len(found['tx'])}, and test.index names "
                         f"{len(test)} nodes from {test.min()} on")
    if not isinstance(found["graph"], dict):
        raise ValueError("graph is no dictionary")


def _stretched(rows: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Rows of the test nodes in the order of their ids, from the first to the last. CiteSeer has ids without a row
    between them; these get zeros."""
    whole = np.zeros((int(test.max() - test.min()) + 1, rows.shape[1]), rows.dtype)
    whole[np.sort(test) - test.min()] = rows
    return whole


def _edges(graph: Any, count: int) -> np.ndarray:
    """[edges, 2]: both directions of each edge, without duplicates and self-loops. Raises ValueError for an id of
    `count` or more."""
    if any(type(end) is not int for ends in (graph, *graph.values()) for end in ends):
        raise ValueError("graph has ids that are no integers")
    src = np.repeat(np.fromiter(graph, np.int64, len(graph)), [len(ends) for ends in graph.values()])
    dst = np.concatenate([np.asarray(ends, np.int64) for ends in graph.values()])
    if len(src) and not (0 <= min(src.min(), dst.min()) and max(src.max(), dst.max()) < count):
        raise ValueError(f"graph has ids outside the {count} nodes")
    return np.unique(np.stack([src, dst], 1)[src != dst], axis=0)


def load(name: str, root: Path, download: bool, progress: Optional[bool]) -> Dataset:
    """Loads a set with its public split: 20 nodes of each class for training, 500 for validation, 1,000 for the test.
    Fetches missing files if `download` is true. Raises DatasetError and FetchError."""
    raw, prefix = root / name / "raw", f"ind.{name.lower()}"

    def get() -> None:
        made = root / name / ".raw"
        if made.is_symlink():
            made.unlink()
        for part in PARTS:
            fetch(f"{ADDRESS}/{prefix}.{part}", made / f"{prefix}.{part}", progress=progress)
        made.rename(raw)

    there(raw, download, f"{prefix}.x, … of {ADDRESS}", get)
    found = {part: _read(raw / f"{prefix}.{part}") for part in PARTS}
    arrays, test = Arrays(), found["test.index"]
    with reading(raw, DatasetError, what="its files do not fit each other"):
        _check(found)
        features = np.concatenate([found["allx"], _stretched(found["tx"], test)])
        labels = np.concatenate([found["ally"], _stretched(found["ty"], test)])
        for rows in (features, labels):
            rows[test] = rows[np.sort(test)]
        arrays.counts["_N"] = len(features)
        edges = _edges(found["graph"], len(features))
    arrays.add_edges(HOMOGENEOUS, edges[:, 0], edges[:, 1])
    arrays.node_features["_N", "feat"] = np.asarray(features, np.float32)
    arrays.node_features["_N", "label"] = labels.argmax(1).astype(np.int64)
    train, validation = np.arange(len(found["y"])), np.arange(len(found["y"]), len(found["y"]) + VALIDATION)
    with reading(raw, DatasetError, what="its files do not fit each other"):
        masks_of(arrays, "_N", {"train": train, "val": validation, "test": test})
    return Dataset(name, arrays)
