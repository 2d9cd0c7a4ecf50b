"""Dataset, the result of all loaders of data sets: arrays, or files that `graphwire import` reads by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from graphwire._base.keywords import keywords
from graphwire._base.scratch import Scratch
from graphwire._files.fetch import _alone, fetch, unpack
from graphwire._files.graph_arrays import Arrays
from graphwire._files.partition import partition_graph
from graphwire._files.replicas import Fanouts

SPLITS = ("train", "val", "test")


class DatasetError(ValueError):
    """Files of a data set are missing or damaged. The text names them, and what to do."""

    __module__ = "graphwire.datasets"


@keywords
class Dataset:
    """A data set.

    name: its name.
    arrays: its edges and features by type; None if import_words name files instead.
    import_words: arguments of `graphwire import` that name the files; None if arrays has the data.
    splits: for a set of links, {"train": …, "valid": …, "test": …} in the form of its own package; else None.
    """

    def __init__(self, name: str, arrays: Optional[Arrays] = None, words: Optional[list[str]] = None,
                 splits: Optional[dict[str, Any]] = None):
        self.name, self.arrays, self.import_words, self.splits = name, arrays, words, splits

    def partition(self, num_parts: int, out: str | os.PathLike, *, name: Optional[str] = None,
                  method: Optional[str] = None,
                  node_features: Optional[Mapping[Any, Any]] = None, edge_features: Optional[Mapping[Any, Any]] = None,
                  num_nodes: Optional[Union[int, Mapping[str, int]]] = None, balance_train: bool = False,
                  balance_nodes: Any = None, balance_edges: bool = False, num_trainers_per_machine: int = 1,
                  objtype: str = "cut", reverse: bool = False, undirected: bool = False, transpose: bool = False,
                  seed: int = 0, weight: Union[str, Sequence[str]] = (), time: Union[str, Sequence[str]] = (),
                  assignment: Any = None, memory: Optional[Union[int, str]] = None,
                  store: Optional[Mapping[str, Any]] = None, replicate: Optional[Union[int, str]] = None,
                  replicate_by: str = "vip", fanouts: Optional[Fanouts] = None, batch_size: int = 1000,
                  progress: Optional[bool] = None) -> Path:
        """Divides the data set into parts. Returns the path of their JSON. The arguments and errors are those of
        graphwire.partition_graph(dataset, …)."""
        return partition_graph(
            self, name or self.name, num_parts, out, method=method, node_features=node_features,
            edge_features=edge_features, num_nodes=num_nodes, balance_train=balance_train, balance_nodes=balance_nodes,
            balance_edges=balance_edges, num_trainers_per_machine=num_trainers_per_machine, objtype=objtype,
            reverse=reverse, undirected=undirected, transpose=transpose, seed=seed, weight=weight, time=time,
            assignment=assignment, memory=memory, store=store, replicate=replicate, replicate_by=replicate_by,
            fanouts=fanouts, batch_size=batch_size, progress=progress)

    def renamed(self, features: dict[str, str]) -> Dataset:
        """A data set with the same rows and other names of features, {old: new}, such as {"feat": "features"}. Raises
        DatasetError if the data set consists of files."""
        if self.arrays is None:
            raise DatasetError(f"{self.name}: its files have no features to be renamed")
        made = Arrays()
        made.counts, made.edges = self.arrays.counts, self.arrays.edges
        made.node_features = {(kind, features.get(name, name)): rows
                              for (kind, name), rows in self.arrays.node_features.items()}
        made.edge_features = {(etype, features.get(name, name)): rows
                              for (etype, name), rows in self.arrays.edge_features.items()}
        return Dataset(self.name, made, None, self.splits)

    def __repr__(self) -> str:
        if self.arrays is None:
            return f"<graphwire.datasets.Dataset {self.name}: files>"
        edges = sum(len(src) for src, _ in self.arrays.edges.values())
        return f"<graphwire.datasets.Dataset {self.name}: {sum(self.arrays.counts.values())} nodes, {edges} edges>"


def masks_of(arrays: Arrays, ntype: str, ids: dict[str, np.ndarray]) -> None:
    """Adds train_mask, val_mask and test_mask to a node type. ids: {split: ids of its nodes}. Raises ValueError for an
    id that does not exist."""
    count = arrays.counts[ntype]
    for split, some in ids.items():
        if len(some) and not (0 <= some.min() and some.max() < count):
            raise ValueError(f"the split {split} names node {int(some.max())} of {count}")
        mask = np.zeros(count, np.bool_)
        mask[some] = True
        arrays.node_features[ntype, f"{split}_mask"] = mask


def check_rows(arrays: Arrays) -> None:
    """Raises ValueError unless each feature has a row for each node or edge."""
    for (ntype, name), rows in arrays.node_features.items():
        if rows.ndim < 1 or len(rows) != arrays.counts[ntype]:
            raise ValueError(f"{name} has the shape {list(rows.shape)}, and {ntype} has {arrays.counts[ntype]} nodes")
    for (etype, name), rows in arrays.edge_features.items():
        if rows.ndim < 1 or len(rows) != len(arrays.edges[etype][0]):
            raise ValueError(f"{name} has the shape {list(rows.shape)}, and {':'.join(etype)} has "
                             f"{len(arrays.edges[etype][0])} edges")


def column(rows: np.ndarray) -> np.ndarray:
    """Rows of shape [n, 1] as [n]; other rows unchanged."""
    return rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows


def there(folder: Path, download: bool, what: str, get: Callable[[], Any]) -> None:
    """Calls get(), which makes the folder, if the folder does not exist. Of several processes, one calls get(), and the
    others wait. Raises DatasetError if download is False."""
    if folder.is_dir():
        return
    if not download:
        raise DatasetError(f"{folder} does not exist: put {what} there, or leave out download=False")
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        if not folder.is_dir():
            get()


def fetched_folder(url: str, root: Path, folder: Path, inner: str, progress: Optional[bool],
                   digest: Optional[str] = None) -> None:
    """Fetches and unpacks an archive, renames its folder `inner` to `folder`, and removes the archive."""
    archive = fetch(url, root / url.rsplit("/", 1)[1], digest=digest, progress=progress)
    with Scratch(root, f".{folder.name}") as scratch:
        os.rename(unpack(archive, scratch / "all") / inner, folder)
    for path in (archive, archive.with_name(archive.name + ".sha256")):
        path.unlink(missing_ok=True)
