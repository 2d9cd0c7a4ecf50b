"""Arguments of PyTorch Geometric's loaders that graphwire.pyg does not have, each refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_geometric.sampler.base import SubgraphType

_USUAL: dict[str, Any] = {"disjoint": False, "temporal_strategy": "uniform", "time_attr": None, "input_time": None,
                          "edge_label_time": None}


def _missing(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: graphwire.pyg does not have this kind of sampling")


def refuse(given: Mapping[str, Any]) -> None:
    """Raises NotImplementedError, which names the first option that asks for a kind of sampling that does not exist."""
    for name, usual in _USUAL.items():
        if name in given and not (given[name] is None or given[name] is usual or given[name] == usual):
            raise _missing(f"{name}={given[name]!r}" if isinstance(given[name], (bool, str)) else name)
    if not given.get("directed", True):
        raise _missing('directed=False, which is subgraph_type="induced"')
    if SubgraphType(given.get("subgraph_type", "directional")) == SubgraphType.induced:
        raise _missing('subgraph_type="induced"')
