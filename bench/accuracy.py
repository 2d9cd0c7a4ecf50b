"""Computes scores of models that are trained on Graphwire's mini-batches, on real graphs, for comparison with others.

  python bench/accuracy.py tolokers FOLDER   GraphSAGE's ROC-AUC on the test part of each split, and their mean
  python bench/accuracy.py cora FOLDER       accuracy of GraphSAGE on the public split, and of PyTorch Geometric's over
                                             the whole graph at once: the same layers, widths and updates, for each seed
  python bench/accuracy.py facebook FOLDER   the same, on a split drawn by each seed

  python bench/accuracy.py TASK FOLDER --stored float32,float16,int8_row
                                             the same model on features that are stored so, for each seed. The features
                                             of Cora and facebook, which are 0 and 1, are rows divided by their sums

FOLDER holds tolokers/tolokers.npz, cora/cora.npz or facebook/facebook.npz; $GRAPHWIRE (build/release/graphwire) imports
the graph into a temporary folder. Models are trained on sampled neighbourhoods (Cora: all neighbours). The test score
is that of the epoch with the best score on val. Evaluation uses all neighbours. Fewer --splits (seeds) or --epochs give
a quick look. With --at_least, a lower mean ends the script with status 1.

Tolokers' layers are those of the published baseline (82.43 +- 0.44; "A critical look at the evaluation of GNNs under
heterophily", 2023), but narrower and fewer. Each is a residual block: a layer norm, the row concatenated with the mean
of its neighbours, and two linear layers.

With three seeds or more, the means of Graphwire and PyTorch Geometric may differ, in either direction, by no more than
the greater of their two deviations over the seeds; else the script ends with status 1. Both start from the same
weights. The models of the stored types do too, and each type is compared with the first one in the same way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import graphwire
import numpy as np
import torch
import torch.nn.functional as F
from graphwire.nn import SAGEConv, aggregate
from torch import nn

PROGRAM = os.environ.get("GRAPHWIRE", str(Path(__file__).resolve().parents[1] / "build/release/graphwire"))


class Residual(nn.Module):
    """x + f(norm(x) concatenated with the mean of its neighbours)."""

    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.f = nn.Sequential(nn.Linear(2 * width, width), nn.Dropout(dropout), nn.GELU(), nn.Linear(width, width),
                               nn.Dropout(dropout))

    def forward(self, block, x):
        edges, normed = block.only, self.norm(x)
        return x[:edges.num_dst] + self.f(torch.cat([normed[:edges.num_dst], aggregate(edges, normed)], 1))


class Deep(nn.Module):
    """Tolokers' model: one score for each node."""

    def __init__(self, columns, classes, args):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(columns, args.hidden), nn.Dropout(args.dropout), nn.GELU())
        self.layers = nn.ModuleList(Residual(args.hidden, args.dropout) for _ in args.fan_out)
        self.last = nn.Sequential(nn.LayerNorm(args.hidden), nn.Linear(args.hidden, classes))

    def forward(self, blocks, x):
        x = self.first(x)
        for layer, block in zip(self.layers, blocks):
            x = layer(block, x)
        return self.last(x)


class Thin(nn.Linear):
    """A linear layer over sparse rows."""

    def forward(self, x):
        return torch.sparse.mm(x, self.weight.t()) + self.bias


class Flat(nn.Module):
    """GraphSAGE's layers for Cora and, after a linear layer, for facebook. layer: SAGEConv of graphwire.nn or of
    PyTorch Geometric."""

    def __init__(self, columns, classes, args, layer=SAGEConv):
        super().__init__()
        widths = [args.hidden] * len(args.fan_out) + [classes]
        if args.task == "cora":
            widths[0], self.first = columns, nn.Identity()
        else:
            self.first = Thin(columns, args.hidden)
        self.dropout = nn.Dropout(args.dropout)
        self.layers = nn.ModuleList(layer(*pair) for pair in zip(widths, widths[1:]))

    def forward(self, blocks, x):
        x = self.first(x)
        for layer, block in zip(self.layers, blocks):
            x = layer(block, self.dropout(F.relu(x)))
        return x


