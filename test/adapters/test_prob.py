"""prob= of graphwire.dgl: frontiers and blocks by the weight of a column, beside the graph in memory, and beside DGL's
own samplers where DGL is installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphwire.dgl import dataloading
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
with_dgl = not getattr(dgl, "is_graphwire_subset", False)
BUYS, SOLD, KNOWS = ("user", "buys", "item"), ("item", "sold", "user"), ("user", "knows", "user")


NONE = torch.empty(0, dtype=torch.int64)


def weights_of(random, count):
    return torch.from_numpy(random.random(count) * (random.random(count) < 0.6)).to(torch.float32)


@pytest.fixture(scope="module", params=[1, 2])
def plain(request, tmp_path_factory):
    """(graph in memory, DistGraph): node 0 has only weights of 0, node 1 one other. In one part without a table."""
    random = np.random.default_rng(6)
    src, dst = (torch.from_numpy(random.integers(0, 40, 600)) for _ in range(2))
    whole = dgl.graph((src, dst), num_nodes=43)
    whole.edata["w"] = weights_of(random, 600)
    whole.edata["w"][dst < 2] = 0
    whole.edata["w"][torch.nonzero(dst == 1)[0]] = 2.5
    whole.edata["m"], whole.edata["zero"] = whole.edata["w"] > 0, torch.zeros(600)
    whole.edata["place"] = torch.arange(600)
    folder = tmp_path_factory.mktemp("plain")
    yield whole, opened(whole, request.param, folder, **({"weight": "w"} if request.param > 1 else {}))
    dgl.distributed.exit_client()


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """(graph in memory, DistGraph) of several types; KNOWS has no weights."""
    random = np.random.default_rng(7)
    user, item = torch.from_numpy(random.integers(0, 25, 300)), torch.from_numpy(random.integers(0, 20, 300))
    whole = dgl.heterograph({BUYS: (user, item), SOLD: (item, user), KNOWS: (user, user.roll(1))},
                            {"user": 25, "item": 20})
    for etype in (BUYS, SOLD):
        whole.edges[etype].data["w"] = weights_of(random, 300)
    for etype in whole.canonical_etypes:
        whole.edges[etype].data["place"] = torch.arange(300)
    yield whole, opened(whole, 2, tmp_path_factory.mktemp("typed"), weight="w")
    dgl.distributed.exit_client()


def opened(whole, parts, folder, **options):
    dgl.distributed.partition_graph(whole, "g", parts, str(folder / "parts"), part_method="random", **options)
    context.close()
    dgl.distributed.initialize("none.txt")
    return dgl.distributed.DistGraph("g", part_config=str(folder / "parts" / "g.json"))


def check(g, etype, nodes, dst, ids, fanout, replace=False, name="w"):
    """Edges that a frontier or a block has for `nodes`, [edges] destinations and ids: as many as there may be, and none
    of weight 0. A type without weights is uniform."""
    columns = g.edges[etype].data
    weights = columns[name][torch.arange(g.num_edges(etype))] if name in columns else torch.ones(g.num_edges(etype))
    ends = g.find_edges(torch.arange(g.num_edges(etype)), etype)[1]
    assert torch.equal(ends[ids], dst)
    for node in nodes.tolist():
        legal, found = torch.nonzero((ends == node) & (weights > 0)).flatten(), ids[dst == node]
        assert set(found.tolist()) <= set(legal.tolist())
        if replace and fanout >= 0:
            assert len(found) == (fanout if len(legal) else 0)
        else:
            most = len(legal) if fanout == -1 else min(fanout, len(legal))
            assert len(found) == len(torch.unique(found)) == most, (etype, node)


def check_blocks(g, blocks, fanouts, **options):
    for block, fanout in zip(blocks, fanouts):
        for etype in g.canonical_etypes:
            nodes = block.dstnodes[etype[2]].data[dgl.NID]
            there = etype in block.canonical_etypes
            dst = nodes[block.edges(etype=etype)[1]] if there else NONE
            check(g, etype, nodes, dst, block.edges[etype].data[dgl.EID] if there else NONE, fanout, **options)


def test_several_types(typed):
    """Types without the column are uniform, as in DGL."""
    _, g = typed
    nodes = {"user": torch.arange(25), "item": torch.arange(20)}
    for draw in (dgl.distributed.sample_neighbors, dgl.distributed.sample_etype_neighbors):
        frontier = draw(g, nodes, 3, prob="w")
        for etype in g.canonical_etypes:
            check(g, etype, nodes[etype[2]], frontier.edges(etype=etype)[1], frontier.edges[etype].data[dgl.EID], 3)
    for seeds in ({"user": torch.arange(9)}, {"user": torch.arange(9), "item": torch.tensor([3])}):
        for sampler in [dataloading.NeighborSampler([2, 3], prob="w"),
                        *([dgl.dataloading.NeighborSampler([2, 3], prob="w")] if with_dgl else [])]:
            check_blocks(g, sampler.sample_blocks(g, seeds)[2], [2, 3])


def test_what_is_refused(typed):
    _, g = typed
    nodes = {"user": torch.tensor([1])}
    g.edges["buys"].data["same"] = g.edges["buys"].data["w"]
    cases = [({"prob": "x"}, KeyError, "prob='x': no edge type has this column; .*user:buys:item has .*w"),
             ({"prob": g.edges["buys"].data["w"]}, TypeError, "prob is the name of a column of edges, not ")]
    for options, error, text in cases:
        for call in (lambda some=options: dgl.distributed.sample_neighbors(g, nodes, 2, **some),
                     lambda some=options: dgl.distributed.sample_etype_neighbors(g, nodes, 2, **some),
                     lambda some=options: g.sample_neighbors(nodes, 2, **some),
                     lambda some=options: dataloading.NeighborSampler([2], **some).sample_blocks(g, nodes)):
            with pytest.raises(error, match=text) as failed:
                call()
            assert "\n" not in str(failed.value)
    assert "buys" not in dgl.distributed.sample_neighbors(g, nodes, 2, prob="same").etypes  # another name of w
    with pytest.raises(ValueError, match="mutually exclusive"):
        dataloading.NeighborSampler([2], prob="w", mask="m")


@pytest.mark.parametrize("fanout, replace", [(2, False), (4, True), (100, False), (-1, False), (-1, True)])
def test_frontiers(plain, fanout, replace):
    _, g = plain
    nodes = torch.arange(43)
    for name in ("w", "m"):  # partition_graph stores a mask as uint8, whose law as a weight is the mask's
        for frontier in (dgl.distributed.sample_neighbors(g, nodes, fanout, prob=name, replace=replace),
                         dgl.distributed.sample_etype_neighbors(g, nodes, fanout, "in", name, replace),
                         g.sample_neighbors(nodes, fanout, prob=name, replace=replace)):
            check(g, g.canonical_etypes[0], nodes, frontier.edges()[1], frontier.edata[dgl.EID], fanout, replace, name)
    assert dgl.distributed.sample_neighbors(g, nodes, fanout, prob="zero", replace=replace).num_edges() == 0
    with pytest.raises(KeyError, match=r"prob='x': no edge type has this column; _N:_E:_N has .*w"):
        dgl.distributed.sample_neighbors(g, nodes, 2, prob="x")


def test_blocks(plain):
    """In one call, layer by layer with excluded edges and equal seeds, and by DGL's sampler."""
    _, g = plain
    seeds = torch.tensor([0, 1, 5, 9, 42])
    own = dataloading.NeighborSampler([3, 2], prob="w")
    samplers = [own, dataloading.MultiLayerNeighborSampler([3, 2], mask="m"),
                *([dgl.dataloading.NeighborSampler([3, 2], prob="w")] if with_dgl else [])]
    for sampler in samplers:
        check_blocks(g, sampler.sample_blocks(g, seeds)[2], [3, 2])
        (_, _, blocks), = dgl.dataloading.DistNodeDataLoader(g, seeds, sampler, batch_size=9)
        check_blocks(g, blocks, [3, 2])
    equal = own.sample_blocks(g, torch.tensor([5, 9, 5]))[2]
    assert equal[-1].num_edges() == 6 and all(torch.all(g.edata["w"][block.edata[dgl.EID]] > 0) for block in equal)
    again = dataloading.NeighborSampler([4, 4], prob="w", replace=True)
    check_blocks(g, again.sample_blocks(g, seeds)[2], [4, 4], replace=True)
    there = torch.nonzero(g.edata["w"][torch.arange(600)] > 0).flatten()[::2]
    blocks = own.sample_blocks(g, seeds, there)[2]
    left = torch.cat([block.edata[dgl.EID] for block in blocks])
    assert len(left) and not torch.isin(left, there).any() and torch.all(g.edata["w"][left] > 0)


