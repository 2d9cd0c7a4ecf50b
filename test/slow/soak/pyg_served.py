"""Data of PyTorch Geometric as a Graph of two parts, on two servers of this host.

    Data or HeteroData -> from_pyg, in two parts -> two servers -> graphwire.open
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import tempfile
from pathlib import Path

import graphwire
import torch
from torch_geometric.data import Data, HeteroData

TOP = Path(__file__).resolve().parents[3]
_spec = importlib.util.spec_from_file_location("graphs", TOP / "test/python/conftest.py")
graphs = importlib.util.module_from_spec(_spec)
sys.modules["graphs"] = graphs
_spec.loader.exec_module(graphs)


def with_edges(data):
    """The data; without edges, as a graph has it: with an empty edge_index."""
    if data.edge_stores if isinstance(data, HeteroData) else "edge_index" in data:
        return data
    data = copy.copy(data)
    (data[data.node_types[0], "to", data.node_types[0]] if isinstance(data, HeteroData) else data).edge_index = (
        torch.empty(2, 0, dtype=torch.int64))
    return data


class Served:
    """The graphs that loaders sample, with their servers. A host serves equal graphs once."""

    def __init__(self):
        self._open, self._graphs = [], {}

    def graph(self, data, time, weight):
        folder = tempfile.TemporaryDirectory()
        parts = Path(folder.name, "parts")
        self._open.append(folder.cleanup)
        graphwire.pyg.from_pyg(with_edges(data), parts, num_parts=2, time=time or (), weight=weight or ()).close()
        content = (parts / "graph.json").read_text()
        if content not in self._graphs:
            servers = graphs.Servers(parts, 2, folder.name)
            self._open.append(servers.close)
            self._graphs[content] = graphwire.open(servers=servers.addresses)
            self._open.append(self._graphs[content].close)
        return self._graphs[content]

    def loader(self, loader):
        """A loader class with a graph in place of data in memory, and the same arguments."""
        def made(data, *arguments, **options):
            if isinstance(data, (Data, HeteroData)):
                data = self.graph(data, options.get("time_attr"), options.get("weight_attr"))
            return loader(data, *arguments, **options)
        return made

    def close(self):
        self._graphs.clear()
        while self._open:
            self._open.pop()()
