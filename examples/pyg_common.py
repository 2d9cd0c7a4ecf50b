"""The common part of the examples for PyTorch Geometric: options, the loaders' import, data, figures of several seeds.

The scripts are written against PyG's loaders. --pyg imports these; without it, Graphwire's take their place, and
nothing else changes. PyG's own loaders need pyg-lib or torch-sparse.
"""

from __future__ import annotations

import argparse
import statistics

import torch
from torch_geometric.data import Data, HeteroData


def options(text, fan_out):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--pyg", action="store_true", help="PyTorch Geometric's own loaders")
    parser.add_argument("--data", help="a file that torch.save has written, with a Data or a HeteroData; default: "
                        "communities that the script draws")
    parser.add_argument("--num_nodes", type=int, default=2000, help="nodes of the communities")
    parser.add_argument("--fan_out", default=fan_out, help="neighbours of each hop, from the seeds outwards; -1: all")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--num_epochs", type=int, default=5)
    parser.add_argument("--num_hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=1, help="train so many times, each with another seed")
    return parser


def parse(parser, arguments=None):
    args = parser.parse_args(arguments)
    args.fan_out = [int(count) for count in args.fan_out.split(",")]
    return args


def loaders(args):
    """(NeighborLoader, LinkNeighborLoader). This import is all that --pyg changes."""
    if args.pyg:
        from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
    else:
        from graphwire.pyg import LinkNeighborLoader, NeighborLoader
    return NeighborLoader, LinkNeighborLoader


def read(args, make):
    """The data of --data, else make(number of nodes)."""
    return torch.load(args.data, weights_only=False) if args.data else make(args.num_nodes)


# Communities: most edges stay within one, and a feature shows it with noise, so that neighbours help.
CLASSES = 5


def _edges(sources, targets, each):
    """[2, each * targets]: an edge comes from the target's own community in 8 of 10 cases."""
    dst = torch.arange(len(targets)).repeat_interleave(each)
    src = torch.randint(len(sources), dst.shape)
    order = torch.argsort(sources, stable=True)
    counts = torch.bincount(sources, minlength=CLASSES)
    begin = torch.cumsum(counts, 0) - counts
    own = targets[dst]
    near = order[begin[own] + (torch.rand(dst.shape) * counts[own]).long()]
    return torch.stack([torch.where(torch.rand(dst.shape) < 0.8, near, src), dst])


def _features(labels):
    return torch.eye(CLASSES)[labels] + 1.5 * torch.randn(len(labels), CLASSES)


def communities(count):
    """A homogeneous graph with labels and masks."""
    torch.manual_seed(0)
    y, part = torch.randint(CLASSES, (count,)), torch.rand(count)
    edges = _edges(y, y, 6)
    return Data(x=_features(y), y=y, edge_index=torch.cat([edges, edges.flip(0)], 1), train_mask=part < 0.6,
                val_mask=(part >= 0.6) & (part < 0.8), test_mask=part >= 0.8)


def papers(count):
    """Papers, which have labels and masks, and their authors, who have features of another width."""
    torch.manual_seed(0)
    of = {"paper": torch.randint(CLASSES, (count,)), "author": torch.randint(CLASSES, (count // 2,))}
    part, data = torch.rand(count), HeteroData()
    data["paper"].x, data["paper"].y = torch.rand(count, 4), of["paper"]
    data["author"].x = _features(of["author"])
    data["paper"].train_mask, data["paper"].test_mask = part < 0.7, part >= 0.7
    data["author", "writes", "paper"].edge_index = _edges(of["author"], of["paper"], 3)
    data["paper", "written_by", "author"].edge_index = data["author", "writes", "paper"].edge_index.flip(0)
    data["paper", "cites", "paper"].edge_index = _edges(of["paper"], of["paper"], 3)
    return data


def report(args, what, train):
    """Trains with each seed: train(seed) returns the figure. Prints mean and standard deviation."""
    found = []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        found.append(train(seed))
    spread = f" +- {statistics.stdev(found):.4f} over {len(found)} seeds" if len(found) > 1 else ""
    print(f"{what} {statistics.mean(found):.4f}{spread}", flush=True)
    return found
