"""Reads DGL's chunked graphs with Parquet chunks, which `graphwire import` does not read by itself.

    python -m graphwire.chunks chunked/metadata.json numpy/      # then: graphwire import --from numpy/metadata.json
    graphwire.partition_graph(graphwire.chunks.chunked("chunked/metadata.json"), "name", 4, "parts/")

    metadata.json ─▶ each Parquet chunk to .npy, a batch at a time ─▶ a metadata.json that names these

A chunk's columns are joined to rows. The shape in the file's metadata, which DGL writes, is that of the rows. Chunks of
other formats stay where they are.

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
from typing import Any

from graphwire import _columns, _npy, _tables
from graphwire._keywords import keywords


def _entries(metadata: Any) -> Iterator[Any]:
    """All descriptions of data, {"format": …, "data": [files]}, of edges and features."""
    described = [metadata.get("edges"), *(types for key in ("node_data", "edge_data")
                                          for types in (metadata.get(key) or {}).values())]
    for entries in described:
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            if isinstance(entry, dict) and isinstance(entry.get("data"), list):
                yield entry


def _row_shape(table: Any) -> tuple[int, ...] | None:
    """The shape of a row in the file's metadata, as DGL writes it: "(100, 2)"."""
    pa = _columns.arrow()
    text = (pa.parquet.read_metadata(table.paths[0]).schema.to_arrow_schema().metadata or {}).get(b"shape")
    return None if text is None else tuple(map(int, re.findall(rb"\d+", text)))[1:]


def _write_chunk(path: Path, out: Path) -> None:
    """Writes a Parquet chunk as .npy."""
    table = _tables.opened([path], str(path))
    names = [name for name in table.names if not re.fullmatch(r"__index_level_\d+__", name)]
    shape, rows = _row_shape(table), _npy.Rows(out)
    for where, batch in table.read(table.types(names, ())):
        joined = _columns.joined({name: _columns.rows(batch.column(name), name, where) for name in names}, where)
        try:
            rows.append(joined if shape is None else joined.reshape(len(joined), *shape))
        except ValueError:
            raise ValueError(f"{path}: its metadata says rows of {list(shape or ())}, but they have {joined.shape[1]} "
                             "numbers") from None
    rows.close()


@keywords
class Chunked:
    """A chunked graph of DGL, which partition_graph reads: the result of chunked()."""

    def __init__(self, path: Path):
        self._path = path

    def __repr__(self) -> str:
        return f"<graphwire.chunks.Chunked {self._path}>"

    def write(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Writes the metadata and the Parquet chunks to files in the folder. Returns the arguments of `graphwire
        import`, and {file: what it holds} for errors."""
        with open(self._path, encoding="utf-8") as file:
            metadata = json.load(file)
        if not isinstance(metadata, dict):
            raise ValueError(f"{self._path}: no metadata of a chunked graph: a JSON object")
        names = {str(folder / "metadata.json"): str(self._path)}
        for entry in _entries(metadata):
            parquet = isinstance(entry.get("format"), dict) and entry["format"].get("name") == "parquet"
            for place, name in enumerate(entry["data"]):
                path = (self._path.parent / name).absolute()
                if parquet:
                    out = folder.absolute() / f"chunk{len(names)}.npy"
                    names[str(out)] = str(path)
                    _write_chunk(path, out)
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


if __name__ == "__main__":
    sys.exit(main())
