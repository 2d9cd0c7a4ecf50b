"""torch.manual_seed and dgl.seed within one process."""

from __future__ import annotations

import pytest
import torch
from conftest import NODES
from graphwire.dgl.install import install

dgl = install()


@pytest.fixture(scope="module")
def g(two_parts):
    dgl.distributed.initialize("none.txt")
    yield dgl.distributed.DistGraph("communities", part_config=str(two_parts / "communities.json"))
    dgl.distributed.exit_client()


@pytest.mark.parametrize("seed", [torch.manual_seed, dgl.seed])
def test_the_same_seed_repeats_what_follows(g, seed):
    """Within a process, and for a loader that exists already. torch.manual_seed counts after dgl.seed, too."""
    sampler = dgl.dataloading.NeighborSampler([2, 2])

    def loader():
        return dgl.dataloading.DistNodeDataLoader(g, torch.arange(40), sampler, batch_size=20)

    def drawn(some):
        return [block.edata[dgl.EID].tolist() for _, _, blocks in some for block in blocks]

    def follows(value):
        seed(value)
        frontier = dgl.distributed.sample_neighbors(g, torch.arange(50), 2).edata[dgl.EID].tolist()
        made = dgl.distributed.DistTensor((NODES,), torch.float32, init_func=torch.rand)[:].tolist()
        return frontier, drawn(loader()), drawn(old), made

    old = loader()
    drawn(old)
    first, again, other = follows(5), follows(5), follows(6)
    assert first[:3] == again[:3] and all(one != two for one, two in zip(first, other))
    more = drawn(old)
    assert more != first[2]
    seed(5)
    old.set_epoch(1)
    after = drawn(old)
    follows(5)
    assert after == drawn(old)
    dgl.seed(1)
    torch.manual_seed(5)
    frontier = dgl.distributed.sample_neighbors(g, torch.arange(50), 2).edata[dgl.EID].tolist()
    assert frontier == first[0]