def test_edges(plain):
    """as_edge_prediction_sampler passes prob on; the batch's own edges are excluded after the draw."""
    _, g = plain
    seeds = torch.arange(40)
    for negatives in (None, dataloading.negative_sampler.Uniform(2)):
        sampler = dataloading.as_edge_prediction_sampler(dataloading.NeighborSampler([5, 5], prob="w"), exclude="self",
                                                         negative_sampler=negatives)
        for blocks in (sampler.sample(g, seeds)[-1],
                       next(iter(dgl.dataloading.DistEdgeDataLoader(g, seeds, sampler, batch_size=40)))[-1]):
            ids = torch.cat([block.edata[dgl.EID] for block in blocks])
            assert len(ids) > 50 and torch.all(g.edata["w"][ids] > 0) and not torch.isin(ids, seeds).any()


@pytest.mark.skipif(not with_dgl, reason="beside DGL's own samplers")
@pytest.mark.parametrize("name", ["w", "m", "zero"])
def test_dgls_own(plain, name):
    """What DGL gives for the graph in memory, where no chance decides; and as often, over 150 draws."""
    whole, g = plain
    nodes = torch.arange(43)
    for fanout, replace in ((-1, False), (-1, True), (100, False)):
        theirs = dgl.sampling.sample_neighbors(whole, nodes, fanout, prob=name, replace=replace).edata[dgl.EID]
        ours = g.sample_neighbors(nodes, fanout, prob=name, replace=replace).edata[dgl.EID]
        assert torch.equal(torch.sort(g.edata["place"][ours])[0], torch.sort(theirs)[0])
    for replace in (False, True):
        counts = [torch.zeros(600), torch.zeros(600)]
        for seed in range(150):
            torch.manual_seed(seed), dgl.seed(seed)
            for count, graph, place in ((counts[0], g, g.edata["place"]), (counts[1], whole, torch.arange(600))):
                sample = dgl.sampling.sample_neighbors if graph is whole else dgl.distributed.sample_neighbors
                count += torch.bincount(place[sample(graph, nodes, 2, prob=name, replace=replace).edata[dgl.EID]],
                                        minlength=600)
        both = counts[0] + counts[1]
        square = ((counts[0] - counts[1]) ** 2 / both.clamp(min=1)).sum()
        free = int((both > 0).sum())
        assert square <= free + 8 * (2 * free) ** 0.5
