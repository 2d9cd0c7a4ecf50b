"""Draws by a column that the process looks up, and by masks: of each node, as many edges as a plain count gives, only
edges that may be drawn, and each as often as its weight demands, whatever its place in the node's list."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from graphwire.dgl.distributed import by_column
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
NODES, EDGES, HUB = 20, 900, 100  # edges of node 0 alone
R = ("a", "r", "b")


@pytest.fixture(scope="module", params=[1, 2])
def g(request, tmp_path_factory):
    """A DistGraph with a mask stored as bool (train_mask), one stored as uint8 (m), and columns added by the script."""
    random = np.random.default_rng(4)
    src, dst = random.integers(0, NODES, EDGES), random.integers(0, NODES, EDGES)
    dst[:HUB] = 0
    dst[HUB:] = np.where(dst[HUB:] == 0, 1, dst[HUB:])
    whole = dgl.heterograph({R: (torch.from_numpy(src), torch.from_numpy(dst)),
                             ("a", "plain", "b"): (torch.arange(NODES), torch.arange(NODES))},
                            {"a": NODES, "b": NODES})
    mask = torch.from_numpy((random.random(EDGES) < 0.4) & (dst != 3))
    whole.edges["r"].data.update(train_mask=mask, m=mask, w=torch.from_numpy(random.integers(0, 4, EDGES) / 2))
    folder = tmp_path_factory.mktemp("masks")
    dgl.distributed.partition_graph(whole, "g", request.param, str(folder / "parts"), part_method="random")
    context.close()
    dgl.distributed.initialize("none.txt")
    opened = dgl.distributed.DistGraph("g", part_config=str(folder / "parts" / "g.json"))
    columns, every = opened.edges["r"].data, torch.arange(EDGES)
    policy = opened.get_edge_partition_policy(R)
    for added, name, dtype in (("own_mask", "train_mask", torch.uint8), ("own_w", "w", torch.float64)):
        columns[added] = dgl.distributed.DistTensor((EDGES,), dtype, added, part_policy=policy)
        columns[added][every] = columns[name][every].to(dtype)
    yield opened
    dgl.distributed.exit_client()


NAMES = ["train_mask", "m", "own_mask", "w", "own_w"]


@pytest.mark.parametrize("edge_dir", ["in", "out"])
@pytest.mark.parametrize("fanout, replace", [(0, False), (3, False), (4, True), (1000, False), (-1, False), (-1, True)])
@pytest.mark.parametrize("name", NAMES)
def test_counts(g, name, fanout, replace, edge_dir):
    """Of equal nodes too, and beside a type without the column, which is uniform."""
    at = 1 if edge_dir == "in" else 0
    weights = g.edges["r"].data[name][torch.arange(EDGES)].double()
    ends = g.find_edges(torch.arange(EDGES), R)[at]
    nodes = torch.tensor([0, 3, 7, 7, 19])
    frontier = dgl.distributed.sample_neighbors(g, {"ab"[at]: nodes}, fanout, edge_dir, name, replace)
    for etype in frontier.canonical_etypes:
        assert all(torch.equal(*both) for both in zip(frontier.edges(etype=etype), g.find_edges(
            frontier.edges[etype].data[dgl.EID], etype)))
    ids = frontier.edges["r"].data[dgl.EID] if "r" in frontier.etypes else torch.empty(0, dtype=torch.int64)
    assert torch.all(weights[ids] > 0)
    for node in nodes.unique().tolist():
        mine, times = ids[ends[ids] == node], 2 if node == 7 else 1
        legal = int(((ends == node) & (weights > 0)).sum())
        most = legal if fanout < 0 else fanout * bool(legal) if replace else min(fanout, legal)
        assert len(mine) == most * times
        if not (replace and fanout > 0):
            assert int(torch.bincount(mine, minlength=1).max()) <= times


@pytest.mark.parametrize("edge_dir", ["in", "out"])
@pytest.mark.parametrize("name, replace", [("train_mask", False), ("own_mask", False), ("m", True), ("own_w", True)])
def test_no_place_in_the_list_is_preferred(g, name, replace, edge_dir):
    """Chi-square of the picks of one long list, in ten groups by place."""
    at = 1 if edge_dir == "in" else 0
    weights = g.edges["r"].data[name][torch.arange(EDGES)].double()
    ends = g.find_edges(torch.arange(EDGES), R)[at]
    node = 0 if at else int(torch.bincount(ends).argmax())
    places = torch.nonzero((ends == node) & (weights > 0)).flatten()
    fanout, rounds = (200, 20) if replace else (len(places) // 2, 60)
    counts = torch.zeros(EDGES)
    torch.manual_seed(2)
    for _ in range(rounds):
        found = dgl.distributed.sample_neighbors(g, {"ab"[at]: torch.tensor([node])}, fanout, edge_dir, name, replace)
        counts += torch.bincount(found.edges["r"].data[dgl.EID], minlength=EDGES)
    groups = torch.arange(len(places)) * 10 // len(places)
    expected = torch.zeros(10, dtype=torch.float64).index_add(0, groups, weights[places] / weights[places].sum()
                                                              ) * rounds * fanout
    seen = torch.zeros(10, dtype=torch.float64).index_add(0, groups, counts[places].double())
    assert float(counts.sum()) == rounds * fanout
    assert float(((seen - expected) ** 2 / expected).sum()) < 33.7  # 9 degrees of freedom: 1 in 10,000


def test_the_law_of_two_draws():
    """Successive draws in proportion to the weights that remain, over many equal lists at once, beside the law."""
    lists, weights = 40_000, np.array([0.5, 1, 2, 4])
    node = np.repeat(np.arange(lists), 4)
    picks = by_column._least_keys(np.random.default_rng(1), node, np.tile(weights, lists), 2).reshape(lists, 2) % 4
    share = weights / weights.sum()
    for first, second in itertools.combinations(range(4), 2):
        law = share[first] * share[second] * (1 / (1 - share[first]) + 1 / (1 - share[second]))
        seen = int(((picks == [first, second]).all(1)).sum())
        assert abs(seen - law * lists) < 4.5 * (lists * law * (1 - law)) ** 0.5
    assert len(by_column._with_replacement(np.random.default_rng(1), node[:0], weights[:0], 3)) == 0


@pytest.mark.parametrize("name", NAMES)
def test_blocks(g, name):
    """All layers, by DGL's sampler too, and the pairs of a loader of edges."""
    weights = g.edges["r"].data[name][torch.arange(EDGES)]
    for sampler in (dgl.dataloading.MultiLayerNeighborSampler([3, 2], mask=name),
                    dgl.dataloading.as_edge_prediction_sampler(dgl.dataloading.NeighborSampler([3, 2], prob=name))):
        seeds = {"b": torch.arange(9)} if not hasattr(sampler, "negative_sampler") else {R: torch.arange(50)}
        kind = dgl.dataloading.DistNodeDataLoader if "b" in seeds else dgl.dataloading.DistEdgeDataLoader
        for *_, blocks in kind(g, seeds, sampler, batch_size=20):
            for block in (block for block in blocks if "r" in block.etypes):
                assert torch.all(weights[block.edges["r"].data[dgl.EID]] > 0)


def test_columns_that_hold_no_weights(g):
    policy = g.get_edge_partition_policy(R)
    for value, text in ((-1.0, "edge 5 of a:r:b: its weight is -1"), (float("nan"), "its weight is nan"),
                        (float("inf"), "its weight is inf")):
        wrong = g.edges["r"].data["wrong"] = dgl.distributed.DistTensor((EDGES,), torch.float32, part_policy=policy)
        wrong[torch.tensor([5])] = torch.tensor([value])
        with pytest.raises(ValueError, match=text):
            dgl.distributed.sample_neighbors(g, {"b": torch.arange(NODES)}, 2, prob="wrong")
    g.edges["r"].data["wrong"] = dgl.distributed.DistTensor((EDGES, 2), torch.float32, part_policy=policy)
    with pytest.raises(ValueError, match=r"shape \[\d+, 2\]: a weight is one number"):
        dgl.distributed.sample_neighbors(g, {"b": torch.arange(NODES)}, 2, prob="wrong")
    with pytest.raises(KeyError, match="prob='none': no edge type has this column"):
        dgl.distributed.sample_neighbors(g, {"b": torch.arange(NODES)}, 2, prob="none")
