"""Several types with dgl's names, labels with NaN, functions of scripts, and missing names of the subset."""

from __future__ import annotations

import argparse
import sys

import graphwire
import numpy as np
import pytest
import torch
from conftest import run
from graphwire.dgl import host
from graphwire.dgl.dataloading import NeighborSampler
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
of_subset = pytest.mark.skipif(not getattr(dgl, "is_graphwire_subset", False), reason="of the subset alone")
CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")


@pytest.fixture(scope="module")
def g(hetero):
    """Papers that cite each other, authors who write papers, and the reverses of both."""
    dgl.distributed.initialize("none.txt")
    graph = dgl.distributed.DistGraph("graph", part_config=str(hetero))
    yield graph
    dgl.distributed.exit_client()


def check_block(g, block):
    for etype in block.canonical_etypes:
        src, dst = block.edges(etype=etype)
        expected = g.find_edges(block.edges[etype].data[dgl.EID], etype)
        assert torch.equal(block.srcnodes[etype[0]].data[dgl.NID][src.long()], expected[0])
        assert torch.equal(block.dstnodes[etype[2]].data[dgl.NID][dst.long()], expected[1])


def test_node_loader_of_types(g):
    """Seeds of two types. Every edge of a block is an edge of the graph, and no node has more edges of a type than its
    fanout."""
    sampler = dgl.dataloading.NeighborSampler([{etype: 2 for etype in g.canonical_etypes}, 3])
    seeds = {"paper": torch.arange(0, 300, 3), "author": torch.arange(100)}
    seen = {"paper": [], "author": []}
    loader = dgl.dataloading.DistNodeDataLoader(g, seeds, sampler, batch_size=40, shuffle=True)
    for inputs, outputs, blocks in loader:
        for ntype, ids in outputs.items():
            seen[ntype].append(ids)
            assert torch.equal(blocks[-1].dstnodes[ntype].data[dgl.NID], ids)
            assert torch.equal(blocks[0].srcnodes[ntype].data[dgl.NID], inputs[ntype])
        for block, fanout in zip(blocks, (2, 3)):
            check_block(g, block)
            for etype in block.canonical_etypes:
                if block.num_edges(etype):
                    assert int(block.in_degrees(etype=etype).max()) <= fanout
    assert {ntype: sorted(torch.cat(ids).tolist()) for ntype, ids in seen.items()} == {
        ntype: ids.tolist() for ntype, ids in seeds.items()}


def in_order(g, etypes):
    return [etype for etype in g.canonical_etypes if etype in etypes]


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_only_edge_types_with_sampled_edges(g, seed, exclude):
    """Of frontiers and blocks, sampled at once and layer by layer; all types if no edge was sampled. A layer then
    gives rows of no other type of nodes."""
    random = torch.Generator().manual_seed(seed)
    ntype = g.ntypes[seed % 2]
    seeds = {ntype: torch.randperm(g.num_nodes(ntype), generator=random)[:5]}
    fanouts = [{etype: int(torch.randint(0, 3, (1,), generator=random)) for etype in g.canonical_etypes}
               for _ in range(2)]
    full = dgl.distributed.in_subgraph(g, seeds)
    expected = [etype for etype in g.canonical_etypes if etype[2] == ntype]
    assert set(full.canonical_etypes) <= set(expected) and sorted(full.ntypes) == sorted(g.ntypes)
    assert all(full.num_edges(etype) for etype in full.canonical_etypes)
    gone = {CITES: torch.arange(g.num_edges(CITES))} if exclude else None
    _, _, blocks = dgl.dataloading.NeighborSampler(fanouts).sample_blocks(g, seeds, exclude_eids=gone)
    _, _, fetched = NeighborSampler(fanouts, prefetch_edge_feats={CITES: "strength"}).sample(g, seeds, gone)
    for block in fetched:
        if CITES in block.canonical_etypes:
            ids = block.edges[CITES].data[dgl.EID]
            assert torch.equal(block.edges[CITES].data["strength"], g.edges[CITES].data["strength"][ids])
    for block in blocks + fetched:
        kinds = {etype for etype in block.canonical_etypes if block.num_edges(etype)}
        assert not exclude or CITES not in kinds
        if exclude and 0 < len(block.canonical_etypes) < len(g.canonical_etypes):  # sampled edges may all be excluded
            kinds |= {CITES}.intersection(block.canonical_etypes)
        assert in_order(g, block.canonical_etypes) == (in_order(g, kinds) if kinds else g.canonical_etypes)
        check_block(g, block)
    none = dgl.distributed.sample_neighbors(g, seeds, 0)
    assert none.num_edges() == 0 and in_order(g, none.canonical_etypes) == g.canonical_etypes


