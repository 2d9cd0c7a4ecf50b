"""How the edges of each type are drawn: converts weight=, time=, end= and pick= to C's gw_edge_rule.

    "NAME"                          every edge type that has it; the other types are sampled uniformly
    {"cites": "NAME", "writes": …}  a name, or None, for each edge type; types without a name: uniformly
    None                            no type

A weight is an edge feature. A time, and an end, is an edge feature NAME; or NAME.source, the node feature NAME of the
edges' sources, if the parts store it (`partition --time NAME`). gw_edge_times decides this for all interfaces.

Names are compared with the graph, so that a wrong name is an error before anything is sampled. C checks that a feature
holds weights or times.

Errors begin with the argument's name. TypeError: a name is not a str. NotFoundError: the feature or the edge type does
not exist, or the parts do not store a node feature with the edges; the text says what exists, or what to do.
InvalidError: an edge type is named twice; or there is no time, and another argument needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from graphwire._base import checks
from graphwire._base.escape import unescaped
from graphwire._base.native import GraphwireError, NotFoundError, c_name, c_text, check, ffi, lib, text
from graphwire._base.opened import OpenedGraph
from graphwire._graph import fanouts

Weight = Union[str, Mapping[Any, Union[str, None]], None]
Time = Union[str, Mapping[Any, Union[str, None]], None]
PICKS = {"uniform": "GW_PICK_UNIFORM", "last": "GW_PICK_LAST"}
SOURCE = ".source"


def listed(graph: OpenedGraph) -> Iterator[tuple[Any, str]]:
    """(gw_tensor, name) of each feature."""
    client, number = graph._opened(), 0
    while (tensor := lib.gw_tensor_at(client.pointer, number)) != ffi.NULL:
        yield tensor, unescaped(text(tensor.name))
        number += 1


def unit_of(tensor: Any) -> str | None:
    """The unit of a gw_tensor of times; None: plain numbers."""
    return None if tensor.unit == ffi.NULL else text(tensor.unit)


def edge_features(graph: OpenedGraph) -> dict[int, list[str]]:
    """{edge type's number: names of its features}, of the edge types that have features."""
    found: dict[int, list[str]] = {}
    for tensor, name in listed(graph):
        if tensor.of_edges and tensor.type < len(graph.etypes):
            found.setdefault(int(tensor.type), []).append(name)
    return found


def _missing(graph: OpenedGraph, name: str, number: int | None, what: str) -> NotFoundError:
    """The exception for a feature that does not exist. number: its edge type; None: any. what: the argument."""
    known = edge_features(graph)
    if number is not None:
        names = ", ".join(known.get(number, ())) or "no features"
        said = f"edge type {graph.etypes[number]} has no feature {name!r}; it has {names}"
    else:
        names = "; ".join(f"{graph.etypes[one]} has {', '.join(some)}" for one, some in known.items())
        said = f"no edge type has a feature {name!r}; {names or 'no edge type has features'}"
    return NotFoundError("GW_NOT_FOUND", f"{what}: {said}")


def _checked(name: Any, what: str, form: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{what}: {form}, or {{edge type: name}}, not {checks.shown(name)}")
    c_text(what, name)
    return name


class _Weights:
    """Finds the edge feature of a name: finder(name, edge type's number) returns the name that a rule takes, or None.
    """

    form = "the name of an edge feature"

    def __init__(self, graph: OpenedGraph, what: str):
        self._known = edge_features(graph)

    def __call__(self, name: str, number: int) -> str | None:
        return name if name in self._known.get(number, ()) else None


class _Times:
    """Finds the times of a name, as _Weights finds weights. tensors: the gw_tensor of each edge type that has been
    found."""

    form = "the name of a feature of edges or of nodes"

    def __init__(self, graph: OpenedGraph, what: str):
        self._client, self._what = graph._opened(), what
        self.tensors: dict[int, Any] = {}

    def __call__(self, name: str, number: int) -> str | None:
        out = ffi.new("const struct gw_tensor **")
        try:
            check(lib.gw_edge_times(self._client.pointer, number, c_name(self._what, name), out))
        except GraphwireError as error:
            raise type(error)(error.status, f"{self._what}: {error}") from None
        if out[0] == ffi.NULL:
            return None
        self.tensors[number] = out[0]
        return unescaped(text(out[0].name))


def names_in(weight: Weight, what: str) -> list[str]:
    """The names of weights. Raises TypeError for another form."""
    given = [] if weight is None else weight.values() if isinstance(weight, Mapping) else [weight]
    return [_checked(name, what, _Weights.form) for name in given if name is not None]


def _named(graph: OpenedGraph, given: Any, what: str, finder: Any) -> dict[int, str]:
    """{edge type's number: the name that a rule takes} of the edge types that `given` gives a name."""
    if not isinstance(given, Mapping):
        name = _checked(given, what, finder.form)
        every = {number: finder(name, number) for number in range(len(graph.etypes))}
        if not any(every.values()):
            raise _missing(graph, name, None, what)
        return {number: one for number, one in every.items() if one is not None}
    seen: dict[int, str | None] = {}
    for etype, one in given.items():
        number = fanouts.etype_of(graph, etype, seen, what)
        seen[number] = None
        if one is not None:
            seen[number] = finder(_checked(one, what, finder.form), number)
            if seen[number] is None:
                raise _missing(graph, one, number, what)
    return {number: one for number, one in seen.items() if one is not None}


class Rules:
    """The rules of all edge types. pointer: a gw_edge_rule for each type, or NULL if all are sampled uniformly.

    weights, times, ends: {edge type's number: the name that its rule has}. columns: {edge type's number: gw_tensor} of
    the times. unit: that of all times and ends; None: not all have one. name: the name of times as it was given, if
    it was the same for all types. The object owns the memory.

    only: the number of an edge type; then a name must be one of this type, and `pointer` has its rule alone.
    what: names other than those of the arguments, for errors, {argument: name}.
    """

    def __init__(self, graph: OpenedGraph, weight: Weight = None, *, time: Time = None, end: Time = None,
                 pick: str = "uniform", only: int | None = None, what: Mapping[str, str] | None = None):
        words = {name: (what or {}).get(name, name) for name in ("weight", "time", "end", "pick")}
        self._client = graph._opened()  # owns the columns
        self.pick = checks.choice(words["pick"], pick, PICKS)
        self.weights = self._found(graph, weight, words["weight"], _Weights, only)[0]
        self.times, self.columns = self._found(graph, time, words["time"], _Times, only)
        self.ends, end_columns = self._found(graph, end, words["end"], _Times, only)
        given = {name for name in (time.values() if isinstance(time, Mapping) else [time]) if name is not None}
        self.name = given.pop() if len(given) == 1 else None
        self.what = words["time"]
        self.unit: str | None = None
        self._units: dict[str | None, str] = {}  # {unit: the first of its columns}
        self.compare_with(graph, [*self.columns.values(), *end_columns.values()])
        if not self.times:
            for name, value in (("end", end), ("pick", None if self.pick == "uniform" else pick)):
                self.needs_time(words[name], value)
        self._texts: dict[str, Any] = {}
        self._table(len(graph.etypes), only)

    @staticmethod
    def _found(graph: OpenedGraph, given: Any, what: str, kind: Any,
               only: int | None) -> tuple[dict[int, str], dict[int, Any]]:
        if given is None:
            return {}, {}
        finder = kind(graph, what)
        if only is not None and not isinstance(given, Mapping):
            given = {graph.etypes[only]: given}
        found = _named(graph, given, what, finder)
        if only is not None:
            found = {number: name for number, name in found.items() if number == only}
        return found, {number: one for number, one in getattr(finder, "tensors", {}).items() if number in found}

    def needs_time(self, what: str, value: Any) -> None:
        """Raises InvalidError if an argument is given, and no edge is drawn by time."""
        if value is not None and not self.times:
            raise checks.invalid(f"{what} needs {self.what}=, the times of edges")

    def compare_with(self, graph: OpenedGraph, tensors: Iterable[Any]) -> None:
        """Times of seeds are compared with these gw_tensors too: sets the unit. Raises InvalidError for several units.
        """
        for tensor in tensors:
            types = graph.etypes if tensor.of_edges else graph.ntypes
            self._units.setdefault(unit_of(tensor), f"{types[tensor.type]} has {unescaped(text(tensor.name))!r}")
        known = {unit: said for unit, said in self._units.items() if unit is not None}
        if len(known) > 1:
            (unit, one), (other_unit, other) = list(known.items())[:2]
            raise checks.invalid(f"{self.what}: {one} in {unit}, and {other} in {other_unit}: name times of one unit, "
                                 "because a seed has one time")
        self.unit = next(iter(known)) if known and None not in self._units else None

    def _char(self, name: str) -> Any:
        return self._texts.setdefault(name, ffi.new("char[]", c_name("name", name)))

    def _table(self, count: int, only: int | None) -> None:
        self.pointer = ffi.NULL
        numbers = self.weights.keys() | self.times.keys() | self.ends.keys()
        if not numbers:
            return
        self.pointer = ffi.new("struct gw_edge_rule[]", count if only is None else 1)
        for number in numbers:
            rule = self.pointer[number if only is None else 0]
            for field, names in (("weight", self.weights), ("time", self.times), ("end", self.ends)):
                if number in names:
                    setattr(rule, field, self._char(names[number]))
            if number in self.times:
                rule.pick = getattr(lib, PICKS[self.pick])
