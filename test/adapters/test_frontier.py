"""frontier="new": every node is expanded once; and the same subgraph in PyG's form as of the blocks of all nodes."""

from __future__ import annotations

import pickle
import sys
from itertools import product

import graphwire
import numpy as np
import pytest
import torch
from graphwire import nn

pytestmark = pytest.mark.slow  # once: they use no dgl
FANOUTS = [4, 3, 2, 3]


@pytest.fixture(scope="module")
def papers(hetero):
    with graphwire.open(hetero) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(hetero2):
    with graphwire.open(hetero2.folder, hetero2.addresses) as opened:
        yield opened


def lists_of(edges, nodes):
    """{destination: [edge ids]} of one block."""
    ends, found = nodes[edges.dst_type][edges.dst].tolist(), {}
    rows = nodes[edges.dst_type][edges.dst_first:edges.dst_first + edges.num_dst].tolist()
    for end, edge in zip(ends, edges.edge_ids.tolist()):
        found.setdefault(end, []).append(edge)
    return {row: found.get(row, []) for row in rows}


@pytest.mark.parametrize("weight, replace", [(None, False), ({"cites": "strength"}, False), ("strength", True)])
def test_every_node_is_expanded_once(papers, weight, replace):
    """By the hop after the one that added it; its edges are those that the same hop gives it in a batch of all nodes.
    """
    seeds = {"paper": [5, 7, 5, 250], "author": [3]}
    both = [graphwire.sample(papers, seeds, FANOUTS, seed=8, frontier=frontier, weight=weight, replace=replace)
            for frontier in ("all", "new")]
    assert [batch.frontier for batch in both] == ["all", "new"]
    before = {ntype: 0 for ntype in papers.ntypes}
    now = dict(both[1].blocks[-1].num_dst)
    for whole, block in zip(reversed(both[0].blocks), reversed(both[1].blocks)):
        for etype, edges in block.edges.items():
            assert edges.dst_first == before[edges.dst_type] and edges.dst_first + edges.num_dst == now[edges.dst_type]
            assert len(edges.indptr) == edges.num_dst + 1 and block.num_dst == now
            of_all, of_new = lists_of(whole[etype], both[0].nodes), lists_of(edges, both[1].nodes)
            assert of_new == {node: of_all[node] for node in of_new}
            src, dst = papers.find_edges(edges.edge_ids, etype)
            assert torch.equal(both[1].nodes[edges.src_type][edges.edge_index[0]], src)
            assert torch.equal(both[1].nodes[edges.dst_type][edges.edge_index[1]], dst)
        before, now = now, dict(block.num_src)
    assert all(len(torch.unique(ids)) == len(ids) == now[ntype] for ntype, ids in both[1].nodes.items())
    for ntype, ids in both[1].nodes.items():
        assert set(ids.tolist()) <= set(both[0].nodes[ntype].tolist())


def contents(data, etypes):
    """The nodes and the edges of each hop, without their order; and rows by node and edge."""
    found = {}
    for ntype in data.node_types:
        store = data[ntype]
        hops = torch.split(store.n_id, store.num_sampled_nodes)
        found[ntype] = [sorted(hop.tolist()) for hop in hops], sorted(zip(store.n_id.tolist(), store.mark.tolist()))
    for etype in etypes:
        store = data[etype]
        ends = zip(data[etype[0]].n_id[store.edge_index[0]].tolist(), data[etype[2]].n_id[store.edge_index[1]].tolist(),
                   store.e_id.tolist(), store.strength.tolist() if "strength" in store else store.e_id.tolist())
        ends, at, hops = list(ends), 0, []
        for count in store.num_sampled_edges:
            hops.append(sorted(ends[at:at + count]))
            at += count
        found[etype] = hops
    return found


def test_subgraphs_of_both_frontiers(papers):
    """Of nodes, with repeated seeds, and of links with negatives and exclusion."""
    rows = {"features": {"paper": "feat", "author": "age"}, "edge_features": {"cites": "strength"}}
    names = {"feat": "mark", "age": "mark"}
    etypes = [tuple(etype.split(":")) for etype in papers.etypes]
    for options in ({"weight": "strength"}, {"replace": True}, {}):
        drawn, made = [], []
        for frontier in ("all", "new"):
            seeds = {"paper": torch.arange(40) % 30, "author": torch.arange(5)}
            nodes = graphwire.sample(papers, seeds, FANOUTS, seed=3, frontier=frontier, **rows, **options)
            links = next(iter(graphwire.EdgeLoader(
                papers, None, [5, 4, 3], etype="cites", negatives=2, exclude=["ends"], seed=3, batch_size=60,
                frontier=frontier, **rows, **options)))
            made.append([contents(batch.to_pyg(names), etypes) for batch in (nodes, links)])
            drawn.append([(batch.num_edges, sum(len(store.e_id) for store in batch.to_pyg(names).edge_stores))
                          for batch in (graphwire.sample(papers, {"paper": range(30)}, FANOUTS, frontier=frontier),
                                        links)])
        assert made[0] == made[1]
        assert all(edges > 1.1 * kept for edges, kept in drawn[0]) and all(edges == kept for edges, kept in drawn[1])


def test_the_same_over_servers(papers, served, hetero2):
    with graphwire.open(hetero2.folder) as whole:
        batches = [[batch.digest() for batch in graphwire.NodeLoader(
            opened, {"paper": None}, FANOUTS, batch_size=50, frontier="new", seed=2, replace=replace)]
            for opened, replace in product((whole, served), (False, True))]
    assert batches[0] == batches[2] and batches[1] == batches[3] and batches[0] != batches[1]


