"""The attribute `data` of a neighbour loader over a graph: what PyTorch Geometric asks of Data, without its rows.

    loader.data.x -> ServedRows: shape, dtype, device -> x[n_id] fetches these rows, in the ids of the user's data
    loader.data.num_nodes, metadata(), …; loader.data["paper"].x -> the same of one type
    loader.data["paper"].tf -> ServedFrame: the names and types of columns -> tf[n_id] is a TensorFrame of these rows

PyG's layer-wise inference (BasicGNN.inference) reads data.x by the n_id of each batch, so that no process has all rows.

Errors: AttributeError for what the data of a graph does not have, ValueError for nodes whose ids are not rows; those of
Feature and Tensor for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Protocol, Union

import numpy as np
import torch

from graphwire._base.arrays import ids_array
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.index import RowIndex
from graphwire._graph.tensor import Tensor
from graphwire.pyg.frames import ServedFrame, TensorFrames, served_frames
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.stores import stores
from graphwire.pyg.subgraph import EdgeType, triple

Table = Union[Feature, Tensor]
_EDGES = ("edge_index", "adj_t", "adj")


class ServedRows:
    """The rows of an attribute, which are with their owners. Index i is row i of the user's data: x[ids] fetches these
    rows, and x[:] all rows, as a torch tensor. to() chooses the device and the dtype of fetched rows. A mask of bools,
    uint8 or int8 can be the seeds of a loader."""

    rows_by_id = True
    __iter__ = None  # torch and NumPy would read row after row
    requires_grad = is_sparse = False

    def __init__(self, table: Table, ids: OriginalIds, of_edges: bool, kind: str, name: str,
                 device: torch.device | None = None, dtype: torch.dtype | None = None):
        self.of_graph, self._ids, self._of_edges, self._type, self._name = table, ids, of_edges, kind, name
        self.device = torch.device("cpu") if device is None else device
        self.dtype = torch.empty(0, dtype=table.dtype).dtype if isinstance(table.dtype, torch.dtype) else (
            torch.as_tensor(np.empty(0, table.dtype)).dtype)
        self._stored, self.dtype = self.dtype, self.dtype if dtype is None else dtype
        count = int(table.shape[0])
        if of_edges and ids.edges is not None and ids.has_edges(kind):
            count = ids.edges.num_originals(kind)
        elif not of_edges and not ids.in_rows(kind):
            raise ValueError(f"{name}: nodes of type {kind} have original ids that are not the rows 0 to {count - 1}: "
                             'pass ids="graph" to the loader')
        self.shape = torch.Size((count, *table.shape[1:]))

    @property
    def rows_of(self) -> int:
        return self.of_graph.rows_of

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Fetches rows, with torch's meaning of the index; Feature documents the forms and the errors."""
        if getattr(type(index), "rows_by_id", False):  # a mask: of the same type, by the rule of all interfaces
            to_user = self._ids.edges_to_user if self._of_edges else self._ids.nodes_to_user
            at = torch.from_numpy(ids_array(index, self.rows_of, self._name))
            index = to_user(self._type, at).unique()
        where = RowIndex(index, tuple(self.shape))
        to_graph = self._ids.edges_to_graph if self._of_edges else self._ids.nodes_to_graph
        at = to_graph(self._type, torch.from_numpy(where.ids))
        rows: torch.Tensor = where.of(torch.as_tensor(self.of_graph[at]))
        return rows.to(device=self.device, dtype=self.dtype)

    def to(self, *args: Any, **options: Any) -> ServedRows:
        """These rows on a device, or with a dtype, as torch.Tensor.to takes them. Reads nothing."""
        device, dtype, *_ = torch._C._nn._parse_to(*args, **options)
        return ServedRows(self.of_graph, self._ids, self._of_edges, self._type, self._name, device or self.device,
                          dtype or self.dtype)

    def cpu(self) -> ServedRows:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> ServedRows:
        return self.to(torch.device("cuda", device) if isinstance(device, int) else device or "cuda")

    def float(self) -> ServedRows:
        return self.to(torch.float32)

    def half(self) -> ServedRows:
        return self.to(torch.float16)

    def double(self) -> ServedRows:
        return self.to(torch.float64)

    def long(self) -> ServedRows:
        return self.to(torch.int64)

    def detach(self) -> ServedRows:
        return self

    contiguous = detach

    def index_select(self, dim: int, index: torch.Tensor) -> torch.Tensor:
        if dim not in (0, -self.ndim):
            raise IndexError(f"{self._name}: rows are selected along dimension 0, not {dim}: [:] reads all rows")
        return self[index]

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def numel(self) -> int:
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def numpy(self) -> np.ndarray:
        """All rows."""
        return self.to("cpu")[:].numpy()

    def tolist(self) -> list[Any]:
        """All rows."""
        found: list[Any] = self[:].tolist()
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __eq__(self, other: object) -> Any:
        raise TypeError(f"{self._name} is not in memory: compare rows of it, {self._name}[ids]")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"{self._name}.{name}: the rows are not in memory: {self._name}[ids] fetches rows, and "
                             f"{self._name}[:] all of them, as a tensor")

    def __repr__(self) -> str:
        return f"<graphwire.pyg rows of {self._type}/{self._name}: {list(self.shape)} {self.dtype}, not in memory>"


