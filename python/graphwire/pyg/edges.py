"""Translates edge ids for PyTorch Geometric, whose edge ids are columns of the user's own edge_index.

In a graph in one part, e_id, FeatureStore.edge_rows and GraphStore.coo use these original ids. An edge id's path:

    the sampler returns positions -> PyG's loader asks edge_permutation[positions] -> e_id
    edge_rows(e_id) -> positions -> rows

In a graph in several parts, and in a graph without original ids, ids are the graph's own. A warning reports this once.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from graphwire.edge_ids import EdgeIds
from graphwire.graph import Graph
from graphwire.pyg.subgraph import EdgeType, triple
from graphwire.ranks import level_of_the_caller


def edge_ids(graph: Graph) -> EdgeIds:
    """The EdgeIds of a graph. Warns once for each graph if an edge type has no original ids."""
    ids = EdgeIds(graph)
    unknown = [etype for etype in graph.etypes if not ids.is_known(etype)]
    if unknown and not graph._edge_ids_told:
        graph._edge_ids_told = True
        if graph.num_parts > 1:
            why = f"is in {graph.num_parts} parts"
            remedy = 'the features "orig_id" of nodes and edges hold yours'
        else:
            why = f"has no original ids of {', '.join(unknown)}"
            remedy = "import the graph again to have yours (graphwire import --edge-ids)"
        warnings.warn(f"graph {graph.name} {why}: the ids of these edges that graphwire.pyg takes and returns (e_id, "
                      f"edge_rows, the order of coo()) are the graph's, and not columns of your edge_index; {remedy}",
                      UserWarning, stacklevel=level_of_the_caller())
    return ids


class EdgePermutation:
    """BaseSampler.edge_permutation of one edge type. permutation[positions] gives the original ids,
    [len(positions)] int64, on the device of positions. It fetches them from their owners, and stores none itself."""

    def __init__(self, ids: EdgeIds, etype: EdgeType):
        self._ids, self._etype = ids, etype

    def __getitem__(self, positions: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self._ids.to_original(self._etype, positions)).to(positions.device)

    def to(self, *_: Any, **__: Any) -> EdgePermutation:
        """Returns itself. PyG asks for a permutation on a feature's device; the result is on the device of positions
        anyway."""
        return self

    def cpu(self) -> EdgePermutation:
        return self


class EdgePermutations(dict[EdgeType, EdgePermutation]):
    """{(source, relation, destination): EdgePermutation} of all edge types with original ids. For a homogeneous graph,
    PyG indexes this object itself by positions."""

    def __init__(self, ids: EdgeIds, graph: Graph):
        super().__init__((triple(name), EdgePermutation(ids, triple(name)))
                         for name in graph.etypes if ids.is_known(name))

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
