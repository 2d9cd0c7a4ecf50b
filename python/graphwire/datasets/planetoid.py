"""Cora, CiteSeer and PubMed in Planetoid's format: ROOT/Cora/raw/ind.cora.{x,tx,allx,y,ty,ally,graph,test.index}.

The files are pickles of Python 2. A pickle can run any code. So a special reader reads them, which makes only arrays,
SciPy's sparse matrices and plain containers, and refuses everything else.

Errors: DatasetError, which names the file; FetchError.
"""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._graph_arrays import HOMOGENEOUS, Arrays
from graphwire.datasets.dataset import Dataset, DatasetError, masks_of, there
from graphwire.fetch import fetch

NAMES = ("Cora", "CiteSeer", "PubMed")
ADDRESS = "https://github.com/kimiyoung/planetoid/raw/master/data"
PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION = 500  # nodes for validation, after the training nodes


class _Sparse:
    """Stands for SciPy's csr_matrix when it is unpickled, so that SciPy is not needed."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shape = tuple(state["_shape"] if "_shape" in state else state["shape"])
        self.data, self.indices, self.indptr = state["data"], state["indices"], state["indptr"]

    def dense(self) -> np.ndarray:
        rows = np.zeros(self.shape, np.float32)
        np.add.at(rows, (np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices), self.data)
        return rows


def _numpy_of(name: str) -> Any:
    core: Any = getattr(np, "_core", None) or np.core
    return {"_reconstruct": core.multiarray._reconstruct, "scalar": core.multiarray.scalar}[name]


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in ("_reconstruct", "scalar"):
            return _numpy_of(name)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if module in ("scipy.sparse.csr", "scipy.sparse._csr") and name == "csr_matrix":
            return _Sparse
        if (module, name) == ("collections", "defaultdict"):
            return collections.defaultdict
        if module in ("__builtin__", "builtins") and name in ("list", "int", "set"):
            return {"list": list, "int": int, "set": set}[name]
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a set of Planetoid's")


def _encode(text: str, encoding: str) -> bytes:
    return text.encode(encoding)


def _read(path: Path) -> Any:
    try:
        if path.name.endswith("test.index"):
            return np.loadtxt(path, np.int64, ndmin=1)
        with open(path, "rb") as file:
            found = _Reader(file, encoding="latin1").load()
    except (OSError, pickle.UnpicklingError, ValueError, EOFError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(f"{path}: no file of Planetoid's sets: {error}") from error
    return found.dense() if isinstance(found, _Sparse) else found


def _stretched(rows: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Rows of the test nodes in the order of their ids, from the first to the last. CiteSeer has ids without a row
    between them; these get zeros."""
    whole = np.zeros((int(test.max() - test.min()) + 1, rows.shape[1]), rows.dtype)
    whole[np.sort(test) - test.min()] = rows
    return whole


def _edges(graph: Any) -> np.ndarray:
    """[edges, 2]: both directions of each edge, without duplicates and self-loops."""
    src = np.repeat(np.fromiter(graph, np.int64, len(graph)), [len(ends) for ends in graph.values()])
    dst = np.concatenate([np.asarray(ends, np.int64) for ends in graph.values()])
    return np.unique(np.stack([src, dst], 1)[src != dst], axis=0)


def load(name: str, root: Path, download: bool, progress: Optional[bool]) -> Dataset:
    """Loads a set with its public split: 20 nodes of each class for training, 500 for validation, 1,000 for the test.
    Fetches missing files if `download` is true. Raises DatasetError and FetchError."""
    raw, prefix = root / name / "raw", f"ind.{name.lower()}"

    def get() -> None:
        for part in PARTS:
            fetch(f"{ADDRESS}/{prefix}.{part}", root / name / f".raw/{prefix}.{part}", progress=progress)
        (root / name / ".raw").rename(raw)

    there(raw, download, f"{prefix}.x, … of {ADDRESS}", get)
    _, tx, allx, y, ty, ally, graph, test = [_read(raw / f"{prefix}.{part}") for part in PARTS]
    try:
        features = np.concatenate([allx, _stretched(tx, test)])
        labels = np.concatenate([ally, _stretched(ty, test)])
        for rows in (features, labels):
            rows[test] = rows[np.sort(test)]
        arrays = Arrays()
        arrays.counts["_N"] = len(features)
        edges = _edges(graph)
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise DatasetError(f"{raw}: its files do not fit each other: {error}") from error
    arrays.add_edges(HOMOGENEOUS, edges[:, 0], edges[:, 1])
    arrays.node_features["_N", "feat"] = np.asarray(features, np.float32)
    arrays.node_features["_N", "label"] = labels.argmax(1).astype(np.int64)
    train = np.arange(len(y))
    masks_of(arrays, "_N", {"train": train, "val": np.arange(len(y), len(y) + VALIDATION), "test": test})
    return Dataset(name, arrays)
