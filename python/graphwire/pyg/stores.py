"""PyTorch Geometric's FeatureStore and GraphStore over a graph.

PyG's loaders fetch every attribute that a FeatureStore names for the nodes of each batch, so that the names are chosen
when it is made; all of them are under way at once. It fetches no edge rows: batch.to_pyg() of graphwire.NodeLoader has
them, and so has FeatureStore.edge_rows as a loader's transform.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import torch
import torch_geometric.data as pyg
from torch_geometric.data import EdgeAttr, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout

from graphwire import _arrays
from graphwire._index import RowIndex
from graphwire._native import GraphwireError, NotFoundError
from graphwire.graph import Feature, Graph
from graphwire.pyg.edges import edge_ids
from graphwire.pyg.names import check_names
from graphwire.pyg.subgraph import triple
from graphwire.tensor import Tensor

Names = Union[str, Sequence[str], Mapping[str, str]]
Rows = Union[Feature, Tensor]


def _pairs(names: Names) -> dict[str, str]:
    """{attribute: feature}."""
    if isinstance(names, Mapping):
        return dict(names)
    return {name: name for name in ([names] if isinstance(names, str) else names)}


def _is_typed(graph: Graph, hetero: bool | None) -> bool:
    """Whether types are named. PyG calls a graph of one node and one edge type by None."""
    several = len(graph.ntypes) > 1 or len(graph.etypes) > 1
    if hetero is False and several:
        raise ValueError(f"the graph has {len(graph.ntypes)} node types and {len(graph.etypes)} edge types: it is not "
                         "homogeneous")
    return several if hetero is None else hetero


@dataclass
class NodeAttr(TensorAttr):  # type: ignore[misc]
    """(node type, attribute): all rows, unless an index says which."""

    index: Any = None


class FeatureStore(pyg.FeatureStore):  # type: ignore[misc]
    """Features of nodes by (node type, attribute, index); the type of a homogeneous graph is None.

    names: what the batches get: a feature, several, or {attribute: feature}, as {"x": "feat"}; of a graph of several
        node types {node type: such names}. hetero: name types even where there is one.

    put_tensor makes a tensor that changes, shared by the trainers of a job, of a row for each node, and overwrites rows
    of one; the graph's features do not change.
    """

    def __init__(self, graph: Graph, names: Names | Mapping[str, Names], hetero: bool | None = None):
        super().__init__(NodeAttr)
        self._graph, self._typed = graph, _is_typed(graph, hetero)
        given: Any = names if len(graph.ntypes) > 1 else {graph.ntypes[0]: names}
        if not isinstance(given, Mapping):
            raise ValueError(f"names: give {{node type: names}} of {', '.join(graph.ntypes)}")
        if len(graph.ntypes) == 1 and isinstance(names, Mapping) and graph.ntypes[0] in names:
            given = names
        self._rows: dict[tuple[str, str], Rows] = {
            (graph.ntypes[graph.ntype_number(ntype)], attribute): graph.feature(feature, ntype)
            for ntype, some in given.items() for attribute, feature in _pairs(some).items()}
        check_names([attribute for _, attribute in self._rows], "FeatureStore")

    def _key(self, attr: TensorAttr) -> tuple[str, str]:
        group = attr.group_name if isinstance(attr.group_name, str) else None
        return self._graph.ntypes[self._graph.ntype_number(group)], str(attr.attr_name)

    def _there(self, attr: TensorAttr) -> Rows | None:
        """What has the rows: chosen at the start, a feature, or a tensor that was put, here or by another trainer."""
        key = self._key(attr)
        if key not in self._rows:
            for find in (lambda: self._graph.feature(key[1], key[0]), lambda: self._graph.open_tensor(_put_name(key))):
                try:
                    return find()
                except NotFoundError:
                    continue
            return None
        return self._rows[key]

    def _get_tensor(self, attr: TensorAttr) -> Any:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[Any]:
        """Rows of several tensors; all of them are asked for before the first is waited for."""
        found = [self._there(attr) for attr in attrs]
        asked = [(rows, RowIndex(_index(attr.index), tuple(rows.shape)))
                 for rows, attr in zip(found, attrs) if rows is not None]
        came = iter(_gather(self._graph, [(rows, index.ids) for rows, index in asked]))
        taken = iter([index.of(next(came)) for _, index in asked])
        return [None if rows is None else next(taken) for rows in found]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        key, graph = self._key(attr), self._graph
        rows = self._there(attr)
        if isinstance(rows, Feature):
            raise ValueError(f"{key[1]} is a feature of the graph, which does not change: put it under another name")
        tensor, made = torch.as_tensor(tensor), None
        if attr.index is None and tuple(tensor.shape[:1]) != (graph.num_nodes(key[0]),):
            raise ValueError(f"{key[1]}: a row for each of {graph.num_nodes(key[0])} nodes, not {list(tensor.shape)}")
        if rows is None:
            if attr.index is not None:
                return False
            rows = made = graph.create_tensor(_put_name(key), (0, *tensor.shape[1:]), tensor.dtype, ntype=key[0])
        try:
            rows[_index(attr.index)] = tensor
        except BaseException:
            if made is not None:
                with contextlib.suppress(GraphwireError):  # what failed first is what is told
                    graph.delete_tensor(made.name)
            raise
        self._rows[key] = rows
        return True

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        key = self._key(attr)
        rows = self._there(attr)
        if not isinstance(rows, Tensor):
            return False
        self._graph.delete_tensor(rows.name)
        self._rows.pop(key, None)
        return True

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        rows = self._there(attr)
        return None if rows is None else tuple(rows.shape)

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [NodeAttr(ntype if self._typed else None, attribute) for ntype, attribute in self._rows]

    def edge_rows(self, names: Names | Mapping[Any, Names]) -> Any:
        """A transform for PyG's loaders that adds features of the edges of a batch, by their e_id: names as of nodes;
        of several edge types {edge type: names}. Not for what batch.to_pyg() makes, whose e_id are the graph's.

        Raises ValueError for a feature that changes (serve --mutable) of edges that share ids: both directions of an
        undirected graph; and for a name that the nodes' rows or PyG have.
        """
        made = _EdgeRows(self._graph, names)
        here = {} if self._typed else {attribute for _, attribute in self._rows}
        for _, attribute, feature in made._features:
            if attribute in here:
                raise ValueError(f"edge_rows: the edge feature {feature.name!r} would be {attribute!r}, which is the "
                                 f'nodes\': give it another name, as {{"edge_attr": {feature.name!r}}}')
        return made


def _put_name(key: tuple[str, str]) -> str:
    return f"pyg/{key[0]}/{key[1]}"


def _index(index: Any) -> Any:
    """As it is; None: all rows."""
    return slice(None) if index is None else index


def _gather(graph: Graph, asked: Sequence[tuple[Rows, Any]]) -> list[torch.Tensor]:
    """Rows of each, all asked for at once."""
    client = graph._opened()
    pointers = [(rows.pointer() if isinstance(rows, Feature) else rows._there()[1], index)
                for rows, index in asked]
    return [torch.as_tensor(rows) for rows in _arrays.gather_all(client, pointers, torch)]


class _EdgeRows:
    """FeatureStore.edge_rows tells."""

    def __init__(self, graph: Graph, names: Any):
        self._graph = graph
        given = names if len(graph.etypes) > 1 else {graph.etypes[0]: names}
        if not isinstance(given, Mapping):
            raise ValueError(f"names: give {{edge type: names}} of {', '.join(graph.etypes)}")
        self._features = [(graph.etypes[graph.etype_number(etype)], attribute, graph.feature(feature, etype=etype))
                          for etype, some in given.items() for attribute, feature in _pairs(some).items()]
        self._ids = edge_ids(graph)
        check_names([attribute for _, attribute, _ in self._features], "edge_rows")
        for etype, _, feature in self._features:
            if feature.pointer().writable and self._ids.is_known(etype) and not self._ids.translates(etype):
                raise ValueError(f"{etype}: both directions of an edge have one e_id, and {feature.name} changes in "
                                 "each by itself: graphwire.NodeLoader(…, edge_features=…) has the rows of both")

    def __call__(self, data: Any) -> Any:
        stores = [data[tuple(etype.split(":"))] if isinstance(data, pyg.HeteroData) else data
                  for etype, _, _ in self._features]
        rows = _gather(self._graph, [(feature, self._positions(etype, store.e_id))
                                     for store, (etype, _, feature) in zip(stores, self._features)])
        for store, (_, attribute, _), found in zip(stores, self._features, rows):
            store[attribute] = found
        return data


    def _positions(self, etype: str, ids: Any) -> Any:
        """Of edges that share an id the first: their rows are those of one row of the input."""
        return self._ids.to_position(etype, ids) if self._ids.is_known(etype) else ids


class GraphStore(pyg.GraphStore):  # type: ignore[misc]
    """Edges by (source type, relation, destination type); the type of a homogeneous graph is None.

    A whole edge type is read as "coo", in the order of the edges' ids, or "csc", by destination: for LinkLoader without
    ids of links, and graphs that fit into memory. In one part the ids are those that edges had before, unless both
    directions of an edge share one: then, and in several parts, they are the graph's. Edges do not change.
    """

    def __init__(self, graph: Graph, hetero: bool | None = None):
        super().__init__()
        self.graph, self._typed, self._ids = graph, _is_typed(graph, hetero), edge_ids(graph)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """The graph's ids ascend with destinations, so that no sorting is needed for "csc"."""
        graph = self.graph
        return [EdgeAttr(triple(name) if self._typed else None, EdgeLayout.COO, not self._ids.translates(name),
                         tuple(graph.num_nodes(end) for end in graph.ends(name))) for name in graph.etypes]

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        graph = self.graph
        name = edge_attr.edge_type
        if edge_attr.layout == EdgeLayout.CSR or (name is not None and ":".join(name) not in graph.etypes):
            return None
        ids: Any = slice(None)
        if edge_attr.layout == EdgeLayout.COO and self._ids.translates(name):
            ids = self._ids.to_position(name, ids)
        src, dst = (torch.as_tensor(ends) for ends in graph.find_edges(ids, name))
        if edge_attr.layout == EdgeLayout.COO:
            return src, dst
        counts = torch.bincount(dst, minlength=graph.num_nodes(graph.ends(name)[1]))
        return src, torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("the edges of a graph do not change: make another one, graphwire.pyg.from_pyg")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("the edges of a graph do not change: make another one, graphwire.pyg.from_pyg")


def stores(graph: Graph, names: Names | Mapping[str, Names],
           hetero: bool | None = None) -> tuple[FeatureStore, GraphStore]:
    """What PyG's loaders take as `data`; the arguments are FeatureStore's."""
    return FeatureStore(graph, names, hetero), GraphStore(graph, hetero)
