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
from graphwire._base.keys import key_text
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


def _one_column(keys: Any) -> Any:
    """The keys as one column, as ids_of takes them: those of several columns as texts."""
    columns = _columns(keys)
    if columns is not None and len(columns) == 1:
        return columns[0]
    if columns is not None:
        parts = [_items(column) for column in columns]
        if len({len(part) for part in parts}) != 1:
            raise ValueError("keys: columns of several lengths, or no columns")
        return _joined(list(zip(*parts)))
    if isinstance(keys, (list, tuple)) and keys and all(isinstance(one, (tuple, list)) for one in keys):
        return _joined(keys)
    return keys


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
    found = _ids.nodes_of(graph, number, _one_column(keys), "mark" if drops else "raise", "keys")
    rows = np.flatnonzero(found >= 0)
    made = None
    if given is not None:
        rules = Rules(graph, time=time)
        made = {table: times.numbers("times", given, len(found), rules.unit)[rows]}
    return Seeds({table: _arrays.public(found[rows], graph._torch)}, made, rows)
