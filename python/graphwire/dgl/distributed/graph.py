"""DistGraph, the graph with DGL's interface.

DistGraph(name, part_config=…) -> ndata, edata, find_edges, sample_neighbors, get_partition_book

Errors: those of graphwire.Graph; DGLError, AssertionError and KeyError where DGL raises them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

import torch

from graphwire import Feature
from graphwire._base import checks
from graphwire._base.arrays import used_code
from graphwire._base.keywords import keywords
from graphwire.dgl import host
from graphwire.dgl.distributed import later_rows, sampling
from graphwire.dgl.distributed.book import (
    EdgePartitionPolicy,
    GraphPartitionBook,
    NodePartitionPolicy,
    PartitionPolicy,
    book_of,
)
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.distributed.user_edges import UserEdges, warn_lost
from graphwire.dgl.id_arrays import edges_of, ids_tensor
from graphwire.dgl.types import Types


class Scheme(NamedTuple):
    """The shape and the type of a row."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class DataView(MutableMapping):
    """{name: DistTensor} of one type. An entry that a script adds exists in this process only.

    The original ids, "orig_id", which Graphwire stores and DGL does not, are found by their name. They are not listed,
    and `in` is False, unless a script sets a column of this name.
    """

    def __init__(self, data: dict[str, DistTensor]):
        self._data = data

    def _is_listed(self, name: str) -> bool:
        return name != "orig_id" or not isinstance(self._data[name]._data, Feature)

    def __getitem__(self, name: str) -> DistTensor:
        if name not in self._data:
            raise KeyError(f"{name}; there are {', '.join(self) or 'none'}")
        return self._data[name]

    def __setitem__(self, name: str, value: DistTensor) -> None:
        self._data[name] = value

    def __delitem__(self, name: str) -> None:
        del self._data[name]

    def __contains__(self, name: object) -> bool:
        return name in self._data and self._is_listed(str(name))

    def __len__(self) -> int:
        return sum(map(self._is_listed, self._data))

    def __iter__(self) -> Iterator[str]:
        return filter(self._is_listed, list(self._data))

    def __repr__(self) -> str:
        return repr(dict(self))


class _TypeSpace(NamedTuple):
    data: DataView


class TypeView:
    """g.nodes and g.edges, whose [type].data is a DataView."""

    def __init__(self, of: Any, data: dict[Any, dict[str, DistTensor]]):
        self._of, self._data = of, data

    def __getitem__(self, kind: Any) -> _TypeSpace:
        return _TypeSpace(DataView(self._data[self._of(kind)]))


