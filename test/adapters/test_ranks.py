"""Two trainers over two servers, as forks: barriers, tensors that one of them creates, unequal steps. Over gloo, and
over a backend of torch.distributed that accepts no CPU tensors, like nccl."""

from __future__ import annotations

import multiprocessing
import traceback
import warnings

import graphwire
import pytest
import torch
import torch.distributed as dist
from conftest import NODES, Servers
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()


@pytest.fixture(scope="module")
def graph(two_parts, tmp_path_factory):
    servers = Servers(two_parts, 2, tmp_path_factory.mktemp("servers"))
    with graphwire.open(two_parts, servers.addresses) as opened:
        yield opened
    servers.close()


def tensor(name, init_func=None):
    return dgl.distributed.DistTensor((NODES,), torch.float32, name, init_func)


def creating_is_no_barrier(rank):
    """Only the first trainer creates a tensor and writes; the other one opens it after the barrier."""
    made = tensor("alone") if rank == 0 else None
    if rank == 0:
        made[torch.arange(NODES)] = torch.arange(NODES).float()
    context.barrier()
    made = tensor("alone") if made is None else made
    assert torch.equal(made[:], torch.arange(NODES).float())
    context.barrier()


def dropped_tensors_go(rank):
    """A tensor ends at the first barrier at which no trainer has an object of it. Otherwise it stays, with its rows."""
    both, one = tensor("both", torch.ones), tensor("one", torch.ones)
    context.barrier()
    del both
    if rank == 0:
        del one
    context.barrier()
    assert {"both", "one"} & {found["name"].rpartition("/")[2] for found in context.graph.tensors} == {"one"}
    one = tensor("one")
    assert (one[:] == 1).all() and not tensor("both")[:].any()
    context.barrier()


def unequal_steps_are_reported(rank):
    """The rank whose loop begins last warns before its first step, because the other may wait for it. The first rank
    warns too, in its next step. No warning for equal numbers of steps, for loops without gradients, or a second
    time."""
    g = dgl.distributed.DistGraph("communities")

    def told(ids, begins, gradients=True, **named):
        """The warnings when the loop begins, and until it has ended. On the rank `begins` the loop begins first."""
        loader = dgl.dataloading.DistNodeDataLoader(g, ids, dgl.dataloading.NeighborSampler([2]), **named)
        with warnings.catch_warnings(record=True) as found, torch.set_grad_enabled(gradients):
            warnings.simplefilter("always")
            for turn in (begins, 1 - begins):
                if turn == rank:
                    batches = iter(loader)
                    next(batches, None)
                    begun = len(found)
                context.barrier()
            list(batches)
        return begun, [str(one.message).partition("epoch: ")[2].partition(".")[0] for one in found]

    share = dgl.distributed.node_split(torch.arange(NODES) < 101, g.get_partition_book())
    assert len(share) == 51 - rank
    assert told(share, 0, batch_size=50) == (rank, ["2 steps on rank 0, 1 step on rank 1"])
    assert told(share, 1, batch_size=50) == (0, [])
    assert told(share, 0, batch_size=50, drop_last=True) == (0, [])
    assert told(share, 0, gradients=False, batch_size=25) == (0, [])
    assert told(share[:20 - 20 * rank], 0, batch_size=10) == (rank, ["2 steps on rank 0, 0 steps on rank 1"])
    text = ["5 steps on rank 1, 0 steps on rank 0"] if rank == 0 else []
    assert told(share[:50 * rank], 1, batch_size=10) == (1 - rank, text)


def _rank(work, graph, rank, backend, meet, pipe):
    try:
        dist.Backend.register_backend("refusing", lambda store, rank, size, timeout: dist.ProcessGroup(rank, size),
                                      devices=["cpu"])
        dist.init_process_group(backend, init_method=f"file://{meet}", rank=rank, world_size=2)
        if backend != "gloo":
            with pytest.raises(RuntimeError):
                dist.barrier()
        context.close()
        dgl.distributed.initialize("none.txt")
        context.standalone, context.graph = False, graph
        dgl.distributed.DistGraph("communities")
        work(rank)
        pipe.send("")
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


@pytest.mark.parametrize("backend", ["gloo", "refusing"])
@pytest.mark.parametrize("work", [creating_is_no_barrier, dropped_tensors_go, unequal_steps_are_reported])
def test_ranks(work, backend, graph, tmp_path):
    forked, ranks = multiprocessing.get_context("fork"), []
    for rank in range(2):
        ours, theirs = forked.Pipe()
        ranks.append((forked.Process(target=_rank, args=(work, graph, rank, backend, tmp_path / "meet", theirs)), ours))
        ranks[-1][0].start()
        theirs.close()
    said = [ours.recv() if ours.poll(120) else "nothing after two minutes" for _, ours in ranks]
    for process, _ in ranks:
        process.kill() if any(said) else None
        process.join()
    assert said == ["", ""], "\n".join(said)