def roc_auc(scores, labels):
    """The probability that a positive scores above a negative; equal scores count half."""
    _, place, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    rank = (torch.cumsum(counts, 0) - (counts - 1) / 2)[place]
    positive = int(labels.sum())
    return float((rank[labels == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))


def with_real_rows(file, out):
    """Copies the arrays of Cora or facebook, with features of float32: rows divided by their sums."""
    with np.load(file) as stored:
        arrays = dict(stored)
    if "x_dim" in arrays:
        starts, columns = arrays.pop("x_indptr"), arrays.pop("x_indices")
        arrays["x"] = np.zeros((len(starts) - 1, int(arrays.pop("x_dim"))), np.float32)
        arrays["x"][np.repeat(np.arange(len(starts) - 1), np.diff(starts)), columns] = 1
    sums = arrays["x"].sum(1, keepdims=True, dtype=np.float32)
    arrays["x"] = arrays["x"].astype(np.float32, copy=False) / np.maximum(sums, 1)
    np.savez(out, **arrays)


class Task:
    """A graph, and the splits of its nodes: {"train", "val", "test": ids} for each number. stored: the type in which
    features are stored; None: as in the input."""

    def __init__(self, name, folder, args, stored=None):
        self.name, self.file, self.stored = name, Path(folder, name, f"{name}.npz"), stored
        self.place = tempfile.TemporaryDirectory()
        words = [] if name == "cora" else ["--undirected"]  # Cora's edges are stored in both directions
        words += [f"--store=feat={stored}"] if stored not in (None, "float32") else []
        source = self.file
        if stored is not None and name != "tolokers":
            source = Path(self.place.name, self.file.name)
            with_real_rows(self.file, source)
        subprocess.run([PROGRAM, "import", "--from", source, *words, "--out", f"{self.place.name}/graph", "--quiet"],
                       check=True)
        self.graph = graphwire.open(f"{self.place.name}/graph", threads=args.threads)
        self.labels = self.graph.feature("label")[:].long()
        self.x = self.inputs(self.graph.feature("feat")[:])
        self.original = self.graph.feature("orig_id")[:].numpy()
        # The whole graph as one block; row r is node r.
        self.block = graphwire.sample(self.graph, range(self.graph.num_nodes()), [-1]).blocks[0]

    def inputs(self, rows):
        """Returns the model's input for rows of the feature: Cora's divided by their sums, facebook's sparse."""
        if self.name == "facebook":
            return rows.to_sparse().float()
        rows = rows.float()
        if self.stored is not None:
            return rows
        return rows / rows.sum(1, keepdim=True).clamp(min=1) if self.name == "cora" else rows

    def split(self, number):
        if self.name == "cora":
            return {part: torch.nonzero(self.graph.feature(f"{part}_mask")[:]).flatten()
                    for part in ("train", "val", "test")}
        if self.name == "tolokers":
            with np.load(self.file) as arrays:
                masks = {part: arrays[f"{part}_masks"][number][self.original] for part in ("train", "val", "test")}
            return {part: torch.from_numpy(np.flatnonzero(mask)) for part, mask in masks.items()}
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(number))
        sixty, eighty = int(0.6 * len(order)), int(0.8 * len(order))
        return {"train": order[:sixty], "val": order[sixty:eighty], "test": order[eighty:]}

    def score(self, rows, ids):
        if self.name == "tolokers":
            return roc_auc(rows[ids, 1] - rows[ids, 0], self.labels[ids])
        return float((rows[ids].argmax(1) == self.labels[ids]).float().mean())


def sampled(task, parts, number, args):
    """Trains on mini-batches. Returns the test score of the epoch with the best val score."""
    torch.manual_seed(number)
    model = (Deep if task.name == "tolokers" else Flat)(task.x.shape[1], int(task.labels.max()) + 1, args)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, weight_decay=args.weight_decay)
    loader = graphwire.NodeLoader(task.graph, parts["train"], args.fan_out, features="feat", labels="label",
                                  batch_size=args.batch_size, shuffle=True, seed=number)

    def step(batch):
        return F.cross_entropy(model(batch.blocks, task.inputs(batch.x))[batch.seed_rows], batch.y.long())

    return learn(task, parts, args, model, optimizer, loader, step,
                 lambda: model([task.block] * len(args.fan_out), task.x))


