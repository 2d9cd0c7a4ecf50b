"""A trainer of PyTorch Geometric's under deploy/launch.py: the servers are found by the launcher's variables, nodes are
shared by the ranks, batches come from a worker."""

from __future__ import annotations

import graphwire
import torch
import torch.distributed as dist
from graphwire.pyg import NeighborSampler, stores
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GraphSAGE


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    graph = graphwire.open()
    assert graph.transport(0) != "memory"
    data, sampler = stores(graph, {"x": "features", "y": "labels"}), NeighborSampler(graph, [5, 5])

    def batches(mask, **options):
        return NodeLoader(data, sampler, graph.split(mask), batch_size=50, **options)

    model = torch.nn.parallel.DistributedDataParallel(GraphSAGE(16, 16, 2, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        for batch in batches("train_mask", shuffle=True, drop_last=True, num_workers=1):
            found = model(batch.x, batch.edge_index)[:batch.batch_size]
            loss = torch.nn.functional.cross_entropy(found, batch.y[:batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = torch.zeros(2)
    with torch.no_grad():
        for batch in batches("test_mask"):
            found = model.module(batch.x, batch.edge_index)[:batch.batch_size].argmax(1)
            right += torch.tensor([float((found == batch.y[:batch.batch_size]).sum()), batch.batch_size])
    dist.all_reduce(right)
    print(f"rank {dist.get_rank()}: {int(right[1])} nodes, accuracy {right[0] / right[1]:.3f}", flush=True)
    del model  # before its group: as it goes it holds Python's lock, which a thread of the group may wait for
    dist.destroy_process_group()


main()
