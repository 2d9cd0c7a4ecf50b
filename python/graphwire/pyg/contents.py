"""The graph of the edges of data in memory. Loaders over equal edges share one graph, which their content finds.

    edges, weights, numbers of nodes -> a digest -> the graph of this content, if a loader uses it
                                                 -> else a copy -> its digest, and a new graph made of it

NumPy and `.data` write a tensor without a trace in it, so that only the content says whether a graph is that of the
data. A new graph is made of a copy: the graph has what the digest is of, also if a thread writes the edges meanwhile.
The digest takes about a hundredth of the time that making a graph takes.

Errors: ValueError for data without edge_index; those of from_pyg.
"""

from __future__ import annotations

import hashlib
from typing import Any, Union
from weakref import ref

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from graphwire._files import rows as _rows
from graphwire._graph.graph import Graph
from graphwire._graph.rules import Weight
from graphwire.pyg.convert import from_pyg

CHUNK = 1 << 17  # elements that are digested at once
_graphs: dict[bytes, ref[Graph]] = {}  # by digest, while a loader uses them


def _weights(data: Any, weight: Weight) -> list[str]:
    """The names of edge attributes that are weights, without those that no edge type has."""
    named = [weight] if isinstance(weight, str) else list((weight or {}).values())
    names = {name for name in named if isinstance(name, str)}
    return sorted(name for name in names if any(name in store for store in data.edge_stores))


class _Contents:
    """All that the graph has of data in memory. counts: {node type: number of nodes}; None is the type of Data.
    edges, weights: {edge type: edge_index}, {edge type: {name: rows}}, as NumPy arrays over the data's own memory."""

    def __init__(self, data: Any, weight: Weight):
        self.typed, self.names = isinstance(data, HeteroData), _weights(data, weight)
        self.counts = {kind: store.num_nodes for kind, store in self._stores(data, data.node_stores)}
        self.edges: dict[Any, np.ndarray] = {}
        self.weights: dict[Any, dict[str, np.ndarray]] = {}
        for kind, store in self._stores(data, data.edge_stores):
            of = "" if kind is None else f" of {kind}"
            if "edge_index" not in store and (kind is not None or "adj_t" in store):
                raise ValueError(f"data has no edge_index{of}" + (
                    ": pass graphwire.pyg.from_pyg(data), which reads adj_t" if "adj_t" in store else ""))
            self.edges[kind] = _rows.array(store.get("edge_index", torch.empty(2, 0, dtype=torch.int64)),
                                           f"edge_index{of}")
            self.weights[kind] = {name: _rows.array(store[name], f"{name}{of}") for name in self.names if name in store}

    def _stores(self, data: Any, stores: Any) -> Any:
        return [(store._key, store) for store in stores] if self.typed else [(None, data._store)]

    def copied(self) -> _Contents:
        made = object.__new__(_Contents)
        made.typed, made.names, made.counts = self.typed, self.names, self.counts
        made.edges = {kind: np.array(edges) for kind, edges in self.edges.items()}
        made.weights = {kind: {name: np.array(rows) for name, rows in some.items()}
                        for kind, some in self.weights.items()}
        return made

    def digest(self) -> bytes:
        found = hashlib.sha256(repr((self.typed, self.counts, list(self.edges))).encode())
        for kind, edges in self.edges.items():
            for name, rows in {"": edges, **self.weights[kind]}.items():
                found.update(repr((kind, name, rows.dtype.str, rows.shape)).encode())
                if rows.dtype.hasobject:
                    found.update(repr(rows.tolist()).encode())
                    continue
                flags = ["external_loop", "buffered", "zerosize_ok"]
                for some in np.nditer(rows, flags, order="C", buffersize=CHUNK):  # type: ignore[call-overload]
                    found.update(np.ascontiguousarray(some).view(np.uint8).data)
        return found.digest()

    def graph(self) -> Graph:
        data: Union[Data, HeteroData] = HeteroData() if self.typed else Data()
        for kind, count in self.counts.items():
            (data if kind is None else data[kind]).num_nodes = count
        for kind, edges in self.edges.items():
            (data if kind is None else data[kind]).edge_index = edges
        if self.typed and not self.edges and self.counts:
            ntype = next(iter(self.counts))
            data[ntype, "none", ntype].edge_index = torch.empty(2, 0, dtype=torch.int64)  # a graph has an edge type
        weights = {kind: some for kind, some in self.weights.items() if some} if self.typed else self.weights[None]
        return from_pyg(data, edge_features=weights, weight=self.names)


def _known(digest: bytes) -> Graph | None:
    for old in [old for old, gone in list(_graphs.items()) if gone() is None]:
        _graphs.pop(old, None)
    found = _graphs.get(digest)
    return None if found is None else found()


def graph_of(data: Union[Data, HeteroData], weight: Weight) -> Graph:
    """The graph of the edges that the data has now, and of the edge attributes that `weight` names."""
    contents = _Contents(data, weight)
    graph = _known(contents.digest())
    if graph is None:
        contents = contents.copied()
        digest = contents.digest()
        graph = _known(digest)
        if graph is None:
            graph = contents.graph()
            _graphs[digest] = ref(graph)
    return graph