def test_frontiers_of_homogeneous_ids(g):
    """As in DGL 0.6: the frontier has homogeneous ids. sample_etype_neighbors, without names of columns, gives types,
    as in DGL 1.1.3."""
    book = g.get_partition_book()
    seeds = {"paper": torch.tensor([7, 3, 200]), "author": torch.tensor([50])}
    homogeneous = torch.cat([book.map_to_homo_nid(ids, ntype) for ntype, ids in seeds.items()])
    typed = dgl.distributed.sample_neighbors(g, seeds, -1)
    expected = sorted(edge for etype in typed.canonical_etypes
                      for edge in book.map_to_homo_eid(typed.edges[etype].data[dgl.EID], etype).tolist())
    for found in (dgl.distributed.sample_neighbors(g, homogeneous, -1),
                  dgl.distributed.sample_etype_neighbors(g, homogeneous, dgl.ETYPE, -1)):
        assert found.num_nodes() == g.num_nodes() and sorted(found.edata[dgl.EID].tolist()) == expected
        for edge, src, dst in zip(found.edata[dgl.EID], *found.edges()):
            kind, own = book.map_to_per_etype(edge.view(1))
            etype = g.canonical_etypes[int(kind)]
            for end, one, ntype in zip((src, dst), g.find_edges(own, etype), etype[::2]):
                assert int(book.map_to_homo_nid(one, ntype)) == int(end)
    assert dgl.distributed.sample_neighbors(g, homogeneous, 0).num_edges() == 0
    again = dgl.distributed.sample_etype_neighbors(g, homogeneous, -1)
    assert {etype: sorted(again.edges[etype].data[dgl.EID].tolist()) for etype in again.canonical_etypes} == {
        etype: sorted(typed.edges[etype].data[dgl.EID].tolist()) for etype in typed.canonical_etypes}
    with pytest.raises(graphwire.OutOfRangeError, match=str(g.num_nodes())):
        dgl.distributed.sample_neighbors(g, torch.tensor([0, g.num_nodes()]), 2)


def test_hetero_graph_conv_of_types(g):
    """A layer for each relation, with summed results, compared with sums in plain torch."""
    class Sum(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, graph, rows):
            src, dst = graph.edges()
            found = rows[1].new_zeros(graph.num_dst_nodes(), rows[1].shape[1])
            return found.index_add(0, dst.long(), rows[0][src.long()]) * self.factor

    layers = {etype[1]: Sum(10.0**number) for number, etype in enumerate(g.canonical_etypes)}
    factors = {etype: layers[etype[1]].factor for etype in g.canonical_etypes if etype[2] == "paper"}
    assert {CITES, WRITES} <= set(factors)
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)
    loader = dgl.dataloading.DistNodeDataLoader(g, {"paper": torch.arange(50)}, sampler, batch_size=50)
    inputs, _, (block,) = next(iter(loader))
    rows = {ntype: torch.rand(len(ids), 3) for ntype, ids in inputs.items()}
    expected = {}
    for etype in [etype for etype in block.canonical_etypes if etype in factors]:
        src, dst = block.edges(etype=etype)
        expected[etype] = torch.zeros(50, 3).index_add(0, dst.long(), rows[etype[0]][src.long()]) * factors[etype]
    for how, found in (("sum", sum(expected.values())), ("max", torch.stack(list(expected.values())).amax(0)),
                       ("stack", torch.stack(list(expected.values()), 1))):
        conv = dgl.nn.HeteroGraphConv(layers, aggregate=how)
        out = conv(block, rows)
        assert torch.allclose(out["paper"], found, rtol=1e-4) and set(out) == {"paper"}, how
    with pytest.raises(KeyError):
        dgl.nn.HeteroGraphConv({"cites": Sum(1.0)})(block, rows)


