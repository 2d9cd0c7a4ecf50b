"""The subgraph of a mini-batch as PyTorch Geometric has it: each node once, its neighbours drawn once.

Graphwire's blocks draw for all nodes that are there at every hop, so that a model computes layer by layer. PyG's
subgraph draws for each node at the hop that found it alone, and a model runs all its layers over the whole. The second
lies within the first: edges at a node are kept at the hop after the one that reached it, and what only edges that were
left out lead to is left out too. The draws that are kept are independent of those that are not, so that the
distribution is PyG's.

Nodes come hop by hop, seeds first, one for each seed: equal seeds share the draw, and each has its edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable

import torch

from graphwire.batch import Batch, Edges

EdgeType = tuple[str, str, str]
_FAR = 127  # the hop of nodes that nothing has reached


class Subgraph:
    """Of all node and edge types.

    rows[ntype]: of each node, its row among batch.nodes[ntype]; src, dst[etype]: rows of the nodes as they stand here.
    num_nodes, num_edges: of each hop; the first of num_nodes are the seeds. picked[etype]: of each hop the edges that
    were kept, as positions in its block.
    """

    def __init__(self, batch: Batch, seed_rows: Mapping[str, torch.Tensor], etypes: Iterable[str] = ()):
        """etypes: those that are there even without an edge, besides those of the batch."""
        self.batch, self.hops = batch, len(batch.blocks)
        names = dict.fromkeys([*etypes, *[name for block in batch.blocks for name in block.edges]])
        self._etypes = {name: triple(name) for name in names}
        self.rows: dict[str, torch.Tensor] = {}
        self.num_nodes: dict[str, list[int]] = {}
        self.src: dict[EdgeType, torch.Tensor] = {}
        self.dst: dict[EdgeType, torch.Tensor] = {}
        self.num_edges: dict[EdgeType, list[int]] = {}
        self.picked: dict[EdgeType, list[torch.Tensor]] = {}
        self._found: dict[EdgeType, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        reached = self._reached()
        self._seeds = {ntype: _Seeds(rows, int(batch.blocks[-1].num_dst[ntype]))
                       for ntype, rows in seed_rows.items()}
        self._repeat_seeds()
        numbers = {ntype: self._ordered(ntype, hop) for ntype, hop in reached.items()}
        for etype, found in self._found.items():
            (source, _, target) = etype
            self.src[etype] = numbers[source][torch.cat([src for src, _ in found])]
            self.dst[etype] = torch.cat([self._placed(target, dst, numbers[target]) for _, dst in found])
            self.num_edges[etype] = [len(dst) for _, dst in found]

    def _reached(self) -> dict[str, torch.Tensor]:
        """The hop that reached each node; and the edges that did."""
        batch, seeds = self.batch, self.batch.blocks[-1].num_dst
        reached = {ntype: torch.full((len(ids),), _FAR, dtype=torch.int8) for ntype, ids in batch.nodes.items()}
        for ntype, count in seeds.items():
            reached[ntype][:count] = 0
        for hop, block in enumerate(reversed(batch.blocks)):
            for name, etype in self._etypes.items():
                some, src, dst = _kept(block.edges.get(name), reached[etype[2]], hop)
                self.picked.setdefault(etype, []).append(some)
                self._found.setdefault(etype, []).append((src, dst))
                of_source = reached[etype[0]]
                of_source[src[of_source[src] > hop + 1]] = hop + 1
        return reached

    def _repeat_seeds(self) -> None:
        """Equal seeds after the first: the edges of the row that they share, at rows of their own, below zero."""
        for etype, found in self._found.items():
            seeds, edges = self._seeds.get(etype[2]), self.batch.blocks[-1].edges.get(":".join(etype))
            if seeds is None or not len(seeds.again) or edges is None:
                continue
            more, at = seeds.edges_again(torch.as_tensor(edges.indptr))
            src, dst = found[0]
            found[0] = torch.cat([src, torch.as_tensor(edges.indices).to(torch.int64)[more]]), torch.cat([dst, -1 - at])
            self.picked[etype][0] = torch.cat([self.picked[etype][0], more])

    def _ordered(self, ntype: str, reached: torch.Tensor) -> torch.Tensor:
        """rows and num_nodes of a type; the new number of each row of the batch."""
        by_hop = [torch.nonzero(reached == hop).flatten() for hop in range(self.hops + 1)]
        seeds = self._seeds.get(ntype)
        if seeds is not None:
            by_hop[0] = seeds.rows
        rows = torch.cat(by_hop)
        self.rows[ntype], self.num_nodes[ntype] = rows, [len(some) for some in by_hop]
        number = torch.empty(len(reached), dtype=torch.int64)
        number[rows] = torch.arange(len(rows))
        if seeds is not None:
            number[:len(seeds.first)] = seeds.first
        return number

    def _placed(self, ntype: str, rows: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        """Destinations as they stand here; below zero: the seed of that place."""
        seeds = self._seeds.get(ntype)
        if seeds is None or not len(seeds.again):
            return number[rows]
        return torch.where(rows < 0, -1 - rows, number[rows.clamp(min=0)])

    def nodes(self, ntype: str) -> torch.Tensor:
        """Global ids."""
        return torch.as_tensor(self.batch.nodes[ntype])[self.rows[ntype]]

    def edge_rows(self, etype: EdgeType, of: Callable[[Edges], Any]) -> torch.Tensor:
        """What of(edges) has for each edge of a block, for the edges here."""
        blocks = [block.edges.get(":".join(etype)) for block in reversed(self.batch.blocks)]
        rows = [torch.as_tensor(of(edges))[some] for edges, some in zip(blocks, self.picked[etype]) if edges]
        return torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64)


class _Seeds:
    """rows: of each seed, among `count` different ones; first: the place of each row's first seed; again: the places of
    the others."""

    def __init__(self, rows: torch.Tensor, count: int):
        self.rows = torch.as_tensor(rows).to(torch.int64)
        places = torch.arange(len(self.rows))
        self.first = torch.full((count,), len(self.rows), dtype=torch.int64)
        self.first.scatter_reduce_(0, self.rows, places, "amin")
        self.again = places[self.first[self.rows] != places] if count != len(self.rows) else places[:0]

    def edges_again(self, indptr: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(positions, places): the edges of the rows of `again`, and where they end."""
        rows = self.rows[self.again]
        counts = indptr[rows + 1] - indptr[rows]
        begins = torch.repeat_interleave(indptr[rows] - torch.cumsum(counts, 0) + counts, counts)
        return begins + torch.arange(len(begins)), torch.repeat_interleave(self.again, counts)


def triple(name: str) -> EdgeType:
    source, relation, target = name.split(":")
    return source, relation, target


def _kept(edges: Edges | None, reached: torch.Tensor, hop: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of the edges of a block those that end at nodes which this hop draws for: positions, sources, destinations."""
    if edges is None:
        none = torch.empty(0, dtype=torch.int64)
        return none, none, none
    src, dst = torch.as_tensor(edges.indices).to(torch.int64), torch.as_tensor(edges.dst)
    if hop == 0:
        return torch.arange(len(src)), src, dst
    some = torch.nonzero(reached[dst] == hop).flatten()
    return some, src[some], dst[some]
