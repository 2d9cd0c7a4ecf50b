"""Look-ahead of graphwire.dgl's loaders: the rows that are fetched are those of the definition
(test/support/row_sets.py), for any number of sampling threads, and no batch differs from those without."""

from __future__ import annotations

import itertools

import graphwire
import graphwire.dgl as dgl
import numpy as np
import pytest
import torch
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.dataloader import DistDataLoader
from graphwire.dgl.seeding import seeds
from row_sets import fetched_rows

ROW = 16 * 4  # bytes of "feat"
SEEDS, BATCH = 720, 60
STEPS = SEEDS // BATCH


@pytest.fixture
def g(servers):
    context.close()
    with graphwire.open(servers=servers.addresses, transport="tcp", threads=3, neighbours="requests") as graph:
        context.use(graph)
        context.initialized = True
        yield dgl.distributed.DistGraph(graph.name)
    context.close()


def loader_of(g, kind, fails=lambda seeds: None, **more):
    """Its batches fetch "feat", and fail as `fails` says."""

    class Sampler(dgl.dataloading.NeighborSampler):
        def sample_blocks(self, g, seed_nodes, exclude_eids=None):
            fails(seed_nodes)
            return super().sample_blocks(g, seed_nodes, exclude_eids)

    seeds.loaders = itertools.count()  # sampling depends on the loader's number in the process
    sampler = Sampler([4, 3], prefetch_node_feats=["feat"])
    of = {"batch_size": BATCH, "shuffle": True, **more}
    if kind == "nodes":
        return dgl.dataloading.DistNodeDataLoader(g, torch.arange(SEEDS), sampler, **of)
    return dgl.dataloading.DistEdgeDataLoader(g, torch.arange(SEEDS), sampler, exclude="self", **of)


def content(batch):
    blocks = batch[-1]
    return [(block.edata[dgl.EID].tolist(), block.srcdata[dgl.NID].tolist()) for block in blocks] + [
        blocks[0].srcdata["feat"].tolist()]


def read_rows(g):
    """How many rows of "feat" the graph has read: nothing else is read."""
    bytes_ = sum(row["read_bytes"] for row in g.graph.stats()["parts"])
    assert bytes_ % ROW == 0
    return bytes_ // ROW


@pytest.mark.parametrize("samplers", ["0", "1", "3"])
@pytest.mark.parametrize(("kind", "lookahead"), [("nodes", 4), ("edges", 2)])
def test_fetched_rows_are_those_of_the_definition(g, monkeypatch, kind, lookahead, samplers):
    monkeypatch.setenv("DGL_NUM_SAMPLER", samplers)
    torch.manual_seed(2)
    wanted = [list(loader) for loader in [loader_of(g, kind)] for _ in range(2)]
    torch.manual_seed(2)
    loader = loader_of(g, kind, lookahead=lookahead)
    assert loader.num_workers == int(samplers)
    for epoch in wanted:
        before, found = read_rows(g), list(loader)
        fetched = read_rows(g) - before
        assert [content(batch) for batch in found] == [content(batch) for batch in epoch]
        lists = [batch[0].tolist() for batch in epoch]
        assert fetched == fetched_rows(lists, STEPS, lookahead, 0) < sum(map(len, lists))
        rows = np.asarray(g.ndata["feat"][epoch[0][0]])
        assert np.array_equal(found[0][-1][0].srcdata["feat"].numpy(), rows)


@pytest.mark.parametrize("samplers", ["0", "1", "3"])
@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_bad_batches_and_early_ends(g, monkeypatch, kind, samplers):
    """Skipped batches, batches that come again, loops that are left, and two loops at once."""
    monkeypatch.setenv("DGL_NUM_SAMPLER", samplers)
    torch.manual_seed(2)
    wanted = [content(batch) for batch in loader_of(g, kind)]
    errors = {}

    def fails(seed_nodes):
        error = errors.pop(tuple(seed_nodes.tolist()), None)
        if error is not None:
            raise error

    named = []
    torch.manual_seed(2)
    list(loader_of(g, kind, lambda seed_nodes: named.append(tuple(seed_nodes.tolist()))))
    for at in (2, 5, 6):
        errors[named[at]] = ValueError("bad")
    for at in (0, 4, 9):
        errors[named[at]] = graphwire.PeerError("lost")
    torch.manual_seed(2)
    loop, found = iter(loader_of(g, kind, fails, lookahead=4)), []
    for _ in range(STEPS + 3):
        try:
            found.append(content(next(loop)))
        except (ValueError, graphwire.PeerError):
            pass
    if samplers == "0":  # threads call the sampler in any order, so that other batches are the bad ones
        assert found == [batch for at, batch in enumerate(wanted) if at not in (2, 5, 6)]
    assert len(found) == STEPS - 3 and next(loop, None) is None
    loader = loader_of(g, kind, lookahead=3)
    assert len(list(itertools.islice(loader, 2))) == 2
    assert len(list(zip(loader, loader))) == STEPS


def test_refused(g):
    for call, error, text in (
            (lambda: loader_of(g, "nodes", lookahead=5), graphwire.InvalidError, "lookahead=5 needs .* depth is 4"),
            (lambda: loader_of(g, "nodes", lookahead=0), graphwire.InvalidError, "1 or more"),
            (lambda: dgl.dataloading.DistNodeDataLoader(g, [1], dgl.dataloading.NeighborSampler([2]), lookahead=2),
             graphwire.InvalidError, "lookahead: the sampler fetches no rows: name features"),
            (lambda: DistDataLoader([1, 2], 1, lookahead=2), TypeError, "lookahead")):
        with pytest.raises(error, match=text):
            call()
