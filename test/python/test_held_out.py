"""EdgeLoader with seeds by their ends; HeldOut edges, which are in no batch: against plain Python, in one part and over
servers."""

from __future__ import annotations

import multiprocessing
import pickle
import random

import graphwire
import numpy as np
import pytest
import torch
from graphwire import HeldOut


@pytest.fixture(scope="module")
def graph(hetero):
    with graphwire.open(hetero) as opened:
        yield opened


def ends_of(graph, etype="cites"):
    return torch.stack(list(graph.find_edges(slice(None), etype)))


def drawn(loader, graph, etype):
    """{(source, destination)} and the ids of the edges of a type in all batches."""
    ids = [block.edges[etype].edge_ids for batch in loader for block in batch.blocks if etype in block.edges]
    ids = torch.cat(ids)
    src, dst = graph.find_edges(ids, etype)
    return set(zip(src.tolist(), dst.tolist())), set(ids.tolist())


@pytest.mark.parametrize("seed", range(6))
def test_seeds_by_their_ends(graph, seed):
    draw, torch_draw = random.Random(seed), torch.Generator().manual_seed(seed)
    count = draw.choice([1, 7, 150])
    pairs = torch.stack([torch.randint(0, graph.num_nodes(end), (count,), generator=torch_draw)
                         for end in graph.ends("writes")])
    ends = draw.choice([lambda: pairs, lambda: (pairs[0], pairs[1].tolist()), lambda: {"writes": pairs},
                        lambda: pairs.numpy()])()
    few = draw.choice([None, torch.arange(count) % 2 == 0, [0] * 3])
    etype = None if isinstance(ends, dict) else "writes"
    loader = graphwire.EdgeLoader(graph, {"writes": few} if few is not None and etype is None else few, [3, 2],
                                  etype=etype, ends=ends, negatives=2, no_true_edges=True, exclude="ends",
                                  batch_size=20, shuffle=True, seed=seed)
    places, banned = [], set(zip(*pairs.tolist()))
    for batch in loader:
        if etype is None:
            assert batch.edge_type is None
            seeds, rows = batch.seeds["author:writes:paper"], {
                name: getattr(batch, name)["author:writes:paper"] for name in ("src_rows", "dst_rows", "negative_rows")}
        else:
            seeds, rows = batch.seeds, {
                name: getattr(batch, name) for name in ("src_rows", "dst_rows", "negative_rows")}
        assert torch.equal(batch.nodes["author"][rows["src_rows"]], pairs[0][seeds])
        assert torch.equal(batch.nodes["paper"][rows["dst_rows"]], pairs[1][seeds])
        others = batch.nodes["paper"][rows["negative_rows"]]
        assert not graph.has_edges(pairs[0][seeds].repeat_interleave(2), others.flatten(), "writes").any()
        places += seeds.tolist()
        for block in batch.blocks:
            if "author:writes:paper" in block.edges:
                src, dst = graph.find_edges(block.edges["author:writes:paper"].edge_ids, "writes")
                assert not {pair for pair in zip(src.tolist(), dst.tolist())} & {
                    (pairs[0][i].item(), pairs[1][i].item()) for i in seeds.tolist()}
    assert banned
    wanted = range(count) if few is None else torch.arange(count)[few].tolist() if torch.is_tensor(few) else few
    assert sorted(places) == sorted(wanted)


def test_the_arrays_may_change_after_the_call(graph):
    pairs = np.stack([np.arange(50), np.arange(50)])
    loader = graphwire.EdgeLoader(graph, None, [2], etype="cites", ends=pairs, batch_size=5, depth=1)
    pairs[:] = 0
    for batch in loader:
        assert torch.equal(batch.nodes["paper"][batch.src_rows], batch.seeds)


def test_a_state_belongs_to_its_pairs(graph):
    loaders = [graphwire.EdgeLoader(graph, None, [2], etype="cites", ends=([1, 2, 3], [4, 5, last]), batch_size=1)
               for last in (6, 6, 7)]
    loaders[1].load_state_dict(loaders[0].state_dict())
    with pytest.raises(graphwire.InvalidError):
        loaders[2].load_state_dict(loaders[0].state_dict())


@pytest.mark.parametrize("seed", range(6))
def test_held_out_edges(graph, seed):
    draw = random.Random(seed)
    ids = torch.tensor(draw.sample(range(graph.num_edges("cites")), 400))
    every = ends_of(graph)
    by_ends = draw.random() < 0.5
    given = HeldOut(graph, ends={"cites": every[:, ids]}) if by_ends else HeldOut(graph, ids, etype="cites")
    assert len(given) == 400
    options = {"fanouts": [-1, 5], "features": None, "held_out": given}
    loaders = [graphwire.NodeLoader(graph, None, ntype="paper", **options),
               graphwire.EdgeLoader(graph, range(500), etype="cites", exclude="edges", **options)]
    for loader in loaders:
        pairs, found = drawn(loader, graph, "paper:cites:paper")
        assert not found & set(ids.tolist())
        assert not by_ends or not pairs & set(zip(*every[:, ids].tolist()))
    every_paper = graphwire.sample(graph, range(graph.num_nodes("paper")), [-1], ntype="paper", held_out=given)
    found = drawn([every_paper], graph, "paper:cites:paper")[1]
    banned = set(zip(*every[:, ids].tolist()))
    wanted = {number for number, pair in enumerate(zip(*every.tolist()))
              if (pair not in banned if by_ends else number not in set(ids.tolist()))}
    assert found == wanted


