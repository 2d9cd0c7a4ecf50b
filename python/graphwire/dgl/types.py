"""Node and edge types by the names that DGL's callers use for them."""

from __future__ import annotations

from typing import Any

import graphwire
from graphwire._base.keywords import keywords
from graphwire.dgl.host import error_type

Canonical = tuple[str, str, str]


@keywords
class Types:
    """The types of a graph. ntypes: names of node types; canonical_etypes: (source type, relation, destination type).
    Unknown and ambiguous names raise DGLError, in DGL's words."""

    def __init__(self, ntypes: list[str], canonical_etypes: list[Canonical]):
        self.ntypes, self.canonical_etypes = list(ntypes), list(canonical_etypes)

    @classmethod
    def of(cls, graph: graphwire.Graph) -> Types:
        return cls(graph.ntypes, [_canonical(etype) for etype in graph.etypes])

    @property
    def etypes(self) -> list[str]:
        return [relation for _, relation, _ in self.canonical_etypes]

    @property
    def is_homogeneous(self) -> bool:
        return len(self.ntypes) == 1 and len(self.canonical_etypes) == 1

    def get_ntype_id(self, ntype: str | None) -> int:
        """A node type's number. None and "_N" stand for the only type."""
        if ntype in self.ntypes:
            return self.ntypes.index(ntype)
        if ntype in (None, "_N"):
            if len(self.ntypes) == 1:
                return 0
            raise error_type()(f"Node type name must be specified if there are more than one node types: "
                               f"{', '.join(self.ntypes)}.")
        raise error_type()(f'Node type "{ntype}" does not exist; there are {", ".join(self.ntypes)}.')

    def to_canonical_etype(self, etype: Any) -> Canonical:
        """(source type, relation, destination type) of an edge type in any form. None and "_E" stand for the only type.
        """
        if isinstance(etype, (tuple, list)) and tuple(etype) in self.canonical_etypes:
            return tuple(etype)
        if isinstance(etype, str) and ":" in etype and _canonical(etype) in self.canonical_etypes:
            return _canonical(etype)
        found = [full for full in self.canonical_etypes if full[1] == etype]
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise error_type()(f'Edge type "{etype}" is ambiguous. Please use canonical edge type in the form of '
                               "(srctype, etype, dsttype)")
        if etype in (None, "_E", ("_N", "_E", "_N")):
            if len(self.canonical_etypes) == 1:
                return self.canonical_etypes[0]
            raise error_type()("Edge type name must be specified if there are more than one edge types: "
                               f"{', '.join(self.etypes)}.")
        raise error_type()(f'Edge type "{etype}" does not exist; there are {", ".join(self.etypes)}.')

    def get_etype_id(self, etype: Any) -> int:
        return self.canonical_etypes.index(self.to_canonical_etype(etype))


@keywords
def _etype_tuple_to_str(c_etype: Canonical) -> str:
    """"source:relation:destination" of a canonical edge type. Raises AssertionError for anything else."""
    if not isinstance(c_etype, tuple) or len(c_etype) != 3:
        raise AssertionError(f"a canonical edge type is (source type, relation, destination type), not {c_etype!r}")
    return ":".join(c_etype)


@keywords
def _etype_str_to_tuple(c_etype: str) -> Canonical:
    """The canonical edge type of "source:relation:destination". Raises AssertionError for another text."""
    if c_etype.count(":") != 2:
        raise AssertionError(f'a canonical edge type is "source:relation:destination", not {c_etype!r}')
    return _canonical(c_etype)


def _canonical(etype: str) -> Canonical:
    src, relation, dst = etype.split(":")
    return src, relation, dst
