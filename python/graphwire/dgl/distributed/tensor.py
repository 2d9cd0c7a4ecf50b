"""DistTensor: a feature of the graph, or a tensor that the trainers make, with a row for each node or edge of a type.

DistTensor(shape, dtype, name) -> t[ids] -> t[ids] = rows

The first trainer creates the tensor, and the others open it, without a barrier. An existing tensor of the name is
opened if it has the same shape and dtype, even if its initial values differ. An init_func that must be called needs
barriers: rank 0 calls the function once for each part, and the other trainers wait.

Errors: AssertionError and DGLError, as in DGL; those of graphwire.Tensor and Feature.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch

import graphwire
from graphwire._base.keywords import keywords
from graphwire._graph.tensor import shape_of
from graphwire.dgl.distributed import initial
from graphwire.dgl.distributed.book import EdgePartitionPolicy, NodePartitionPolicy, PartitionPolicy
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.optim_state import State
from graphwire.dgl.distributed.user_edges import UserEdges
from graphwire.dgl.host import error_type
from graphwire.dgl.id_arrays import ids_tensor

InitFunc = Callable[[Any, torch.dtype], torch.Tensor]

_anonymous = 0


def rows_of(ids: Any, count: int) -> np.ndarray:
    """Converts ids as DGL does: a single integer gives one row, with the first dimension. A tuple raises IndexError,
    because it means one element in torch and several rows in DGL."""
    if isinstance(ids, tuple):
        raise IndexError(f"rows are a list or a tensor of ids, a slice or a mask, not {ids!r}")
    return ids_tensor(slice(None) if ids is Ellipsis else ids, count, "rows").numpy()


def _policies() -> list[PartitionPolicy]:
    """The policies of all node and edge types of the graph."""
    if context.dist_graph is None:
        raise error_type()("DistTensor: no graph is open: make the DistGraph before")
    book = context.dist_graph.get_partition_book()
    return [*[NodePartitionPolicy(book, ntype) for ntype in book.ntypes],
            *[EdgePartitionPolicy(book, etype) for etype in book.canonical_etypes]]


def policy_for(rows: int, given: PartitionPolicy | None) -> PartitionPolicy:
    """The given policy, or the only policy with `rows` rows. Raises AssertionError, as DGL does."""
    found = [given] if given is not None else [policy for policy in _policies() if policy.get_size() == rows]
    if len(found) > 1:
        raise AssertionError(f"Multiple partition policies match the input shape: {rows} rows may be "
                             f"{', '.join(policy.policy_str for policy in found)}. Please provide a partition policy "
                             "explicitly: part_policy=")
    if not found:
        raise AssertionError(f"Cannot find a right partition policy: no node or edge type has {rows} of them")
    if found[0].get_size() != rows:
        raise AssertionError(f"The partition policy does not match the input shape: {found[0].policy_str} has "
                             f"{found[0].get_size()} rows, not {rows}")
    return found[0]


@keywords
class DistTensor:
    """dgl.distributed.DistTensor.

    shape: (rows, …). dtype: torch's. name: None: an anonymous tensor.
    init_func: initial values, a function of (shape, dtype); None: zeros.
    part_policy: the type of the rows; None: the only type with this number of rows.
    persistent: keep the tensor when its last object is freed.

    DistGraph makes the DistTensors of features, which are read-only. A tensor of bools, uint8 or int8 can be passed
    as a mask to every function that takes ids.
    """

    rows_by_id = True

    def __init__(self, shape: Any, dtype: torch.dtype, name: str | None = None, init_func: InitFunc | None = None,
                 part_policy: PartitionPolicy | None = None, persistent: bool = False, is_gdata: bool = True,
                 attach: bool = True):
        context.collect()
        shape = shape_of(shape)
        self._part_policy = policy_for(shape[0], part_policy)
        if name is None:
            if persistent:
                raise AssertionError("We cannot generate anonymous persistent distributed tensors")
            global _anonymous
            name = f"anonymous-{_anonymous}"
            _anonymous += 1
        if not isinstance(name, str):
            raise AssertionError(f"name {name} is type {type(name)}")
        self._tensor_name, self._persistent, self._init_func = name, persistent, init_func
        self._gdata = is_gdata
        policy = self._part_policy
        state = context.states().get(str(policy.get_data_name(name)))
        if state is not None:
            self._open_state(state, shape, dtype)
            return
        graph = self._graph = policy.partition_book.opened()
        self._user_edges = None if policy.is_node else UserEdges(graph)
        where = {"ntype": policy.type_name} if policy.is_node else {"etype": policy.type_name}
        known = initial.known(init_func, dtype)

        def create() -> Any:
            full = policy.stored_name(name)
            try:
                return graph.create_tensor(full, (0, *shape[1:]), dtype, initial="zeros" if known is None else known,
                                           seed=initial.seed_of(name), **where)
            except graphwire.GraphwireError as error:
                if error.status != "GW_EXISTS":
                    raise
                found = graph.open_tensor(full)  # the name includes the type, so only initial values may differ
                if (tuple(found.shape), found.dtype) != (shape, dtype):
                    raise
                return found

        self._data: Any = create() if known is not None else initial.filled(create, policy, name, init_func,
                                                                            self._rows)
        self._use = context.made(self._data.name, persistent, graph)

    @classmethod
    def of_feature(cls, feature: graphwire.Feature, policy: PartitionPolicy) -> DistTensor:
        """Makes the DistTensor of a feature of the graph."""
        made = cls.__new__(cls)
        made._data, made._part_policy, made._graph = feature, policy, feature._graph
        made._tensor_name, made._persistent, made._gdata = feature.name, True, True
        made._init_func = None
        made._user_edges = None if policy.is_node else UserEdges(feature._graph)
        return made

    @classmethod
    def of_state(cls, state: State) -> DistTensor:
        """Makes the DistTensor of an optimizer's state. While it exists, other objects find the state by its name."""
        made = cls.__new__(cls)
        made._open_state(state, state.shape, state.dtype)
        context.made_state(str(made.name), state)
        return made

    def _open_state(self, state: State, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        if (tuple(state.shape), state.dtype) != (tuple(shape), dtype):
            raise AssertionError(f"{state.name} is an optimizer's state, {list(state.shape)} {state.dtype}, not "
                                 f"{list(shape)} {dtype}")
        table: DistTensor = state.table
        self._data, self._part_policy, self._graph = state, table._part_policy, table._graph
        self._tensor_name, self._persistent, self._gdata, self._init_func = state.name, False, False, None
        self._user_edges, self._use = table._user_edges, table._use

    def _rows(self, idx: Any) -> Any:
        """Translates ids to the rows of the graph's tensor."""
        ids = rows_of(idx, self.rows_of)
        return ids if self._user_edges is None else self._user_edges.positions(self._part_policy.type_name, ids)

    def __getitem__(self, idx: Any) -> torch.Tensor:
        context.collect()
        return torch.as_tensor(self._data[self._rows(idx)])

    def _wide(self, idx: Any) -> torch.Tensor:
        """Rows of real numbers as float32."""
        context.collect()
        return torch.as_tensor(self._data._read(self._rows(idx), torch.float32))

    def __setitem__(self, idx: Any, val: Any) -> None:
        if isinstance(self._data, graphwire.Feature):
            raise error_type()(f"{self.name} is a feature of the graph, which does not change: make a DistTensor")
        ids = self._rows(idx)
        if isinstance(val, torch.Tensor):
            val = val.detach()
        self._data[ids] = val

    def push(self, idx: Any, gradients: torch.Tensor, *, kind: str, lr: float, combine: str = "sum", eps: float = 1e-8,
             betas: tuple[float, float] = (0.9, 0.999), step: int = 0) -> None:
        """Trains rows on their servers. graphwire.Tensor.push documents the arguments."""
        self._data.push(self._rows(idx), gradients, kind=kind, lr=lr, combine=combine, eps=eps, betas=betas, step=step)

    @property
    def rows_of(self) -> int:
        """The number of rows, a arrays.RowsOf."""
        return self._part_policy.get_size()

    def __len__(self) -> int:
        return int(self._data.shape[0])

    def __or__(self, other: DistTensor) -> DistTensor:
        """The union of two masks, as a new DistTensor. All trainers must call it."""
        union = DistTensor(self.shape, self.dtype, part_policy=self._part_policy)
        if context.rank == 0:
            for part in range(self._graph.num_parts):
                ids = self._part_policy.ids_of(part)
                union[ids] = self[ids] | other[ids]
        context.barrier()
        return union

    def __repr__(self) -> str:
        return f"DistTensor(shape={self.shape}, dtype={self.dtype})"

    def __reduce__(self) -> Any:
        if isinstance(self._data, State):
            return _state_again, (self._data.table, self._data.kind, self._data.word)
        if isinstance(self._data, graphwire.Tensor):
            return _again, (self.shape, self.dtype, self._tensor_name, self._part_policy.policy_str,
                            self._graph.graph_id)
        return _feature_again, (self._tensor_name, self._part_policy.policy_str, self._graph.graph_id)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._data.shape)

    @property
    def dtype(self) -> torch.dtype:
        found: torch.dtype = self._data.dtype
        return found

    @property
    def part_policy(self) -> PartitionPolicy:
        return self._part_policy

    @property
    def name(self) -> str:
        return self._part_policy.get_data_name(self._tensor_name)

    kvstore_key = name

    @property
    def tensor_name(self) -> str:
        return self._tensor_name

    @property
    def kvstore(self) -> Any:
        return context.client

    @property
    def local_partition(self) -> torch.Tensor:
        """A copy of the rows of this trainer's part."""
        return self[self._part_policy.ids_of(self._part_policy.part_id)]

    def count_nonzero(self) -> int:
        if isinstance(self._data, graphwire.Tensor):
            return int(self._data.count_nonzero())
        return sum(int(torch.count_nonzero(self[self._part_policy.ids_of(part)]))
                   for part in range(self._graph.num_parts))


def _policy_again(text: str, graph_id: str) -> PartitionPolicy:
    """Raises DGLError if the process has another graph open, or none."""
    if context.dist_graph is None or context.dist_graph.graph.graph_id != graph_id:
        raise error_type()(f"a DistTensor of graph {graph_id} is unpickled in a process that has another graph open: "
                           "make or unpickle its DistGraph before")
    return PartitionPolicy(text, context.dist_graph.get_partition_book())


def _again(shape: Any, dtype: torch.dtype, name: str, policy: str, graph_id: str) -> DistTensor:
    """Unpickles a DistTensor in another process of the job, in which the tensor exists already."""
    return DistTensor(shape, dtype, name, part_policy=_policy_again(policy, graph_id), persistent=True)


def _state_again(table: DistTensor, kind: str, word: str) -> DistTensor:
    return DistTensor.of_state(State(table, kind, word))


def _feature_again(name: str, policy: str, graph_id: str) -> DistTensor:
    found = _policy_again(policy, graph_id)
    view = context.dist_graph.nodes if found.is_node else context.dist_graph.edges
    tensor: DistTensor = view[found.type_name].data[name]
    return tensor
