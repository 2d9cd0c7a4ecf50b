"""The partition book, which maps ids to parts; and partition policies, which name the type whose rows a tensor has.

The ids of a type are contiguous within a part, so all calculations need only a list of the ranges' ends. Homogeneous
ids number all types of part 0 first, and then those of part 1, as in DGL.

Errors: OutOfRangeError, IndexError and TypeError for ids and parts; DGLError for types and policies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import graphwire
from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.escape import escaped_tensor, escaped_type
from graphwire._base.keywords import keywords
from graphwire.dgl.distributed.context import context
from graphwire.dgl.host import error_type
from graphwire.dgl.types import Types

Ids = Any


class _Ranges:
    """The ranges of ids. ends[type][part]: the end of the part's ids of the type. offsets[part][type]: the first
    homogeneous id of the type in the part. `kind` is a type's number; None stands for homogeneous ids. names: those of
    the types."""

    def __init__(self, sizes: np.ndarray, of_edges: bool, names: list[str]):
        self._of_edges, self._names = of_edges, names
        self.ends = np.cumsum(sizes, 1)  # [types, parts]
        flat = np.concatenate([[0], np.cumsum(sizes.T.reshape(-1))])
        self.offsets = flat[:-1].reshape(sizes.shape[1], sizes.shape[0])
        self.flat_ends = flat[1:]
        self.part_ends = flat[sizes.shape[0]::sizes.shape[0]]

    def part_of(self, kind: int | None, ids: Ids) -> torch.Tensor:
        ends = self.part_ends if kind is None else self.ends[kind]
        return torch.from_numpy(np.searchsorted(ends, self.checked(kind, ids), side="right"))

    def checked(self, kind: int | None, ids: Ids) -> np.ndarray:
        """Ids as int64. Raises OutOfRangeError for an id that does not exist."""
        count = self.count(kind)
        array = _arrays.ids_array(ids, count)
        wrong = np.flatnonzero((array < 0) | (array >= count))
        if len(wrong):
            raise graphwire.OutOfRangeError("GW_RANGE", f"id {array[wrong[0]]} at position {wrong[0]}: ids run from 0 "
                                            f"to {count - 1}")
        return array

    def ids_of(self, kind: int | None, part: int) -> torch.Tensor:
        ends = self.part_ends if kind is None else self.ends[kind]
        if checks.as_integer(part) is None:
            raise TypeError(f"partid is an integer, not {part!r}")
        if not 0 <= part < len(ends):
            raise IndexError(f"the graph has {len(ends)} parts, and no part {part}")
        return torch.arange(int(ends[part - 1]) if part else 0, int(ends[part]))

    def begin(self, kind: int | None, part: int) -> int:
        ends = self.part_ends if kind is None else self.ends[kind]
        return int(ends[part - 1]) if part else 0

    def count(self, kind: int | None) -> int:
        if kind is None:
            return int(self.part_ends[-1])
        return _arrays.RowsOf(self.ends[kind][-1], None, self._of_edges, self._names[kind])

    def to_homo(self, kind: int, ids: Ids) -> torch.Tensor:
        array = self.checked(kind, ids)
        part = np.searchsorted(self.ends[kind], array, side="right")
        begin = np.concatenate([[0], self.ends[kind][:-1]])
        return torch.from_numpy(array - begin[part] + self.offsets[part, kind])

    def from_homo(self, ids: Ids) -> tuple[torch.Tensor, torch.Tensor]:
        """(types, ids within the types) of homogeneous ids."""
        array = self.checked(None, ids)
        slot = np.searchsorted(self.flat_ends, array, side="right")
        part, kind = np.divmod(slot, self.ends.shape[0])
        begin = np.concatenate([np.zeros((self.ends.shape[0], 1), np.int64), self.ends[:, :-1]], 1)
        return torch.from_numpy(kind), torch.from_numpy(array - self.offsets[part, kind] + begin[kind, part])


@keywords
class GraphPartitionBook(Types):
    """dgl.distributed.GraphPartitionBook, as ranges of ids.

    node_sizes, edge_sizes: [types, parts], the number of ids of each type in each part. part: this trainer's part.
    """

    def __init__(self, name: str, part: int, ntypes: list[str], canonical_etypes: list[tuple[str, str, str]],
                 node_sizes: np.ndarray, edge_sizes: np.ndarray):
        super().__init__(ntypes, canonical_etypes)
        self.graph_name, self._partid = name, part
        self._parts = int(node_sizes.shape[1])
        self._graph: graphwire.Graph | None = None  # the opened graph that the book is of
        self._nodes = _Ranges(node_sizes, False, ntypes)
        self._edges = _Ranges(edge_sizes, True, [":".join(etype) for etype in canonical_etypes])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_graph": None}

    def opened(self) -> graphwire.Graph:
        """The opened graph that the book is of; of a book from a file, the job's."""
        found: graphwire.Graph = context.open() if self._graph is None else self._graph
        return found

    @property
    def partid(self) -> int:
        """The part of this trainer."""
        return self._partid

    def num_partitions(self) -> int:
        return self._parts

    def metadata(self) -> list[dict[str, int]]:
        return [{"machine_id": part, "num_nodes": len(self._nodes.ids_of(None, part)),
                 "num_edges": len(self._edges.ids_of(None, part))} for part in range(self._parts)]

    def shared_memory(self, graph_name: str) -> None:
        """Does nothing, because each process calculates its own book."""

    def _node_kind(self, ntype: str | None) -> int | None:
        """A node type's number. In a graph of several types, None and "_N" stand for homogeneous ids, and the result is
        None."""
        if ntype in (None, "_N") and "_N" not in self.ntypes:
            return None if len(self.ntypes) > 1 else 0
        return self.get_ntype_id(ntype)

    def _edge_kind(self, etype: Any) -> int | None:
        if etype in (None, "_E", ("_N", "_E", "_N")) and ("_N", "_E", "_N") not in self.canonical_etypes:
            return None if len(self.canonical_etypes) > 1 else 0
        return self.get_etype_id(etype)

    def _num_nodes(self, ntype: str | None = "_N") -> int:
        return self._nodes.count(self._node_kind(ntype))

    def _num_edges(self, etype: Any = "_E") -> int:
        return self._edges.count(self._edge_kind(etype))

    def nid2partid(self, nids: Ids, ntype: str | None = "_N") -> torch.Tensor:
        return self._nodes.part_of(self._node_kind(ntype), nids)

    def eid2partid(self, eids: Ids, etype: Any = "_E") -> torch.Tensor:
        return self._edges.part_of(self._edge_kind(etype), eids)

    def partid2nids(self, partid: int, ntype: str | None = "_N") -> torch.Tensor:
        return self._nodes.ids_of(self._node_kind(ntype), partid)

    def partid2eids(self, partid: int, etype: Any = "_E") -> torch.Tensor:
        return self._edges.ids_of(self._edge_kind(etype), partid)

    def _own(self, partid: int) -> None:
        if partid != self._partid:
            raise RuntimeError(f"local ids exist only for this trainer's part, {self._partid}, not for part {partid}")

    def nid2localnid(self, nids: Ids, partid: int, ntype: str | None = "_N") -> torch.Tensor:
        self._own(partid)
        kind = self._node_kind(ntype)
        return torch.from_numpy(self._nodes.checked(kind, nids) - self._nodes.begin(kind, partid))

    def eid2localeid(self, eids: Ids, partid: int, etype: Any = "_E") -> torch.Tensor:
        self._own(partid)
        kind = self._edge_kind(etype)
        return torch.from_numpy(self._edges.checked(kind, eids) - self._edges.begin(kind, partid))

    def map_to_per_ntype(self, ids: Ids) -> tuple[torch.Tensor, torch.Tensor]:
        return self._nodes.from_homo(ids)

    def map_to_per_etype(self, ids: Ids) -> tuple[torch.Tensor, torch.Tensor]:
        return self._edges.from_homo(ids)

    def map_to_homo_nid(self, ids: Ids, ntype: str | None = "_N") -> torch.Tensor:
        return self._nodes.to_homo(self.get_ntype_id(ntype), ids)

    def map_to_homo_eid(self, ids: Ids, etype: Any = "_E") -> torch.Tensor:
        return self._edges.to_homo(self.get_etype_id(etype), ids)

    @property
    def local_ntype_offset(self) -> list[int]:
        sizes = [len(self._nodes.ids_of(kind, self._partid)) for kind in range(len(self.ntypes))]
        return [0, *np.cumsum(sizes).tolist()]

    @property
    def local_etype_offset(self) -> list[int]:
        sizes = [len(self._edges.ids_of(kind, self._partid)) for kind in range(len(self.canonical_etypes))]
        return [0, *np.cumsum(sizes).tolist()]


