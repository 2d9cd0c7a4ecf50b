"""Compares the layers of graphwire.nn and its sparse optimizers with DGL's, with the same weights: values, and
gradients of inputs and weights, to 1e-5.

dgl_layers.py PARTS      PARTS: a graph's folder. Needs a Python with DGL, and graphwire on PYTHONPATH.
                         bench/peers/run layers runs it; test/adapters does so if DGL is installed

Prints a line for each comparison. Exit status 1 if one fails.
"""
import sys

import dgl
import dgl.nn.pytorch as dglnn
import graphwire
import numpy as np
import torch
from dgl.optim import SparseAdam
from graphwire import nn
from graphwire.batch import Block, Edges

SRC, DST, EDGES, WIDE, OUT = 60, 35, 400, 7, 5
different = []


def apart(found, expected):
    """The greatest difference."""
    return (found - expected).abs().max().item()


def share_apart(found, expected):
    """The greatest difference, for sums of many numbers, whose rounding error grows with the sums. It is divided by the
    greatest expected value if that is above 1."""
    return apart(found, expected) / max(1.0, expected.abs().max().item())


def report(name, found, limit=1e-5):
    """Prints a difference, and records it if it exceeds the limit."""
    if found > limit:
        different.append(name)
    print(f"{'ok' if found <= limit else 'not ok'} - {name}: {found:.1e} apart")


def random_edges(seed, etype="a:r:a"):
    random = np.random.default_rng(seed)
    dst = np.sort(random.integers(0, DST, EDGES))
    indptr = torch.from_numpy(np.searchsorted(dst, np.arange(DST + 1)))
    return Edges(etype, ("a", "a"), (SRC, DST), (indptr, torch.from_numpy(random.integers(0, SRC, EDGES)),
                                                 torch.arange(EDGES)))


def block_of(edges):
    return dgl.create_block((edges.indices, edges.dst), num_src_nodes=SRC, num_dst_nodes=DST)


class Weights:
    """Pairs of weights, ours and DGL's. DGL's get our values. turned: DGL's weight is the transpose of ours."""

    def __init__(self):
        self.pairs = []

    def copy(self, ours, theirs, turned=False):
        with torch.no_grad():
            theirs.copy_(ours.T if turned else ours)
        self.pairs.append((ours, theirs, turned))

    def report(self, name, found, expected, *inputs):
        """Compares the values, and the gradients of a weighted sum of the values."""
        report(name, apart(found, expected))
        factors = torch.linspace(-1, 1, found.numel()).view_as(found)
        ours = torch.autograd.grad((found * factors).sum(), [*inputs, *(pair[0] for pair in self.pairs)])
        theirs = torch.autograd.grad((expected * factors).sum(), [*inputs, *(pair[1] for pair in self.pairs)])
        turned = [False] * len(inputs) + [pair[2] for pair in self.pairs]
        shares = [share_apart(a.T if turn else a, b) for a, b, turn in zip(ours, theirs, turned)]
        report(f"{name}, gradients", max(shares))


def sage(edges, x):
    ours, theirs, weights = nn.SAGEConv(WIDE, OUT), dglnn.SAGEConv(WIDE, OUT, "mean"), Weights()
    weights.copy(ours.lin_neigh.weight, theirs.fc_neigh.weight)
    weights.copy(ours.lin_self.weight, theirs.fc_self.weight)
    weights.copy(ours.lin_neigh.bias, theirs.bias if theirs.fc_self.bias is None else theirs.fc_self.bias)
    weights.report("SAGEConv", ours(edges, x), theirs(block_of(edges), (x, x[:DST])), x)


def graph_conv(edges, x):
    for norm in ("both", "right", "none"):
        ours, theirs = nn.GraphConv(WIDE, OUT, norm), dglnn.GraphConv(WIDE, OUT, norm, allow_zero_in_degree=True)
        weights = Weights()
        weights.copy(ours.lin.weight, theirs.weight, turned=True)
        weights.copy(ours.bias, theirs.bias)
        weights.report(f"GraphConv {norm}", ours(edges, x), theirs(block_of(edges), (x, x[:DST])), x)
        factor = torch.rand(EDGES, requires_grad=True)
        weights.report(f"GraphConv {norm}, weighted", ours(edges, x, factor),
                     theirs(block_of(edges), (x, x[:DST]), edge_weight=factor), x, factor)


def gat(edges, x):
    ours, theirs = nn.GATConv(WIDE, OUT, 3), dglnn.GATConv(WIDE, OUT, 3, allow_zero_in_degree=True)
    weights = Weights()
    weights.copy(ours.lin.weight, theirs.fc.weight)
    weights.copy(ours.att_src, theirs.attn_l)
    weights.copy(ours.att_dst, theirs.attn_r)
    weights.copy(ours.bias, theirs.bias)
    weights.report("GATConv", ours(edges, x), theirs(block_of(edges), (x, x[:DST])).flatten(1), x)


