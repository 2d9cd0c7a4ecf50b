"""Trains embeddings of nodes and a GraphSAGE model together, without features: DistEmbedding and SparseAdam.

  transductive_bed.py graph cora|facebook DATA OUT     writes the parts of the graph, with dgl.distributed
  transductive_bed.py train OUT SEED                   trains, and prints the accuracies of the test nodes
  transductive_bed.py compare LOG                      compares the accuracies of both systems

`python` runs it over DGL, `python -m graphwire.dgl` over Graphwire. LOG has a line "SYSTEM TASK SEED ACCURACY…" for
each training: the accuracy after two thirds of the epochs, and at the end. If both are alike, training has converged.
compare fails if the means of the last accuracies differ by more than 0.01, and by more than three standard errors of
the difference.
"""
from __future__ import annotations

import statistics
import sys
from pathlib import Path

import numpy as np

EPOCHS = {"cora": 150, "facebook": 24}
WIDTH, BATCH, LR, SPARSE_LR = 16, 1000, 0.01, 0.05


def arrays_of(task, data):
    """(src, dst, labels, masks) with edges in both directions. Cora has its public split, facebook 60, 20 and 20 %."""
    with np.load(Path(data, task, f"{task}.npz")) as given:
        labels, src, dst = (given[name].astype(np.int64) for name in ("y", "src", "dst"))
        splits = [given[name] for name in ("train_idx", "val_idx", "test_idx")] if task == "cora" else np.split(
            np.random.default_rng(1).permutation(len(labels)), [len(labels) * 6 // 10, len(labels) * 8 // 10])
    if task != "cora":
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    masks = np.zeros((3, len(labels)), bool)
    for mask, ids in zip(masks, splits):
        mask[ids] = True
    return src, dst, labels, masks


def graph(task, data, out):
    import dgl
    import torch

    src, dst, labels, masks = arrays_of(task, data)
    made = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=len(labels))
    made.ndata["labels"] = torch.from_numpy(labels)
    for name, mask in zip(("train", "val", "test"), masks):
        made.ndata[f"{name}_mask"] = torch.from_numpy(mask)
    dgl.distributed.partition_graph(made, task, 1, out, part_method="random")


def uniform(shape, dtype):
    import torch

    return torch.zeros(shape, dtype=dtype).uniform_(-1, 1)


def model_of(classes):
    import dgl
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(
                [dgl.nn.SAGEConv(WIDTH, WIDTH, "mean"), dgl.nn.SAGEConv(WIDTH, classes, "mean")])

        def forward(self, blocks, rows):
            hidden = torch.relu(self.layers[0](blocks[0], rows))
            return self.layers[1](blocks[1], torch.nn.functional.dropout(hidden, 0.5, self.training))

    return Model()


def accuracy(g, model, table, ids):
    import dgl
    import torch

    right = 0
    model.eval()
    sampler = dgl.dataloading.NeighborSampler([-1, -1])
    with torch.no_grad():
        for sources, seeds, blocks in dgl.dataloading.DistNodeDataLoader(g, ids, sampler, batch_size=BATCH):
            right += int((model(blocks, table(sources)).argmax(1) == g.ndata["labels"][seeds]).sum())
    model.train()
    return right / len(ids)


def train(out, seed):
    import dgl
    import torch

    task = next(Path(out).glob("*.json")).stem
    dgl.distributed.initialize("none")
    g = dgl.distributed.DistGraph(task, part_config=f"{out}/{task}.json")
    torch.manual_seed(seed)
    dgl.seed(seed)
    book = g.get_partition_book()
    trained, tested = (dgl.distributed.node_split(g.ndata[f"{name}_mask"], book) for name in ("train", "test"))
    table = dgl.distributed.DistEmbedding(g.num_nodes(), WIDTH, "table", uniform)
    model = model_of(int(g.ndata["labels"][torch.arange(g.num_nodes())].max()) + 1)
    sparse = dgl.distributed.optim.SparseAdam([table], lr=SPARSE_LR)
    dense = torch.optim.Adam(model.parameters(), lr=LR)
    loader = dgl.dataloading.DistNodeDataLoader(g, trained, dgl.dataloading.NeighborSampler([10, 25]), batch_size=BATCH,
                                                shuffle=True)
    found = []
    for epoch in range(1, EPOCHS[task] + 1):
        for sources, seeds, blocks in loader:
            loss = torch.nn.functional.cross_entropy(model(blocks, table(sources)), g.ndata["labels"][seeds])
            sparse.zero_grad()
            dense.zero_grad()
            loss.backward()
            sparse.step()
            dense.step()
        if epoch in (EPOCHS[task] * 2 // 3, EPOCHS[task]):
            found.append(f"{accuracy(g, model, table, tested):.4f}")
    print("accuracy", *found, flush=True)


def compare(log):
    found: dict[str, dict[str, list[float]]] = {}
    for line in Path(log).read_text().splitlines():
        system, task, _, *accuracies = line.split()
        found.setdefault(task, {}).setdefault(system, []).append(float(accuracies[-1]))
    status = 0
    for task, systems in found.items():
        means = {system: statistics.mean(ends) for system, ends in systems.items()}
        deviations = {system: statistics.stdev(ends) for system, ends in systems.items()}
        error = sum(deviation**2 / len(systems[system]) for system, deviation in deviations.items()) ** 0.5
        texts = [f"{system} {means[system]:.4f} +- {deviations[system]:.4f} ({min(ends):.4f} to {max(ends):.4f})"
                 for system, ends in systems.items()]
        alike = abs(means["graphwire"] - means["dgl"]) <= max(3 * error, 0.01)
        print(f"{'ok' if alike else 'not ok'} - transductive: {task}: {', '.join(texts)}")
        status |= not alike
    return status


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "graph":
        graph(*words)
    elif what == "train":
        train(words[0], int(words[1]))
    else:
        sys.exit(compare(*words))
