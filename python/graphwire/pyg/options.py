"""Older words of PyTorch Geometric's loaders for arguments that they have now."""

from __future__ import annotations

import warnings
from typing import Any

from torch_geometric.sampler.base import SubgraphType

from graphwire._base.caller import level_of_the_caller


def kind_of(subgraph_type: Any, directed: bool) -> SubgraphType:
    """The kind of subgraph that both arguments ask for. Warns of directed=False, as PyG does."""
    if directed:
        return SubgraphType(subgraph_type)
    warnings.warn("directed=False is deprecated: use subgraph_type='induced'", UserWarning,
                  stacklevel=level_of_the_caller())
    return SubgraphType.induced
