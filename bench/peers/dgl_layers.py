"""The layers of graphwire.nn and its sparse optimizers beside DGL's, with the same weights, to 1e-5.

dgl_layers.py PARTS      PARTS: a graph's folder. Run by DGL's Python, with the package on PYTHONPATH:
                         bench/peers/run layers

Prints a line for each; status 1 where one differs.
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
failed = 0


def told(name, found, expected, limit=1e-5):
    global failed
    apart = (found - expected).abs().max().item()
    failed |= apart > limit
    print(f"{'ok' if apart <= limit else 'not ok'} - {name}: {apart:.1e} apart")


def random_edges(seed, etype="a:r:a"):
    random = np.random.default_rng(seed)
    dst = np.sort(random.integers(0, DST, EDGES))
    indptr = torch.from_numpy(np.searchsorted(dst, np.arange(DST + 1)))
    return Edges(etype, ("a", "a"), (SRC, DST), (indptr, torch.from_numpy(random.integers(0, SRC, EDGES)),
                                                 torch.arange(EDGES)))


def block_of(edges):
    return dgl.create_block((edges.indices, edges.dst), num_src_nodes=SRC, num_dst_nodes=DST)


def sage(edges, x):
    ours, theirs = nn.SAGEConv(WIDE, OUT), dglnn.SAGEConv(WIDE, OUT, "mean")
    with torch.no_grad():
        theirs.fc_neigh.weight.copy_(ours.lin_neigh.weight)
        theirs.fc_self.weight.copy_(ours.lin_self.weight)
        if theirs.fc_self.bias is not None:
            theirs.fc_self.bias.copy_(ours.lin_neigh.bias)
        else:
            theirs.bias.copy_(ours.lin_neigh.bias)
    told("SAGEConv", ours(edges, x), theirs(block_of(edges), (x, x[:DST])))


def graph_conv(edges, x):
    for norm in ("both", "right", "none"):
        ours, theirs = nn.GraphConv(WIDE, OUT, norm), dglnn.GraphConv(WIDE, OUT, norm, allow_zero_in_degree=True)
        with torch.no_grad():
            theirs.weight.copy_(ours.lin.weight.T)
        told(f"GraphConv {norm}", ours(edges, x), theirs(block_of(edges), (x, x[:DST])))
        weight = torch.rand(EDGES)
        told(f"GraphConv {norm}, weighted", ours(edges, x, weight),
             theirs(block_of(edges), (x, x[:DST]), edge_weight=weight))


def gat(edges, x):
    ours, theirs = nn.GATConv(WIDE, OUT, 3), dglnn.GATConv(WIDE, OUT, 3, allow_zero_in_degree=True)
    with torch.no_grad():
        theirs.fc.weight.copy_(ours.lin.weight)
        theirs.attn_l.copy_(ours.att_src)
        theirs.attn_r.copy_(ours.att_dst)
    told("GATConv", ours(edges, x), theirs(block_of(edges), (x, x[:DST])).flatten(1))


def rel_graph_conv(x):
    names = ["a:r:a", "a:s:a", "a:t:a"]
    block = Block({"a": SRC}, {"a": DST}, {name: random_edges(i, name) for i, name in enumerate(names)})
    ours = nn.RelGraphConv(WIDE, OUT, names, num_bases=2)
    theirs = dglnn.RelGraphConv(WIDE, OUT, 3, "basis", 2)
    with torch.no_grad():
        theirs.linear_r.W.copy_(ours.bases)
        theirs.linear_r.coeff.copy_(ours.coeff)
        theirs.loop_weight.copy_(ours.loop)
        theirs.h_bias.copy_(ours.bias)
    src, dst = (torch.cat([getattr(edges, end) for edges in block.edges.values()]) for end in ("indices", "dst"))
    whole = dgl.create_block((src, dst), num_src_nodes=SRC, num_dst_nodes=DST)
    kinds = torch.arange(3).repeat_interleave(EDGES)
    told("RelGraphConv", ours(block, {"a": x})["a"], theirs(whole, x, kinds))


def hetero_conv(x):
    names = ["r", "s"]
    edges = {f"a:{name}:a": random_edges(i, f"a:{name}:a") for i, name in enumerate(names)}
    ours = nn.HeteroConv({etype: nn.GraphConv(WIDE, OUT) for etype in edges})
    layers = {name: dglnn.GraphConv(WIDE, OUT, allow_zero_in_degree=True) for name in names}
    for name, layer in zip(names, ours.layers):
        with torch.no_grad():
            layers[name].weight.copy_(layer.lin.weight.T)
    whole = dgl.create_block({tuple(etype.split(":")): (some.indices, some.dst) for etype, some in edges.items()},
                             num_src_nodes={"a": SRC}, num_dst_nodes={"a": DST})
    theirs = dglnn.HeteroGraphConv(layers)
    told("HeteroConv", ours(Block({"a": SRC}, {"a": DST}, edges), {"a": x})["a"],
         theirs(whole, ({"a": x}, {"a": x[:DST]}))["a"])


def sparse_adam(parts):
    """Rows that are touched in some steps only. DGL computes 1 - beta2^t in float32, which is the larger error of the
    two: both are held against float64 as well."""
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
            other.zero_grad()  # the step that follows ends with it
            other.step()
            steps[ids] += 1
            m[ids] = 0.9 * m[ids] + 0.1 * factor
            v[ids] = 0.999 * v[ids] + 0.001 * factor.double() ** 2
            t = steps[ids]
            exact[ids] -= 0.05 * (m[ids] / (1 - 0.9**t)) / ((v[ids] / (1 - 0.999**t)).sqrt() + 1e-8)
        told("SparseAdam beside float64", table.weight, exact, 1e-6)
        told("SparseAdam of DGL beside float64", theirs.weight, exact, 1e-5)
        told("SparseAdam", table.weight, theirs.weight)


def main():
    torch.manual_seed(1)
    x = torch.randn(SRC, WIDE)
    edges = random_edges(0)
    sage(edges, x)
    graph_conv(edges, x)
    gat(edges, x)
    rel_graph_conv(x)
    hetero_conv(x)
    sparse_adam(sys.argv[1])
    sys.exit(failed)


if __name__ == "__main__":
    main()