class _OfType:
    """The attributes of one node type or edge type, as data["paper"] and data["a", "to", "b"] return them."""

    _graph: Graph
    _ids: OriginalIds
    _of_edges: bool
    _kind: str
    _tables: dict[str, Table]
    _frames: dict[str, ServedFrame]
    _changes: Changes | None
    _added: dict[str, torch.Tensor]

    def __init__(self, graph: Graph, ids: OriginalIds, of_edges: bool, kind: str, tables: Mapping[str, Table],
                 frame: ServedFrame | None = None, changes: Changes | None = None):
        frames = {} if frame is None else {frame.name: frame}
        self.__dict__.update(_graph=graph, _ids=ids, _of_edges=of_edges, _kind=kind, _tables=dict(tables),
                             _frames=frames, _changes=changes, _added={})

    @property
    def num_nodes(self) -> int:
        if self._of_edges:
            raise AttributeError  # __getattr__ makes the text
        return self._graph.num_nodes(self._kind)

    @property
    def num_edges(self) -> int:
        if not self._of_edges:
            raise AttributeError
        return self._graph.num_edges(self._kind)

    @property
    def num_features(self) -> int:
        """The width of x, of edges of edge_attr, as in PyG; 0 without it."""
        table = self._tables.get("edge_attr" if self._of_edges else "x")
        return 0 if table is None else 1 if len(table.shape) == 1 else int(table.shape[-1])

    num_node_features = num_edge_features = num_features

    def keys(self) -> list[str]:
        return [*self._tables, *self._frames, *self._added]

    def __contains__(self, name: object) -> bool:
        return name in self._tables or name in self._frames or name in self._added

    def __getitem__(self, name: str) -> ServedRows | ServedFrame | torch.Tensor:
        if name in self._frames:
            return self._frames[name]
        if name in self._added:
            return self._added[name]
        if name not in self._tables:
            raise KeyError(self._lacks(name))
        return ServedRows(self._tables[name], self._ids, self._of_edges, self._kind, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _EDGES:
            raise AttributeError(_no_edges(name))
        if name not in self:
            raise AttributeError(self._lacks(name))
        return self[name]

    def __delattr__(self, name: str) -> None:
        """Removes an attribute from the batches to come."""
        if name not in self:
            raise AttributeError(self._lacks(name))
        if self._changes is None or not (name in self._added or isinstance(self._tables.get(name), Feature)):
            raise _unchanged(name)
        self._tables.pop(name, None)
        self._added.pop(name, None)
        self._changes.drop(self._of_edges, self._kind, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Gives the batches to come an attribute of nodes. value: a tensor with a row for each row of the user's data.
        """
        if self._of_edges or self._changes is None or not isinstance(value, torch.Tensor) or name in self._frames or (
                value.dim() == 0 or len(value) != self._graph.num_nodes(self._kind)):
            raise _unchanged(name)
        if not self._ids.in_rows(self._kind):
            raise ValueError(f"{name}: nodes of type {self._kind} have original ids that are not rows: pass "
                             'ids="graph" to the loader')
        if name in self:
            delattr(self, name)
        self._added[name] = value
        self._changes.add(self._kind, name, value)

    def _lacks(self, name: str) -> str:
        return f"{self._kind} has no {name!r}; it has {', '.join(self.keys()) or 'no attributes'}"

    def __repr__(self) -> str:
        return f"<{self._kind}: {', '.join(map(repr, map(self.__getitem__, self.keys())))}>"


def _no_edges(name: str) -> str:
    return (f"{name}: the edges of a graph stay with their owners: a batch has its own as batch.edge_index, and "
            "graphwire.pyg.GraphStore(graph).coo() reads all of them")


def _unchanged(name: str) -> AttributeError:
    return AttributeError(f"{name}: the data of a graph does not change, except that the data of a loader can lose "
                          "a feature, and get a tensor with a row for each node: graphwire.pyg.stores(graph, names) "
                          "names the attributes of batches, and a transform adds others")


class Changes(Protocol):
    """What a loader's batches have of a graph."""

    def drop(self, of_edges: bool, kind: str, name: str) -> None: ...

    def add(self, ntype: str, name: str, rows: torch.Tensor) -> None: ...


class ServedData:
    """Data or HeteroData of a graph. graph: the graph itself, whose other attributes this object has too.
    nodes, edges: {type: {attribute: rows}}, the attributes of nodes and of edges. frames: their columns are one
    attribute, frames.name, or None. dtype: of features of real numbers, or None. changes: the batches of the loader
    whose data it is; None: of none."""

    def __init__(self, graph: Graph, ids: OriginalIds, nodes: Mapping[str, Mapping[str, Table]],
                 edges: Mapping[str, Mapping[str, Table]], frames: TensorFrames | None = None,
                 dtype: Any = None, changes: Changes | None = None):
        made = {} if frames is None else served_frames(graph, ids, frames, nodes)
        split = {ntype: made.get(ntype, (nodes.get(ntype, {}), None)) for ntype in graph.ntypes}
        found: dict[Any, _OfType] = {ntype: _OfType(graph, ids, False, ntype, tables, frame, changes)
                                     for ntype, (tables, frame) in split.items()}
        found.update({triple(etype): _OfType(graph, ids, True, etype, edges.get(etype, {}), changes=changes)
                      for etype in graph.etypes})
        self.__dict__.update(graph=graph, _stores=found, _ids=ids, _frames=frames, _dtype=dtype, _pair=None)

    @property
    def node_types(self) -> list[str]:
        return list(self.graph.ntypes)

    @property
    def edge_types(self) -> list[EdgeType]:
        return [triple(etype) for etype in self.graph.etypes]

    def metadata(self) -> tuple[list[str], list[EdgeType]]:
        """(node types, edge types), as HeteroData.metadata()."""
        return self.node_types, self.edge_types

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes()

    @property
    def num_edges(self) -> int:
        return self.graph.num_edges()

    @property
    def num_node_features(self) -> Any:
        """The width of x; of several node types, {node type: width}."""
        found = {ntype: self._stores[ntype].num_features for ntype in self.node_types}
        return found if len(found) > 1 else next(iter(found.values()))

    num_features = num_node_features

    @property
    def num_edge_features(self) -> Any:
        """The width of edge_attr; of several edge types, {edge type: width}."""
        found = {etype: self._stores[etype].num_features for etype in self.edge_types}
        return found if len(found) > 1 else next(iter(found.values()))

    def keys(self) -> list[str]:
        """The names of all attributes."""
        return list(dict.fromkeys(name for store in self._stores.values() for name in store.keys()))

    @property
    def is_cuda(self) -> bool:
        return False

    def __contains__(self, name: object) -> bool:
        return name in self._stores or name in self.keys()

    def __getitem__(self, *key: Any) -> Any:
        (name,) = key
        if isinstance(name, str) and ":" in name:
            name = triple(name)
        if name in self._stores:
            return self._stores[name]
        words = [etype for etype in self.edge_types if isinstance(name, tuple) and (etype[0], etype[2]) == name]
        if len(words) == 1:
            return self._stores[words[0]]
        try:
            return getattr(self, name) if isinstance(name, str) else self._stores[name]
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[Any]:
        """(FeatureStore, GraphStore), which PyG's own loaders ask for; they have the attributes of nodes."""
        if self._pair is None:
            names = {ntype: {called: table.name for called, table in self._stores[ntype]._tables.items()}
                     for ntype in self.node_types}
            self.__dict__["_pair"] = stores(self.graph, names, ids=self._ids.word, frames=self._frames)
        return iter(self._pair)

    def _having(self, name: str) -> Iterator[Any]:
        return (kind for kind, store in self._stores.items() if name in store)

    @property
    def num_nodes_dict(self) -> dict[str, int]:
        return {ntype: self.graph.num_nodes(ntype) for ntype in self.node_types}

    @property
    def num_edges_dict(self) -> dict[EdgeType, int]:
        return {triple(etype): self.graph.num_edges(etype) for etype in self.graph.etypes}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        typed = self._is_typed()
        if name in _EDGES or (name.endswith("_dict") and name[:-5] in _EDGES):
            raise AttributeError(_no_edges(name))
        if name.endswith("_dict") and any(self._having(name[:-5])):
            return {kind: self._stores[kind][name[:-5]] for kind in self._having(name[:-5])}
        kinds = list(self._having(name))
        if len(kinds) == 1 and not typed:
            return self._stores[kinds[0]][name]
        if kinds and not typed:
            raise AttributeError(f"{name}: nodes and edges both have it: data[{kinds[0]!r}].{name}")
        if kinds:
            raise AttributeError(f"{name} of which type? data[{kinds[0]!r}].{name}")
        if hasattr(self.graph, name):
            return getattr(self.graph, name)
        raise AttributeError(f"the data of graph {self.graph.name} has no {name!r}; it has "
                             f"{', '.join(self.keys()) or 'no attributes'}")

    def __delattr__(self, name: str) -> None:
        kinds = list(self._having(name))
        if len(kinds) != 1 or self._is_typed():
            raise _unchanged(name)
        delattr(self._stores[kinds[0]], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_typed():
            raise _unchanged(name)
        if name != "num_nodes" or value != self.num_nodes:
            setattr(self._stores[self.node_types[0]], name, value)

    def _is_typed(self) -> bool:
        return len(self.node_types) > 1 or len(self.edge_types) > 1

    def __reduce__(self) -> Any:
        return _again, (dict(self.__dict__),)

    def __repr__(self) -> str:
        return f"<graphwire.pyg data of {self.graph!r}: {', '.join(self.keys())}>"


def _again(state: dict[str, Any]) -> ServedData:
    made = ServedData.__new__(ServedData)
    made.__dict__.update(state)
    return made


class ServedStores(tuple):
    """(FeatureStore, GraphStore), which also has the attributes of ServedData."""

    served: ServedData

    def __new__(cls, pair: tuple[Any, Any], served: ServedData) -> ServedStores:
        made = super().__new__(cls, pair)
        made.served = served
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "served":
            raise AttributeError(name)
        return getattr(self.served, name)

    def __reduce__(self) -> Any:
        return ServedStores, (tuple(self), self.served)
