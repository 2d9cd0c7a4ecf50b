"""Embeddings that live in the servers, and optimizers that run there.

    table = graphwire.Embedding(graph, "author", 64, ntype="author")
    optimizer = graphwire.optim.SparseAdam([table], lr=0.01)
    rows = table(batch.nodes["author"])      # a leaf of autograd
    loss.backward()
    optimizer.step()                         # pushes what the rows' gradients are; then forgets the rows

Pushes of several trainers are applied as they come. With sync=True every rank's gradients of a step are combined in the
order of the ranks and pushed as one, so that the same job gives the same bytes again; all ranks must step then.
They meet over gloo, whatever torch.distributed was initialized with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import torch
import torch.distributed as dist

from graphwire import _arrays, _checks
from graphwire._arrays import Ids
from graphwire._opened import Etype
from graphwire.graph import Graph
from graphwire.tensor import Initial, Tensor, check_optimizer, shared


class Embedding:
    """A table of rows, [rows, width] float32, in a graph's tensors.

    rows: None: one for each node of ntype, or edge of etype. initial: as Graph.create_tensor's; None: uniform in
    ±1/sqrt(width). Every rank of a job may make it: the first creates it; ranks that have no job's name in common are
    refused, as Graph.create_tensor tells. Not a parameter of a module: a module's state_dict
    does not hold it, `weight` reads it.

    Raises ValueError without a number of rows, or with two; else as Graph.create_tensor. Rows that are read raise what
    Feature's do, and NotFoundError where a server took some along when it ended.
    """

    def __init__(self, graph: Graph, name: str, width: int, *, rows: int | None = None, ntype: str | None = None,
                 etype: Etype | None = None, initial: Initial | None = None, seed: int = 0, kept: bool = False):
        if (rows is None) == (ntype is None and etype is None):
            raise ValueError("an embedding has a number of rows, or an ntype or etype to have a row each")
        width = _checks.integer("width", width, 1)
        rows = None if rows is None else _checks.integer("rows", rows, 1, 2**63 - 1)
        bound = width**-0.5
        self.tensor: Tensor = graph.create_tensor(
            name, (rows or 0, width), ntype=ntype, etype=etype, seed=seed, kept=kept,
            initial=("uniform", -bound, bound) if initial is None else initial)
        self.pending: list[tuple[torch.Tensor, torch.Tensor]] = []  # ids, rows

    def __call__(self, ids: Ids, device: Any = None) -> torch.Tensor:
        """Rows, [len(ids), width]. While gradients are recorded they are a leaf whose gradient the optimizer pushes.
        ids: integers, or a mask of all rows; of a lone one [width]. Raises what Feature's rows do."""
        alone = _checks.as_integer(ids) is not None  # one of a byte is refused below
        ids = torch.from_numpy(_arrays.ids_array(ids, len(self)).copy())  # which the caller may change before the step
        rows = torch.as_tensor(self.tensor[ids])
        if device is not None:
            rows = rows.to(device)
        if torch.is_grad_enabled():
            rows.requires_grad_()
            self.pending.append((ids.clone(), rows))  # the caller may change the ids before step()
        return rows[0] if alone else rows

    @property
    def weight(self) -> torch.Tensor:
        """All rows."""
        return torch.as_tensor(self.tensor[:])

    def __len__(self) -> int:
        return len(self.tensor)


_beside: tuple[Any, Any] = (None, None)  # references to the group of all ranks, and to the one beside it


def _over_gloo() -> Any:
    """A group that takes what lies in the processor's memory, as nccl's does not. All ranks make it, in their first
    step; it is torch's, and goes with destroy_process_group."""
    global _beside
    world, beside = _beside
    group = beside() if world is not None and world() is dist.group.WORLD else None
    if group is None:
        group = dist.new_group(backend="gloo")
        _beside = ref(dist.group.WORLD), ref(group)
    return group


def _joined(parts: list[torch.Tensor], none: torch.Tensor) -> torch.Tensor:
    """One after another; a lone one as it is, without a copy."""
    return parts[0] if len(parts) == 1 else torch.cat(parts or [none])


def _of_all_ranks(ids: torch.Tensor, gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Every rank's, in the order of the ranks."""
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


class _Sparse:
    """What the optimizers share: step() pushes the gradients of the rows that were read since the last one."""

    kind = ""

    def __init__(self, embeddings: Sequence[Embedding], lr: float, *, combine: str = "sum", sync: bool = False,
                 **options: Any):
        check_optimizer(self.kind, lr, combine, **options)
        self.embeddings, self.lr, self.combine, self.options = list(embeddings), lr, combine, options
        self.sync = _checks.flag("sync", sync)

    def zero_grad(self) -> None:
        """Forgets the rows that were read, and their gradients."""
        for table in self.embeddings:
            table.pending.clear()

    def step(self) -> None:
        """Returns when the rows are changed: a read that begins afterwards, in any process, sees it. Raises ValueError
        with sync=True for tables that the ranks do not share."""
        together = self.sync and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        for table in self.embeddings:
            if together:
                shared(table.tensor._graph, table.tensor.kept)  # it may have been made before the group
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


class SparseSGD(_Sparse):
    """w -= lr · g. As torch.optim.SGD."""

    kind = "sgd"


class SparseAdagrad(_Sparse):
    """s += g²; w -= lr · g / (√s + eps). As torch.optim.Adagrad."""

    kind = "adagrad"

    def __init__(self, embeddings: Sequence[Embedding], lr: float = 0.01, *, eps: float = 1e-10, combine: str = "sum",
                 sync: bool = False):
        super().__init__(embeddings, lr, combine=combine, sync=sync, eps=eps)


class SparseAdam(_Sparse):
    """Adam of the rows that are touched, each of which counts its own steps. As DGL's; as torch.optim.Adam for rows
    that are touched in every step."""

    kind = "adam"

    def __init__(self, embeddings: Sequence[Embedding], lr: float = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, combine: str = "sum", sync: bool = False):
        super().__init__(embeddings, lr, combine=combine, sync=sync, eps=eps, betas=betas)
