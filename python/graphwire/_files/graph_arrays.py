"""A graph in memory as arrays, which the conversions of graphs make and partition_graph writes.

Errors: ValueError and TypeError, which name the type, the column or the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphwire._files import rows as _rows

Canonical = tuple[str, str, str]
HOMOGENEOUS: Canonical = ("_N", "_E", "_N")


class Arrays:
    """A graph as arrays.

    counts: {node type: number of nodes}.
    guessed: node types whose number of nodes is only the greatest id of an edge plus 1.
    ids: {node type: original ids}, for types whose ids are places in these. Integers, or text as objects.
    numbered: node types whose text ids have been numbered: the order of their nodes is not the caller's.
    edges: {edge type: (sources, destinations)}, int64 [edges] each.
    node_features: {(node type, name): [nodes, …]}. edge_features: {(edge type, name): [edges, …]}.
    left_out: {attribute: why}, for attributes of the user's graph that are not among the features.
    unplaced: names of features that are taken for those of nodes, and whose rows may be those of edges.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.guessed: set[str] = set()
        self.ids: dict[str, np.ndarray] = {}
        self.numbered: set[str] = set()
        self.edges: dict[Canonical, tuple[np.ndarray, np.ndarray]] = {}
        self.node_features: dict[tuple[str, str], np.ndarray] = {}
        self.edge_features: dict[tuple[Canonical, str], np.ndarray] = {}
        self.left_out: dict[str, str] = {}
        self.unplaced: set[str] = set()

    def add_edges(self, etype: Canonical, src: Any, dst: Any, floats: bool = False) -> None:
        """floats: ids may be whole numbers among floats, as in tables."""
        of = ":".join(etype)
        pair = _rows.ids(src, f"sources of {of}", floats), _rows.ids(dst, f"destinations of {of}", floats)
        if len(pair[0]) != len(pair[1]):
            raise ValueError(f"{of}: {len(pair[0])} sources and {len(pair[1])} destinations")
        for ntype, ids in zip((etype[0], etype[2]), pair):
            largest = -1 if _rows.is_text(ids) or not len(ids) else int(ids.max())
            self.counts[ntype] = max(self.counts.get(ntype, 0), largest + 1)
        self.edges[etype] = pair

    def add_columns(self, nodes: Mapping[Any, Mapping[str, Any]], edges: Mapping[Any, Mapping[str, Any]]) -> None:
        for ntype, columns in nodes.items():
            self.node_features.update({(ntype, name): _rows.array(rows, f"{name} of {ntype}")
                                       for name, rows in columns.items()})
        for etype, columns in edges.items():
            self.edge_features.update({(etype, name): _rows.array(rows, f"{name} of {':'.join(etype)}")
                                       for name, rows in columns.items()})

    def number_texts(self) -> None:
        """Replaces text ids by numbers, in the order of their first appearance. Raises TypeError for a type whose ids
        are text in one place and integers in another."""
        numbers: dict[str, dict[Any, int]] = {}
        for etype, pair in self.edges.items():
            for ntype, ids in zip((etype[0], etype[2]), pair):
                if _rows.is_text(ids):
                    numbers[ntype] = {}
        for etype, pair in self.edges.items():
            numbered = []
            for ntype, ids in zip((etype[0], etype[2]), pair):
                if ntype in numbers and len(ids) and not _rows.is_text(ids):
                    raise TypeError(f"{':'.join(etype)}: ids of {ntype} are integers here and text elsewhere")
                known = numbers.get(ntype)
                numbered.append(ids if known is None else np.array(
                    [known.setdefault(name, len(known)) for name in ids.tolist()], np.int64))
            self.edges[etype] = numbered[0], numbered[1]
        for ntype, known in numbers.items():
            if len({type(name) for name in known}) > 1:
                raise TypeError(f"ids of {ntype} are str in one place and bytes in another")
            self.ids[ntype] = np.array([*known, None], object)[:-1]
            self.counts[ntype] = len(known)
        self.numbered |= set(numbers)
