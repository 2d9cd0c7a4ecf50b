"""Which edges are not sampled around a batch of edges: dgl.dataloading's exclude modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def exclude_ids(g: Any, mode: Any, eids: Any, reverse_eids: Any, reverse_etypes: Any) -> Any:
    """Ids, or {edge type: ids}; None: nothing. mode: None, "self", "reverse_id", "reverse_types", or a function of the
    batch's edges."""
    if mode is None:
        return None
    if callable(mode):
        return mode(eids)
    if mode == "self":
        return eids
    if mode == "reverse_id":
        if reverse_eids is None:
            raise ValueError("exclude='reverse_id' needs reverse_eids")
        if not isinstance(eids, Mapping):
            return torch.cat([eids, torch.as_tensor(reverse_eids[eids])])
        by_type = {g.to_canonical_etype(etype): ids for etype, ids in reverse_eids.items()}
        return {etype: torch.cat([ids, torch.as_tensor(by_type[etype][ids])]) for etype, ids in eids.items()}
    if mode == "reverse_types":
        if reverse_etypes is None:
            raise ValueError("exclude='reverse_types' needs reverse_etypes")
        found = {g.to_canonical_etype(etype): ids for etype, ids in eids.items()}
        turned = {g.to_canonical_etype(etype): g.to_canonical_etype(other) for etype, other in reverse_etypes.items()}
        both = dict(found)
        for etype, ids in found.items():
            if etype in turned:
                other = turned[etype]
                both[other] = torch.cat([both[other], ids]) if other in found else ids
        return both
    raise ValueError(f"unsupported mode {mode}: None, self, reverse_id, reverse_types")
