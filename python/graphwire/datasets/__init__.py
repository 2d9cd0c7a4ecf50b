"""Graphs that people have: read from the folders that their own packages use, or fetched from their public addresses.

    dataset = graphwire.datasets.load("ogbn-products", root="dataset")     # dataset/ogbn_products, as ogb has it
    dataset.partition(4, "parts/", balance_train=True, balance_edges=True)

load() knows the sets by name (names() lists them): Planetoid's, OGB's of nodes and of links, Reddit, and SNAP's edge
lists as "snap:NAME". What is not there is fetched (graphwire.fetch), unless download=False. edge_list() and triples()
take files of one's own. Features are called "feat" and "label", splits "train_mask", "val_mask", "test_mask".

What is compared: arxiv.zip of OGB's with a digest that is written here. No publisher of these sets tells digests, and
so any other file is compared with itself alone: the sha256 that it had when it came is written beside it, NAME.sha256,
and holds when that file is fetched again. One that changed on the disk since is an error; one that was altered on its
way here is not noticed (OGB's addresses are http://). Planetoid's and SNAP's files keep their record; an archive goes
once it is unpacked, its record with it, and a zip's members are compared with the CRC-32 that it has of them. The files
of a folder that is there are read as they are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

from graphwire.datasets import ogb, plain, planetoid
from graphwire.datasets.dataset import Dataset, DatasetError
from graphwire.datasets.plain import edge_list, triples

__all__ = ["Dataset", "DatasetError", "edge_list", "load", "names", "triples"]

_LOADERS: dict[str, Callable[[str, Path, bool], Dataset]] = {
    **dict.fromkeys(planetoid.NAMES, planetoid.load), **dict.fromkeys(ogb.SETS, ogb.load),
    **dict.fromkeys(plain.REDDIT, plain.load_reddit)}


def names() -> list[str]:
    """The sets that load() knows; and "snap:NAME" for the edge list NAME.txt.gz of snap.stanford.edu/data."""
    return list(_LOADERS)


def load(name: str, root: str | os.PathLike = "dataset", *, download: bool = True) -> Dataset:
    """A set by name, from the folder `root`, where its own package looks for it too.

    Raises DatasetError: no such set, no files, damaged ones; FetchError: they cannot be fetched.
    """
    root = Path(root)
    if name.startswith("snap:"):
        return plain.load_snap(name, root, download)
    if name not in _LOADERS:
        raise DatasetError(f"there is no set {name!r}; there are {', '.join(_LOADERS)}, and snap:NAME")
    return _LOADERS[name](name, root, download)