def turned(g, ids, etype, other):
    """The ids of edges of `other` that are the reverses of these edges, in a graph that was renumbered."""
    src, dst = (ends.tolist() for ends in g.find_edges(ids, etype))
    pairs = set(zip(dst, src))
    ends = g.find_edges(torch.arange(g.num_edges(other)), other)
    return [edge for edge, pair in enumerate(zip(*(some.tolist() for some in ends))) if pair in pairs]


def test_edge_prediction_of_types(g):
    """Neither the batch's edges nor their reverses: those with the same ids, if edges keep their ids, else those
    between the same ends."""
    assert g.canonical_etypes[1:] and ("paper", "rev_writes", "author") in g.canonical_etypes
    reverses = {"writes": "rev_writes", "rev_writes": "writes", "cites": "rev_cites", "rev_cites": "cites"}
    kept = {etype: g.keeps_edge_ids(etype) for etype in reverses}
    assert kept["cites"] and kept["rev_cites"]  # "graphwire import" keeps the other types' ids only on request
    seeds = {"writes": torch.arange(0, 900, 9), "cites": torch.arange(5)}
    back = {f"rev_{etype}": ids if kept[etype] else turned(g, ids, etype, f"rev_{etype}")
            for etype, ids in seeds.items()}
    assert all(len(ids) >= len(seeds[etype[4:]]) for etype, ids in back.items())
    for exclude, without in (("self", seeds), ("reverse_types", {**seeds, **back})):
        sampler = dgl.dataloading.as_edge_prediction_sampler(
            dgl.dataloading.MultiLayerFullNeighborSampler(1), exclude=exclude, reverse_etypes=reverses,
            negative_sampler=dgl.dataloading.negative_sampler.Uniform(1))
        loader = dgl.dataloading.DistEdgeDataLoader(g, seeds, sampler, batch_size=105)
        ((_, positive, negative, (block,)),) = loader
        check_block(g, block)
        nodes = positive.ndata[dgl.NID]
        every = dgl.distributed.in_subgraph(g, nodes)
        for etype in g.canonical_etypes:
            gone = without.get(etype[1], [])
            found = set(every.edges[etype].data[dgl.EID].tolist()) - {int(one) for one in gone}
            assert set(block.edges[etype].data[dgl.EID].tolist()) == found, (exclude, etype)
        for etype, ids in seeds.items():
            assert torch.equal(positive.edges[etype].data[dgl.EID], ids) and negative.num_edges(etype) == len(ids)


