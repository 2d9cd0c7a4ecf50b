"""The seeds of a LinkNeighborLoader: edge_label_index in each of PyTorch Geometric's forms, and the negatives.

    links in the user's ids -> Links, ids of the graph -> a batch's links, with negatives -> each end once, as seeds
        -> the places of the ends among the seeds, which are the first nodes of the batch

Errors: ValueError and TypeError for the form; those of Graph.ids_of for ids.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch_geometric.sampler import NegativeSampling

from graphwire._graph.held_out import pair_of
from graphwire.pyg.existing import Existing, warn_of_times_of_edges
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.rows import joined, selected, taken, with_zeros
from graphwire.pyg.sources import Source
from graphwire.pyg.subgraph import EdgeType, triple
from graphwire.pyg.times import Times
from graphwire.pyg.weighted import Weighted

READ_MAX = 1 << 22  # links that are read when the loader is made: 32 bytes each; the ends of more are read with a batch


class Links:
    """kind: the edge type of the links; typed: whether batches name types; count: the number of links. given: (sources,
    destinations), each [links] in the user's ids."""

    def __init__(self, source: Source, edge_label_index: Any):
        graph = source.graph
        named, kind, ends = parts_of(edge_label_index)
        if source.typed is False and named:
            raise ValueError(f"edge_label_index names a type, and the data has none: {edge_label_index!r:.100}")
        if source.typed and not named:
            raise ValueError("edge_label_index of which type? give a type, or (type, links); "
                             f"{_known(source.etypes)}")
        self.typed = named
        self.kind: EdgeType = _kind_of(source, kind, ends is not None) if named else triple(graph.etypes[0])
        if ends is None:
            ends = source.every_link(self.kind if named else None)
        if ends is None:
            self._take_all(source)
            return
        kinds = self.kind[0], self.kind[2]
        given = [source.ids.named(ntype, end, "edge_label_index")
                 for ntype, end in zip(kinds, pair_of(ends, "edge_label_index"))]
        self.given: tuple[Any, Any] = given[0][0], given[1][0]
        self.count = len(self.given[0])
        if len(self.given[1]) != self.count:
            raise ValueError(f"edge_label_index: {self.count} sources and {len(self.given[1])} destinations")
        self._read = tuple(source.ids.nodes_to_graph(ntype, some, "edge_label_index") if nodes is None else nodes
                           for ntype, (some, nodes, _) in zip(kinds, given))

    def _take_all(self, source: Source) -> None:
        """Takes all edges of the type, in the order of the user's columns if each edge has a column of its own."""
        self._every = _EveryEdge(source.ids, ":".join(self.kind))
        self.count = source.graph.num_edges(":".join(self.kind))
        if self.count > READ_MAX:
            self._read = ()
            self.given = _UserEnds(self._every, self.kind, 0), _UserEnds(self._every, self.kind, 2)
            return
        self._read = self._every[slice(None)]
        self.given = (source.ids.nodes_to_user(self.kind[0], self._read[0]),
                      source.ids.nodes_to_user(self.kind[2], self._read[1]))

    def ends(self, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(sources, destinations) of the links at these places, in the graph's ids."""
        if not self._read:
            return self._every[index]
        src, dst = (selected(ends, index) for ends in self._read)
        return src, dst


class _EveryEdge:
    """All edges of a type as links: [places] gives (sources, destinations) in the graph's ids, read from their owners.
    """

    def __init__(self, ids: OriginalIds, etype: str):
        self.ids, self._etype = ids, etype

    def __getitem__(self, places: Any) -> tuple[torch.Tensor, torch.Tensor]:
        ids, at = self.ids, places
        if ids.edges is not None and ids.has_own_edges(self._etype):
            at = ids.edges.to_position(self._etype, places)
        src, dst = ids.graph.find_edges(at, self._etype)
        return torch.as_tensor(src), torch.as_tensor(dst)


class _UserEnds:
    """One end of every edge, in the ids of the user's data: row or col of an EdgeSamplerInput, which clones them.
    [places] reads them."""

    def __init__(self, every: _EveryEdge, kind: EdgeType, end: int):
        self._every, self._ntype, self._end = every, kind[end], end // 2

    def __getitem__(self, places: Any) -> torch.Tensor:
        return self._every.ids.nodes_to_user(self._ntype, self._every[places][self._end])

    def clone(self) -> _UserEnds:
        return self

    def cpu(self) -> _UserEnds:
        return self


def parts_of(given: Any) -> tuple[bool, Any, Any]:
    """(whether a type is named, the type, the links or None)."""
    if not isinstance(given, (list, tuple)):
        return (True, given, None) if isinstance(given, str) else (False, None, given)
    if given and all(isinstance(word, str) for word in given):
        return True, tuple(given), None
    if len(given) == 2 and (given[0] is None or isinstance(given[0], (str, tuple, list))):
        kind, ends = given
        if kind is None or isinstance(kind, str) or all(isinstance(word, str) for word in kind):
            return kind is not None, kind, ends
    return False, None, given


def _known(etypes: list[str]) -> str:
    return f"there are {', '.join(etypes)}" if etypes else "the data has no edge type"


def _kind_of(source: Source, kind: Any, given: bool) -> EdgeType:
    """The edge type of links. kind: "src:rel:dst", or (source, relation, destination), or as PyG's HeteroData takes it,
    its relation, or its ends. given: the links are given, so that their type need not be one of the graph, as in PyG.
    Raises ValueError unless one type fits."""
    words, etypes = tuple(kind.split(":")) if isinstance(kind, str) else tuple(kind), source.etypes
    fits = [name for name in etypes if words in (triple(name), triple(name)[1:2], (triple(name)[0], triple(name)[2]))]
    if len(fits) == 1:
        return triple(fits[0])
    words = (words[0], "to", words[1]) if len(words) == 2 and not fits else words
    if given and len(words) == 3 and {words[0], words[2]} <= set(source.graph.ntypes):
        return words
    raise ValueError(f"edge_label_index: {len(fits) or 'no'} edge types {kind!r}; {_known(etypes)}")


class Negatives:
    """PyG's neg_sampling for links of a kind. Draws from `generator` alone. Negatives may be edges of the graph, as in
    PyG. time: the times of nodes, which exist from then on; None: they exist at all times."""

    def __init__(self, asked: NegativeSampling | None, source: Source, kind: EdgeType, time: Times | None = None):
        self.binary = asked is not None and asked.is_binary()
        self.triplet = asked is not None and asked.is_triplet()
        self._amount = 0 if asked is None else asked.amount
        wanted = [(ntype, name) for ntype, name, drawn in (
            (kind[0], "src_weight", self.binary), (kind[2], "dst_weight", self.binary or self.triplet)) if drawn]
        if wanted:
            warn_of_times_of_edges(time)
        timed = () if time is None else time.nodes
        self._ends = [_Ends(source, ntype, name, getattr(asked, name), time if ntype in timed else None)
                      for ntype, name in wanted]

    def added_to(self, src: torch.Tensor, dst: torch.Tensor, links: torch.Tensor, times: torch.Tensor | None,
                 generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """(src, dst) with those of the negatives behind them: pairs, or with "triplet" destinations. links: the places
        of the links, for errors. times: those of the links, or None."""
        more = math.ceil(len(src) * self._amount)
        belongs = repeated(more, len(src))
        at, links_at = None if times is None else taken(times, belongs), links.numpy()[belongs]
        drawn = [ends.drawn(more, at, links_at, generator) for ends in self._ends]
        if self.binary:
            src = joined([(src, None), (drawn[0], None)])
        return src, joined([(dst, None), (drawn[-1], None)]) if drawn else dst


class _Ends:
    """Nodes of a type as ends of negatives. weight: [nodes] in the order of the user's rows; None: all nodes are
    equally likely. time: the times from which nodes exist; None: they exist at all times. Errors: those of Weighted.
    """

    def __init__(self, source: Source, ntype: str, name: str, weight: Any, time: Times | None = None):
        self._count = source.graph.num_nodes(ntype)
        self._weighted = None if weight is None else Weighted(source.ids, ntype, name, weight, time)
        self._existing = None if time is None or weight is not None else Existing(time, ntype)

    def drawn(self, count: int, times: torch.Tensor | None, links: np.ndarray,
              generator: torch.Generator) -> torch.Tensor:
        """The graph's ids of `count` nodes, with replacement. times: of each of them, or None."""
        if self._weighted is not None:
            return self._weighted.drawn(count, times, links, generator)
        if self._existing is not None and times is not None:
            return self._existing.drawn(times, links, generator)
        return torch.randint(self._count, (count,), generator=generator)


def labels_with_negatives(labels: torch.Tensor | None, links: int, negatives: int) -> torch.Tensor:
    """The labels of links, 1 unless given, with zeros for negatives behind them."""
    labels = taken(torch.ones(1), np.zeros(links, np.int64)) if labels is None else labels
    return with_zeros(labels, negatives)


class Shared:
    """The ends of a batch's links and negatives as seeds: each node once, by type in ascending order of the graph's
    ids.

    nodes: the seeds by type. rows: the row of each link's source and destination among the seeds of their types, those
    of negatives behind them. count: the number of links without negatives. slots: as in ahead.Asked.
    """

    slots: np.ndarray | None = None

    def __init__(self, kind: EdgeType, count: int, src: torch.Tensor, dst: torch.Tensor):
        self.kind, self.count = kind, count
        if kind[0] == kind[2]:
            seeds, rows = _unique(np.concatenate([src.numpy(), dst.numpy()]))
            self.nodes, self.rows = {kind[0]: seeds}, (rows[:len(src)], rows[len(src):])
        else:
            (sources, src_rows), (targets, dst_rows) = _unique(src.numpy()), _unique(dst.numpy())
            self.nodes, self.rows = {kind[0]: sources, kind[2]: targets}, (src_rows, dst_rows)

    def of_triplet(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(dst_pos_index, dst_neg_index)."""
        rows = self.rows[1]
        return rows[:self.count], rows[self.count:].view(self.count, self._each()).squeeze(-1)

    def _each(self) -> int:
        """The number of negatives of each link."""
        return max(len(self.rows[1]) // max(self.count, 1) - 1, 0)


class Apart(Shared):
    """The same for a disjoint batch: each end is a seed of its own, in PyG's order. Negative j belongs to link j modulo
    the number of links."""

    def __init__(self, kind: EdgeType, count: int, src: torch.Tensor, dst: torch.Tensor):
        self.kind, self.count = kind, count
        self._links = repeated(len(src), count), repeated(len(dst), count)
        self.slots = np.concatenate(self._links)
        rows = torch.arange(len(src)), torch.arange(len(dst))
        if kind[0] == kind[2]:
            self.nodes, self.rows = {kind[0]: joined([(src, None), (dst, None)])}, (rows[0], rows[1] + len(src))
        else:
            self.nodes, self.rows = {kind[0]: src, kind[2]: dst}, rows

    def of_links(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values of the seeds, by type. values: one for each link without negatives, [links]."""
        found = [taken(values, links) for links in self._links]
        if self.kind[0] == self.kind[2]:
            return {self.kind[0]: joined([(found[0], None), (found[1], None)])}
        return {self.kind[0]: found[0], self.kind[2]: found[1]}

    def of_triplet(self) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.rows[1]
        return rows[:self.count], rows[self.count:].view(self._each(), self.count).t().squeeze(-1)


def repeated(length: int, links: int) -> np.ndarray:
    """The link that each of `length` links and negatives behind them belongs to, [length] int64: negatives belong to
    the links in their order, over and over."""
    return np.arange(length) % max(links, 1)


def _unique(ids: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids in ascending order, each once, and the row of each. NumPy starts no threads; rows.py says why."""
    found, rows = np.unique(ids, return_inverse=True)
    return torch.from_numpy(found), torch.from_numpy(rows)
