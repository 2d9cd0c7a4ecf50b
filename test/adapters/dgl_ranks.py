"""DGL calls in which several trainers take part, under deploy/launch.py: two ranks over two servers. Prints "rank N:
ok"."""

from __future__ import annotations

import dgl
import torch
import torch.distributed as dist

dgl.distributed.initialize("ip_config.txt", net_type="socket")
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
g = dgl.distributed.DistGraph("communities", "no_part_config.json")  # as in DGL's guide: from the launcher
nodes = g.num_nodes()


def total(number):
    found = torch.tensor([float(number)])
    dist.all_reduce(found)
    return int(found)


def test_net_type():
    """"socket" means TCP, even if other transports exist."""
    import graphwire

    graph = g.ndata["features"]._graph
    assert isinstance(graph, graphwire.Graph) and {graph.transport(part) for part in range(2)} == {"tcp"}


def test_init_func():
    """One trainer calls it, once per part; all trainers see the rows, which that rank made."""
    calls = []

    def first(shape, dtype):
        calls.append(shape)
        return torch.full(shape, float(10 * rank + len(calls)), dtype=dtype)

    made = dgl.distributed.DistTensor((nodes, 3), torch.float32, name="first", init_func=first)
    assert total(len(calls)) == 2 and len(calls) in (0, 2)
    book = g.get_partition_book()
    parts = [made[book.partid2nids(part)] for part in range(2)]
    assert {float(rows.min() - rows.max()) for rows in parts} == {0.0}
    assert (parts[1] - parts[0]).unique().tolist() == [1.0]
    again = dgl.distributed.DistTensor((nodes, 3), torch.float32, name="first", init_func=first)
    assert torch.equal(again[:], made[:]) and total(len(calls)) == 2
    dist.barrier()


def test_random_rows():
    """Trainers with different seeds get the rows of the first creator."""
    torch.manual_seed(rank)
    for init in (torch.rand, torch.randn):
        made = dgl.distributed.DistTensor((nodes, 3), torch.float32, name=init.__name__, init_func=init)
        rows = [None] * world
        dist.all_gather_object(rows, made[:])
        assert torch.equal(*rows) and len(rows[0].unique()) > nodes


def test_objects_that_not_all_have():
    """Trainers with and without an object both take part. If no trainer has an object, the tensor is created anew."""
    def make(value):
        return dgl.distributed.DistTensor((nodes,), torch.float32, "some", lambda shape, _: torch.full(shape, value))

    made = make(1.0)
    if rank:
        del made
    again = make(2.0)
    assert (again[:] == 1).all()
    made = again = None
    again = make(3.0)
    assert (again[:] == 3).all()
    dist.barrier()


def test_what_was_written_before_a_barrier():
    """Every trainer reads it after the barrier."""
    rows = dgl.distributed.DistTensor((nodes,), torch.int64, name="written")
    for turn in range(1, 21):
        if turn % world == rank:
            rows[torch.arange(nodes)] = torch.full((nodes,), turn)
        g.barrier()
        assert (rows[:] == turn).all()
        g.barrier()


def test_async_optimizers(kind, theirs):
    """sync=False: each trainer's gradients are averaged separately, without waits; one trainer makes more steps."""
    table = dgl.distributed.DistEmbedding(nodes, 4, name=f"async-{kind}", init_func=torch.ones)
    optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1, sync=False)
    read = [torch.tensor([5, 9, 5]), torch.tensor([9, 590])][rank]
    slopes = [torch.tensor([[1.0], [4.0], [5.0]]), torch.tensor([[4.0], [3.0]])][rank]
    for _ in range(3 if rank == 0 else 2):
        optimizer.zero_grad()
        (table(read) * slopes).sum().backward()
        optimizer.step()
    dist.barrier()
    for row, gradient, steps in ((5, 3.0, 3), (9, 4.0, 5), (590, 3.0, 2), (7, 0.0, 0)):
        expected = torch.nn.Parameter(torch.ones(1, 4))
        reference = theirs([expected], lr=0.1)
        for _ in range(steps):
            expected.grad = torch.full((1, 4), gradient)
            reference.step()
        assert torch.allclose(table.weight[row], expected.detach(), atol=1e-5), row
    dist.barrier()


def test_optimizers(kind, theirs):
    """sync: gradients of a row are averaged over all trainers, weighted by its reads."""
    table = dgl.distributed.DistEmbedding(nodes, 4, name=f"table-{kind}", init_func=torch.ones)
    optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1)
    expected = torch.nn.Parameter(torch.ones(4, 4))
    reference = theirs([expected], lr=0.1)
    read = [torch.tensor([5, 9, 5]), torch.tensor([9, 590])]
    slopes = [torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([[4.0], [3.0]])]
    mean = {0: (1.0 + 5.0) / 2, 1: (2.0 + 4.0) / 2, 2: 3.0, 3: 0.0}  # of rows 5, 9, 590, 7
    for _ in range(3):
        optimizer.zero_grad()
        (table(read[rank]) * slopes[rank]).sum().backward()
        optimizer.step()
        expected.grad = torch.tensor([[mean[row]] * 4 for row in range(4)])
        reference.step()
        found = table(torch.tensor([5, 9, 590, 7])).detach()
        assert torch.allclose(found, expected.detach(), atol=1e-5), (found, expected)
        table.reset_trace()
        dist.barrier()


def test_saved_state(kind):
    """Each trainer saves its own share of the rows, and all state comes back."""
    table = dgl.distributed.DistEmbedding(nodes, 4, name=f"saved-{kind}")
    optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1)
    table(torch.arange(nodes)).sum().backward()
    optimizer.step()
    own = optimizer.local_state_dict()["emb_states"][table.name]["ids"]
    assert torch.equal(own, g.get_partition_book().partid2nids(rank)) and total(len(own)) == nodes
    optimizer.save(f"saved-{kind}")
    before = [state[:] for state in table.optm_state]
    assert all(state.all() for state in before)
    dist.barrier()
    for state in table.optm_state if rank == 0 else ():
        state[:] = torch.zeros(state.shape)
    dist.barrier()
    assert not any(state.count_nonzero() for state in table.optm_state)
    dist.barrier()
    optimizer.load(f"saved-{kind}")
    assert all(torch.equal(state[:], old) for state, old in zip(table.optm_state, before))
    dist.barrier()


def main():
    test_net_type()
    test_init_func()
    test_random_rows()
    test_objects_that_not_all_have()
    test_what_was_written_before_a_barrier()
    for kind, theirs in (("SparseAdagrad", torch.optim.Adagrad), ("SparseAdam", torch.optim.Adam)):
        test_optimizers(kind, theirs)
        test_async_optimizers(kind, theirs)
        test_saved_state(kind)
    g._client.barrier()
    print(f"rank {rank}: ok", flush=True)
    dist.destroy_process_group()


main()
