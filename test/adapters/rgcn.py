"""An R-GCN in DGL's words, for the nodes of type paper, in two forms.

    rgcn.py --form typed|homogeneous|both --part_config FILE [--standalone] [--epochs N] [--seed N]

typed: blocks with several types, GraphConv in HeteroGraphConv with the weights of a WeightBasis, as in DGL 1.
homogeneous: blocks of homogeneous ids whose edges have relations' numbers, and RelGraphConv, as in DGL 0.6.

Papers have features; nodes of other types have rows of DistEmbedding. Each rank prints "rank N: test accuracy
X" for each form.
"""

from __future__ import annotations

import argparse

import dgl
import torch
import torch.distributed as dist
from dgl import nn as dglnn
from dgl.distributed import DistDataLoader
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

WIDTH, BASES, FANOUTS = 32, 3, (6, 6)


def first_rows(shape, dtype):
    """Not a lambda, because DGL sends the function to its servers."""
    return torch.empty(shape, dtype=dtype).uniform_(-1, 1)


class Inputs(nn.Module):
    """The first layer's rows, by node type: projected features of papers, and trained rows of other nodes."""

    def __init__(self, g):
        super().__init__()
        self.g, self.project = g, nn.Linear(g.nodes["paper"].data["feat"].shape[1], WIDTH)
        self.rows = {ntype: dgl.distributed.DistEmbedding(
            g.num_nodes(ntype), WIDTH, f"rows_{ntype}", first_rows,
            g.get_node_partition_policy(ntype)) for ntype in g.ntypes if ntype != "paper"}

    def forward(self, nodes):
        return {ntype: self.project(self.g.nodes[ntype].data["feat"][ids]) if ntype == "paper" else
                self.rows[ntype](ids) for ntype, ids in nodes.items() if len(ids)}


class TypedLayer(nn.Module):
    def __init__(self, out, relations):
        super().__init__()
        self.relations, self.basis = relations, dglnn.WeightBasis((WIDTH, out), BASES, len(relations))
        self.conv = dglnn.HeteroGraphConv({name: dglnn.GraphConv(WIDTH, out, norm="right", weight=False, bias=False)
                                           for name in relations})

    def forward(self, block, rows):
        weights = {name: {"weight": weight} for name, weight in zip(self.relations, self.basis())}
        return self.conv(block, rows, mod_kwargs=weights)


class Typed(nn.Module):
    """Batches are those of dgl.dataloading."""

    def __init__(self, g, classes):
        super().__init__()
        self.inputs = Inputs(g)
        self.layers = nn.ModuleList([TypedLayer(WIDTH, g.etypes), TypedLayer(classes, g.etypes)])

    @staticmethod
    def loader(g, ids, batch_size):
        sampler = dgl.dataloading.MultiLayerNeighborSampler(list(FANOUTS))
        return dgl.dataloading.DistNodeDataLoader(g, {"paper": ids}, sampler, batch_size=batch_size, shuffle=True)

    def forward(self, batch):
        nodes, seeds, blocks = batch
        hidden = self.layers[0](blocks[0], self.inputs(nodes))
        result = self.layers[1](blocks[1], {ntype: one.relu() for ntype, one in hidden.items()})
        assert set(result) == {"paper"}  # edges of the last block end at papers
        return seeds["paper"], result["paper"]


class Homogeneous(nn.Module):
    """Batches are blocks of homogeneous ids, which the script samples."""

    def __init__(self, g, classes):
        super().__init__()
        self.inputs, self.ntypes, self.book = Inputs(g), g.ntypes, g.get_partition_book()
        self.layers = nn.ModuleList([
            dglnn.RelGraphConv(WIDTH, out, len(g.etypes), "basis", BASES, activation=activation, low_mem=True)
            for out, activation in ((WIDTH, torch.relu), (classes, None))])

    @staticmethod
    def loader(g, ids, batch_size):
        book = g.get_partition_book()

        def blocks_of(seeds):
            seeds = torch.tensor(seeds)
            nodes, blocks = book.map_to_homo_nid(seeds, "paper"), []
            for fanout in reversed(FANOUTS):
                frontier = dgl.distributed.sample_neighbors(g, nodes, fanout)
                block = dgl.to_block(frontier, nodes)
                nodes = block.srcdata[dgl.NID]
                block.edata[dgl.ETYPE], _ = book.map_to_per_etype(frontier.edata[dgl.EID][block.edata[dgl.EID]])
                blocks.insert(0, block)
            return seeds, nodes, blocks

        return DistDataLoader(ids, batch_size, shuffle=True, collate_fn=blocks_of)

    def forward(self, batch):
        seeds, nodes, blocks = batch
        kinds, ids = self.book.map_to_per_ntype(nodes)
        rows = self.inputs({ntype: ids[kinds == kind] for kind, ntype in enumerate(self.ntypes)})
        hidden = torch.empty(len(nodes), WIDTH)
        for ntype, some in rows.items():
            hidden[kinds == self.ntypes.index(ntype)] = some
        for layer, block in zip(self.layers, blocks):
            norm = 1 / block.in_degrees()[block.edges()[1].long()].unsqueeze(1)
            hidden = layer(block, hidden, block.edata[dgl.ETYPE], norm)
        return seeds, hidden


def train(g, form, epochs):
    """Trains, and returns the accuracy on all nodes of test_mask. Each trainer trains and tests its own share."""
    data, book = g.nodes["paper"].data, g.get_partition_book()
    labels = data["labels"][torch.arange(g.num_nodes("paper"))]
    share, tests = (dgl.distributed.node_split(data[name], book, ntype="paper") for name in ("train_mask", "test_mask"))
    model = form(g, int(labels.max()) + 1)
    tables = list(model.inputs.rows.values())
    whole = DistributedDataParallel(model) if dist.is_initialized() else model
    loader, test_loader = model.loader(g, share, 60), model.loader(g, tests, 200)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sparse = dgl.distributed.optim.SparseAdam(tables, lr=0.01)
    for _ in range(epochs):
        for batch in loader:
            seeds, logits = whole(batch)
            loss = cross_entropy(logits, labels[seeds])
            optimizer.zero_grad()
            sparse.zero_grad()
            loss.backward()
            optimizer.step()
            sparse.step()
    results = dgl.distributed.DistTensor(labels.shape, torch.int64, "results")
    with torch.no_grad():
        for batch in test_loader:
            seeds, logits = model(batch)
            results[seeds] = logits.argmax(1)
    g.barrier()
    every = torch.nonzero(data["test_mask"][torch.arange(len(labels))]).flatten()
    return float((results[every] == labels[every]).float().mean())


def main():
    parser = argparse.ArgumentParser()
    for name, kind, default in (("form", str, "typed"), ("part_config", str, None), ("ip_config", str, "ip_config.txt"),
                                ("graph_name", str, "papers"), ("num_servers", int, 1), ("epochs", int, 10),
                                ("seed", int, 0)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--standalone", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    dgl.seed(arguments.seed)
    dgl.distributed.initialize(arguments.ip_config)
    if not arguments.standalone:
        dist.init_process_group("gloo")
    g = dgl.distributed.DistGraph(arguments.graph_name, part_config=arguments.part_config)
    forms = {"typed": [Typed], "homogeneous": [Homogeneous], "both": [Typed, Homogeneous]}[arguments.form]
    for form in forms:
        print(f"rank {g.rank()}: test accuracy {train(g, form, arguments.epochs):.4f}", flush=True)


if __name__ == "__main__":
    main()
