"""Batches on a device, while the next batch is copied: the same bytes as in memory. Machines without a GPU run the same
loops over the processor; test_loader.py has the thread that copies, over a replacement. test/gpu/run runs all on a
GPU."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import graphwire
import pytest
import torch
from conftest import PROGRAM, TOP

DEVICE = os.environ.get("GRAPHWIRE_TEST_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")


def tensors(batch):
    """All tensors of a batch, native or PyG's, by name and in order."""
    if isinstance(batch, graphwire.Batch):
        return enumerate(batch._tensors())
    return ((f"{number} {name}", value) for number, store in enumerate(batch.stores)
            for name, value in sorted(store.items()) if isinstance(value, torch.Tensor))


def digest(batch, on):
    """A digest of all bytes, after a check that they are on the device."""
    found = hashlib.blake2b()
    for name, tensor in tensors(batch):
        assert tensor.device.type == on, name
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        found.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()


def same(make, more=None):
    """A loader's batches on the device and in memory have equal digests; returns their number. more: moves a batch of a
    loader without device=."""
    def begun(device):
        torch.manual_seed(1)  # PyG's loaders take their seed from torch
        return make(device)

    here = [digest(batch, "cpu") for batch in begun(None)]
    if more is None:
        there = [digest(batch, DEVICE) for batch in begun(DEVICE)]
    else:
        there = [digest(more(batch), DEVICE) for batch in begun(None)]
    assert here == there
    return len(here)


def test_batches_of_nodes(rmat):
    assert same(lambda device: graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", labels="label",
                                                    batch_size=100, shuffle=True, device=device)) == 9


def test_disjoint_batches(rmat):
    assert same(lambda device: graphwire.NodeLoader(rmat, range(300), [4, 3], disjoint=True, batch_size=100,
                                                    device=device)) == 3


def test_a_ragged_last_batch(rmat):
    assert same(lambda device: graphwire.NodeLoader(rmat, range(250), [-1], batch_size=100, device=device)) == 3


@pytest.mark.parametrize("options", [{"negatives": 2}, {"negatives": 1, "no_true_edges": True}, {"exclude": "edges"}])
def test_batches_of_edges(rmat, options):
    assert same(lambda device: graphwire.EdgeLoader(rmat, range(500), [3], features="feat", batch_size=100,
                                                    device=device, **options)) == 5


def test_batches_of_several_types(hetero):
    with graphwire.open(hetero) as graph:
        assert same(lambda device: graphwire.NodeLoader(graph, {"paper": None, "author": None}, [3, 2], batch_size=64,
                                                        shuffle=True, device=device)) > 3


def test_over_servers(servers):
    with graphwire.open(servers.folder, servers.addresses) as graph:
        assert same(lambda device: graphwire.NodeLoader(graph, range(400), [4, 3], features="feat", batch_size=100,
                                                        device=device)) == 4


def test_a_batch_that_is_moved(rmat):
    """By the trainer, from memory or from pinned memory."""
    def loader(device):
        return graphwire.NodeLoader(rmat, range(300), [4, 3], features="feat", batch_size=100)
    assert same(loader, lambda batch: batch.to(DEVICE)) == 3
    if DEVICE == "cuda":
        assert same(loader, lambda batch: batch.pinned().to(DEVICE, non_blocking=True)) == 3


@pytest.mark.parametrize("pin", [False, True])
def test_pygs_loaders(rmat, pin):
    pytest.importorskip("torch_geometric")
    from graphwire.pyg import LinkNeighborLoader, NeighborLoader, stores

    both = stores(rmat, {"x": "feat", "y": "label"}, ids="graph")
    links = torch.stack([end[:300] for end in rmat.find_edges(range(300))])
    for make in (lambda device: NeighborLoader(both, [4, 3], input_nodes=torch.arange(500), batch_size=100,
                                               pin_memory=pin),
                 lambda device: LinkNeighborLoader(both, [4, 3], edge_label_index=links, batch_size=100,
                                                   neg_sampling_ratio=1.0, pin_memory=pin)):
        assert same(make, lambda batch: batch.to(DEVICE, non_blocking=True)) > 2


def test_a_batch_outlives_the_next(rmat):
    """What a batch holds stays right while later batches are copied and the loader's memory is used again."""
    kept = list(graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", batch_size=100, device=DEVICE))
    again = graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", batch_size=100)
    for there, here in zip(kept, again, strict=True):
        assert digest(there, DEVICE) == digest(here, "cpu")


# --- Rows that land in pinned memory; test_landing.py has more, over a replacement. ---

ON_A_GPU = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")
LANDING = {"fanouts": [8, 8], "features": "feat", "batch_size": 400}


@ON_A_GPU
def test_rows_land_in_pinned_memory(rmat):
    torch.zeros(1, device=DEVICE)  # from now on the process uses the GPU
    loader = graphwire.NodeLoader(rmat, **LANDING)
    for _ in range(2):
        there = [batch.x.is_pinned() for batch in loader]
    assert sum(there) > len(there) / 2
    if hasattr(torch.cuda, "host_memory_stats"):
        before = torch.cuda.host_memory_stats()["num_host_alloc"]
        for _ in range(5):
            for batch in loader:
                assert batch.pinned().x.data_ptr() == batch.x.data_ptr() or not batch.x.is_pinned()
        assert torch.cuda.host_memory_stats()["num_host_alloc"] <= before + 8  # memory is used again


@ON_A_GPU
def test_a_batch_is_freed_while_it_is_copied(rmat):
    """The copies wait in a stream of the caller's, behind work of half a second, while many later batches land."""
    torch.zeros(1, device=DEVICE)
    loader = graphwire.NodeLoader(rmat, **LANDING)
    wanted = [batch.x.clone() for batch in loader]
    for _ in range(3):
        side, copies, there = torch.cuda.Stream(), [], 0
        with torch.cuda.stream(side):
            torch.cuda._sleep(1_000_000_000)
            for batch in loader:
                there += batch.x.is_pinned()
                copies.append(batch.x.to(DEVICE, non_blocking=True))
        del batch
        for _ in loader:
            pass
        side.synchronize()
        assert there > 0
        for rows, copy in zip(wanted, copies, strict=True):
            assert torch.equal(rows, copy.cpu())


@ON_A_GPU
def test_pygs_loader_pins_no_rows(rmat):
    pytest.importorskip("torch_geometric")
    from graphwire.pyg import NeighborLoader, stores

    loader = NeighborLoader(stores(rmat, {"x": "feat"}, ids="graph"), [8, 8], input_nodes=torch.arange(4000),
                            batch_size=400, pin_memory=True)
    feat = rmat.feature("feat")[:]
    for _ in range(2):
        for data in loader:
            assert data.x.is_pinned() and data.edge_index.is_pinned() and torch.equal(data.x, feat[data.n_id])
            assert torch.equal(data.x.to(DEVICE, non_blocking=True).cpu(), feat[data.n_id])


def test_the_script_for_a_gpu():
    """It finds none here, in one line; its rehearsal has a figure in each row."""
    def said(*words):
        done = subprocess.run([sys.executable, str(TOP / "test/gpu/run"), *words], capture_output=True, text=True,
                              env=dict(os.environ, GRAPHWIRE=PROGRAM, CUDA_VISIBLE_DEVICES=""))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()
    (line,) = said()
    assert "no GPU was found" in line
    rows = [line for line in said("--rehearse") if line.startswith("| `")]
    assert len(rows) == 5 and all(re.search(r"[1-9]", row.split("|")[2]) for row in rows), rows
