"""The subgraph of a mini-batch in PyTorch Geometric's form: each node once, its neighbours drawn once.

    the hop that reached each node -> the edges that PyG would draw -> nodes in the order of hops -> edges renumbered

PyG draws neighbours for a node only once, at the hop after the one that reached it, and a model runs all its layers
over the complete subgraph. A batch with frontier="new" is drawn in this way, and this module takes all its edges. If no
seed repeats and no block has been made, C copies them (Drawn).

In a batch with frontier="all" every hop has drawn neighbours for all nodes so far, and PyG's subgraph is a part of the
blocks. This module keeps a node's edges only at the hop after the one that reached the node. It also removes the nodes
that only removed edges lead to. A draw depends on the hop and the node, so both batches of one seed give the same
subgraph, except for the order of nodes and edges within a hop.

Nodes are in the order of hops, seeds first. Each seed has a node of its own: equal seeds share one draw, and each gets
its own copy of the edges.

NumPy does all of this in the calling thread; rows.py says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Callable

import numpy as np
import torch

from graphwire._base.native import ffi, lib
from graphwire._train.batch import Batch, Edges
from graphwire.pyg.rows import joined, numbers, taken

EdgeType = tuple[str, str, str]
_FAR = 127  # the hop of a node that no edge has reached
_NONE = np.empty(0, np.int64)


class Hops:
    """The number of nodes and edges that each hop of a mini-batch has added: nodes[ntype], the seeds first;
    edges[etype]. repeats: whether a seed repeats."""

    def __init__(self, ntypes: list[str], etypes: list[str], minibatch: Any):
        hops = minibatch.hops
        of_nodes = ffi.new("uint64_t[]", len(ntypes) * (hops + 1))
        of_edges = ffi.new("uint64_t[]", len(etypes) * hops)
        self.repeats = lib.hops_counts(minibatch, len(etypes), of_nodes, of_edges)
        nodes, edges = ffi.unpack(of_nodes, len(of_nodes)), ffi.unpack(of_edges, len(of_edges))
        self.nodes = {ntype: nodes[i * (hops + 1):(i + 1) * (hops + 1)] for i, ntype in enumerate(ntypes)}
        self.edges = {etype: edges[i * hops:(i + 1) * hops] for i, etype in enumerate(etypes)}


class Drawn:
    """The Subgraph of a batch with frontier="new" whose seeds do not repeat. The mini-batch has its nodes and edges in
    the order of the subgraph."""

    def __init__(self, batch: Batch, hops: Hops):
        self.batch, self._form = batch, batch._form
        lease: Any = batch._lease
        self.num_nodes = hops.nodes
        self.num_edges = {triple(etype): counts for etype, counts in hops.edges.items()}
        counts = [sum(counts) for counts in hops.edges.values()]
        ends = [torch.empty((2, count), dtype=torch.int64) for count in counts]
        ids = [torch.empty(count, dtype=torch.int64) for count in counts]
        lib.hops_edges(lease.minibatch, len(counts), self._form.wide, _addresses(ends), _addresses(ids))
        self.ends = dict(zip(self.num_edges, ends))
        self._ids = dict(zip(self.num_edges, ids)) if self._form.edge_ids else {}
        self._nodes = {} if "nodes" in vars(batch) else self._form.nodes(lease)
        self._edge_rows = self._form.edge_rows(lease, copy=True)

    @classmethod
    def of(cls, batch: Batch) -> Drawn | None:
        """None: the batch has another frontier, a seed repeats, or the caller may have changed blocks."""
        if batch._lease is None or batch.frontier != "new" or "blocks" in vars(batch):
            return None
        hops = Hops(batch._form.ntypes, batch._form.etypes, batch._lease.minibatch)
        return None if hops.repeats else cls(batch, hops)

    def nodes(self, ntype: str) -> torch.Tensor:
        """The global ids of a type's nodes, [n] int64."""
        found = self._nodes.get(ntype)
        return self.node_rows(ntype, self.batch.nodes[ntype]) if found is None else torch.as_tensor(found)

    def node_rows(self, ntype: str, rows: Any) -> torch.Tensor:
        """A copy of rows for the subgraph's nodes. rows: for all nodes of the batch, [n, …]."""
        return taken(rows, None)

    def edges(self, etype: EdgeType) -> Any:
        """The global ids of a type's edges, [edges] int64; None: the batch has none."""
        return self._ids.get(etype)

    def features_of_edges(self, etype: EdgeType) -> Iterator[tuple[str, torch.Tensor]]:
        """(feature, a copy of its rows for the subgraph's edges) of each feature of an edge type."""
        return ((name, torch.as_tensor(rows)) for name, rows in self._edge_rows.get(":".join(etype), {}).items())