@keywords
class RangePartitionBook(GraphPartitionBook):
    """dgl.distributed's constructor of a book.

    part_id: this trainer's part. node_map, edge_map: {type: [parts, 2]}, the begin and the end of the homogeneous ids
    of each part. ntypes, etypes: {type: number}. Edge types are (source type, relation, destination type).

    Raises AssertionError for another form of edge types and for a part or a range that does not fit.
    """

    def __init__(self, part_id: int, num_parts: int, node_map: Any, edge_map: Any, ntypes: dict[str, int],
                 etypes: dict[Any, int]):
        if not 0 <= part_id < num_parts:
            raise AssertionError(f"part_id {part_id}: there are {num_parts} parts")
        for etype in etypes:
            if not isinstance(etype, tuple) or len(etype) != 3:
                raise AssertionError(f"etypes: (source type, relation, destination type), not {etype!r}")
        kinds = [sorted(types, key=types.get) for types in (ntypes, etypes)]  # type: ignore[arg-type]
        sizes = [_sizes_of(ranges, names, num_parts) for ranges, names in zip((node_map, edge_map), kinds)]
        super().__init__("", part_id, kinds[0], kinds[1], *sizes)


def _sizes_of(ranges: Any, names: list[Any], parts: int) -> np.ndarray:
    """[types, parts], the sizes of ranges of homogeneous ids. Raises AssertionError."""
    found = np.zeros((len(names), parts), np.int64)
    for number, name in enumerate(names):
        if name not in ranges:
            raise AssertionError(f"no ranges of {name!r}")
        rows = np.asarray(ranges[name], np.int64)
        if rows.shape != (parts, 2) or (rows[:, 0] > rows[:, 1]).any():
            raise AssertionError(f"{name!r}: the begin and the end of a range in each of {parts} parts, not "
                                 f"{list(rows.shape)}")
        found[number] = rows[:, 1] - rows[:, 0]
    return found


