"""A generated graph of three node types, for R-GCNs. Classes of papers show in features, with noise, and in edges.

    papers.py FOLDER PARTS    writes it in random parts, by the dgl that the program has
"""

from __future__ import annotations

import sys

import torch

PAPERS, CLASSES = 900, 5


def graph_of_papers():
    import dgl

    random = torch.Generator().manual_seed(8)
    label = {ntype: torch.randint(0, CLASSES, (count,), generator=random)
             for ntype, count in (("paper", PAPERS), ("author", 300), ("field", 20))}

    def ends(src, dst, count, noise):
        pairs = [torch.randint(0, len(label[ntype]), (9 * count,), generator=random) for ntype in (src, dst)]
        stay = (label[src][pairs[0]] == label[dst][pairs[1]]) | (torch.rand(9 * count, generator=random) < noise)
        return tuple(some[stay][:count] for some in pairs)

    edges = {}
    for (src, relation, dst), count, noise in ((("author", "writes", "paper"), 2000, 0.15),
                                               (("paper", "cites", "paper"), 2500, 0.2),
                                               (("paper", "has", "field"), 1500, 0.3)):
        edges[src, relation, dst] = ends(src, dst, count, noise)
        edges[dst, f"rev-{relation}", src] = edges[src, relation, dst][::-1]
    g = dgl.heterograph(edges, {ntype: len(rows) for ntype, rows in label.items()})
    rows = torch.randn(PAPERS, 16, generator=random) + 2 * torch.eye(16)[label["paper"]]
    order = torch.randperm(PAPERS, generator=random)
    masks = {"train_mask": order < 400, "val_mask": (order >= 400) & (order < 500), "test_mask": order >= 500}
    g.nodes["paper"].data.update({"feat": rows, "labels": label["paper"], **masks})
    return g


if __name__ == "__main__":
    import dgl.distributed

    dgl.distributed.partition_graph(graph_of_papers(), "g", int(sys.argv[2]), sys.argv[1], part_method="random")
