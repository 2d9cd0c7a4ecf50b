"""PyTorch Geometric's FeatureStore and GraphStore over a graph.

a loader asks for the attributes of a batch's nodes -> all rows are read at once -> a tensor for each attribute

PyG's loaders fetch every attribute that a FeatureStore lists, for the nodes of each batch. So the caller chooses the
attributes when it makes the store. PyG's loaders do not fetch rows of edges. batch.to_pyg() of graphwire.NodeLoader has
them, and so has a loader whose transform is FeatureStore.edge_rows.

Errors: ValueError for names; those of Feature and Tensor for rows.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import torch
import torch_geometric.data as pyg
from torch_geometric.data import EdgeAttr, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout

from graphwire._base import arrays as _arrays
from graphwire._base.caller import level_of_the_caller
from graphwire._base.keywords import keywords
from graphwire._base.native import GraphwireError, NotFoundError
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.index import RowIndex
from graphwire._graph.tensor import Tensor
from graphwire.pyg.frames import ServedFrame, TensorFrames, served_frames
from graphwire.pyg.names import check_names
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.subgraph import triple

Names = Union[str, Sequence[str], Mapping[str, str]]
Rows = Union[Feature, Tensor]


def _pairs(names: Names) -> dict[str, str]:
    """Names as {attribute: feature}."""
    if isinstance(names, Mapping):
        return dict(names)
    if not isinstance(names, Iterable):
        raise TypeError(f"names are names of features, or {{attribute: feature}}, not {names!r:.100}")
    return {name: name for name in ([names] if isinstance(names, str) else names)}


def _is_typed(graph: Graph, hetero: bool | None) -> bool:
    """Whether the store uses types' names. In a homogeneous graph PyG uses None as the type. Raises ValueError for
    hetero=False if the graph has several types."""
    several = len(graph.ntypes) > 1 or len(graph.etypes) > 1
    if hetero is False and several:
        raise ValueError(f"the graph has {len(graph.ntypes)} node types and {len(graph.etypes)} edge types: it is not "
                         "homogeneous")
    return several if hetero is None else hetero


@dataclass
class NodeAttr(TensorAttr):  # type: ignore[misc]
    """(node type, attribute, index). index: the rows; None: all rows."""

    index: Any = None


@keywords
class FeatureStore(pyg.FeatureStore):  # type: ignore[misc]
    """PyG's FeatureStore: features of nodes by (node type, attribute, index). In a homogeneous graph the type is None.

    graph: the graph.
    names: the attributes of the batches: the name of a feature, several names, or {attribute: feature}, such as
        {"x": "feat"}. For a graph of several node types, {node type: such names}.
    hetero: True uses types' names even if the graph has one node type and one edge type.
    ids: "orig": an index has the ids of the user's data, where the graph keeps them, and all rows are in their order.
        "graph": the graph's ids.
    frames: a TensorFrames, or what it takes: their columns are one attribute more, "tf", whose rows are a TensorFrame.
    dtype: the type of features of real numbers, as NodeLoader's: float32, float16, bfloat16 or float64.
        None: their own.

    put_tensor for all rows makes a graphwire.Tensor with a row for each node, which the trainers of a job share.
    put_tensor with an index overwrites rows of such a tensor. Features of the graph cannot be changed.
    """

    def __init__(self, graph: Graph, names: Names | Mapping[str, Names], hetero: bool | None = None,
                 ids: str = "orig", frames: Any = None, dtype: Any = None):
        super().__init__(NodeAttr)
        self.dtype = dtype
        _arrays.used_code(dtype, torch, (feature.pointer() for feature in graph.features))
        self._graph, self._typed, self._ids = graph, _is_typed(graph, hetero), OriginalIds(graph, ids)
        given: Any = names if len(graph.ntypes) > 1 else {graph.ntypes[0]: names}
        if not isinstance(given, Mapping):
            raise ValueError(f"names: give {{node type: names}} of {', '.join(graph.ntypes)}")
        if len(graph.ntypes) == 1 and isinstance(names, Mapping) and graph.ntypes[0] in names:
            given = names
        self._rows: dict[tuple[str, str], Rows] = {
            (graph.ntypes[graph.ntype_number(ntype)], attribute): graph.feature(feature, ntype)._as(dtype)
            for ntype, some in given.items() for attribute, feature in _pairs(some).items()}
        check_names([attribute for _, attribute in self._rows], "FeatureStore")
        self.frames = frames if frames is None or isinstance(frames, TensorFrames) else TensorFrames(frames)
        self._frames = {} if self.frames is None else self._framed(self.frames)

    def _framed(self, frames: TensorFrames) -> dict[tuple[str, str], ServedFrame]:
        rows = {ntype: {feature.name: feature for feature in self._graph.features
                        if feature.type == ntype and not feature.of_edges} for ntype in self._graph.ntypes}
        found = served_frames(self._graph, self._ids, frames, rows)
        return {(ntype, frame.name): frame for ntype, (_, frame) in found.items()}

    def fetched(self) -> dict[str, dict[str, str]]:
        """The graph's features that a batch gets, {node type: {attribute: feature}}."""
        found: dict[str, dict[str, str]] = {}
        for (ntype, attribute), rows in self._rows.items():
            if isinstance(rows, Feature):
                found.setdefault(ntype, {})[attribute] = rows.name
        for (ntype, _), frame in self._frames.items():
            found.setdefault(ntype, {}).update({name: name for name in frame.features})
        return found

    def tensors(self, ntype: str) -> dict[str, Tensor]:
        """The tensors that a batch gets rows of, {attribute: tensor}."""
        return {attribute: rows for (kind, attribute), rows in self._rows.items()
                if kind == ntype and isinstance(rows, Tensor)}

    def _key(self, attr: TensorAttr) -> tuple[str, str]:
        group = attr.group_name if isinstance(attr.group_name, str) else None
        return self._graph.ntypes[self._graph.ntype_number(group)], str(attr.attr_name)

    def _there(self, attr: TensorAttr) -> Rows | None:
        """The Feature or Tensor with the rows of an attribute: one of `names`, another feature of the graph, or a
        tensor that this or another trainer has put. None if it does not exist."""
        key = self._key(attr)
        if key not in self._rows:
            for find in (lambda: self._graph.feature(key[1], key[0])._as(self.dtype),
                         lambda: self._graph.open_tensor(_put_name(key))):
                try:
                    return find()
                except NotFoundError:
                    continue
            return None
        return self._rows[key]

    def _get_tensor(self, attr: TensorAttr) -> Any:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[Any]:
        """Rows of several attributes. All reads begin before the first wait, except those of frames."""
        frames = [self._frames.get(self._key(attr)) for attr in attrs] if self._frames else []
        if any(frame is not None for frame in frames):
            others = iter(self._multi_get_tensor([attr for attr, frame in zip(attrs, frames) if frame is None]))
            return [next(others) if frame is None else frame[_index(attr.index)] for attr, frame in zip(attrs, frames)]
        found = [self._there(attr) for attr in attrs]
        asked = [(attr, rows, self._index(attr, rows)) for rows, attr in zip(found, attrs) if rows is not None]
        known: dict[Any, torch.Tensor] = {}  # attributes of one batch have one index
        came = iter(_gather(self._graph, [(rows, self._at(attr, index, known)) for attr, rows, index in asked],
                            self.dtype))
        taken = iter([index.of(next(came)) for _, _, index in asked])
        return [None if rows is None else next(taken) for rows in found]

    def _index(self, attr: TensorAttr, rows: Rows) -> RowIndex:
        """The index of an attribute, in the ids of the user's data."""
        index = _index(attr.index)
        if getattr(type(index), "rows_by_id", False):  # a mask in the order of the graph's ids
            index = self._ids.named(self._key(attr)[0], index, "index")[0]
        return RowIndex(index, tuple(rows.shape))

    def _at(self, attr: TensorAttr, index: RowIndex, known: dict[Any, torch.Tensor]) -> torch.Tensor:
        """The graph's ids of the rows of an index. known: the ids that this call has translated already."""
        ntype = self._key(attr)[0]
        key = ntype, id(attr.index)
        if key not in known:
            whole = attr.index is None or (isinstance(attr.index, slice) and attr.index == slice(None))
            known[key] = self._ids.all_nodes(ntype)[0] if whole else self._ids.nodes_to_graph(ntype, index.ids)
        return known[key]

    def _where(self, attr: TensorAttr, rows: Rows) -> Any:
        """The index of an attribute with the graph's ids."""
        if not self._ids.has_nodes(self._key(attr)[0]):
            return _index(attr.index)
        index = self._index(attr, rows)
        return index.at(self._at(attr, index, {}))

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
            rows[self._where(attr, rows)] = tensor
        except BaseException:
            if made is not None:
                with contextlib.suppress(GraphwireError):  # the first error is the one to raise
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
        if self._key(attr) in self._frames:
            frame = self._frames[self._key(attr)]
            return frame.num_rows, frame.num_cols
        rows = self._there(attr)
        return None if rows is None else tuple(rows.shape)

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        every = (*self._rows, *self._frames)
        return [NodeAttr(ntype if self._typed else None, attribute) for ntype, attribute in every]

    def edge_rows(self, names: Names | Mapping[Any, Names]) -> Any:
        """A transform for PyG's loaders, which adds features of a batch's edges, by their e_id.

        names: as for nodes; for a graph of several edge types, {edge type: names}.

        Do not use it for results of batch.to_pyg(), whose e_id are the graph's ids.

        Raises ValueError for a name that the nodes' rows or PyG use. Also raises ValueError for a feature that can
        change (serve --mutable) if edges share ids, as both directions of an edge in an undirected graph do.
        """
        made = _EdgeRows(self._graph, names, self._ids, self.dtype)
        here = {} if self._typed else {attribute for _, attribute in self._rows}
        for _, attribute, feature in made._features:
            if attribute in here:
                raise ValueError(f"edge_rows: the edge feature {feature.name!r} would be {attribute!r}, which is the "
                                 f'nodes\': give it another name, as {{"edge_attr": {feature.name!r}}}')
        return made