def book_of_sizes(*arguments: Any) -> RangePartitionBook:
    """A book with the arguments of GraphPartitionBook. Books are RangePartitionBooks in DGL, too."""
    made = RangePartitionBook.__new__(RangePartitionBook)
    GraphPartitionBook.__init__(made, *arguments)
    return made


def book_of(graph: graphwire.Graph, part: int) -> GraphPartitionBook:
    """The partition book of an opened graph. part: this trainer's part."""
    types = Types.of(graph)
    nodes = np.array([[len(graph.part_range(p, ntype)) for p in range(graph.num_parts)] for ntype in graph.ntypes])
    edges = np.array([[len(graph.part_edge_range(p, etype)) for p in range(graph.num_parts)]
                      for etype in graph.etypes])
    book = book_of_sizes(graph.name, part, types.ntypes, types.canonical_etypes, nodes, edges)
    book._graph = graph
    return book


class HeteroDataName(str):
    """"node~TYPE~NAME" or "edge~SRC:REL:DST~NAME": the name of a tensor with its type of rows.

    Raises AssertionError for an edge type that is not (source type, relation, destination type).
    """

    def __new__(cls, is_node: bool, entity_type: Any, data_name: str) -> HeteroDataName:
        if not is_node and (not isinstance(entity_type, tuple) or len(entity_type) != 3):
            raise AssertionError(f"an edge type is (source type, relation, destination type), not {entity_type!r}")
        policy = f"node~{entity_type}" if is_node else f"edge~{':'.join(entity_type)}"
        made = super().__new__(cls, f"{policy}~{data_name}")
        made.policy_str, made._is_node, made._type, made.data_name = policy, is_node, entity_type, data_name
        return made

    policy_str: str
    data_name: str
    _is_node: bool
    _type: Any

    def __reduce__(self) -> Any:
        return HeteroDataName, (self._is_node, self._type, self.data_name)

    def is_node(self) -> bool:
        return self._is_node

    def is_edge(self) -> bool:
        return not self._is_node

    def get_type(self) -> Any:
        return self._type

    def get_name(self) -> str:
        return self.data_name


