"""Mini-batches compared with the graph's own edges; epochs, worlds, states; lifetimes."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
import weakref

import graphwire
import numpy as np
import pytest
import torch
from conftest import arrays_of_hetero
from graphwire._base import native


def edges_by_id(graph):
    """{(source, destination)} of the edges with these original ids."""
    arrays = arrays_of_hetero()
    return graph.gather("orig_id", slice(None), etype="cites").numpy(), arrays["cites"]


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_blocks_hold_the_graphs_edges(graph, index_dtype):
    batch = graphwire.sample(graph, [5, 9, 5], [4, -1], ntype="paper", features={"paper": "feat", "author": ["age"]},
                             labels="year", edge_features={"cites": "strength"}, index_dtype=index_dtype)
    arrays = arrays_of_hetero()
    original, (src, dst) = edges_by_id(graph)
    assert batch.seeds.tolist() == [5, 9, 5] and batch.seed_rows.tolist() == [0, 1, 0]
    assert np.array_equal(batch.y.numpy(), arrays["year"][[5, 9, 5]])
    papers = batch.nodes["paper"].numpy()
    assert np.array_equal(batch.x["paper"].numpy(), arrays["feat"][papers])
    assert np.array_equal(batch.x["author"].numpy(), arrays["age"][batch.nodes["author"].numpy()])
    for block in batch.blocks:
        edges = block["cites"]
        assert str(edges.indices.dtype) == f"torch.{index_dtype}"
        ids = original[edges.edge_ids.numpy()]
        assert np.array_equal(papers[edges.indices.numpy()], src[ids])
        assert np.array_equal(papers[edges.dst.numpy()], dst[ids])
        assert np.array_equal(edges.data["strength"].numpy(), arrays["strength"][ids])
        assert edges.num_src == block.num_src["paper"] and edges.num_dst == block.num_dst["paper"]
    assert batch.blocks[0].num_dst == batch.blocks[1].num_src and batch.blocks[1].num_dst["paper"] == 2
    assert batch.blocks[0].num_src == {ntype: len(ids) for ntype, ids in batch.nodes.items()}
    outer = batch.blocks[0]["cites"]  # -1: all edges
    degrees = graph.in_degrees(papers[:outer.num_dst], "cites").numpy()
    assert np.array_equal(outer.in_degrees.numpy(), degrees)
    assert batch.blocks[1]["cites"].in_degrees.max() <= 4


def test_fanouts_by_type(graph):
    batch = graphwire.sample(graph, [1, 2], [{"writes": 3}], ntype="paper")
    assert list(batch.blocks[0].edges) == ["author:writes:paper"]
    assert batch.blocks[0].only.etype == "author:writes:paper"


def test_an_epoch_is_every_seed_once(rmat):
    train = np.flatnonzero(rmat.gather("train_mask", slice(None)).numpy())
    loader = graphwire.NodeLoader(rmat, rmat.feature("train_mask")[:], [5], batch_size=300, shuffle=True)
    orders = []
    for epoch in range(2):
        batches = list(loader)
        assert len(batches) == len(loader) and {batch.epoch for batch in batches} == {epoch}
        seeds = torch.cat([batch.seeds for batch in batches]).numpy()
        assert np.array_equal(np.sort(seeds), train)
        orders.append(seeds)
    assert not np.array_equal(*orders)


def test_ranks_share_an_epoch(rmat):
    seen = []
    for rank in range(3):
        loader = graphwire.NodeLoader(rmat, range(900), [2], batch_size=100, shuffle=True, seed=5, world=3, rank=rank)
        assert len(loader) == 3
        seen += [batch.seeds for batch in loader]
    assert sorted(torch.cat(seen).tolist()) == list(range(900))


def test_a_loop_left_early_is_an_epoch(rmat):
    loader = graphwire.NodeLoader(rmat, None, [2], batch_size=100, shuffle=True)
    first = next(iter(loader))
    second = next(iter(loader))
    assert (first.epoch, first.step, second.epoch, second.step) == (0, 0, 1, 0)


def loaders_of(graph, device):
    """A loader of each kind, of five batches."""
    return (graphwire.NodeLoader(graph, range(500), [2], batch_size=100, shuffle=True, device=device),
            graphwire.EdgeLoader(graph, range(500), [2], batch_size=100, shuffle=True, device=device))


@pytest.mark.parametrize("device", [None, "cpu", "cuda"])
def test_loops_are_independent(rmat, made_up_gpu, device):
    """Interleaved, nested, and started in the middle: each loop is an epoch, the same as one after another."""
    for loader, alone in zip(loaders_of(rmat, device), loaders_of(rmat, device)):
        epochs = [[batch.digest() for batch in alone] if device != "cpu" else [batch.seeds.tolist() for batch in alone]
                  for _ in range(12)]

        def digest(batch):
            return batch.seeds.tolist() if device == "cpu" else batch.digest()

        pairs = [(digest(one), digest(two)) for one, two in zip(loader, loader)]
        assert [list(half) for half in zip(*pairs)] == epochs[:2]
        assert len(loader) == 5
        found = [digest(batch) for batch in loader]
        assert found == epochs[2]
        first, second = iter(loader), iter(loader)  # the epoch of the first batch
        begun = [digest(next(second)), digest(next(second))]
        rest = [digest(batch) for batch in first]
        assert rest == epochs[4] and begun + [digest(batch) for batch in second] == epochs[3]
        within = [[digest(inner) for inner in loader] for outer in loader]  # an outer one around five
        assert within == epochs[6:11]
        assert [digest(batch) for batch in loader] == epochs[11]


@pytest.mark.parametrize("device", [None, "cuda"])
def test_a_state_is_the_last_loops(rmat, made_up_gpu, device):
    loader, _ = loaders_of(rmat, device)

    def place():
        return loader.state_dict()["epoch"], loader.state_dict()["step"]

    first, second = iter(loader), iter(loader)
    assert place() == (0, 0)
    next(first), next(first)
    assert place() == (0, 2)
    next(second)
    assert place() == (1, 1)
    next(first)
    assert place() == (1, 1)
    state = loader.state_dict()
    rest = [batch.seeds.tolist() for batch in second]
    assert place() == (2, 0)
    next(first)
    assert place() == (2, 0)
    loader.load_state_dict(state)
    with pytest.raises(RuntimeError, match="started again"):
        next(first)
    assert [batch.seeds.tolist() for batch in loader] == rest and place() == (2, 0)


@pytest.mark.parametrize("device", [None, "cuda"])
def test_loops_that_end_in_their_middle(rmat, made_up_gpu, device):
    """Left by break, dropped, failed, or inside a generator: the next loop is the next epoch, and their memory is
    free."""
    loader, _ = loaders_of(rmat, device)
    for _ in loader:
        break
    kept = iter(loader)
    stream = weakref.ref(loader._loop.stream)
    assert next(kept).epoch == 1
    for epoch in range(2, 4):
        with pytest.raises(RuntimeError, match="the trainer's"):
            for batch in loader:
                assert batch.epoch == epoch
                raise RuntimeError("the trainer's")
    assert {batch.epoch for batch in (batch for batch in loader)} == {4}
    assert [batch.step for batch in kept] == [1, 2, 3, 4]
    del kept
    gc.collect()
    assert stream() is None
    never = iter(loader)
    assert next(iter(loader)).epoch == 5 and next(never).epoch == 6


def test_threads_loop_over_one_loader(rmat):
    """Each thread gets its own epochs, no epoch twice."""
    loader, alone = (graphwire.NodeLoader(rmat, range(300), [2], batch_size=50, shuffle=True) for _ in range(2))
    expected = [[batch.digest() for batch in alone] for _ in range(24)]
    found, lock = [], threading.Lock()

    def work():
        for _ in range(6):
            epoch = [(batch.epoch, batch.digest()) for batch in loader]
            with lock:
                found.append(epoch)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[digest for _, digest in epoch] for epoch in sorted(found)] == expected
    assert loader.state_dict()["epoch"] == 24 and loader.state_dict()["step"] == 0


@pytest.mark.parametrize("device", [None, "cuda"])
def test_a_state_goes_on(rmat, made_up_gpu, device):
    def opened():
        return graphwire.NodeLoader(rmat, None, [3, 3], features="feat", batch_size=500, shuffle=True, seed=9,
                                    device=device)

    whole = [batch.digest() for batch in opened()]
    loader, digests = opened(), []
    for batch in loader:
        digests.append(batch.digest())
        if batch.step == 3:
            state = loader.state_dict()
            break
    other = opened()
    other.load_state_dict(state)
    digests += [batch.digest() for batch in other]
    assert digests == whole
    assert next(iter(other)).epoch == 1
    with pytest.raises(graphwire.InvalidError):
        graphwire.NodeLoader(rmat, None, [3], batch_size=400).load_state_dict(state)


def test_invalid_states_are_refused_by_name(rmat):
    loader = graphwire.NodeLoader(rmat, range(900), [3], batch_size=400)
    batches = iter(loader)
    first = next(batches).digest()
    state = loader.state_dict()
    for error, wrong, told in (
        (TypeError, None, "NoneType"),
        (TypeError, list(state.items()), "list"),
        (ValueError, {}, "epoch, step, plan"),
        (ValueError, {"epoch": 0, "plan": state["plan"]}, "no step"),
        (TypeError, {**state, "step": 1.5}, "step"),
    ):
        with pytest.raises(error, match=f"state.*{told}"):
            loader.load_state_dict(wrong)
    rest = [batch.digest() for batch in batches]  # a failed call ends no loop
    assert [first, *rest] == [batch.digest() for batch in graphwire.NodeLoader(rmat, range(900), [3], batch_size=400)]


@pytest.mark.parametrize("device", [None, "cuda"])
def test_states_within_an_epoch(rmat, made_up_gpu, device):
    """After each batch, and after the last, whatever was prefetched."""
    loader = graphwire.NodeLoader(rmat, range(500), [2], batch_size=100, device=device)
    for epoch in range(2):
        states = [loader.state_dict()] + [loader.state_dict() for _ in loader]
        assert [(state["epoch"], state["step"]) for state in states] == [(epoch, step) for step in range(6)]
    for batch in loader:
        if batch.step == 4:
            break  # the last
    assert (loader.state_dict()["epoch"], loader.state_dict()["step"]) == (2, 5)
    assert next(iter(loader)).epoch == 3


def test_a_batch_that_fails_loses_none_before_it(rmat, made_up_gpu, monkeypatch):
    loader = graphwire.NodeLoader(rmat, range(500), [2], batch_size=100, device="cuda")
    whole, asked = graphwire.Batch.pinned, []

    def fails(batch):
        asked.append(1)
        if len(asked) == 3:
            raise RuntimeError("made up")
        return whole(batch)

    monkeypatch.setattr(graphwire.Batch, "pinned", fails)
    batches = iter(loader)
    assert next(batches).step == 0
    assert next(batches).step == 1 and loader.state_dict()["step"] == 2
    with pytest.raises(RuntimeError, match="made up"):
        next(batches)
    assert next(batches).step == 3 and loader.state_dict()["step"] == 4
    assert next(iter(loader)).epoch == 1


def test_copies_to_a_gpu_overlap(rmat, made_up_gpu, monkeypatch):
    """The trainer uses a batch while the next one is copied into pinned memory, which is work of the CPU."""
    used, waited = threading.Event(), []

    def pinned(batch):
        if batch.step > 0:
            waited.append(used.wait(10))
        return batch

    monkeypatch.setattr(graphwire.Batch, "pinned", pinned)
    loader = graphwire.NodeLoader(rmat, range(300), [2], batch_size=100, device="cuda")
    assert [used.set() or batch.step for batch in loader] == [0, 1, 2] and waited == [True, True]


def test_a_loop_that_is_left_ends_what_is_ahead(parts, own_servers, made_up_gpu):
    """Closing works though servers are silent and waits for them have no limit."""
    graph = graphwire.open(parts, own_servers.addresses, transport="tcp", timeout=None, reconnect=None)
    loader = graphwire.NodeLoader(graph, None, [2], features="feat", batch_size=100, device="cuda", depth=1)
    before = set(os.listdir("/proc/self/task"))
    with pytest.raises(RuntimeError, match="the trainer's"):
        for _ in loader:
            own_servers.stop()
            raise RuntimeError("the trainer's")
    while not set(os.listdir("/proc/self/task")) <= before:
        time.sleep(0.001)
    own_servers.go_on()
    assert next(iter(loader)).epoch == 1
    loader.close()
    graph.close()


def test_a_closed_loader_is_an_error(rmat):
    loader = graphwire.NodeLoader(rmat, None, [2], batch_size=100)
    batches = iter(loader)
    next(batches)
    loader.close()
    with pytest.raises(RuntimeError):
        next(batches)
    with pytest.raises(ValueError, match="closed"):
        iter(loader)


def test_arrays_keep_their_memory(rmat):
    expected = rmat.gather("feat", slice(None))
    loader = graphwire.NodeLoader(rmat, None, [5, 5], features="feat", batch_size=256, shuffle=True)
    held = [(batch.nodes["_N"], batch.x[3:]) for batch in loader]  # views outlive their batches
    loader.close()
    gc.collect()
    for nodes, rows in held:
        assert torch.equal(rows, expected[nodes[3:]])


def test_no_array_is_a_copy(rmat):
    batch = graphwire.sample(rmat, range(100), [5], features="feat")
    lease = weakref.ref(batch._lease)
    x = batch.x
    assert x.data_ptr() == int(graphwire._base.native.ffi.cast("uintptr_t", batch._lease.minibatch.rows[0]))
    del batch
    gc.collect()
    assert lease() is not None
    del x
    gc.collect()
    assert lease() is None


def test_the_last_user_may_be_autograds_thread(rmat):
    """An autograd graph that holds rows and is freed in another thread."""
    batch = graphwire.sample(rmat, range(100), [5], features="feat")
    lease = weakref.ref(batch._lease)
    weight = torch.nn.Parameter(torch.ones(16, 2))
    loss = [(batch.x @ weight).sum()]
    expected = batch.x.sum(0)
    del batch

    def work():
        loss[0].backward()
        loss.clear()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert lease() is None
    assert torch.allclose(weight.grad[:, 0], expected, rtol=1e-4, atol=1e-3)


def test_what_is_garbage_together_ends_in_order(whole):
    """Python frees the objects of a cycle in any order, so it might close the client before its loader."""
    gc.collect()
    before = native.lib.count_live().clients
    graph = graphwire.open(whole)
    gc.collect()  # in an older generation than what follows
    loader = graphwire.NodeLoader(graph, None, [5], batch_size=256)
    cycle = [graph, loader]
    cycle.append(cycle)
    del graph, loader, cycle
    gc.collect()
    assert native.lib.count_live().clients == before


def test_what_a_loader_reads_until_it_ends_is_its_own(whole):
    """Ids of reverse edges belong to the caller until they are copied: overwritten, freed, and in a cycle with the
    loader."""
    with graphwire.open(whole) as graph:
        loops = graph.edge_ids(range(512), range(512)).edge_ids[:200]  # each is its own reverse
        reverse = np.arange(graph.num_edges())

        def opened():
            return graphwire.EdgeLoader(graph, loops, [3], reverse_etype=graph.etypes[0], reverse_ids=reverse,
                                        batch_size=20, depth=1)

        expected = [batch.digest() for batch in opened()]
        loader = opened()
        reverse[:] = 0
        stream = loader._stream
        cycle = [loader, stream]
        cycle.append(cycle)
        assert [batch.digest() for batch in loader] == expected
        shares = native.lib.count_live().shares
        del loader, stream, cycle
        gc.collect()
        assert native.lib.count_live().shares < shares - 1


def test_to_a_device(rmat):
    loader = graphwire.NodeLoader(rmat, range(100), [5], features="feat", labels="label", batch_size=50, device="cpu")
    for batch in loader:
        assert batch.x.shape[0] == len(batch.nodes["_N"])
    with pytest.raises(ValueError, match="digest"):
        batch.to("meta").digest()
    assert batch.to("meta").blocks[0].only.indices.device.type == "meta"


def test_threads_share_a_graph(rmat):
    expected = rmat.gather("feat", slice(None))
    wrong = []

    def work(number):
        random = np.random.default_rng(number)
        for _ in range(20):
            ids = random.integers(0, 4096, 200)
            if not torch.equal(rmat.gather("feat", ids), expected[torch.from_numpy(ids)]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture(scope="module")
def several(graph):
    """Seeds of both node types: authors without 3 to 8, papers of a mask."""
    return {"author": [i for i in range(100) if not 3 <= i < 9], "paper": graph.feature("train_mask", "paper")[:]}


def test_seeds_of_several_types(graph, several):
    loader = graphwire.NodeLoader(graph, several, [4, 3], features={"paper": "feat", "author": "age"},
                                  labels={"paper": ["year", "label"], "author": "age"}, batch_size=50, shuffle=True)
    arrays, seen = arrays_of_hetero(), {"author": [], "paper": []}
    for batch in loader:
        assert batch.num_seeds == sum(len(ids) for ids in batch.seeds.values()) <= 50
        for ntype, ids in batch.seeds.items():
            assert torch.equal(batch.nodes[ntype][batch.seed_rows[ntype]], ids)
            assert batch.blocks[-1].num_dst[ntype] == len(ids)
            seen[ntype] += ids.tolist()
        assert np.array_equal(batch.labels["paper"]["year"].numpy(), arrays["year"][batch.seeds["paper"]])
        assert np.array_equal(batch.labels["author"]["age"].numpy(), arrays["age"][batch.seeds["author"]])
        assert np.array_equal(batch.x["author"].numpy(), arrays["age"][batch.nodes["author"].numpy()])
    assert len(loader) == -(-194 // 50)
    assert sorted(seen["author"]) == several["author"]
    assert sorted(seen["paper"]) == torch.nonzero(several["paper"]).flatten().tolist()


def test_several_types_over_servers_and_in_ranks(graph, hetero2, several):
    def digests(where, rank=0, world=1):
        loader = graphwire.NodeLoader(where, several, [4, 3], features={"paper": "feat"}, labels={"author": "age"},
                                      batch_size=20, shuffle=True, seed=3, world=world, rank=rank)
        return [batch.digest() for batch in loader]

    with graphwire.open(hetero2.folder) as alone, graphwire.open(servers=hetero2.addresses, transport="tcp") as served:
        assert digests(alone) == digests(served)
        assert digests(alone, 0, 2)[0] == digests(alone)[0] and digests(alone, 1, 2)[0] == digests(alone)[1]


def test_all_or_none_of_a_type(graph):
    loader = graphwire.NodeLoader(graph, {"author": None, "paper": []}, [2], batch_size=30)
    batches = list(loader)
    assert torch.cat([batch.seeds["author"] for batch in batches]).tolist() == list(range(100))
    assert all(len(batch.seeds["paper"]) == 0 for batch in batches)
    moved = batches[0].to("cpu")
    assert torch.equal(moved.seed_rows["author"], batches[0].seed_rows["author"])
    one = graphwire.sample(graph, {"paper": [7, 3, 7], "author": [1]}, [-1], labels={"paper": "label"})
    assert one.seeds["paper"].tolist() == [7, 3, 7] and one.seed_rows["paper"].tolist() == [0, 1, 0]
    assert np.array_equal(one.y["paper"].numpy(), arrays_of_hetero()["label"][[7, 3, 7]])


@pytest.mark.parametrize("arguments, options, text", [
    ({"author": [100]}, {}, "100"),
    ({"author": [1], "nix": [1]}, {}, "nix"),
    ({"author": [1], "paper": [1]}, {"labels": "label"}, "several types"),
    ({"author": [1]}, {"labels": {"paper": "label"}}, "paper has no seeds"),
    ({"author": [1]}, {"ntype": "author"}, "names the types"),
])
def test_several_types_that_do_not_fit(graph, arguments, options, text):
    with pytest.raises((graphwire.GraphwireError, ValueError), match=text):
        graphwire.NodeLoader(graph, arguments, [2], **options)


def digests_of_a_service(graph, calls, **settings):
    """The digests of a sampler's batches, called by four threads at once; beside those of sample()."""
    sampler, found = graphwire.Sampler(graph, **settings), {}

    def serve(first):
        for number in range(first, len(calls), 4):
            found[number] = sampler(**calls[number]).digest()

    threads = [threading.Thread(target=serve, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fanouts = settings.pop("fanouts")
    return ([found.get(number) for number in range(len(calls))],
            [graphwire.sample(graph, call.pop("seeds"), fanouts, **call, **settings).digest() for call in calls])


@pytest.mark.parametrize("over", ["folder", "servers"])
def test_a_sampler_samples_what_sample_does(hetero, hetero2, over):
    random = np.random.default_rng(46)
    with graphwire.open(hetero) if over == "folder" else graphwire.open(servers=hetero2.addresses) as graph:
        features = {"paper": ["feat", "year"], "author": "age"}
        for settings in [{"fanouts": [25, 10], "ntype": "paper", "features": features, "labels": "year"},
                         {"fanouts": [3, {"cites": -1}], "ntype": "author", "disjoint": True, "index_dtype": "int32"},
                         {"fanouts": [4, 2], "ntype": "paper", "frontier": "new", "weight": {"cites": "strength"}}]:
            calls = [{"seeds": random.integers(0, 100, random.integers(0, 4)).tolist(), "seed": int(number % 3),
                      "stream": int(number)} for number in range(30)]
            with graphwire.NodeLoader(graph, None, [5, 5], ntype="paper", batch_size=70) as loader:
                epochs = [batch.digest() for batch in loader]
                got, wanted = digests_of_a_service(graph, calls, **settings)
            assert got == wanted and len(set(got)) > 20 and len(epochs) == 5


def test_settings_of_a_sampler_are_checked_once_and_seeds_in_each_call(graph, hetero):
    sampler = graphwire.Sampler(graph, [2], ntype="paper", features={"paper": "feat"})
    assert "[2]" in repr(sampler) and "paper" in repr(sampler)
    for wrong, error, words in [({"fanouts": []}, ValueError, "fanouts"),
                                ({"labels": "nix"}, graphwire.NotFoundError, "nix"),
                                ({"ntype": None}, graphwire.NotFoundError, "which node type"),
                                ({"feature": "x"}, TypeError, "features"), ({"strict": 2}, TypeError, "strict"),
                                ({"strict": True}, ValueError, "strict")]:
        with pytest.raises(error, match=words):
            graphwire.Sampler(graph, **{"fanouts": [2], "ntype": "paper", **wrong})
    for seeds, options, error, words in [([300], {}, graphwire.OutOfRangeError, "300"), (["a"], {}, TypeError, "seeds"),
                                         ({"author": [1]}, {}, TypeError, "one type, paper"),
                                         ([1], {"stream": -1}, ValueError, "stream"),
                                         ([1], {"times": [3]}, ValueError, "time")]:
        with pytest.raises(error, match=words):
            sampler(seeds, **options)
    assert sampler([]).num_seeds == 0 and sampler([7]).seeds.tolist() == [7]
    with pytest.raises(TypeError, match="Sampler belongs to the process"):
        pickle.dumps(sampler)
    with graphwire.open(hetero) as other:
        closed = graphwire.Sampler(other, [2], ntype="paper")
    with pytest.raises(ValueError, match="closed"):
        closed([1])
