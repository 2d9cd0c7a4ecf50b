"""Rows that a program wrote into the parts of a graph after partition_graph: part0/node_feat.dgl, part0/edge_feat.dgl.

    later_rows(folder) -> {"type/name": rows} of the files, which need no dgl
    check(part_config, graph) raises ValueError if files have rows that the graph lacks
    whole(part_config) -> the graph as Arrays, with these rows, for convert_parts

The rows of a file are those of its part's nodes or edges, in the order of a DistGraph's ids.

The format is that of DGL's save_tensors, little-endian: a magic number, the number of tensors twice; of each tensor the
name (uint64 length, bytes), a magic number, 8 bytes reserved, device (2 int32), number of dimensions (int32), dtype
(code and bits, uint8 each; lanes, uint16), shape (int64 each), bytes of data (int64), data.

Errors: RowsError for a file that cannot be read, and for rows that do not fit.
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import graphwire
from graphwire._graph_arrays import Arrays
from graphwire.dgl.distributed.user_edges import UserEdges
from graphwire.dgl.types import Types

_MAGIC, _ARRAY_MAGIC = 0xDD5A9FBE3FA2443F, 0xDD5E40F096B4A13F
_KINDS = {0: "i", 1: "u", 2: "f"}  # codes of dtypes; bools are uint8
_FILES = ("node_feat.dgl", "edge_feat.dgl")


class RowsError(ValueError):
    """A file of rows cannot be read, or its rows do not fit the graph. The text names the file."""

    __module__ = "graphwire.dgl"


class _Reader:
    """Reads values from a file. Raises RowsError at its end."""

    def __init__(self, file: BinaryIO, path: Path):
        self.path, self._file, self._left = path, file, path.stat().st_size

    def _count(self, count: int) -> int:
        self._left -= count
        if count < 0 or self._left < 0:
            raise RowsError(f"{self.path}: the file ends within a tensor")
        return count

    def take(self, count: int) -> bytes:
        return self._file.read(self._count(count))

    def skip(self, count: int) -> None:
        self._file.seek(self._count(count), os.SEEK_CUR)

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))


def read_tensors(path: str | os.PathLike, *, only_names: bool = False) -> dict[str, np.ndarray]:
    """{name: rows} of a file of DGL's save_tensors. only_names: the rows are empty, and the file's data is not read.
    Raises RowsError; FileNotFoundError."""
    found: dict[str, np.ndarray] = {}
    with open(path, "rb") as file:
        reader = _Reader(file, Path(path))
        magic, count, _ = reader.numbers("QQQ")
        if magic != _MAGIC:
            raise RowsError(f"{path}: no file of DGL's save_tensors")
        for _ in range(count):
            name = reader.take(*reader.numbers("Q")).decode("utf-8", "replace")
            magic, _, _, _, dims, code, bits, lanes = reader.numbers("QQiiiBBH")
            if magic != _ARRAY_MAGIC or code not in _KINDS or lanes != 1 or bits not in (8, 16, 32, 64) or not (
                    0 <= dims <= 8):
                raise RowsError(f"{path}: {name} is no tensor of numbers")
            shape, (size,) = reader.numbers(f"{dims}q"), reader.numbers("q")
            if size != math.prod(shape) * (bits // 8) or min(shape, default=0) < 0:
                raise RowsError(f"{path}: {name} has {size} bytes, and its shape is {list(shape)}")
            if only_names:
                reader.skip(size)
                found[name] = np.empty(0)
            else:
                found[name] = np.frombuffer(reader.take(size), f"<{_KINDS[code]}{bits // 8}").reshape(shape)
    return found


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
