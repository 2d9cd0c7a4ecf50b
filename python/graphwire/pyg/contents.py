"""The graph of the edges of data in memory. Loaders over equal edges share one graph, which their content finds.

    edges, weights, times, numbers of nodes -> a digest -> the graph of this content, if a loader uses it
                                                        -> else a copy -> its digest, and a new graph made of it

NumPy and `.data` write a tensor without a trace in it, so that only the content says whether a graph is that of the
data. A new graph is made of a copy: the graph has what the digest is of, also if a thread writes the edges meanwhile.
The digest takes about a hundredth of the time that making a graph takes.

Errors: ValueError for data without edge_index; those of times.in_memory and of from_pyg.
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
from graphwire._graph.rules import Weight, names_in
from graphwire.pyg import times
from graphwire.pyg.convert import from_pyg

CHUNK = 1 << 17  # elements that are digested at once
_graphs: dict[bytes, ref[Graph]] = {}  # by digest, while a loader uses them


def names_of(weight: Weight) -> set[str]:
    """The names of edge attributes that are weights."""
    return set(names_in(weight, "weight_attr"))


def _weights(data: Any, weight: Weight) -> list[str]:
    """The names of edge attributes that are weights, without those that no edge type has."""
    return sorted(name for name in names_of(weight) if any(name in store for store in data.edge_stores))


Rows = dict[Any, dict[str, np.ndarray]]  # {type: {name: rows}}; None is the type of Data


class _Contents:
    """All that the graph has of data in memory. counts: {node type: number of nodes}; None is the type of Data.
    edges: {edge type: edge_index}. rows: what draws need besides, weights and times, (of nodes, of edges). All are
    NumPy arrays over the data's own memory. weights, times: the names of rows that are weights, and that are times.
    """

    def __init__(self, data: Any, weight: Weight, time: str | None):
        self.typed, self.weights = isinstance(data, HeteroData), _weights(data, weight)
        self.times = [] if time is None else [time]
        self.counts = {kind: store.num_nodes for kind, store in self._stores(data, data.node_stores)}
        self.edges: dict[Any, np.ndarray] = {}
        self.rows: tuple[Rows, Rows] = ({}, {})
        for kind, store in self._stores(data, data.edge_stores):
            of = _of(kind)
            if "edge_index" not in store and (kind is not None or "adj_t" in store):
                raise ValueError(f"data has no edge_index{of}" + (
                    ": pass graphwire.pyg.from_pyg(data), which reads adj_t" if "adj_t" in store else ""))
            self.edges[kind] = _rows.array(store.get("edge_index", torch.empty(2, 0, dtype=torch.int64)),
                                           f"edge_index{of}")
            self.rows[1][kind] = {name: self._rows(store[name], f"weight_attr: {name}{of}", True, kind)
                                  for name in self.weights if name in store}
        for of_edges, given in enumerate(({}, {}) if time is None else times.in_memory(data, time)):
            for kind, some in given.items():
                what = f"time_attr: {time}{_of(kind)}"
                rows = times.checked(self._rows(some, what, bool(of_edges), kind), what)
                self.rows[of_edges].setdefault(kind, {})[str(time)] = rows

    def _rows(self, given: Any, what: str, of_edges: bool, kind: Any) -> np.ndarray:
        """An attribute with a row for each node or edge of a type. Raises ValueError, which has `what`."""
        found, edges = _rows.array(given, what), self.edges.get(kind)
        of_all = edges.shape[-1] if edges is not None and edges.ndim == 2 else None
        count = of_all if of_edges else self.counts[kind]
        if count is not None and (found.ndim == 0 or len(found) != count):
            raise ValueError(f"{what}: {len(found) if found.ndim else 'no list of'} rows for {count} "
                             f"{'edges' if of_edges else 'nodes'}")
        return found

    def _stores(self, data: Any, stores: Any) -> Any:
        return [(store._key, store) for store in stores] if self.typed else [(None, data._store)]

    def copied(self) -> _Contents:
        made = object.__new__(_Contents)
        made.typed, made.weights, made.times, made.counts = self.typed, self.weights, self.times, self.counts
        made.edges = {kind: np.array(edges) for kind, edges in self.edges.items()}
        nodes, edges = ({kind: {name: np.array(some) for name, some in named.items()} for kind, named in rows.items()}
                        for rows in self.rows)
        made.rows = nodes, edges
        return made

    def digest(self) -> bytes:
        found = hashlib.sha256(repr((self.typed, self.counts, list(self.edges), self.times)).encode())
        every = [{kind: {"": edges} for kind, edges in self.edges.items()}, *self.rows]
        for of, kind, name, rows in ((of, kind, name, rows) for of, named in enumerate(every)
                                     for kind, some in named.items() for name, rows in some.items()):
            found.update(repr((of, kind, name, rows.dtype.str, rows.shape)).encode())
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
        for kind, ends in self.edges.items():
            (data if kind is None else data[kind]).edge_index = ends
        if self.typed and not self.edges and self.counts:
            ntype = next(iter(self.counts))
            data[ntype, "none", ntype].edge_index = torch.empty(2, 0, dtype=torch.int64)  # a graph has an edge type
        nodes, edges = ({kind: some for kind, some in rows.items() if some} if self.typed else rows.get(None, {})
                        for rows in self.rows)
        return from_pyg(data, node_features=nodes, edge_features=edges, weight=self.weights, time=self.times)


def _of(kind: Any) -> str:
    return "" if kind is None else f" of {kind}"


def _known(digest: bytes) -> Graph | None:
    for old in [old for old, gone in list(_graphs.items()) if gone() is None]:
        _graphs.pop(old, None)
    found = _graphs.get(digest)
    return None if found is None else found()


def graph_of(data: Union[Data, HeteroData], weight: Weight, time: str | None = None) -> Graph:
    """The graph of the edges that the data has now, and of the attributes that `weight` and `time` name."""
    contents = _Contents(data, weight, time)
    graph = _known(contents.digest())
    if graph is None:
        contents = contents.copied()
        digest = contents.digest()
        graph = _known(digest)
        if graph is None:
            graph = contents.graph()
            _graphs[digest] = ref(graph)
    return graph
