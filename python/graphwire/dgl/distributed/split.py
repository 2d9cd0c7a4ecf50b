"""node_split and edge_split: a trainer's share of nodes or edges.

force_even=True: the shares are as equal as possible, for any number of trainers. Shares are consecutive ranges of the
ids, in the order of the trainers. Since parts are ranges of ids too, most ids of a share are of the trainer's own part.

force_even=False: each trainer gets only ids of its own part. If fewer trainers than parts exist, a trainer also gets
the ids of the parts up to the next trainer's part.

Errors: AssertionError, as in DGL; ValueError and TypeError for masks.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch

from graphwire._base import checks
from graphwire._base.arrays import MaskLengthError, ids_array, is_byte
from graphwire._base.keywords import keywords
from graphwire.dgl.distributed.book import EdgePartitionPolicy, GraphPartitionBook, NodePartitionPolicy, PartitionPolicy
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.role import get_num_trainers
from graphwire.dgl.distributed.tensor import DistTensor

_log = logging.getLogger("graphwire.dgl")
_noted = False


def _note_all() -> None:
    """Logs, once in a process, that np.arange(N) has another meaning than in DGL."""
    global _noted
    if not _noted and context.rank == 0:
        _log.warning("graphwire.dgl: node_split and edge_split take np.arange(N) as all ids; DGL takes it as a mask, "
                     "which leaves out id 0")
    _noted = True


def _is_every(mask: Any, count: int) -> bool:
    """Whether the argument is np.arange(count), which DGL's scripts pass for all ids. For one id or two, the numbers
    could be those of a mask."""
    array = mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else np.asarray(mask)
    return array.dtype.kind in "iu" and not is_byte(array) and count > 2 and np.array_equal(array, np.arange(count))


def _chosen(mask: Any, count: int, what: str) -> torch.Tensor | None:
    """The ids that a mask selects; None: all ids. arrays.ids_array decides what a mask is. Other numbers are
    refused, except np.arange(count). Raises AssertionError, TypeError and ValueError."""
    if not getattr(type(mask), "rows_by_id", False):
        if _is_every(mask, count):
            _note_all()
            return None
        shape = tuple(getattr(mask, "shape", np.shape(mask)))
        if shape != (count,):
            raise _length(what, count, shape)
        kinds = {type(one) for one in mask} if isinstance(mask, (list, tuple)) else set()
        if not (is_byte(mask) or (kinds and kinds <= {bool, np.bool_})):
            raise TypeError(f"{what}: a mask of {what} is of bool, uint8 or int8, not "
                            f"{getattr(mask, 'dtype', 'a list of numbers')}: of 0 and 1, mask != 0 makes one; of ids, "
                            "mask[ids] = True")
    try:
        ids = ids_array(mask, count, what)
    except MaskLengthError as error:
        raise _length(what, count, tuple(mask.shape)) from error
    return None if len(ids) == count else torch.from_numpy(ids)


def _length(what: str, count: int, shape: tuple[int, ...]) -> AssertionError:
    return AssertionError(f"{what}: The length of boolean mask vector should be the number of {what} in the graph: "
                          f"{int(count)}, not {list(shape)}")


def _split(mask: Any, policy: PartitionPolicy, rank: int | None, force_even: bool, what: str) -> torch.Tensor:
    rank = context.rank if rank is None else rank
    if checks.as_integer(rank) is None:
        raise TypeError(f"rank is an integer, not {rank!r}")
    world = get_num_trainers()
    if not 0 <= rank < world:
        raise AssertionError(f"The input rank ({rank}) is incorrect. #Trainers: {world}")
    ids = _chosen(mask, policy.get_size(), what)
    if force_even:
        every = torch.arange(policy.get_size()) if ids is None else ids
        return _range_of(every, rank, world)
    parts = policy.partition_book.num_partitions()
    homes = [context.part_of(other, parts, world) for other in range(world)]  # the part of each trainer
    near = [part for part in range(parts) if _trainers_part(part, homes) == homes[rank]]
    own = torch.cat([policy.ids_of(part) for part in near] or [torch.empty(0, dtype=torch.int64)])
    if ids is not None:
        own = own[torch.isin(own, ids, assume_unique=True)]
    trainers = [other for other in range(world) if homes[other] == homes[rank]]
    if len(trainers) == 1:
        return own
    mine = trainers.index(rank)
    return own[len(own) * mine // len(trainers):len(own) * (mine + 1) // len(trainers)]


def _range_of(ids: torch.Tensor, rank: int, world: int) -> torch.Tensor:
    """The range of a rank, if consecutive ranges go to the ranks in their order. The first ranges have one more id if
    the numbers differ."""
    size, longer = divmod(len(ids), world)
    begin = rank * size + min(rank, longer)
    return ids[begin:begin + size + (rank < longer)].clone()


def _trainers_part(part: int, homes: list[int]) -> int:
    """The part whose trainers get a part's ids: the part itself, or, if it has no trainers, the last part before it
    that has trainers. Part 0 always has trainers. homes: the part of each trainer."""
    return max(at for at in homes if at <= part)


@keywords
def node_split(nodes: Any, partition_book: GraphPartitionBook | None = None, ntype: str = "_N",
               rank: int | None = None, force_even: bool = True, node_trainer_ids: Any = None) -> torch.Tensor:
    """dgl.distributed.node_split, for any number of trainers.

    nodes: a mask of all nodes of ntype: a DistTensor, an array or a tensor, of bools, or of uint8 or int8 with 0 and 1.
        np.arange(N), for more than two nodes, stands for all nodes.
    partition_book: needed unless nodes is a DistTensor; no DistGraph is needed then.
    rank: None: this trainer's.
    force_even: see the module's description.
    node_trainer_ids: ignored, because shares follow the parts.

    Returns int64 ids. Raises AssertionError, as DGL, for a mask of another length and for a rank that does not exist;
    ValueError for other values than 0 and 1, and for a DistTensor of another type of nodes; TypeError for an array or a
    DistTensor of another dtype.
    """
    book = _book(nodes, partition_book)
    return _split(nodes, NodePartitionPolicy(book, ntype), rank, force_even, "nodes")


@keywords
def edge_split(edges: Any, partition_book: GraphPartitionBook | None = None, etype: Any = "_E",
               rank: int | None = None, force_even: bool = True, edge_trainer_ids: Any = None) -> torch.Tensor:
    """dgl.distributed.edge_split: as node_split, for edges of etype."""
    book = _book(edges, partition_book)
    return _split(edges, EdgePartitionPolicy(book, etype), rank, force_even, "edges")


def _book(mask: Any, given: GraphPartitionBook | None) -> GraphPartitionBook:
    if given is not None:
        return given
    if isinstance(mask, DistTensor):
        return mask.part_policy.partition_book
    raise AssertionError("Regular tensor requires a partition book.")
