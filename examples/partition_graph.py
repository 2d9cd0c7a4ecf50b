"""Divides a data set into parts, with the options and data sets' names of DGL's partition_graph.py.

    python examples/partition_graph.py --dataset ogb-product --num_parts 4 --balance_train --balance_edges

The script reads the data set from its own package's folder in --root, and fetches it if the folder does not exist. If
--dataset is a JSON file, the script converts parts that DGL itself has written. It writes OUTPUT/NAME.json, where NAME
is the data set's name. Features have the names that DGL's training scripts use, "features" and "labels".
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import graphwire
import graphwire.dgl
import numpy as np
from common import read_options

ALIASES = {"ogb-product": "ogbn-products", "ogb-products": "ogbn-products", "ogb-paper100M": "ogbn-papers100M",
           "ogb-arxiv": "ogbn-arxiv", "reddit": "reddit_self_loop"}
SPLITS = {"train": "train", "valid": "val", "test": "test"}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--dataset", default="reddit",
                        help=f"{', '.join(ALIASES)}, {', '.join(graphwire.datasets.names())}, snap:NAME, or a JSON")
    parser.add_argument("--num_parts", type=int, default=4, help="number of partitions")
    parser.add_argument("--part_method", default="metis", help="metis or random")
    parser.add_argument("--balance_train", action="store_true", help="give each part about as many training nodes")
    parser.add_argument("--undirected", action="store_true", help="every edge in both directions")
    parser.add_argument("--balance_edges", action="store_true", help="give each part about as many edges")
    parser.add_argument("--num_trainers_per_machine", type=int, default=1, help="pieces of each part")
    parser.add_argument("--weight", action="append", default=[], metavar="[SRC:REL:DST:]NAME",
                        help="an edge feature of numbers >= 0, for draws by weight; 8 bytes an edge; may be repeated")
    parser.add_argument("--output", default="data", help="the folder of the parts")
    parser.add_argument("--root", default="dataset", help="the folder of data sets")
    parser.add_argument("--no_download", action="store_true", help="fail if the data set's files are missing")
    return parser


def renamed(dataset):
    """Renames the features for DGL's scripts. A data set of files has no features, and is returned unchanged."""
    return dataset.renamed({"feat": "features", "label": "labels"}) if dataset.arrays is not None else dataset


def print_sizes(dataset):
    """Prints the sizes of the graph and of its splits, in the format of DGL's script."""
    nodes, edges = dataset.arrays.counts, dataset.arrays.edges
    print(f"|V|={sum(nodes.values())}, |E|={sum(len(src) for src, _ in edges.values())}")
    counts = {split: sum(int(np.count_nonzero(rows)) for (_, name), rows in dataset.arrays.node_features.items()
                         if name == f"{word}_mask") for split, word in SPLITS.items()}
    print(", ".join(f"{split}: {count}" for split, count in counts.items()))


def main():
    args = read_options(options())
    chosen = {"method": args.part_method, "balance_train": args.balance_train, "balance_edges": args.balance_edges,
              "num_trainers_per_machine": args.num_trainers_per_machine, "undirected": args.undirected,
              "weight": args.weight, "transpose": True}  # also store edges by source, as DGL's parts do
    start = time.time()
    if args.dataset.endswith(".json"):
        print(graphwire.dgl.convert_parts(args.dataset, args.output, num_parts=args.num_parts, **chosen))
        return
    dataset = renamed(graphwire.datasets.load(ALIASES.get(args.dataset, args.dataset), args.root,
                                              download=not args.no_download))
    print(f"load {args.dataset} takes {time.time() - start:.3f} seconds")
    if dataset.arrays is not None:
        print_sizes(dataset)
    name = Path(args.dataset.partition(":")[2] or args.dataset).name
    print(dataset.partition(args.num_parts, args.output, name=name, **chosen))


if __name__ == "__main__":
    main()
