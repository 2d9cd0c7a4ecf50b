"""The graphs of a batch of edges, without the nodes that have no edges, beside dgl.compact_graphs."""

from __future__ import annotations

import pytest
import torch
from graphwire.dgl import host
from graphwire.dgl.dataloading.compacted import compacted

dgl = host.dgl()
TYPES = [("a", "x", "b"), ("b", "y", "a"), ("b", "z", "b"), ("c", "w", "a")]


def random_graph(nodes, types, most):
    counts = {ntype: len(ids) for ntype, ids in nodes.items()}
    edges = {}
    for src, name, dst in types:
        several = int(torch.randint(most + 1, ()))
        edges[src, name, dst] = tuple(nodes[ntype][torch.randint(counts[ntype], (several,))] for ntype in (src, dst))
    return dgl.heterograph(edges, {ntype: 100 for ntype in nodes})


@pytest.mark.parametrize("most", [0, 1, 5, 40])
def test_beside_dgl(most):
    """Two graphs with edge types of their own. Ids are different and ascend in the subset of dgl; in DGL they stand in
    the order of their first appearance, and so do ours."""
    torch.manual_seed(most)
    for _ in range(30):
        nodes = {ntype: torch.randperm(100)[:12] for ntype in "abcd"}  # no edge touches d
        graphs = [random_graph(nodes, types, most) for types in (TYPES[:3], TYPES)]
        expected, found = dgl.compact_graphs(graphs), compacted(graphs)
        for ours, theirs, old in zip(found, expected, graphs):
            assert ours.canonical_etypes == theirs.canonical_etypes and ours.ntypes == theirs.ntypes
            for ntype in ours.ntypes:
                ids = ours.nodes[ntype].data[dgl.NID]
                assert torch.equal(ids, found[0].nodes[ntype].data[dgl.NID])
                order = (lambda some: some) if host.is_installed() else (lambda some: torch.sort(some).values)
                assert torch.equal(order(ids), theirs.nodes[ntype].data[dgl.NID])
            for etype in ours.canonical_etypes:
                for ntype, own, its in zip((etype[0], etype[2]), ours.edges(order="eid", etype=etype),
                                           old.edges(order="eid", etype=etype)):
                    assert torch.equal(ours.nodes[ntype].data[dgl.NID][own], its)


def test_one_type():
    pair = dgl.graph((torch.tensor([7, 3, 7]), torch.tensor([5, 7, 5])), num_nodes=9)
    (small,) = compacted([pair])
    assert small.ndata[dgl.NID].tolist() == [7, 3, 5] and small.num_nodes() == 3
    assert [ends.tolist() for ends in small.edges()] == [[0, 1, 0], [2, 0, 2]]
