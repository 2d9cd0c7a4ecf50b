"""A mini-batch: its nodes, blocks and rows. Features and edges are views of the library's memory.

    blocks[0], the outermost hop -> blocks[1] -> … -> blocks[-1], whose destinations are the seeds

The blocks are in the order in which a model's layers use them. The sources of blocks[0] are all nodes of the batch. A
block's destinations are the first of its sources, and are also the sources of the next block. So the output rows of one
layer are the input rows of the next.

With frontier="new" a block has only the edges of the nodes that the hop before has added. The blocks together are one
subgraph, whose edges are those of all blocks: edge_index has the same row numbers in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Callable, ClassVar

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base.arrays import Array, Lease
from graphwire._base.eager import eager
from graphwire._base.keywords import keywords
from graphwire._base.native import lib
from graphwire._base.trace import traced

Change = Callable[[Any], Any]  # converts a tensor


def _each(value: dict, change: Change) -> dict:
    return {key: _of(item, change) for key, item in value.items()}


def _of(value: Any, change: Change) -> Any:
    """Applies `change` to a tensor, or to all tensors of nested dictionaries; None stays None."""
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
    """{type: rows}, if each type has at most one feature. Raises ValueError if a type has several, or no type has one.
    """
    found = {kind: some for kind, some in rows.items() if some}
    if any(len(some) != 1 for some in found.values()):
        raise ValueError(f"the batch has several {what} of a type: use batch.{argument}[type][name]")
    if not found:
        raise ValueError(f"the batch has no {what}: the loader's argument is {argument}=")
    return {kind: next(iter(some.values())) for kind, some in found.items()}


@keywords
class Edges:
    """The edges of one type in one block, grouped by destination (CSC).

    etype: "src:rel:dst". src_type, dst_type: the node types of the ends.
    num_src, num_dst: how many rows of src_type and of dst_type the block has.
    dst_first: the row number of destination 0. It is 0, except in a batch with frontier="new": there, the destinations
        are the rows dst_first to dst_first + num_dst - 1, the nodes that the hop before has added.
    indptr: [num_dst + 1] int64; the edges indptr[i] to indptr[i + 1] - 1 end at destination i.
    indices: [edges] int64, or int32 with the loader's index_dtype; the row number of each edge's source.
    edge_ids: [edges] int64, global ids; None if the loader got edge_ids=False.
    data: {feature: [edges, …]}, the rows of the loader's edge_features.
    """

    __module__ = "graphwire.batch"

    def __init__(self, etype: str, ends: tuple[str, str], sizes: tuple[int, int], arrays: tuple[Array, Array, Array],
                 dst_first: int = 0):
        self.dst_first = dst_first
        self.etype, (self.src_type, self.dst_type), (self.num_src, self.num_dst) = etype, ends, sizes
        self.indptr, self.indices, self.edge_ids = arrays
        self.data: dict[str, Array] = {}
        self._dst: Array | None = None

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    @property
    def in_degrees(self) -> Array:
        """[num_dst]: the number of this block's edges at each destination."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def dst(self) -> Array:
        """[edges] int64: the destination of each edge, a row number."""
        if self._dst is None:
            if isinstance(self.indptr, np.ndarray):
                self._dst = np.repeat(np.arange(self.dst_first, self.dst_first + self.num_dst), self.in_degrees)
            else:
                torch = _arrays.torch_module()
                rows = torch.arange(self.dst_first, self.dst_first + self.num_dst, device=self.indptr.device)
                self._dst = torch.repeat_interleave(rows, self.in_degrees, output_size=self.num_edges)
        return self._dst

    @property
    def edge_index(self) -> Array:
        """[2, edges] int64: row numbers of sources and destinations, as PyTorch Geometric's layers take them."""
        if isinstance(self.indptr, np.ndarray):
            return np.stack([self.indices, self.dst])
        return _arrays.torch_module().stack([self.indices.to(self.dst.dtype), self.dst])

    def _changed(self, change: Change) -> Edges:
        changed = Edges(self.etype, (self.src_type, self.dst_type), (self.num_src, self.num_dst),
                        (change(self.indptr), change(self.indices), _of(self.edge_ids, change)), self.dst_first)
        changed.data = _each(self.data, change)
        return changed

    def to(self, device: Any, non_blocking: bool = False) -> Edges:
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dst": None}

    def __repr__(self) -> str:
        return f"<graphwire.Edges {self.etype}: {self.num_edges} edges, {self.num_src} -> {self.num_dst}>"


