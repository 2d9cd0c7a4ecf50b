"""Loops over the loaders of graphwire.pyg and graphwire.dgl after an error: a batch whose function raises is skipped,
as in torch's DataLoader over the same places; a batch that a server has failed, or that was interrupted, comes again
with the same bytes."""

from __future__ import annotations

import contextlib
import itertools
import random

import graphwire
import graphwire.dgl as dgl
import numpy as np
import pytest
import torch
from graphs import Servers
from graphwire.dgl.distributed.dataloader import DistDataLoader
from graphwire.dgl.seeding import seeds
from graphwire.pyg import (
    LinkLoader,
    LinkNeighborLoader,
    NeighborLoader,
    NeighborSampler,
    NodeLoader,
    from_pyg,
    stores,
)
from torch_geometric.data import Data, HeteroData

of_pyg = pytest.mark.slow  # once: these tests do not use dgl
SEEDS, BATCH = 90, 9
STEPS = SEEDS // BATCH


@pytest.fixture(scope="module")
def data():
    draw = torch.Generator().manual_seed(5)
    return Data(edge_index=torch.randint(0, 200, (2, 1500), generator=draw), x=torch.rand(200, 4, generator=draw))


@pytest.fixture(scope="module")
def typed():
    draw, made = torch.Generator().manual_seed(6), HeteroData()
    made["a"].x, made["b"].x = torch.rand(100, 3, generator=draw), torch.rand(80, 2, generator=draw)
    made["a", "to", "b"].edge_index = torch.stack([torch.randint(0, 100, (700,), generator=draw),
                                                   torch.randint(0, 80, (700,), generator=draw)])
    made["b", "of", "a"].edge_index = made["a", "to", "b"].edge_index.flip(0)
    return made


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    made = tmp_path_factory.mktemp("loop_errors") / "parts"
    from_pyg(data, made, num_parts=2, method="random").close()
    return made


@pytest.fixture(scope="module")
def graph(folder):
    with graphwire.open(folder) as opened:
        yield opened


def ids_of(batch):
    """What names a batch: the places of its seeds."""
    if isinstance(batch, (list, torch.Tensor)):
        return tuple(map(int, batch))
    if hasattr(batch, "metadata") and not hasattr(batch, "stores"):
        return tuple(torch.as_tensor(batch.metadata[0]).tolist())
    return next(tuple(store.input_id.tolist()) for store in batch.stores if "input_id" in store)


class Fails:
    """Calls a function. errors: {places of seeds: an error}; such a batch fails once, after its tensors were changed. A
    worker process has errors of its own."""

    def __init__(self, errors=(), function=lambda batch: batch):
        self.errors, self.function, self.seen = dict(errors), function, []

    def __call__(self, batch):
        name = ids_of(batch)
        self.seen.append(name)
        error = self.errors.pop(name, None)
        if error is None:
            return self.function(batch)
        for store in getattr(batch, "stores", ()):
            for tensor in store.values():
                if isinstance(tensor, torch.Tensor):
                    tensor.zero_()
        torch.rand(3)
        raise error


def pyg_kinds(data, typed, graph):
    """{name: function(options) of a loader} of the loaders over pyg. The options have a transform."""
    pair, links = stores(graph, ["x"]), data.edge_index[:, :SEEDS]
    sampler = NeighborSampler(pair[1], [3, 2])
    of = {"batch_size": BATCH, "shuffle": True}
    ids = torch.arange(SEEDS)
    return {
        "Data": lambda more: NeighborLoader(data, [3, 2], ids, **of, **more),
        "HeteroData": lambda more: NeighborLoader(typed, [3, 2], ("a", ids), **of, **more),
        "graph": lambda more: NeighborLoader(graph, [3, 2], ids, **of, **more),
        "stores": lambda more: NeighborLoader(pair, [3, 2], ids, **of, **more),
        "graph, ahead": lambda more: NeighborLoader(graph, [3, 2], ids, lookahead=3, cache_bytes="1k", **of, **more),
        "links, ahead": lambda more: LinkNeighborLoader(graph, [3, 2], links, neg_sampling="binary", lookahead=4,
                                                        cache_bytes="2k", cache_batches=4, **of, **more),
        "links": lambda more: LinkNeighborLoader(graph, [3, 2], links, neg_sampling="binary", **of, **more),
        "triplets": lambda more: LinkNeighborLoader(data, [2], links, neg_sampling=("triplet", 2), **of, **more),
        "NodeLoader": lambda more: NodeLoader(pair, sampler, ids, **of, **more),
        "NodeLoader, filtered there": lambda more: NodeLoader(pair, sampler, ids, filter_per_worker=True, **of, **more),
        "NodeLoader, two workers": lambda more: NodeLoader(pair, sampler, ids, num_workers=2, **of, **more),
        "NodeLoader, workers that stay": lambda more: NodeLoader(pair, sampler, ids, num_workers=2,
                                                                 persistent_workers=True, **of, **more),
        "LinkLoader": lambda more: LinkLoader(pair, sampler, (None, links), neg_sampling="binary", **of, **more)}


