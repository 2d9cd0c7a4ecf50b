"""Warns of seeds whose times cannot be meant: all of them before the first edge, or far after the last.

    columns of times -> the first and the last time of some of their rows, once for each graph -> those of the seeds

Seconds that are compared with milliseconds give empty batches, or batches of all edges, and no error.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base.caller import level_of_the_caller
from graphwire._base.escape import unescaped
from graphwire._base.native import text
from graphwire._base.opened import OpenedGraph
from graphwire._graph.rules import Rules

_ROWS = 4096  # of each column; all of a smaller one
_FAR = 100  # times the range of the edges

Range = tuple[Any, Any]  # the first and the last time, as Python's numbers


def _range_of(arrays: Sequence[np.ndarray]) -> Range | None:
    """The range of finite times; None: no time is finite."""
    finite = [some[np.isfinite(some)] for some in arrays]
    ends = [(some.min().item(), some.max().item()) for some in finite if len(some)]
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None


def _of_column(graph: OpenedGraph, tensor: Any) -> Range | None:
    if tensor.ndim != 1 or tensor.writable or not tensor.shape[0]:
        return None
    rows = np.unique(np.linspace(0, tensor.shape[0] - 1, _ROWS).astype(np.int64))
    return _range_of([_arrays.gather(graph._opened(), tensor, rows, None)])


def compare(graph: OpenedGraph, rules: Rules, until: Sequence[np.ndarray], what: str = "times") -> None:
    """Warns once for each graph and times. until: the times of all seeds; what: the argument's name."""
    key = tuple(sorted(rules.times.items()))
    seeds = _range_of(until) if key else None
    if seeds is None or key in graph._times_told:
        return
    for number, tensor in rules.columns.items():
        if (number, rules.times[number]) not in graph._time_ranges:
            graph._time_ranges[number, rules.times[number]] = _of_column(graph, tensor)
    known = {number: found for number, name in key if (found := graph._time_ranges[number, name]) is not None}
    if not known:
        return
    first, last = min(one for one, _ in known.values()), max(one for _, one in known.values())
    before, after = seeds[1] < first, seeds[0] > last + max(_FAR * (last - first), abs(last))
    if not (before or after):
        return
    graph._times_told.add(key)
    number = next(iter(known))
    of_all = all(rules.columns[one].shape[0] <= _ROWS for one in known)
    name, unit = unescaped(text(rules.columns[number].name)), "" if rules.unit is None else f" {rules.unit}"
    warnings.warn(f"{what}: the seeds' times are {seeds[0]} to {seeds[1]}, and the edges' ({name!r} of "
                  f"{graph.etypes[number]}{' and others' if len(known) > 1 else ''}"
                  f"{'' if of_all else ', some thousands of them'}) {first} to {last}{unit}: every seed is "
                  f"{'before the first' if before else 'far after the last'}; compare their units",
                  stacklevel=level_of_the_caller())
