"""Translates ids between the graph's and those of the user's data, for PyTorch Geometric's loaders.

    input_nodes, edge_label_index -> to_graph -> the graph's ids -> a batch
        -> orig_id of its nodes and edges -> n_id, e_id

Partitioning renumbers nodes and edges. The graph keeps their original ids as the feature "orig_id", and an index that
leads back (docs/FORMAT.md). A node type is translated if its original ids are numbers and the graph has the index. Text
ids cannot stand in a tensor, so these types keep the graph's ids. An edge's original id is its column in the user's
edge_index.

Errors: ValueError for the word of `ids`; InvalidError for an original id that several nodes have; those of
Graph.ids_of.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.caller import level_of_the_caller
from graphwire._base.native import GraphwireError, InvalidError, NotFoundError, OutOfRangeError
from graphwire._graph.edge_ids import EdgeIds
from graphwire._graph.graph import Graph
from graphwire.pyg.fetched import ORIGINAL

CHUNK = 1 << 18  # original ids that are read at once
CHECKED_MAX = 1 << 24  # of types with more nodes, equal original ids are noticed at a look-up only


class _EdgesOfAllParts(EdgeIds):
    """EdgeIds that also translate in a graph in several parts."""

    def _parts_translate(self) -> bool:
        return True


def _check_unique(graph: Graph, ntype: str) -> None:
    """Raises InvalidError, which names the first original id that several nodes have. Reads all original ids."""
    if graph.num_nodes(ntype) > CHECKED_MAX:
        return
    ids = torch.as_tensor(graph.feature(ORIGINAL, ntype)[:]).to(torch.int64)
    if not len(ids) or (0 <= int(ids.min()) and int(ids.max()) < len(ids) and int(torch.bincount(ids).max()) == 1):
        return
    found, counts = ids.unique(return_counts=True)
    if len(found) < len(ids):
        graph._renumbered = None  # the next loader is refused too
        raise InvalidError("GW_INVALID", f"the original id {int(found[counts > 1][0])} belongs to several nodes of "
                           f'type {ntype}: n_id could not name them; pass ids="graph", or import the nodes with ids of '
                           "their own")


class OriginalIds:
    """The translations of one graph. It can be pickled and forked as the graph can.

    ids: "orig": all ids are those of the user's data where the graph keeps them. "graph": all ids are the graph's.
    edges: the EdgeIds of all parts; None if all ids are the graph's.
    """

    def __init__(self, graph: Graph, ids: str = "orig"):
        self.graph, self.word = graph, checks.choice("ids", ids, ("orig", "graph"))
        self._in_rows: dict[str, bool] = {}
        wanted = self.word == "orig"
        if wanted and graph._renumbered is None:
            graph._renumbered = frozenset(
                ntype for ntype in graph.ntypes if self._has_index(ntype) and not self._keeps_ids(ntype))
            for ntype in graph._renumbered:
                _check_unique(graph, ntype)
        self._nodes = graph._renumbered if wanted and graph._renumbered is not None else frozenset()
        self.edges: EdgeIds | None = _EdgesOfAllParts(graph) if wanted else None
        self._known = frozenset(filter(self.edges.is_known, graph.etypes)) if self.edges else frozenset()
        if wanted:
            self._say()

    def _has_index(self, ntype: str) -> bool:
        """Whether original ids of the type are numbers that can be looked up."""
        try:
            first = self.graph.feature(ORIGINAL, ntype)
        except NotFoundError:
            return False
        if not len(first):
            return True
        try:
            self.graph.ids_of(torch.as_tensor(first[:1]), ntype)
        except InvalidError:  # the id occurs twice, which a look-up reports
            return True
        except GraphwireError as error:
            if error.status == "GW_UNSUPPORTED":  # an older version made the graph, without an index
                return False
            raise
        return True

    def _keeps_ids(self, ntype: str) -> bool:
        """Whether every node of a graph in one part has its original id as its id, as import leaves ids of a plain
        range. Reads the original ids, up to the first other one."""
        if self.graph.num_parts > 1:
            return False
        rows = self.graph.feature(ORIGINAL, ntype)
        return all(torch.equal(torch.as_tensor(rows[at:at + CHUNK]).to(torch.int64),
                               torch.arange(at, min(at + CHUNK, len(rows)))) for at in range(0, len(rows), CHUNK))

    def _texts(self, ntype: str) -> bool:
        try:
            self.graph.node_texts([0], ntype)
        except GraphwireError:
            return False
        return True

    def _say(self) -> None:
        """Warns once for each graph of types whose ids are the graph's, although the user may expect others."""
        graph = self.graph
        nodes = [ntype for ntype in graph.ntypes if graph.num_parts > 1 and ntype not in self._nodes
                 and graph.num_nodes(ntype) and not self._texts(ntype)]
        edges = [etype for etype in graph.etypes if not self.has_edges(etype)]
        if graph._edge_ids_told or not (nodes or edges):
            return
        graph._edge_ids_told = True
        where = f" and is in {graph.num_parts} parts" if graph.num_parts > 1 else ""
        warnings.warn(f"graph {graph.name} has no original ids of {', '.join([*nodes, *edges])}{where}: their ids that "
                      "graphwire.pyg takes and returns (input_nodes, n_id, e_id, edge_rows, the order of coo()) are "
                      "the graph's, and not those of your data. Import the graph again to have yours (graphwire import "
                      '--edge-ids), or pass ids="graph"', UserWarning, stacklevel=level_of_the_caller())

    # --- Nodes. ---

    def has_nodes(self, ntype: str) -> bool:
        """Whether ids of the type are translated."""
        return ntype in self._nodes

    def named(self, ntype: str, ids: Any, what: str) -> tuple[torch.Tensor, torch.Tensor | None, bool]:
        """(the user's ids, the graph's ids, whether a mask selects them) of nodes that the user names: by ids, by a
        mask of the rows of the user's data, or by a feature of the graph that is a mask. The graph's ids are None where
        a look-up is necessary. Raises the errors of arrays.ids_array, which have `what`; also ValueError for
        a mask of rows of nodes whose ids are not rows."""
        count = self.graph._node_counts[self.graph.ntype_number(ntype)]
        array, masked = _arrays.chosen(ids, count, what)
        found = torch.from_numpy(array.copy())
        if getattr(type(ids), "rows_by_id", False):  # its rows are in the graph's order
            return self.nodes_to_user(ntype, found), found, True
        if not masked or ntype not in self._nodes:
            return found, None, masked
        every, in_rows = self.all_nodes(ntype)
        if not in_rows:
            raise ValueError(f"{what}: a mask has a row for each id from 0 to {count - 1}, and nodes of {ntype} have "
                             "other original ids: give ids")
        return found, every[found], True

    def nodes_to_graph(self, ntype: str, ids: Any, what: str = "ids") -> torch.Tensor:
        """The graph's ids of nodes, [len(ids)] int64. what: names the ids in errors. Raises the errors of Graph.ids_of,
        and OutOfRangeError."""
        ids = torch.as_tensor(ids, dtype=torch.int64)
        if ntype in self._nodes and len(ids):
            try:
                return torch.as_tensor(self.graph.ids_of(ids, ntype))
            except (NotFoundError, InvalidError) as error:
                raise type(error)(error.status, f"{what}: {error}") from error
        count = self.graph.num_nodes(ntype)
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < count:
            wrong = ids[(ids < 0) | (ids >= count)]
            raise OutOfRangeError("GW_RANGE", f"{what}: {ntype} has no node {int(wrong[0])}; there are {count}")
        return ids

    def nodes_of_keys(self, ntype: str, keys: Any) -> torch.Tensor:
        """The graph's ids of nodes by the keys of a table, [len(keys)] int64; -1: no node has the key. keys: int64, the
        user's ids; or an array of Arrow with texts. Raises TypeError if the ids of the type are of the other kind."""
        numbers = isinstance(keys, np.ndarray)
        texts = self.word == "orig" and self._texts(ntype)
        if numbers == texts:
            raise TypeError(f"ids of {ntype} are {'texts' if texts else 'numbers'}, and the keys are "
                            f"{'numbers' if numbers else 'texts'}")
        if texts or ntype in self._nodes:
            return torch.as_tensor(self.graph.ids_of(keys, ntype, missing="mark"))
        return torch.from_numpy(np.where((keys >= 0) & (keys < self.graph.num_nodes(ntype)), keys, -1))

    def nodes_to_user(self, ntype: str, ids: torch.Tensor) -> torch.Tensor:
        """The ids in the user's data of nodes of the graph, [len(ids)] int64."""
        if ntype not in self._nodes:
            return ids
        return torch.as_tensor(self.graph.feature(ORIGINAL, ntype)[ids]).to(torch.int64)

    def all_nodes(self, ntype: str) -> tuple[torch.Tensor, bool]:
        """(nodes, in_rows): the graph's ids of all nodes of a type. in_rows: nodes[i] is row i of the user's data, as
        its ids are 0 to num_nodes - 1; otherwise the nodes are in the graph's order."""
        count = self.graph.num_nodes(ntype)
        every = torch.arange(count)
        if ntype not in self._nodes or not count:
            return every, True
        found = torch.as_tensor(self.graph.ids_of(every, ntype, missing="mark"))
        self._in_rows[ntype] = bool((found >= 0).all())
        return (found, True) if self._in_rows[ntype] else (every, False)

    def in_rows(self, ntype: str) -> bool:
        """Whether the user's ids of a type are rows, 0 to num_nodes - 1. Looks the ids up once."""
        if ntype not in self._in_rows:
            self._in_rows[ntype] = self.all_nodes(ntype)[1]
        return self._in_rows[ntype]

    # --- Edges. ---

    def has_edges(self, etype: str) -> bool:
        """Whether ids of the edge type are translated."""
        return etype in self._known

    def has_own_edges(self, etype: str) -> bool:
        """Whether each edge of the type has an id of its own."""
        return self.edges is not None and self.edges.translates(etype)

    def changes(self, etype: str) -> bool:
        """Whether ids of the type's edges, or of their ends, are translated."""
        return self.has_own_edges(etype) or any(map(self.has_nodes, self.graph.ends(etype)))

    def all_edges(self, etype: str, in_columns: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        """(sources, destinations) of all edges of a type, in the ids of the user's data. in_columns: in the order of
        the user's columns, if each edge has one of its own; else in the graph's order."""
        own = in_columns and self.has_own_edges(etype)
        at: Any = self.edges.to_position(etype, slice(None)) if self.edges and own else slice(None)
        src, dst = (torch.as_tensor(ends) for ends in self.graph.find_edges(at, etype))
        source, target = self.graph.ends(etype)
        return self.nodes_to_user(source, src), self.nodes_to_user(target, dst)

    def edges_to_graph(self, etype: str, ids: torch.Tensor) -> torch.Tensor:
        """The graph's ids of edges. If edges share an id, the first of them stands for all: they have equal rows."""
        return torch.as_tensor(self.edges.to_position(etype, ids)) if self.edges and self.has_edges(etype) else ids

    def edges_to_user(self, etype: str, ids: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.edges.to_original(etype, ids)) if self.edges and self.has_edges(etype) else ids
