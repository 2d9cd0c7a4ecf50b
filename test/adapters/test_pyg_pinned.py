"""pin_memory=True of graphwire.pyg's neighbour loaders, with a made-up allocator: it keeps freed blocks of powers of
two, as torch's does, and overwrites them, so that a block that is used again too early shows."""

from __future__ import annotations

import gc
import signal
import weakref

import graphwire
import pytest
import torch
from conftest import Servers
from graphwire._base.native import lib
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, from_pyg, pinned
from torch_geometric.data import Data, HeteroData

pytestmark = pytest.mark.slow  # once: these tests do not use dgl


def some_data(nodes=300, edges=4000):
    torch.manual_seed(3)
    return Data(edge_index=torch.randint(0, nodes, (2, edges)), x=torch.randn(nodes, 64), y=torch.arange(nodes) % 4,
                half=torch.randn(nodes, 3).bfloat16(), edge_attr=torch.randn(edges, 4))


class Allocator:
    """made: the number of blocks; ready: those without a user, by size."""

    def __init__(self):
        self.made, self.ready, self.used = 0, {}, {}

    def empty(self, shape, dtype):
        size = 1 << max(0, shape.numel() * dtype.itemsize - 1).bit_length()
        if not self.ready.get(size):
            self.made += 1
            self.ready.setdefault(size, []).append(torch.empty(size, dtype=torch.uint8))
        block = self.ready[size].pop()
        tensor = block[:shape.numel() * dtype.itemsize].view(dtype).view(shape)
        self.used[id(tensor)] = tensor.untyped_storage().data_ptr()
        weakref.finalize(tensor, self._free, block, size, id(tensor))
        return tensor

    def _free(self, block, size, number):
        block.fill_(0xAA)
        del self.used[number]
        self.ready[size].append(block)

    def has(self, tensor):
        return tensor.untyped_storage().data_ptr() in set(self.used.values())


@pytest.fixture()
def allocator(monkeypatch):
    made = Allocator()
    monkeypatch.setattr(pinned, "available", lambda: True)
    monkeypatch.setattr(pinned, "empty", made.empty)
    monkeypatch.setattr(pinned, "is_pinned", made.has)
    return made


@pytest.fixture(scope="module", params=["memory", "three parts", "types"])
def source(request, tmp_path_factory):
    data = some_data()
    if request.param == "memory":
        yield data
        return
    if request.param == "types":
        typed = HeteroData()
        typed["n"].x, typed["m"].x = data.x, data.y
        typed["n", "to", "n"].edge_index, typed["n", "to", "n"].edge_attr = data.edge_index, data.edge_attr
        typed["n", "at", "m"].edge_index = data.edge_index
        data = typed
    with from_pyg(data, tmp_path_factory.mktemp("three") / "parts", num_parts=3) as graph:
        yield graph


def same(one, other):
    """Every attribute; returns the tensors of `one`."""
    assert one.to_dict().keys() == other.to_dict().keys()
    found = []
    for mine, theirs in zip(one.stores, other.stores):
        assert list(mine.keys()) == list(theirs.keys())
        for name, value in mine.items():
            assert torch.equal(value, theirs[name]) if torch.is_tensor(value) else value == theirs[name], name
            found += [value] if torch.is_tensor(value) else []
    return found


def loader_of(source, **given):
    typed = isinstance(source, graphwire.Graph) and len(source.ntypes) > 1
    return NeighborLoader(source, [3, 2], "n" if typed else None, batch_size=16, shuffle=True, **given)


def test_the_same_bytes(source, allocator):
    """And memory is allocated in the first batches only, although a user keeps some."""
    torch.manual_seed(1)
    expected = [batch for _ in range(3) for batch in loader_of(source)]
    torch.manual_seed(1)
    loader, kept, number = loader_of(source, pin_memory=True), [], 0
    for _ in range(3):
        for batch in loader:
            tensors = same(batch, expected[number])
            assert all(allocator.has(tensor) for tensor in tensors if tensor.numel())
            if number % 10 == 0:
                kept.append((batch, expected[number]))
            number += 1
    assert number == len(expected)
    assert allocator.made <= (len(kept) + 5) * len(tensors)  # two sizes for each of two batches
    for batch, one in kept:
        same(batch, one)


def test_equal_seeds_and_both_directions(source, allocator):
    """Rows that are selected again are pinned too. So are links, and what a transform makes."""
    def double(data):
        store = data if isinstance(data, Data) else data["n"]
        store.more = store.x * 2
        return data

    typed = isinstance(source, graphwire.Graph) and len(source.ntypes) > 1
    seeds, links = torch.tensor([5, 5, 7, 9]), torch.arange(40).view(2, 20)
    for of, asked, more in ((NeighborLoader, seeds, {}), (NeighborLoader, seeds, {"subgraph_type": "bidirectional"}),
                            (LinkNeighborLoader, links, {"neg_sampling": "binary"})):
        asked = (("n" if of is NeighborLoader else ("n", "to", "n")), asked) if typed else asked
        torch.manual_seed(4)
        (expected,) = of(source, [3], asked, batch_size=20, transform=double, **more)
        torch.manual_seed(4)
        (batch,) = of(source, [3], asked, batch_size=20, transform=double, pin_memory=True, **more)
        assert all(allocator.has(tensor) for tensor in same(batch, expected) if tensor.numel())


def test_what_a_transform_returns(source, allocator):
    loader = loader_of(source, pin_memory=True, transform=lambda data: (data.num_nodes, "text"))
    assert {type(batch) for batch in loader} == {tuple} and len(list(loader)) == 19


def test_errors_of_transforms_end_the_thread(source, allocator):
    def fail(data):
        raise RuntimeError("the transform")

    list(loader_of(source, pin_memory=True))
    gc.collect()
    before = int(lib.count_live().shares)
    for _ in range(5):
        with pytest.raises(RuntimeError, match="the transform"):
            next(iter(loader_of(source, pin_memory=True, transform=fail)))
        next(iter(loader_of(source, pin_memory=True)))
    gc.collect()
    assert not allocator.used and int(lib.count_live().shares) <= before + 1


def test_a_signal_ends_the_wait(tmp_path, allocator):
    """The servers do not answer: Ctrl-C ends the wait, and later loops work."""
    data = some_data()
    from_pyg(data, tmp_path / "parts", num_parts=2).close()
    servers = Servers(tmp_path / "parts", 2, tmp_path)
    with graphwire.open(servers=servers.addresses, transport="tcp", insecure=True) as graph:
        loader = NeighborLoader(graph, [3, 3], batch_size=50, pin_memory=True)
        assert len(list(loader)) == 6
        servers.stop()
        handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            list(loader)
        signal.signal(signal.SIGALRM, handler)
        servers.go_on()
        assert len(list(loader)) == 6
    servers.close()


def test_servers_that_end(tmp_path, allocator):
    """The error of a batch that the thread waits for is raised in the loop."""
    from_pyg(some_data(), tmp_path / "parts", num_parts=2).close()
    servers = Servers(tmp_path / "parts", 2, tmp_path)
    with graphwire.open(servers=servers.addresses, transport="tcp", insecure=True, timeout=2, reconnect=1) as graph:
        loop = iter(NeighborLoader(graph, [3, 3], batch_size=5, pin_memory=True))
        next(loop)
        servers.close()
        with pytest.raises((graphwire.PeerError, graphwire.DeadlineError)):
            list(loop)