def rel_graph_conv(x):
    names = ["a:r:a", "a:s:a", "a:t:a"]
    block = Block({"a": SRC}, {"a": DST}, {name: random_edges(i, name) for i, name in enumerate(names)})
    ours, theirs, weights = nn.RelGraphConv(WIDE, OUT, names, num_bases=2), dglnn.RelGraphConv(
        WIDE, OUT, 3, "basis", 2), Weights()
    weights.copy(ours.bases, theirs.linear_r.W)
    weights.copy(ours.coeff, theirs.linear_r.coeff)
    weights.copy(ours.loop, theirs.loop_weight)
    weights.copy(ours.bias, theirs.h_bias)
    src, dst = (torch.cat([getattr(edges, end) for edges in block.edges.values()]) for end in ("indices", "dst"))
    whole = dgl.create_block((src, dst), num_src_nodes=SRC, num_dst_nodes=DST)
    kinds = torch.arange(3).repeat_interleave(EDGES)
    weights.report("RelGraphConv", ours(block, {"a": x})["a"], theirs(whole, x, kinds), x)


def hetero_conv(x):
    names = ["r", "s"]
    edges = {f"a:{name}:a": random_edges(i, f"a:{name}:a") for i, name in enumerate(names)}
    ours = nn.HeteroConv({etype: nn.GraphConv(WIDE, OUT) for etype in edges})
    layers = {name: dglnn.GraphConv(WIDE, OUT, allow_zero_in_degree=True) for name in names}
    weights = Weights()
    for name, layer in zip(names, ours.layers):
        weights.copy(layer.lin.weight, layers[name].weight, turned=True)
        weights.copy(layer.bias, layers[name].bias)
    whole = dgl.create_block({tuple(etype.split(":")): (some.indices, some.dst) for etype, some in edges.items()},
                             num_src_nodes={"a": SRC}, num_dst_nodes={"a": DST})
    theirs = dglnn.HeteroGraphConv(layers)
    weights.report("HeteroConv", ours(Block({"a": SRC}, {"a": DST}, edges), {"a": x})["a"],
                 theirs(whole, ({"a": x}, {"a": x[:DST]}))["a"], x)


def sparse_adam(parts):
    """Compares SparseAdam on rows that occur in some steps only. DGL computes 1 - beta2^t in float32, which is the
    larger error of the two. So both are also compared with float64: ours must be within 1e-6."""
    with graphwire.open(parts) as graph:
        table = graphwire.Embedding(graph, "table", 4, rows=50, seed=2)
        theirs = dgl.nn.NodeEmbedding(50, 4, "table", init_func=lambda rows: rows.copy_(table.weight))
        optimizer, other = graphwire.optim.SparseAdam([table], lr=0.05), SparseAdam([theirs], lr=0.05, eps=1e-8)
        exact = table.weight.double()
        m, v, steps = torch.zeros_like(exact), torch.zeros_like(exact), torch.zeros(50, 1, dtype=torch.float64)
        random = torch.Generator().manual_seed(0)
        for _ in range(20):
            ids = torch.randperm(50, generator=random)[:13]
            factor = torch.randn(13, 4, generator=random)
            (table(ids) * factor).sum().backward()
            optimizer.step()
            (theirs(ids) * factor).sum().backward()
            other.zero_grad()  # makes step() clear the gradients at its end
            other.step()
            steps[ids] += 1
            m[ids] = 0.9 * m[ids] + 0.1 * factor
            v[ids] = 0.999 * v[ids] + 0.001 * factor.double() ** 2
            t = steps[ids]
            exact[ids] -= 0.05 * (m[ids] / (1 - 0.9**t)) / ((v[ids] / (1 - 0.999**t)).sqrt() + 1e-8)
        report("SparseAdam against float64", apart(table.weight, exact), 1e-6)
        report("SparseAdam of DGL against float64", apart(theirs.weight, exact))
        report("SparseAdam", apart(table.weight, theirs.weight))


def compare(parts):
    """Runs all comparisons. Returns the names of those that failed."""
    torch.manual_seed(1)
    x = torch.randn(SRC, WIDE, requires_grad=True)
    edges = random_edges(0)
    sage(edges, x)
    graph_conv(edges, x)
    gat(edges, x)
    rel_graph_conv(x)
    hetero_conv(x)
    sparse_adam(parts)
    return different


if __name__ == "__main__":
    sys.exit(bool(compare(sys.argv[1])))