def _rows_of(edges: Edges, name: str) -> Any:
    return edges.data[name]


def _addresses(tensors: list[torch.Tensor]) -> Any:
    return ffi.from_buffer("int64_t *[]", np.array([tensor.data_ptr() for tensor in tensors], np.uintp))


class Subgraph:
    """The subgraph of all node and edge types.

    num_nodes[ntype], num_edges[etype]: the number in each hop; num_nodes begins with the number of seeds.
    ends[etype]: its edges, [2, edges] int64, as row numbers of the subgraph.
    """

    def __init__(self, batch: Batch, seed_rows: Mapping[str, Any], etypes: Iterable[str] = ()):
        """etypes: edge types that the subgraph has even without an edge, in addition to those of the batch."""
        self.batch, self.hops = batch, len(batch.blocks)
        names = dict.fromkeys([*etypes, *[name for block in batch.blocks for name in block.edges]])
        self._etypes = {name: triple(name) for name in names}
        self._rows: dict[str, np.ndarray | None] = {}  # of each node among batch.nodes[ntype]; None: as there
        self.num_nodes: dict[str, list[int]] = {}
        self.ends: dict[EdgeType, torch.Tensor] = {}
        self.num_edges: dict[EdgeType, list[int]] = {}
        self._picked: dict[EdgeType, list[np.ndarray | None]] = {}  # of each hop: kept edges of its block; None: all
        self._found: dict[EdgeType, list[tuple[np.ndarray, np.ndarray]]] = {}  # their ends, as rows of the batch
        reached = self._reached()
        self._seeds = {ntype: _Seeds(rows, int(batch.blocks[-1].num_dst[ntype]))
                       for ntype, rows in seed_rows.items()}
        self._repeat_seeds()
        places = {ntype: self._ordered(ntype, hop) for ntype, hop in reached.items()}
        for etype, found in self._found.items():
            (source, _, target) = etype
            of_source = places[source]
            self.num_edges[etype] = [len(dst) for _, dst in found]
            ends = np.empty((2, sum(self.num_edges[etype])), np.int64)
            begin = 0
            for src, dst in found:
                end = begin + len(dst)
                ends[0, begin:end] = src if of_source is None else of_source[src]
                ends[1, begin:end] = self._placed(target, dst, places[target])
                begin = end
            self.ends[etype] = torch.from_numpy(ends)

    def _reached(self) -> dict[str, np.ndarray]:
        """The hop that reached each node, {node type: [n] int8}. Also stores the kept edges of each hop."""
        batch, seeds = self.batch, self.batch.blocks[-1].num_dst
        reached = {ntype: np.full(len(ids), _FAR, np.int8) for ntype, ids in batch.nodes.items()}
        for ntype, count in seeds.items():
            reached[ntype][:count] = 0
        for hop, block in enumerate(reversed(batch.blocks)):
            for name, etype in self._etypes.items():
                every = hop == 0 or batch.frontier == "new"
                some, src, dst = _kept(block.edges.get(name), None if every else reached[etype[2]] == hop)
                self._picked.setdefault(etype, []).append(some)
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
            more, at = seeds.edges_again(numbers(edges.indptr))
            src, dst = found[0]
            found[0] = np.concatenate([src, numbers(edges.indices)[more]]), np.concatenate([dst, -1 - at])
            self._picked[etype][0] = np.concatenate([np.arange(len(src)), more])  # the first hop has all edges

    def _ordered(self, ntype: str, reached: np.ndarray) -> np.ndarray | None:
        """Sets the rows and num_nodes of a type. Returns the subgraph's row number for each row of the batch; None if
        they are equal."""
        by_hop = [np.flatnonzero(reached == hop) for hop in range(self.hops + 1)]
        seeds = self._seeds.get(ntype)
        if seeds is not None:
            by_hop[0] = seeds.rows
        rows = np.concatenate(by_hop)
        self.num_nodes[ntype] = [len(some) for some in by_hop]
        every = np.arange(len(reached))
        if np.array_equal(rows, every):
            self._rows[ntype] = None
            return None
        self._rows[ntype] = rows
        place = np.empty(len(reached), np.int64)
        place[rows] = np.arange(len(rows))
        if seeds is not None:
            place[:len(seeds.first)] = seeds.first
        return place

    def _placed(self, ntype: str, rows: np.ndarray, place: np.ndarray | None) -> np.ndarray:
        """The subgraph's row numbers of destinations. -1 - i stands for the seed at place i."""
        if place is None:
            return rows
        seeds = self._seeds.get(ntype)
        if seeds is None or not len(seeds.again):
            return place[rows]
        return np.where(rows < 0, -1 - rows, place[np.maximum(rows, 0)])

    def nodes(self, ntype: str) -> torch.Tensor:
        """The global ids of a type's nodes, [n] int64."""
        return self.node_rows(ntype, self.batch.nodes[ntype])

    def node_rows(self, ntype: str, rows: Any) -> torch.Tensor:
        """A copy of rows for the subgraph's nodes. rows: for all nodes of the batch, [n, …]."""
        return taken(rows, self._rows[ntype])

    def edge_rows(self, etype: EdgeType, of: Callable[[Edges], Any]) -> torch.Tensor:
        """A copy of rows for the subgraph's edges. of(edges): rows for all edges of a block, [edges, …]."""
        blocks = [block.edges.get(":".join(etype)) for block in reversed(self.batch.blocks)]
        rows = [(of(edges), some) for edges, some in zip(blocks, self._picked[etype]) if edges]
        return joined(rows) if rows else torch.empty(0, dtype=torch.int64)

    def edges(self, etype: EdgeType) -> Any:
        """The global ids of a type's edges, [edges] int64; None: the batch has none."""
        blocks = [block.edges.get(":".join(etype)) for block in self.batch.blocks]
        if any(edges is not None and edges.edge_ids is None for edges in blocks):
            return None
        return self.edge_rows(etype, lambda edges: edges.edge_ids)

    def features_of_edges(self, etype: EdgeType) -> Iterator[tuple[str, torch.Tensor]]:
        """(feature, a copy of its rows for the subgraph's edges) of each feature of an edge type."""
        blocks = [block.edges[":".join(etype)] for block in self.batch.blocks if ":".join(etype) in block.edges]
        for name in dict.fromkeys(name for some in blocks for name in some.data):
            yield name, self.edge_rows(etype, partial(_rows_of, name=name))


