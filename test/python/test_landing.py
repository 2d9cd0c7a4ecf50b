"""Rows of mini-batches that land in pinned memory. A stand-in hands out the memory, as torch does with a GPU: it takes
memory back when the last tensor over it is freed, and hands it out again. What it has taken back holds one byte, and a
byte that changes there was written too late. test_cuda.py has the same with a GPU."""

import gc
import logging
import os
import threading
import time
import weakref

import graphwire
import numpy as np
import pytest
import torch
from graphwire._base import landing

FREED = 0xEE
LOADER = {"fanouts": [8, 8], "features": "feat", "batch_size": 400, "shuffle": True, "seed": 3}


class Allocator:
    """Memory in the place of pinned memory. made: the buffers; handed: how often memory was handed out."""

    def __init__(self):
        self.made, self.free, self.handed, self.refused = [], {}, 0, False
        self.lock = threading.Lock()

    def allocate(self, count):
        if self.refused:
            raise RuntimeError("CUDA error: made up")
        with self.lock:
            self.handed += 1
            free = self.free.setdefault(count, [])
            if free:
                buffer = free.pop(0)
                assert (buffer == FREED).all(), "memory was written after it was freed"
            else:
                buffer = np.full(count, FREED, np.uint8)
                self.made.append(buffer)
        handed = buffer[:]
        weakref.finalize(handed, self._freed, buffer)
        return torch.from_numpy(handed)

    def _freed(self, buffer):
        buffer[:] = FREED
        self.free[buffer.size].append(buffer)

    def holds(self, tensor):
        start = tensor.data_ptr()
        return any(one.ctypes.data <= start < one.ctypes.data + one.size for one in self.made)

    def check(self):
        """Nothing has written to memory that is free."""
        for free in self.free.values():
            assert all((buffer == FREED).all() for buffer in free)

    @property
    def out(self):
        """The number of pieces that are not free."""
        return len(self.made) - sum(map(len, self.free.values()))


@pytest.fixture
def pinned(monkeypatch):
    allocator = Allocator()
    monkeypatch.setattr(landing, "allocate", allocator.allocate)
    monkeypatch.setattr(landing, "in_use", lambda: True)
    yield allocator
    gc.collect()
    allocator.check()


@pytest.fixture(params=["standalone", "servers"])
def opened(request, parts, servers):
    """A function that opens the graph."""
    return (lambda **more: graphwire.open(parts, **more)) if request.param == "standalone" else (
        lambda **more: graphwire.open(parts, servers.addresses, transport="tcp", **more))


def plain(parts, **more):
    """(digest, rows) of the batches without pinned memory."""
    with graphwire.open(parts, numpy=True) as graph:
        return [(batch.digest(), batch.x.copy()) for batch in graphwire.NodeLoader(graph, **{**LOADER, **more})]


def test_rows_land_in_it(parts, opened, pinned):
    wanted = plain(parts)
    with opened() as graph:
        loader, there = graphwire.NodeLoader(graph, **LOADER), 0
        for epoch in range(3):
            found = []
            for batch in loader:
                found.append(batch.digest())
                there += pinned.holds(batch.x)
                if epoch == 0:
                    assert np.array_equal(batch.x.numpy(), wanted[batch.step][1])
            assert epoch or found == [digest for digest, _ in wanted]
    assert there > len(wanted)  # the first batches find no memory, nor do those that come faster than before
    assert len(pinned.made) < pinned.handed / 2  # memory is used again


def test_rows_that_are_kept(parts, opened, pinned):
    """They keep their block, and nothing else of the batch, while later batches come, and when all is closed."""
    wanted = plain(parts)
    graph = opened()
    loader = graphwire.NodeLoader(graph, **LOADER)
    kept = [batch.x for batch in loader]
    again = [batch.x[3:7, 1:] for batch in graphwire.NodeLoader(graph, **LOADER)]
    out = pinned.out
    loader.close()
    graph.close()
    del loader, graph
    gc.collect()
    assert pinned.out <= out
    for rows, part, (_, right) in zip(kept, again, wanted, strict=True):
        assert np.array_equal(rows.numpy(), right) and np.array_equal(part.numpy(), right[3:7, 1:])
    del kept, again, rows, part
    landing._sweep()
    gc.collect()
    assert pinned.out == 0


