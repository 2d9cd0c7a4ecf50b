"""Batches on a GPU, where one exists: the same bytes as in memory, while the next batch is copied. Machines without a
GPU run the same calls over a replacement (test_loader.py)."""

from __future__ import annotations

import graphwire
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def both(make):
    """Pairs of a batch in memory and the same batch on the GPU."""
    return zip(make(None), make("cuda"), strict=True)


def equal(one, two):
    assert two.is_cuda
    return torch.equal(one, two.cpu())


def test_batches_of_nodes(rmat):
    def make(device):
        return graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", labels="label", batch_size=100,
                                    shuffle=True, device=device)
    count = 0
    for here, there in both(make):
        assert equal(here.x, there.x) and equal(here.y, there.y) and equal(here.seed_rows, there.seed_rows)
        for block, copy in zip(here.blocks, there.blocks, strict=True):
            assert equal(block.only.edge_index, copy.only.edge_index)
        count += 1
    assert count == 9


def test_batches_of_edges(rmat):
    def make(device):
        return graphwire.EdgeLoader(rmat, range(500), [3], features="feat", negatives=2, batch_size=100, device=device)
    for here, there in both(make):
        assert equal(here.x, there.x)


def test_a_batch_outlives_the_next(rmat):
    """What a batch holds stays right while later batches are copied and the loader's memory is used again."""
    kept = list(graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", batch_size=100, device="cuda"))
    again = graphwire.NodeLoader(rmat, range(900), [4, 3], features="feat", batch_size=100)
    for there, here in zip(kept, again, strict=True):
        assert equal(here.x, there.x)