def _put_name(key: tuple[str, str]) -> str:
    return f"pyg/{key[0]}/{key[1]}"


def _index(index: Any) -> Any:
    """The index; None becomes all rows."""
    return slice(None) if index is None else index


def _gather(graph: Graph, asked: Sequence[tuple[Rows, Any]], dtype: Any) -> list[torch.Tensor]:
    """Reads rows of several features and tensors at once. dtype: of features of real numbers."""
    client, real = graph._opened(), _arrays.real_code(dtype, torch)
    pointers = [(rows.pointer() if isinstance(rows, Feature) else rows._there()[1], index)
                for rows, index in asked]
    reals = [real if isinstance(rows, Feature) else None for rows, _ in asked]
    return [torch.as_tensor(rows) for rows in _arrays.gather_all(client, pointers, torch, reals)]


class _EdgeRows:
    """The transform of FeatureStore.edge_rows, which documents it."""

    def __init__(self, graph: Graph, names: Any, ids: OriginalIds, dtype: Any):
        self._graph, self._dtype = graph, dtype
        given = names if len(graph.etypes) > 1 else {graph.etypes[0]: names}
        if not isinstance(given, Mapping):
            raise ValueError(f"names: give {{edge type: names}} of {', '.join(graph.etypes)}")
        self._features = [(graph.etypes[graph.etype_number(etype)], attribute, graph.feature(feature, etype=etype))
                          for etype, some in given.items() for attribute, feature in _pairs(some).items()]
        self._ids = ids
        check_names([attribute for _, attribute, _ in self._features], "edge_rows")
        for etype, _, feature in self._features:
            if feature.pointer().writable and ids.has_edges(etype) and not ids.has_own_edges(etype):
                raise ValueError(f"{etype}: both directions of an edge share an e_id, and {feature.name} can differ "
                                 "between them: use graphwire.NodeLoader(…, edge_features=…), which has both rows")

    def __call__(self, data: Any) -> Any:
        stores = [data[tuple(etype.split(":"))] if isinstance(data, pyg.HeteroData) else data
                  for etype, _, _ in self._features]
        rows = _gather(self._graph, [(feature, self._positions(etype, store.e_id))
                                     for store, (etype, _, feature) in zip(stores, self._features)], self._dtype)
        for store, (_, attribute, _), found in zip(stores, self._features, rows):
            store[attribute] = found
        return data

    def _positions(self, etype: str, ids: Any) -> Any:
        return self._ids.edges_to_graph(etype, ids)


