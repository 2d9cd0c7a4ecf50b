"""A pair of PyTorch Geometric's stores of the user's own classes, as data in memory for the draws.

    GraphStore.get_all_edge_attrs() -> of each edge type one layout -> sources and destinations
    FeatureStore.get_all_tensor_attrs() -> numbers of nodes, and the times and weights that the caller names
        -> Data or HeteroData -> contents.py makes the graph

An edge's id is its place in the layout that PyG's samplers take: CSC before COO before CSR. Its loaders take COO before
CSC before CSR for links. Both take the first layout of edges without a type. Edges need not be sorted. Rows of nodes
stay in the FeatureStore, which each batch asks for them.

Errors: ValueError and TypeError for edges that are not of their layout.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, Union

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.graph_store import EdgeLayout

from graphwire._files import rows as _rows

_OF_SAMPLERS = (EdgeLayout.CSC, EdgeLayout.COO, EdgeLayout.CSR)
_OF_LINKS = (EdgeLayout.COO, EdgeLayout.CSC, EdgeLayout.CSR)


def are_typed(feature_store: Any, graph_store: Any) -> bool:
    """Whether edges, or nodes if no edge type exists, have types."""
    types = [attr.edge_type for attr in graph_store.get_all_edge_attrs()] or [
        _group(attr) for attr in feature_store.get_all_tensor_attrs()]
    if None in types and any(types):
        raise ValueError("data: some types of the stores are None, which is the type of homogeneous data, and some not")
    return None not in types


def as_data(feature_store: Any, graph_store: Any, names: Collection[str]) -> Union[Data, HeteroData]:
    """The edges of a GraphStore, the numbers of nodes, and the attributes of the FeatureStore that have these names."""
    attrs = graph_store.get_all_edge_attrs()
    tensors = [(_group(attr), attr) for attr in feature_store.get_all_tensor_attrs()]
    typed = are_typed(feature_store, graph_store)
    tensors = [(group, attr) for group, attr in tensors if group is not None] if typed else [
        (None, attr) for _, attr in tensors]
    data: Any = HeteroData() if typed else Data()
    sizes: dict[Any, list[int]] = {group: [] for group, _ in tensors if not isinstance(group, tuple)}
    for etype, layouts in _by_type(attrs).items():
        attr = _first(layouts, _OF_SAMPLERS)
        store = data[tuple(etype)] if typed else data
        store.edge_index = _ends(graph_store, attr)
        for end, ntype in enumerate((etype[0], etype[-1]) if typed else (None, None)):
            counts = sizes.setdefault(ntype, [])
            counts += [one.size[end] for one in layouts if one.size is not None and one.size[end] is not None]
    for ntype, counts in sizes.items():
        (data[ntype] if typed else data).num_nodes = max(counts) if counts else _count(
            feature_store, [attr for group, attr in tensors if group == ntype], data, ntype)
    for group, attr in tensors:
        if attr.attr_name in names:
            one = copy.copy(attr)
            one.index = None
            (data[group] if typed else data)[attr.attr_name] = feature_store.get_tensor(one)
    return data


def links(graph_store: Any, kind: Any) -> torch.Tensor:
    """All edges of a type, None in data without types, as links in the order of PyG's loaders, [2, links]."""
    layouts = _by_type(graph_store.get_all_edge_attrs()).get(kind)
    return _ends(graph_store, _first(layouts, _OF_LINKS)) if layouts else torch.empty(2, 0, dtype=torch.int64)


class OfNodes:
    """A FeatureStore without types, without its attributes of edges, whose rows a batch cannot ask for by nodes."""

    def __init__(self, feature_store: Any, of_edges: Collection[str]):
        self._store, self._of_edges = feature_store, of_edges

    def get_all_tensor_attrs(self) -> list[Any]:
        return [attr for attr in self._store.get_all_tensor_attrs() if attr.attr_name not in self._of_edges]

    def multi_get_tensor(self, attrs: list[Any]) -> Any:
        return self._store.multi_get_tensor(attrs)


def _group(attr: Any) -> Any:
    """The node type (a text) or edge type (a tuple) of an attribute; None without types."""
    return attr.group_name if isinstance(attr.group_name, (str, tuple)) else None


def _by_type(attrs: Any) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for attr in attrs:
        found.setdefault(attr.edge_type, []).append(attr)
    return found


def _first(layouts: list[Any], order: tuple[EdgeLayout, ...]) -> Any:
    """The layout of an edge type that PyG reads."""
    return layouts[0] if layouts[0].edge_type is None else min(layouts, key=lambda one: order.index(one.layout))


def _ends(graph_store: Any, attr: Any) -> torch.Tensor:
    """The sources and destinations of a layout's edges, [2, edges] int64."""
    what = f"data: the edges{'' if attr.edge_type is None else f' {attr.edge_type}'} in the layout {attr.layout.value}"
    ends = [_rows.array(some, what) for some in graph_store.get_edge_index(attr)]
    if any(some.dtype.kind not in "iu" for some in ends):
        raise TypeError(f"{what}: ids are whole numbers, not {' and '.join(str(some.dtype) for some in ends)}")
    ends = [some.astype(np.int64) for some in ends]
    if len(ends) == 2 and attr.layout != EdgeLayout.COO:
        pointers = int(attr.layout == EdgeLayout.CSC)
        ends[pointers] = _expanded(ends[pointers], len(ends[1 - pointers]), what)
    if [some.shape for some in ends] != [(ends[0].size,)] * 2:
        raise ValueError(f"{what} are two lists of one length, not of the shapes {[list(some.shape) for some in ends]}")
    return torch.from_numpy(np.stack(ends))


def _expanded(pointers: np.ndarray, edges: int, what: str) -> np.ndarray:
    """The node of each edge, by the pointers of nodes to their edges."""
    counts = np.diff(pointers)
    if not len(pointers) or pointers[0] != 0 or pointers[-1] != edges or (counts < 0).any():
        raise ValueError(f"{what}: the pointers do not ascend from 0 to the number of edges, {edges}")
    return np.repeat(np.arange(len(counts)), counts)


def _count(feature_store: Any, attrs: list[Any], data: Any, ntype: Any) -> int:
    """The number of nodes of a type whose edges have no size: of an attribute's rows, or the last end of an edge."""
    for attr in attrs:
        size = feature_store.get_tensor_size(attr)
        if size:
            return int(size[0])
    last = [int(store.edge_index[end].max()) for store in data.edge_stores if store.edge_index.numel()
            for end, kind in enumerate((None, None) if ntype is None else (store._key[0], store._key[-1]))
            if kind == ntype]
    return max(last, default=-1) + 1
