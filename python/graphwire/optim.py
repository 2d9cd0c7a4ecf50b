"""Embeddings whose rows are stored on the servers, and optimizers that run there.

    table = graphwire.Embedding(graph, "author", 64, ntype="author")
    optimizer = graphwire.optim.SparseAdam([table], lr=0.01)
    rows = table(batch.nodes["author"])      # a leaf of autograd
    loss.backward()
    optimizer.step()                         # pushes the gradients and clears the list of rows

The servers apply the pushes of several trainers in the order of their arrival. With sync=True, the gradients of all
ranks are combined in the order of the ranks and pushed once for each step, so that a repeated job gives the same bytes.
All ranks must then call step(). They communicate over gloo, whatever backend torch.distributed was initialized with.

Errors: those of graphwire.Tensor, and ValueError for tables that the ranks do not share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import torch
import torch.distributed as dist

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Ids
from graphwire._base.keywords import keywords
from graphwire._base.opened import Etype
from graphwire._graph.graph import Graph
from graphwire._graph.tensor import Initial, Tensor, check_optimizer, shared


def _trained(dtype: Any) -> Any:
    """Raises ValueError for a type whose rows are not trained."""
    _arrays.dtype_code(dtype, ("float32", "bfloat16", "float16"))
    return dtype


@keywords
class Embedding:
    """A table of rows, [rows, width], stored in a tensor of the graph.

    width: the number of columns.
    rows: the number of rows; None: one for each node of ntype, or for each edge of etype.
    initial: as in Graph.create_tensor; None: uniform in ±1/sqrt(width).
    seed, kept: as in Graph.create_tensor.
    dtype: the type in which rows are stored: "float32", or "bfloat16" or "float16", which halve the bytes of a read and
        of the servers' memory. Rows are read as float32 in any case, and their gradients and the optimizer's state are
        float32. A step rounds the new row to the type, so that steps that are much smaller than the numbers are lost.

    Every rank of a job may make the table: the first one creates the tensor. Ranks without a common job name are
    refused, as by Graph.create_tensor. A table is not a parameter of a module, so a module's state_dict does not hold
    the table; `weight` reads its rows.

    Raises ValueError unless exactly one of rows, and ntype or etype, gives the number of rows; and the errors of
    Graph.create_tensor. Reading rows raises the errors of Feature, and NotFoundError if rows were lost with a server
    that has ended.
    """

    def __init__(self, graph: Graph, name: str, width: int, *, rows: int | None = None, ntype: str | None = None,
                 etype: Etype | None = None, initial: Initial | None = None, seed: int = 0, kept: bool = False,
                 dtype: Any = "float32"):
        if (rows is None) == (ntype is None and etype is None):
            raise ValueError("an embedding needs a number of rows, or an ntype or etype that gives it, and not both")
        width = checks.integer("width", width, 1)
        rows = None if rows is None else checks.integer("rows", rows, 1, 2**63 - 1)
        bound = width**-0.5
        self.tensor: Tensor = graph.create_tensor(
            name, (rows or 0, width), _trained(dtype), ntype=ntype, etype=etype, seed=seed, kept=kept,
            initial=("uniform", -bound, bound) if initial is None else initial)
        self.pending: list[tuple[torch.Tensor, torch.Tensor]] = []  # (ids, rows) read since the last step()

    def __call__(self, ids: Ids, device: Any = None) -> torch.Tensor:
        """Reads rows, [len(ids), width]. While gradients are recorded, the rows are a leaf of autograd, and the next
        step() of an optimizer pushes their gradient.

        ids: integers, or a mask of all rows; a single integer gives [width]. device: the rows' device; None: the CPU.

        Raises the errors of Feature.
        """
        alone = checks.as_integer(ids) is not None  # ids_array refuses a single uint8 or int8
        ids = torch.from_numpy(_arrays.own_ids(ids, self.tensor.rows_of))  # the caller may change its array meanwhile
        rows = torch.as_tensor(self.tensor._read(ids, "float32"))
        if device is not None:
            rows = rows.to(device)
        if torch.is_grad_enabled():
            rows.requires_grad_()
            self.pending.append((ids.clone(), rows))
        return rows[0] if alone else rows

    @property
    def weight(self) -> torch.Tensor:
        """All rows, [rows, width] float32, read from the servers."""
        return torch.as_tensor(self.tensor._read(range(len(self.tensor)), "float32"))

    def __len__(self) -> int:
        return len(self.tensor)

    def __repr__(self) -> str:
        return f"<graphwire.Embedding {self.tensor.name}: {list(self.tensor.shape)} {self.tensor.dtype}>"


_gloo_of: tuple[Any, Any] = (None, None)  # weak references to the group of all ranks, and to its gloo group


def _over_gloo() -> Any:
    """A group over gloo of all ranks, for tensors in the CPU's memory, which nccl does not take. All ranks make it in
    their first step. torch owns the group, and destroy_process_group destroys it."""
    global _gloo_of
    world, gloo = _gloo_of
    group = gloo() if world is not None and world() is dist.group.WORLD else None
    if group is None:
        group = dist.new_group(backend="gloo")
        _gloo_of = ref(dist.group.WORLD), ref(group)
    return group


def _joined(parts: list[torch.Tensor], none: torch.Tensor) -> torch.Tensor:
    """The parts concatenated; a single part without a copy; `none` for no parts."""
    return parts[0] if len(parts) == 1 else torch.cat(parts or [none])


def _of_all_ranks(ids: torch.Tensor, gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids and gradients of all ranks, concatenated in the order of the ranks."""
    world, group = dist.get_world_size(), _over_gloo()
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(world)]
    dist.all_gather(counts, torch.tensor([len(ids)]), group)
    most = max(int(count) for count in counts)
    found = []
    for own in (ids, gradients):
        padded = own.new_zeros(most, *own.shape[1:])
        padded[:len(own)] = own
        every = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(every, padded, group)
        found.append(torch.cat([some[:int(count)] for some, count in zip(every, counts)]))
    return found[0], found[1]


