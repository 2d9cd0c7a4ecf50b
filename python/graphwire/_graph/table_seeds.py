"""Seeds of a loader by the keys of a table.

    keys, times of a task's table ─▶ the graph's ids, times in the unit of the graph ─▶ Seeds

Graph.seeds_of calls this module, and documents it and its errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks, times
from graphwire._base.arrays import Array
from graphwire._base.keys import key_text, plain_keys
from graphwire._base.opened import OpenedGraph
from graphwire._base.times import Times
from graphwire._graph import ids as _ids
from graphwire._graph.rules import Rules


class Seeds(NamedTuple):
    """Seeds of one node type, as NodeLoader(graph, seeds.ids, …, times=seeds.times) takes them.

    ids: {node type: the graph's ids}. times: {node type: int64, or float64, in the graph's unit}; None without times.
    rows: the place of each seed in the keys that were given.
    """

    ids: dict[str, Array]
    times: dict[str, np.ndarray] | None
    rows: np.ndarray


Seeds.__module__ = "graphwire.graph"


def _items(column: Any) -> list[Any]:
    for name in ("to_pylist", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _columns(keys: Any) -> list[Any] | None:
    """The columns of keys that are a frame, or a dictionary of columns; None for others."""
    if isinstance(keys, Mapping):
        return list(keys.values())
    if hasattr(keys, "column_names"):  # Arrow
        return [keys.column(name) for name in keys.column_names]
    if hasattr(keys, "columns") and not hasattr(keys, "detach"):
        return [keys[name] for name in keys.columns]
    return None


def _one_column(keys: Any, drops: bool) -> tuple[Any, np.ndarray | None]:
    """The keys as one column, as ids_of takes them: those of several columns as texts; and their rows, as _present."""
    columns = _columns(keys)
    if columns is None and isinstance(keys, (list, tuple)) and keys and all(
            isinstance(one, (tuple, list)) for one in keys):
        if len({len(row) for row in keys}) != 1:
            raise ValueError("keys: tuples of several lengths")
        columns = [list(column) for column in zip(*keys)]
        joins = True
    else:
        joins = columns is not None and len(columns) != 1
    columns = [keys] if columns is None else columns
    if not columns or (len(columns) > 1 and len({len(column) for column in columns}) != 1):
        raise ValueError("keys: columns of several lengths, or no columns")
    columns = [plain_keys(column) for column in columns]
    columns, rows = _present(columns, drops)
    return _joined(list(zip(*map(_items, columns)))) if joins else columns[0], rows


def _may_miss(column: Any) -> bool:
    """Whether a column may have missing keys, or floats, which pandas makes of integers if a value is missing."""
    floats = _kind(column) in ("halffloat", "float16", "float", "float32", "double", "float64")
    nulls = getattr(column, "null_count", None)  # of Arrow and polars
    if nulls is not None:
        return floats or bool(nulls() if callable(nulls) else nulls)
    if hasattr(column, "isna"):
        return floats or bool(column.isna().any())
    column = column.tolist() if _kind(column) == "object" else column
    return floats or (isinstance(column, (list, tuple)) and any(
        checks.is_missing(one) or isinstance(one, float) for one in column))


def _count(keys: Any) -> int:
    columns = _columns(keys)
    return len(keys if columns is None else columns[0])


def _present(columns: list[Any], drops: bool) -> tuple[list[Any], np.ndarray | None]:
    """The columns of the keys without the rows in which one is missing, whole floats as integers; and the rows that
    are left, None: all. Raises ValueError for a missing key, unless they are dropped."""
    if not any(map(_may_miss, columns)):
        return columns, None
    items = [_items(column) for column in columns]
    rows = [place for place, row in enumerate(zip(*items)) if not any(map(checks.is_missing, row))]
    if not drops and len(rows) < len(items[0]):
        row = next(place for place, one in enumerate([*rows, -1]) if place != one)
        raise ValueError(f"keys: number {row} is missing")
    found = [_whole([one[row] for row in rows], _kind(column)) for one, column in zip(items, columns)]
    return found, np.array(rows, np.int64)


def _kind(column: Any) -> str:
    """The name of a column's type, of any library; "" of a list."""
    return str(getattr(column, "type", getattr(column, "dtype", ""))).lower().rpartition(".")[2]


def _whole(items: list[Any], kind: str) -> list[Any]:
    """Whole floats as integers, unless their digits may be lost. kind: of the column."""
    digits = 11 if kind in ("halffloat", "float16") else 24 if kind in ("float", "float32") else 53
    return [int(one) if isinstance(one, float) and one.is_integer() and abs(one) < 2**digits else one
            for one in items]


def _joined(rows: Any) -> list[str]:
    found = []
    for place, row in enumerate(rows):
        for value in row:
            if not isinstance(value, str) and checks.as_integer(value) is None:
                raise TypeError(f"keys: texts or integers, and number {place} is {row!r:.100}")
        found.append(key_text(value if isinstance(value, str) else checks.as_integer(value) for value in row))
    return found


def seeds_of(graph: OpenedGraph, table: str, keys: Any, given: Times | None, time: str, missing: str) -> Seeds:
    number = graph.ntype_number(table)
    drops = checks.choice("missing", missing, ("raise", "drop")) == "drop"
    column, rows = _one_column(keys, drops)
    found = _ids.nodes_of(graph, number, column, "mark" if drops else "raise", "keys")
    there = np.flatnonzero(found >= 0)
    rows, count = there if rows is None else rows[there], len(found) if rows is None else _count(keys)
    made = None
    if given is not None:
        rules = Rules(graph, time=time)
        made = {table: times.numbers("times", given, count, rules.unit)[rows]}
    return Seeds({table: _arrays.public(found[there], graph._torch)}, made, rows)
