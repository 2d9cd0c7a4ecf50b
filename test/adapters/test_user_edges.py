"""Edge ids of a graph in one part: every function of graphwire.dgl with edge ids gives the same results as for the same
graph in memory. Random graphs with loops, parallel edges, several types, a type without edges."""

from __future__ import annotations

import pickle
import warnings

import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers, run
from graphwire.dgl.dataloading import (
    DistEdgeDataLoader,
    MultiLayerFullNeighborSampler,
    NeighborSampler,
    as_edge_prediction_sampler,
)
from graphwire.dgl.distributed import user_edges
from graphwire.dgl.distributed.book import book_of
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
KINDS = ("plain", "typed")
TYPES = (("a", "r", "a"), ("a", "s", "b"), ("b", "s", "a"), ("b", "none", "b"))


def whole_of(kind, random):
    """The graph in memory: edges in random order, each with its id in the column "id", and other columns."""
    def ends(src, dst, count):
        return torch.from_numpy(random.integers(0, src, count)), torch.from_numpy(random.integers(0, dst, count))

    if kind == "plain":
        whole = dgl.graph(ends(9, 9, 60), num_nodes=11)
    else:
        counts = {"a": 7, "b": 5}
        whole = dgl.heterograph({etype: ends(counts[etype[0]], counts[etype[2]], 0 if etype[1] == "none" else 30 + n)
                                 for n, etype in enumerate(TYPES)}, {"a": 8, "b": 5})
    for etype in whole.canonical_etypes:
        count = whole.num_edges(etype)
        columns = whole.edges[etype].data
        columns["id"], columns["wide"] = torch.arange(count), torch.rand(count, 3)
        columns["mask"] = torch.from_numpy(random.random(count) < 0.4)
    return whole


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """(the graph in memory, the same graph as a DistGraph, its JSON)."""
    random = np.random.default_rng(KINDS.index(request.param) + 5)
    whole = whole_of(request.param, random)
    folder = tmp_path_factory.mktemp(request.param)
    path = str(folder / "parts" / "g.json")
    mapping = dgl.distributed.partition_graph(whole, "g", 1, str(folder / "parts"), return_mapping=True)
    context.close()
    dgl.distributed.initialize("none.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = dgl.distributed.DistGraph("g", part_config=path)
    yield whole, graph, path, mapping
    dgl.distributed.exit_client()


def some(random, count, n=12):
    """Ids in any order, some twice, as scripts pass them."""
    ids = random.integers(0, count, n if count else 0)
    return [torch.from_numpy(ids), torch.from_numpy(ids.astype(np.int32)), ids, ids.tolist()][random.integers(0, 4)]


def each(whole):
    return [etype for etype in whole.canonical_etypes if whole.num_edges(etype)]


def ids_in(graph, etype):
    """The ids of a sampled graph's edges; none of a type that it lacks."""
    return graph.edges[etype].data[dgl.EID] if etype in graph.canonical_etypes else torch.empty(0, dtype=torch.int64)


def same_ends(whole, etype, ids, src, dst):
    expected = whole.find_edges(ids, etype=etype)
    return torch.equal(expected[0], src) and torch.equal(expected[1], dst)


def test_ends_and_columns(both):
    whole, g, _, _ = both
    random = np.random.default_rng(1)
    for etype in each(whole):
        assert g.keeps_edge_ids(etype)
        for _ in range(8):
            ids = some(random, whole.num_edges(etype))
            assert same_ends(whole, etype, torch.as_tensor(ids).long(), *g.find_edges(ids, etype))
            assert same_ends(whole, etype, torch.as_tensor(ids).long(), *dgl.distributed.find_edges(g, ids, etype))
            for name, column in whole.edges[etype].data.items():
                assert torch.equal(g.edges[etype].data[name][ids], column[torch.as_tensor(ids).long()])
        assert torch.equal(g.edges[etype].data["orig_id"][:], torch.arange(whole.num_edges(etype)))
        for name, column in whole.edges[etype].data.items():
            tensor = g.edges[etype].data[name]
            for piece in (slice(None), slice(3, 20), slice(1, 25, 4)):
                assert torch.equal(tensor[piece], column[piece])
            assert torch.equal(tensor[5], column[5:6]) and torch.equal(tensor.local_partition, column)
            assert torch.equal(pickle.loads(pickle.dumps(tensor))[:], column)
        for wrong in (whole.num_edges(etype), -1, 1 << 40):
            with pytest.raises(graphwire.OutOfRangeError, match=str(wrong)):
                g.find_edges([0, wrong], etype)
            with pytest.raises(graphwire.OutOfRangeError, match=str(wrong)):
                g.edges[etype].data["id"][torch.tensor([0, wrong])]


def test_tensors_of_edges(both):
    """Rows are written, read and trained by the script's ids; a row belongs to its edge, whatever opens the tensor."""
    whole, g, _, _ = both
    random = np.random.default_rng(2)
    for etype in each(whole):
        count, policy = whole.num_edges(etype), g.get_edge_partition_policy(etype)
        first = torch.rand(count, 2)
        tensor = dgl.distributed.DistTensor((count, 2), torch.float32, "t" + etype[1],
                                            lambda shape, dtype, first=first: first, policy)
        expected = first.clone()
        assert torch.equal(tensor[:], expected)
        for _ in range(6):
            ids, rows = random.permutation(count)[:5], torch.rand(5, 2)
            tensor[ids], expected[ids] = rows, rows
            assert torch.equal(tensor[:], expected)
        tensor[2:9] = expected[2:9] = torch.ones(7, 2)
        assert torch.equal(pickle.loads(pickle.dumps(tensor))[:], expected)
        positions = torch.arange(count)
        there = g.graph.open_tensor(tensor._data.name)[positions]
        assert torch.equal(there, expected[g.graph.gather("orig_id", positions, etype=etype).long()])
        flags = dgl.distributed.DistTensor((count,), torch.bool, "f" + etype[1], part_policy=policy)
        flags[[1, 4]] = torch.tensor([True, True])
        mask = whole.edges[etype].data["mask"].clone()
        union = g.edges[etype].data["mask"] | flags
        mask[[1, 4]] = True
        assert torch.equal(union[:], mask) and union.count_nonzero() == int(mask.sum())


def test_embeddings_of_edges(both):
    """Rows that are trained by the script's ids equal rows that torch trains."""
    whole, g, _, _ = both
    random = np.random.default_rng(3)
    for etype in each(whole):
        count = whole.num_edges(etype)
        first = torch.rand(count, 4)
        table = dgl.distributed.DistEmbedding(count, 4, "e" + etype[1], lambda shape, dtype, first=first: first,
                                              g.get_edge_partition_policy(etype))
        dense = torch.nn.Parameter(first.clone())
        ours, torchs = dgl.distributed.optim.SparseAdagrad([table], lr=0.1, eps=1e-10), torch.optim.Adagrad(
            [dense], lr=0.1, eps=1e-10)
        for _ in range(4):
            ids = torch.from_numpy(random.permutation(count)[:6])
            target = torch.rand(6, 4)
            rows = table(ids)
            assert torch.allclose(rows, dense[ids], atol=1e-6)
            ((rows - target) ** 2).sum().backward()
            ours.zero_grad()
            ours.step()
            torchs.zero_grad()
            ((dense[ids] - target) ** 2).sum().backward()
            torchs.step()
        assert torch.allclose(table.weight[:], dense, atol=1e-5)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("force_even", [True, False])
def test_splits(both, world, force_even, monkeypatch):
    whole, g, _, _ = both
    monkeypatch.setattr(type(context), "world", world)
    book = g.get_partition_book()
    for etype in each(whole):
        mask = whole.edges[etype].data["mask"]
        for given in (mask, mask.numpy(), g.edges[etype].data["mask"]):
            shares = [dgl.distributed.edge_split(given, book, etype, rank=rank, force_even=force_even)
                      for rank in range(world)]
            assert torch.equal(torch.cat(shares), torch.nonzero(mask).flatten())  # neighbouring ids, as in DGL


def test_frontiers(both):
    """All edges around nodes, and samples of them, in both directions, with excluded edges."""
    whole, g, _, _ = both
    random = np.random.default_rng(4)
    for _ in range(6):
        nodes = {ntype: torch.from_numpy(random.permutation(whole.num_nodes(ntype))[:4]) for ntype in whole.ntypes}
        given = nodes if len(whole.ntypes) > 1 else nodes[whole.ntypes[0]]
        expected = dgl.in_subgraph(whole, given)
        for etype in whole.canonical_etypes:
            there = torch.sort(expected.edges[etype].data[dgl.EID])[0]
            for found in (dgl.distributed.in_subgraph(g, given), g.sample_neighbors(given, -1)):
                assert torch.equal(torch.sort(ids_in(found, etype))[0], there)
                assert (etype in found.canonical_etypes) == (len(there) > 0)
            for etype in found.canonical_etypes:
                assert same_ends(whole, etype, ids_in(found, etype), *found.edges(etype=etype))
        gone = {etype: torch.from_numpy(random.permutation(whole.num_edges(etype))[:9]) for etype in each(whole)}
        kept = g.sample_neighbors(given, -1, exclude_edges=gone if len(whole.ntypes) > 1 else next(iter(gone.values())))
        for etype in each(whole):
            there = set(expected.edges[etype].data[dgl.EID].tolist()) - set(gone[etype].tolist())
            assert set(ids_in(kept, etype).tolist()) == there
        for edge_dir, replace in (("in", False), ("in", True), ("out", False)):
            for call in (dgl.distributed.sample_neighbors, dgl.distributed.sample_etype_neighbors):
                found = call(g, given, 2, edge_dir=edge_dir, replace=replace)
                for etype in found.canonical_etypes:
                    ids = found.edges[etype].data[dgl.EID]
                    assert ids.dtype == torch.int64
                    assert same_ends(whole, etype, ids, *found.edges(etype=etype))


def check_block(whole, block):
    """The block's edges are edges of the graph, by their ids."""
    for etype in block.canonical_etypes:
        src, dst = (ends.long() for ends in block.edges(etype=etype))
        assert same_ends(whole, etype, block.edges[etype].data[dgl.EID], block.srcnodes[etype[0]].data[dgl.NID][src],
                         block.dstnodes[etype[2]].data[dgl.NID][dst])


def samplers(*arguments, **named):
    """Graphwire's, and DGL's own if DGL is installed."""
    found = [NeighborSampler(*arguments, **named)]
    if not getattr(dgl, "is_graphwire_subset", False):
        found.append(dgl.dataloading.NeighborSampler(*arguments, **named))
    return found


def test_blocks(both):
    """Around different seeds of one type, equal seeds, and seeds of two types; with columns of the edges."""
    whole, g, _, _ = both
    random = np.random.default_rng(5)
    for sampler in samplers([2, 3]):
        for ntype in whole.ntypes:
            ids = torch.from_numpy(random.permutation(whole.num_nodes(ntype))[:4])
            several = {name: torch.arange(3) for name in whole.ntypes}
            for seeds in (ids, torch.cat([ids, ids[:2]]) if sampler.__module__.startswith("graphwire") else ids):
                given = {ntype: seeds} if len(whole.ntypes) > 1 else seeds
                for block in sampler.sample_blocks(g, given)[-1]:
                    check_block(whole, block)
            if len(whole.ntypes) > 1:
                for block in sampler.sample_blocks(g, several)[-1]:
                    check_block(whole, block)
    fetching = NeighborSampler([2, 3], prefetch_edge_feats={etype: ["id", "wide"] for etype in each(whole)})
    given = {"a": torch.arange(3)} if len(whole.ntypes) > 1 else torch.arange(3)
    for block in fetching.sample(g, given)[-1]:
        assert block.num_edges()
        for etype in block.canonical_etypes:
            ids = block.edges[etype].data[dgl.EID]
            assert torch.equal(block.edges[etype].data["id"], ids)
            assert torch.equal(block.edges[etype].data["wide"], whole.edges[etype].data["wide"][ids])


def test_pair_graphs_and_edge_loaders(both):
    whole, g, _, _ = both
    random = np.random.default_rng(6)
    for relabel in (False, True):
        edges = {etype: torch.from_numpy(random.permutation(whole.num_edges(etype))[:7]) for etype in each(whole)}
        given = edges if len(whole.ntypes) > 1 else next(iter(edges.values()))
        found = g.edge_subgraph(given, relabel_nodes=relabel)
        for etype, ids in edges.items():
            assert torch.equal(found.edges[etype].data[dgl.EID], ids)
            src, dst = found.edges(etype=etype)
            if relabel:
                src, dst = found.nodes[etype[0]].data[dgl.NID][src], found.nodes[etype[2]].data[dgl.NID][dst]
            assert same_ends(whole, etype, ids, src, dst)
    labels = {etype: ["id"] for etype in each(whole)}
    sampler = as_edge_prediction_sampler(MultiLayerFullNeighborSampler(1), exclude="self", prefetch_labels=labels,
                                         negative_sampler=dgl.dataloading.negative_sampler.Uniform(2))
    seen = {etype: [] for etype in each(whole)}
    for _, pair, negative, (block,) in DistEdgeDataLoader(g, given, sampler, batch_size=5, shuffle=True):
        check_block(whole, block)
        assert sorted(pair.ntypes) == sorted(whole.ntypes)
        for etype in pair.canonical_etypes:
            ids = pair.edges[etype].data[dgl.EID]
            assert len(ids)
            src, dst = pair.edges(etype=etype)
            src, dst = pair.nodes[etype[0]].data[dgl.NID][src], pair.nodes[etype[2]].data[dgl.NID][dst]
            assert same_ends(whole, etype, ids, src, dst) and torch.equal(pair.edges[etype].data["id"], ids)
            assert not set(ids.tolist()) & set(ids_in(block, etype).tolist())
            from_, _ = negative.edges(etype=etype)
            assert torch.equal(negative.nodes[etype[0]].data[dgl.NID][from_], torch.repeat_interleave(src, 2))
            seen[etype].append(ids)
    for etype, ids in seen.items():
        assert torch.equal(torch.sort(torch.cat(ids))[0], torch.sort(edges[etype])[0])


def test_the_book_and_the_part(both):
    """One part has all ids. Homogeneous ids number the types one after another, and a part's graph uses them."""
    whole, g, path, mapping = both
    book = g.get_partition_book()
    begin, columns = 0, {}
    local, _, features, _, _, _, _ = dgl.distributed.load_partition(path, 0)
    src, dst = local.edges()
    for number, etype in enumerate(whole.canonical_etypes):
        ids = torch.arange(whole.num_edges(etype))
        assert torch.equal(book.partid2eids(0, etype), ids) and not book.eid2partid(ids, etype).any()
        assert torch.equal(book.eid2localeid(ids, 0, etype), ids)
        homogeneous = book.map_to_homo_eid(ids, etype)
        assert torch.equal(homogeneous, begin + ids)
        kinds, back = book.map_to_per_etype(homogeneous)
        assert torch.equal(back, ids) and (kinds == number).all()
        rows = (local.edata[dgl.EID] >= begin) & (local.edata[dgl.EID] < begin + len(ids))
        assert torch.equal(local.edata[dgl.EID][rows], homogeneous)
        ends = [book.map_to_per_ntype(local.ndata[dgl.NID][some[rows]])[1] for some in (src, dst)]
        assert same_ends(whole, etype, ids, *ends)
        for name, column in whole.edges[etype].data.items():
            assert torch.equal(features[":".join(etype) + "/" + name], column)
        columns[etype] = ids
        begin += len(ids)
    edges = mapping[1] if isinstance(mapping[1], dict) else {whole.canonical_etypes[0]: mapping[1]}
    assert edges.keys() == columns.keys() and all(torch.equal(edges[etype], ids) for etype, ids in columns.items())


def test_over_servers(both, tmp_path, monkeypatch):
    """The maps are read from the graph's owner, here over TCP."""
    whole, _, path, _ = both
    servers = Servers(path, 1, tmp_path)
    try:
        with graphwire.open(servers=servers.addresses, transport="tcp") as graph:
            monkeypatch.setattr(context, "graph", graph)
            g = dgl.distributed.DistGraph("g")
            for etype in each(whole):
                ids = torch.randperm(whole.num_edges(etype))
                assert same_ends(whole, etype, ids, *g.find_edges(ids, etype))
                assert torch.equal(g.edges[etype].data["id"][ids], ids)
            seeds = {"a": torch.arange(4)} if len(whole.ntypes) > 1 else torch.arange(4)
            for block in NeighborSampler([2, 2]).sample_blocks(g, seeds)[-1]:
                check_block(whole, block)
            monkeypatch.undo()
    finally:
        servers.close()
        context.dist_graph = both[1]


@pytest.mark.parametrize("parts", [1, 2])
def test_graphs_that_do_not_know(parts, tmp_path, monkeypatch):
    """One part without the edges' original ids: ids are the graph's, as in several parts, and one warning says so."""
    monkeypatch.setattr(user_edges, "_warned", False)
    np.save(tmp_path / "edges.npy", np.array([[0, 3], [1, 2], [2, 1], [3, 0]]))
    run("import", "--edges", f"_N:_E:_N={tmp_path}/edges.npy", "--name", "old", "--out", tmp_path / "one", "--quiet")
    if parts == 2:
        run("partition", tmp_path / "one", "--num-parts", 2, "--method", "random", "--out", tmp_path / "two")
    context.close()
    dgl.distributed.initialize("none.txt")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            g = dgl.distributed.DistGraph("old", part_config=str(tmp_path / ("one" if parts == 1 else "two")))
    assert [str(one.message).split(" are")[0] for one in told] == ["edge ids of _N:_E:_N"] * (parts == 1)
    assert not g.keeps_edge_ids() and book_of(g.graph, 0).num_partitions() == parts
    _, dst = g.find_edges(torch.arange(4))
    assert parts == 2 or dst.tolist() == [0, 1, 2, 3]
    frontier = dgl.distributed.in_subgraph(g, torch.arange(4))
    assert [ends.tolist() for ends in frontier.edges()] == [ends.tolist() for ends in
                                                            g.find_edges(frontier.edata[dgl.EID])]
    dgl.distributed.exit_client()
