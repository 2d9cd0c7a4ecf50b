"""len, set_epoch, state_dict and repr of the loaders of graphwire.pyg and graphwire.dgl: a loop that continues from a
state has the remaining batches of the saved one."""

from __future__ import annotations

import copy
import itertools
import pickle

import graphwire
import graphwire.dgl as dgl
import pytest
import torch
from conftest import NODES
from graphwire.dgl.seeding import seeds
from graphwire.pyg import LinkLoader, NeighborSampler, NodeLoader, stores
from torch.utils.data import DistributedSampler

SEEDS, BATCH = 90, 20


@pytest.fixture(scope="module")
def graph(communities):
    with graphwire.open(communities) as opened:
        yield opened


@pytest.fixture
def g(communities):
    dgl.distributed.initialize("unused.txt", standalone=True)
    yield dgl.distributed.DistGraph("communities", part_config=str(communities / "communities.json"))
    dgl.distributed.exit_client()


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    """The tests of this file count the process's loaders by themselves."""
    monkeypatch.setattr(seeds, "loaders", itertools.count())


def of_pyg(graph, _, **more):
    return NodeLoader(stores(graph, "features"), NeighborSampler(graph, [3, 2]), input_nodes=torch.arange(SEEDS),
                      batch_size=BATCH, shuffle=True, **more)


def of_links(graph, _, **more):
    ends = torch.stack(graph.find_edges(range(SEEDS)))  # two nodes for each seed
    return LinkLoader(stores(graph, "features"), NeighborSampler(graph, [3, 2]), edge_label_index=(None, ends),
                      batch_size=BATCH, shuffle=True, neg_sampling="binary", **more)


def first_of_process():
    """Sampling of DGL's loaders depends on their number in the process: this one is as the first of its process."""
    seeds.loaders = itertools.count()


def of_dgl(_, g, **more):
    first_of_process()
    return dgl.dataloading.DistNodeDataLoader(g, torch.arange(SEEDS), dgl.dataloading.NeighborSampler([3, 2]),
                                              batch_size=BATCH, shuffle=True, **more)


def of_dgl_edges(_, g, **more):
    first_of_process()
    return dgl.dataloading.DistEdgeDataLoader(g, torch.arange(SEEDS), dgl.dataloading.NeighborSampler([3, 2]),
                                              batch_size=BATCH, shuffle=True, **more)


LOADERS = {"pyg.NodeLoader": of_pyg, "pyg.LinkLoader": of_links, "dgl.DistNodeDataLoader": of_dgl,
           "dgl.DistEdgeDataLoader": of_dgl_edges}


def content(batch):
    """The ids of a batch's nodes, in order; those of DGL's blocks and of PyG's data."""
    return batch.n_id.tolist() if hasattr(batch, "n_id") else batch[0].tolist()


@pytest.mark.parametrize("kind", LOADERS)
def test_a_loop_continues_from_a_state(graph, g, kind):
    make = LOADERS[kind]
    torch.manual_seed(1)
    loader = make(graph, g)
    assert len(loader) == 5
    assert [loader.state_dict()[name] for name in ("epoch", "step")] == [0, 0]
    batches = iter(loader)
    expected = [content(next(batches)) for _ in range(2)]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    kept = copy.deepcopy(state)
    assert [state[name] for name in ("epoch", "step")] == [0, 2]
    expected += [content(batch) for batch in batches]
    assert len(expected) == 5
    assert [loader.state_dict()[name] for name in ("epoch", "step")] == [1, 0]

    torch.manual_seed(2 if kind.startswith("pyg") else 1)  # DGL's sampling depends on the seed, PyG's on the state
    torch.rand(9)
    again = make(graph, g)
    again.load_state_dict(state)
    again.set_epoch(0)  # as in the usual loop over epochs
    assert again.state_dict()["step"] == 2
    assert [content(batch) for batch in again] == expected[2:]
    assert again.state_dict()["epoch"] == 1 and len(list(again)) == 5  # the next loop is a whole epoch
    assert {name: str(value) for name, value in state.items()} == {name: str(value) for name, value in kept.items()}

    again.load_state_dict(state)
    again.set_epoch(4)  # another epoch begins at its beginning
    assert [again.state_dict()[name] for name in ("epoch", "step")] == [4, 0] and len(list(again)) == 5
    assert again.state_dict()["epoch"] == 5


@pytest.mark.parametrize("kind", LOADERS)
def test_what_is_no_state_is_refused(graph, g, kind):
    loader = LOADERS[kind](graph, g)
    state = loader.state_dict()
    for wrong, error in ((5, TypeError), ({}, ValueError), ({**state, "step": -1}, ValueError),
                         ({**state, "epoch": "1"}, TypeError)):
        with pytest.raises(error, match="state"):
            loader.load_state_dict(wrong)
    for wrong, error in ((-1, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="epoch"):
            loader.set_epoch(wrong)


@pytest.mark.parametrize("kind", LOADERS)
def test_reprs(graph, g, kind):
    text = repr(LOADERS[kind](graph, g))
    assert text.startswith(f"<graphwire.{kind}: {SEEDS} ") and "fanouts [3, 2], batches of 20" in text, text


def test_workers_and_a_generator_continue(graph):
    """Workers sample, from the loader's generator: training may draw random numbers meanwhile."""
    def make():
        return of_pyg(graph, None, num_workers=2, generator=torch.Generator().manual_seed(7), in_order=True)

    loader = make()
    batches = iter(loader)
    expected = [content(next(batches)) for _ in range(3)]
    state = loader.state_dict()
    expected += [content(batch) for batch in batches]
    again = make()
    torch.rand(100)
    again.load_state_dict(state)
    found = []
    for batch in again:
        found.append(content(batch))
        torch.rand(5)
    assert found == expected[3:]
    with pytest.raises(ValueError, match="generator"):
        of_pyg(graph, None).load_state_dict(state)


def test_set_epoch_reaches_the_sampler(graph):
    sampler = DistributedSampler(range(SEEDS), 2, 0, shuffle=True)
    loader = NodeLoader(stores(graph, "features"), NeighborSampler(graph, [2]), input_nodes=torch.arange(SEEDS),
                        batch_size=BATCH, sampler=sampler)
    loader.set_epoch(3)
    assert sampler.epoch == 3 and loader.state_dict()["epoch"] == 3 and len(loader) == 3


def test_the_epoch_decides_what_dgls_loader_samples(g):
    def make():
        first_of_process()
        return dgl.dataloading.DistNodeDataLoader(g, torch.arange(NODES), dgl.dataloading.NeighborSampler([2]),
                                                  batch_size=200)

    loader, other = make(), make()
    expected = [[content(batch) for batch in loader] for _ in range(3)]
    assert expected[0] != expected[2]
    other.set_epoch(2)
    assert [content(batch) for batch in other] == expected[2]
