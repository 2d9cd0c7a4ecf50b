"""Rows that a program wrote into the parts of a graph after partition_graph: part0/node_feat.dgl, part0/edge_feat.dgl.

    later_rows(folder) -> {"type/name": rows} of the files, which need no dgl
    check(part_config, graph) raises ValueError if files have rows that the graph lacks
    whole(part_config) -> the graph as Arrays, with these rows, for convert_parts

The rows of a file are those of its part's nodes or edges, in the order of a DistGraph's ids.

Errors: RowsError for a file that cannot be read, and for rows that do not fit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import graphwire
from graphwire._files.graph_arrays import Arrays
from graphwire.dgl.distributed.user_edges import UserEdges
from graphwire.dgl.tensor_files import RowsError, read_tensors
from graphwire.dgl.types import Types

_FILES = ("node_feat.dgl", "edge_feat.dgl")


def later_rows(folder: Path, part: int, *, only_names: bool = False
               ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The rows of a part's nodes and of its edges; empty without files."""
    paths = [folder / f"part{part}" / name for name in _FILES]
    nodes, edges = (read_tensors(path, only_names=only_names) if path.is_file() else {} for path in paths)
    return nodes, edges


def _folder(part_config: Any) -> Path:
    path = Path(os.path.realpath(part_config))
    return path if path.is_dir() else path.parent


def check(part_config: Any, graph: graphwire.Graph) -> None:
    """Raises RowsError if files in the parts have rows that the graph lacks."""
    if part_config is None:
        return
    folder = _folder(part_config)
    have = {f"{feature.type}/{feature.name}" for feature in graph.features}
    for part in range(graph.num_parts):
        for name, rows in zip(_FILES, later_rows(folder, part, only_names=True)):
            lacking = sorted(set(rows) - have)
            if lacking:
                raise RowsError(f"{folder}/part{part}/{name} has rows that the graph lacks: {', '.join(lacking[:5])}: "
                                f"convert both, python -m graphwire.dgl.convert {part_config} NEW_FOLDER, or remove "
                                "the file")


def whole(part_config: Any) -> Arrays:
    """A graph of Graphwire, with the rows of the files, as arrays in the order of a DistGraph's ids. Raises RowsError,
    and the errors of graphwire.open."""
    arrays = Arrays()
    with graphwire.open(part_config, numpy=True) as graph:
        types, users, folder = Types.of(graph), UserEdges(graph), _folder(part_config)
        arrays.counts = {ntype: graph.num_nodes(ntype) for ntype in types.ntypes}
        order = {etype: users.positions(etype, np.arange(graph.num_edges(etype))) for etype in types.canonical_etypes}
        for etype, places in order.items():
            arrays.add_edges(etype, *graph.find_edges(places, ":".join(etype)))
        for feature in graph.features:
            if feature.name == "orig_id":
                continue
            if feature.of_edges:
                etype = types.to_canonical_etype(feature.type)
                arrays.edge_features[etype, feature.name] = np.asarray(feature[order[etype]])
            else:
                arrays.node_features[feature.type, feature.name] = np.asarray(feature[:])
        parts = [later_rows(folder, part) for part in range(graph.num_parts)]
    for of_edges in (False, True):
        for name in dict.fromkeys(name for part in parts for name in part[of_edges]):
            _add(arrays, types, of_edges, name, [part[of_edges].get(name) for part in parts], folder)
    return arrays


def _add(arrays: Arrays, types: Types, of_edges: bool, name: str, rows: list[Any], folder: Path) -> None:
    kind, _, column = name.rpartition("/")
    where = f"{folder}: {name} of {_FILES[of_edges]}"
    if any(some is None for some in rows):
        raise RowsError(f"{where} is in some parts only")
    together = np.concatenate(rows)
    try:
        etype = types.to_canonical_etype(kind) if of_edges else None
        count = len(arrays.edges[etype][0]) if etype is not None else arrays.counts[kind]
    except Exception as error:
        raise RowsError(f"{where}: the graph has no type {kind}") from error
    if len(together) != count:
        raise RowsError(f"{where} has {len(together)} rows, and the graph {count}")
    if column.endswith("_mask") and together.ndim == 1 and together.dtype.itemsize == 1:
        together = together.astype(bool)
    if etype is not None:
        arrays.edge_features[etype, column] = together
    else:
        arrays.node_features[kind, column] = together