@keywords
class DistGraph(Types):
    """dgl.distributed.DistGraph.

    graph_name: any name; part_config names the graph.
    gpb: ignored, except a string, which is taken as part_config.
    part_config: the graph's JSON or folder, for a standalone process; ignored in a launched one. The process may
        have other graphs open. Tensors that name no part_policy are of the graph that was opened last.
    dtype: not an argument of DGL: the type of features of real numbers: float32, float16, bfloat16 or float64. None:
        their own; of those that were stored narrow, the original.

    Raises AssertionError before initialize(); RowsError if a program has written rows into the parts that the graph
    lacks; and the errors of graphwire.open.
    """

    def __init__(self, graph_name: str | None = None, gpb: Any = None, part_config: str | None = None, *,
                 dtype: Any = None):
        if isinstance(gpb, str):
            if part_config is not None:  # (ip_config, graph_name, part_config=…) of DGL 0.5
                graph_name = gpb
            else:
                part_config = gpb
        if not context.initialized:
            raise AssertionError("Distributed module is not initialized. Please call dgl.distributed.initialize.")
        self.graph = context.open(part_config)
        later_rows.check(part_config, self.graph)
        self.graph_name = graph_name or self.graph.name
        types = Types.of(self.graph)
        super().__init__(types.ntypes, types.canonical_etypes)
        self._book = book_of(self.graph, context.part_of(context.rank, self.graph.num_parts))
        self._client = context.client
        self._user_edges = UserEdges(self.graph)
        if self.graph.num_parts == 1 and context.rank == 0:
            warn_lost(self._user_edges, [etype for etype in self.canonical_etypes if self.num_edges(etype)])
        self._ndata: dict[Any, dict[str, DistTensor]] = {ntype: {} for ntype in self.ntypes}
        self._edata: dict[Any, dict[str, DistTensor]] = {etype: {} for etype in self.canonical_etypes}
        self._dtype = dtype
        used_code(dtype, torch, (feature.pointer() for feature in self.graph.features))
        for feature in (one._as(dtype) for one in self.graph.features):
            if feature.of_edges:
                etype = self.to_canonical_etype(feature.type)
                self._edata[etype][feature.name] = DistTensor.of_feature(
                    feature, EdgePartitionPolicy(self._book, etype))
            else:
                self._ndata[feature.type][feature.name] = DistTensor.of_feature(
                    feature, NodePartitionPolicy(self._book, feature.type))
        context.dist_graph = self

    def __reduce__(self) -> Any:
        return _again, (self.graph_name, self.graph, self._dtype)

    def __copy__(self) -> DistGraph:
        """The same object. In one process there is one connection to a graph, or one copy of its parts in memory."""
        return self

    def __deepcopy__(self, memo: Any) -> DistGraph:
        return self

    def __repr__(self) -> str:
        return f"DistGraph({self.graph!r})"

    # --- Types, sizes. ---

    @property
    def idtype(self) -> torch.dtype:
        return torch.int64

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def is_pinned(self) -> bool:
        return False

    def num_nodes(self, ntype: str | None = None) -> int:
        """The number of nodes of a type; None: of all types."""
        return self.graph.num_nodes(None if ntype is None else self.ntypes[self.get_ntype_id(ntype)])

    def num_edges(self, etype: Any = None) -> int:
        return self.graph.num_edges(None if etype is None else self.to_canonical_etype(etype))

    def _nodes_of(self, ntype: str | None = None) -> int:
        several = ntype is None and len(self.ntypes) > 1
        return self.num_nodes() if several else self._book._num_nodes(self.ntypes[self.get_ntype_id(ntype)])

    def _edges_of(self, etype: Any = None) -> int:
        several = etype is None and len(self.canonical_etypes) > 1
        return self.num_edges() if several else self._book._num_edges(self.to_canonical_etype(etype))

    number_of_nodes = num_nodes
    number_of_edges = num_edges

    def keeps_edge_ids(self, etype: Any = None) -> bool:
        """Whether edge ids are those of the graph before its partition, as in DGL with one part. False: the graph has
        renumbered its edges."""
        return self._user_edges.keeps(self.to_canonical_etype(etype))

    # --- Data. ---

    @property
    def ndata(self) -> DataView:
        if len(self.ntypes) > 1:
            raise AssertionError("ndata only works for a graph with one node type: use g.nodes[type].data")
        return DataView(self._ndata[self.ntypes[0]])

    @property
    def edata(self) -> DataView:
        if len(self.canonical_etypes) > 1:
            raise AssertionError("edata only works for a graph with one edge type: use g.edges[type].data")
        return DataView(self._edata[self.canonical_etypes[0]])

    @property
    def nodes(self) -> TypeView:
        return TypeView(lambda ntype: self.ntypes[self.get_ntype_id(ntype)], self._ndata)

    @property
    def edges(self) -> TypeView:
        return TypeView(self.to_canonical_etype, self._edata)

    def node_attr_schemes(self) -> dict[str, Scheme]:
        return {name: Scheme(tensor.shape[1:], tensor.dtype) for name, tensor in self.ndata.items()}

    def edge_attr_schemes(self) -> dict[str, Scheme]:
        return {name: Scheme(tensor.shape[1:], tensor.dtype) for name, tensor in self.edata.items()}

    # --- Structure. ---

    def find_edges(self, edges: Any, etype: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(sources, destinations) of edges, int64 each."""
        etype = self.to_canonical_etype(etype)
        positions = self._user_edges.positions(etype, ids_tensor(edges, edges_of(self, etype)))
        found: tuple[torch.Tensor, torch.Tensor] = self.graph.find_edges(positions, etype)
        return found

    def _degrees(self, ids: Any, out_edges: bool) -> Any:
        etype = self.to_canonical_etype(None)
        if isinstance(ids, str):  # dgl.ALL
            ids = slice(None)
        degrees = (self.graph.out_degrees if out_edges else self.graph.in_degrees)(ids, etype)
        return degrees if checks.as_integer(ids) is None else int(degrees[0])

    def in_degrees(self, v: Any = slice(None)) -> Any:
        return self._degrees(v, False)

    def out_degrees(self, u: Any = slice(None)) -> Any:
        return self._degrees(u, True)

    def has_edges_between(self, u: Any, v: Any, etype: Any = None) -> Any:
        return self.graph.has_edges(u, v, self.to_canonical_etype(etype))

    def edges_between(self, u: Any, v: Any, etype: Any = None) -> torch.Tensor:
        """The ids of all edges from u[i] to v[i], including parallel edges, in the order of the pairs. The ids of one
        pair are in no order."""
        etype = self.to_canonical_etype(etype)
        return self._user_edges.of(etype, self.graph.edge_ids(u, v, etype).edge_ids)

    def edge_subgraph(self, edges: Any, relabel_nodes: bool = True, store_ids: bool = True,
                      output_device: Any = None) -> Any:
        """The graph of the given edges, ids or {edge type: ids}. The graph has these edge types, and all node types.
        relabel_nodes: the graph has only the nodes of these edges, with new ids."""
        if not store_ids:
            raise AssertionError("edge_subgraph always stores original node/edge IDs.")
        dgl = host.dgl()
        given = edges if isinstance(edges, dict) else {self.to_canonical_etype(None): edges}
        ids = {self.to_canonical_etype(etype): ids_tensor(some, edges_of(self, etype), "edges")
               for etype, some in given.items()}
        found = sampling.graph_of(self, {etype: (*self.find_edges(some, etype), some) for etype, some in ids.items()})
        return dgl.compact_graphs(found) if relabel_nodes else found

    def sample_neighbors(self, seed_nodes: Any, fanout: Any, edge_dir: str = "in", prob: Any = None,
                         exclude_edges: Any = None, replace: bool = False, etype_sorted: bool = True,
                         output_device: Any = None) -> Any:
        """A frontier, for DGL's NeighborSampler, which makes a block of it. exclude_edges are removed after the
        sampling; DGL 1.1.3 ignores them. Raises DGLError for another edge_dir than "in", which DGL ignores."""
        sampling.check_block_direction(edge_dir)
        return sampling.frontier_of(self, seed_nodes, fanout, edge_dir, prob, replace, exclude_edges)

    def global_uniform_negative_sampling(self, num_samples: int, exclude_self_loops: bool = True, replace: bool = False,
                                         etype: Any = None, redundancy: float | None = None
                                         ) -> tuple[torch.Tensor, torch.Tensor]:
        """At most num_samples pairs that are not edges, drawn uniformly, for DGL's GlobalUniform. replace: pairs may be
        equal. redundancy: the extra pairs to draw, as a fraction of num_samples, because some pairs are edges."""
        src_type, _, dst_type = etype = self.to_canonical_etype(etype)
        count = num_samples + int(num_samples * (0.25 if redundancy is None else redundancy)) + 10
        src = torch.randint(self.num_nodes(src_type), (count,))
        dst = torch.randint(self.num_nodes(dst_type), (count,))
        if exclude_self_loops and src_type == dst_type:
            src, dst = src[src != dst], dst[src != dst]
        if not replace and len(src):
            pairs = torch.unique(torch.stack([src, dst]), dim=1)
            src, dst = pairs[:, torch.randperm(pairs.shape[1])]
        free = ~torch.as_tensor(self.has_edges_between(src, dst, etype))
        return src[free][:num_samples], dst[free][:num_samples]

    # --- Parts, trainers. ---

    def rank(self) -> int:
        return context.rank

    def barrier(self) -> None:
        context.barrier()

    def get_partition_book(self) -> GraphPartitionBook:
        return self._book

    def get_node_partition_policy(self, ntype: str) -> PartitionPolicy:
        return NodePartitionPolicy(self._book, ntype)

    def get_edge_partition_policy(self, etype: Any) -> PartitionPolicy:
        return EdgePartitionPolicy(self._book, etype)

    @property
    def local_partition(self) -> None:
        """None, as in a DGL client without a server on its host: a trainer has no part in its memory."""


def _again(name: str, graph: Any, dtype: Any = None) -> DistGraph:
    """Unpickles a DistGraph in another process of the job."""
    if context.graph is None or context.graph.graph_id != graph.graph_id:
        context.use(graph)
        context.initialized = True
    return context.dist_graph if context.dist_graph is not None else DistGraph(name, dtype=dtype)
