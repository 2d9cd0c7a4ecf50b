"""Draws by time in PyTorch Geometric's words: the times that time_attr names, and those of seeds.

    time_attr -> times of nodes, or of edges -> {edge type: the time of its rule}
    input_time, edge_label_time, or the seeds' own times -> a time for each seed, int64 or float64

PyG's law: an edge is eligible if its time is not later than that of the batch's seed for which it is drawn. With times
of nodes the edge has the time of its source, the neighbour. Edges of types without times are drawn uniformly.

A graph, stores and HeteroData say by their place whether rows are of nodes or of edges. Data says it by their number.
If it has as many edges as nodes, the name says it, "node" or "edge" in it, and other names are refused: PyG would take
the times of edges for those of nodes.

Errors: ValueError for times that do not exist, or whose place is open; those of _base/times.py for times of seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import HeteroData

from graphwire._base.times import numbers
from graphwire._files.pyg_data import times_are_of_nodes
from graphwire._graph.graph import Graph
from graphwire._graph.rules import SOURCE, unit_of

Named = dict[str, str]  # {type: feature}
_DTYPES = (np.int64, np.int32, np.float64, np.float32)


class Times:
    """name: time_attr. nodes, edges: {type: feature} of the types that have times. In a graph that has both, as one of
    tables with keys, edges are drawn by their own times. rules: {edge type: the time by which its edges are drawn}, as
    the native loaders' argument time. orders: what weighted.py keeps of the nodes' times."""

    def __init__(self, graph: Graph, name: str, nodes: Named, edges: Named):
        if not (nodes or edges):
            raise _nowhere(name)
        self.graph, self.name, self.nodes, self.edges = graph, name, nodes, edges
        self.orders: dict[tuple[str, str], Any] = {}
        own = {(feature.type, feature.name) for feature in graph.features if feature.of_edges}
        sources = {etype: nodes.get(graph.ends(etype)[0]) for etype in graph.etypes}
        of_sources = {etype: f"{feature}{SOURCE}" if (etype, feature) in own else feature
                      for etype, feature in sources.items() if feature is not None}
        self.rules = {**of_sources, **edges}

    @classmethod
    def of_graph(cls, graph: Graph, name: str, attributes: Mapping[str, Mapping[str, str]] | None = None) -> Times:
        """attributes: {node type: {attribute: feature}} of stores, whose names come first."""
        named = {ntype: some[name] for ntype, some in (attributes or {}).items() if name in some}
        found: tuple[Named, Named] = (named, {})
        for feature in graph.features if not named else ():
            if feature.name == name:
                found[feature.of_edges][feature.type] = name
        return cls(graph, name, *found)

    def tensors(self) -> list[Any]:
        """The gw_tensors of all times, which the graph owns."""
        return [*(self.graph.feature(name, ntype).pointer() for ntype, name in self.nodes.items()),
                *(self.graph.feature(name, etype=etype).pointer() for etype, name in self.edges.items())]

    def own(self, ntype: str, nodes: torch.Tensor, argument: str, unit: str | None) -> torch.Tensor:
        """The times of nodes, which are seeds without an argument that gives their times. nodes: the graph's ids; unit:
        that of the result, or None."""
        if ntype not in self.nodes:
            raise ValueError(f"{argument} is not set, and " + (
                f"{self.name!r} has the times of edges: the seeds need times" if self.edges else
                f"the nodes of type {ntype} have no {self.name!r}"))
        feature = self.graph.feature(self.nodes[ntype], ntype)
        rows, own = np.asarray(feature[nodes]), unit_of(feature.pointer())
        if None not in (own, unit) and rows.dtype == np.int64:
            rows = rows.view(f"datetime64[{own}]")
        return SeedTimes(rows, len(nodes), argument, unit).numbers


def _nowhere(name: str) -> ValueError:
    return ValueError(f"time_attr: {name!r} is an attribute neither of nodes nor of edges")


def in_memory(data: Any, name: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """({node type: its times}, {edge type: its times}) of data in memory, one of which is empty. None is the type of
    Data."""
    if not isinstance(data, HeteroData):
        try:
            of_nodes = times_are_of_nodes(data, name)
        except ValueError as error:
            raise ValueError(f"time_attr: {error}") from None
        return ({None: data._store[name]}, {}) if of_nodes else ({}, {None: data._store[name]})
    nodes, edges = ({store._key: store[name] for store in stores if name in store}
                    for stores in (data.node_stores, data.edge_stores))
    if nodes and edges:
        raise ValueError(f"time_attr: nodes and edges both have {name!r}")
    if not (nodes or edges):
        raise _nowhere(name)
    return nodes, edges


def checked(rows: np.ndarray, what: str) -> np.ndarray:
    """Rows of data in memory that are times. Raises TypeError and ValueError, which have `what`."""
    if rows.ndim != 1 or rows.dtype not in _DTYPES:
        raise TypeError(f"{what}: times are one int64, int32, float64 or float32 for each row, not {rows.dtype} "
                        f"{list(rows.shape)}")
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        raise ValueError(f"{what}: row {int(np.isnan(rows).argmax())} is NaN: every time is a number")
    return rows


class SeedTimes:
    """given: the times of `count` seeds, of the type of the caller's tensor, [count]. numbers: the same as int64 or
    float64. Both are copies, so that a batch has the times by which it was drawn. argument: the name for errors."""

    def __init__(self, given: Any, count: int, argument: str, unit: str | None):
        found = torch.from_numpy(numbers(argument, given, None, unit))
        if len(found) != count:
            raise ValueError(f"{argument}: {len(found)} times for {count} seeds, which have one each")
        self.numbers = found
        self.given = found.to(given) if isinstance(given, torch.Tensor) and given.dim() else found
