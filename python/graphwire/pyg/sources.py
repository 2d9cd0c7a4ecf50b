"""The data of graphwire.pyg's neighbour loaders: a graph to sample, and the rows of each batch.

    data        the graph                                  the rows of a batch
    Graph       itself                                     every feature, read with the batch
    stores      that of the stores                         the FeatureStore's attributes, read with the batch
    Data        from_pyg writes its edges to a scratch     PyTorch Geometric selects them from the user's own tensors,
    HeteroData  folder, once for loaders over equal edges  as in its own loaders

Errors: TypeError for other data; ValueError for names that collide, and for types; those of from_pyg.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader.utils import filter_data, filter_hetero_data

from graphwire._base import checks
from graphwire._base.arrays import gather_all
from graphwire._graph.graph import Graph
from graphwire._graph.rules import Weight
from graphwire._graph.tensor import Tensor
from graphwire.pyg.contents import graph_of
from graphwire.pyg.fetched import ORIGINAL
from graphwire.pyg.names import as_attribute, check_names, fill
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.sampled import Output, Sampled
from graphwire.pyg.served import ServedData, ServedStores
from graphwire.pyg.stores import FeatureStore, GraphStore
from graphwire.pyg.subgraph import EdgeType, triple
from graphwire.pyg.times import Times


class Rows:
    """Reads features with a batch. nodes, edges: {type: {attribute: feature}}; ids: the translation of ids."""

    def __init__(self, ids: OriginalIds, nodes: dict[str, dict[str, str]], edges: dict[str, dict[str, str]]):
        self.ids, self._nodes, self._edges = ids, nodes, edges

    def node_features(self) -> dict[str, list[str]]:
        """What the native loader reads for nodes, {node type: features}."""
        graph, ids = self.ids.graph, self.ids
        return {ntype: [*dict.fromkeys(self._nodes.get(ntype, {}).values()),
                        *([ORIGINAL] if ids.has_nodes(ntype) else [])] for ntype in graph.ntypes}

    def edge_features(self) -> dict[str, list[str]]:
        graph, ids = self.ids.graph, self.ids
        return {etype: [*dict.fromkeys(self._edges.get(etype, {}).values()),
                        *([ORIGINAL] if ids.has_edges(etype) else [])] for etype in graph.etypes}

    def nodes_of(self, ntype: str, ids: torch.Tensor, found: Sampled | None) -> Iterator[tuple[str, torch.Tensor]]:
        """(attribute, rows) for nodes with these ids. Reads again only rows that a transform has changed."""
        names = self._nodes.get(ntype, {})
        if found is not None and ids is found.given(ntype):
            yield from ((called, found.node_rows(ntype, name)) for called, name in names.items())
        elif names:
            graph, at = self.ids.graph, self.ids.nodes_to_graph(ntype, ids)
            asked = [(graph.feature(name, ntype).pointer(), at) for name in names.values()]
            yield from zip(names, map(torch.as_tensor, gather_all(graph._opened(), asked, torch)))

    def edges_of(self, etype: str, ids: torch.Tensor | None,
                 found: Sampled | None) -> Iterator[tuple[str, torch.Tensor | None]]:
        """As nodes_of, for edges. ids: None if to_bidirectional has dropped them; rows are None then, as in PyG."""
        names = self._edges.get(etype, {})
        if ids is None:
            yield from ((called, None) for called in names)
        elif found is not None and ids is found.given(etype):
            yield from ((called, found.edge_rows(etype, name)) for called, name in names.items())
        elif names:
            graph, at = self.ids.graph, self.ids.edges_to_graph(etype, ids)
            asked = [(graph.feature(name, etype=etype).pointer(), at) for name in names.values()]
            yield from zip(names, map(torch.as_tensor, gather_all(graph._opened(), asked, torch)))


class Source:
    """A graph whose features are read with the batch, or data in memory.

    graph, ids: the graph, and the translation of its ids. typed: whether batches are HeteroData; None: seeds decide.
    rows: what is read with a batch. sampled: the graph that the caller's sampler draws from, or None.
    data: the attribute `data` of loaders: the data in memory, or what a graph shows in its place.
    etypes: the edge types of the data. hidden: those of the graph, if the data in memory has none.
    time: the times that the caller's time_attr names, or None.
    """

    def __init__(self, data: Any, ids: str, weight: Weight, custom_cls: Any, sampled: Graph | None = None,
                 time_attr: str | None = None):
        if time_attr is not None and not isinstance(time_attr, str):
            raise TypeError(f"time_attr is the name of the times of nodes or edges, not {time_attr!r}")
        self.custom_cls = custom_cls
        self.in_memory = isinstance(data, (Data, HeteroData))
        self._store: FeatureStore | None = None
        self.typed: bool | None = None
        self.hidden: list[EdgeType] = []
        nodes: dict[str, dict[str, str]] = {}
        edges: dict[str, dict[str, str]] = {}
        if self.in_memory:
            if checks.choice("ids", ids, ("orig", "graph")) == "graph":
                raise ValueError('ids="graph": data in memory has ids of its own; pass a graph, of from_pyg')
            self.graph, self.typed = sampled or graph_of(data, weight, time_attr), isinstance(data, HeteroData)
            self.ids = OriginalIds(self.graph, ids)
            if self.typed and not data.edge_types:
                self.hidden = [triple(etype) for etype in self.graph.etypes]
        elif isinstance(data, Graph):
            self.graph, self.ids = data, OriginalIds(data, ids)
            self.typed = True if len(data.ntypes) > 1 or len(data.etypes) > 1 else None
            nodes, edges = _every_feature(data)
        elif _are_stores(data):
            store = data[0]
            self.graph, self.typed = store._graph, store._typed
            self.ids = store._ids if ids == "orig" else OriginalIds(store._graph, ids)
            self._store, nodes = store, store.fetched()
        else:
            raise TypeError("data is a graphwire.Graph, (FeatureStore, GraphStore) of graphwire.pyg.stores, a Data or "
                            f"a HeteroData, not {type(data).__name__}")
        self.data = data if self.in_memory else self._served(data, nodes, edges)
        self.etypes = [] if self.hidden else self.graph.etypes
        if sampled is not None and sampled is not self.graph:
            raise ValueError(f"neighbor_sampler samples {sampled!r}, and data is of {self.graph!r}")
        self.time = None if time_attr is None else Times.of_graph(
            self.graph, time_attr, None if self._store is None else nodes)
        self.rows = Rows(self.ids, nodes, edges)
        if self.typed is not True:
            _check_one_place(nodes, edges)

    def _served(self, data: Any, nodes: dict[str, dict[str, str]], edges: dict[str, dict[str, str]]) -> Any:
        graph, ids = self.graph, self.ids
        made = ServedData(
            graph, ids,
            {ntype: {**{called: graph.feature(name, ntype) for called, name in nodes.get(ntype, {}).items()},
                     **self._tensors(ntype)} for ntype in graph.ntypes},
            {etype: {called: graph.feature(name, etype=etype) for called, name in names.items()}
             for etype, names in edges.items()})
        return made if self._store is None else ServedStores(tuple(data), made)

    def _tensors(self, ntype: str) -> dict[str, Tensor]:
        return {} if self._store is None else self._store.tensors(ntype)

    def filled(self, data: Any, out: Output, found: Sampled | None) -> Any:
        """Data or HeteroData with the edges and rows of a batch. data: the loader's `data`. found: the batch that `out`
        is of; None: rows are read again."""
        typed = isinstance(out.node, dict)
        if self.in_memory:
            return (filter_hetero_data if typed else filter_data)(data, out.node, out.row, out.col, out.edge)
        made: Any = self.custom_cls() if self.custom_cls is not None else HeteroData() if typed else Data()
        for ntype in self.graph.ntypes:
            ids = out.node[ntype] if typed else out.node
            store = store_of(made, ntype if typed else None)
            fill(store, {"num_nodes": ids.numel()})
            for name, rows in self.rows.nodes_of(ntype, ids, found):
                store[name] = as_attribute(made, store, name, rows)
            for name, tensor in self._tensors(ntype).items():  # they change, so that each batch reads them now
                store[name] = tensor[self.ids.nodes_to_graph(ntype, ids)]
        for etype in self.graph.etypes:
            kind = triple(etype)
            row, col, ids = (out.row[kind], out.col[kind], out.edge[kind]) if typed else (out.row, out.col, out.edge)
            store = store_of(made, kind if typed else None)
            fill(store, {"edge_index": torch.stack([row, col]) if found is None else found.edge_index(etype, row, col)})
            for name, some in self.rows.edges_of(etype, ids, found):
                store[name] = None if some is None else as_attribute(made, store, name, some)
        return made


def store_of(data: Any, kind: Any) -> Any:
    """What holds the attributes of a type: of Data (kind None) its storage, because Data itself looks for a property
    of its class first, which takes longer than all else that an attribute costs. For the same reason HeteroData is not
    asked for data[kind], which compares kind with all types."""
    if kind is not None:
        return data.get_node_store(kind) if isinstance(kind, str) else data.get_edge_store(*kind)
    return data._store if type(data) is Data else data


def _are_stores(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and len(data) == 2 and isinstance(data[0], FeatureStore) and (
        isinstance(data[1], GraphStore))


def _every_feature(graph: Graph) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """({node type: {attribute: feature}}, {edge type: …}) of all features, without the original ids. Features n_id of
    nodes and e_id of edges replace the loader's, as attributes of the user's data do in PyG."""
    found: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {})
    for feature in graph.features:
        if feature.name != ORIGINAL:
            found[feature.of_edges].setdefault(feature.type, {})[feature.name] = feature.name
    for kind, own in zip(found, ("n_id", "e_id")):
        named = {name for names in kind.values() for name in names} - {own}
        check_names(sorted(named), "data", "pass graphwire.pyg.stores(graph, …) as data, which names the attributes")
    return found


def _check_one_place(nodes: dict[str, dict[str, str]], edges: dict[str, dict[str, str]]) -> None:
    """Raises ValueError if a feature of nodes and one of edges would be one attribute of Data."""
    both = {name for names in nodes.values() for name in names} & {name for names in edges.values() for name in names}
    if both:
        name = min(both)
        raise ValueError(f"data: nodes and edges both have a feature {name!r}, which would be one attribute of Data: "
                         f'pass graphwire.pyg.stores(graph, {{"x": {name!r}}}) as data')