def test_a_batch_outlives_its_loader(parts, opened, pinned):
    with opened() as graph:
        batches = iter(graphwire.NodeLoader(graph, **LOADER))
        taken = [next(batches) for _ in range(9)]
        digests = [batch.digest() for batch in taken]
        del batches
    assert [batch.digest() for batch in taken] == digests == [digest for digest, _ in plain(parts)][:9]
    assert sum(pinned.holds(batch.x) for batch in taken) > 2


def test_what_is_freed_in_a_cycle(opened, pinned):
    """Batches are under way when everything is freed at once, in whichever order."""
    for _ in range(6):
        graph = opened()
        loader = graphwire.NodeLoader(graph, depth=12, **LOADER)
        batches = iter(loader)
        kept = [next(batches), graph, loader, batches]
        kept.append(kept)
        del graph, loader, batches, kept
        gc.collect()
        pinned.check()
    landing._sweep()
    assert pinned.out == 0 and not [one for one in landing._landings.values() if one._blocks]


def test_threads(parts, opened, pinned):
    wanted, found, graph = [digest for digest, _ in plain(parts)], [], opened(threads=3)

    def loop():
        with graphwire.NodeLoader(graph, **LOADER) as loader:
            rows = [(batch.digest(), batch.x) for batch in loader]
        found.append([digest for digest, _ in rows])

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4


def test_rows_of_other_types(tmp_path, pinned):
    """Each type that torch has is a view of the block; what torch lacks is converted, and owns its memory."""
    nodes, random = 6000, np.random.default_rng(1)
    kinds = ("float32", "float16", "float64", "uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "uint32",
             "uint64")
    rows = {kind: random.integers(0, 2 if kind == "bool" else 100, (nodes, 32)).astype(kind) for kind in kinds}
    graphwire.partition_graph(tuple(random.integers(0, nodes, (2, 20000))), "kinds", 2, tmp_path, node_features=rows)
    with graphwire.open(tmp_path) as graph, graphwire.open(tmp_path, numpy=True) as other:
        ntype, there = graph.ntypes[0], set()
        loader = graphwire.NodeLoader(graph, None, [20, 20], features=kinds, batch_size=4000, seed=1)
        for batch in [batch for _ in range(4) for batch in loader][-3:]:
            ids = batch.nodes[ntype].numpy()
            for kind in kinds:
                found, stored = batch.features[ntype][kind], other.feature(kind)[ids]
                assert np.array_equal(found.numpy().astype(np.int64), stored.astype(np.int64)), kind
                there |= {kind} if pinned.holds(found) else set()
        assert there == set(kinds) - {"uint16", "uint32"}
        wide = other.feature("float32")[:]
        for dtype in ("float16", "bfloat16", "float64"):
            loader = graphwire.NodeLoader(graph, None, [20, 20], features="float32", batch_size=4000, seed=1,
                                          dtype=dtype)
            batches = [batch for _ in range(3) for batch in loader]
            assert any(pinned.holds(batch.x) for batch in batches)
            for batch in batches[-3:]:
                assert str(batch.x.dtype) == f"torch.{dtype}"
                assert np.array_equal(batch.x.double().numpy(), wide[batch.nodes[ntype].numpy()])


def test_edge_rows_and_a_single_call(tmp_path, pinned):
    """Few rows land in the library's memory."""
    nodes, edges, random = 3000, 40000, np.random.default_rng(2)
    graphwire.partition_graph(tuple(random.integers(0, nodes, (2, edges))), "edges", 2, tmp_path,
                              edge_features={"w": random.normal(size=(edges, 16)).astype(np.float32)})
    with graphwire.open(tmp_path) as graph:
        etype, weights = graph.etypes[0], graph.feature("w", etype=graph.etypes[0])[:]
        for seeds, large in (([1, 2, 3], False), (range(2000), True)):
            for _ in range(3):
                batch = graphwire.sample(graph, seeds, [2, 4], edge_features="w")
                for block in batch.blocks:
                    rows = block.edges[etype].data["w"]
                    assert torch.equal(rows, weights[block.edges[etype].edge_ids])
            assert pinned.holds(rows) == large and bool(pinned.made) == large


