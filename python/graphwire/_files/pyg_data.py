"""Converts PyTorch Geometric's Data and HeteroData to Arrays.

    a store of edges: edge_index, or a sparse adj or adj_t -> the ends
    a store of nodes: num_nodes, or the rows of its attributes -> the count
    each attribute: rows of nodes or edges, along the axis that PyG concatenates -> a feature
                    a TensorFrame -> a feature for each of its columns
                    anything else -> left out, with the reason

Errors: ValueError for types without edges, and for a number of nodes that the attributes leave open.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import numpy as np

from graphwire._base.caller import level_of_the_caller
from graphwire._files import frames as _frames
from graphwire._files import rows as _rows
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays

_MATRICES = ("adj_t", "adj")
_COUNTS = ("num_nodes", "num_edges")
_SEEDS = ("edge_label", "edge_label_index", "edge_label_time")  # a loader takes them as arguments
_OF_NODES = ("x", "feat", "pos", "batch", "node_type", "n_id", "tf")  # they have a row for each node


def _is_sparse(value: Any) -> bool:
    """Whether a value is sparse: of torch, of torch-sparse, or of SciPy."""
    layout = getattr(value, "layout", None)
    return hasattr(value, "tocoo") or hasattr(value, "coo") or (
        layout is not None and str(layout).startswith("torch.sparse"))


def _coordinates(matrix: Any) -> tuple[Any, Any, Any]:
    """(rows, columns, values) of a sparse matrix. values are None if it has none, and if all are 1."""
    if hasattr(matrix, "tocoo"):
        found = matrix.tocoo()
        rows, columns, values = found.row, found.col, found.data
    elif hasattr(matrix, "coo"):
        rows, columns, values = matrix.coo()
    else:
        found = matrix.to_sparse_coo()
        (rows, columns), values = found._indices(), found._values()
    return rows, columns, None if values is None or bool((values == 1).all()) else values


class _Ends:
    """The ends of the edges of one store. values: those of a sparse matrix; None. sizes: the numbers of nodes that the
    matrix shows, (sources, destinations); None."""

    def __init__(self, store: Any, of: str):
        self.name = next((name for name in ("edge_index", *_MATRICES) if store.get(name) is not None), None)
        self.values, self.sizes = None, None
        if self.name is None:
            raise ValueError(f"{of}: there is no edge_index: without edges, give an empty one, [2, 0]")
        value = store[self.name]
        if not _is_sparse(value):
            if getattr(value, "ndim", 0) != 2 or len(value) != 2:
                raise ValueError(f"{of}: {self.name} has the shape {list(np.shape(value))}, and not [2, edges]")
            self.src, self.dst = value[0], value[1]
            return
        rows, columns, self.values = _coordinates(value)
        size = [int(value.size(axis)) if hasattr(value, "size") and callable(value.size) else int(value.shape[axis])
                for axis in (0, 1)]
        turned = self.name == "adj_t"
        self.src, self.dst = (columns, rows) if turned else (rows, columns)
        self.sizes = (size[1], size[0]) if turned else (size[0], size[1])
        warnings.warn(f"{of}: the edges are those of the sparse {self.name}, in its order, and their ids are their "
                      "places there; torch's sparse matrices have one entry for parallel edges", UserWarning,
                      stacklevel=level_of_the_caller())


class _Attribute:
    """An attribute of a store. rows: the number of its rows; None if it has none."""

    def __init__(self, data: Any, store: Any, name: str):
        self.name, self.value = name, store[name]
        self._axis: Any = 0
        self.rows: Optional[int] = None
        if isinstance(self.value, (list, tuple)) or _frames.is_frame(self.value):
            self.rows = len(self.value)
        elif getattr(self.value, "ndim", 0) and hasattr(self.value, "shape"):
            self._axis = data.__cat_dim__(name, self.value, store)
            if isinstance(self._axis, int):
                self.rows = int(self.value.shape[self._axis])

    @property
    def is_of_edges_by_name(self) -> bool:
        return "edge" in self.name

    def place(self, nodes: int, edges: int) -> Optional[str]:
        """Whose rows an attribute of Data has: "nodes", "edges"; None: neither's. With as many edges as nodes, PyG goes
        by the name. "either": the name says nothing, and PyG takes the rows for those of nodes."""
        if self.rows not in (nodes, edges):
            return None
        if nodes != edges or self.is_of_edges_by_name:
            return "edges" if self.rows == edges else "nodes"
        return "nodes" if self.name in _OF_NODES or "node" in self.name else "either"

    def array(self, what: str) -> np.ndarray:
        """The rows as an array. Raises TypeError and ValueError."""
        if _is_sparse(self.value):
            raise TypeError(f"it is sparse: {self.name}.to_dense() of {list(self.value.shape)} has rows")
        found = _rows.array(self.value, what)
        return np.moveaxis(found, self._axis, 0)

    def shown(self) -> str:
        shape = getattr(self.value, "shape", None)
        return type(self.value).__name__ if shape is None else str(list(shape))


def _attributes(data: Any, store: Any, *used: Optional[str]) -> Iterator[_Attribute]:
    for name in store.keys():
        if name not in _COUNTS and name not in used and store[name] is not None:
            yield _Attribute(data, store, name)


def _taken(ntype: str, least: int) -> int:
    """Warns of a number of nodes that only the edges show."""
    warnings.warn(f"{ntype}: num_nodes is not set: it is taken as {least}, the greatest id of an edge plus 1",
                  UserWarning, stacklevel=level_of_the_caller())
    return least


def _count(data: Any, store: Any, ntype: str, given: Mapping[str, Any], least: int, of_nodes: bool) -> int:
    """The number of nodes. least: the greatest id of an edge plus 1. of_nodes: all attributes of the store are those of
    nodes. Without num_nodes and attributes of nodes, the number is `least`, as in PyG, and a warning says so."""
    for known in (given.get(ntype), store.get("num_nodes")):
        if known is not None:
            return int(known)
    found = [one for one in _attributes(data, store) if one.rows is not None and not one.is_of_edges_by_name
             and one.name not in _MATRICES and one.name != "face"]
    sure = [one for one in found if one.name in _OF_NODES or "node" in one.name]
    if sure:
        assert sure[0].rows is not None
        return sure[0].rows
    lengths = {one.rows for one in found} if of_nodes else set()
    fits = [length for length in lengths if length is not None and length >= least]
    if lengths and len(fits) != 1:
        raise ValueError(f"{ntype}: its attributes leave the number of nodes open ("
                         f"{', '.join(f'{one.name}: {one.rows} rows' for one in found)}; edges need {least}): set "
                         "num_nodes")
    return fits[0] if fits else _taken(ntype, least)


class _Features:
    """Adds the attributes of stores to Arrays."""

    def __init__(self, arrays: Arrays):
        self._arrays = arrays

    def leave_out(self, name: str, of: str, why: str) -> None:
        self._arrays.left_out[f"{name} of {of}"] = why

    def of_nodes(self, one: _Attribute, ntype: str, guessed: bool = False) -> None:
        """guessed: the rows may be those of edges."""
        for name, rows in self._columns(one, ntype):
            if guessed:
                self._arrays.unplaced.add(name)
            if _rows.is_text(rows) and rows.ndim != 1:
                self.leave_out(name, ntype, f"it has texts of shape {list(rows.shape)}: a node has one text")
                continue
            if _rows.is_text(rows):
                self.leave_out(name, ntype, f"it is text, which Graph.node_texts(…, name={name!r}) returns")
            self._arrays.node_features[ntype, name] = rows

    def of_edges(self, one: _Attribute, etype: Any) -> None:
        for name, rows in self._columns(one, ":".join(etype)):
            if _rows.is_text(rows):
                self.leave_out(name, ":".join(etype), "it is text, which edges do not store")
            else:
                self._arrays.edge_features[etype, name] = rows

    def _columns(self, one: _Attribute, of: str) -> Iterator[tuple[str, np.ndarray]]:
        if not _frames.is_frame(one.value):
            yield from self._converted(one.name, of, one.array)
            return
        for column, rows in _frames.features(one.value):
            name = f"{one.name}.{column}"
            if isinstance(rows, str):
                self.leave_out(name, of, rows)
            else:
                yield from self._converted(name, of, _rows.array, rows)

    def _converted(self, name: str, of: str, convert: Any, *rest: Any) -> Iterator[tuple[str, np.ndarray]]:
        try:
            rows = convert(*rest, f"{name} of {of}")
        except (TypeError, ValueError) as error:
            self.leave_out(name, of, str(error).removeprefix(f"{name} of {of}: "))
            return
        yield name, rows


def _add_homogeneous(features: _Features, data: Any, store: Any, nodes: int, edges: int, matrix: Optional[str]) -> None:
    for one in _attributes(data, store, matrix):
        place = one.place(nodes, edges)
        if one.name in _SEEDS:
            features.leave_out(one.name, "the data", "a loader takes it as an argument")
        elif place == "edges":
            features.of_edges(one, HOMOGENEOUS)
        elif place is not None:
            features.of_nodes(one, HOMOGENEOUS[0], place == "either")
        else:
            features.leave_out(one.name, "the data", f"{one.shown()} has no row for each of {nodes} nodes or {edges} "
                                                     "edges")


def _add_typed(features: _Features, data: Any, store: Any, kind: Any, rows: int, matrix: Optional[str]) -> None:
    """Adds the attributes of a store of one node type or edge type."""
    of_edges = isinstance(kind, tuple)
    of = ":".join(kind) if of_edges else kind
    for one in _attributes(data, store, matrix):
        if of_edges and one.name in _SEEDS:
            features.leave_out(one.name, of, "a loader takes it as an argument")
        elif one.rows != rows:
            features.leave_out(one.name, of, f"{one.shown()} has no row for each of {rows} "
                                             f"{'edges' if of_edges else 'nodes'}")
        elif of_edges:
            features.of_edges(one, kind)
        else:
            features.of_nodes(one, kind)


def _add_edges(arrays: Arrays, etype: Any, ends: _Ends) -> None:
    arrays.add_edges(etype, ends.src, ends.dst)
    for ntype, size in zip((etype[0], etype[2]), ends.sizes or ()):
        arrays.counts[ntype] = max(arrays.counts[ntype], size)
    if ends.values is not None:
        name = "edge_weight" if ends.values.ndim == 1 else "edge_attr"
        arrays.add_columns({}, {etype: {name: ends.values}})


def _of_data(data: Any, num_nodes: Any) -> Arrays:
    arrays, (store,) = Arrays(), data.stores
    given = num_nodes if isinstance(num_nodes, Mapping) else {} if num_nodes is None else {HOMOGENEOUS[0]: num_nodes}
    ends = _Ends(store, "the data")
    _add_edges(arrays, HOMOGENEOUS, ends)
    edges = len(arrays.edges[HOMOGENEOUS][0])
    nodes = _count(data, store, "the data", {"the data": given.get(HOMOGENEOUS[0])}, arrays.counts["_N"], False)
    arrays.counts[HOMOGENEOUS[0]] = nodes
    _add_homogeneous(_Features(arrays), data, store, nodes, edges, ends.name)
    return arrays


def _of_hetero_data(data: Any, num_nodes: Any) -> Arrays:
    arrays = Arrays()
    features = _Features(arrays)
    given = num_nodes if isinstance(num_nodes, Mapping) else {}
    matrices = {}
    arrays.counts = dict.fromkeys(data.node_types, 0)  # the graph's types are in the data's order
    for store in data.edge_stores:
        ends = _Ends(store, ":".join(store._key))
        matrices[store._key] = ends.name
        _add_edges(arrays, store._key, ends)
    if not matrices:
        raise ValueError("the data has no edge type: give one, if need be with an empty edge_index, [2, 0]")
    for store in data.node_stores:
        ntype = store._key
        count = arrays.counts[ntype] = _count(data, store, ntype, given, arrays.counts.get(ntype, 0), True)
        _add_typed(features, data, store, ntype, count, None)
    for ntype in arrays.counts.keys() - set(data.node_types) - given.keys():
        _taken(ntype, arrays.counts[ntype])
    for store in data.edge_stores:
        etype = store._key
        _add_typed(features, data, store, etype, len(arrays.edges[etype][0]), matrices[etype])
    for one in _attributes(data, data.stores[0]):  # those of the graph
        features.leave_out(one.name, "the data", f"{one.shown()} belongs to no type")
    return arrays


def times_are_of_nodes(data: Any, name: str) -> bool:
    """Whether an attribute of Data with a time in each row has rows of nodes; else they are those of edges. Raises
    ValueError for an attribute that does not exist or has other rows, and if the data does not say whose they are."""
    store = data._store
    if store.get(name) is None:
        raise ValueError(f"{name!r} is an attribute neither of nodes nor of edges")
    nodes, edges = int(data.num_nodes or 0), int(data.num_edges)
    place = _Attribute(data, store, name).place(nodes, edges)
    if place is None:
        raise ValueError(f"{name!r} has a row neither for each of {nodes} nodes nor for each of {edges} edges")
    if place == "either":
        raise ValueError(unplaced(name))
    return place == "nodes"


def unplaced(name: str) -> str:
    """The text of an error about times of which the data does not say whose they are."""
    return (f"the data has as many edges as nodes, and does not say whether {name!r} has the times of nodes or of "
            f"edges: call it node_{name} or edge_{name}, or use HeteroData")


def of_pyg(data: Any, num_nodes: Any = None) -> Arrays:
    """Converts Data and HeteroData. num_nodes: the caller's, which precedes that of the data."""
    return (_of_hetero_data if hasattr(data, "node_types") else _of_data)(data, num_nodes)
