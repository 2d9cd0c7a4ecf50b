"""The data of graphwire.pyg's neighbour loaders and sampler: a graph to sample, and the rows of each batch.

    data        the graph                                  the rows of a batch
    Graph       itself                                     every feature, read with the batch
    served(…)   the same                                   the same, and frames of their columns
    stores      that of the stores                         the FeatureStore's attributes, read with the batch
    own stores  as of Data, of the edges that the          PyTorch Geometric asks the user's FeatureStore for them
                user's GraphStore has
    Data        from_pyg writes its edges to a scratch     PyTorch Geometric selects them from the user's own tensors,
    HeteroData  folder, once for loaders over equal edges  as in its own loaders

Errors: TypeError for other data; ValueError for names that collide, and for types; those of from_pyg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch_geometric.data as pyg
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader.utils import (
    filter_custom_hetero_store,
    filter_custom_store,
    filter_data,
    filter_hetero_data,
)

from graphwire._base import checks
from graphwire._base.arrays import gather_all, real_code, used_code
from graphwire._base.keywords import keywords
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.rules import Weight
from graphwire._graph.tensor import Tensor
from graphwire._train.lookahead import Options
from graphwire.pyg import own_stores
from graphwire.pyg.contents import graph_of, names_of
from graphwire.pyg.fetched import ORIGINAL
from graphwire.pyg.frames import TensorFrames
from graphwire.pyg.names import as_attribute, check_names, fill
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.rows import selected
from graphwire.pyg.sampled import Output, Sampled
from graphwire.pyg.served import ServedData, ServedStores
from graphwire.pyg.stores import FeatureStore, GraphStore
from graphwire.pyg.subgraph import EdgeType, triple
from graphwire.pyg.times import Times

Names = dict[str, dict[str, str]]  # {type: {attribute: feature}}


class Rows:
    """Reads features with a batch. nodes, edges: {type: {attribute: feature}}; ids: the translation of ids; dtype: of
    features of real numbers, or None."""

    def __init__(self, ids: OriginalIds, nodes: Names, edges: Names, dtype: Any):
        self.ids, self._nodes, self._edges, self.dtype = ids, nodes, edges, dtype
        self.added: dict[str, dict[str, torch.Tensor]] = {}  # by node type, in the rows of the user's data

    def drop(self, of_edges: bool, kind: str, name: str) -> None:
        (self._edges if of_edges else self._nodes).get(kind, {}).pop(name, None)
        self.added.get(kind, {}).pop(name, None)

    def add(self, ntype: str, name: str, rows: torch.Tensor) -> None:
        self.added.setdefault(ntype, {})[name] = rows

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
            yield from zip(names, self.read([graph.feature(name, ntype) for name in names.values()], at))

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
            yield from zip(names, self.read([graph.feature(name, etype=etype) for name in names.values()], at))

    def read(self, features: list[Feature], at: Any) -> list[torch.Tensor]:
        """Rows of features, of the graph's ids."""
        real = real_code(self.dtype, torch)
        found = gather_all(self.ids.graph._opened(), [(feature.pointer(), at) for feature in features], torch,
                           [real] * len(features))
        return [torch.as_tensor(rows) for rows in found]


