"""Sends messages along the edges of one type: apply_edges, update_all.

message function -> a row for each edge -> reduce function -> a row for each destination

The functions are those of dgl.function, or a script's own, which use edges.src, edges.dst, edges.data and
nodes.mailbox. Errors: MissingError for other functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwire.dgl.host import missing
from graphwire.dgl.subset.function import Binary, Copy, Reduce
from graphwire.dgl.types import Canonical
from graphwire.nn import aggregate


class EdgeBatch:
    """The argument of a script's message function: src, dst and data have a row for each edge."""

    def __init__(self, graph: Any, etype: Canonical):
        some = graph.adjacency(etype)
        self._pairs = some.pairs
        self.src = _Rows(graph._src_frames[etype[0]], some.src)
        self.dst = _Rows(graph._dst_frames[etype[2]], some.dst)
        self.data = graph._edge_frames[etype]

    def edges(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (*self._pairs, torch.arange(len(self._pairs[0])))

    def batch_size(self) -> int:
        return len(self._pairs[0])


class _Rows:
    def __init__(self, frame: Mapping[str, torch.Tensor], ids: torch.Tensor):
        self._frame, self._ids = frame, ids

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._frame[name].index_select(0, self._ids)


class NodeBatch:
    """The argument of a script's reduce function. mailbox: {name: [nodes, edges of each node, …]}, in the order of edge
    ids."""

    def __init__(self, frame: Mapping[str, torch.Tensor], ids: torch.Tensor | None = None,
                 mailbox: Mapping[str, torch.Tensor] | None = None):
        self.data, self._ids, self.mailbox = frame, ids, mailbox

    def nodes(self) -> torch.Tensor | None:
        return self._ids

    def batch_size(self) -> int:
        return len(next(iter(self.data.values()))) if self._ids is None else len(self._ids)


def _side(graph: Any, etype: Canonical, side: str, field: str) -> torch.Tensor:
    some = graph.adjacency(etype)
    if side == "e":
        found: torch.Tensor = graph._edge_frames[etype][field]
        return found
    frame, ids = (graph._src_frames[etype[0]], some.src) if side == "u" else (graph._dst_frames[etype[2]], some.dst)
    return frame[field].index_select(0, ids)


def _fit(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Adds dimensions to `one`, so that it broadcasts over the last dimensions of `other`."""
    while one.dim() < other.dim():
        one = one.unsqueeze(1)
    return one


def _messages(graph: Any, func: Any, etype: Canonical) -> dict[str, torch.Tensor]:
    """The messages, {name: [edges, …]}."""
    if isinstance(func, Copy):
        return {func.out: _side(graph, etype, func.of, func.field)}
    if isinstance(func, Binary):
        one, other = (_side(graph, etype, side, field) for side, field in (
            (func.lhs, func.lhs_field), (func.rhs, func.rhs_field)))
        one, other = _fit(one, other), _fit(other, one)
        if func.op == "dot":
            return {func.out: (one * other).sum(-1, keepdim=True)}
        calls: dict[str, Any] = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
        return {func.out: calls[func.op](one, other)}
    if callable(func):
        return dict(func(EdgeBatch(graph, etype)))
    raise missing(f"a message function of {type(func).__name__}")


def apply_edges(graph: Any, func: Any, etype: Canonical) -> None:
    for name, rows in _messages(graph, func, etype).items():
        graph._edge_frames[etype][name] = rows


def _reduced(graph: Any, message_func: Any, reduce: Any, etype: Canonical) -> torch.Tensor:
    """The reduced messages, [destinations, …]; zeros for destinations without edges."""
    some = graph.adjacency(etype)
    if isinstance(message_func, Copy) and message_func.of == "u" and reduce.how in ("sum", "mean", "max"):
        rows = graph._src_frames[etype[0]][message_func.field]
        if rows.dim() == 2 and rows.dtype in (torch.float32, torch.float64):  # one pass, without a row for each edge
            return aggregate(some.edges(), rows, reduce.how)
    messages = _messages(graph, message_func, etype)[reduce.msg]
    shape = (some.num_dst, *messages.shape[1:])
    if reduce.how in ("sum", "mean"):
        total = messages.new_zeros(shape).index_add(0, some.dst, messages)
        if reduce.how == "sum":
            return total
        degrees = some.in_degrees().clamp(min=1).to(total.dtype)
        return total / degrees.view(-1, *[1] * (total.dim() - 1))
    index = some.dst.to(torch.int64).view(-1, *[1] * (messages.dim() - 1)).expand_as(messages)
    return messages.new_zeros(shape).scatter_reduce(0, index, messages, "a" + reduce.how, include_self=False)


def apply_nodes(frame: Any, func: Any) -> None:
    if func is not None:
        for name, rows in func(NodeBatch(frame)).items():
            frame[name] = rows


def _reduced_by(graph: Any, message_func: Any, function: Any, etype: Canonical) -> dict[str, torch.Tensor]:
    """Calls a script's reduce function, once for all nodes of the same in-degree, as DGL does. Destinations without
    edges get zeros."""
    some, frame = graph.adjacency(etype), graph._dst_frames[etype[2]]
    messages = _messages(graph, message_func, etype)
    degrees = torch.bincount(some.dst, minlength=some.num_dst)
    begins, by_node = torch.cumsum(degrees, 0) - degrees, torch.argsort(some.dst, stable=True)
    out: dict[str, torch.Tensor] = {}
    for degree in torch.unique(degrees[degrees > 0]).tolist():
        nodes = torch.nonzero(degrees == degree).flatten()
        edges = by_node[begins[nodes][:, None] + torch.arange(degree)]
        batch = NodeBatch(frame.rows_of(nodes), nodes, {name: rows[edges] for name, rows in messages.items()})
        for name, found in function(batch).items():
            whole = out.get(name, found.new_zeros(some.num_dst, *found.shape[1:]))
            out[name] = whole.index_copy(0, nodes, found)
    return out


def _updated(graph: Any, message_func: Any, reduce: Any, etype: Canonical) -> dict[str, torch.Tensor]:
    if isinstance(reduce, Reduce):
        return {reduce.out: _reduced(graph, message_func, reduce, etype)}
    if callable(reduce):
        return _reduced_by(graph, message_func, reduce, etype)
    raise missing(f"a reduce function of {type(reduce).__name__}")


def update_all(graph: Any, message_func: Any, reduce: Any, apply_node_func: Any, etype: Canonical) -> None:
    frame = graph._dst_frames[etype[2]]
    for name, rows in _updated(graph, message_func, reduce, etype).items():
        frame[name] = rows
    apply_nodes(frame, apply_node_func)


def multi_update_all(graph: Any, functions: Mapping[Any, Any], cross: str, apply_node_func: Any) -> None:
    """Combines the results that several edge types give for a node type: "sum", "min", "max", "mean" or "stack"."""
    found: dict[tuple[str, str], list[torch.Tensor]] = {}
    for etype, (message_func, reduce, *_) in functions.items():
        full = graph.to_canonical_etype(etype)
        for name, rows in _updated(graph, message_func, reduce, full).items():
            found.setdefault((full[2], name), []).append(rows)
    for (ntype, name), some in found.items():
        every = torch.stack(some, 1 if cross == "stack" else 0)
        calls: dict[str, Any] = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "max": lambda x: x.amax(0),
                 "min": lambda x: x.amin(0), "stack": lambda x: x}
        if cross not in calls:
            raise missing(f"multi_update_all(cross_reducer={cross!r})")
        graph._dst_frames[ntype][name] = calls[cross](every)
        apply_nodes(graph._dst_frames[ntype], apply_node_func)
