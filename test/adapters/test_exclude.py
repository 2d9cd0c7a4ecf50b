"""Edges that a batch of edges excludes, over random graphs in one part and in several, with loops and parallel edges.
No reverse stays in a block, whatever finds it: Graphwire's samplers, DGL's own, or DGL's collator. A wrong map is
refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphwire.dgl import dataloading
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
with_dgl = not getattr(dgl, "is_graphwire_subset", False)
BUYS, SOLD = ("user", "buys", "item"), ("item", "sold", "user")


def doubled(random, nodes=14, edges=50):
    """Edges, then the same edges reversed: edge e and edge e + edges."""
    src, dst = torch.from_numpy(random.integers(0, nodes, (2, edges)))
    return dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=nodes)


def opened(whole, parts, folder):
    dgl.distributed.partition_graph(whole, "g", parts, str(folder / "parts"), part_method="random")
    context.close()
    dgl.distributed.initialize("none.txt")
    return dgl.distributed.DistGraph("g", part_config=str(folder / "parts" / "g.json"))


@pytest.fixture(params=[1, 2, 3])
def parts(request):
    yield request.param
    dgl.distributed.exit_client()


def pairs_of(g, ids, etype=None):
    return list(zip(*(ends.tolist() for ends in g.find_edges(torch.as_tensor(ids), etype))))


def ways(g, sampler, **options):
    """(name, seeds -> pair graph and blocks) of each implementation that excludes edges."""
    found = [("ours", dataloading.as_edge_prediction_sampler(sampler, **options).sample),
             ("loader", lambda g, seeds: next(iter(dgl.dataloading.DistEdgeDataLoader(
                 g, seeds, sampler, batch_size=1000, **options))))]
    if with_dgl:
        own = dgl.dataloading.MultiLayerFullNeighborSampler(1)
        found += [("DGL's", dgl.dataloading.as_edge_prediction_sampler(own, **options).sample),
                  ("collator", lambda g, seeds: dgl.dataloading.EdgeCollator(g, seeds, own, **options).collate(
                      [(etype, int(one)) for etype, some in seeds.items() for one in some]
                      if isinstance(seeds, dict) else seeds.tolist()))]
    return [(name, lambda seeds, call=call: call(g, seeds)) for name, call in found]


def right_map(g, whole, edges):
    ids = torch.arange(2 * edges)
    users = ids if g.keeps_edge_ids() else g.edata["place"][:]  # the user's id of each edge
    here = torch.empty_like(users)
    here[users] = ids
    return here[(users + edges) % (2 * edges)]


def test_no_reverse_stays(parts, tmp_path):
    """With a map of the graph's own ids, and without a map."""
    random = np.random.default_rng(parts)
    whole = doubled(random)
    whole.edata["place"] = torch.arange(100)
    g = opened(whole, parts, tmp_path)
    every = pairs_of(g, range(100))
    turned = right_map(g, whole, 50)
    assert [pair[::-1] for pair in every] == pairs_of(g, turned)
    for reverse_eids in (turned, turned.numpy(), {"_E": turned}, None):
        for name, sample in ways(g, dataloading.MultiLayerFullNeighborSampler(1), exclude="reverse_id",
                                 reverse_eids=reverse_eids):
            if isinstance(reverse_eids, dict) and name == "collator":
                continue  # the collator's arguments have another test
            for seeds in (torch.from_numpy(random.choice(100, 9, replace=False)), torch.tensor([7])):
                _, pair, (block,) = sample(seeds)
                nodes = pair.ndata[dgl.NID]
                there = set(dgl.distributed.in_subgraph(g, nodes).edata[dgl.EID].tolist())
                left = set(block.edata[dgl.EID].tolist())
                ends = {every[one] for one in seeds.tolist()}
                by_ends = {one for one in there if every[one][::-1] in ends} | set(seeds.tolist())
                by_map = {*seeds.tolist(), *turned[seeds].tolist()}
                gone = by_map if g.keeps_edge_ids() and reverse_eids is not None else by_ends
                assert left == there - gone, (name, reverse_eids is None)
                assert by_map <= by_ends and not left & by_map


