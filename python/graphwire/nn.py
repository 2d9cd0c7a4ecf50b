"""Layers over blocks, from PyTorch's own operations.

layer(block, x) -> rows of the block's destinations

x: [num_src, d], the rows of the block's sources, whose first num_dst are the destinations (as Batch has them); where
source and destination types differ a pair, (rows of the sources, rows of the destinations). A layer takes a Block with
one edge type or the Edges of one; RelGraphConv and HeteroConv take a Block and {node type: rows}. Destinations without
an edge get what their neighbours' part is for no neighbours: zeros.

Sums over neighbours are embedding bags: gathered and summed in one pass over the block as it lies in memory, without an
array of messages. Equal to the layers of the same names in DGL and PyTorch Geometric (GraphConv: DGL's; PyTorch
Geometric calls it GCNConv, where the self loops are in the graph).

Layers start from the weights that PyTorch Geometric's start from, of one seed of torch's the same ones bit by bit:
SAGEConv as its SAGEConv, GraphConv as GCNConv, GATConv as GATConv, RelGraphConv as RGCNConv. Each layer's docstring has
the distribution. reset_parameters() draws them again. DGL's layers start from other ones: graphwire.dgl has those.

Errors: ValueError for an aggregator or norm that there is not, for a block of several edge types where one is meant,
for one tensor of rows where the types differ, and for fewer rows than the block has; KeyError for an edge type or rows
of a node type that a RelGraphConv was not given (HeteroConv leaves those out).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwire.batch import Block, Edges

Rows = Union[Tensor, tuple[Tensor, Tensor]]
Activation = Optional[Callable[[Tensor], Tensor]]


def _edges(block: Block | Edges) -> Edges:
    return block.only if isinstance(block, Block) else block


def _pair(edges: Edges, x: Rows) -> tuple[Tensor, Tensor]:
    """Rows of the sources, and of the destinations."""
    if isinstance(x, Tensor):
        if edges.src_type != edges.dst_type:
            raise ValueError(f"{edges.etype} leads to another type: x is a pair, (rows of {edges.src_type}, rows of "
                             f"{edges.dst_type})")
        x = (x, x[:edges.num_dst])
    if len(x[0]) < edges.num_src or len(x[1]) < edges.num_dst:
        raise ValueError(f"{edges.etype}: {len(x[0])} and {len(x[1])} rows for {edges.num_src} sources and "
                         f"{edges.num_dst} destinations")
    return x[0], x[1][:edges.num_dst]


def _known(how: str) -> None:
    if how not in ("sum", "mean", "max"):
        raise ValueError(f"neighbours are aggregated by sum, mean or max, not {how!r}")


def _spread(weight: Tensor, bound: float) -> None:
    """Uniform in ±bound."""
    nn.init.uniform_(weight, -bound, bound)


def _glorot(weight: Tensor | None) -> None:
    """Uniform in ±√(6 / (rows + columns)) of each matrix. (torch.nn.init's counts all matrices of a stack as one.)"""
    if weight is not None:
        _spread(weight, math.sqrt(6.0 / (weight.shape[-2] + weight.shape[-1])))


def _as_linear(layer: nn.Linear) -> None:
    """Uniform in ±1/√inputs, the bias too: torch.nn.Linear's, rounded as PyTorch Geometric rounds it."""
    fan = max(layer.in_features, 1)
    _spread(layer.weight, math.sqrt(6 / ((1 + math.sqrt(5) ** 2) * fan)))
    if layer.bias is not None:
        _spread(layer.bias, 1.0 / math.sqrt(fan))


def aggregate(edges: Edges, x: Tensor, how: str = "mean", weight: Tensor | None = None) -> Tensor:
    """[num_dst, d]: the sum, mean or max of each destination's neighbours' rows. weight: [edges], "sum" only. Raises
    ValueError for another word."""
    _known(how)
    if edges.num_edges == 0:
        return x.new_zeros(edges.num_dst, x.shape[1]) + 0 * x[:0].sum()
    indptr = edges.indptr.to(edges.indices.dtype)
    return functional.embedding_bag(edges.indices, x, indptr, mode=how, per_sample_weights=weight,
                                    include_last_offset=True)


def edge_softmax(edges: Edges, scores: Tensor) -> Tensor:
    """[edges, …]: the softmax of scores over the edges that end at the same destination."""
    shape = (edges.num_dst, *scores.shape[1:])
    dst = edges.dst
    with torch.no_grad():  # the greatest cancels out
        index = dst.view(-1, *[1] * (scores.dim() - 1)).expand_as(scores)
        top = scores.new_full(shape, -torch.inf).scatter_reduce(0, index, scores, "amax")
    grown = torch.exp(scores - top[dst])
    return grown / scores.new_zeros(shape).index_add(0, dst, grown)[dst]


class SAGEConv(nn.Module):
    """out = lin_self(x_dst) + lin_neigh(aggregated neighbours).

    in_feats: width of x, or of (sources, destinations). aggregator: "mean", "sum", "max". Raises ValueError for
    another one, and in forward as the module tells.

    Weights start uniform in ±1/√(their inputs), the bias in ±1/√(inputs of lin_neigh).
    """

    def __init__(self, in_feats: int | tuple[int, int], out_feats: int, aggregator: str = "mean", bias: bool = True):
        super().__init__()
        _known(aggregator)
        src, dst = (in_feats, in_feats) if isinstance(in_feats, int) else in_feats
        self.aggregator = aggregator
        self.lin_neigh = nn.Linear(src, out_feats, bias=bias)
        self.lin_self = nn.Linear(dst, out_feats, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _as_linear(self.lin_neigh)
        _as_linear(self.lin_self)

    def forward(self, block: Block | Edges, x: Rows) -> Tensor:
        edges = _edges(block)
        src, dst = _pair(edges, x)
        weight = self.lin_neigh.weight
        if self.aggregator != "max" and weight.shape[0] < weight.shape[1]:  # narrow first: less to gather
            near = aggregate(edges, functional.linear(src, weight), self.aggregator)
            if self.lin_neigh.bias is not None:
                near = near + self.lin_neigh.bias
            return near + self.lin_self(dst)
        return self.lin_neigh(aggregate(edges, src, self.aggregator)) + self.lin_self(dst)


class GraphConv(nn.Module):
    """out = Σ c · x_src W + b over the neighbours.

    norm: "both": c = 1 / sqrt(out-degree of the source · in-degree of the destination), degrees in the block;
        "right": 1 / in-degree; "none": 1.
    edge_weight, in forward: [edges], a factor of each edge. Raises ValueError for another norm, and in forward for a
    block of several edge types.

    W starts uniform in ±√(6 / (in_feats + out_feats)), b at zero.
    """

    def __init__(self, in_feats: int, out_feats: int, norm: str = "both", bias: bool = True):
        super().__init__()
        if norm not in ("both", "right", "none"):
            raise ValueError(f"norm is both, right or none, not {norm!r}")
        self.norm = norm
        self.lin = nn.Linear(in_feats, out_feats, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _glorot(self.lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, block: Block | Edges, x: Rows, edge_weight: Tensor | None = None) -> Tensor:
        edges = _edges(block)
        src = (x if isinstance(x, Tensor) else x[0])[:edges.num_src]
        if self.norm == "both":
            out_degrees = torch.bincount(edges.indices, minlength=edges.num_src)
            src = src * out_degrees.clamp(min=1).to(src.dtype).rsqrt()[:, None]
        narrow = self.lin.weight.shape[0] < self.lin.weight.shape[1]
        rows = aggregate(edges, self.lin(src) if narrow else src, "sum", edge_weight)
        if self.norm != "none":
            in_degrees = edges.in_degrees.clamp(min=1).to(rows.dtype)
            rows = rows * (in_degrees.rsqrt() if self.norm == "both" else in_degrees.reciprocal())[:, None]
        if not narrow:
            rows = self.lin(rows)
        return rows if self.bias is None else rows + self.bias


class GATConv(nn.Module):
    """Attention: out = Σ softmax(leaky_relu(a_src · W x_src + a_dst · W x_dst)) · W x_src, for each head.

    Returns [num_dst, heads · out_feats], or with concat=False the heads' mean, [num_dst, out_feats].
    feat_drop, attn_drop: dropout of the rows and of the attention. forward raises ValueError as the module tells.

    W starts uniform in ±√(6 / (in_feats + heads · out_feats)), a_src and a_dst in ±√(6 / (heads + out_feats)), the bias
    at zero.
    """

    def __init__(self, in_feats: int, out_feats: int, heads: int = 1, *, feat_drop: float = 0.0,
                 attn_drop: float = 0.0, negative_slope: float = 0.2, concat: bool = True, bias: bool = True):
        super().__init__()
        self.heads, self.out_feats, self.concat, self.negative_slope = heads, out_feats, concat, negative_slope
        self.lin = nn.Linear(in_feats, heads * out_feats, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_feats))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_feats))
        self.bias = nn.Parameter(torch.zeros(heads * out_feats if concat else out_feats)) if bias else None
        self.feat_drop, self.attn_drop = nn.Dropout(feat_drop), nn.Dropout(attn_drop)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            _glorot(weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, block: Block | Edges, x: Rows) -> Tensor:
        edges = _edges(block)
        same = isinstance(x, Tensor)
        src, dst = _pair(edges, x)
        rows = self.lin(self.feat_drop(src)).view(-1, self.heads, self.out_feats)
        own = rows[:edges.num_dst] if same else self.lin(self.feat_drop(dst)).view(-1, self.heads, self.out_feats)
        scores = (rows * self.att_src).sum(-1).index_select(0, edges.indices)
        scores = scores + (own * self.att_dst).sum(-1).index_select(0, edges.dst)
        share = self.attn_drop(edge_softmax(edges, functional.leaky_relu(scores, self.negative_slope)))
        out = rows.new_zeros(edges.num_dst, self.heads, self.out_feats)
        out = out.index_add(0, edges.dst, rows.index_select(0, edges.indices) * share[..., None])
        out = out.flatten(1) if self.concat else out.mean(1)
        return out if self.bias is None else out + self.bias


