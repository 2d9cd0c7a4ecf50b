"""dgl.ops.edge_softmax, also dgl.nn.functional.edge_softmax, and dgl.utils.expand_as_pair.

    logits of edges -> exp(logit - the node's greatest) -> divided by their sum at the node

Errors: DGLError for another norm_by; IndexError of torch for ids that do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwire.dgl.subset.frame import DGLError


def edge_softmax(graph: Any, logits: Any, eids: Any = "__ALL__", norm_by: str = "dst") -> Any:
    """The softmax of edges' logits at each node.

    graph: a graph or block; a graph of several edge types takes {edge type: logits}, and all edges that end at a node
        are normalized together.
    logits: [edges, *], floats, in the order of edge ids.
    eids: the edges of the logits; dgl.ALL: all.
    norm_by: "dst": at the nodes where edges end; "src": where they start.

    Returns values of the shape of the logits.
    """
    if norm_by not in ("dst", "src"):
        raise DGLError(f'norm_by is "dst" or "src", not {norm_by!r}')
    if not isinstance(logits, Mapping):
        nodes = graph.edges()[norm_by == "dst"]
        return _softmax(logits, nodes if isinstance(eids, str) else nodes[torch.as_tensor(eids).long()])
    if not isinstance(eids, str):
        raise DGLError("edge_softmax: eids with several edge types is not supported: pass all edges")
    found: dict[Any, torch.Tensor] = {}
    ends = {graph.to_canonical_etype(etype): rows for etype, rows in logits.items()}
    for ntype in dict.fromkeys(etype[2 if norm_by == "dst" else 0] for etype in ends):
        some = [etype for etype in ends if etype[2 if norm_by == "dst" else 0] == ntype]
        nodes = torch.cat([graph.edges(etype=etype)[norm_by == "dst"] for etype in some])
        shares = _softmax(torch.cat([ends[etype] for etype in some]), nodes)
        found.update(zip(some, torch.split(shares, [len(ends[etype]) for etype in some])))
    return {etype: found[etype] for etype in ends}


def _softmax(logits: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
    if not len(nodes):
        return logits
    shape = (int(nodes.max()) + 1, *logits.shape[1:])
    places = nodes.reshape(-1, *[1] * (logits.ndim - 1)).expand_as(logits)
    most = logits.new_full(shape, float("-inf")).scatter_reduce(0, places, logits.detach(), "amax")
    parts = (logits - most[nodes]).exp()
    return parts / logits.new_zeros(shape).index_add(0, nodes, parts)[nodes]


def expand_as_pair(input_: Any, g: Any = None) -> tuple[Any, Any]:
    """(rows of the sources, rows of the destinations) of rows that may already be such a pair. In a block, the
    destinations are the first of the sources. input_: rows, or {node type: rows}."""
    if isinstance(input_, tuple):
        return input_
    if g is None or not g.is_block:
        return input_, input_
    if isinstance(input_, Mapping):
        return input_, {ntype: rows[:g.num_dst_nodes(ntype)] for ntype, rows in input_.items()}
    return input_, input_[:g.num_dst_nodes()]