def test_the_book_of_types(hetero, tmp_path):
    """Homogeneous ids number all types of part 0, then those of part 1; compared with plain lists."""
    run("partition", hetero, "--num-parts", 3, "--method", "random", "--out", tmp_path / "parts")
    config = str(tmp_path / "parts" / "graph.json")
    books = [dgl.distributed.load_partition_book(config, part)[0] for part in range(3)]
    book = books[0]
    for kinds, ids_of, part_of, to_homo, from_homo, offset in (
        (book.ntypes, "partid2nids", "nid2partid", book.map_to_homo_nid, book.map_to_per_ntype, "local_ntype_offset"),
        (book.canonical_etypes, "partid2eids", "eid2partid", book.map_to_homo_eid, book.map_to_per_etype,
         "local_etype_offset"),
    ):
        every = [(part, kind, int(one)) for part in range(3) for kind in kinds
                 for one in getattr(book, ids_of)(part, kind)]
        for number, kind in enumerate(kinds):
            homogeneous = torch.tensor([i for i, (_, other, _) in enumerate(every) if other == kind])
            own = torch.tensor([one for _, other, one in every if other == kind])
            assert torch.equal(torch.sort(own)[0], torch.arange(len(own)))
            assert torch.equal(to_homo(own, kind), homogeneous)
            assert [ids.tolist() for ids in from_homo(homogeneous)] == [[number] * len(own), own.tolist()]
            parts = [part for part, other, _ in every if other == kind]
            assert getattr(book, part_of)(own, kind).tolist() == parts
            assert getattr(book, part_of)(homogeneous).tolist() == parts  # without a type: homogeneous ids
        for part in range(3):
            sizes = [len(getattr(book, ids_of)(part, kind)) for kind in kinds]
            assert list(getattr(books[part], offset)) == [0, *np.cumsum(sizes)]


def test_a_part_of_types(hetero, tmp_path):
    """As in DGL: a homogeneous graph of the part's nodes and edges, by homogeneous ids, with numbers of types. After
    its own nodes come the sources of its edges. Features are by type."""
    run("partition", hetero, "--num-parts", 3, "--method", "random", "--out", tmp_path / "parts")
    config = str(tmp_path / "parts" / "graph.json")
    seen = {etype: [] for etype in dgl.distributed.load_partition_book(config, 0)[0].canonical_etypes}
    with graphwire.open(config) as whole:
        for part in range(3):
            local, nodes, edges, book, _, ntypes, etypes = dgl.distributed.load_partition(config, part)
            assert (ntypes, etypes) == (book.ntypes, book.canonical_etypes)
            own = int(local.ndata["inner_node"].sum())
            assert torch.equal(local.ndata[dgl.NID][:own], book.partid2nids(part)) and not local.ndata["inner_node"][
                own:].any()
            assert torch.equal(local.edata[dgl.EID], book.partid2eids(part)) and local.edata["inner_edge"].all()
            assert (local.ndata[dgl.NTYPE].dtype, local.edata[dgl.ETYPE].dtype) == (torch.int32, torch.int32)
            kinds, ids = book.map_to_per_ntype(local.ndata[dgl.NID])
            edge_kinds, edge_ids = book.map_to_per_etype(local.edata[dgl.EID])
            assert torch.equal(local.ndata[dgl.NTYPE].long(), kinds)
            assert torch.equal(local.edata[dgl.ETYPE].long(), edge_kinds)
            src, dst = local.edges()
            assert (dst < own).all() and set(src[src >= own].tolist()) == set(range(own, local.num_nodes()))
            for number, etype in enumerate(etypes):
                mine = edge_kinds == number
                expected = whole.find_edges(edge_ids[mine], etype)
                for ends, others, ntype in zip((src[mine], dst[mine]), expected, etype[::2]):
                    assert (kinds[ends] == ntypes.index(ntype)).all() and torch.equal(ids[ends], others)
                seen[etype].append(edge_ids[mine])
            features = [feature for feature in whole.features if feature.name != "orig_id"]
            for feature in features:
                of, kind = (edges, book.partid2eids) if feature.of_edges else (nodes, book.partid2nids)
                rows = of[f"{feature.type}/{feature.name}"]
                assert torch.equal(torch.as_tensor(feature[kind(part, feature.type)]), rows)
            assert len(nodes) + len(edges) == len(features)
        assert not dgl.distributed.load_partition(config, 0, load_feats=False)[1]
        for etype, ids in seen.items():
            assert torch.equal(torch.sort(torch.cat(ids))[0], torch.arange(whole.num_edges(etype)))


