"""Reddit's arrays; SNAP's edge lists; triples: what needs no more than the files say."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from graphwire.datasets.dataset import SPLITS, Dataset, DatasetError, fetched_folder, masks_of, there
from graphwire.fetch import fetch
from graphwire.partition import HOMOGENEOUS, Arrays

REDDIT = {"reddit": "reddit", "reddit_self_loop": "reddit_self_loop"}
DGL = "https://data.dgl.ai/dataset"
SNAP = "https://snap.stanford.edu/data"


def load_reddit(name: str, root: Path, download: bool) -> Dataset:
    """ROOT/reddit/{reddit_data.npz, reddit_graph.npz}, as DGL and PyTorch Geometric unpack it (there in raw/)."""
    folder = root / name
    there(folder, download, f"{name}.zip's files", lambda: fetched_folder(f"{DGL}/{name}.zip", root, folder, ""))
    where = folder / "raw" if (folder / "raw" / "reddit_data.npz").is_file() else folder
    try:
        with np.load(where / "reddit_data.npz") as data, np.load(where / f"{name}_graph.npz") as edges:
            arrays = Arrays()
            arrays.counts["_N"] = len(data["label"])
            arrays.add_edges(HOMOGENEOUS, edges["row"], edges["col"])
            arrays.node_features["_N", "feat"] = np.asarray(data["feature"], np.float32)
            arrays.node_features["_N", "label"] = np.asarray(data["label"], np.int64)
            kinds = data["node_types"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{where}: {error}: no files of Reddit's") from error
    masks_of(arrays, "_N", {split: np.flatnonzero(kinds == number) for number, split in enumerate(SPLITS, 1)})
    return Dataset(name, arrays)


def load_snap(name: str, root: Path, download: bool) -> Dataset:
    """"snap:NAME": ROOT/NAME.txt or NAME.txt.gz."""
    word = name.partition(":")[2]
    if not word or "/" in word or word.startswith("."):
        raise DatasetError(f'{name!r}: a list of SNAP\'s is "snap:" and its name, as "snap:soc-LiveJournal1"')
    there_is = [path for path in (root / f"{word}.txt", root / f"{word}.txt.gz") if path.is_file()]
    if not there_is and not download:
        raise DatasetError(f"{root / word}.txt.gz is not there: put it there, or leave out download=False")
    return edge_list(there_is[0] if there_is else fetch(f"{SNAP}/{word}.txt.gz", root / f"{word}.txt.gz"), name=word)


def edge_list(path: str | os.PathLike, *, name: str | None = None) -> Dataset:
    """A file of edges, as SNAP has them: two ids a line, "#" before what is said about it, gzip or not. The feature
    orig_id has the ids of the file; other columns: `graphwire import`."""
    if not Path(path).is_file():
        raise DatasetError(f"{path} is not there")
    return Dataset(name or Path(path).name.split(".")[0], words=["--from", os.fspath(path), "--format", "text"])


def triples(files: str | os.PathLike | Sequence[str | os.PathLike] | Mapping[str, str | os.PathLike], *,
            name: str = "triples") -> Dataset:
    """Head, relation, tail a line, by tabs: a file, several, or {"train": …, "valid": …, "test": …}, which become masks
    of the edges. For embeddings of knowledge graphs graphwire.kge reads such files by itself."""
    given = files if isinstance(files, Mapping) else {
        f"#{number}": file for number, file in enumerate([files] if isinstance(files, (str, os.PathLike)) else files)}
    words = []
    for split, file in given.items():
        if not Path(file).is_file():
            raise DatasetError(f"{file} is not there")
        words += ["--triples", os.fspath(file) if split.startswith("#") else f"{split}={os.fspath(file)}"]
    return Dataset(name, words=words)
