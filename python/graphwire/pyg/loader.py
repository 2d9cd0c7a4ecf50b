"""The loaders of graphwire.pyg, under the name that they have in PyTorch Geometric: torch_geometric.loader."""

from __future__ import annotations

from graphwire.pyg.link_neighbor_loader import LinkNeighborLoader
from graphwire.pyg.loaders import LinkLoader, NodeLoader
from graphwire.pyg.neighbor_loader import NeighborLoader

__all__ = ["LinkLoader", "LinkNeighborLoader", "NeighborLoader", "NodeLoader"]