@keywords
class PartitionPolicy:
    """The type whose rows a tensor has: a node type, "node~_N", or an edge type, "edge~_N:_E:_N"."""

    def __init__(self, policy_str: str, partition_book: GraphPartitionBook):
        kind, tilde, name = policy_str.partition("~")
        if kind not in ("node", "edge") or (tilde and not name):
            raise error_type()(f'a policy is "node~type" or "edge~type", not {policy_str!r}')
        self._book, self._is_node = partition_book, kind == "node"
        if self._is_node:
            self.type_name: Any = partition_book.ntypes[partition_book.get_ntype_id(name or None)]
        else:
            etype = tuple(name.split(":")) if ":" in name else name or None
            self.type_name = partition_book.to_canonical_etype(etype)

    @property
    def policy_str(self) -> str:
        return "node~" + self.type_name if self._is_node else "edge~" + ":".join(self.type_name)

    @property
    def is_node(self) -> bool:
        return self._is_node

    @property
    def part_id(self) -> int:
        return self._book.partid

    def stored_name(self, name: str) -> str:
        """The name under which the servers have a tensor of the policy's rows."""
        kind, _, type_name = self.policy_str.partition("~")
        return f"{kind}/{escaped_type(type_name)}/{escaped_tensor(name)}"

    @property
    def partition_book(self) -> GraphPartitionBook:
        return self._book

    def get_data_name(self, name: str) -> HeteroDataName:
        return HeteroDataName(self._is_node, self.type_name, name)

    def to_local(self, id_tensor: Ids) -> torch.Tensor:
        local = self._book.nid2localnid if self._is_node else self._book.eid2localeid
        return local(id_tensor, self.part_id, self.type_name)

    def to_partid(self, id_tensor: Ids) -> torch.Tensor:
        return (self._book.nid2partid if self._is_node else self._book.eid2partid)(id_tensor, self.type_name)

    def ids_of(self, part: int) -> torch.Tensor:
        """The ids of the type in a part, int64."""
        return (self._book.partid2nids if self._is_node else self._book.partid2eids)(part, self.type_name)

    def get_part_size(self) -> int:
        return len(self.ids_of(self.part_id))

    def get_size(self) -> int:
        return (self._book._num_nodes if self._is_node else self._book._num_edges)(self.type_name)


@keywords
class NodePartitionPolicy(PartitionPolicy):
    def __init__(self, partition_book: GraphPartitionBook, ntype: str | None = "_N"):
        super().__init__("node~" + partition_book.ntypes[partition_book.get_ntype_id(ntype)], partition_book)


@keywords
class EdgePartitionPolicy(PartitionPolicy):
    def __init__(self, partition_book: GraphPartitionBook, etype: Any = "_E"):
        if isinstance(etype, str) and etype not in (*partition_book.etypes, "_E") and ":" not in etype:
            raise AssertionError(f"no edge type {etype!r}; there are {', '.join(partition_book.etypes)}")
        super().__init__("edge~" + ":".join(partition_book.to_canonical_etype(etype)), partition_book)