@keywords
class GraphStore(pyg.GraphStore):  # type: ignore[misc]
    """PyG's GraphStore: edges by (source type, relation, destination type). In a homogeneous graph the type is None.

    graph: the graph.
    hetero: as FeatureStore's.

    get_edge_index reads a complete edge type, as "coo", in the order of the edges' ids, or as "csc", by destination. It
    is meant for LinkLoader without ids of links, and for graphs that fit into memory.

    ids: "orig": nodes have the ids of the user's data, and edges are in the order of its columns, where the graph keeps
        them. If both directions of an edge share a column, edges are in the graph's order. "graph": the graph's ids and
        order.

    Edges cannot be changed: put_edge_index and remove_edge_index raise NotImplementedError.
    """

    _warned = False  # whether csc() has warned

    def __init__(self, graph: Graph, hetero: bool | None = None, ids: str = "orig"):
        super().__init__()
        self.graph, self._typed, self._ids = graph, _is_typed(graph, hetero), OriginalIds(graph, ids)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """The attributes of all edge types. The graph's own ids are in the order of destinations. So edges with these
        ids are marked as sorted, and PyG need not sort them for "csc"."""
        graph = self.graph
        return [EdgeAttr(triple(name) if self._typed else None, EdgeLayout.COO, not self._ids.changes(name),
                         tuple(graph.num_nodes(end) for end in graph.ends(name))) for name in graph.etypes]

    def csc(self, *args: Any, **options: Any) -> Any:
        """PyG's GraphStore.csc(). Warns once if PyG itself calls it, as its NeighborLoader does in each trainer."""
        level = level_of_the_caller()
        caller = str(sys._getframe(level - 1).f_globals.get("__name__"))
        if caller.startswith("torch_geometric.") and not self._warned:
            self._warned = True
            warnings.warn(f"every edge of the graph {self.graph.name} is read into this process, as PyG's own "
                          "NeighborLoader and LinkNeighborLoader need it. graphwire.pyg.NeighborLoader and "
                          "LinkNeighborLoader sample the edges where they are", UserWarning, stacklevel=level)
        return super().csc(*args, **options)

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        graph = self.graph
        name = edge_attr.edge_type
        if edge_attr.layout == EdgeLayout.CSR or (name is not None and ":".join(name) not in graph.etypes):
            return None
        etype = graph.etypes[graph.etype_number(name)]
        src, dst = self._ids.all_edges(etype, in_columns=edge_attr.layout == EdgeLayout.COO)
        if edge_attr.layout == EdgeLayout.COO:
            return src, dst
        dst, order = torch.sort(dst, stable=True)
        src = src[order]
        counts = torch.bincount(dst, minlength=graph.num_nodes(graph.ends(name)[1]))
        return src, torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("the edges of a graph cannot be changed: make a new graph by graphwire.pyg.from_pyg")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("the edges of a graph cannot be changed: make a new graph by graphwire.pyg.from_pyg")


@keywords
def stores(graph: Graph, names: Names | Mapping[str, Names],
           hetero: bool | None = None, ids: str = "orig", frames: Any = None,
           dtype: Any = None) -> tuple[FeatureStore, GraphStore]:
    """(FeatureStore, GraphStore) of a graph, which PyG's loaders take as `data`. The arguments are FeatureStore's."""
    return FeatureStore(graph, names, hetero, ids, frames, dtype), GraphStore(graph, hetero, ids)
