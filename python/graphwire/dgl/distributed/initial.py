"""The initial values of tensors that trainers make: DGL's init_func, a function of (shape, dtype).

    known(init_func) -> a name of initial values, which the servers compute
    else filled() -> rank 0 calls init_func once for each part and writes the rows; the others wait

Because of the barriers in filled(), all trainers must make such a tensor together, as in DGL.

Errors: ValueError if init_func returns another shape; the exceptions of init_func.
"""

from __future__ import annotations

import contextlib
import zlib
from typing import Any, Callable

import torch

import graphwire
from graphwire.dgl.distributed.book import PartitionPolicy
from graphwire.dgl.distributed.context import context
from graphwire.dgl.seeding import seeds

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def seed_of(name: str) -> int:
    """The seed of random initial values, derived from the seed of this process and the tensor's name. The seed of the
    trainer that creates the tensor counts."""
    return (seeds.seed ^ zlib.crc32(name.encode())) % 2**63


def known(function: Callable[..., Any] | None, dtype: torch.dtype) -> Any:
    """create_tensor's name for the values of init_func; None if init_func must be called."""
    if function is None or function is torch.zeros:
        return "zeros"
    if function is torch.ones:
        return 1.0
    if function is torch.rand and dtype in _FLOATS:
        return "uniform", 0.0, 1.0
    if function is torch.randn and dtype in _FLOATS:
        return "normal", 0.0, 1.0
    return None


def filled(create: Callable[[], Any], policy: PartitionPolicy, name: str, function: Callable[..., Any] | None,
           rows_of: Callable[[Any], Any]) -> Any:
    """Creates a tensor, and fills it with the results of init_func.

    create: creates or opens the tensor. policy: its type of rows. function: init_func. rows_of(ids): the tensor's rows
    of a part's ids.

    An existing tensor is returned unchanged. Rank 0 asks the servers whether the tensor exists. The objects of a
    process cannot decide this: an object may have been freed in one trainer and not in another. If the function raises,
    the tensor is deleted.
    """
    assert function is not None
    full = policy.stored_name(name)
    context.barrier()  # deletes the tensors of which no trainer has an object any more
    context.wanted(full)
    if context.rank == 0:
        graph = policy.partition_book.opened()
        exists = any(tensor["name"] == full for tensor in graph.tensors)
        data = create()
        if not exists:
            try:
                _fill(data, policy, function, rows_of)
            except BaseException:
                with contextlib.suppress(graphwire.GraphwireError):  # raise the function's own error
                    graph.delete_tensor(full)
                raise
        context.barrier()
        return data
    context.barrier()
    return create()


def _fill(data: Any, policy: PartitionPolicy, function: Callable[..., Any], rows_of: Callable[[Any], Any]) -> None:
    for part in range(policy.partition_book.num_partitions()):
        ids = policy.ids_of(part)
        if not len(ids):
            continue
        shape = (len(ids), *data.shape[1:])
        rows = torch.as_tensor(function(shape, data.dtype)).detach()
        if tuple(rows.shape) != shape:
            raise ValueError(f"init_func of {data.name} returned shape {tuple(rows.shape)}, not {shape}")
        data[rows_of(ids)] = rows
