"""Weighted sampling: converts weight= to C's gw_edge_rule. weights_of accepts three forms:

    None                                all edges are equally likely
    "strength"                          for every edge type that has the feature; the others are sampled uniformly
    {"cites": "strength", "writes": …}  a feature, or None, for each edge type; types without a name: uniformly

The names of features are compared with the graph, so that a wrong name is an error before anything is sampled. C checks
that a feature holds one number for each edge.

Errors begin with "weight". TypeError: a name is not a str. NotFoundError: the feature or the edge type does not exist;
the text lists those that do. InvalidError: an edge type is named twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from graphwire._base.escape import unescaped
from graphwire._base.native import NotFoundError, c_name, c_text, ffi, lib, text
from graphwire._base.opened import OpenedGraph
from graphwire._graph import fanouts

Weight = Union[str, Mapping[Any, Union[str, None]], None]
_FORM = "weight: the name of an edge feature, or {edge type: name}"


def edge_features(graph: OpenedGraph) -> dict[int, list[str]]:
    """{edge type's number: names of its features}, of the edge types that have features."""
    client, number = graph._opened(), 0
    found: dict[int, list[str]] = {}
    while (tensor := lib.gw_tensor_at(client.pointer, number)) != ffi.NULL:
        if tensor.of_edges and tensor.type < len(graph.etypes):
            found.setdefault(int(tensor.type), []).append(unescaped(text(tensor.name)))
        number += 1
    return found


def _missing(graph: OpenedGraph, name: str, number: int | None, known: Mapping[int, list[str]],
             what: str = "weight") -> NotFoundError:
    """The exception for a feature that does not exist. number: its edge type; None: any. what: the argument."""
    if number is not None:
        names = ", ".join(known.get(number, ())) or "no features"
        said = f"edge type {graph.etypes[number]} has no feature {name!r}; it has {names}"
    else:
        names = "; ".join(f"{graph.etypes[one]} has {', '.join(some)}" for one, some in known.items())
        said = f"no edge type has a feature {name!r}; {names or 'no edge type has features'}"
    return NotFoundError("GW_NOT_FOUND", f"{what}: {said}")


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{_FORM}, not {name!r}")
    c_text("weight", name)
    return name


def weights_of(graph: OpenedGraph, given: Weight, what: str = "weight") -> dict[int, str]:
    """{edge type's number: feature} of the edge types that are sampled by weight. what: names the argument in errors.
    """
    if given is None:
        return {}
    known = edge_features(graph)
    if not isinstance(given, Mapping):
        name = _checked(given)
        found = {number: name for number, names in known.items() if name in names}
        if not found:
            raise _missing(graph, name, None, known, what)
        return found
    seen: dict[int, str | None] = {}
    for etype, one in given.items():
        number = fanouts.etype_of(graph, etype, seen, what)
        seen[number] = one if one is None else _checked(one)
        if one is not None and one not in known.get(number, ()):
            raise _missing(graph, one, number, known, what)
    return {number: one for number, one in seen.items() if one is not None}


def weight_of(graph: OpenedGraph, given: Weight, number: int) -> str | None:
    """The feature of one edge type. A str must be a feature of this type."""
    if isinstance(given, Mapping) or given is None:
        return weights_of(graph, given).get(number)
    name, known = _checked(given), edge_features(graph)
    if name not in known.get(number, ()):
        raise _missing(graph, name, number, known)
    return name


class Rules:
    """pointer: the gw_edge_rule of every edge type, or NULL if all are sampled uniformly. The object owns the memory.
    """

    def __init__(self, graph: OpenedGraph, given: Weight):
        self.weights = weights_of(graph, given)
        self._names = {number: ffi.new("char[]", c_name("weight", name)) for number, name in self.weights.items()}
        self.pointer = ffi.NULL
        if self._names:
            self.pointer = ffi.new("struct gw_edge_rule[]", len(graph.etypes))
            for number, name in self._names.items():
                self.pointer[number].weight = name
