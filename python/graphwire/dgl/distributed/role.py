"""dgl.distributed.role: the roles of processes. Every process is a trainer, because samplers are threads of trainers.

PER_ROLE_RANK["default"] is {client: rank} of the trainers. A program that assigns it imitates other trainers:
node_split and edge_split then divide among as many.
"""

from __future__ import annotations

from graphwire.dgl.distributed.context import context


class _PerRole(dict):
    """{role: {client: rank}}, of the job's trainers unless a program has assigned it."""

    def __missing__(self, role: str) -> dict[int, int]:
        if role != "default":
            raise KeyError(role)
        return {rank: rank for rank in range(context.world)}


class _Global(dict):
    """{client: rank}. A client's number is its rank unless a program has assigned another."""

    def __missing__(self, client: int) -> int:
        return client


PER_ROLE_RANK: dict[str, dict[int, int]] = _PerRole()
GLOBAL_RANK: dict[int, int] = _Global()
CUR_ROLE = "default"


def get_role() -> str:
    """The role of this process: "default", a trainer."""
    return CUR_ROLE


def get_num_trainers() -> int:
    """The number of trainers of the job."""
    return len(PER_ROLE_RANK["default"])


def get_trainer_rank() -> int:
    """The rank of this trainer."""
    return context.rank


def get_rank(role: str) -> int:
    """The rank of this process in a role; -1 in another role than "default"."""
    return context.rank if role == "default" else -1


def get_global_rank() -> int:
    """The rank of this process among all processes of the job."""
    return context.rank
