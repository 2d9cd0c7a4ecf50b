"""Digests of what a table's rows are made of: the bytes of its files, or its columns in memory.

    Inputs(table, columns) ─▶ digest ─▶ the rows are read ─▶ check(): the files are still the same

A time of change proves nothing, so files are read. The names of files do not count, except those of folders that are
columns, such as "day=3", and the order of the files does.

Errors: OSError; ValueError for a file that changes meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphwire._files import digest as _digest
from graphwire._files.columns import arrow
from graphwire._files.table_kinds import Table, source_files

_PIECE = 16 << 20


def of_json(value: Any) -> str:
    """The digest of a value of JSON."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _of_file(path: Path) -> str:
    found, piece = [], np.empty(_PIECE, np.uint8)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(piece.data):
            found.append(f"{count}:{_digest.of_array(piece[:count])}")
    return of_json(found)


def _of_memory(table: Table, types: Mapping[str, Any]) -> str:
    """The digest of the columns as they are read: a stream of Arrow has their types, dictionaries and values."""
    pa = arrow()
    found = []
    for _, batch in table.read(types):
        sink = pa.BufferOutputStream()
        batch = batch.select(list(types)).replace_schema_metadata(None)
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        found.append(_digest.of_array(np.frombuffer(sink.getvalue(), np.uint8)))
    return of_json(found)


def _states(paths: Mapping[Path, Any]) -> list[tuple[Path, os.stat_result]]:
    return [(path, os.stat(path)) for path in paths]


class Inputs:
    """The rows of a table. types: {column: its type} of the columns that are read. digest: of the rows."""

    def __init__(self, table: Table, types: Mapping[str, Any]):
        files = source_files(table)
        self._states = _states(files)
        self.digest = of_json([[path.suffixes[-2:], values, _of_file(path)] for path, values in files.items()]) \
            if files else _of_memory(table, types)

    def check(self) -> None:
        """Raises ValueError for a file that is another one than its digest says."""
        for path, then in self._states:
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns, now.st_ino) != (then.st_size, then.st_mtime_ns, then.st_ino):
                raise ValueError(f"{path}: the file has changed while it was read: start again")
