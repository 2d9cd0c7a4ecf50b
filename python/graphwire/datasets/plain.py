"""Loaders of simple files: Reddit's arrays, SNAP's edge lists, and triples. Errors: DatasetError, FetchError."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

import numpy as np

from graphwire._base.keywords import keywords
from graphwire._files.fetch import fetch
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays
from graphwire._files.narrow import exactly
from graphwire._files.npy import arrays_of_npz
from graphwire._files.reading import reading
from graphwire.datasets.dataset import SPLITS, Dataset, DatasetError, check_rows, fetched_folder, masks_of, there

REDDIT = {"reddit": "reddit", "reddit_self_loop": "reddit_self_loop"}
DGL = "https://data.dgl.ai/dataset"
SNAP = "https://snap.stanford.edu/data"


def load_reddit(name: str, root: Path, download: bool, progress: Optional[bool]) -> Dataset:
    """Loads ROOT/reddit/{reddit_data.npz, reddit_graph.npz}, where DGL unpacks them, or the same files in
    ROOT/reddit/raw/, where PyTorch Geometric does."""
    folder = root / name
    there(folder, download, f"{name}.zip's files", lambda: fetched_folder(
        f"{DGL}/{name}.zip", root, folder, "", progress))
    where = folder / "raw" if (folder / "raw" / "reddit_data.npz").is_file() else folder
    arrays = Arrays()
    data = arrays_of_npz(where / "reddit_data.npz", DatasetError, "feature", "label", "node_types")
    edges = arrays_of_npz(where / f"{name}_graph.npz", DatasetError, "row", "col")
    with reading(where, DatasetError, what="its files do not fit each other"):
        count = arrays.counts["_N"] = len(data["label"])
        arrays.add_edges(HOMOGENEOUS, edges["row"], edges["col"])
        if arrays.counts["_N"] != count or any(len(ends) and ends.min() < 0 for ends in arrays.edges[HOMOGENEOUS]):
            raise ValueError(f"edges name other nodes than the {count} of reddit_data.npz")
        arrays.node_features["_N", "feat"] = np.asarray(data["feature"], np.float32)
        arrays.node_features["_N", "label"] = exactly(data["label"], np.int64, lambda row, value: ValueError(
            f"row {row} of label is {value}"))
        if data["node_types"].shape != (count,):
            raise ValueError(f"node_types has the shape {list(data['node_types'].shape)}")
        check_rows(arrays)
        masks_of(arrays, "_N", {split: np.flatnonzero(data["node_types"] == number)
                                for number, split in enumerate(SPLITS, 1)})
    return Dataset(name, arrays)


def load_snap(name: str, root: Path, download: bool, progress: Optional[bool]) -> Dataset:
    """Loads "snap:NAME" from ROOT/NAME.txt or ROOT/NAME.txt.gz."""
    word = name.partition(":")[2]
    if not word or "/" in word or word.startswith("."):
        raise DatasetError(f'{name!r}: name an edge list of SNAP as "snap:NAME", such as "snap:soc-LiveJournal1"')
    found = [path for path in (root / f"{word}.txt", root / f"{word}.txt.gz") if path.is_file()]
    if not found and not download:
        raise DatasetError(f"{root / word}.txt.gz does not exist: put it there, or leave out download=False")
    return edge_list(found[0] if found else fetch(
        f"{SNAP}/{word}.txt.gz", root / f"{word}.txt.gz", progress=progress), name=word)


@keywords
def edge_list(path: str | os.PathLike, *, name: str | None = None) -> Dataset:
    """A file of edges in SNAP's format: two ids a line, comments after "#", compressed by gzip or not.

    path: the file. name: the data set's name; None: that of the file, up to its first dot.

    The feature orig_id holds the ids of the file. `graphwire import` can read further columns. Raises DatasetError if
    the file does not exist.
    """
    if not Path(path).is_file():
        raise DatasetError(f"{path} does not exist")
    return Dataset(name or Path(path).name.split(".")[0], words=["--from", os.fspath(path)])


@keywords
def triples(files: str | os.PathLike | Sequence[str | os.PathLike] | Mapping[str, str | os.PathLike], *,
            name: str = "triples") -> Dataset:
    """Files of triples: head, relation and tail in a line, separated by tabs.

    files: a file, several files, or {"train": …, "valid": …, "test": …}; the splits become masks of the edges.
    name: the data set's name.

    graphwire.kge, for embeddings of knowledge graphs, reads such files by itself. Raises DatasetError if a file does
    not exist.
    """
    given = files if isinstance(files, Mapping) else {
        f"#{number}": file for number, file in enumerate([files] if isinstance(files, (str, os.PathLike)) else files)}
    words = []
    for split, file in given.items():
        if not Path(file).is_file():
            raise DatasetError(f"{file} does not exist")
        words += ["--triples", os.fspath(file) if split.startswith("#") else f"{split}={os.fspath(file)}"]
    return Dataset(name, words=words)
