"""dgl.nn's layers, with its names and arguments: SAGEConv, GraphConv, GATConv; relations.py has the layers of graphs
with several types.

layer(graph, rows) -> rows of the destinations

The parameters have DGL's names, so that DGL's state_dicts can be loaded. They start from DGL's initial values, bit by
bit for the same seed of torch; graphwire.nn's layers start from PyTorch Geometric's. Sums run in one pass over the
block (graphwire.nn.aggregate).

Errors: DGLError, ValueError and KeyError where DGL raises them; MissingError for arguments that the subset
lacks.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwire.dgl.host import missing
from graphwire.dgl.subset.frame import DGLError
from graphwire.dgl.subset.relations import (
    HeteroGraphConv,
    RelGraphConv,
    TypedLinear,
    WeightBasis,
    get_aggregate_fn,
)
from graphwire.nn import aggregate, edge_softmax

Rows = Any
__all__ = ["GATConv", "GraphConv", "HeteroGraphConv", "RelGraphConv", "SAGEConv", "TypedLinear", "WeightBasis",
           "get_aggregate_fn"]


def _pair(graph: Any, feat: Rows) -> tuple[Tensor, Tensor]:
    """(rows of the sources, rows of the destinations)."""
    if isinstance(feat, tuple):
        return feat
    return feat, feat[:graph.num_dst_nodes()] if graph.is_block else feat


def _widths(in_feats: int | tuple[int, int]) -> tuple[int, int]:
    return in_feats if isinstance(in_feats, tuple) else (in_feats, in_feats)


class SAGEConv(nn.Module):
    """dgl.nn.SAGEConv. aggregator_type: "mean", "gcn" or "pool"."""

    def __init__(self, in_feats: int | tuple[int, int], out_feats: int, aggregator_type: str, feat_drop: float = 0.0,
                 bias: bool = True, norm: Callable[..., Any] | None = None,
                 activation: Callable[..., Any] | None = None):
        super().__init__()
        if aggregator_type == "lstm":
            raise missing("SAGEConv(aggregator_type='lstm')")
        if aggregator_type not in ("mean", "gcn", "pool"):
            raise DGLError(f"Invalid aggregator_type. Must be one of mean, gcn, pool, lstm. But got "
                           f"{aggregator_type!r} instead.")
        src, dst = _widths(in_feats)
        self._aggre_type, self.norm, self.activation = aggregator_type, norm, activation
        self.feat_drop = nn.Dropout(feat_drop)
        if aggregator_type == "pool":
            self.fc_pool = nn.Linear(src, src)
        self.fc_neigh = nn.Linear(src, out_feats, bias=False)
        if aggregator_type != "gcn":
            self.fc_self = nn.Linear(dst, out_feats, bias=bias)
        elif bias:
            self.bias = nn.Parameter(torch.zeros(out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        gain = nn.init.calculate_gain("relu")
        for name in ("fc_pool", "fc_self", "fc_neigh"):
            if hasattr(self, name):
                nn.init.xavier_uniform_(getattr(self, name).weight, gain=gain)

    def forward(self, graph: Any, feat: Rows, edge_weight: Tensor | None = None) -> Tensor:
        if edge_weight is not None:
            raise missing("SAGEConv.forward(edge_weight=…)")
        edges = graph.adjacency().edges()
        if isinstance(feat, tuple):
            src, dst = self.feat_drop(feat[0]), self.feat_drop(feat[1])
        else:
            src, dst = _pair(graph, self.feat_drop(feat))
        weight = self.fc_neigh.weight
        if self._aggre_type == "pool":
            near = self.fc_neigh(aggregate(edges, functional.relu(self.fc_pool(src)), "max"))
        elif self._aggre_type == "gcn":
            total = aggregate(edges, src, "sum") + dst
            near = self.fc_neigh(total / (edges.in_degrees.to(total.dtype) + 1)[:, None])
        elif weight.shape[0] < weight.shape[1]:  # the linear layer first: narrower rows to gather
            near = aggregate(edges, functional.linear(src, weight), "mean")
        else:
            near = self.fc_neigh(aggregate(edges, src, "mean"))
        if self._aggre_type != "gcn":
            near = near + self.fc_self(dst)
        elif self.bias is not None:
            near = near + self.bias
        if self.activation is not None:
            near = self.activation(near)
        return near if self.norm is None else self.norm(near)


def _refuse_lonely(graph: Any, allow: bool) -> None:
    if not allow and bool((graph.in_degrees() == 0).any()):
        raise DGLError("There are 0-in-degree nodes in the graph, output for those nodes will be invalid. Add "
                       "self-loops with dgl.add_self_loop, or set allow_zero_in_degree to True.")


class GraphConv(nn.Module):
    """dgl.nn.GraphConv. norm: "both", "right", "left" or "none"."""

    def __init__(self, in_feats: int, out_feats: int, norm: str = "both", weight: bool = True, bias: bool = True,
                 activation: Callable[..., Any] | None = None, allow_zero_in_degree: bool = False):
        super().__init__()
        if norm not in ("none", "both", "right", "left"):
            raise DGLError(f'Invalid norm value. Must be either "none", "both", "right" or "left". But got "{norm}".')
        self._norm, self._activation, self._allow = norm, activation, allow_zero_in_degree
        if weight:
            self.weight = nn.Parameter(torch.empty(in_feats, out_feats))
        else:
            self.register_parameter("weight", None)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_feats))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        self._allow = set_value

    def forward(self, graph: Any, feat: Rows, weight: Tensor | None = None,
                edge_weight: Tensor | None = None) -> Tensor:
        _refuse_lonely(graph, self._allow)
        src, _ = _pair(graph, feat)
        adjacency = graph.adjacency()
        edges = adjacency.edges()
        if edge_weight is not None:
            edge_weight = edge_weight[edges.edge_ids]
        if self._norm in ("both", "left"):
            degrees = adjacency.out_degrees().clamp(min=1).to(src.dtype)
            src = src * (degrees.rsqrt() if self._norm == "both" else degrees.reciprocal())[:, None]
        weight = self.weight if weight is None else weight
        narrow = weight is not None and weight.shape[0] > weight.shape[1]
        rows = aggregate(edges, src @ weight if narrow else src, "sum", edge_weight)
        if weight is not None and not narrow:
            rows = rows @ weight
        if self._norm in ("both", "right"):
            degrees = edges.in_degrees.clamp(min=1).to(rows.dtype)
            rows = rows * (degrees.rsqrt() if self._norm == "both" else degrees.reciprocal())[:, None]
        if self.bias is not None:
            rows = rows + self.bias
        return rows if self._activation is None else self._activation(rows)


class GATConv(nn.Module):
    """dgl.nn.GATConv. The result is [destinations, heads, out_feats]."""

    def __init__(self, in_feats: int | tuple[int, int], out_feats: int, num_heads: int, feat_drop: float = 0.0,
                 attn_drop: float = 0.0, negative_slope: float = 0.2, residual: bool = False,
                 activation: Callable[..., Any] | None = None, allow_zero_in_degree: bool = False, bias: bool = True):
        super().__init__()
        src, dst = _widths(in_feats)
        self._heads, self._out, self._allow, self.activation = num_heads, out_feats, allow_zero_in_degree, activation
        if isinstance(in_feats, tuple):
            self.fc_src = nn.Linear(src, out_feats * num_heads, bias=False)
            self.fc_dst = nn.Linear(dst, out_feats * num_heads, bias=False)
        else:
            self.fc = nn.Linear(src, out_feats * num_heads, bias=False)
        self.attn_l = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.attn_r = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.feat_drop, self.attn_drop = nn.Dropout(feat_drop), nn.Dropout(attn_drop)
        self._slope = negative_slope
        if residual:
            self.res_fc: Any = nn.Identity() if dst == out_feats * num_heads else nn.Linear(
                dst, out_feats * num_heads, bias=bias)
        else:
            self.register_buffer("res_fc", None)
        if bias and not isinstance(self.res_fc, nn.Linear):  # that layer has a bias of its own
            self.bias = nn.Parameter(torch.zeros(num_heads * out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        gain = nn.init.calculate_gain("relu")
        of_rows = [getattr(self, name) for name in ("fc", "fc_src", "fc_dst") if hasattr(self, name)]
        of_residuals = [self.res_fc] if isinstance(self.res_fc, nn.Linear) else []
        for weight in (*[part.weight for part in of_rows], self.attn_l, self.attn_r,
                       *[part.weight for part in of_residuals]):
            nn.init.xavier_normal_(weight, gain=gain)
        for bias in (self.bias, *[part.bias for part in of_residuals]):
            if bias is not None:
                nn.init.zeros_(bias)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        self._allow = set_value

    def forward(self, graph: Any, feat: Rows, edge_weight: Tensor | None = None, get_attention: bool = False) -> Any:
        if edge_weight is not None:
            raise missing("GATConv.forward(edge_weight=…)")
        _refuse_lonely(graph, self._allow)
        shape = (-1, self._heads, self._out)
        if isinstance(feat, tuple):
            src, dst = self.feat_drop(feat[0]), self.feat_drop(feat[1])
            if hasattr(self, "fc_src"):
                rows, own = self.fc_src(src), self.fc_dst(dst)
            else:
                rows, own = self.fc(src), self.fc(dst)
        else:
            src = self.feat_drop(feat)
            rows = self.fc(src)
            _, dst = _pair(graph, src)
            own = rows[:len(dst)]
        rows, own = rows.view(shape), own.view(shape)
        edges = graph.adjacency().edges()
        scores = (rows * self.attn_l).sum(-1).index_select(0, edges.indices)
        scores = scores + (own * self.attn_r).sum(-1).index_select(0, edges.dst)
        share = edge_softmax(edges, functional.leaky_relu(scores, self._slope))
        out = rows.new_zeros(edges.num_dst, self._heads, self._out)
        out = out.index_add(0, edges.dst, rows.index_select(0, edges.indices) * self.attn_drop(share)[..., None])
        if self.res_fc is not None:
            out = out + self.res_fc(dst).view(shape)
        if self.bias is not None:
            out = out + self.bias.view(1, self._heads, self._out)
        if self.activation is not None:
            out = self.activation(out)
        if not get_attention:
            return out
        by_id = torch.empty_like(share).index_copy(0, edges.edge_ids, share)
        return out, by_id[..., None]


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing(f"dgl.nn.{name}")
