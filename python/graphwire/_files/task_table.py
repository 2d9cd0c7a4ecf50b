"""The table of a task: a row for each question, which asks for the target of an entity at a time.

    a table of any kind (table_kinds.py), or one of RelBench ─▶ columns of keys, times and targets ─▶ whole arrays

Errors: ValueError and TypeError, which name the table, the column and the row, from 0; ModuleNotFoundError without
pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from graphwire._files import columns as _columns
from graphwire._files.columns import arrow
from graphwire._files.numbering import Texts
from graphwire._files.table_arguments import TextOptions
from graphwire._files.table_kinds import Table, opened

WHAT = "table"  # names the table in errors, as the argument


def of_relbench(table: Any) -> bool:
    """Whether a table is a Table of RelBench, which is recognized by its attributes: the package need not be installed.
    """
    return hasattr(table, "df") and hasattr(table, "time_col") and isinstance(
        getattr(table, "fkey_col_to_pkey_table", None), Mapping)


def _plain_texts(texts: Texts) -> Any:
    """The texts as an array of Arrow, which has no other memory than theirs."""
    pa = arrow()
    offsets = np.ascontiguousarray(texts.offsets, np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(texts.data)])


def _check_kind(table: Table, use: str, name: str, kind: Any) -> None:
    """Raises TypeError for a column whose values are not of its use, and ValueError for the first text among others."""
    pa = arrow()
    kinds = pa.types
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_null(kind)
    if use == "time" and (number or kinds.is_timestamp(kind) or kinds.is_date(kind)):
        return
    lists = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    if use == "target" and (number or kinds.is_boolean(kind) or lists):
        return
    odd = table.odd(name)
    if odd:
        raise ValueError(f"{odd}, which has another type than the rows before")
    if use == "time":
        raise TypeError(f"{table.what}: column {name} is {kind}: times are numbers or dates"
                        f"{', as pandas.to_datetime makes them' if _columns.is_text(kind) else ''}")
    raise TypeError(f"{table.what}: column {name} is {kind}: targets are numbers, bools, or lists of numbers of one "
                    f"length{': number the values, in all tables alike' if _columns.is_text(kind) else ''}")


class TaskTable:
    """keys: int64 [rows], or an array of Arrow with texts. times: datetime64 or numbers, [rows], or None. target: int64
    or floats, [rows] or [rows, length, …], or None. what: names the table in errors."""

    def __init__(self, table: Any, key: str, time: Optional[str], target: Optional[str]):
        source = opened(table, WHAT, TextOptions(None, None, None, (key, time, target)).words(WHAT))
        self.what, self.key, self.time = source.what, key, time
        uses = {use: source.column(name, use) for use, name in (("entity", key), ("time", time), ("target", target))
                if name is not None}
        source.read_times([name for use, name in uses.items() if use == "time"])
        types = source.used(list(dict.fromkeys(uses.values())), [key])
        for use, name in uses.items():
            if use != "entity":
                _check_kind(source, use, name, types[name])
        if not _columns.is_text(types[key]):
            source.allow_negative(key)
        self._read(source, types, target)

    def _read(self, source: Table, types: Mapping[str, Any], target: Optional[str]) -> None:
        self._places: list[tuple[int, _columns.Where]] = []  # (first row, the place of a row) of each batch
        keys: list[Any] = []
        times: list[np.ndarray] = []
        targets: list[np.ndarray] = []
        count = 0
        for where, batch in source.read(types):
            self._places.append((count, where))
            found = _columns.ids(batch.column(self.key), self.key, where)
            keys.append(_plain_texts(found) if isinstance(found, Texts) else found)
            if self.time is not None:
                times.append(_columns.rows(batch.column(self.time), self.time, where))
            if target is not None:
                targets.append(_columns.labels(batch.column(target), target, where))
                if batch.num_rows and targets[0].shape[1:] != targets[-1].shape[1:]:
                    raise ValueError(f"{where(0)}: column {target} has lists of another length than the rows before")
            count += batch.num_rows
        self.count = count
        self.keys = np.concatenate(keys) if isinstance(keys[0], np.ndarray) else arrow().chunked_array(keys)
        self.times = np.concatenate(times) if times else None
        self.target = np.concatenate(targets) if targets else None

    def where(self, row: int) -> str:
        """The place of a row, for errors."""
        first, where = next(one for one in reversed(self._places) if one[0] <= row)
        return where(row - first)

    def key_of(self, row: int) -> Any:
        """The key of a row, for errors."""
        if isinstance(self.keys, np.ndarray):
            return int(self.keys[row])
        return self.keys[row].as_py().decode("utf-8", "replace")