def test_original_ids(tmp_path):
    torch.manual_seed(1)
    pairs = torch.randint(0, 80, (2, 500))
    path = graphwire.partition_graph((pairs[0], pairs[1]), "g", 3, tmp_path / "parts", method="random", num_nodes=80)
    graph = graphwire.open(path)
    nodes = torch.as_tensor(graph.feature("orig_id")[:])
    for given, banned in ((HeldOut(graph, range(100), by="orig"), None),
                          (HeldOut(graph, ends=pairs[:, :100], by="orig"), set(zip(*pairs[:, :100].tolist())))):
        found = drawn(graphwire.NodeLoader(graph, None, [-1], held_out=given), graph, "_N:_E:_N")[1]
        rows = torch.as_tensor(graph.original_ids(list(found), etype="_E"))
        assert set(rows.tolist()) == {row for row, pair in enumerate(zip(*pairs.tolist()))
                                      if (row >= 100 if banned is None else pair not in banned)}
    assert len(nodes) == 80


def _edges_of(held):
    loader = graphwire.NodeLoader(held._graph, None, [-1], ntype="paper", held_out=held)
    return drawn(loader, held._graph, "paper:cites:paper")[1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes(graph, method):
    held = HeldOut(graph, range(0, 300), etype="cites")
    wanted = _edges_of(held)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(_edges_of, (held,)) == wanted
    assert _edges_of(pickle.loads(pickle.dumps(held))) == wanted and min(wanted) == 300


@pytest.mark.parametrize("call, error, words", [
    (lambda g: HeldOut(g, [10**9], etype="cites"), graphwire.OutOfRangeError, "held-out edge 1000000000"),
    (lambda g: HeldOut(g, ends=([1], [10**9]), etype="cites"), graphwire.OutOfRangeError, "held-out destination 10"),
    (lambda g: HeldOut(g, ends=([1, 2], [1]), etype="cites"), ValueError, "2 sources and 1 destinations"),
    (lambda g: HeldOut(g, ends=torch.ones(3, 5).long(), etype="cites"), ValueError, r"\[2, n\], not \[3, 5\]"),
    (lambda g: HeldOut(g, [1]), graphwire.NotFoundError, "which edge type"),
    (lambda g: HeldOut(g, [0.5], etype="cites"), TypeError, "ids are integers"),
    (lambda g: graphwire.NodeLoader(g, None, [2], ntype="paper", held_out=[1]), TypeError, "a graphwire.HeldOut"),
    (lambda g: graphwire.EdgeLoader(g, None, [2], etype="cites", ends=([1], [2]), exclude="edges"), ValueError,
     'exclude "ends" instead'),
    (lambda g: graphwire.EdgeLoader(g, None, [2], etype="cites", ends=([1], [2, 3])), ValueError, "1 sources and 2"),
    (lambda g: graphwire.EdgeLoader(g, [1], [2], etype="cites", ends=([1], [2])), graphwire.OutOfRangeError, "seed 1"),
    (lambda g: graphwire.EdgeLoader(g, None, [2], etype="cites", ends=([1], [10**7])), graphwire.OutOfRangeError,
     "destination 10000000 of the seed at place 0"),
    (lambda g: graphwire.EdgeLoader(g, None, [2], etype="cites", ends=([1], [2]), labels="strength"),
     graphwire.InvalidError, "seeds by their ends do not have it"),
    (lambda g: graphwire.EdgeLoader(g, {"cites": [0]}, [2], ends={"writes": ([1], [2])}), ValueError, "has no seeds"),
    (lambda g: graphwire.EdgeLoader(g, {"cites": [0], "writes": [0]}, [2], ends=([1], [2])), ValueError, "several"),
])
def test_wrong_arguments(graph, call, error, words):
    with pytest.raises(error, match=words):
        call(graph)


def test_another_graph(graph, tmp_path):
    other = graphwire.open(graphwire.partition_graph(([0, 1, 2], [1, 2, 0]), "g", 1, tmp_path / "parts"))
    with pytest.raises(graphwire.InvalidError, match="those of another graph"):
        graphwire.NodeLoader(graph, None, [2], ntype="paper", held_out=HeldOut(other, [0]))