class Origin:
    """The graph of data, from which a sampler draws.

    graph, ids: the graph, and the translation of its ids. typed: whether batches are HeteroData; None: seeds decide.
    in_memory: the data is Data or HeteroData. own: (FeatureStore, GraphStore), at least one of which is of the user's
    own class; None: the data is something else. etypes: the edge types of the data. hidden: those of the graph, if the
    data has none. time: the times that the caller's time_attr names, or None.
    """

    def __init__(self, data: Any, ids: str, weight: Weight, time_attr: str | None = None, sampled: Graph | None = None):
        """sampled: the graph that the caller's sampler draws from, or None."""
        if time_attr is not None and not isinstance(time_attr, str):
            raise TypeError(f"time_attr is the name of the times of nodes or edges, not {time_attr!r}")
        self.in_memory = isinstance(data, (Data, HeteroData))
        self.own: tuple[Any, Any] | None = None
        self.hidden: list[EdgeType] = []
        self._store: FeatureStore | None = None
        self.typed: bool | None = None
        if isinstance(data, (GraphStore, ServedData)):
            data, ids = data.graph, data._ids.word if ids == "orig" else ids
        if isinstance(data, Graph):
            self.graph, self.ids = data, OriginalIds(data, ids)
            self.typed = True if len(data.ntypes) > 1 or len(data.etypes) > 1 else None
        elif _are_stores(data):
            self._take_stores(data[0], data[1], ids, weight, time_attr, sampled)
        elif self.in_memory:
            typed = isinstance(data, HeteroData)
            self._take_edges(ids, sampled or graph_of(data, weight, time_attr), typed, typed and not data.edge_types)
        else:
            raise TypeError("data is a graphwire.Graph, (FeatureStore, GraphStore) of graphwire.pyg.stores or of your "
                            f"own, a Data or a HeteroData, not {type(data).__name__}")
        if sampled is not None and sampled is not self.graph:
            raise ValueError(f"neighbor_sampler samples {sampled!r}, and data is of {self.graph!r}")
        self.etypes = [] if self.hidden else self.graph.etypes
        self.time = None if time_attr is None else Times.of_graph(
            self.graph, time_attr, None if self._store is None else self._store.fetched())

    def _take_edges(self, ids: str, graph: Graph, typed: bool, without_types: bool) -> None:
        """Takes the graph of edges that have been read."""
        if checks.choice("ids", ids, ("orig", "graph")) == "graph":
            raise ValueError('ids="graph": data in memory has ids of its own; pass a graph, of from_pyg')
        self.graph, self.typed, self.ids = graph, typed, OriginalIds(graph, ids)
        if typed and without_types:
            self.hidden = [triple(etype) for etype in graph.etypes]

    def _take_stores(self, features: Any, edges: Any, ids: str, weight: Weight, time_attr: str | None,
                     sampled: Graph | None) -> None:
        if isinstance(features, FeatureStore) and isinstance(edges, GraphStore):
            self._store, self.graph, self.typed = features, features._graph, features._typed
            self.ids = features._ids if ids == "orig" else OriginalIds(features._graph, ids)
            return
        self.own, self._of_nodes = (features, edges), features
        if isinstance(edges, GraphStore):
            self.graph, self.typed = edges.graph, edges._typed
            self.ids = edges._ids if ids == "orig" else OriginalIds(edges.graph, ids)
            return
        named = names_of(weight) | ({time_attr} if time_attr else set())
        self._take_edges(ids, sampled or graph_of(own_stores.as_data(features, edges, named), weight, time_attr),
                         own_stores.are_typed(features, edges), not edges.get_all_edge_attrs())
        if not self.typed:
            of_edges = {feature.name for feature in self.graph.features if feature.of_edges} - {ORIGINAL}
            self._of_nodes = own_stores.OfNodes(features, of_edges)


