"""Layers over blocks, made of PyTorch's operations.

layer(block, x) -> rows of the block's destinations, [num_dst, out]

x: [num_src, d], the rows of the block's sources. The first num_dst of them are the destinations, as in Batch. If source
and destination types differ, x is a pair, (rows of the sources, rows of the destinations). A layer takes a Block with
one edge type, or Edges. RelGraphConv and HeteroConv take a Block and {node type: rows}. For a destination without
edges, the neighbours' part of the result is zeros.

Sums over neighbours use torch's embedding bags, which gather and sum rows in one pass over the block's arrays, without
an array of messages. The layers compute the same as DGL's and PyTorch Geometric's of the same names. GraphConv is DGL's
name; PyTorch Geometric calls it GCNConv, and adds self loops, which must be in the graph here.

Layers start from the same weights as PyTorch Geometric's, bit by bit for the same seed of torch: SAGEConv as its
SAGEConv, GraphConv as GCNConv, GATConv as GATConv, RelGraphConv as RGCNConv. Each layer's docstring gives the
distribution. reset_parameters() draws the weights again. DGL's layers start from other weights; graphwire.dgl has them.

Errors: ValueError for an unknown aggregator or norm; for a block of several edge types, where a layer needs one; for
one tensor of rows, where the types of the ends differ; for fewer rows than the block has; and for blocks of a batch
with frontier="new". KeyError for an edge type that a RelGraphConv was not made for, and for a node type without rows;
HeteroConv skips such edge types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwire._base.keywords import keywords
from graphwire._train.batch import Block, Edges

Rows = Union[Tensor, tuple[Tensor, Tensor]]
Activation = Optional[Callable[[Tensor], Tensor]]


def _edges(block: Block | Edges) -> Edges:
    return _of_all(block.only if isinstance(block, Block) else block)


def _of_all(edges: Edges) -> Edges:
    """Returns the edges. Raises ValueError if their destinations are not the first nodes of their type."""
    if edges.dst_first:
        raise ValueError(f'{edges.etype}: a batch with frontier="new" has edges of new nodes only, and a layer needs '
                         'those of all nodes: use frontier="all", or batch.to_pyg() with layers of PyTorch Geometric')
    return edges


def _pair(edges: Edges, x: Rows) -> tuple[Tensor, Tensor]:
    """(rows of the sources, rows of the destinations). Raises ValueError if x does not fit the block."""
    if isinstance(x, Tensor):
        if edges.src_type != edges.dst_type:
            raise ValueError(f"{edges.etype} leads to another type: x must be a pair, (rows of {edges.src_type}, rows "
                             f"of {edges.dst_type})")
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
    """Uniform in ±√(6 / (rows + columns)) of each matrix. torch.nn.init would count a stack of matrices as one."""
    if weight is not None:
        _spread(weight, math.sqrt(6.0 / (weight.shape[-2] + weight.shape[-1])))


def _as_linear(layer: nn.Linear) -> None:
    """Uniform in ±1/√inputs, for the bias too. This is torch.nn.Linear's distribution, with the bound rounded as in
    PyTorch Geometric."""
    fan = max(layer.in_features, 1)
    _spread(layer.weight, math.sqrt(6 / ((1 + math.sqrt(5) ** 2) * fan)))
    if layer.bias is not None:
        _spread(layer.bias, 1.0 / math.sqrt(fan))


@keywords
def aggregate(edges: Edges, x: Tensor, how: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The sum, mean or max of the rows of each destination's neighbours, [num_dst, d].

    x: [num_src, d]. how: "sum", "mean" or "max". weight: [edges], a factor for each edge; with "sum" only.

    Raises ValueError for another `how`, and for edges of new nodes only.
    """
    _known(how)
    _of_all(edges)
    if edges.num_edges == 0:
        return x.new_zeros(edges.num_dst, x.shape[1]) + 0 * x[:0].sum()
    indptr = edges.indptr.to(edges.indices.dtype)
    return functional.embedding_bag(edges.indices, x, indptr, mode=how, per_sample_weights=weight,
                                    include_last_offset=True)


@keywords
def edge_softmax(edges: Edges, scores: Tensor) -> Tensor:
    """The softmax of scores, [edges, …], over the edges that end at the same destination; [edges, …]. Raises ValueError
    for edges of new nodes only."""
    _of_all(edges)
    shape = (edges.num_dst, *scores.shape[1:])
    dst = edges.dst
    with torch.no_grad():  # the maximum cancels out, and so needs no gradient
        index = dst.view(-1, *[1] * (scores.dim() - 1)).expand_as(scores)
        top = scores.new_full(shape, -torch.inf).scatter_reduce(0, index, scores, "amax")
    grown = torch.exp(scores - top[dst])
    return grown / scores.new_zeros(shape).index_add(0, dst, grown)[dst]


