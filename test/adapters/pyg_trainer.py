"""A trainer with PyTorch Geometric under deploy/launch.py. It finds the servers in the launcher's variables, the ranks
divide the nodes, and batches come from a worker. Then links: each rank's own edges, with PyG's negatives."""

from __future__ import annotations

import graphwire
import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # before a process group exists, as in docs/TUTORIAL.md
from graphwire.pyg import NeighborSampler, stores
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.nn import GraphSAGE


def links(graph, data):
    """One pass over this rank's edges: ends are rows of their batches, and the loss falls while the model learns
    communities."""
    edges = torch.as_tensor(graph.split(None, etype=graph.etypes[0]))
    ends = torch.stack(graph.find_edges(edges))
    model = torch.nn.parallel.DistributedDataParallel(GraphSAGE(16, 16, 2, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, seen = [], torch.zeros(1)
    loader = LinkLoader(data, NeighborSampler(graph, [5, 5], ids="graph"), (None, ends), batch_size=150, shuffle=True,
                        neg_sampling="binary", num_workers=1)
    with model.join():
        for batch in loader:
            rows = batch.edge_label_index
            assert torch.equal(batch.n_id[rows[:, :len(batch.input_id)]], ends[:, batch.input_id])
            found = model(batch.x, batch.edge_index)
            score = (found[rows[0]] * found[rows[1]]).sum(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(score, batch.edge_label.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
            seen += len(batch.input_id)
    dist.all_reduce(seen)
    quarter = len(losses) // 4
    fall = sum(losses[:quarter]) / quarter, sum(losses[-quarter:]) / quarter
    print(f"rank {dist.get_rank()}: {int(seen)} links, loss {fall[0]:.3f} to {fall[1]:.3f}", flush=True)
    del model


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    graph = graphwire.open()
    assert graph.transport(0) != "memory"
    data = stores(graph, {"x": "features", "y": "labels"}, ids="graph")
    sampler = NeighborSampler(graph, [5, 5], ids="graph")

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
    links(graph, data)
    del model  # before the group: freeing the model holds Python's lock, for which a thread of the group may wait
    dist.destroy_process_group()


main()