class Source(Origin):
    """A graph whose features are read with the batch, or data in memory, or stores of the user's own.

    rows: what is read with a batch. data: the attribute `data` of loaders: the caller's data, or what a graph shows in
    its place.
    """

    def __init__(self, data: Any, ids: str, weight: Weight, custom_cls: Any, sampled: Graph | None = None,
                 time_attr: str | None = None, dtype: Any = None):
        super().__init__(data, ids, weight, time_attr, sampled)
        self.custom_cls = custom_cls
        if dtype is not None and self.is_of_pyg:
            raise ValueError("dtype: PyTorch Geometric selects the rows of this data, with their types; it chooses "
                             "those of a graph, and of its FeatureStore")
        if dtype is None:
            dtype = data._dtype if isinstance(data, ServedData) else self._store and self._store.dtype
        else:
            used_code(dtype, torch, (feature.pointer() for feature in self.graph.features))
        nodes: Names = {}
        edges: Names = {}
        if self._store is not None:
            nodes = self._store.fetched()
        elif not self.is_of_pyg:
            nodes, edges = _every_feature(self.graph)
        self._frames: TensorFrames | None = (
            self._store.frames if self._store is not None else data._frames if isinstance(data, ServedData) else None)
        self.rows = Rows(self.ids, nodes, edges, dtype)
        self.data = data if self.is_of_pyg else self._served(data, nodes, edges)
        if self.typed is not True:
            _check_one_place(nodes, edges)

    def every_link(self, kind: EdgeType | None) -> torch.Tensor | None:
        """All edges of a type of the caller's data, [2, edges]; None: they are the graph's. kind: None without types.
        """
        if self.in_memory:
            links: torch.Tensor = (self.data if kind is None else self.data[kind]).edge_index
            return links
        read = self.own is not None and not isinstance(self.own[1], GraphStore)
        return own_stores.links(self.own[1], kind) if self.own is not None and read else None

    @property
    def is_of_pyg(self) -> bool:
        """Whether PyTorch Geometric makes the batches' rows of the caller's data."""
        return self.in_memory or self.own is not None

    def looking(self, options: Options) -> Options:
        """The options, unless they ask for what this data does not have. Raises InvalidError."""
        if self.own is not None and options.asked():
            raise checks.invalid(f"{options.asked()[0]}: your own stores fetch the rows of this data: give a graph, or "
                                 "graphwire.pyg.stores")
        return options

    def _served(self, data: Any, nodes: Names, edges: Names) -> Any:
        tensors = {ntype: self._tensors(ntype) for ntype in self.graph.ntypes}
        made = data_of(self.ids, nodes, edges, tensors, self._frames, self.rows.dtype, self.rows)
        return made if self._store is None else ServedStores(tuple(data), made)

    def _tensors(self, ntype: str) -> dict[str, Tensor]:
        return {} if self._store is None else self._store.tensors(ntype)

    def filled(self, data: Any, out: Output, found: Sampled | None) -> Any:
        """Data or HeteroData with the edges and rows of a batch. data: the loader's `data`. found: the batch that `out`
        is of; None: rows are read again."""
        typed = isinstance(out.node, dict)
        if self.in_memory:
            return (filter_hetero_data if typed else filter_data)(data, out.node, out.row, out.col, out.edge)
        if self.own is not None:
            return (filter_custom_hetero_store if typed else filter_custom_store)(
                self._of_nodes, self.own[1], out.node, out.row, out.col, out.edge, self.custom_cls)
        made: Any = self.custom_cls() if self.custom_cls is not None else HeteroData() if typed else Data()
        for ntype in self.graph.ntypes:
            ids = out.node[ntype] if typed else out.node
            store = store_of(made, ntype if typed else None)
            fill(store, {"num_nodes": ids.numel()})
            for name, rows in self.rows.nodes_of(ntype, ids, found):
                store[name] = as_attribute(made, store, name, rows)
            for name, tensor in self._tensors(ntype).items():  # they change, so that each batch reads them now
                store[name] = tensor[self.ids.nodes_to_graph(ntype, ids)]
            for name, rows in self.rows.added.get(ntype, {}).items():
                store[name] = selected(rows, ids)
        for etype in self.graph.etypes:
            kind = triple(etype)
            row, col, ids = (out.row[kind], out.col[kind], out.edge[kind]) if typed else (out.row, out.col, out.edge)
            store = store_of(made, kind if typed else None)
            fill(store, {"edge_index": torch.stack([row, col]) if found is None else found.edge_index(etype, row, col)})
            for name, some in self.rows.edges_of(etype, ids, found):
                store[name] = None if some is None else as_attribute(made, store, name, some)
        if self._frames is not None:
            for ntype, layout in self._frames.of(self.graph.ntypes).items():
                self._frames.put(store_of(made, ntype if typed else None), layout)
        return made