class SAGEConv(nn.Module):
    """GraphSAGE: out = lin_self(x_dst) + lin_neigh(aggregated neighbours).

    in_feats: the width of x, or (width of the sources, width of the destinations).
    out_feats: the width of the result.
    aggregator: "mean", "sum" or "max".
    bias: whether lin_neigh has a bias.

    Weights start uniform in ±1/√(their inputs), the bias in ±1/√(inputs of lin_neigh).

    Raises ValueError for another aggregator. forward raises the errors that the module lists.

    Source: Hamilton, Ying and Leskovec, Inductive Representation Learning on Large Graphs, 2017.
    """

    @keywords
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
        if self.aggregator != "max" and weight.shape[0] < weight.shape[1]:  # linear first: narrower rows
            near = aggregate(edges, functional.linear(src, weight), self.aggregator)
            if self.lin_neigh.bias is not None:
                near = near + self.lin_neigh.bias
            return near + self.lin_self(dst)
        return self.lin_neigh(aggregate(edges, src, self.aggregator)) + self.lin_self(dst)


class GraphConv(nn.Module):
    """Graph convolution: out = Σ c · x_src W + b, summed over the neighbours.

    in_feats, out_feats: the widths of x and of the result.
    norm: "both": c = 1 / sqrt(out-degree of the source · in-degree of the destination), with the degrees in the block.
        "right": c = 1 / in-degree. "none": c = 1.
    bias: whether the layer has b.

    forward(block, x, edge_weight): edge_weight is [edges], a factor for each edge; None: 1.

    W starts uniform in ±√(6 / (in_feats + out_feats)), b at zero.

    Raises ValueError for another norm. forward raises ValueError for a block of several edge types.

    Source: Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017.
    """

    @keywords
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
    """Graph attention: out = Σ softmax(leaky_relu(a_src · W x_src + a_dst · W x_dst)) · W x_src, for each head.

    in_feats, out_feats: the widths of x, and of one head's result.
    heads: the number of heads.
    feat_drop, attn_drop: the dropout of the rows, and of the attention.
    negative_slope: of leaky_relu.
    concat: True: the result is [num_dst, heads · out_feats]. False: the heads' mean, [num_dst, out_feats].
    bias: whether a bias is added.

    W starts uniform in ±√(6 / (in_feats + heads · out_feats)), a_src and a_dst in ±√(6 / (heads + out_feats)), the bias
    at zero.

    forward raises the ValueErrors that the module lists.

    Source: Veličković et al., Graph Attention Networks, 2018.
    """

    @keywords
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
    """R-GCN: out = Σ_r (aggregated neighbours of edge type r) · W_r + x_dst · W_self + b.

    in_feats, out_feats: the widths of the rows of all node types, and of the result.
    etypes: the graph's edge types, "src:rel:dst"; each has a weight W_r.
    num_bases: W_r = Σ_b coeff[r, b] · bases[b], with this many bases; None: each W_r is a parameter.
    aggregator: how the neighbours of one edge type are combined: "sum" (as DGL), "mean" (as PyTorch Geometric) or
        "max".
    self_loop, bias: whether the layer has W_self, and b.

    forward(block, {node type: rows}) returns {node type: rows of its destinations}, for the types with destinations.

    bases, coeff and W_self start uniform in ±√(6 / (rows + columns)) of each matrix, b at zero.

    Raises ValueError for another aggregator. forward raises KeyError for an edge type that is not among etypes, and for
    a node type without rows.

    Source: Schlichtkrull et al., Modeling Relational Data with Graph Convolutional Networks, 2018.
    """

    @keywords
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
            if _of_all(edges).num_dst and edges.num_src:
                rows = aggregate(edges, x[edges.src_type], self.aggregator) @ weights[self.etypes[etype]]
                out[edges.dst_type] = out[edges.dst_type] + rows
        for ntype, rows in out.items():
            if not isinstance(rows, Tensor):  # no edge type leads to this node type
                rows = x[ntype].new_zeros(block.num_dst[ntype], weights.shape[2])
            out[ntype] = rows if self.bias is None else rows + self.bias
        return out


class HeteroConv(nn.Module):
    """One layer for each edge type. The results that several edge types give for a node type are combined.

    layers: {edge type: layer}. A layer takes Edges, and rows or a pair of rows.
    aggregator: how results are combined, "sum", "mean", "max" or "cat".

    forward(block, {node type: rows}) returns {node type: rows of its destinations}, for the node types that an edge
    type leads to. It skips edge types without a layer, and those without rows for one of their ends.

    Raises ValueError for another aggregator.
    """

    @keywords
    def __init__(self, layers: Mapping[str, nn.Module], aggregator: str = "sum"):
        super().__init__()
        if aggregator not in ("sum", "mean", "max", "cat"):
            raise ValueError(f"aggregator is sum, mean, max or cat, not {aggregator!r}")
        self.etypes, self.layers, self.aggregator = list(layers), nn.ModuleList(layers.values()), aggregator

    def reset_parameters(self) -> None:
        """Calls reset_parameters of each layer that has it."""
        for layer in self.layers:
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()

    def forward(self, block: Block, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found: dict[str, list[Tensor]] = {}
        for etype, layer in zip(self.etypes, self.layers):
            edges = block.edges.get(etype)
            if edges is None or _of_all(edges).num_dst == 0 or not {edges.src_type, edges.dst_type} <= x.keys():
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