def test_layers_of_types_allow_nodes_without_edges():
    """A node may have edges of some relations only: HeteroGraphConv passes that to its layers."""
    g = dgl.heterograph({CITES: ([0, 1], [1, 0]), WRITES: ([0], [1])}, {"paper": 3, "author": 1})
    rows = {"paper": torch.rand(3, 4), "author": torch.rand(1, 4)}
    for layer, shape in ((lambda: dgl.nn.GraphConv(4, 2), (3, 2)), (lambda: dgl.nn.GATConv(4, 2, 3), (3, 3, 2))):
        with pytest.raises(dgl.DGLError, match="0-in-degree"):
            layer()(g["cites"], rows["paper"])
        out = dgl.nn.HeteroGraphConv({"cites": layer(), "writes": layer()})(g, rows)
        assert out["paper"].shape == shape and not out["paper"][2].any()  # no edges, and no bias yet


def test_labels_with_nan(tmp_path):
    """Labels as in papers100M: unknown labels are NaN, and stay NaN."""
    labels = torch.arange(60).float() % 4
    labels[::3] = float("nan")
    whole = dgl.graph((torch.arange(60), torch.arange(60).roll(1)), num_nodes=60)
    whole.ndata["labels"], whole.ndata["train_mask"] = labels, ~torch.isnan(labels)
    dgl.distributed.partition_graph(whole, "nan", 2, str(tmp_path / "parts"), part_method="random")
    with graphwire.open(tmp_path / "parts", numpy=True) as graph:
        found, orig = graph.feature("labels")[:], graph.feature("orig_id")[:]
        assert np.array_equal(found, labels.numpy()[orig], equal_nan=True) and np.isnan(found).sum() == 20
    context.close()
    dgl.distributed.initialize("none.txt")
    g = dgl.distributed.DistGraph("nan", part_config=str(tmp_path / "parts"))
    rows = g.ndata["labels"][np.arange(60)]
    assert len(torch.unique(rows[torch.logical_not(torch.isnan(rows))])) == 4
    split = dgl.distributed.node_split(g.ndata["train_mask"], g.get_partition_book())
    assert len(split) == 40 and not torch.isnan(g.ndata["labels"][split]).any()
    dgl.distributed.exit_client()


def test_exit_client_forgets_tensors(two_parts):
    """Old objects do not belong to the next graph: its tensors begin anew, and end with their own objects."""
    def make():
        dgl.distributed.initialize("none.txt")
        g = dgl.distributed.DistGraph("communities", part_config=str(two_parts / "communities.json"))
        return g, dgl.distributed.DistTensor((g.num_nodes(),), torch.float32, "mine", lambda size, _: torch.ones(size))

    context.close()
    _, before = make()
    dgl.distributed.exit_client()
    g, after = make()
    assert after.count_nonzero() == g.num_nodes()
    del before
    assert after.count_nonzero() == g.num_nodes()
    del after
    g.barrier()
    assert not g.graph.tensors
    dgl.distributed.exit_client()


def test_functions_of_a_script():
    """A reduce function gets all messages of nodes with equal in-degrees; nodes without in-edges get zeros."""
    g = dgl.graph((torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 2, 1, 2, 4])), num_nodes=6)
    g.ndata["h"] = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], requires_grad=True)
    shapes = []

    def reduce(nodes):
        shapes.append(tuple(nodes.mailbox["m"].shape))
        return {"out": nodes.mailbox["m"].prod(1) + nodes.data["h"]}

    g.update_all(lambda edges: {"m": edges.src["h"] * 3}, reduce)
    assert g.ndata["out"].tolist() == [0.0, 3 * 12 + 2.0, 6 * 24 + 4.0, 0.0, 3 + 16.0, 0.0]
    assert sorted(shapes) == [(1, 1), (2, 2)]
    g.update_all(dgl.function.copy_u("h", "m"), reduce)
    g.ndata["out"].sum().backward()
    assert g.ndata["h"].grad is None or g.ndata["h"].grad.shape == (6,)


