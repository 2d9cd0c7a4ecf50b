"""Public data sets: read from the folders that their own packages use, or fetched from their public addresses.

    dataset = graphwire.datasets.load("ogbn-products", root="dataset")     # dataset/ogbn_products, as ogb has it
    dataset.partition(4, "parts/", balance_train=True, balance_edges=True)

load() knows the sets by name: Planetoid's, OGB's sets of nodes and of links, Reddit, and SNAP's edge lists as
"snap:NAME". names() lists them. Missing files are fetched (graphwire.fetch), unless download=False. edge_list() and
triples() read the caller's own files. Features are named "feat" and "label", and splits "train_mask", "val_mask" and
"test_mask".

Integrity of fetched files:

    - OGB's arxiv.zip is compared with a digest that this package contains.
    - No publisher of these sets provides digests. So the sha256 of each other file is recorded in NAME.sha256 when the
      file is received, and later calls of fetch compare the file with it. A file that has changed on the disk is an
      error. A file that was altered on its way is not noticed; OGB's addresses are http://.
    - Planetoid's and SNAP's files keep their record. An archive and its record are removed when the archive is
      unpacked. The members of a zip file are compared with its CRC-32 sums.
    - The files of an existing folder are read without a comparison.

Errors: DatasetError; graphwire.fetch.FetchError.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Optional

from graphwire._base.keywords import keywords
from graphwire.datasets import ogb, plain, planetoid
from graphwire.datasets.dataset import Dataset, DatasetError
from graphwire.datasets.plain import edge_list, triples

__all__ = ["Dataset", "DatasetError", "edge_list", "load", "names", "triples"]

_LOADERS: dict[str, Callable[[str, Path, bool, Optional[bool]], Dataset]] = {
    **dict.fromkeys(planetoid.NAMES, planetoid.load), **dict.fromkeys(ogb.SETS, ogb.load),
    **dict.fromkeys(plain.REDDIT, plain.load_reddit)}


def names() -> list[str]:
    """The names that load() knows. load() also takes "snap:NAME", for the edge list NAME.txt.gz of
    snap.stanford.edu/data.
    """
    return list(_LOADERS)


@keywords
def load(name: str, root: str | os.PathLike = "dataset", *, download: bool = True,
         progress: Optional[bool] = None) -> Dataset:
    """Loads a data set by name.

    name: one of names(), or "snap:NAME".
    root: the folder of data sets; the set's own package finds its files there too.
    download: fetch missing files.
    progress: a bar of tqdm for each file that is fetched, if tqdm is installed. None: on a terminal and in a notebook;
        True: always; False: never.

    Raises DatasetError if the set is unknown, or its files are missing or damaged; FetchError if they cannot be
    fetched.
    """
    root = Path(root)
    if name.startswith("snap:"):
        return plain.load_snap(name, root, download, progress)
    if name not in _LOADERS:
        raise DatasetError(f"there is no set {name!r}; the sets are {', '.join(_LOADERS)}, and snap:NAME")
    return _LOADERS[name](name, root, download, progress)
