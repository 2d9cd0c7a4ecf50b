"""The seeds of a NeighborLoader: input_nodes in each of PyTorch Geometric's forms, as ids of the graph.

    None, a mask, ids, "type", ("type", ids), a feature of the graph -> the user's ids -> the graph's ids

Errors: ValueError and TypeError for the form; those of _base/arrays.py and of Graph.ids_of for ids.
"""

from __future__ import annotations

from typing import Any

import torch

from graphwire.pyg.sources import Source


def parts_of(given: Any) -> tuple[bool, Any, Any]:
    """(whether a type is named, the type, the nodes or None)."""
    if isinstance(given, str):
        return True, given, None
    named = isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], str)
    return (True, *given) if named else (False, None, given)


class InputNodes:
    """ntype: the node type of the seeds; typed: whether batches name types. given, nodes: the ids in the user's data
    and in the graph, [seeds] int64. input_id: what a batch has as input_id, [seeds]; None: the places of the seeds."""

    _argument = "input_nodes"  # names the seeds in errors
    _form = 'give "type" or ("type", ids)'

    def __init__(self, source: Source, data: Any, input_nodes: Any, input_id: Any):
        graph = source.graph
        named, kind, ids = parts_of(input_nodes)
        if source.typed is False and named:
            raise ValueError(f"{self._argument} names a type, and the data has none: {kind!r:.100}")
        if source.typed and not named:
            raise ValueError(f"{self._argument} of which type? {self._form}; there are {', '.join(graph.ntypes)}")
        self.typed = named
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
        self.given, nodes, masked = source.ids.named(self.ntype, ids, "input_nodes")
        self.nodes = source.ids.nodes_to_graph(self.ntype, self.given, "input_nodes") if nodes is None else nodes
        if masked and self.input_id is None:
            self.input_id = self.given
