"""The times of seeds, and the begins of their windows, for C.

    times=, window= for each list of seeds -> numbers in the unit of the columns -> int64, or float64 for all lists

Without times=, seeds have the times of their own feature: nodes that of their type, edges that of theirs.

Errors begin with the argument's name; graphwire/_base/times.py lists them. NotFoundError: seeds without times have no
such feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks, times
from graphwire._base.native import NotFoundError
from graphwire._base.opened import OpenedGraph
from graphwire._base.times import Times
from graphwire._graph.rules import SOURCE, Rules, listed, unit_of


def by_list(given: Any, names: Sequence[str], name_of: Callable[[Any], str], what: str, several: bool) -> list[Any]:
    """The part of an argument for each list of seeds. names: the lists' types; name_of: the type of a key; several: the
    seeds are given by type. One number holds for all lists. Raises InvalidError for a type that has none, or that is
    named twice."""
    if not isinstance(given, Mapping):
        if several and (isinstance(given, (list, tuple)) or (given is not None and np.ndim(given))):
            raise checks.invalid(f"{what}: the seeds are given by type: give {{type: {what}}}")
        return [given] * len(names)
    if not several:
        raise TypeError(f"{what}: the seeds are of one type, and are given without it: give {what} without a type")
    found: dict[str, Any] = {}
    for key, value in given.items():
        try:
            name = name_of(key)
        except NotFoundError as error:
            raise NotFoundError(error.status, f"{what}: {error}") from None
        if name in found:
            raise checks.invalid(f"{what}: {name} is named twice")
        found[name] = value
    other = found.keys() - set(names)
    if other:
        raise checks.invalid(f"{what}: {min(other)} has no seeds")
    lacking = [name for name in names if found.get(name) is None]
    if lacking:
        raise checks.invalid(f"{what}: {lacking[0]} has seeds, and no {what}")
    return [found[name] for name in names]


class SeedTimes:
    """The times of lists of seeds. until, begin: an array for each list, or None for each; both are empty lists if
    edges are not drawn by time. real: they are float64; else int64. strict: a seed sees the edges before its time."""

    def __init__(self, rules: Rules, counts: Sequence[int], given: Sequence[Times], windows: Sequence[Times],
                 strict: bool = False, for_negatives: bool = False):
        """for_negatives: negatives need times, also if edges are not drawn by time."""
        self.strict = checks.flag("strict", strict)
        for name, some in (("times", () if for_negatives else given), ("window", windows)):
            rules.needs_time(name, None if all(one is None for one in some) else some)
        rules.needs_time("strict", self.strict or None)
        self.real = False
        self.until: list[np.ndarray] = []
        self.begin: list[np.ndarray] | None = None
        if not (rules.times or for_negatives):
            return
        until = [times.numbers("times", one, count, rules.unit) for one, count in zip(given, counts)]
        self.real = any(one.dtype.kind == "f" for one in until if len(one))
        self.until = [times.as_real("times", one) if self.real else one.astype(np.int64) for one in until]
        if not all(one is None for one in windows):
            self.begin = [times.begins("window", one, last, rules.unit) for one, last in zip(windows, self.until)]

    def put(self, seeds: Any, place: int) -> None:
        """Sets the times of a gw_seeds, or a gw_neighbours_spec. This object keeps the arrays."""
        if self.until:
            seeds.times = _arrays.pointer(self.until[place])
        if self.begin is not None:
            seeds.times_from = _arrays.pointer(self.begin[place])


def own_times(graph: OpenedGraph, rules: Rules, of_edges: bool, kinds: Sequence[int],
              ids: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """The times of seeds by their own feature, for each list. kinds: the lists' types; ids: None is all of a type.
    Raises NotFoundError for a type without it."""
    known: dict[tuple[int, Any], Any] = {(int(tensor.type), name): tensor for tensor, name in listed(graph)
                                         if tensor.of_edges == of_edges}
    asked = []
    for kind, some in zip(kinds, ids):
        names = [rules.name if of_edges or rules.name is None else rules.name.removesuffix(SOURCE)]
        if of_edges:
            names.insert(0, rules.times.get(kind))
        tensor = next((known[kind, name] for name in names if (kind, name) in known), None)
        if tensor is None:
            type_name = (graph.etypes if of_edges else graph.ntypes)[kind]
            said = (f"{type_name} has no feature {names[-1]!r}" if names[-1] is not None else
                    "the times of edges have several names")
            raise NotFoundError("GW_NOT_FOUND", f"times: {said}: give times, one for each seed")
        asked.append((tensor, slice(None) if some is None else some))
    found = _arrays.gather_all(graph._opened(), asked, None)
    units = [unit_of(tensor) for tensor, _ in asked]
    return [rows.view(f"datetime64[{unit}]") if None not in (unit, rules.unit) and rows.dtype == np.int64 else rows
            for rows, unit in zip(found, units)]


def node_time(graph: OpenedGraph, rules: Rules, ntype: int) -> str:
    """The node feature that says from when the nodes of a type exist: that of the name of the edges' times. Raises
    InvalidError for a type that has none."""
    name = None if rules.name is None else rules.name.removesuffix(SOURCE)
    if not any(not tensor.of_edges and tensor.type == ntype and one == name for tensor, one in listed(graph)):
        said = (f"{graph.ntypes[ntype]} has no feature {name!r}" if name is not None else
                "the times of edges have several names")
        raise checks.invalid(f"negatives: {said}, so that it is not known which nodes exist at a time: give "
                             "exist_time, the name of such a node feature, or False for all nodes")
    return str(name)
