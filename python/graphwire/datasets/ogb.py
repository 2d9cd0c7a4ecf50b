"""The Open Graph Benchmark's sets of nodes and links, from the folders of its package, such as
ROOT/ogbn_products/{raw,split}.

raw/*.csv.gz, or data.npz for a binary set -> Arrays -> labels and splits -> Dataset

A set is homogeneous, or has a folder for each type. Edges are in both directions if the package adds the reverse
direction. Features are named "feat" and "label"; others have the package's name without "node_" or "edge_".

Errors: DatasetError, which names the file; FetchError.
"""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple, Optional

import numpy as np

from graphwire._graph_arrays import HOMOGENEOUS, Arrays, Canonical
from graphwire._scratch import Scratch
from graphwire.datasets.dataset import Dataset, DatasetError, column, fetched_folder, masks_of, there
from graphwire.partition import run

ADDRESS = "http://snap.stanford.edu/ogb/data"
ALLOWED = 1 << 20  # the most bytes that are read of a table of words


class _Set(NamedTuple):
    """One set. archive: the name of the zip file, and of the folder in it. split: the folder of its split. inverse: the
    reverses of edges are added. hetero: the set has types. binary: the set is data.npz. more: further columns. digest:
    the archive's digest, if it is known for certain."""

    archive: str
    split: str
    inverse: bool = False
    hetero: bool = False
    binary: bool = False
    more: tuple[str, ...] = ()
    digest: Optional[str] = None


SETS = {
    "ogbn-proteins": _Set("proteins", "species", True, more=("node_species",)),
    "ogbn-products": _Set("products", "sales_ranking", True),
    "ogbn-arxiv": _Set("arxiv", "time", more=("node_year",),  # 83,058,288 bytes; ten projects pin this digest
                       digest="sha256:49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"),
    "ogbn-mag": _Set("mag", "time", hetero=True, more=("node_year", "edge_reltype")),
    "ogbn-papers100M": _Set("papers100M-bin", "time", binary=True),
    "ogbl-ppa": _Set("ppassoc", "throughput", True),
    "ogbl-collab": _Set("collab", "time", True, more=("edge_weight", "edge_year")),
    "ogbl-ddi": _Set("ddi", "target", True),
    "ogbl-citation2": _Set("citation-v2", "time", more=("node_year",)),
    "ogbl-wikikg2": _Set("wikikg-v2", "time", more=("edge_reltype",)),
    "ogbl-biokg": _Set("biokg", "random", hetero=True, more=("edge_reltype",)),
    "ogbl-vessel": _Set("vessel", "random", binary=True)}


def _file(folder: Path, name: str) -> Optional[Path]:
    """The path of NAME.csv.gz or NAME.csv; None if neither exists."""
    return next((path for path in (folder / f"{name}.csv.gz", folder / f"{name}.csv") if path.is_file()), None)


def _opened(path: Path) -> IO[str]:
    return gzip.open(path, "rt") if path.suffix == ".gz" else open(path)


def read_csv(folder: Path, name: str) -> np.ndarray:
    """Reads a table of numbers, [lines, columns]: int64 if all are integers, else float32, as the package does. The
    program parses it, on all processors. Raises DatasetError."""
    path = _file(folder, name)
    if path is None:
        raise DatasetError(f"{folder / name}.csv.gz does not exist: the folder is not a complete set of OGB's")
    with Scratch() as scratch:
        made = scratch / "table.npy"
        try:
            run(["import", "table", "--from", path, "--no-header", "--out", made])
        except RuntimeError as error:
            raise DatasetError(f"{path}: not a table of numbers: {error}") from error
        return np.load(made)