def whole_graph(task, parts, number, args):
    """Does the same with PyTorch Geometric over all nodes at once, with as many updates."""
    from torch_geometric.nn import SAGEConv as Layer

    class Turned(Layer):
        """A layer of PyTorch Geometric that takes the graph first, as graphwire.nn's layers do."""

        def forward(self, edges, x):
            return super().forward(x, edges)

    torch.manual_seed(number)
    model = Flat(task.x.shape[1], int(task.labels.max()) + 1, args, Turned)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, weight_decay=args.weight_decay)
    everything = [task.block.only.edge_index] * len(args.fan_out)
    updates = -(-len(parts["train"]) // args.batch_size)
    return learn(task, parts, args, model, optimizer, range(updates),
                 lambda _: F.cross_entropy(model(everything, task.x)[parts["train"]], task.labels[parts["train"]]),
                 lambda: model(everything, task.x))


def learn(task, parts, args, model, optimizer, batches, loss_of, scores_of):
    best, tested = -1.0, 0.0
    for epoch in range(args.epochs):
        for batch in batches:
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (epoch + 1) % args.eval_every and epoch + 1 < args.epochs:
            continue
        model.eval()
        with torch.no_grad():
            rows = scores_of()
        model.train()
        val = task.score(rows, parts["val"])
        if args.verbose:
            test = task.score(rows, parts["test"])
            print(f"    epoch {epoch}: loss {loss.item():.4f}, val {val:.4f}, test {test:.4f}", flush=True)
        if val > best:
            best, tested = val, task.score(rows, parts["test"])
    return tested


DEFAULTS = {
    "tolokers": {"hidden": 64, "fan_out": "15,15,15", "dropout": 0.2, "lr": 0.005, "weight_decay": 0.0,
                 "batch_size": 1000, "epochs": 60},
    "cora": {"hidden": 64, "fan_out": "-1,-1", "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "batch_size": 140,
             "epochs": 60},
    "facebook": {"hidden": 64, "fan_out": "10,10", "dropout": 0.5, "lr": 0.003, "weight_decay": 0.0,
                 "batch_size": 1000, "epochs": 6}}


def alike(task, found, other="PyG"):
    """Prints the difference of the means of two ways. Returns whether it is within the deviation of the seeds."""
    if len(found) < 2 or min(map(len, found.values())) < 3:
        return True
    apart = [one - two for one, two in zip(*found.values())]
    most = max(map(statistics.stdev, found.values()))
    error = statistics.stdev(apart) / len(apart) ** 0.5
    print(f"{task}: {statistics.mean(apart):+.4f} against {other}, by seeds +- {error:.4f}; "
          f"the seeds' deviation {most:.4f}")
    return abs(statistics.mean(apart)) <= most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=DEFAULTS)
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--eval_every", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--at_least", type=float, default=0.0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--stored", default="", help="types of stored features to compare, the first one with the rest")
    for name, value in DEFAULTS["tolokers"].items():
        parser.add_argument(f"--{name}", type=type(value))
    args = parser.parse_args()
    for name, value in DEFAULTS[args.task].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.fan_out = [int(count) for count in args.fan_out.split(",")]

    if args.stored:
        tasks = {stored: Task(args.task, args.folder, args, stored) for stored in args.stored.split(",")}
        ways = {stored: (task, sampled) for stored, task in tasks.items()}
    else:
        task = Task(args.task, args.folder, args)
        ways = {"graphwire": (task, sampled)}
        if args.task != "tolokers":
            ways["PyG, whole graph"] = task, whole_graph
    found = {way: [] for way in ways}
    for number in range(args.splits):
        for way, (task, run) in ways.items():
            begun = time.time()
            found[way].append(run(task, task.split(number), number, args))
            print(f"{args.task} {number}, {way}: {found[way][-1]:.4f} ({time.time() - begun:.0f} s)", flush=True)
    for way, scores in found.items():
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        print(f"{args.task}, {way}: mean {statistics.mean(scores):.4f}, deviation {spread:.4f}")
    first, *others = ways
    if args.stored:
        pairs = [alike(f"{args.task}, {way}", {way: found[way], first: found[first]}, first) for way in others]
    else:
        pairs = [alike(args.task, found)]
    sys.exit(not all(pairs) or statistics.mean(found[first]) < args.at_least)


if __name__ == "__main__":
    main()
