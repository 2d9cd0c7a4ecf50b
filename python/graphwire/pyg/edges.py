"""Ids of edges as PyTorch Geometric's users have them: columns of their own edge_index.

In a graph in one part e_id, FeatureStore.edge_rows and GraphStore.coo are in these ids. The way of an edge id:

    sampler -> positions -> PyG's loader asks edge_permutation[positions] -> e_id -> edge_rows: positions again -> rows

In a graph in several parts, and in one without original ids, ids are the graph's own, and a warning says so once.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from graphwire.edge_ids import EdgeIds
from graphwire.graph import Graph
from graphwire.pyg.subgraph import EdgeType, triple


def edge_ids(graph: Graph) -> EdgeIds:
    """What translates; warns, once for a graph, where it does not."""
    ids = EdgeIds(graph)
    unknown = [etype for etype in graph.etypes if not ids.is_known(etype)]
    if unknown and not graph._edge_ids_told:
        graph._edge_ids_told = True
        if graph.num_parts > 1:
            why = f"is in {graph.num_parts} parts"
            way = 'the features "orig_id" of nodes and edges lead to yours'
        else:
            why = f"has no original ids of {', '.join(unknown)}"
            way = "make it again to have yours (graphwire import --edge-ids)"
        warnings.warn(f"graph {graph.name} {why}: the ids of these edges that graphwire.pyg takes and returns (e_id, "
                      f"edge_rows, the order of coo()) are the graph's, and not columns of your edge_index; {way}",
                      UserWarning, stacklevel=3)
    return ids


class EdgePermutation:
    """BaseSampler.edge_permutation of one edge type: permutation[positions] are the original ids, [len(positions)]
    int64, on the device of positions. They are fetched from the graph's owner: it holds no ids itself."""

    def __init__(self, ids: EdgeIds, etype: EdgeType):
        self._ids, self._etype = ids, etype

    def __getitem__(self, positions: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self._ids.to_original(self._etype, positions)).to(positions.device)

    def to(self, *_: Any, **__: Any) -> EdgePermutation:
        """Itself, as PyG asks for it on a feature's device: what comes out follows what goes in."""
        return self

    def cpu(self) -> EdgePermutation:
        return self


class EdgePermutations(dict[EdgeType, EdgePermutation]):
    """The same of every edge type that has original ids, by (source, relation, destination). Of a homogeneous graph PyG
    asks the whole, by positions."""

    def __init__(self, ids: EdgeIds, graph: Graph):
        super().__init__((triple(name), EdgePermutation(ids, triple(name)))
                         for name in graph.etypes if ids.is_known(name))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, torch.Tensor):
            (only,) = self.values()
            return only[key]
        return super().__getitem__(key)

    def to(self, *_: Any, **__: Any) -> EdgePermutations:
        """As EdgePermutation.to."""
        return self

    def cpu(self) -> EdgePermutations:
        return self