OVER_GRAPHS = ["graph", "graph, ahead", "stores", "links", "links, ahead", "NodeLoader",
               "NodeLoader, filtered there", "LinkLoader"]
WITH_WORKERS = ["NodeLoader, two workers", "NodeLoader, workers that stay"]
NAMES = ["Data", "HeteroData", "triplets", *OVER_GRAPHS, *WITH_WORKERS]


def content(batch):
    """All that a batch of PyG has, as bytes."""
    found = []
    for store in getattr(batch, "stores", [batch]):
        for key, value in sorted(store.items(), key=lambda item: item[0]):
            found.append((key, np.asarray(value).tobytes() if isinstance(value, torch.Tensor) else repr(value)))
    return found


def walked(loop, content=content, most=200):
    """(contents of the batches, [(batches before it, type)] of the errors)."""
    batches, errors = [], []
    for _ in range(most):
        try:
            batches.append(content(next(loop)))
        except StopIteration:
            assert next(loop, None) is None
            return batches, errors
        except (Exception, KeyboardInterrupt) as error:
            errors.append((len(batches), type(error)))
    raise AssertionError(f"no end after {errors[-3:]}")


def whole_epoch(make):
    """(contents, names) of the batches of an epoch."""
    torch.manual_seed(3)
    batches = list(make({}))
    assert len(batches) == STEPS
    return [content(batch) for batch in batches], [ids_of(batch) for batch in batches]


@of_pyg
@pytest.mark.parametrize("where", ["transform", "transform_sampler_output"])
@pytest.mark.parametrize("name", NAMES)
def test_bad_batches_are_skipped_as_in_torch(data, typed, graph, name, where):
    make, draw = pyg_kinds(data, typed, graph)[name], random.Random(name + where)
    whole, names = whole_epoch(make)
    for kind in (RuntimeError, ValueError, StopIteration):
        bad = draw.sample(range(STEPS), draw.randint(1, 4))
        # torch itself, over numbers
        of_torch = walked(iter(torch.utils.data.DataLoader(range(STEPS), batch_size=1, collate_fn=Fails(
            {(at,): RuntimeError("bad") for at in bad}, lambda items: items[0]))), lambda one: one)
        torch.manual_seed(3)
        loader = make({where: Fails({names[at]: kind("bad") for at in bad})})
        found, errors = walked(iter(loader))
        assert [before for before, _ in errors] == [before for before, _ in of_torch[1]]
        assert {kind for _, kind in errors} == {RuntimeError if kind is StopIteration else kind}
        if name in WITH_WORKERS or "NeighborLoader" in type(loader).__name__:
            assert found == [whole[at] for at in of_torch[0]]
        assert len(found) == len(of_torch[0])
        assert loader.state_dict()["epoch"] == 1 and len(walked(iter(loader))[0]) >= STEPS - len(bad)


KEPT = [lambda: graphwire.PeerError("GW_PEER_LOST", "lost"), lambda: graphwire.DeadlineError("GW_DEADLINE", "late"),
        KeyboardInterrupt]


@of_pyg
@pytest.mark.parametrize("where", ["transform", "transform_sampler_output"])
@pytest.mark.parametrize("name", NAMES)
def test_batches_of_lost_servers_come_again(data, typed, graph, name, where):
    make, draw = pyg_kinds(data, typed, graph)[name], random.Random(name + where)
    whole, names = whole_epoch(make)
    some = draw.sample(names, 4)
    errors = {at: draw.choice(KEPT[:2] if name in WITH_WORKERS else KEPT)() for at in some}
    torch.manual_seed(3)
    found, raised = walked(iter(make({where: Fails(errors)})))
    assert found == whole and len(raised) == (8 if name in WITH_WORKERS else 4)  # in the worker, and then here
    assert {type(error) for error in errors.values()} == {kind for _, kind in raised}


