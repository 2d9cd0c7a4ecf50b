"""Converts fanouts to a count for each hop and edge type, as C takes them. hops_of accepts three forms:

    [15, 10]                                    a count for each hop, from the seeds outwards; -1: all neighbours
    [15, {"cites": 5, ("a", "writes", "p"): 3}] a hop by edge type; the hop samples no edges of other types
    {"cites": [15, 10], "writes": [5, 0]}       PyTorch Geometric's form: the counts of all hops for each edge type; as
                                                in PyG, every edge type of the graph must be named

Each error begins with "fanouts". A string is always an edge type's name and never a count, even if it is "15".
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Union

from graphwire._base import checks
from graphwire._base.native import NotFoundError, lib
from graphwire._base.opened import Etype, OpenedGraph

Fanout = Union[int, Mapping[Any, int]]
Fanouts = Union[Sequence[Fanout], Mapping[Any, Sequence[int]]]
_FORMS = "a list of one count for each hop, from the seeds outwards, -1: all neighbours; or {edge type: such a list}"


def count(value: Any, what: str = "fanouts") -> int:
    """Returns one count, which is -1, or 0 or more. what: the argument's name. Raises TypeError and InvalidError."""
    found = checks.integer(what, value, -2**63, 2**31 - 1)
    if found < -1:
        raise checks.invalid(f"{what}: fanout {found}: it is 0 or more, or -1 for all neighbours")
    return found


def check_hops(hops: int, what: str = "fanouts") -> None:
    """Raises InvalidError for more hops than a mini-batch can have. what: the argument's name."""
    if hops > lib.GW_HOPS_MAX:
        raise checks.invalid(f"{what}: {hops} hops: at most {lib.GW_HOPS_MAX}")


def _hops(given: Any) -> list[Any]:
    """The elements of a list, tuple, range, or array of one dimension. Raises TypeError for anything else."""
    if isinstance(given, (list, tuple, range)):
        return list(given)
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "tolist"):
        return list(given.tolist())
    raise TypeError(f"fanouts: {_FORMS}; not {given!r}")


def etype_of(graph: OpenedGraph, etype: Etype, seen: Container[int], what: str = "fanouts") -> int:
    """An edge type's number. what: the argument that names the type. Raises InvalidError if `seen` has the number
    already. Also raises TypeError and NotFoundError."""
    if not isinstance(etype, str) and not (isinstance(etype, tuple) and all(isinstance(word, str) for word in etype)):
        raise TypeError(f"{what}: {etype!r} is not an edge type's name")
    try:
        number = graph.etype_number(etype)
    except NotFoundError as error:
        raise NotFoundError(error.status, f"{what}: {error}") from None
    if number in seen:
        raise checks.invalid(f"{what}: {graph.etypes[number]} is named twice")
    return number


def _hop(graph: OpenedGraph, hop: Fanout) -> list[int]:
    """The count of one hop for each edge type of the graph."""
    if not isinstance(hop, Mapping):
        return [count(hop)] * len(graph.etypes)
    found: dict[int, int] = {}
    for etype, one in hop.items():
        found[etype_of(graph, etype, found)] = count(one)
    return [found.get(number, 0) for number in range(len(graph.etypes))]


def _by_type(graph: OpenedGraph, given: Mapping[Any, Any]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for etype, hops in given.items():
        found[etype_of(graph, etype, found)] = [count(one) for one in _hops(hops)]
    lacking = [name for number, name in enumerate(graph.etypes) if number not in found]
    if lacking:
        raise checks.invalid(f"fanouts: {', '.join(lacking)} must be named too; 0 leaves a type out")
    if len({len(hops) for hops in found.values()}) != 1:
        raise checks.invalid("fanouts: each edge type needs the same number of hops, not " + ", ".join(
            f"{len(hops)} for {graph.etypes[number]}" for number, hops in found.items()))
    return [list(hop) for hop in zip(*[found[number] for number in range(len(graph.etypes))])]


def hops_of(graph: OpenedGraph, given: Fanouts) -> list[list[int]]:
    """The counts as [hop][edge type], from the seeds outwards, with at least one hop. Raises TypeError, InvalidError
    and NotFoundError."""
    if isinstance(given, Mapping):
        hops = _by_type(graph, given)
    else:
        hops = [_hop(graph, hop) for hop in _hops(given)]
    if not hops:
        raise checks.invalid(f"fanouts: {_FORMS}; an empty one has no hop")
    check_hops(len(hops))
    return hops
