"""Translates edge ids for PyTorch Geometric, whose edge ids are columns of the user's own edge_index.

A NeighborSampler returns positions in the graph, as PyG's own samplers do. PyG's loader translates them:

    the sampler returns positions -> PyG's loader asks edge_permutation[positions] -> e_id
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.subgraph import EdgeType, triple


class EdgePermutation:
    """BaseSampler.edge_permutation of one edge type. permutation[positions] gives the original ids,
    [len(positions)] int64, on the device of positions. It fetches them from their owners, and stores none itself."""

    def __init__(self, ids: OriginalIds, etype: EdgeType):
        self._ids, self._etype = ids, ":".join(etype)

    def __getitem__(self, positions: torch.Tensor) -> torch.Tensor:
        return self._ids.edges_to_user(self._etype, positions).to(positions.device)

    def to(self, *_: Any, **__: Any) -> EdgePermutation:
        """Returns itself. PyG asks for a permutation on a feature's device; the result is on the device of positions
        anyway."""
        return self

    def cpu(self) -> EdgePermutation:
        return self


class EdgePermutations(dict[EdgeType, EdgePermutation]):
    """{(source, relation, destination): EdgePermutation} of these edge types, if they have original ids. For a
    homogeneous graph, PyG indexes this object itself by positions."""

    def __init__(self, ids: OriginalIds, etypes: Iterable[str]):
        super().__init__((triple(name), EdgePermutation(ids, triple(name)))
                         for name in etypes if ids.has_edges(name))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, torch.Tensor):
            (only,) = self.values()
            return only[key]
        return super().__getitem__(key)

    def to(self, *_: Any, **__: Any) -> EdgePermutations:
        """Returns itself, as EdgePermutation.to does."""
        return self

    def cpu(self) -> EdgePermutations:
        return self