@keywords
class _Sparse:
    """The common part of the optimizers.

    embeddings: the tables to train. lr: the learning rate. combine: how gradients of equal ids are combined, as in
    Tensor.push. sync: combine the gradients of all ranks, and push them once. Raises InvalidError and TypeError for
    other values.
    """

    kind = ""

    def __init__(self, embeddings: Sequence[Embedding], lr: float, combine: str, sync: bool, **options: Any):
        check_optimizer(self.kind, lr, combine, **options)
        self.embeddings, self.lr, self.combine, self.options = list(embeddings), lr, combine, options
        self.sync = checks.flag("sync", sync)

    def __repr__(self) -> str:
        options = "".join(f", {name} {value}" for name, value in self.options.items())
        tables = ", ".join(table.tensor.name for table in self.embeddings)
        return f"<graphwire.optim.{type(self).__name__} of {tables}: lr {self.lr}{options}>"

    def zero_grad(self) -> None:
        """Clears the tables' lists of rows, with their gradients."""
        for table in self.embeddings:
            table.pending.clear()

    def step(self) -> None:
        """Pushes the gradients of the rows that were read since the last step, and clears the list of rows. It returns
        when the servers have changed the rows: a read that begins afterwards, in any process, sees the change.

        Raises the errors of Tensor.push; with sync=True, ValueError for tables that the ranks do not share.
        """
        together = self.sync and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        for table in self.embeddings:
            if together:
                shared(table.tensor._graph, table.tensor.kept)  # checked again: the table may be older than the group
            touched = [(ids, rows.grad.detach().cpu()) for ids, rows in table.pending if rows.grad is not None]
            table.pending.clear()
            width = table.tensor.shape[1]
            ids = _joined([ids for ids, _ in touched], torch.empty(0, dtype=torch.int64))
            gradients = _joined([gradient for _, gradient in touched], torch.empty(0, width))
            if together:
                ids, gradients = _of_all_ranks(ids, gradients)
            if len(ids) and (not together or dist.get_rank() == 0):
                table.tensor.push(ids, gradients, kind=self.kind, lr=self.lr, combine=self.combine, **self.options)
        if together:
            dist.barrier(_over_gloo())


@keywords
class SparseSGD(_Sparse):
    """Stochastic gradient descent: w -= lr · g. The formula of torch.optim.SGD without momentum."""

    kind = "sgd"

    def __init__(self, embeddings: Sequence[Embedding], lr: float, *, combine: str = "sum", sync: bool = False):
        super().__init__(embeddings, lr, combine, sync)


@keywords
class SparseAdagrad(_Sparse):
    """Adagrad: s += g²; w -= lr · g / (√s + eps). The formula of torch.optim.Adagrad.

    lr: the learning rate. eps: see the formula. combine, sync: as in the module's description and Tensor.push.

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    """

    kind = "adagrad"

    def __init__(self, embeddings: Sequence[Embedding], lr: float = 0.01, *, eps: float = 1e-10, combine: str = "sum",
                 sync: bool = False):
        super().__init__(embeddings, lr, combine, sync, eps=eps)


@keywords
class SparseAdam(_Sparse):
    """Adam for the rows that a step reads. Each row counts its own steps, as in DGL's SparseAdam. A row that every step
    reads is trained as by torch.optim.Adam.

    lr: the learning rate. betas, eps: as in torch.optim.Adam. combine, sync: as in the module's description and
    Tensor.push.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015.
    """

    kind = "adam"

    def __init__(self, embeddings: Sequence[Embedding], lr: float = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, combine: str = "sum", sync: bool = False):
        super().__init__(embeddings, lr, combine, sync, eps=eps, betas=betas)