def store_of(data: Any, kind: Any) -> Any:
    """What holds the attributes of a type: of Data (kind None) its storage, because Data itself looks for a property
    of its class first, which takes longer than all else that an attribute costs. For the same reason HeteroData is not
    asked for data[kind], which compares kind with all types."""
    if kind is not None:
        return data.get_node_store(kind) if isinstance(kind, str) else data.get_edge_store(*kind)
    return data._store if type(data) is Data else data


def data_of(ids: OriginalIds, nodes: Names, edges: Names, tensors: Mapping[str, Mapping[str, Tensor]],
            frames: TensorFrames | None, dtype: Any, changes: Rows | None = None) -> ServedData:
    """What a graph shows in the place of data. nodes, edges: {type: {attribute: feature}}; tensors: {node type:
    {attribute: tensor}}; dtype: of features of real numbers. changes: those of a loader, which can change its data."""
    graph = ids.graph
    return ServedData(
        graph, ids,
        {ntype: {**{called: graph.feature(name, ntype)._as(dtype) for called, name in nodes.get(ntype, {}).items()},
                 **tensors.get(ntype, {})} for ntype in graph.ntypes},
        {etype: {called: graph.feature(name, etype=etype)._as(dtype) for called, name in names.items()}
         for etype, names in edges.items()}, frames, dtype, changes)


@keywords
def served(graph: Graph, frames: Any = None, *, ids: str = "orig", dtype: Any = None) -> ServedData:
    """The data of a graph, as the attribute `data` of a loader over it: what scripts ask of Data and HeteroData,
    without rows. The neighbour loaders take it as `data`.

    graph: the graph. Every feature is an attribute of the batches and of the data, whose rows data["paper"].x[n_id]
        fetches.
    frames: a TensorFrames, or what it takes: {node type: TensorFrame}. Their columns are one attribute, "tf", of the
        batches, and of the data: data["user"].tf.col_names_dict, data["user"].tf[n_id]. None: columns are features.
    ids: the ids of nodes and edges, as those of the loaders.
    dtype: the type of features of real numbers, as that of the loaders.

    Node types and edge types, metadata(), num_nodes_dict and data["user"].num_nodes are as those of HeteroData, and
    "time" in data["user"] says whether the type has this attribute. The result does not change, and can be pickled.

    Raises ValueError for frames of types or columns that the graph does not have; TypeError for other frames.
    """
    given = frames if frames is None or isinstance(frames, TensorFrames) else TensorFrames(frames)
    used_code(dtype, torch, (feature.pointer() for feature in graph.features))
    return data_of(OriginalIds(graph, ids), *_every_feature(graph), {}, given, dtype)


def _are_stores(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and len(data) == 2 and isinstance(data[0], pyg.FeatureStore) and (
        isinstance(data[1], pyg.GraphStore))


def _every_feature(graph: Graph) -> tuple[Names, Names]:
    """({node type: {attribute: feature}}, {edge type: …}) of all features, without the original ids. Features n_id of
    nodes and e_id of edges replace the loader's, as attributes of the user's data do in PyG."""
    found: tuple[Names, Names] = ({}, {})
    for feature in graph.features:
        if feature.name != ORIGINAL:
            found[feature.of_edges].setdefault(feature.type, {})[feature.name] = feature.name
    for kind, own in zip(found, ("n_id", "e_id")):
        named = {name for names in kind.values() for name in names} - {own}
        check_names(sorted(named), "data", "pass graphwire.pyg.stores(graph, …) as data, which names the attributes")
    return found


def _check_one_place(nodes: Names, edges: Names) -> None:
    """Raises ValueError if a feature of nodes and one of edges would be one attribute of Data."""
    both = {name for names in nodes.values() for name in names} & {name for names in edges.values() for name in names}
    if both:
        name = min(both)
        raise ValueError(f"data: nodes and edges both have a feature {name!r}, which would be one attribute of Data: "
                         f'pass graphwire.pyg.stores(graph, {{"x": {name!r}}}) as data')
