"""Finds the files of a folder, and the columns that the names of its folders are.

    users/country=de/day=3/part-0.parquet ─▶ the columns country and day of all rows in the file

Spark's partitionBy writes such folders. A column is of integers if all of its values are integers as they are printed,
else of text; as times, it is of dates or timestamps. %XX is a character, and __HIVE_DEFAULT_PARTITION__ a missing
value, as in Spark.

Errors: ValueError for a folder without files, folders of other names, and files with different columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional
from urllib.parse import unquote

from graphwire._files.columns import arrow

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

Values = dict[str, Optional[str]]  # {column: its value}


class Folders:
    """The files of tables on disk: take() each path, then settle(). files: {file: the columns of its folders}, in the
    order of their names. types: the types of Arrow of these columns."""

    def __init__(self) -> None:
        self.files: dict[Path, Values] = {}
        self.types: dict[str, Any] = {}

    def take(self, path: Path, values: Optional[Values] = None) -> None:
        """Takes a file, or the files of a folder."""
        values = values or {}
        if not path.is_dir():
            self.files[path] = values
            return
        names = sorted(one for one in os.listdir(path) if one[0] not in "_.")
        if not names:
            raise ValueError(f"{path}: no files")
        for name in names:
            column, equals, value = name.partition("=")
            if not (path / name).is_dir():
                self.files[path / name] = values
            elif not equals or not column:
                raise ValueError(f"{path}: it has the folder {name}, and a folder in a table is named column=value: "
                                 "name the files")
            elif unquote(column) in values:
                raise ValueError(f"{path / name}: a folder above it has the column {column} too")
            else:
                self.take(path / name, {**values, unquote(column): None if value == _NULL else unquote(value)})

    def settle(self, what: str) -> None:
        """Decides on the types. Raises ValueError if not all files have the same columns."""
        first, columns = next(iter(self.files.items()))
        for path, values in self.files.items():
            if values.keys() != columns.keys():
                raise ValueError(f"{what}: the folders of {path} and those of {first} name different columns")
        for name in columns:
            texts = [values[name] for values in self.files.values()]
            whole = all(text is None or _INTEGER.fullmatch(text) for text in texts)
            self.types[name] = arrow().int64() if whole else arrow().string()

    def read_times(self, names: Sequence[str]) -> None:
        """Reads those of these columns that are text as dates, or else as timestamps, if all of their values are."""
        pa = arrow()
        for name in names:
            for kind in (pa.date32(), pa.timestamp("us")) if self.types.get(name) == pa.string() else ():
                try:
                    pa.array([values[name] for values in self.files.values()], pa.string()).cast(kind)
                except pa.ArrowInvalid:
                    continue
                self.types[name] = kind
                break

    def with_names(self, path: Path, names: Sequence[str]) -> list[str]:
        """The columns of a file, and those of its folders. Raises ValueError for one that is both."""
        twice = next((name for name in self.types if name in names), None)
        if twice is not None:
            raise ValueError(f"{path}: column {twice!r} is in the file, and a folder has its name too")
        return [*names, *self.types]

    def add(self, path: Path, batch: Any, types: Mapping[str, Any]) -> Any:
        """The columns of `types`, in these types, of a batch of a file and of its folders."""
        pa = arrow()
        arrays = []
        for name, kind in types.items():
            if name in self.types:
                text = pa.scalar(self.files[path][name], pa.string())
                arrays.append(pa.repeat(text.cast(kind), batch.num_rows))
            else:
                arrays.append(batch.column(name))
        return pa.RecordBatch.from_arrays(arrays, names=list(types))
