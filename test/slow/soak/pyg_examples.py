"""Runs an example of PyTorch Geometric with Graphwire's loaders, on data that this file makes in place of a download.

    python pyg_examples.py memory|servers EXAMPLE.py [ARGUMENT…]

    a made data set, PyG's name of a loader is Graphwire's -> the example, unedited -> its last figure beats a guess

The nodes of a class are near each other and alike, so that an example can learn. With "servers" the loaders get a Graph
of two parts on two servers in place of data in memory, with the same arguments.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
import tempfile
import types
import warnings
from pathlib import Path

import graphwire
import torch
import torch_geometric.datasets
import torch_geometric.loader
from pyg_served import Served
from torch_geometric.data import Data, HeteroData

CLASSES, WIDTH = 4, 16
FIGURE = re.compile(r"(Test Accuracy|Test F1|[Tt]est|Val): ([\d.]+)")
# The least of an example's last figure, where few steps suffice to learn; a guess has 0.25.
WANTED = {"graph_sage_unsup": ("Test", 0.5), "graph_sage_unsup_ppi": ("Test F1", 0.4), "reddit": ("Test", 0.5),
          "cluster_gcn_reddit": ("test", 0.5), "infomax_inductive": ("Test Accuracy", 0.5),
          "hierarchical_sampling": (None, 0), "ogbn_train": ("Test Accuracy", 50), "to_hetero_mag": ("Val", 0.5),
          "hierarchical_sage": ("Val", 0.5), "bipartite_sage_unsup": (None, 0), "temporal_link_pred": (None, 0),
          "recommender_system": (None, 0)}


def rows(classes):
    return torch.nn.functional.one_hot(classes, CLASSES).float().repeat(1, WIDTH // CLASSES) + (
        torch.randn(len(classes), WIDTH) / 2)


def ends(one, other, count):
    """Edges, most of them between nodes of one class: [2, count]."""
    some = torch.stack([torch.randint(0, len(one), (8 * count,)), torch.randint(0, len(other), (8 * count,))])
    near = (one[some[0]] == other[some[1]]) | (torch.rand(8 * count) < 0.05)
    return some[:, near][:, :count]


def masks(store, count):
    part = torch.randint(0, 10, (count,))
    store.train_mask, store.val_mask, store.test_mask = part < 6, (part == 6) | (part == 7), part > 7


def classes_of(count):
    return (torch.arange(count) * CLASSES // count)


def one_type(count=600, labels=None):
    classes = classes_of(count)
    edges = ends(classes, classes, 5 * count)
    data = Data(x=rows(classes), edge_index=torch.cat([edges, edges.flip(0)], 1).unique(dim=1), y=classes)
    if labels:
        data.y = torch.nn.functional.one_hot(classes, labels).float()
    else:
        masks(data, count)
    return data


def papers():
    data = HeteroData()
    classes = {ntype: classes_of(count) for ntype, count in (
        ("paper", 800), ("author", 500), ("institution", 40), ("field_of_study", 60))}
    for ntype, some in classes.items():
        data[ntype].x = rows(some)
    data["paper"].y = classes["paper"]
    masks(data["paper"], 800)
    for kind in (("author", "affiliated_with", "institution"), ("author", "writes", "paper"),
                 ("paper", "cites", "paper"), ("paper", "has_topic", "field_of_study")):
        data[kind].edge_index = ends(classes[kind[0]], classes[kind[2]], 3000)
    return data


def ratings():
    data, users, movies = HeteroData(), classes_of(120), classes_of(200)
    data["movie"].x, data["user"].num_nodes = rows(movies), 120
    kind = "user", "rates", "movie"
    some = torch.stack([torch.randint(0, 120, (6000,)), torch.randint(0, 200, (6000,))]).unique(dim=1)
    some = some[:, torch.randperm(some.shape[1])]
    data[kind].edge_index = some
    data[kind].edge_label = torch.where(users[some[0]] == movies[some[1]], 5, 1)
    data[kind].time = torch.arange(some.shape[1]) + 1_000_000
    return data


def purchases():
    data, users, items = HeteroData(), classes_of(300), classes_of(120)
    data["user"].num_nodes, data["item"].num_nodes, data["category"].num_nodes = 300, 120, 4
    some = ends(users, items, 6000).unique(dim=1)
    data["user", "item"].edge_index = some
    data["user", "item"].time = data["user", "item"].behavior = torch.zeros(some.shape[1], dtype=torch.long)
    data["item", "category"].edge_index = torch.stack([torch.arange(120), items])
    return data


class Made:
    """A data set of one graph, or of several."""

    num_features = num_node_features = WIDTH
    num_classes = CLASSES
    made = staticmethod(one_type)

    def __init__(self, root=None, *_, transform=None, **__):
        self.processed_dir = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
        self._transform = transform or (lambda data: data)

    def __len__(self):
        return 1

    def __getitem__(self, at):
        if at >= len(self):
            raise IndexError(at)
        return self._transform(self.made())

    def get_idx_split(self):
        part = torch.arange(600) % 10
        return {"train": (part < 6).nonzero().view(-1), "valid": (part == 6).nonzero().view(-1),
                "test": (part > 6).nonzero().view(-1)}


class Proteins(Made):
    made = staticmethod(lambda: one_type(200, CLASSES))

    def __len__(self):
        return 3


def set_of(made):
    return type("Made", (Made,), {"made": staticmethod(made)})


def replace(over):
    """Replaces data sets and loaders; returns the Served of graphs."""
    served, datasets = Served(), torch_geometric.datasets
    datasets.Planetoid = datasets.Reddit = Made
    datasets.PPI, datasets.OGB_MAG = Proteins, set_of(papers)
    datasets.MovieLens, datasets.Taobao = set_of(ratings), set_of(purchases)
    ogb = types.ModuleType("ogb.nodeproppred")
    ogb.PygNodePropPredDataset = Made
    sys.modules["ogb.nodeproppred"] = ogb
    # Its METIS is that of pyg-lib or torch-sparse.
    torch_geometric.loader.ClusterData._metis = lambda self, edges, count: torch.arange(count) * self.num_parts // count
    for name in "NeighborLoader", "LinkNeighborLoader":
        ours = getattr(graphwire.pyg, name)
        setattr(torch_geometric.loader, name, served.loader(ours) if over == "servers" else ours)
    return served


def main(over, example, *arguments):
    name, out = Path(example).stem, io.StringIO()
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"] = folder
        os.chdir(folder)
        served = replace(over)
        sys.argv = [example, *arguments]
        sys.path.insert(0, str(Path(example).parent))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                runpy.run_path(example, run_name="__main__")
        finally:
            served.close()
        found = {word: float(value) for word, value in FIGURE.findall(out.getvalue())}
        word, least = WANTED[name]
        value = found.get(word, 0.0)
        if value < least:
            raise SystemExit(f"{word}: {value}, wanted {least}")
    print(f"{name}: {'it ends' if word is None else f'{word} {value}'}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
