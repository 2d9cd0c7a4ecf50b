"""The part of dgl.data that reads files on disk: register_data_args, load_graphs, save_graphs, load_tensors,
save_tensors, Subset, DGLDataset, RedditDataset. Errors: DGLError, MissingError and FileNotFoundError."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphwire._files.narrow import exactly
from graphwire._files.npy import arrays_of_npz
from graphwire._files.pickles import load_torch
from graphwire._files.reading import reading
from graphwire.dgl.host import missing
from graphwire.dgl.subset.convert import graph, heterograph
from graphwire.dgl.subset.frame import DGLError
from graphwire.dgl.subset.graph import DGLGraph
from graphwire.dgl.tensor_files import read_tensors, write_tensors

_FORMAT = "graphwire-dgl-subset-1"


def register_data_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", type=str, required=False, help="the input dataset")


def load_data(args: Any) -> RedditDataset:
    """The data set that args.dataset names: "reddit" or "reddit-self-loop"; other data sets raise MissingError."""
    name = getattr(args, "dataset", None)
    if name is not None and name.startswith("reddit"):
        return RedditDataset(self_loop="self-loop" in name)
    raise missing(f"dgl.data.load_data (dataset {name!r})")


def save_graphs(filename: str, g_list: Any, labels: Mapping[str, torch.Tensor] | None = None,
                formats: Any = None) -> None:
    """Writes graphs and their columns, in a format of the subset, which DGL cannot read."""
    graphs = [g_list] if isinstance(g_list, DGLGraph) else list(g_list)
    saved = [{"nodes": dict(g._num_src), "node_data": {ntype: dict(frame) for ntype, frame in g._src_frames.items()},
              "edges": [[*etype, *g.adjacency(etype).pairs, dict(g._edge_frames[etype])]
                        for etype in g.canonical_etypes]} for g in graphs]
    os.makedirs(os.path.dirname(os.path.abspath(filename)), exist_ok=True)
    torch.save({"format": _FORMAT, "graphs": saved, "labels": dict(labels or {})}, filename)


def load_graphs(filename: str, idx_list: Sequence[int] | None = None) -> tuple[list[DGLGraph], dict[str, torch.Tensor]]:
    """Reads graphs that the subset's save_graphs wrote. Raises MissingError for DGL's own files, and DGLError for other
    files."""
    with open(filename, "rb") as file:
        if file.read(2) != b"PK":
            raise missing(f"the format of {filename}")
    with reading(filename, DGLError):
        loaded = load_torch(filename)
        if not isinstance(loaded, dict) or loaded.get("format") != _FORMAT:
            raise DGLError(f"{filename} was not written by save_graphs")
        graphs = []
        for number, one in enumerate(loaded["graphs"]):
            if idx_list is not None and number not in idx_list:
                continue
            made = heterograph({(src, name, dst): (u, v) for src, name, dst, u, v, _ in one["edges"]}, one["nodes"])
            for ntype, columns in one["node_data"].items():
                made._src_frames[ntype].update(columns)
            for src, name, dst, _, _, columns in one["edges"]:
                made._edge_frames[src, name, dst].update(columns)
            graphs.append(made)
        return graphs, loaded["labels"]


def save_tensors(filename: str, tensor_dict: Mapping[str, torch.Tensor]) -> bool:
    """Writes {name: tensor of numbers} to a file, which DGL reads too."""
    write_tensors(filename, {name: rows.detach().cpu().numpy() for name, rows in tensor_dict.items()})
    return True


def load_tensors(filename: str, return_dict: bool = True) -> dict[str, torch.Tensor]:
    """Reads a file of save_tensors, of the subset or of DGL."""
    return {name: torch.from_numpy(rows.copy()) for name, rows in read_tensors(filename).items()}


class DGLDataset:
    """The base of data sets that read files of their own: process() makes the items that a derived class returns.

    name, raw_dir, force_reload, verbose: attributes. A raw_dir of None is ~/.dgl. url and save_dir are not used, since
    the subset downloads and caches nothing.
    """

    def __init__(self, name: str, url: str | None = None, raw_dir: str | None = None, save_dir: str | None = None,
                 hash_key: Any = (), force_reload: bool = False, verbose: bool = False, transform: Any = None):
        self.name, self.url, self.hash_key = name, url, hash_key
        self.raw_dir = str(Path.home() / ".dgl") if raw_dir is None else raw_dir
        self.save_dir, self.force_reload, self.verbose = save_dir or self.raw_dir, force_reload, verbose
        self._transform = transform
        if self.has_cache() and not force_reload:
            self.load()
        else:
            self.process()
            self.save()

    def has_cache(self) -> bool:
        return False

    def load(self) -> None:
        """Reads what save() has written."""

    def save(self) -> None:
        """Writes the items to a file, if the derived class wants to."""

    def process(self) -> None:
        raise NotImplementedError


class Subset:
    """The items of a data set at the given indices."""

    def __init__(self, dataset: Any, indices: Any):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, item: int) -> Any:
        return self.dataset[self.indices[item]]

    def __len__(self) -> int:
        return len(self.indices)


class RedditDataset:
    """Reads reddit_graph.npz, or reddit_self_loop_graph.npz with self_loop, and reddit_data.npz from raw_dir/reddit."""

    num_classes = num_labels = 41

    def __init__(self, self_loop: bool = False, raw_dir: str | None = None, force_reload: bool = False,
                 verbose: bool = False, transform: Any = None):
        folder = Path(raw_dir or os.environ.get("DGL_DOWNLOAD_DIR") or Path.home() / ".dgl")
        word = "_self_loop" if self_loop else ""
        found = [path for path in (folder / f"reddit{word}", folder / "reddit", folder)
                 if (path / f"reddit{word}_graph.npz").exists()]
        if not found:
            raise FileNotFoundError(f"reddit{word}_graph.npz is not in {folder}: unpack DGL's reddit{word}.zip there, "
                                    "or name another folder, raw_dir=")
        data = arrays_of_npz(found[0] / "reddit_data.npz", DGLError)
        edges = arrays_of_npz(found[0] / f"reddit{word}_graph.npz", DGLError)
        with reading(found[0], DGLError, what="its files do not fit each other"):
            self._graph = graph((edges["row"], edges["col"]), num_nodes=len(data["label"]))
            self._graph.ndata["feat"] = torch.from_numpy(np.asarray(data["feature"], np.float32))
            self._graph.ndata["label"] = torch.from_numpy(exactly(
                data["label"], np.int64, lambda row, value: ValueError(f"row {row} of label is {value}")))
            for number, name in enumerate(("train", "val", "test"), 1):
                self._graph.ndata[f"{name}_mask"] = torch.from_numpy(data["node_types"] == number)

    def __getitem__(self, item: int) -> DGLGraph:
        if item != 0:
            raise IndexError("Reddit Dataset only has one graph")
        return self._graph

    def __len__(self) -> int:
        return 1


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing(f"dgl.data.{name}")