def test_pygs_loaders(parts, opened, pinned, monkeypatch):
    """With pin_memory=True, rows that are pinned are not copied; the rest is."""
    pytest.importorskip("torch_geometric")
    from graphwire.pyg import NeighborLoader, stores
    from graphwire.pyg import pinned as of_pyg

    copies = []

    def empty(shape, dtype):
        copies.append(tuple(shape))
        count = shape.numel() * dtype.itemsize
        return pinned.allocate(max(count, 1))[:count].view(dtype).view(shape)

    monkeypatch.setattr(of_pyg, "available", lambda: True)
    monkeypatch.setattr(of_pyg, "is_pinned", pinned.holds)
    monkeypatch.setattr(of_pyg, "empty", empty)
    monkeypatch.setattr(landing, "in_use", lambda: False)  # pin_memory asks for it
    with opened() as graph:
        feat, total = graph.feature("feat")[:], 0
        loader = NeighborLoader(stores(graph, {"x": "feat"}, ids="graph"), [8, 8], input_nodes=torch.arange(4000),
                                batch_size=400, pin_memory=True)
        for _ in range(3):
            for data in loader:
                assert torch.equal(data.x, feat[data.n_id])
                assert all(pinned.holds(value) for _, value in data if isinstance(value, torch.Tensor))
                total += 1
        wide = [shape for shape in copies if shape[1:] == (feat.shape[1],)]
        assert len(wide) < total / 2 and len(copies) > total > 20


def test_batches_that_move_to_a_gpu(parts, opened, pinned, made_up_gpu, monkeypatch):
    monkeypatch.setattr(landing, "in_use", lambda: False)  # device= asks for it
    with opened() as graph:
        loader = graphwire.NodeLoader(graph, device="cuda", **LOADER)
        found = [(batch.digest(), pinned.holds(batch.x)) for _ in range(2) for batch in loader]
    wanted = [digest for digest, _ in plain(parts)]
    assert [digest for digest, _ in found[:len(wanted)]] == wanted
    assert sum(there for _, there in found) > len(found) / 3


def test_it_is_used_with_a_gpu_only(parts, monkeypatch):
    def never(count):
        raise AssertionError("pinned memory without a use")

    monkeypatch.setattr(landing, "allocate", never)
    assert not landing.in_use()
    with graphwire.open(parts) as graph:
        for batch in graphwire.NodeLoader(graph, **LOADER):
            assert batch.x is not None
    monkeypatch.setattr(landing, "in_use", lambda: True)
    with graphwire.open(parts, numpy=True) as graph:  # NumPy's copies to a GPU are not seen by torch
        for batch in graphwire.NodeLoader(graph, **LOADER):
            assert isinstance(batch.x, np.ndarray)


def test_memory_that_cannot_be_pinned(parts, opened, pinned, caplog):
    wanted = [digest for digest, _ in plain(parts)]
    with opened() as graph, caplog.at_level(logging.WARNING, "graphwire"):
        loader = graphwire.NodeLoader(graph, **LOADER)
        found = []
        for batch in loader:
            found.append(batch.digest())
            pinned.refused = batch.step >= 5
        found += [batch.digest() for batch in loader]
    assert found[:len(wanted)] == wanted and len(found) == 2 * len(wanted)
    (said,) = [record.message for record in caplog.records if "ordinary memory" in record.message]
    assert "made up" in said


def test_a_child_has_blocks_of_its_own(parts, opened, pinned):
    """A child process leaves the parent's blocks alone, and uses memory of its own."""
    wanted = [digest for digest, _ in plain(parts)]
    with opened() as graph:
        batches = iter(graphwire.NodeLoader(graph, **LOADER))
        taken = [next(batches) for _ in range(9)]
        kept = [batch.x.clone() for batch in taken]
        child = os.fork()
        if child == 0:
            code = 1
            try:
                before = pinned.handed
                del taken, batches
                gc.collect()
                found = [batch.digest() for batch in graphwire.NodeLoader(graph, **LOADER)]
                code = 0 if found == wanted and pinned.handed > before else 2
            finally:
                os._exit(code)
        ended, status = os.waitpid(child, 0)
        assert ended == child and os.waitstatus_to_exitcode(status) == 0
        assert all(torch.equal(batch.x, rows) for batch, rows in zip(taken, kept))
        assert [batch.digest() for batch in [*taken, *batches]] == wanted


def test_blocks_are_given_back(opened, pinned):
    """After a time without large batches a client has no spare blocks; and none after it was closed."""
    with opened() as graph:
        assert any(pinned.holds(batch.x) for batch in graphwire.NodeLoader(graph, **LOADER))
        small = graphwire.NodeLoader(graph, range(4000), [1], batch_size=10)
        deadline = time.monotonic() + 60
        while pinned.out and time.monotonic() < deadline:
            for _ in small:
                pass
        assert pinned.out == 0
