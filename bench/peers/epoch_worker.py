"""One system in the comparison of epochs: epoch_worker.py graphwire|pyg|pyg_loader|pyg_stores|dgl DIR [NAME=VALUE…]

All systems train the same model (three layers of GraphSAGE, mean, 64 wide, one thread of PyTorch) on batches of 1000
seeds, with fanouts 15, 10, 5, 128 float32 features, and labels. A worker prints a JSON object when it is ready. It then
reads lines

    load N | train N        measure N mini-batches in the middle of a longer stream
    first N                 measure the time from the loader's constructor to its first batch, N times

and answers each with a JSON object: the seconds, the seconds of waiting for data, the processor's seconds (of this
process without its child processes), edges a batch, and the bytes of original ids that a batch reads. DIR is the
folder that setup.sh made. servers=A,B: Graphwire over two hosts. workers=N: PyTorch Geometric's worker processes.
ids=graph: graphwire.pyg.NeighborLoader without translation. types=N: the kinds of epoch_types.py, which load only.
frontier=new: Graphwire's loader draws the edges that PyG draws. DGL's role is set by its environment
(dgl_two_hosts.sh). Only one worker computes at a time; the others wait for a line.
"""
from __future__ import annotations

import json
import os
import sys
import time

import epoch_types
import numpy as np
import torch
import torch.nn.functional as F

SEEDS, FANOUTS, WIDTH, HIDDEN, CLASSES, AHEAD = 1000, [15, 10, 5], 128, 64, 47, 6
WIDTHS = [WIDTH, HIDDEN, HIDDEN, CLASSES]


def opened(folder, servers):
    """Graphwire's graph, and the range of the seeds: all nodes, or those of part 0 over servers."""
    import graphwire

    if servers:
        graph = graphwire.open(f"{folder}/gw2", servers.split(","), insecure=True)
        return graph, graph.part_range(0)
    graph = graphwire.open(f"{folder}/gw", verify=False)
    return graph, range(graph.num_nodes())


class Graphwire:
    """Standalone on the graph's one part, or over servers with the seeds of part 0."""

    def __init__(self, folder, servers="", depth="4", frontier="all"):
        import graphwire
        from graphwire.nn import SAGEConv

        self.loaders, self.depth, self.frontier = graphwire.NodeLoader, int(depth), frontier
        self.graph, self.range = opened(folder, servers)
        self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(WIDTHS, WIDTHS[1:]))
        self.random = np.random.default_rng(7)

    def batches(self, count):
        seeds = self.random.choice(self.range, SEEDS * count, replace=False)
        with self.loaders(self.graph, seeds, FANOUTS, features="feat", labels="label", batch_size=SEEDS, shuffle=True,
                          depth=self.depth, last="drop", frontier=self.frontier) as loader:
            yield from loader

    def edges(self, batch):
        return batch.num_edges

    def loss(self, batch):
        rows = batch.x
        for number, (layer, block) in enumerate(zip(self.layers, batch.blocks)):
            rows = layer(block, rows)
            rows = F.relu(rows) if number < 2 else rows
        return F.cross_entropy(rows[batch.seed_rows], batch.y)


