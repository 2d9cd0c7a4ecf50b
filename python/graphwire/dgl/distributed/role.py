"""dgl.distributed.role: the roles of processes. Every process is a trainer, because samplers are threads of trainers.
"""

from __future__ import annotations

from graphwire.dgl.distributed.context import context


def get_role() -> str:
    """The role of this process: "default", a trainer."""
    return "default"


def get_num_trainers() -> int:
    """The number of trainers of the job."""
    return context.world


def get_trainer_rank() -> int:
    """The rank of this trainer."""
    return context.rank


def get_rank(role: str) -> int:
    """The rank of this process in a role; -1 in another role than "default"."""
    return context.rank if role == "default" else -1


def get_global_rank() -> int:
    """The rank of this process among all processes of the job."""
    return context.rank
