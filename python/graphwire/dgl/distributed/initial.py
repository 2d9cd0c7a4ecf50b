"""First values of tensors that trainers make: DGL's init_func, a callable on (shape, dtype).

known() -> one that the servers draw by themselves; else filled(): the first trainer calls it once for each part and
writes the rows, and the others wait until they are written: all trainers make such a tensor, as in DGL, each time that
it has an init_func to be called.
"""

from __future__ import annotations

import contextlib
import zlib
from typing import Any, Callable

import torch

import graphwire
from graphwire.dgl.distributed.book import PartitionPolicy
from graphwire.dgl.distributed.context import context

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def seed_of(name: str) -> int:
    """Of random first values: torch.manual_seed's, another one for each name. That of the trainer that comes first."""
    return (torch.initial_seed() ^ zlib.crc32(name.encode())) % 2**63


def known(function: Callable[..., Any] | None, dtype: torch.dtype) -> Any:
    """What create_tensor calls it; None for what has to be called."""
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
    """The tensor, with what the function returned for a part's ids in the rows that rows_of has for these; no tensor is
    left where the function failed. One that is there already is taken as it is. Which it is does not depend on what
    this process has: objects may be collected in one trainer and not in another."""
    assert function is not None
    full = policy.get_data_name(name).replace("~", "/")
    context.barrier()  # deletes what no trainer has any more
    context.wanted(full)
    if context.rank == 0:
        graph = context.open(None, None)
        there = any(tensor["name"] == full for tensor in graph.tensors)
        data = create()
        if not there:
            try:
                _fill(data, policy, function, rows_of)
            except BaseException:
                with contextlib.suppress(graphwire.GraphwireError):  # what the function raised is what is told
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
