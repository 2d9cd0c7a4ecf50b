"""dgl.function: the built-in message functions and reduce functions.

Messages: copy_u, copy_e, u_add_v, e_mul_u, …, u_dot_v. Reductions: sum, max, min, mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from graphwire.dgl.host import missing

__all__ = ["Binary", "Copy", "Reduce", "copy_e", "copy_edge", "copy_src", "copy_u", "max", "mean", "min", "sum"]


class Copy(NamedTuple):
    """The message is a column of the source ("u") or of the edge ("e")."""

    of: str
    field: str
    out: str


class Binary(NamedTuple):
    """The message is lhs op rhs. Each side is a column of the source ("u"), the destination ("v") or the edge ("e")."""

    op: str
    lhs: str
    rhs: str
    lhs_field: str
    rhs_field: str
    out: str


class Reduce(NamedTuple):
    how: str
    msg: str
    out: str


def copy_u(u: str, out: str) -> Copy:
    return Copy("u", u, out)


def copy_e(e: str, out: str) -> Copy:
    return Copy("e", e, out)


def copy_src(src: str, out: str) -> Copy:
    return Copy("u", src, out)


def copy_edge(edge: str, out: str) -> Copy:
    return Copy("e", edge, out)


def _reduce(how: str) -> Callable[[str, str], Reduce]:
    def made(msg: str, out: str) -> Reduce:
        return Reduce(how, msg, out)

    made.__name__ = how
    return made


sum = _reduce("sum")
mean = _reduce("mean")
max = _reduce("max")
min = _reduce("min")


def _binary(op: str, lhs: str, rhs: str) -> Callable[[str, str, str], Binary]:
    def made(lhs_field: str, rhs_field: str, out: str) -> Binary:
        return Binary(op, lhs, rhs, lhs_field, rhs_field, out)

    made.__name__ = f"{lhs}_{op}_{rhs}"
    return made


for _op in ("add", "sub", "mul", "div", "dot"):
    for _lhs in "uve":
        for _rhs in "uve":
            if _lhs != _rhs:
                globals()[f"{_lhs}_{_op}_{_rhs}"] = _binary(_op, _lhs, _rhs)
                __all__.append(f"{_lhs}_{_op}_{_rhs}")


def __getattr__(name: str) -> object:
    raise missing(f"dgl.function.{name}")
