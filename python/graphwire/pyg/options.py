"""Arguments of PyTorch Geometric's loaders that graphwire.pyg does not have, each refused by its name."""

from __future__ import annotations

from typing import Any

from torch_geometric.sampler.base import SubgraphType


def _missing(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: graphwire.pyg does not have this kind of sampling")


def refuse(subgraph_type: Any, directed: bool) -> None:
    """Raises NotImplementedError, which names the option that asks for a kind of sampling that does not exist."""
    if not directed:
        raise _missing('directed=False, which is subgraph_type="induced"')
    if SubgraphType(subgraph_type) == SubgraphType.induced:
        raise _missing('subgraph_type="induced"')
