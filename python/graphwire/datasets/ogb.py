"""The Open Graph Benchmark's sets of nodes and links, from the folders of its package, such as
ROOT/ogbn_products/{raw,split}.

raw/*.csv.gz, or data.npz for a binary set -> Arrays -> labels and splits -> Dataset

A set is homogeneous, or has a folder for each type. Edges are in both directions if the package adds the reverse
direction. Features are named "feat" and "label"; others have the package's name without "node_" or "edge_".

Errors: DatasetError, which names the file; FetchError.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO, Any, NamedTuple, Optional

import numpy as np

from graphwire._base.scratch import Scratch
from graphwire._files import pickles
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays, Canonical
from graphwire._files.npy import arrays_of_npz
from graphwire._files.reading import reading
from graphwire._files.running import run
from graphwire.datasets.dataset import Dataset, DatasetError, check_rows, column, fetched_folder, masks_of, there

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
    with reading(path, DatasetError), _opened(path) as file:
        return [line.strip().split(",") for line in file.read(ALLOWED).splitlines() if line.strip()]


def _integers(folder: Path, name: str, columns: int) -> np.ndarray:
    """Reads a table of integers, [lines, columns]. Raises DatasetError."""
    rows = read_csv(folder, name)
    if rows.dtype.kind != "i" or rows.ndim != 2 or rows.shape[1] != columns:
        raise DatasetError(f"{_file(folder, name)}: expected {columns} integers a line, not {rows.dtype} "
                           f"{list(rows.shape)}")
    return rows


def _both_ways(rows: np.ndarray) -> np.ndarray:
    """Repeats each row, for an edge and its reverse."""
    return np.repeat(rows, 2, axis=0)


def _add_edges(arrays: Arrays, etype: Canonical, pairs: np.ndarray, inverse: bool, place: Path) -> None:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise DatasetError(f"{place}: edges of {':'.join(etype)} are {pairs.dtype} of the shape {pairs.shape}, and not "
                           "two integers a line")
    counts = dict(arrays.counts)
    for ntype, ids in zip((etype[0], etype[2]), pairs.T):
        if len(ids) and not 0 <= ids.min() <= ids.max() < counts.get(ntype, 0):
            raise DatasetError(f"{place}: edges of {':'.join(etype)} name nodes outside the {counts.get(ntype, 0)} of "
                               f"{ntype}")
    if inverse:
        pairs = _both_ways(pairs)
        pairs[1::2] = pairs[1::2, ::-1]
    arrays.add_edges(etype, pairs[:, 0], pairs[:, 1])


def _name(word: str) -> str:
    """node-feat, node_year -> feat, year."""
    return word[5:]


def _count(raw: Path, numbers: np.ndarray) -> int:
    if not len(numbers) or numbers.min() < 0 or numbers.sum() < 0:
        raise DatasetError(f"{raw}: the number of nodes is no such number")
    return int(numbers.sum())


def _homogeneous(raw: Path, of: _Set) -> Arrays:
    arrays = Arrays()
    arrays.counts["_N"] = _count(raw, _integers(raw, "num-node-list", 1))
    _add_edges(arrays, HOMOGENEOUS, read_csv(raw, "edge"), of.inverse, raw)
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
    with reading(table, DatasetError, what="expected names of node types and their numbers of nodes"):
        header, numbers = _words(table)[:2]
        counts = dict(zip(header, np.array(list(map(int, numbers)), np.int64)))
    for ntype, number in counts.items():
        arrays.counts[ntype] = _count(raw, number.reshape(1))
        folder = raw / "node-feat" / ntype
        for word in ("node-feat", *[word for word in of.more if word.startswith("node")]):
            if _file(folder, word) is not None:
                arrays.node_features[ntype, _name(word)] = column(read_csv(folder, word))
    for words in sorted(_words(triplets)):
        if len(words) != 3 or not {words[0], words[2]} <= arrays.counts.keys():
            raise DatasetError(f"{triplets}: expected source, relation and target, not {words}")
        source, relation, target = words
        etype, folder = (source, relation, target), raw / "relations" / f"{source}___{relation}___{target}"
        _add_edges(arrays, etype, read_csv(folder, "edge"), of.inverse, folder)
        for word in ("edge-feat", *[word for word in of.more if word.startswith("edge")]):
            if _file(folder, word) is not None:
                arrays.edge_features[etype, _name(word)] = column(read_csv(folder, word))
    return arrays


def _binary(raw: Path) -> Arrays:
    arrays, data = Arrays(), arrays_of_npz(raw / "data.npz", DatasetError)
    with reading(raw / "data.npz", DatasetError, what="not a binary set of OGB's"):
        arrays.counts["_N"] = _count(raw, data["num_nodes_list"])
        _add_edges(arrays, HOMOGENEOUS, data["edge_index"].T, False, raw / "data.npz")
        for word, rows in data.items():
            if word.startswith("node_"):
                arrays.node_features["_N", _name(word)] = column(rows)
            elif word.startswith("edge_") and word != "edge_index":
                arrays.edge_features[HOMOGENEOUS, _name(word)] = column(rows)
    return arrays


def _labels(raw: Path) -> np.ndarray:
    if (raw / "node-label.npz").is_file():
        return column(arrays_of_npz(raw / "node-label.npz", DatasetError, "node_label")["node_label"])
    return column(read_csv(raw, "node-label"))


def _node_splits(folder: Path) -> dict[str, np.ndarray]:
    return {split: _integers(folder, word, 1)[:, 0] for split, word in zip(("train", "val", "test"), (
        "train", "valid", "test"))}


def _add_node_targets(arrays: Arrays, folder: Path, of: _Set) -> None:
    """Adds labels and splits; in a set with types, for the types that have labels."""
    raw, split = folder / "raw", folder / "split" / of.split
    places = {"_N": (raw, split)}
    if of.hetero:
        with reading(raw / "node-label", DatasetError):
            places = {path.name: (path, split / path.name) for path in sorted((raw / "node-label").iterdir())}
    for ntype, (labels, splits) in places.items():
        with reading(splits, DatasetError, what="it does not fit the nodes"):
            arrays.node_features[ntype, "label"] = _labels(labels)
            check_rows(arrays)
            masks_of(arrays, ntype, _node_splits(splits))


def _link_splits(folder: Path) -> dict[str, Any]:
    """Reads the package's dictionaries of links, {split: dictionary}. They are torch's files of NumPy arrays of
    numbers; other objects in them are refused."""
    found = {}
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.pt"
        if not path.is_file():
            raise DatasetError(f"{path} does not exist: the folder is not a complete set of OGB's")
        with reading(path, DatasetError):
            found[split] = pickles.load_torch(path, arrays=True)
            if not isinstance(found[split], dict):
                raise ValueError("it is no dictionary of links")
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
    with reading(raw, DatasetError, what="its files do not fit each other"):
        check_rows(arrays)
    if kind == "nodeproppred":
        _add_node_targets(arrays, folder, of)
        return Dataset(name, arrays)
    return Dataset(name, arrays, splits=_link_splits(folder / "split" / of.split))