@of_pyg
@pytest.mark.parametrize("name", OVER_GRAPHS)
def test_a_loop_that_cannot_go_on_says_so(data, typed, folder, name):
    """The same error at each call, and no StopIteration."""
    with graphwire.open(folder) as opened:
        loop = iter(pyg_kinds(data, typed, opened)[name]({}))
        next(loop)
        opened.close()
        given, said = 1, set()
        for _ in range(3 * STEPS):
            try:
                next(loop)
                given += 1
            except ValueError as error:
                said.add(str(error))
        assert given < STEPS and len(said) == 1 and "closed" in said.pop()


class Dies(torch.utils.data.Sampler):
    def __iter__(self):
        yield from range(4 * BATCH)
        raise OSError("the list of seeds is lost")

    def __len__(self):
        return SEEDS


@of_pyg
@pytest.mark.parametrize("name", ["Data", "links", "NodeLoader"])
def test_a_sampler_that_ends_with_an_error(data, typed, graph, name):
    ids, pair = torch.arange(SEEDS), stores(graph, ["x"])
    loader = {"Data": lambda: NeighborLoader(data, [2], ids, batch_size=BATCH, sampler=Dies()),
              "links": lambda: LinkNeighborLoader(graph, [2], data.edge_index[:, :SEEDS], batch_size=BATCH,
                                                  sampler=Dies()),
              "NodeLoader": lambda: NodeLoader(pair, NeighborSampler(pair[1], [2]), ids, batch_size=BATCH,
                                               sampler=Dies())}[name]()
    loop, given, lost = iter(loader), 0, 0
    for _ in range(20):
        try:
            next(loop)
            given += 1
        except OSError as error:
            assert "is lost" in str(error)
            lost += 1
    assert (given, lost) == (4, 16)


@of_pyg
def test_a_state_counts_skipped_batches(graph):
    def made(errors):
        return NeighborLoader(graph, [2], torch.arange(SEEDS), batch_size=BATCH, transform=Fails(errors))

    whole, names = whole_epoch(lambda _: made({}))
    lost = graphwire.PeerError("GW_PEER_LOST", "lost")
    torch.manual_seed(3)
    loader = made({names[1]: RuntimeError("bad"), names[4]: lost})
    loop, found = iter(loader), []
    while len(found) < 4:
        with contextlib.suppress(RuntimeError, graphwire.PeerError):
            found.append(content(next(loop)))
    state = loader.state_dict()
    assert state["step"] == 5 and found == [whole[0], *whole[2:5]]
    # The server is away while the loop goes to its place.
    again = made({names[2]: lost, names[7]: lost})
    again.load_state_dict(state)
    found, errors = walked(iter(again))
    assert found == whole[5:] and len(errors) == 1


# --- Over servers. ---


def tried(make):
    """What make() returns. On a busy machine a connection may take longer than this test's deadlines."""
    while True:
        torch.manual_seed(3)
        with contextlib.suppress(graphwire.PeerError, graphwire.DeadlineError):
            return make()


@of_pyg
@pytest.mark.parametrize("name", [*OVER_GRAPHS, WITH_WORKERS[0]])
@pytest.mark.parametrize("how", ["lost", "silent"])
def test_a_server_that_returns_costs_no_batch(data, typed, graph, folder, tmp_path, monkeypatch, name, how):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    whole, _ = whole_epoch(pyg_kinds(data, typed, graph)[name])
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    servers = Servers(folder, 2, tmp_path)
    ends, returns = (lambda: servers.end(1), lambda: servers.start(1)) if how == "lost" else (
        servers.stop, servers.go_on)
    try:
        with tried(lambda: graphwire.open(folder, servers.addresses, transport="tcp", timeout=0.3,
                                          reconnect=0.01)) as opened:
            total = 0
            for at in (1, 5):
                loop = tried(lambda: iter(pyg_kinds(data, typed, opened)[name]({})))
                found, errors, away = [], 0, False
                while True:
                    if len(found) == at and not away and not errors:
                        ends()
                        away = True
                    try:
                        found.append(content(next(loop)))
                    except StopIteration:
                        break
                    except (graphwire.PeerError, graphwire.DeadlineError):
                        errors += 1
                        if away:
                            returns()
                            away = False
                if away:
                    returns()
                assert found == whole, (at, errors)
                total += errors
            assert total  # a loop that samples ahead may have had all further batches once
    finally:
        servers.go_on()
        servers.close()


# --- DGL. ---


