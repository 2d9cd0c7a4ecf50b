"""node_split and edge_split: a trainer's own share of nodes or edges.

Shares are as even as they can be with any number of trainers, and each trainer takes what its own part has first;
force_even=False: what the own part has, and no more; with fewer trainers than parts, what the parts from its own to the
next trainer's have.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from graphwire import _checks
from graphwire.dgl.distributed.book import EdgePartitionPolicy, GraphPartitionBook, NodePartitionPolicy, PartitionPolicy
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.tensor import DistTensor

_told = False


def _tell_all() -> None:
    global _told
    if not _told and context.rank == 0:
        print("graphwire.dgl: node_split and edge_split take np.arange(N) as all ids; DGL takes it as a mask, which "
              "leaves out id 0", file=sys.stderr)
    _told = True


def _chosen(mask: Any, count: int, what: str) -> torch.Tensor | None:
    """The ids that a mask sets; None: all of them. A DistTensor is a mask, whatever numbers it has; so is an array of
    bools. An array of other numbers is one where it holds 0 and 1 alone: what holds others is refused, but for
    np.arange(count), which DGL's scripts give for all ids, and which of two ids is a mask as well: that it is then."""
    if getattr(type(mask), "rows_by_id", False):
        array = np.asarray(mask[:] != 0)
    else:
        array = mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else np.asarray(mask)
    if array.shape != (count,):
        raise AssertionError(f"The length of boolean mask vector should be the number of {what} in the graph: "
                             f"{count}, not {list(array.shape)}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what}: a mask of {what} is one bool for each, not {array.dtype}")
    if array.dtype != np.bool_ and np.any((array != 0) & (array != 1)):
        if array.dtype.kind not in "iu" or not np.array_equal(array, np.arange(count)):
            raise ValueError(f"{what}: a mask holds 0 and 1, and this {array.dtype} has others: are these ids? "
                             "mask[ids] = True makes one of them")
        _tell_all()
        return None
    if array.dtype == np.bool_ and array.all():
        return None
    return torch.from_numpy(np.flatnonzero(array))


def _split(mask: Any, policy: PartitionPolicy, rank: int | None, force_even: bool, what: str) -> torch.Tensor:
    rank = context.rank if rank is None else rank
    if _checks.as_integer(rank) is None:
        raise TypeError(f"rank is an integer, not {rank!r}")
    if not 0 <= rank < context.world:
        raise AssertionError(f"The input rank ({rank}) is incorrect. #Trainers: {context.world}")
    graph = context.open(None, None)
    kind = {"ntype": policy.type_name} if policy.is_node else {"etype": policy.type_name}
    if isinstance(mask, DistTensor) and len(mask) != policy.get_size():
        raise AssertionError(f"The length of boolean mask vector should be the number of {what} in the graph")
    ids = _chosen(mask, policy.get_size(), what)
    if force_even:
        share: torch.Tensor = torch.as_tensor(graph.split(ids, world=context.world, rank=rank, **kind))
        return torch.sort(share)[0]
    near = [part for part in range(graph.num_parts) if _trainers_part(part, graph.num_parts) ==
            context.part_of(rank, graph.num_parts)]
    own = torch.cat([policy.ids_of(part) for part in near] or [torch.empty(0, dtype=torch.int64)])
    if ids is not None:
        own = own[torch.isin(own, ids, assume_unique=True)]
    beside = [other for other in range(context.world)
              if context.part_of(other, graph.num_parts) == context.part_of(rank, graph.num_parts)]
    if len(beside) == 1:
        return own
    mine = beside.index(rank)
    return own[len(own) * mine // len(beside):len(own) * (mine + 1) // len(beside)]


def _trainers_part(part: int, parts: int) -> int:
    """The part whose trainers take a part's ids: its own, or where it has no trainers the next one before it that has
    some. Part 0 always does."""
    return max(at for at in (context.part_of(rank, parts) for rank in range(context.world)) if at <= part)


def node_split(nodes: Any, partition_book: GraphPartitionBook | None = None, ntype: str = "_N",
               rank: int | None = None, force_even: bool = True, node_trainer_ids: Any = None) -> torch.Tensor:
    """dgl.distributed.node_split, for any number of trainers.

    nodes: a mask of all nodes of ntype: a DistTensor, or an array of bools, or of numbers that are 0 and 1;
        np.arange(N), of more than two nodes: all of them. node_trainer_ids: not used: shares follow the parts.

    Raises AssertionError, as DGL, for a mask of another length and a rank that there is not; ValueError for an array
    of other numbers; TypeError for what is none.
    """
    book = _book(nodes, partition_book)
    return _split(nodes, NodePartitionPolicy(book, ntype), rank, force_even, "nodes")


def edge_split(edges: Any, partition_book: GraphPartitionBook | None = None, etype: Any = "_E",
               rank: int | None = None, force_even: bool = True, edge_trainer_ids: Any = None) -> torch.Tensor:
    """dgl.distributed.edge_split; as node_split."""
    book = _book(edges, partition_book)
    return _split(edges, EdgePartitionPolicy(book, etype), rank, force_even, "edges")


def _book(mask: Any, given: GraphPartitionBook | None) -> GraphPartitionBook:
    if given is not None:
        return given
    if isinstance(mask, DistTensor):
        return mask.part_policy.partition_book
    raise AssertionError("Regular tensor requires a partition book.")