def test_numbers_of_pairs_beyond_int32():
    """Ids of int32 whose pair does not fit into one number: from a matrix of SciPy, whose ids DGL widens, and a graph's
    own int32, which stays."""
    sparse = pytest.importorskip("scipy.sparse")
    src, dst = np.array([70_000, 5, 70_000], np.int32), np.array([69_999, 70_001, 5], np.int32)
    matrix = sparse.coo_matrix((np.ones(3), (src, dst)), shape=(70_002, 70_002))
    both = sorted({*zip(src.tolist(), dst.tolist()), *zip(dst.tolist(), src.tolist())})
    wide = dgl.from_scipy(matrix)
    narrow = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=70_002)
    assert (wide.idtype, narrow.idtype) == (torch.int64, torch.int32)
    assert dgl.graph((src, dst)).idtype == torch.int64
    assert dgl.from_scipy(matrix, idtype=torch.int32).idtype == torch.int32
    for graph in (wide, narrow):
        found = dgl.to_bidirected(graph)
        assert sorted(zip(*(ends.tolist() for ends in found.edges()))) == both and found.idtype == graph.idtype
        assert graph.has_edges_between(src.tolist(), dst.tolist()).all()
        assert graph.edge_ids([70_000], [5]).tolist() == [2]


@of_subset
def test_load_data_reads_reddits_files(tmp_path, monkeypatch):
    folder = tmp_path / "reddit_self_loop"
    folder.mkdir()
    np.savez(folder / "reddit_self_loop_graph.npz", row=np.array([0, 1, 2]), col=np.array([1, 2, 2]))
    np.savez(folder / "reddit_data.npz", feature=np.eye(3), label=np.array([4, 5, 6]), node_types=np.array([1, 2, 3]))
    monkeypatch.setenv("DGL_DOWNLOAD_DIR", str(tmp_path))
    arguments = argparse.Namespace(dataset="reddit-self-loop")
    data = dgl.data.load_data(arguments)
    assert data[0].num_edges() == 3 and data[0].ndata["label"].tolist() == [4, 5, 6]
    assert data[0].ndata["train_mask"].tolist() == [True, False, False]
    arguments.dataset = "reddit"
    with pytest.raises(FileNotFoundError, match="reddit_graph"):
        dgl.data.load_data(arguments)


@of_subset
def test_what_the_subset_lacks():
    for call, name in ((lambda: dgl.sampling, "dgl.sampling"), (lambda: dgl.data.CoraGraphDataset, "CoraGraphDataset"),
                       (lambda: dgl.data.load_data(type("A", (), {"dataset": "cora"})), "load_data.*cora"),
                       (lambda: dgl.nn.GINConv, "GINConv"), (lambda: dgl.dataloading.ShaDowKHopSampler, "ShaDow")):
        with pytest.raises(host.MissingError, match=f"{name}.*install dgl"):
            call()


@of_subset
@pytest.mark.parametrize(("line", "name"), [
    ("import dgl.sampling", "dgl.sampling"), ("from dgl import sampling", "dgl.sampling"),
    ("from dgl.nn import GINConv", "dgl.nn.GINConv"), ("from dgl.nn.pytorch.conv import GINConv", "conv.GINConv"),
    ("from dgl.dataloading import ShaDowKHopSampler", "dgl.dataloading.ShaDowKHopSampler"),
    ("import dgl.frame", "dgl.frame"), ("import dgl.dataloading.loaders", "dgl.dataloading.loaders")])
def test_imports_of_what_the_subset_lacks(line, name):
    """They raise the same error as attributes; and a file of Graphwire's own is not a module of dgl."""
    with pytest.raises(ImportError, match=f"{name} is not in Graphwire's subset of dgl: install dgl, pip install dgl"):
        exec(line)
    assert line.split()[1] in ("dgl", "dgl.nn", "dgl.nn.pytorch.conv", "dgl.dataloading") or name not in sys.modules