class Pyg:
    """PyTorch Geometric's NeighborLoader on the whole graph."""

    def __init__(self, folder, workers="0"):
        import torch_geometric.typing
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.nn import SAGEConv
        from torch_geometric.utils import trim_to_layer

        if not (torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE):
            raise SystemExit("PyTorch Geometric has neither pyg-lib nor torch-sparse to sample with")
        self.sampler = "pyg-lib" if torch_geometric.typing.WITH_PYG_LIB else "torch-sparse"
        with np.load(f"{folder}/r20/edges.npz") as arrays:
            ends = torch.stack([torch.from_numpy(arrays["src"]), torch.from_numpy(arrays["dst"])])
        self.data = Data(x=torch.from_numpy(np.load(f"{folder}/r20/feat.npy")), edge_index=ends,
                         y=torch.from_numpy(np.load(f"{folder}/r20/label.npy")))
        self.loaders, self.trim, self.workers = NeighborLoader, trim_to_layer, int(workers)
        # A NeighborLoader sorts the edges when it is made. So this loader's sampler is used in all rounds, with new
        # seeds.
        self.loader = NeighborLoader(self.data, FANOUTS, input_nodes=torch.arange(SEEDS), batch_size=SEEDS,
                                     is_sorted=True)
        self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(WIDTHS, WIDTHS[1:]))
        self.random = np.random.default_rng(7)

    def batches(self, count):
        seeds = torch.from_numpy(self.random.choice(self.data.num_nodes, SEEDS * count, replace=False))
        yield from self.loaders(self.data, FANOUTS, input_nodes=seeds, batch_size=SEEDS, shuffle=True,
                                num_workers=self.workers, neighbor_sampler=self.loader.node_sampler)

    def edges(self, batch):
        return batch.edge_index.shape[1]

    def loss(self, batch):
        rows, edges = batch.x, batch.edge_index
        # Only with pyg-lib: torch-sparse does not count the nodes of each hop.
        sampled = getattr(batch, "num_sampled_nodes", None)
        for number, layer in enumerate(self.layers):
            if sampled is not None:
                rows, edges, _ = self.trim(number, sampled, batch.num_sampled_edges, rows, edges)
            rows = layer(rows, edges)
            rows = F.relu(rows) if number < 2 else rows
        return F.cross_entropy(rows[:SEEDS], batch.y[:SEEDS])


class PygStores(Pyg):
    """PyTorch Geometric's NodeLoader over Graphwire's stores and sampler: no worker processes."""

    def __init__(self, folder, servers=""):
        import graphwire.pyg
        from torch_geometric.loader import NodeLoader
        from torch_geometric.nn import SAGEConv
        from torch_geometric.utils import trim_to_layer

        self.graph, self.range = opened(folder, servers)
        self.stores = graphwire.pyg.stores(self.graph, {"x": "feat", "y": "label"})
        self.node_sampler, self.loader = graphwire.pyg.NeighborSampler(self.graph, FANOUTS), NodeLoader
        self.trim = trim_to_layer
        self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(WIDTHS, WIDTHS[1:]))
        self.random = np.random.default_rng(7)

    def original(self, count):
        """Seeds of the range, in original ids. Nodes of a graph in one part have the same ids."""
        chosen = torch.from_numpy(self.random.choice(self.range, SEEDS * count, replace=False))
        ntype = self.graph.ntypes[0]
        return self.graph.original_ids(chosen, ntype) if self.stores[0]._ids.has_nodes(ntype) else chosen

    def batches(self, count):
        yield from self.loader(self.stores, node_sampler=self.node_sampler, input_nodes=self.original(count),
                               batch_size=SEEDS, shuffle=True)


class PygLoader(PygStores):
    """graphwire.pyg.NeighborLoader over the same stores."""

    def __init__(self, folder, servers="", ids="orig"):
        import graphwire.pyg

        super().__init__(folder, servers)
        self.ids, self.loaders = ids, graphwire.pyg.NeighborLoader

    def made(self, seeds, **more):
        return self.loaders(self.stores, FANOUTS, input_nodes=seeds, batch_size=SEEDS, ids=self.ids, **more)

    def batches(self, count):
        if self.ids == "graph":
            seeds = torch.from_numpy(self.random.choice(self.range, SEEDS * count, replace=False))
        else:
            seeds = self.original(count)
        yield from self.made(seeds, shuffle=True)

    def first(self):
        begun = time.perf_counter()
        next(iter(self.made(torch.arange(SEEDS))))
        return time.perf_counter() - begun

    def id_bytes(self, batch):
        """What the translation of ids adds: the stored original ids of a batch's nodes and edges."""
        graph, ids = self.graph, self.made(torch.arange(1))._source.ids
        (ntype,), (etype,) = graph.ntypes, graph.etypes
        nodes = graph.feature("orig_id", ntype).dtype if ids.has_nodes(ntype) else None
        edges = graph.feature("orig_id", etype=etype).dtype if ids.has_edges(etype) else None
        return sum(len(of) * kind.itemsize for of, kind in ((batch.n_id, nodes), (batch.e_id, edges)) if kind)