def test_a_map_in_other_ids_is_refused(parts, tmp_path):
    """The usual map, e and e + E, for a graph that was renumbered. Each wrong entry is refused when a batch uses it."""
    random = np.random.default_rng(10 + parts)
    whole = doubled(random)
    whole.edata["place"] = torch.arange(100)
    g = opened(whole, parts, tmp_path)
    if g.keeps_edge_ids():
        pytest.skip("they are the user's own ids")
    every, turned = pairs_of(g, range(100)), right_map(g, whole, 50)
    usual = torch.cat([torch.arange(50, 100), torch.arange(50)])
    sampler = dataloading.MultiLayerFullNeighborSampler(1)
    for _, sample in ways(g, sampler, exclude="reverse_id", reverse_eids=usual):
        with pytest.raises(ValueError, match=r"reverse_eids.*leave reverse_eids out"):
            sample(torch.arange(100))
    for _ in range(30):
        edge, other = (int(one) for one in random.integers(0, 100, 2))
        some = turned.clone()
        some[edge] = other
        for _, sample in ways(g, sampler, exclude="reverse_id", reverse_eids=some):
            if every[other] == every[edge][::-1]:
                assert other not in sample(torch.tensor([edge]))[-1][0].edata[dgl.EID].tolist()
                continue
            src, dst = every[edge]
            with pytest.raises(ValueError, match=f"edge {edge} leads from {src} to {dst}, and edge {other}, "):
                sample(torch.tensor([edge]))
    for outside in (-1, 100, 1 << 40):
        some = turned.clone()
        some[3] = outside
        for _, sample in ways(g, sampler, exclude="reverse_id", reverse_eids=some):
            sample(torch.tensor([4, 5]))
            with pytest.raises(ValueError, match=rf"reverse_eids\[3\] is {outside}, and .* has 100 edges"):
                sample(torch.tensor([4, 3]))


def test_a_map_of_fractions_is_refused(parts, tmp_path):
    g = opened(doubled(np.random.default_rng(4)), parts, tmp_path)
    for _, sample in ways(g, dataloading.MultiLayerFullNeighborSampler(1), exclude="reverse_id",
                          reverse_eids=torch.arange(100) + 0.7):
        with pytest.raises(TypeError, match=r"integers, not (torch\.)?float32"):
            sample(torch.tensor([1]))


def test_reverse_types(parts, tmp_path):
    """Edge e of one type is the reverse of edge e of the other type; both are seeds, or one of them."""
    random = np.random.default_rng(20 + parts)
    user, item = (torch.from_numpy(random.integers(0, 12, 40)) for _ in range(2))
    whole = dgl.heterograph({BUYS: (user, item), SOLD: (item, user), ("user", "knows", "user"): (user, user.roll(1))},
                            {"user": 12, "item": 12})
    g = opened(whole, parts, tmp_path)
    every = {etype: pairs_of(g, range(40), etype) for etype in (BUYS, SOLD)}
    other = {BUYS: SOLD, SOLD: BUYS}
    for types in ((BUYS,), (SOLD,), (BUYS, SOLD)):
        seeds = {etype: torch.from_numpy(random.choice(40, 6, replace=False)) for etype in types}
        for name, sample in ways(g, dataloading.MultiLayerFullNeighborSampler(1), exclude="reverse_types",
                                 reverse_etypes={"buys": "sold", "sold": "buys"}):
            _, pair, (block,) = sample(seeds)
            there = dgl.distributed.in_subgraph(g, pair.ndata[dgl.NID])
            for etype in (BUYS, SOLD):
                own = set(seeds.get(etype, torch.empty(0)).tolist())
                of_other = seeds.get(other[etype], torch.empty(0, dtype=torch.int64)).tolist()
                turned = {every[other[etype]][one][::-1] for one in of_other}
                gone = own | (set(of_other) if g.keeps_edge_ids(etype) else {
                    one for one in range(40) if every[etype][one] in turned})
                left = set(there.edges[etype].data[dgl.EID].tolist()) - gone
                assert set(block.edges[etype].data[dgl.EID].tolist()) == left, (name, types, etype)
            assert torch.equal(torch.sort(block.edges["knows"].data[dgl.EID])[0],
                               torch.sort(there.edges["knows"].data[dgl.EID])[0])
    if g.keeps_edge_ids(BUYS):
        return
    for options, text in (({"exclude": "reverse_types", "reverse_etypes": {"buys": "knows"}}, "knows.*leads from user"),
                          ({"exclude": "reverse_id"}, "buys.*reverse_types")):
        for _, sample in ways(g, dataloading.MultiLayerFullNeighborSampler(1), **options):
            with pytest.raises(ValueError, match=text):
                sample({"buys": torch.tensor([1])})


@pytest.mark.parametrize("options, kind, text", [
    ({"exclude": "ends"}, ValueError, "unsupported mode ends"),
    ({"exclude": "reverse_types"}, ValueError, "needs reverse_etypes"),
    ({"exclude": "reverse_id", "reverse_eids": {}}, KeyError, "reverse_eids has nothing of")])
def test_errors(options, kind, text, tmp_path):
    g = opened(doubled(np.random.default_rng(3)), 1, tmp_path)
    with pytest.raises(kind, match=text):
        dataloading.as_edge_prediction_sampler(dataloading.MultiLayerFullNeighborSampler(1), **options).sample(
            g, torch.tensor([1]))
    dgl.distributed.exit_client()
