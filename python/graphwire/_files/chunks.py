"""Reads DGL's chunked graphs with Parquet chunks, which `graphwire import` does not read by itself.

    python -m graphwire.chunks chunked/metadata.json numpy/      # then: graphwire import --from numpy/metadata.json
    graphwire.partition_graph(graphwire.chunks.chunked("chunked/metadata.json"), "name", 4, "parts/")

    metadata.json ─▶ each Parquet chunk to .npy, a batch at a time ─▶ a metadata.json that names these

A chunk's columns are joined to rows, in the order of the first chunk's columns. The shape in the file's metadata, which
DGL writes, is that of the rows. Chunks of other formats stay where they are.

Errors: ValueError and TypeError, which name the chunk; FileNotFoundError; ModuleNotFoundError without pyarrow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._base.keywords import keywords
from graphwire._files import columns as _columns
from graphwire._files import names as _names
from graphwire._files import npy
from graphwire._files import table_kinds as _tables
from graphwire._files.numbering import Texts


def _entries(metadata: Any) -> Iterator[tuple[bool, Any]]:
    """All descriptions of data: (whether of edges, {"format": …, "data": [files]})."""
    data = [metadata.get(key) for key in ("node_data", "edge_data")]
    described = [metadata.get("edges"), *(types for one in data if isinstance(one, Mapping) for types in one.values())]
    for place, entries in enumerate(described):
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            if isinstance(entry, dict) and isinstance(entry.get("data"), list):
                yield place == 0, entry


def _row_shape(table: Any) -> tuple[int, ...] | None:
    """The shape of a row in the file's metadata, as DGL writes it: "(100, 2)"."""
    pa, path = _columns.arrow(), table.paths[0]
    with _tables.reading(str(path)):
        text = (pa.parquet.read_metadata(path).schema.to_arrow_schema().metadata or {}).get(b"shape")
    return None if text is None else tuple(map(int, re.findall(rb"\d+", text)))[1:]


def _ordered(path: Path, names: list[str], edges: bool, first: Optional[tuple[Path, list[str]]]) -> list[str]:
    """The columns of a chunk, without the index of pandas, in the order of those of the first chunk. Raises ValueError
    if they are others, or if their names deny the order of sources and destinations."""
    names = [name for name in names if not re.fullmatch(r"__index_level_\d+__", name)]
    if edges and len(names) == 2 and _names.ends(names) not in (None, (0, 1)):
        raise ValueError(f"{path}: columns {', '.join(names)}: the first two are the sources and the destinations, and "
                         "their names say otherwise")
    if first is None:
        return names
    if sorted(names) != sorted(first[1]):
        raise ValueError(f"{path}: columns {', '.join(names)}, and {first[0].name} has {', '.join(first[1])}")
    return first[1]


def _part(column: Any, name: str, where: _columns.Where, edges: bool) -> np.ndarray:
    """One column of a chunk: ids of edges, or numbers."""
    found = _columns.ids(column, name, where) if edges else _columns.rows(column, name, where)
    if isinstance(found, Texts):
        raise TypeError(f"{where(0)}: column {name} is {column.type}: ids in chunks are integers")
    return found


def _write_chunk(path: Path, out: Path, edges: bool, first: Optional[tuple[Path, list[str]]]) -> list[str]:
    """Writes a Parquet chunk as .npy. first: the path and the columns of the first chunk of its data. Returns the
    columns."""
    table = _tables.opened([path], str(path))
    names = _ordered(path, table.names, edges and first is None, first)
    if not names:
        raise ValueError(f"{path}: no columns")
    shape, rows = _row_shape(table), npy.Rows(out)
    for where, batch in table.read(table.used(names, ())):
        joined = _columns.joined({name: _part(batch.column(name), name, where, edges) for name in names}, where)
        try:
            rows.append(joined if shape is None else joined.reshape(len(joined), *shape))
        except ValueError:
            raise ValueError(f"{path}: its metadata says rows of {list(shape or ())}, but they have {joined.shape[1]} "
                             "numbers") from None
    rows.close()
    return names


@keywords
class Chunked:
    """A chunked graph of DGL, which partition_graph reads: the result of chunked()."""

    __module__ = "graphwire.chunks"

    def __init__(self, path: Path):
        self._path = path

    def __repr__(self) -> str:
        return f"<graphwire.chunks.Chunked {self._path}>"

    def write(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Writes the metadata and the Parquet chunks to files in the folder. Returns the arguments of `graphwire
        import`, and {file: what it holds} for errors."""
        try:
            with open(self._path, encoding="utf-8") as file:
                metadata = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self._path}: no metadata of a chunked graph: {error}") from None
        if not isinstance(metadata, dict):
            raise ValueError(f"{self._path}: no metadata of a chunked graph: a JSON object")
        names = {str(folder / "metadata.json"): str(self._path)}
        for edges, entry in _entries(metadata):
            first: Optional[tuple[Path, list[str]]] = None
            parquet = isinstance(entry.get("format"), dict) and entry["format"].get("name") == "parquet"
            for place, name in enumerate(entry["data"]):
                if not isinstance(name, str):
                    raise ValueError(f"{self._path}: {name!r} in \"data\" is not the name of a file")
                path = (self._path.parent / name).absolute()
                if parquet:
                    out = folder.absolute() / f"chunk{len(names)}.npy"
                    names[str(out)] = str(path)
                    columns = _write_chunk(path, out, edges, first)
                    first = first or (path, columns)
                else:
                    names[str(path)] = str(path)
                entry["data"][place] = str(out if parquet else path)
            if parquet:
                entry["format"] = {"name": "numpy"}
        with open(folder / "metadata.json", "w", encoding="utf-8") as file:
            json.dump(metadata, file)
        return ["--from", str(folder / "metadata.json")], names


@keywords
def chunked(path: str | os.PathLike) -> Chunked:
    """A chunked graph of DGL for partition_graph, by the path of its metadata.json. Its chunks are Parquet, NumPy or
    CSV. partition_graph reads the files, and raises ValueError and TypeError, which name them.

    Raises FileNotFoundError; ModuleNotFoundError without pyarrow.
    """
    _columns.arrow()
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    return Chunked(Path(path))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m graphwire.chunks", description="Write the Parquet chunks of DGL's "
                                     "chunked graph as NumPy arrays, for `graphwire import --from OUT/metadata.json`.")
    parser.add_argument("metadata", help="the metadata.json of the chunked graph")
    parser.add_argument("out", help="the folder of the arrays and of their metadata.json, which is created")
    args = parser.parse_args(words)
    out = Path(args.out)
    try:
        graph = chunked(args.metadata)
        out.mkdir(parents=True)
        graph.write(out)
    except (OSError, ValueError, TypeError, ModuleNotFoundError) as error:
        print(f"graphwire.chunks: {error}", file=sys.stderr)
        return 1
    return 0