def test_copies_keep_the_rows(papers):
    """pickle and to(): the destinations of later blocks stay where they are. NumPy's are equal to torch's."""
    batch = graphwire.sample(papers, {"paper": range(9)}, [3, 2], frontier="new")
    for copy in (pickle.loads(pickle.dumps(batch)), batch.to("cpu")):
        assert copy.frontier == "new"
        for one, other in zip(batch.blocks, copy.blocks):
            assert all(torch.equal(edges.edge_index, other[etype].edge_index) for etype, edges in one.edges.items())
        assert torch.equal(copy.to_pyg()["cites"].edge_index, batch.to_pyg()["cites"].edge_index)
    outer = batch.blocks[0]["cites"]
    assert outer.dst_first > 0 and int(outer.dst.min()) >= outer.dst_first
    plain = graphwire.batch.Edges(outer.etype, ("paper", "paper"), (outer.num_src, outer.num_dst), tuple(
        part.numpy() for part in (outer.indptr, outer.indices, outer.edge_ids)), outer.dst_first)
    assert np.array_equal(plain.edge_index, outer.edge_index.numpy())


@pytest.mark.parametrize("layer", [
    nn.SAGEConv(8, 4), nn.GraphConv(8, 4), nn.GATConv(8, 4), nn.HeteroConv({"paper:cites:paper": nn.SAGEConv(8, 4)}),
    nn.RelGraphConv(8, 4, ["paper:cites:paper", "author:writes:paper", "paper:rev_cites:paper",
                           "paper:rev_writes:author"])])
def test_layers_refuse_the_blocks(papers, layer):
    """They would read the rows of other nodes."""
    batch = graphwire.sample(papers, {"paper": range(9)}, [{"cites": 3}, {"cites": 2}], frontier="new")
    x = {ntype: torch.ones(len(ids), 8) for ntype, ids in batch.nodes.items()}
    rows = x if isinstance(layer, (nn.HeteroConv, nn.RelGraphConv)) else x["paper"]
    with pytest.raises(ValueError, match='frontier="new" has edges of new nodes only'):
        layer(batch.blocks[0], rows)
    assert layer(batch.blocks[-1], rows) is not None  # the seeds' own block is whole


def test_another_word(papers):
    with pytest.raises(graphwire.InvalidError, match="frontier is all or new, not 'pyg'"):
        graphwire.sample(papers, {"paper": [1]}, [2], frontier="pyg")


def _stores(data):
    """{type: {attribute: value}}, in order."""
    return {store._key: dict(store) for store in data.stores}


@pytest.mark.parametrize("numpy", [False, True], ids=["torch", "numpy"])
def test_batches_of_many_types(tmp_path, numpy):
    """A batch whose blocks nobody has asked for, which C converts, gives the same Data as one whose blocks exist; with
    labels, rows of nodes and edges, seeds of several types, seeds that repeat, links, and types without an edge. The
    result owns its memory."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()  # batches have all their arrays where an earlier test compiled
    random = np.random.default_rng(6)
    counts = {f"n{i}": 20 * i for i in range(5)}
    edges = {(f"n{i % 4 + 1}", f"r{i}", f"n{i // 4 % 4 + 1}"): random.integers(0, 20, (2, 30 * (i % 3)))
             for i in range(24)}
    parts = graphwire.partition_graph(
        edges, "many", 2, tmp_path / "parts", num_nodes=counts, node_features={"n1": {"y": np.arange(20)}},
        edge_features={etype: {"w": np.arange(some.shape[1])} for etype, some in edges.items()})
    with graphwire.open(parts, numpy=numpy) as graph:
        rows = {"features": {"n1": "y"}, "edge_features": {etype: "w" for etype in graph.etypes[3:9]},
                "frontier": "new"}
        fanouts = [{etype: 2 for etype in graph.etypes[:20]}, {etype: 3 for etype in graph.etypes[5:]}]
        makes = [lambda: graphwire.sample(graph, [3, 1], fanouts, ntype="n1", labels="y", index_dtype="int32", **rows),
                 lambda: graphwire.sample(graph, {"n2": [5, 0], "n4": [1]}, fanouts, **rows),
                 lambda: graphwire.sample(graph, {"n2": [5, 5], "n4": [1]}, fanouts, **rows),
                 lambda: graphwire.sample(graph, [], fanouts, ntype="n3", **rows),
                 lambda: next(iter(graphwire.EdgeLoader(graph, None, fanouts, etype=graph.etypes[1], negatives=2,
                                                        **{**rows, "features": None})))]
        named = {"labels": {"y": "target"}}
        for number, make in enumerate(makes):
            batch, other = make(), make()
            assert len(other.blocks) == 2 and "blocks" not in vars(batch)
            found, expected = (_stores(one.to_pyg(named)) for one in (batch, other))
            assert ("blocks" in vars(batch)) == (number == 2) and list(found) == list(expected)
            for kind, store in expected.items():
                assert list(store) == list(found[kind])
                for name, value in store.items():
                    if isinstance(value, torch.Tensor):
                        assert value.dtype == found[kind][name].dtype and torch.equal(value, found[kind][name])
                        if name in ("n_id", "e_id", "edge_index", "y", "w"):  # others are the batch's own, as labels
                            found[kind][name].zero_()
                    else:
                        assert value == found[kind][name]
            again = _stores(batch.to_pyg(named))
            assert all(torch.equal(value, again[kind][name]) for kind, store in expected.items()
                       for name, value in store.items() if isinstance(value, torch.Tensor))