class _Seeds:
    """The seeds of one type.

    rows: the row of each seed, one of `count` different rows. first: for each row, the place of its first seed.
    again: the places of the seeds that repeat an earlier seed.
    """

    def __init__(self, rows: Any, count: int):
        self.rows = numbers(rows).astype(np.int64)
        places = np.arange(len(self.rows))
        self.first = np.full(count, len(self.rows), np.int64)
        found, first = np.unique(self.rows, return_index=True)
        self.first[found] = first
        self.again = places[self.first[self.rows] != places] if count != len(self.rows) else places[:0]

    def edges_again(self, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(positions, places): the edges of the repeated seeds' rows, as positions in the block, and the place of the
        seed at which each copy ends."""
        rows = self.rows[self.again]
        counts = indptr[rows + 1] - indptr[rows]
        begins = np.repeat(indptr[rows] - np.cumsum(counts) + counts, counts)
        return begins + np.arange(len(begins)), np.repeat(self.again, counts)


@lru_cache(maxsize=4096)
def triple(name: str) -> EdgeType:
    source, relation, target = name.split(":")
    return source, relation, target


def _kept(edges: Edges | None, wanted: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """(positions, sources, destinations) of a block's edges that end at wanted nodes. wanted: whether each node is;
    None: all are, and so are the positions."""
    if edges is None:
        return None, _NONE, _NONE
    rows, counts = np.arange(edges.dst_first, edges.dst_first + edges.num_dst), np.diff(numbers(edges.indptr))
    src = numbers(edges.indices)
    if wanted is None:
        return None, src, np.repeat(rows, counts)
    some = np.flatnonzero(np.repeat(wanted[rows], counts))
    counts = counts * wanted[rows]
    return some, src[some], np.repeat(rows, counts)
