"""The systems of epoch_worker.py over a graph of many edge types: nodes of one type with types=N types of edges to
them, each from a node type of its own. Batches of 512 seeds and fanouts 1, 1, without rows show the cost of a type.

epoch_types.py DIR N makes the graph in DIR. Every system checks its first batch: the edges that it names are edges of
the graph, between the nodes that it names.
"""
from __future__ import annotations

import os
import sys

import numpy as np
import torch

SEEDS, FANOUTS, NODES, EDGES = 512, [1, 1], 60000, 250000


def edges_of(types):
    random = np.random.default_rng(types)
    return {(f"from{i}", f"by{i}", "hub"): torch.from_numpy(random.integers(0, NODES, (2, EDGES)))
            for i in range(types)}


def make(folder, types):
    import graphwire

    parts, ends = f"{folder}/types{types}", edges_of(int(types))
    if not os.path.exists(parts):
        graphwire.partition_graph(ends, "types", 1, parts,
                                  num_nodes={kind: NODES for etype in ends for kind in etype[::2]})


class Typed:
    """A system without a model. A subclass defines made(seeds), a loader; check(batch); and edges(batch)."""

    layers = torch.nn.ModuleList([torch.nn.Linear(1, 1)])
    checked = False

    def __init__(self, types):
        self.ends = edges_of(int(types))
        self.random = np.random.default_rng(7)

    def batches(self, count):
        for batch in self.made(torch.from_numpy(self.random.choice(NODES, SEEDS * count, replace=False))):
            if not self.checked:
                self.check(batch)
                self.checked = True
            yield batch

    def check(self, data):
        for etype, ends in self.ends.items():
            some = data[etype]
            named = torch.stack([data[kind].n_id[rows] for kind, rows in zip(etype[::2], some.edge_index)])
            if some.edge_index.shape[1] != len(some.e_id) or not torch.equal(ends[:, some.e_id], named):
                raise SystemExit(f"edges of type {etype[1]} in a batch are not those of the graph")

    def edges(self, batch):
        return sum(batch[etype].edge_index.shape[1] for etype in self.ends)


class Native(Typed):
    """graphwire.NodeLoader. to_pyg=1: each batch becomes HeteroData."""

    def __init__(self, folder, types, to_pyg="0"):
        import graphwire

        super().__init__(types)
        self.loaders, self.converts = graphwire.NodeLoader, to_pyg == "1"
        self.graph = graphwire.open(f"{folder}/types{types}", verify=False)

    def made(self, seeds):
        with self.loaders(self.graph, seeds, FANOUTS, ntype="hub", batch_size=SEEDS, frontier="new") as loader:
            for batch in loader:
                yield batch.to_pyg() if self.converts else batch

    def check(self, batch):
        """Nodes keep their ids in one part; edges are found by the graph's ids."""
        data = batch if self.converts else batch.to_pyg()
        for etype in self.ends:
            some = data[etype]
            named = torch.stack([data[kind].n_id[rows] for kind, rows in zip(etype[::2], some.edge_index)])
            if not torch.equal(torch.stack(self.graph.find_edges(some.e_id, etype)), named):
                raise SystemExit(f"edges of type {etype[1]} in a batch are not those of the graph")

    def edges(self, batch):
        return super().edges(batch) if self.converts else batch.num_edges


class OverGraphwire(Native):
    """graphwire.pyg.NeighborLoader over the same graph."""

    def __init__(self, folder, types):
        import graphwire.pyg

        super().__init__(folder, types)
        self.pyg = graphwire.pyg.NeighborLoader

    def made(self, seeds):
        return self.pyg(self.graph, FANOUTS, ("hub", seeds), batch_size=SEEDS)

    check, edges = Typed.check, Typed.edges


class Pyg(Typed):
    """PyTorch Geometric's NeighborLoader over the same edges in memory."""

    def __init__(self, folder, types):
        from torch_geometric.data import HeteroData
        from torch_geometric.loader import NeighborLoader

        super().__init__(types)
        self.data = HeteroData({kind: {"num_nodes": NODES} for etype in self.ends for kind in etype[::2]})
        for etype, ends in self.ends.items():
            self.data[etype].edge_index = ends
        self.pyg = NeighborLoader
        self.drawer = self.made(torch.arange(SEEDS)).node_sampler  # a NeighborLoader sorts the edges when it is made

    def made(self, seeds):
        return self.pyg(self.data, FANOUTS, ("hub", seeds), batch_size=SEEDS,
                        neighbor_sampler=getattr(self, "drawer", None))


SYSTEMS = {"types": Native, "types_pyg_loader": OverGraphwire, "types_pyg": Pyg}

if __name__ == "__main__":
    make(*sys.argv[1:])
