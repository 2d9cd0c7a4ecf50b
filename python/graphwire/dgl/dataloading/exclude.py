"""Which edges are not sampled around a batch of edges: dgl.dataloading's exclude modes.

    the batch's edges -> they alone ("self"), their reverses too ("reverse_id", "reverse_types"), or a function's choice

A graph that keeps its users' edge ids (DistGraph.keeps_edge_ids) takes reverse_eids, and equal ids of two types, at
their word, as DGL does. In one that was renumbered those would be other edges: there the reverses are the edges that
lead from an edge's destination to its source, all of them, and reverse_eids that disagree are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import torch

from graphwire import _arrays
from graphwire.dgl.distributed.graph import DistGraph
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.types import Canonical

ByType = dict[Canonical, torch.Tensor]


def exclude_ids(g: Any, mode: Any, eids: Any, reverse_eids: Any, reverse_etypes: Any) -> Any:
    """Ids, or {edge type: ids}; None: nothing. mode: None, "self", "reverse_id", "reverse_types", or a function of the
    batch's edges. reverse_eids: None: reverses are found by their ends.

    Raises ValueError for another mode, for edge types that are no reverses, and for reverse_eids of a renumbered graph
    that name an edge which is no reverse; KeyError for a type that reverse_eids lacks.
    """
    if mode is None:
        return None
    if callable(mode):
        return mode(eids)
    if mode == "self":
        return eids
    if mode not in ("reverse_id", "reverse_types"):
        raise ValueError(f"unsupported mode {mode}: None, self, reverse_id, reverse_types")
    found = {etype: _int64(g, etype, ids) for etype, ids in _by_type(g, eids).items()}
    both = _and_mapped(g, found, reverse_eids) if mode == "reverse_id" else _and_typed(g, found, reverse_etypes)
    return both if isinstance(eids, Mapping) or len(both) > 1 else next(iter(both.values()))


def for_dist_graphs(original: Callable[..., Any]) -> Callable[..., Any]:
    """DGL's own _find_exclude_eids, which its samplers and collators call; of a DistGraph it is exclude_ids."""
    def find(g: Any, exclude_mode: Any, eids: Any, **maps: Any) -> Any:
        if isinstance(g, DistGraph):
            return exclude_ids(g, exclude_mode, eids, maps.get("reverse_eid_map"), maps.get("reverse_etype_map"))
        return original(g, exclude_mode, eids, **maps)

    return find


def _by_type(g: Any, given: Any) -> dict[Canonical, Any]:
    """{edge type: …}: what is no such mapping is of the only type."""
    if isinstance(given, Mapping):
        return {g.to_canonical_etype(etype): some for etype, some in given.items()}
    return {g.to_canonical_etype(None): given}


def _int64(g: Any, etype: Canonical, ids: Any) -> torch.Tensor:
    """Ids as the package takes them anywhere."""
    return torch.from_numpy(_arrays.ids_array(ids, g.num_edges(etype)))


def _and_mapped(g: Any, found: ByType, reverse_eids: Any) -> ByType:
    """Edges, and what reverse_eids has for them."""
    maps = None if reverse_eids is None else _by_type(g, reverse_eids)
    if maps is not None and found.keys() - maps.keys():
        raise KeyError(f"reverse_eids has nothing of {', '.join(map(str, found.keys() - maps.keys()))}")
    return {etype: torch.cat([ids, _mapped(g, etype, ids, None if maps is None else maps[etype])])
            for etype, ids in found.items()}


def _mapped(g: Any, etype: Canonical, ids: torch.Tensor, reverse_eids: Any) -> torch.Tensor:
    if reverse_eids is None:
        return _turned(g, etype, ids, etype)
    rows = reverse_eids if isinstance(reverse_eids, DistTensor) else torch.as_tensor(reverse_eids)
    named = _int64(g, etype, rows[ids])
    if g.keeps_edge_ids(etype):
        return named
    _check(g, etype, ids, named)
    return _turned(g, etype, ids, etype)


def _check(g: Any, etype: Canonical, ids: torch.Tensor, named: torch.Tensor) -> None:
    """Edges of a renumbered graph, and those that are to be their reverses."""
    way_out = ("the graph was renumbered when it was cut, and reverse_eids are of its new ids: leave reverse_eids out, "
               "and reverses are found by their ends")
    outside = torch.nonzero((named < 0) | (named >= g.num_edges(etype))).flatten()
    if len(outside):
        at = int(outside[0])
        raise ValueError(f"exclude='reverse_id': reverse_eids[{int(ids[at])}] is {int(named[at])}, and "
                         f"{':'.join(etype)} has {g.num_edges(etype)} edges; {way_out}")
    src, dst = g.find_edges(torch.cat([ids, named]), etype)
    count = len(ids)
    wrong = torch.nonzero((src[:count] != dst[count:]) | (dst[:count] != src[count:])).flatten()
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"exclude='reverse_id': edge {int(ids[at])} leads from {int(src[at])} to {int(dst[at])}, and "
                         f"edge {int(named[at])}, its reverse in reverse_eids, from {int(src[count + at])} to "
                         f"{int(dst[count + at])}; {way_out}")


def _and_typed(g: Any, found: ByType, reverse_etypes: Any) -> ByType:
    """Edges, and those of the types that hold their reverses."""
    if reverse_etypes is None:
        raise ValueError("exclude='reverse_types' needs reverse_etypes")
    turned = {g.to_canonical_etype(etype): g.to_canonical_etype(other) for etype, other in reverse_etypes.items()}
    both = dict(found)
    for etype, ids in found.items():
        if etype in turned:
            other = turned[etype]
            kept = g.keeps_edge_ids(etype) and g.keeps_edge_ids(other)
            theirs = ids if kept else _turned(g, etype, ids, other)
            both[other] = torch.cat([both[other], theirs]) if other in both else theirs
    return both


def _turned(g: Any, etype: Canonical, ids: torch.Tensor, other: Canonical) -> torch.Tensor:
    """Ids of all edges of `other` that lead from the destination of one of these edges to its source."""
    if (etype[0], etype[2]) != (other[2], other[0]):
        raise ValueError(f"exclude: {':'.join(other)} leads from {other[0]} to {other[2]}, so that none of its edges "
                         f"is the reverse of one of {':'.join(etype)}: name the edge type that has those in "
                         "reverse_etypes, with exclude='reverse_types'")
    src, dst = g.find_edges(ids, etype)
    found: torch.Tensor = g.edges_between(dst, src, other)
    return found