class RelGraphConv(nn.Module):
    """R-GCN: out = Σ over edge types r of aggregated neighbours · W_r, + x_dst · W_self + b.

    etypes: the graph's edge types, which have a weight each; num_bases: W_r = Σ_b coeff[r, b] · bases[b].
    aggregator: "sum" (DGL's) or "mean" (PyTorch Geometric's), or "max", within an edge type.
    forward(block, {node type: rows}) -> {node type: rows of its destinations}, for each type that has some.

    Raises ValueError for another aggregator; in forward KeyError for an edge type that is not among etypes, and for a
    node type without rows.

    bases, coeff and W_self start uniform in ±√(6 / (rows + columns)) of each matrix, b at zero.
    """

    def __init__(self, in_feats: int, out_feats: int, etypes: Sequence[str], *, num_bases: int | None = None,
                 aggregator: str = "sum", self_loop: bool = True, bias: bool = True):
        super().__init__()
        _known(aggregator)
        self.etypes = {etype: number for number, etype in enumerate(etypes)}
        self.aggregator = aggregator
        self.bases = nn.Parameter(torch.empty(num_bases or len(self.etypes), in_feats, out_feats))
        self.coeff = nn.Parameter(torch.empty(len(self.etypes), num_bases)) if num_bases else None
        self.loop = nn.Parameter(torch.empty(in_feats, out_feats)) if self_loop else None
        self.bias = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.bases, self.coeff, self.loop):
            _glorot(weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, block: Block, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weights: Tensor = self.bases
        if self.coeff is not None:
            weights = torch.einsum("rb,bio->rio", self.coeff, self.bases)
        out: dict[str, Any] = {}
        for ntype, count in block.num_dst.items():
            if count:
                out[ntype] = 0 if self.loop is None else x[ntype][:count] @ self.loop
        for etype, edges in block.edges.items():
            if edges.num_dst and edges.num_src:
                rows = aggregate(edges, x[edges.src_type], self.aggregator) @ weights[self.etypes[etype]]
                out[edges.dst_type] = out[edges.dst_type] + rows
        for ntype, rows in out.items():
            if not isinstance(rows, Tensor):  # no edge type leads here
                rows = x[ntype].new_zeros(block.num_dst[ntype], weights.shape[2])
            out[ntype] = rows if self.bias is None else rows + self.bias
        return out


class HeteroConv(nn.Module):
    """A layer for each edge type, and how their results at a node type become one.

    layers: {edge type: a layer over Edges and a pair of rows}; aggregator: "sum", "mean", "max" or "cat".
    forward(block, {node type: rows}) -> {node type: rows of its destinations}, for types that an edge type leads to;
    edge types without a layer, or without rows of an end, are left out. Raises ValueError for another aggregator.
    """

    def __init__(self, layers: Mapping[str, nn.Module], aggregator: str = "sum"):
        super().__init__()
        if aggregator not in ("sum", "mean", "max", "cat"):
            raise ValueError(f"aggregator is sum, mean, max or cat, not {aggregator!r}")
        self.etypes, self.layers, self.aggregator = list(layers), nn.ModuleList(layers.values()), aggregator

    def reset_parameters(self) -> None:
        """Of every layer that has it."""
        for layer in self.layers:
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()

    def forward(self, block: Block, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found: dict[str, list[Tensor]] = {}
        for etype, layer in zip(self.etypes, self.layers):
            edges = block.edges.get(etype)
            if edges is None or edges.num_dst == 0 or not {edges.src_type, edges.dst_type} <= x.keys():
                continue
            if edges.src_type == edges.dst_type:
                rows = layer(edges, x[edges.src_type])
            else:
                rows = layer(edges, (x[edges.src_type], x[edges.dst_type]))
            found.setdefault(edges.dst_type, []).append(rows)
        return {ntype: self._one(rows) for ntype, rows in found.items()}

    def _one(self, rows: list[Tensor]) -> Tensor:
        if self.aggregator == "cat":
            return torch.cat(rows, 1)
        every = torch.stack(rows)
        if self.aggregator == "max":
            return every.amax(0)
        return every.sum(0) if self.aggregator == "sum" else every.mean(0)
