"""The subgraph of a mini-batch in PyTorch Geometric's form: each node once, its neighbours drawn once.

    the hop that reached each node -> the edges that PyG would draw -> nodes in the order of hops -> edges renumbered

PyG draws neighbours for a node only once, at the hop after the one that reached it, and a model runs all its layers
over the complete subgraph. A batch with frontier="new" is drawn in this way, and this module takes all its edges.

In a batch with frontier="all" every hop has drawn neighbours for all nodes so far, and PyG's subgraph is a part of the
blocks. This module keeps a node's edges only at the hop after the one that reached the node. It also removes the nodes
that only removed edges lead to. A draw depends on the hop and the node, so both batches of one seed give the same
subgraph, except for the order of nodes and edges within a hop.

Nodes are in the order of hops, seeds first. Each seed has a node of its own: equal seeds share one draw, and each gets
its own copy of the edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable

import torch

from graphwire.batch import Batch, Edges

EdgeType = tuple[str, str, str]
_FAR = 127  # the hop of a node that no edge has reached


class Subgraph:
    """The subgraph of all node and edge types.

    rows[ntype]: the row of each of its nodes among batch.nodes[ntype].
    src[etype], dst[etype]: the ends of its edges, as row numbers of the subgraph.
    num_nodes[ntype], num_edges[etype]: the number in each hop; num_nodes begins with the number of seeds.
    picked[etype]: for each hop, the positions of the kept edges in their block.
    """

    def __init__(self, batch: Batch, seed_rows: Mapping[str, torch.Tensor], etypes: Iterable[str] = ()):
        """etypes: edge types that the subgraph has even without an edge, in addition to those of the batch."""
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
        """The hop that reached each node, {node type: [n] int8}. Also stores the kept edges of each hop."""
        batch, seeds = self.batch, self.batch.blocks[-1].num_dst
        reached = {ntype: torch.full((len(ids),), _FAR, dtype=torch.int8) for ntype, ids in batch.nodes.items()}
        for ntype, count in seeds.items():
            reached[ntype][:count] = 0
        for hop, block in enumerate(reversed(batch.blocks)):
            for name, etype in self._etypes.items():
                every = hop == 0 or batch.frontier == "new"
                some, src, dst = _kept(block.edges.get(name), reached[etype[2]], None if every else hop)
                self.picked.setdefault(etype, []).append(some)
                self._found.setdefault(etype, []).append((src, dst))
                of_source = reached[etype[0]]
                of_source[src[of_source[src] > hop + 1]] = hop + 1
        return reached

    def _repeat_seeds(self) -> None:
        """Copies edges for seeds that repeat an earlier seed. The copies end at the seed's own node, which is marked by
        a negative number: -1 - (the place of the seed)."""
        for etype, found in self._found.items():
            seeds, edges = self._seeds.get(etype[2]), self.batch.blocks[-1].edges.get(":".join(etype))
            if seeds is None or not len(seeds.again) or edges is None:
                continue
            more, at = seeds.edges_again(torch.as_tensor(edges.indptr))
            src, dst = found[0]
            found[0] = torch.cat([src, torch.as_tensor(edges.indices).to(torch.int64)[more]]), torch.cat([dst, -1 - at])
            self.picked[etype][0] = torch.cat([self.picked[etype][0], more])

    def _ordered(self, ntype: str, reached: torch.Tensor) -> torch.Tensor:
        """Sets rows and num_nodes of a type. Returns the subgraph's row number for each row of the batch."""
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
        """The subgraph's row numbers of destinations. -1 - i stands for the seed at place i."""
        seeds = self._seeds.get(ntype)
        if seeds is None or not len(seeds.again):
            return number[rows]
        return torch.where(rows < 0, -1 - rows, number[rows.clamp(min=0)])

    def nodes(self, ntype: str) -> torch.Tensor:
        """The global ids of a type's nodes, [n] int64."""
        return torch.as_tensor(self.batch.nodes[ntype])[self.rows[ntype]]

    def edge_rows(self, etype: EdgeType, of: Callable[[Edges], Any]) -> torch.Tensor:
        """Rows for the subgraph's edges. of(edges): rows for all edges of a block, [edges, …]."""
        blocks = [block.edges.get(":".join(etype)) for block in reversed(self.batch.blocks)]
        rows = [torch.as_tensor(of(edges))[some] for edges, some in zip(blocks, self.picked[etype]) if edges]
        return torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64)


class _Seeds:
    """The seeds of one type.

    rows: the row of each seed, one of `count` different rows. first: for each row, the place of its first seed.
    again: the places of the seeds that repeat an earlier seed.
    """

    def __init__(self, rows: torch.Tensor, count: int):
        self.rows = torch.as_tensor(rows).to(torch.int64)
        places = torch.arange(len(self.rows))
        self.first = torch.full((count,), len(self.rows), dtype=torch.int64)
        self.first.scatter_reduce_(0, self.rows, places, "amin")
        self.again = places[self.first[self.rows] != places] if count != len(self.rows) else places[:0]

    def edges_again(self, indptr: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(positions, places): the edges of the repeated seeds' rows, as positions in the block, and the place of the
        seed at which each copy ends."""
        rows = self.rows[self.again]
        counts = indptr[rows + 1] - indptr[rows]
        begins = torch.repeat_interleave(indptr[rows] - torch.cumsum(counts, 0) + counts, counts)
        return begins + torch.arange(len(begins)), torch.repeat_interleave(self.again, counts)


def triple(name: str) -> EdgeType:
    source, relation, target = name.split(":")
    return source, relation, target


def _kept(edges: Edges | None, reached: torch.Tensor,
          hop: int | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(positions, sources, destinations) of a block's edges that end at nodes for which PyG draws at this hop. hop
    None: of all edges."""
    if edges is None:
        none = torch.empty(0, dtype=torch.int64)
        return none, none, none
    src, dst = torch.as_tensor(edges.indices).to(torch.int64), torch.as_tensor(edges.dst)
    if hop is None:
        return torch.arange(len(src)), src, dst
    some = torch.nonzero(reached[dst] == hop).flatten()
    return some, src[some], dst[some]