@pytest.fixture
def g(communities):
    dgl.distributed.initialize("unused.txt", standalone=True)
    yield dgl.distributed.DistGraph("communities", part_config=str(communities / "communities.json"))
    dgl.distributed.exit_client()


class Own(DistDataLoader):
    def _next_data(self):
        items = super()._next_data()
        return None if items is None else [2 * item for item in items]


class Around:
    """A sampler of DGL that fails as `fails` says."""

    def __init__(self, fails):
        self._fails, self._sampler = fails, dgl.dataloading.NeighborSampler([3, 2])

    def sample(self, g, seeds):
        return self._sampler.sample(g, self._fails(seeds))


class Negatives:
    """Negatives of edges, which fail as `fails` says."""

    def __init__(self, fails):
        self._fails, self._draws = fails, dgl.dataloading.negative_sampler.Uniform(2)

    def __call__(self, g, eids):
        return self._draws(g, self._fails(eids))


def dgl_kinds(g, fails):
    ids, of = torch.arange(SEEDS), {"batch_size": BATCH}
    sampler = dgl.dataloading.NeighborSampler([3, 2])
    seeds.loaders = itertools.count()  # sampling depends on the loader's number in the process
    return {"ids": lambda: DistDataLoader(ids, collate_fn=fails, shuffle=True, **of),
            "own items": lambda: Own(ids, collate_fn=fails, **of),
            "nodes": lambda: dgl.dataloading.DistNodeDataLoader(g, ids, Around(fails), shuffle=True, **of),
            "edges": lambda: dgl.dataloading.DistEdgeDataLoader(g, ids, sampler, negative_sampler=Negatives(fails),
                                                                shuffle=True, **of)}


def content_of_dgl(batch):
    if isinstance(batch, list):
        return ids_of(batch)
    blocks = [(block.edata[dgl.EID].tolist(), block.srcdata[dgl.NID].tolist()) for block in batch[-1]]
    ends = [[end.tolist() for end in pair.edges()] for pair in batch[1:-1] if hasattr(pair, "edges")]
    return [batch[0].tolist(), blocks, ends]


def names_of_dgl(batches):
    """What names the batches: the ids that their functions get."""
    return [ids_of(batch) if isinstance(batch, list) else tuple(batch[1].edata[dgl.EID].tolist()) if hasattr(
        batch[1], "edata") else tuple(batch[1].tolist()) for batch in batches]


@pytest.mark.parametrize("samplers", ["0", "1", "3"])
@pytest.mark.parametrize("kind", ["ids", "own items", "nodes", "edges"])
def test_loops_of_dgl(g, monkeypatch, kind, samplers):
    monkeypatch.setenv("DGL_NUM_SAMPLER", samplers)
    draw = random.Random(kind + samplers)
    # Threads share torch's random numbers, so that the negatives of their batches differ from loop to loop.
    is_exact = samplers == "0" or kind != "edges"

    def of(errors):
        torch.manual_seed(2)
        return dgl_kinds(g, Fails(errors, lambda seeds: seeds))[kind]()

    loader = of({})
    assert loader.num_workers == int(samplers)
    batches = list(loader)
    whole, names = [content_of_dgl(batch) for batch in batches], names_of_dgl(batches)
    assert len(loader) == len(whole) == STEPS
    bad = draw.sample(range(STEPS), 3)
    batches, errors = walked(iter(of({names[at]: RuntimeError("bad") for at in bad})), lambda batch: batch)
    assert [kind for _, kind in errors] == [RuntimeError] * 3
    left = [at for at in range(STEPS) if at not in bad]
    assert names_of_dgl(batches) == [names[at] for at in left]
    if kind != "edges":  # a bad batch draws no negatives
        assert [content_of_dgl(batch) for batch in batches] == [whole[at] for at in left]
    loader = of({names[at]: draw.choice(KEPT)() for at in draw.sample(range(STEPS), 3)})
    batches, errors = walked(iter(loader), lambda batch: batch)
    assert len(errors) == 3 and names_of_dgl(batches) == names
    assert not is_exact or [content_of_dgl(batch) for batch in batches] == whole
    assert len(list(loader)) == STEPS


def test_an_epoch_of_dgl_with_skipped_batches_begins_the_next_one(g):
    ids = torch.arange(SEEDS)
    loader = DistDataLoader(ids, BATCH, collate_fn=Fails({tuple(range(BATCH)): RuntimeError("bad")}))
    epoch = iter(loader)
    assert len(walked(epoch, len)[0]) == STEPS - 1
    assert len(list(epoch)) == STEPS  # in DGL the iterator is the loader
