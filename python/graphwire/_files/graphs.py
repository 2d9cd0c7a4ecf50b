"""Converts graphs in memory to Arrays: those of DGL, PyTorch Geometric, NetworkX, SciPy, tables, arrays and lists.

    a graph -> ends of its edges and rows of its features -> text ids numbered -> Arrays

What has two meanings is refused: two edges could be pairs or columns.

Errors: ValueError and TypeError, which name the type, the column or the row.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from graphwire._base.caller import level_of_the_caller
from graphwire._files import names as _names
from graphwire._files import rows as _rows
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays, Canonical
from graphwire._files.pyg_data import of_pyg

_INTERNAL = ("_ID", "_TYPE")  # columns that DGL adds


def _of_dgl(graph: Any) -> Arrays:
    arrays = Arrays()
    for etype in graph.canonical_etypes:
        arrays.add_edges(etype, *graph.edges(etype=etype, order="eid"))
    arrays.counts = {ntype: int(graph.num_nodes(ntype)) for ntype in graph.ntypes}
    arrays.add_columns(
        {ntype: {name: rows for name, rows in graph.nodes[ntype].data.items() if name not in _INTERNAL}
         for ntype in graph.ntypes},
        {etype: {name: rows for name, rows in graph.edges[etype].data.items() if name not in _INTERNAL}
         for etype in graph.canonical_etypes})
    return arrays


def _add_matrix(arrays: Arrays, etype: Canonical, matrix: Any) -> None:
    """Adds a SciPy matrix: an element in row i and column j is the edge from i to j. If not all values are 1, they
    become the edge feature "weight"."""
    coo = matrix.tocoo()
    rows, columns = map(int, matrix.shape)
    if etype[0] == etype[2] and rows != columns:
        raise ValueError(f"{':'.join(etype)}: a matrix of {rows} rows and {columns} columns has two node types")
    arrays.add_edges(etype, coo.row, coo.col)
    for ntype, count in ((etype[0], rows), (etype[2], columns)):
        arrays.counts[ntype] = max(arrays.counts[ntype], count)
    if not np.all(coo.data == 1):
        arrays.add_columns({}, {etype: {"weight": coo.data}})


def _of_matrix(matrix: Any) -> Arrays:
    """Converts a SciPy matrix. A matrix that is not square has the node types "row" and "column"."""
    arrays = Arrays()
    square = matrix.shape[0] == matrix.shape[1]
    _add_matrix(arrays, HOMOGENEOUS if square else ("row", "_E", "column"), matrix)
    return arrays


def _column(found: list[Mapping[Any, Any]], name: Any, what: str, text: bool) -> np.ndarray:
    """The rows of an attribute. Raises TypeError and ValueError if they are no feature."""
    if not isinstance(name, str):
        raise TypeError("its name is no text")
    lacking = sum(name not in attributes for attributes in found)
    if lacking:
        raise ValueError(f"{lacking} of {len(found)} lack it")
    rows = _rows.array([attributes[name] for attributes in found], f"{name} of {what}")
    if _rows.is_text(rows) and not (text and rows.ndim == 1):
        raise TypeError("it is text, which edges do not store" if not text else "each node has several texts")
    return rows


def _rows_of(arrays: Arrays, found: list[Mapping[Any, Any]], what: str, text: bool) -> dict[str, np.ndarray]:
    """The attributes that all nodes or edges have, if they are numbers, equal lists of numbers, or text. Notes the
    others as left out."""
    columns = {}
    for name in dict.fromkeys(name for attributes in found for name in attributes):
        try:
            columns[name] = _column(found, name, what, text)
        except (TypeError, ValueError) as error:
            arrays.left_out[f"{name} of {what}"] = str(error).removeprefix(f"{name} of {what}: ")
    return columns


def _of_networkx(graph: Any) -> Arrays:
    """Converts a graph of NetworkX. An edge of an undirected graph becomes two edges, a loop one. Nodes are in the
    graph's order; their labels become the original ids: integers, or text."""
    arrays, nodes = Arrays(), list(graph.nodes)
    place = {node: number for number, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    src, dst = (np.fromiter((place[edge[end]] for edge in edges), np.int64, len(edges)) for end in (0, 1))
    features = _rows_of(arrays, [edge[2] for edge in edges], "the edges", False)
    if graph.is_multigraph() and not all(isinstance(key, int) for _, _, key in graph.edges(keys=True)):
        arrays.left_out["keys of the edges"] = "edges have no names"
    arrays.left_out.update({f"{name} of the graph": "it belongs to no node or edge"
                            for name in graph.graph if name != "name"})
    if not graph.is_directed():
        turned = src != dst
        features = {name: np.concatenate([rows, rows[turned]]) for name, rows in features.items()}
        src, dst = np.concatenate([src, dst[turned]]), np.concatenate([dst, src[turned]])
    arrays.counts["_N"] = len(nodes)
    arrays.add_edges(HOMOGENEOUS, src, dst)
    numbers = all(isinstance(node, (int, np.integer)) and not isinstance(node, bool) and node >= 0 for node in nodes)
    if not numbers:
        names = [node if isinstance(node, str) else str(node) for node in nodes]
        if len(set(names)) != len(names):
            raise ValueError("labels of two nodes are the same text: relabel the nodes")
        arrays.ids["_N"] = np.array([*names, None], object)[:-1]
    elif nodes != list(range(len(nodes))):
        arrays.ids["_N"] = _rows.ids(nodes, "labels of the nodes")
    arrays.add_columns({"_N": _rows_of(arrays, [data for _, data in graph.nodes(data=True)], "the nodes", True)},
                       {HOMOGENEOUS: features})
    return arrays


def _columns(table: Any) -> Optional[list[Any]]:
    """The names of the columns of a table of pandas, polars or Arrow, or of a dictionary of columns; else None."""
    if isinstance(table, Mapping):
        return list(table) if table and all(isinstance(name, str) for name in table) else None
    names = getattr(table, "column_names", None)
    if names is None and hasattr(table, "columns") and not isinstance(table, np.ndarray):
        names = table.columns
    return None if names is None or callable(names) else list(names)


def _add_table(arrays: Arrays, etype: Canonical, table: Any, names: list[Any]) -> None:
    """Adds a table of edges. Its ends have known names, or are its only two columns. The other columns are features."""
    found = _names.ends(names, etype[0], etype[2]) or ((0, 1) if len(names) == 2 else None)
    if found is None:
        raise ValueError(f"{':'.join(etype)}: no columns have known names of ends, such as src and dst: "
                         f"{', '.join(map(str, names))}: pass (table[…], table[…])")
    if len(set(names)) != len(names):
        raise ValueError(f"{':'.join(etype)}: two columns have one name: {', '.join(map(str, names))}")
    src, dst = (table[names[place]] for place in found)
    arrays.add_edges(etype, src, dst, floats=True)
    for name in (name for place, name in enumerate(names) if place not in found):
        rows = _rows.array(table[name], f"column {name}")
        if _rows.is_text(rows):
            raise TypeError(f"{':'.join(etype)}: column {name} is text, which edges do not store: leave it out")
        arrays.edge_features[etype, str(name)] = rows


_ALIKE = "two edges could be pairs or two columns: pass (numpy.array(sources), numpy.array(destinations))"


def _ends(edges: Any) -> tuple[Any, Any]:
    """(sources, destinations) of arrays and lists. Raises ValueError for what could be two edges or two columns."""
    several = isinstance(edges, (tuple, list)) and len(edges) == 2
    if several and all(hasattr(part, "__array__") and np.ndim(part) == 1 for part in edges):
        if isinstance(edges, list) and len(edges[0]) == len(edges[1]) == 2:
            raise ValueError(_ALIKE)
        return edges[0], edges[1]
    if isinstance(edges, tuple) and several:
        if all(isinstance(part, tuple) and len(part) == 2 for part in edges):
            raise ValueError(_ALIKE)
        return edges[0], edges[1]
    if isinstance(edges, list) and edges and all(isinstance(part, tuple) and len(part) == 2 for part in edges):
        return [src for src, _ in edges], [dst for _, dst in edges]
    pairs = _rows.array(edges, "edges")
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise ValueError(f"edges are (src, dst), [edges, 2] or [2, edges], not {list(pairs.shape)}")
    if pairs.shape == (2, 2):
        raise ValueError(_ALIKE)
    return tuple(pairs if pairs.shape[0] == 2 else pairs.T)


def _add_numpy(arrays: Arrays, etype: Canonical, edges: Any) -> None:
    names = _columns(edges)
    if hasattr(edges, "tocoo"):
        _add_matrix(arrays, etype, edges)
        return
    if names is not None:
        _add_table(arrays, etype, edges, names)
    else:
        arrays.add_edges(etype, *_ends(edges))
    arrays.guessed |= {etype[0], etype[2]}


def _checked_types(given: Mapping[Any, Any]) -> Mapping[Canonical, Any]:
    """Edges by type. Raises ValueError for no type, TypeError for a name of a type that is not three texts."""
    if not given:
        raise ValueError("edges: an empty dictionary: a graph has an edge type")
    for etype in given:
        if not (isinstance(etype, tuple) and len(etype) == 3 and all(isinstance(name, str) for name in etype)):
            raise TypeError(f"an edge type is (source type, relation, destination type), not {etype!r:.100}")
    return given


def _of_numpy(graph: Any) -> Arrays:
    """Converts (src, dst), an array of pairs, a table, or {(source type, relation, destination type): one of these}."""
    arrays = Arrays()
    given = _checked_types(graph) if isinstance(graph, Mapping) and _columns(graph) is None else {HOMOGENEOUS: graph}
    matrices = {ntype for etype, edges in given.items() if hasattr(edges, "tocoo") for ntype in (etype[0], etype[2])}
    for etype, edges in given.items():
        _add_numpy(arrays, etype, edges)
    arrays.guessed -= matrices
    arrays.number_texts()
    arrays.guessed -= set(arrays.ids)
    return arrays


def _copied(arrays: Arrays) -> Arrays:
    """Copies the containers of a dataset's Arrays, so that names can be added. The rows are shared."""
    made = Arrays()
    for name, value in vars(arrays).items():
        setattr(made, name, copy.copy(value))
    return made


def _converted(graph: Any, num_nodes: Any) -> Arrays:
    if hasattr(graph, "canonical_etypes"):
        return _of_dgl(graph)
    if hasattr(graph, "edge_stores"):
        return of_pyg(graph, num_nodes)
    if hasattr(graph, "tocoo"):
        return _of_matrix(graph)
    if all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "is_multigraph")):
        return _of_networkx(graph)
    return _of_numpy(graph)


def arrays_of(graph: Any, num_nodes: Any = None) -> Arrays:
    """The Arrays of a graph of DGL or of Graphwire's subset of it, PyTorch Geometric's Data or HeteroData, a dataset, a
    graph of NetworkX, a SciPy matrix, a table, or NumPy arrays. One UserWarning names the attributes that are left out.

    num_nodes: the number of nodes, or {node type: number}, where the graph itself leaves it open. Raises ValueError and
    TypeError."""
    if isinstance(getattr(graph, "arrays", None), Arrays):
        return _copied(graph.arrays)
    arrays = _converted(graph, num_nodes)
    if arrays.left_out:
        found = "; ".join(f"{name} ({why})" for name, why in arrays.left_out.items())
        warnings.warn(f"not among the features of the graph: {found}", UserWarning, stacklevel=level_of_the_caller())
    return arrays