class Dgl:
    """DGL's distributed loader, with the seeds of part 0."""

    def __init__(self, folder):
        import dgl
        import dgl.distributed
        from dgl.nn import SAGEConv

        # In a server, this call returns when the server is stopped.
        dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
        self.dgl, self.graph = dgl, dgl.distributed.DistGraph("r20", part_config=os.environ["DGL_CONF_PATH"])
        self.own = len(self.graph.get_partition_book().partid2nids(0))
        self.layers = torch.nn.ModuleList(SAGEConv(*pair, "mean") for pair in zip(WIDTHS, WIDTHS[1:]))
        self.random = np.random.default_rng(7)

    def batches(self, count):
        seeds = torch.from_numpy(self.random.choice(self.own, SEEDS * count, replace=False))
        sampler = self.dgl.dataloading.MultiLayerNeighborSampler(FANOUTS[::-1])
        for inputs, outputs, blocks in self.dgl.dataloading.DistNodeDataLoader(
                self.graph, seeds, sampler, batch_size=SEEDS, shuffle=True, drop_last=False):
            yield blocks, self.graph.ndata["feat"][inputs], self.graph.ndata["label"][outputs]

    def edges(self, batch):
        return sum(block.num_edges() for block in batch[0])

    def loss(self, batch):
        blocks, rows, labels = batch
        for number, (layer, block) in enumerate(zip(self.layers, blocks)):
            rows = layer(block, rows)
            rows = F.relu(rows) if number < 2 else rows
        return F.cross_entropy(rows, labels)

    def close(self):
        self.dgl.distributed.exit_client()


def measured(system, what, count, optimizer):
    """Measures `count` mini-batches in the middle of a stream. The stream has AHEAD more batches before and after them.
    So at the end of the measurement as many batches are ready as at its start."""
    stream, waited, edges = system.batches(count + 2 * AHEAD), 0.0, 0
    for number in range(count + AHEAD):
        if number == AHEAD:
            begun, used, waited, edges = time.perf_counter(), time.process_time(), 0.0, 0
        before = time.perf_counter()
        batch = next(stream)
        waited += time.perf_counter() - before
        edges += system.edges(batch)
        if what == "train":
            loss = system.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    stream.close()
    return {"what": what, "batches": count, "seconds": seconds, "waited": waited, "processor": used,
            "edges_per_batch": edges // count,
            "id_bytes": system.id_bytes(batch) if hasattr(system, "id_bytes") else 0}


def main():
    kind, folder = sys.argv[1:3]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    systems = {"graphwire": Graphwire, "pyg": Pyg, "pyg_loader": PygLoader, "pyg_stores": PygStores, "dgl": Dgl}
    system = {**systems, **epoch_types.SYSTEMS}[kind](folder, **dict(word.split("=", 1) for word in sys.argv[3:]))
    optimizer = torch.optim.Adam(system.layers.parameters(), 0.003)
    print(json.dumps({"ready": kind, "torch": torch.__version__, "sampler": getattr(system, "sampler", kind)}),
          flush=True)
    for line in sys.stdin:
        what, count = line.split()
        if what == "first":
            found = [system.first() for _ in range(int(count))] if hasattr(system, "first") else []
            print(json.dumps({"what": what, "seconds": found}), flush=True)
            continue
        print(json.dumps(measured(system, what, int(count), optimizer)), flush=True)
    getattr(system, "close", lambda: None)()


if __name__ == "__main__":
    main()