@keywords
class Block:
    """One hop of a batch.

    num_src, num_dst: {node type: number of rows} of sources and of destinations.
    edges: {"src:rel:dst": Edges}.
    """

    __module__ = "graphwire.batch"

    def __init__(self, num_src: dict[str, int], num_dst: dict[str, int], edges: dict[str, Edges]):
        self.num_src, self.num_dst, self.edges = num_src, num_dst, edges

    def __getitem__(self, etype: Any) -> Edges:
        """The Edges of a type: "src:rel:dst", ("src", "rel", "dst"), or "rel" if only one edge type has that relation.

        Raises KeyError, which lists the block's edge types. A block lacks the types that no fanout names.
        """
        name = etype if isinstance(etype, str) else ":".join(etype)
        if name in self.edges:
            return self.edges[name]
        found = [edges for full, edges in self.edges.items() if full.split(":")[1:2] == [name]]
        if len(found) != 1:
            known = ", ".join(self.edges)
            raise KeyError(f"the block has {len(found) or 'no'} edge types {name!r}; there are: {known}")
        return found[0]

    @property
    def only(self) -> Edges:
        """The Edges of the only edge type. Raises ValueError, which lists the types, if the block has several."""
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


@keywords
class Batch:
    """A mini-batch.

    epoch, step: the loader's position when it returned the batch.
    seeds: [seeds] int64, global ids.
    seed_rows: [seeds] int64, the row of each seed among the nodes of its type, and so its row in a model's output.
        Equal seeds share a row, but not in a disjoint batch.
    nodes: {node type: [n] int64}, global ids, each once, in the order of the rows of blocks[0]'s sources. In a disjoint
        batch each once in its group, so that an id may repeat.
    groups: in a disjoint batch, {node type: [n] int64}, the group of each node; else None. Groups are the seeds in
        their order, from 0 on. In a batch of edges they are, type after type: the sources of the edges, their
        destinations, and their negatives, edge after edge. An edge leads from a node to one of the same group.
    seed_times: [seeds] int64, or float64, the times of the seeds; None: edges were not drawn by time.
    blocks: a list of Block, outermost hop first.
    features: {node type: {feature: [n, …]}}, a row for each node.
    labels: {feature: [seeds, …]}, a row for each seed.
    frontier: "all" or "new", the loader's.
    etypes: the graph's edge types, also those without an edge in the batch.

    If the seeds were given by node type, seeds, seed_rows and seed_times are {node type: …}, and labels
    {node type: {feature: …}}. Groups then count the seeds of all types, type after type.

    In a batch of an EdgeLoader, seeds are ids of edges, labels are features of these edges, and seed_rows is None. It
    has more attributes:

    src_rows, dst_rows: [seeds] int64, the rows of each edge's source and destination among the nodes of their types.
    negative_rows: [seeds, negatives] int64, the row of each negative's drawn end among the nodes of that end's type.
    true_edges: with no_true_edges, the number of negatives that are edges of the graph nevertheless.
    edge_type: the edge type of the seeds.

    If the seeds were given by edge type, these attributes, seeds and labels are {edge type: …}, and edge_type is None.

    Memory: feature rows, edge rows and the arrays of the blocks are views of the library's memory. The library takes
    all of it back when the batch and the last such array are freed; a batch need not be released. A single array that
    is kept (x, an indptr, or a slice of one) keeps the memory of the whole batch. Where a GPU is in use, rows of 64 KiB
    and more are in pinned memory instead, and keep only their own. Ids (seeds, nodes), row numbers and labels own their
    memory. So do the results of to_pyg(), and rows of a type that torch lacks (see Feature). To keep data without the
    rest of the batch, keep these arrays, or copies.

    pickle, torch.save and the workers of a DataLoader copy a batch's arrays to another process or a file. An unpickled
    batch has no digest().
    """

    __module__ = "graphwire.batch"

    _form: Any = None
    _converter: ClassVar[Callable[[Batch, Any], Any]]  # to_pyg() calls it; graphwire/__init__.py sets it

    def __init__(self, seeds: Any, seed_rows: Any, nodes: dict[str, Array], blocks: list[Block],
                 features: dict[str, dict[str, Array]], labels: dict[str, Any]):
        self.epoch = self.step = 0
        self.frontier = "all"
        self.seeds, self.seed_rows, self.labels = seeds, seed_rows, labels
        self.nodes, self.blocks, self.features = nodes, blocks, features
        self.etypes: list[str] = []
        self.src_rows: Array = None
        self.dst_rows: Array = None
        self.negative_rows: Array = None
        self.true_edges: Any = 0
        self.groups: dict[str, Array] | None = None
        self.seed_times: Any = None
        self.edge_type: str | None = None
        self._lease: Lease | None = None

    @classmethod
    def _of_lease(cls, lease: Lease, form: Any, seeds: Any, seed_rows: Any) -> Batch:
        """The batch of a lease's gw_minibatch, whose nodes, blocks and features `form` makes when they are asked for: a
        batch of many types has hundreds of arrays. form: a graphwire._train.minibatch.Form."""
        batch = cls(seeds, seed_rows, {}, [], {}, {})
        del batch.nodes, batch.blocks, batch.features, batch.groups
        batch._lease, batch._form = lease, form
        return batch

    def _make(self) -> dict[str, Any]:
        """Makes all attributes that are not made yet, and returns the attributes."""
        return {**self.__dict__, "nodes": self.nodes, "groups": self.groups, "blocks": self.blocks,
                "features": self.features}

    @cached_property
    @eager
    def nodes(self) -> dict[str, Array]:
        return self._form.nodes(self._lease)

    @cached_property
    @eager
    def groups(self) -> dict[str, Array] | None:
        return None if self._lease is None else self._form.groups(self._lease)

    @cached_property
    @eager
    def blocks(self) -> list[Block]:
        return self._form.blocks(self._lease)

    @cached_property
    @eager
    def features(self) -> dict[str, dict[str, Array]]:
        return self._form.features(self._lease)

    @property
    def num_edges(self) -> int:
        if self._lease is not None and "blocks" not in self.__dict__:
            return int(self._lease.minibatch.edge_count)
        return sum(block.num_edges for block in self.blocks)

    @property
    def num_seeds(self) -> int:
        """The number of seeds of all types."""
        return sum(len(ids) for ids in _leaves(self.seeds))

    @property
    def x(self) -> Any:
        """The feature rows, if each node type has at most one feature: [n, …] if the graph has one node type, else
        {node type: [n, …]}. Raises ValueError if a type has several features, or if the loader got no features=."""
        only = _one_of_each(self.features, "features", "features")
        return next(iter(only.values())) if len(self.nodes) == 1 else only

    @property
    def y(self) -> Any:
        """The label rows, if the loader got one name of a label: [seeds, …]; {type: [seeds, …]} if the seeds were given
        by type. Raises ValueError if a type has several labels, or if the loader got no labels=."""
        if isinstance(self.seeds, dict):
            return _one_of_each(self.labels, "labels", "labels")
        if len(self.labels) != 1:
            raise ValueError(f"the batch has {len(self.labels)} labels; the loader's argument is labels=")
        return next(iter(self.labels.values()))

    def digest(self) -> int:
        """XXH3-64 over the whole content of the batch. Equal batches have equal digests, in every language and over
        every transport. Raises ValueError for a batch that was moved to a device, pickled or copied: such a batch has
        only copies of the arrays, and the digest is computed from the library's memory."""
        if self._lease is None:
            raise ValueError("a batch that was moved, pickled or copied has no digest: compute it before")
        return int(lib.gw_minibatch_digest(self._lease.minibatch))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self._make().items() if name != "_form"} | {"_lease": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A batch that an older version pickled lacks the attributes that came later."""
        self.__dict__.update(Batch(None, None, {}, [], {}, {}).__dict__)
        self.__dict__.update(state)

    def _changed(self, change: Change) -> Batch:
        changed = Batch(_of(self.seeds, change), _of(self.seed_rows, change), _each(self.nodes, change),
                        [block._changed(change) for block in self.blocks], _each(self.features, change),
                        _each(self.labels, change))
        changed.src_rows, changed.dst_rows = _of(self.src_rows, change), _of(self.dst_rows, change)
        changed.negative_rows, changed.true_edges = _of(self.negative_rows, change), self.true_edges
        changed.groups, changed.seed_times = _of(self.groups, change), _of(self.seed_times, change)
        changed.epoch, changed.step, changed.edge_type = self.epoch, self.step, self.edge_type
        changed.frontier, changed.etypes = self.frontier, self.etypes
        return changed

    def to_pyg(self, attributes: Mapping[str, str | Mapping[str, str]] | None = None) -> Any:
        """Converts the mini-batch to torch_geometric's Data, or to HeteroData if the graph has several types.
        HeteroData has every type of the graph.

        The result has the form of NeighborLoader's batches: seeds first, each node once, and each node's neighbours
        drawn once, at the hop after the one that reached it. It has feature rows of nodes and edges, and owns its
        memory. Give the loader frontier="new", if you need only this form: then it draws no other edges.

        attributes: {feature: attribute's name}, such as {"feat": "x", "label": "y"}. To name the rows of one kind only,
            give {kind: {feature: name}}. The kinds are "features" (of nodes), "edge_features" and "labels". Both forms
            can be combined: {"feat": "x", "edge_features": {"feat": "edge_attr"}}. Labels have batch_size rows.

        The result also has n_id, e_id, batch_size, num_sampled_nodes and num_sampled_edges. A batch of an EdgeLoader
        gives edge_label_index, input_id and, if it has negatives, negative_index: [seeds, negatives], rows of nodes.
        e_id and an EdgeLoader's input_id are the graph's ids of edges; graphwire.EdgeIds translates them to original
        ids. A disjoint batch gives `batch` of every node type, which is `groups`. A batch by time gives seed_time of
        the seeds' node types, or edge_label_time of their edge types.

        Raises ValueError, which names the features, if two features of a type would have the same name (in Data, two
        features of any type), or if a name is PyG's own (edge_index, num_nodes, …; in a disjoint batch, also batch).
        """
        return Batch._converter(self, attributes)

    @traced("to device")
    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """A copy of the batch on another device; needs torch. The copy has no digest()."""
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    @traced("to pinned memory")
    def pinned(self) -> Batch:
        """A copy of the batch in pinned memory, which a GPU can read directly. Rows that landed in it are not
        copied."""
        return self._changed(lambda tensor: tensor.pin_memory())

    def _tensors(self) -> Iterator[Array]:
        for part in (self.seeds, self.seed_rows, self.src_rows, self.dst_rows, self.negative_rows, self.nodes,
                     self.groups, self.seed_times, self.labels, self.features):
            yield from _leaves(part)
        for block in self.blocks:
            for edges in block.edges.values():
                yield from (edges.indptr, edges.indices, *_leaves(edges.edge_ids), *edges.data.values())

    def record_stream(self, stream: Any) -> None:
        """Calls record_stream of all tensors: CUDA's allocator then knows that this stream uses the tensors."""
        for tensor in self._tensors():
            tensor.record_stream(stream)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{len(ids)} {ntype}" for ntype, ids in self.nodes.items())
        groups = "" if self.groups is None else ", disjoint" if self.seed_times is None else ", disjoint by time"
        return (f"<graphwire.Batch: {self.num_seeds} seeds, {nodes}, {self.num_edges} edges, {len(self.blocks)} hops"
                f"{groups}>")
