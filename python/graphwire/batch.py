"""A mini-batch: nodes, blocks and rows; features and edges over the library's memory.

The order is a model's: blocks[0] is the outermost hop, whose sources are all nodes of the batch, and blocks[-1] ends at
the seeds. The destinations of a block are the first of its sources, and the sources of the next one are its
destinations: a layer's output is the next layer's input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable, ClassVar

import numpy as np

from graphwire import _arrays
from graphwire._arrays import Array, Lease
from graphwire._native import lib

Change = Callable[[Any], Any]  # of one tensor


def _each(value: dict, change: Change) -> dict:
    return {key: _of(item, change) for key, item in value.items()}


def _of(value: Any, change: Change) -> Any:
    """The same of a tensor, of the tensors in dictionaries, or of nothing."""
    if isinstance(value, dict):
        return _each(value, change)
    return None if value is None else change(value)


def _leaves(value: Any) -> Iterator[Array]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif value is not None:
        yield value


def _one_of_each(rows: dict[str, dict[str, Array]], what: str, argument: str) -> dict[str, Array]:
    """{type: rows}, where each type has at most one feature."""
    found = {kind: some for kind, some in rows.items() if some}
    if any(len(some) != 1 for some in found.values()):
        raise ValueError(f"the batch has several {what} of a type: use batch.{argument}[type][name]")
    if not found:
        raise ValueError(f"the batch has no {what}: the loader's argument is {argument}=")
    return {kind: next(iter(some.values())) for kind, some in found.items()}


class Edges:
    """The edges of one type in one block, by destination (CSC).

    src_type, dst_type: the node types; num_src, num_dst: rows of them in this block.
    indptr: [num_dst + 1] int64: edges indptr[i] to indptr[i + 1] end at destination i.
    indices: [edges] int64 (or int32: the loader's index_dtype): the source of each edge, a row number.
    edge_ids: [edges] int64: global ids.
    data: {feature: rows of these edges}, of the loader's edge_features.
    """

    def __init__(self, etype: str, ends: tuple[str, str], sizes: tuple[int, int], arrays: tuple[Array, Array, Array]):
        self.etype, (self.src_type, self.dst_type), (self.num_src, self.num_dst) = etype, ends, sizes
        self.indptr, self.indices, self.edge_ids = arrays
        self.data: dict[str, Array] = {}
        self._dst: Array | None = None

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    @property
    def in_degrees(self) -> Array:
        """[num_dst]: the edges of this block at each destination."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def dst(self) -> Array:
        """[edges] int64: the destination of each edge, a row number."""
        if self._dst is None:
            if isinstance(self.indptr, np.ndarray):
                self._dst = np.repeat(np.arange(self.num_dst), self.in_degrees)
            else:
                torch = _arrays.torch_module()
                rows = torch.arange(self.num_dst, device=self.indptr.device)
                self._dst = torch.repeat_interleave(rows, self.in_degrees, output_size=self.num_edges)
        return self._dst

    @property
    def edge_index(self) -> Array:
        """[2, edges]: sources and destinations, as PyTorch Geometric's layers take them."""
        if isinstance(self.indptr, np.ndarray):
            return np.stack([self.indices, self.dst])
        return _arrays.torch_module().stack([self.indices.to(self.dst.dtype), self.dst])

    def _changed(self, change: Change) -> Edges:
        changed = Edges(self.etype, (self.src_type, self.dst_type), (self.num_src, self.num_dst),
                        (change(self.indptr), change(self.indices), change(self.edge_ids)))
        changed.data = _each(self.data, change)
        return changed

    def to(self, device: Any, non_blocking: bool = False) -> Edges:
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dst": None}

    def __repr__(self) -> str:
        return f"<graphwire.Edges {self.etype}: {self.num_edges} edges, {self.num_src} -> {self.num_dst}>"


class Block:
    """One hop: num_src and num_dst are rows by node type, edges holds the Edges by edge type ("src:rel:dst")."""

    def __init__(self, num_src: dict[str, int], num_dst: dict[str, int], edges: dict[str, Edges]):
        self.num_src, self.num_dst, self.edges = num_src, num_dst, edges

    def __getitem__(self, etype: Any) -> Edges:
        """The edges of a type: "src:rel:dst", ("src", "rel", "dst"), or "rel" where that is unique.

        Raises KeyError, which lists those of the block: types that no fanout names are not there.
        """
        name = etype if isinstance(etype, str) else ":".join(etype)
        if name in self.edges:
            return self.edges[name]
        found = [edges for full, edges in self.edges.items() if full.split(":")[1:2] == [name]]
        if len(found) != 1:
            there = ", ".join(self.edges)
            raise KeyError(f"the block has {len(found) or 'no'} edge types {name!r}; there are: {there}")
        return found[0]

    @property
    def only(self) -> Edges:
        """The edges, where there is one edge type. Raises ValueError, which lists them, where there are several."""
        if len(self.edges) != 1:
            raise ValueError(f"the block has {len(self.edges)} edge types: name one of {', '.join(self.edges)}")
        return next(iter(self.edges.values()))

    @property
    def num_edges(self) -> int:
        return sum(edges.num_edges for edges in self.edges.values())

    def _changed(self, change: Change) -> Block:
        return Block(self.num_src, self.num_dst, {name: edges._changed(change) for name, edges in self.edges.items()})

    def to(self, device: Any, non_blocking: bool = False) -> Block:
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def __repr__(self) -> str:
        return f"<graphwire.Block: {self.num_edges} edges, {self.num_src} -> {self.num_dst}>"


class Batch:
    """A mini-batch.

    epoch, step: where the loader was.
    seeds: [seeds] int64, global ids; seed_rows: [seeds] int64: each one's row among the nodes of its type, which is its
        row in a model's output too. Equal seeds share a row.
    nodes: {node type: [n] int64}: global ids, each once; the rows of blocks[0]'s sources.
    blocks: outermost hop first.
    features: {node type: {feature: [n, …]}}: rows of nodes; labels: {feature: [seeds, …]}: rows of the seeds.

    Of seeds of several node types, seeds and seed_rows are {node type: …}, labels {node type: {feature: …}}.

    Of an EdgeLoader seeds are ids of edges, labels theirs, seed_rows None, and there are besides
    src_rows, dst_rows: [seeds] int64: the ends of each, rows of the edge type's node types;
    negative_rows: [seeds, negatives] int64: rows of the type whose end was redrawn; true_edges: how many of them are
        edges all the same, with no_true_edges; edge_type: of the seeds.
    Of seeds of several edge types these, seeds and labels are {edge type: …}, and edge_type is None.

    What keeps what: rows of features, rows of edges, and the arrays of the blocks lie in the library's memory, which
    goes back, all of it, when the batch and the last array over it are gone: a batch needs no release, and one that is
    kept (x, an indptr, a slice of one) keeps as much memory as the batch. Ids (seeds, nodes), row numbers and labels
    have memory of their own, and so has all that to_pyg() returns and what is of a type that torch lacks (see Feature):
    keep those, or copies.

    A batch goes to another process, and into a file, as copies of its arrays: by pickle, torch.save and the workers of
    a DataLoader. What is unpickled has no digest().
    """

    _converter: ClassVar[Callable[[Batch, Any], Any]]  # of to_pyg(); graphwire/__init__.py puts graphwire.pyg's here

    def __init__(self, seeds: Any, seed_rows: Any, nodes: dict[str, Array], blocks: list[Block],
                 features: dict[str, dict[str, Array]], labels: dict[str, Any]):
        self.epoch = self.step = 0
        self.seeds, self.seed_rows, self.nodes, self.blocks = seeds, seed_rows, nodes, blocks
        self.features, self.labels = features, labels
        self.src_rows: Array = None
        self.dst_rows: Array = None
        self.negative_rows: Array = None
        self.true_edges: Any = 0
        self.edge_type: str | None = None
        self._lease: Lease | None = None

    @property
    def num_edges(self) -> int:
        return sum(block.num_edges for block in self.blocks)

    @property
    def num_seeds(self) -> int:
        """Seeds of all types."""
        return sum(len(ids) for ids in _leaves(self.seeds))

    @property
    def x(self) -> Any:
        """The features, where each node type has at most one: a tensor where there is one node type, else
        {node type: tensor}. Raises ValueError where a type has several, and where there are none (the loader's
        features=)."""
        only = _one_of_each(self.features, "features", "features")
        return next(iter(only.values())) if len(self.nodes) == 1 else only

    @property
    def y(self) -> Any:
        """The labels, where the loader was given one name; of seeds of several types {node type: labels}. Raises
        ValueError where there are several of a type, and where there are none (the loader's labels=)."""
        if isinstance(self.seeds, dict):
            return _one_of_each(self.labels, "labels", "labels")
        if len(self.labels) != 1:
            raise ValueError(f"the batch has {len(self.labels)} labels; the loader's argument is labels=")
        return next(iter(self.labels.values()))

    def digest(self) -> int:
        """XXH3-64 over everything that the batch holds: equal batches have equal digests, in every language and over
        every transport. Raises ValueError for a batch that was moved to a device, or that was pickled or copied, by
        another process too: what the digest is taken of did not come along."""
        if self._lease is None:
            raise ValueError("a batch that was moved, pickled or copied has no digest: take it before")
        return int(lib.gw_minibatch_digest(self._lease.minibatch))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lease": None}

    def _changed(self, change: Change) -> Batch:
        changed = Batch(_of(self.seeds, change), _of(self.seed_rows, change), _each(self.nodes, change),
                        [block._changed(change) for block in self.blocks], _each(self.features, change),
                        _each(self.labels, change))
        changed.src_rows, changed.dst_rows = _of(self.src_rows, change), _of(self.dst_rows, change)
        changed.negative_rows, changed.true_edges = _of(self.negative_rows, change), self.true_edges
        changed.epoch, changed.step, changed.edge_type = self.epoch, self.step, self.edge_type
        return changed

    def to_pyg(self, attributes: Mapping[str, str | Mapping[str, str]] | None = None) -> Any:
        """The mini-batch as torch_geometric's Data, or HeteroData where there are several types: each node once, its
        neighbours drawn once, at the hop that found it, seeds first, as NeighborLoader gives it; with rows of edges.

        attributes: {feature: what it is called there}, as {"feat": "x", "label": "y"}; for one kind of rows alone
            {"features" (of nodes), "edge_features" or "labels": such names}, as {"feat": "x", "edge_features":
            {"feat": "edge_attr"}}. Labels have batch_size rows.
        Besides: n_id, e_id, batch_size, num_sampled_nodes, num_sampled_edges; of an EdgeLoader edge_label_index,
        input_id, negative_index: rows of negatives, [seeds, negatives]. e_id and an EdgeLoader's input_id are the
        graph's ids of edges; graphwire.EdgeIds leads to those that they had before.

        Raises ValueError where two features of a type, or of all types in Data, would have one name, and for names that
        are PyG's own (edge_index, num_nodes, …); it names the features.
        """
        return Batch._converter(self, attributes)

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """The same on another device (torch)."""
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pinned(self) -> Batch:
        """A copy in memory that a GPU reads by itself."""
        return self._changed(lambda tensor: tensor.pin_memory())

    def _tensors(self) -> Iterator[Array]:
        for part in (self.seeds, self.seed_rows, self.src_rows, self.dst_rows, self.negative_rows, self.nodes,
                     self.labels, self.features):
            yield from _leaves(part)
        for block in self.blocks:
            for edges in block.edges.values():
                yield from (edges.indptr, edges.indices, edges.edge_ids, *edges.data.values())

    def record_stream(self, stream: Any) -> None:
        """Tells CUDA's allocator that the tensors are used on this stream."""
        for tensor in self._tensors():
            tensor.record_stream(stream)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{len(ids)} {ntype}" for ntype, ids in self.nodes.items())
        return f"<graphwire.Batch: {self.num_seeds} seeds, {nodes}, {self.num_edges} edges, {len(self.blocks)} hops>"
