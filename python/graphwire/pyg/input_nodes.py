"""The seeds of a NeighborLoader: input_nodes in each of PyTorch Geometric's forms, as ids of the graph.

    None, a mask, ids, "type", ("type", ids), a feature of the graph -> the user's ids -> the graph's ids

Errors: ValueError and TypeError for the form; those of Graph.ids_of for ids.
"""

from __future__ import annotations

from typing import Any

import torch

from graphwire.graph import Feature
from graphwire.pyg.sources import Source


class InputNodes:
    """ntype: the node type of the seeds; typed: whether batches name types. given, nodes: the ids in the user's data
    and in the graph, [seeds] int64. input_id: what a batch has as input_id, [seeds]; None: the places of the seeds."""

    def __init__(self, source: Source, data: Any, input_nodes: Any, input_id: Any):
        graph = source.graph
        named = isinstance(input_nodes, str) or (
            isinstance(input_nodes, (list, tuple)) and len(input_nodes) == 2 and isinstance(input_nodes[0], str))
        if source.typed is False and named:
            raise ValueError(f"input_nodes names a type, and the data has none: {input_nodes!r:.100}")
        if source.typed and not named:
            raise ValueError(f'input_nodes of which type? give "type" or ("type", ids); there are '
                             f"{', '.join(graph.ntypes)}")
        self.typed = named
        kind, ids = (None, input_nodes) if not named else (input_nodes, None) if isinstance(input_nodes, str) else (
            input_nodes)
        self.ntype = graph.ntypes[graph.ntype_number(kind)]
        self.input_id = None if input_id is None else torch.as_tensor(input_id)
        if ids is None:
            self.nodes, in_rows = source.ids.all_nodes(self.ntype)
            self.given = torch.arange(len(self.nodes)) if in_rows else source.ids.nodes_to_user(self.ntype, self.nodes)
        else:
            self._take(source, ids)
        if self.input_id is not None and len(self.input_id) != len(self.nodes):
            raise ValueError(f"input_id: {len(self.input_id)} values for {len(self.nodes)} input_nodes")

    def _take(self, source: Source, ids: Any) -> None:
        if isinstance(ids, Feature):  # of the graph, so its rows are in the graph's order
            self.nodes = torch.as_tensor(ids[:]).nonzero().view(-1)
            self.given = source.ids.nodes_to_user(self.ntype, self.nodes)
            self.input_id = self.given if self.input_id is None else self.input_id
            return
        try:
            ids = torch.as_tensor(ids, device="cpu") if hasattr(ids, "__array__") else torch.tensor(ids)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"input_nodes are ids, or a mask of bools, not {ids!r:.100}: {error}") from error
        if not ids.numel():
            ids = ids.to(torch.int64)
        if ids.dtype == torch.bool:
            count = source.graph.num_nodes(self.ntype)
            if ids.shape != (count,):
                raise IndexError(f"input_nodes: a mask of shape {tuple(ids.shape)} does not fit {count} nodes")
            every, in_rows = source.ids.all_nodes(self.ntype)
            if not in_rows:
                raise ValueError(f"input_nodes: a mask has a row for each id from 0 to {count - 1}, and nodes of "
                                 f"{self.ntype} have other original ids: give ids")
            self.given = ids.nonzero().view(-1)
            self.nodes = every[self.given]
            self.input_id = self.given if self.input_id is None else self.input_id
            return
        if ids.dtype not in (torch.int64, torch.int32, torch.int16) or ids.dim() != 1:
            raise TypeError("input_nodes are ids, integers of one dimension, or a mask of bools, not "
                            f"{ids.dtype} of {ids.dim()} dimensions")
        self.given = ids.to(torch.int64)
        self.nodes = source.ids.nodes_to_graph(self.ntype, self.given, "input_nodes")
