"""Fanouts as they are given -> a count for each hop and edge type, as C takes them.

    [15, 10]                                    a count for each hop, from the seeds outwards; -1: all neighbours
    [15, {"cites": 5, ("a", "writes", "p"): 3}] in a hop, by edge type: types that it does not name are left out
    {"cites": [15, 10], "writes": [5, 0]}       PyTorch Geometric's: by edge type, the counts of all hops; each type of
                                                the graph is named, as there

Each error names the fanouts. A text is a type's name and never a count, whatever the relations are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from graphwire import _checks
from graphwire._native import NotFoundError
from graphwire._opened import Etype, OpenedGraph

Fanout = Union[int, Mapping[Any, int]]
Fanouts = Union[Sequence[Fanout], Mapping[Any, Sequence[int]]]
_FORMS = "a list of one count for each hop, from the seeds outwards, -1: all neighbours; or {edge type: such a list}"


def count(value: Any, what: str = "fanouts") -> int:
    """One count: -1, or 0 and more. what: the argument's name."""
    found = _checks.integer(what, value, -2**63, 2**31 - 1)
    if found < -1:
        raise _checks.invalid(f"{what}: fanout {found}: it is 0 or more, or -1 for all neighbours")
    return found


def _hops(given: Any) -> list[Any]:
    """A list, tuple, range, or array of one dimension; its integers as they are."""
    if isinstance(given, (list, tuple, range)):
        return list(given)
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "tolist"):
        return list(given.tolist())
    raise TypeError(f"fanouts: {_FORMS}; not {given!r}")


def _number(graph: OpenedGraph, etype: Etype, seen: Mapping[int, Any]) -> int:
    """A type's number, which was not seen before."""
    if not isinstance(etype, str) and not (isinstance(etype, tuple) and all(isinstance(word, str) for word in etype)):
        raise TypeError(f"fanouts: {etype!r} is no edge type's name")
    try:
        number = graph.etype_number(etype)
    except NotFoundError as error:
        raise NotFoundError(error.status, f"fanouts: {error}") from None
    if number in seen:
        raise _checks.invalid(f"fanouts: {graph.etypes[number]} is there twice")
    return number


def _hop(graph: OpenedGraph, hop: Fanout) -> list[int]:
    """One hop's count for each edge type."""
    if not isinstance(hop, Mapping):
        return [count(hop)] * len(graph.etypes)
    found: dict[int, int] = {}
    for etype, one in hop.items():
        found[_number(graph, etype, found)] = count(one)
    return [found.get(number, 0) for number in range(len(graph.etypes))]


def _by_type(graph: OpenedGraph, given: Mapping[Any, Any]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for etype, hops in given.items():
        found[_number(graph, etype, found)] = [count(one) for one in _hops(hops)]
    lacking = [name for number, name in enumerate(graph.etypes) if number not in found]
    if lacking:
        raise _checks.invalid(f"fanouts: there are none for {', '.join(lacking)}; 0 leaves a type out")
    if len({len(hops) for hops in found.values()}) != 1:
        raise _checks.invalid("fanouts: as many hops for each edge type, not " + ", ".join(
            f"{len(hops)} for {graph.etypes[number]}" for number, hops in found.items()))
    return [list(hop) for hop in zip(*[found[number] for number in range(len(graph.etypes))])]


def hops_of(graph: OpenedGraph, given: Fanouts) -> list[list[int]]:
    """[hop][edge type], from the seeds outwards; at least one hop. Raises TypeError, InvalidError, NotFoundError."""
    if isinstance(given, Mapping):
        hops = _by_type(graph, given)
    else:
        hops = [_hop(graph, hop) for hop in _hops(given)]
    if not hops:
        raise _checks.invalid(f"fanouts: {_FORMS}; not none")
    return hops