def _words(path: Path) -> list[list[str]]:
    """Reads a short table of words, a list for each line. Raises DatasetError."""
    try:
        with _opened(path) as file:
            return [line.strip().split(",") for line in file.read(ALLOWED).splitlines() if line.strip()]
    except (EOFError, OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error


def _both_ways(rows: np.ndarray) -> np.ndarray:
    """Repeats each row, for an edge and its reverse."""
    return np.repeat(rows, 2, axis=0)


def _add_edges(arrays: Arrays, etype: Canonical, pairs: np.ndarray, inverse: bool) -> None:
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise DatasetError(f"edges of {':'.join(etype)} have the shape {pairs.shape}, and not two numbers a line")
    counts = dict(arrays.counts)
    if inverse:
        pairs = _both_ways(pairs)
        pairs[1::2] = pairs[1::2, ::-1]
    arrays.add_edges(etype, pairs[:, 0], pairs[:, 1])
    if any(arrays.counts[ntype] != counts[ntype] for ntype in (etype[0], etype[2])):
        raise DatasetError(f"edges of {':'.join(etype)} name nodes beyond {counts[etype[0]]} and {counts[etype[2]]}")


def _name(word: str) -> str:
    """node-feat, node_year -> feat, year."""
    return word[5:]


def _homogeneous(raw: Path, of: _Set) -> Arrays:
    arrays = Arrays()
    arrays.counts["_N"] = int(read_csv(raw, "num-node-list").sum())
    _add_edges(arrays, HOMOGENEOUS, read_csv(raw, "edge"), of.inverse)
    for word in ("node-feat", "edge-feat", *of.more):
        if _file(raw, word) is None:
            continue
        rows = column(read_csv(raw, word))
        if word.startswith("node"):
            arrays.node_features["_N", _name(word)] = rows
        else:
            arrays.edge_features[HOMOGENEOUS, _name(word)] = _both_ways(rows) if of.inverse else rows
    return arrays


def _typed(raw: Path, of: _Set) -> Arrays:
    arrays = Arrays()
    table, triplets = _file(raw, "num-node-dict"), _file(raw, "triplet-type-list")
    if table is None or triplets is None:
        raise DatasetError(f"{raw}: num-node-dict.csv.gz and triplet-type-list.csv.gz do not both exist")
    header, numbers = _words(table)[:2]
    for ntype, number in zip(header, numbers):
        arrays.counts[ntype] = int(number)
        folder = raw / "node-feat" / ntype
        for word in ("node-feat", *[word for word in of.more if word.startswith("node")]):
            if _file(folder, word) is not None:
                arrays.node_features[ntype, _name(word)] = column(read_csv(folder, word))
    for source, relation, target in sorted(map(tuple, _words(triplets))):
        etype, folder = (source, relation, target), raw / "relations" / f"{source}___{relation}___{target}"
        _add_edges(arrays, etype, read_csv(folder, "edge"), of.inverse)
        for word in ("edge-feat", *[word for word in of.more if word.startswith("edge")]):
            if _file(folder, word) is not None:
                arrays.edge_features[etype, _name(word)] = column(read_csv(folder, word))
    return arrays


def _binary(raw: Path) -> Arrays:
    arrays = Arrays()
    try:
        with np.load(raw / "data.npz") as data:
            arrays.counts["_N"] = int(data["num_nodes_list"].sum())
            _add_edges(arrays, HOMOGENEOUS, data["edge_index"].T, False)
            for word in data.files:
                if word.startswith("node_"):
                    arrays.node_features["_N", _name(word)] = column(data[word])
                elif word.startswith("edge_") and word != "edge_index":
                    arrays.edge_features[HOMOGENEOUS, _name(word)] = column(data[word])
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{raw / 'data.npz'}: {error}: not a binary set of OGB's") from error
    return arrays


def _labels(raw: Path) -> np.ndarray:
    if (raw / "node-label.npz").is_file():
        with np.load(raw / "node-label.npz") as data:
            return column(data["node_label"])
    return column(read_csv(raw, "node-label"))


def _node_splits(folder: Path) -> dict[str, np.ndarray]:
    return {split: read_csv(folder, word)[:, 0] for split, word in zip(("train", "val", "test"), (
        "train", "valid", "test"))}


def _add_node_targets(arrays: Arrays, folder: Path, of: _Set) -> None:
    """Adds labels and splits; in a set with types, for the types that have labels."""
    if not of.hetero:
        arrays.node_features["_N", "label"] = _labels(folder / "raw")
        masks_of(arrays, "_N", _node_splits(folder / "split" / of.split))
        return
    for labelled in sorted((folder / "raw" / "node-label").iterdir()):
        arrays.node_features[labelled.name, "label"] = _labels(labelled)
        masks_of(arrays, labelled.name, _node_splits(folder / "split" / of.split / labelled.name))


def _link_splits(folder: Path) -> dict[str, Any]:
    """Reads the package's dictionaries of links, {split: dictionary}. They are torch's files of NumPy arrays; other
    objects in them are refused."""
    import torch

    core: Any = getattr(np, "_core", None) or np.core
    allowed = [(core.multiarray._reconstruct, "numpy.core.multiarray._reconstruct"), core.multiarray._reconstruct,
               (core.multiarray.scalar, "numpy.core.multiarray.scalar"), core.multiarray.scalar, np.ndarray, np.dtype,
               *{type(np.dtype(word)) for word in "bBhHiIlLqQefd?"}]
    found = {}
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.pt"
        if not path.is_file():
            raise DatasetError(f"{path} does not exist: the folder is not a complete set of OGB's")
        with torch.serialization.safe_globals(allowed):
            found[split] = torch.load(path, weights_only=True)
    return found


def load(name: str, root: Path, download: bool, progress: Optional[bool]) -> Dataset:
    """Loads a set of SETS from its folder, such as ROOT/ogbn_products. Fetches the folder if it does not exist and
    `download` is true. Raises DatasetError and FetchError."""
    of, folder = SETS[name], root / name.replace("-", "_")
    kind = "nodeproppred" if name.startswith("ogbn") else "linkproppred"
    there(folder, download, f"{of.archive}.zip's folder {of.archive}", lambda: fetched_folder(
        f"{ADDRESS}/{kind}/{of.archive}.zip", root, folder, of.archive, progress, of.digest))
    raw = folder / "raw"
    arrays = _binary(raw) if of.binary else _typed(raw, of) if of.hetero else _homogeneous(raw, of)
    if kind == "nodeproppred":
        _add_node_targets(arrays, folder, of)
        return Dataset(name, arrays)
    return Dataset(name, arrays, splits=_link_splits(folder / "split" / of.split))
