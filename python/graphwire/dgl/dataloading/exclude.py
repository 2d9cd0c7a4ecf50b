"""Finds the edges that are not sampled around a batch of edges: dgl.dataloading's exclude modes.

    the batch's edges -> "self": these edges; "reverse_id", "reverse_types": also their reverses; or a function's result

In a graph that keeps original edge ids (DistGraph.keeps_edge_ids), reverses are found as in DGL: by reverse_eids, or by
equal ids in two types. In a renumbered graph these ids would name other edges. There, the reverses are all edges from
an edge's destination to its source, and reverse_eids that disagree with this are refused.

Errors: ValueError and KeyError; exclude_ids lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import torch

from graphwire.dgl.distributed.graph import DistGraph
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.id_arrays import edges_of, ids_tensor
from graphwire.dgl.types import Canonical

ByType = dict[Canonical, torch.Tensor]


def exclude_ids(g: Any, mode: Any, eids: Any, reverse_eids: Any, reverse_etypes: Any) -> Any:
    """The ids to exclude, or {edge type: ids}; None: no edges.

    mode: None, "self", "reverse_id", "reverse_types", or a function of the batch's edges.
    eids: the batch's edges, ids or {edge type: ids}.
    reverse_eids: the id of each edge's reverse; None: reverses are found by their ends.
    reverse_etypes: for "reverse_types", {edge type: edge type of its reverses}.

    Raises ValueError for another mode; for an edge type whose edges cannot be reverses; and if the graph is renumbered
    and reverse_eids names an edge that is not the reverse. Raises KeyError for a type that reverse_eids lacks.
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
    """Wraps DGL's _find_exclude_eids, which its samplers and collators call. The wrapper calls exclude_ids for a
    DistGraph."""
    def find(g: Any, exclude_mode: Any, eids: Any, **maps: Any) -> Any:
        if isinstance(g, DistGraph):
            return exclude_ids(g, exclude_mode, eids, maps.get("reverse_eid_map"), maps.get("reverse_etype_map"))
        return original(g, exclude_mode, eids, **maps)

    return find


def _by_type(g: Any, given: Any) -> dict[Canonical, Any]:
    """A mapping by canonical edge type. A value that is not a mapping belongs to the only type."""
    if isinstance(given, Mapping):
        return {g.to_canonical_etype(etype): some for etype, some in given.items()}
    return {g.to_canonical_etype(None): given}


def _int64(g: Any, etype: Canonical, ids: Any) -> torch.Tensor:
    """Ids in any form that the package accepts, as int64."""
    return ids_tensor(ids, edges_of(g, etype))


def _and_mapped(g: Any, found: ByType, reverse_eids: Any) -> ByType:
    """The edges, and the reverses that reverse_eids names."""
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
    """Checks, in a renumbered graph, that the edges `named` are the reverses of the edges `ids`. Raises ValueError."""
    remedy = ("the graph was renumbered by its partition, and reverse_eids must use its new ids: leave reverse_eids "
              "out, and reverses are found by their ends")
    outside = torch.nonzero((named < 0) | (named >= g.num_edges(etype))).flatten()
    if len(outside):
        at = int(outside[0])
        raise ValueError(f"exclude='reverse_id': reverse_eids[{int(ids[at])}] is {int(named[at])}, and "
                         f"{':'.join(etype)} has {g.num_edges(etype)} edges; {remedy}")
    src, dst = g.find_edges(torch.cat([ids, named]), etype)
    count = len(ids)
    wrong = torch.nonzero((src[:count] != dst[count:]) | (dst[:count] != src[count:])).flatten()
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"exclude='reverse_id': edge {int(ids[at])} leads from {int(src[at])} to {int(dst[at])}, and "
                         f"edge {int(named[at])}, its reverse in reverse_eids, from {int(src[count + at])} to "
                         f"{int(dst[count + at])}; {remedy}")


def _and_typed(g: Any, found: ByType, reverse_etypes: Any) -> ByType:
    """The edges, and their reverses in the edge types that reverse_etypes names."""
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
    """The ids of all edges of the type `other` that lead from the destination of a given edge to that edge's source."""
    if (etype[0], etype[2]) != (other[2], other[0]):
        raise ValueError(f"exclude: {':'.join(other)} leads from {other[0]} to {other[2]}, so that none of its edges "
                         f"is the reverse of one of {':'.join(etype)}: name the edge type of the reverses in "
                         "reverse_etypes, with exclude='reverse_types'")
    src, dst = g.find_edges(ids, etype)
    found: torch.Tensor = g.edges_between(dst, src, other)
    return found
