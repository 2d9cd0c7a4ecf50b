"""dgl.nn's layers for several relations: TypedLinear, WeightBasis, RelGraphConv, HeteroGraphConv.

weights of the relations -> messages of each relation -> one row of each destination

Names, arguments and initial values are DGL's, as in nn.py.

Errors: DGLError, ValueError and KeyError where DGL raises them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Callable

import torch
from torch import Tensor, nn

from graphwire.dgl.subset.frame import DGLError


class TypedLinear(nn.Module):
    """dgl.nn.TypedLinear: x · W, with a W for each row's type.

    regularizer: None: each type has its own W. "basis": a type's W is a combination of num_bases matrices, by
    coeff[type]. "bdd": a type's W has num_bases blocks on its diagonal.
    """

    def __init__(self, in_size: int, out_size: int, num_types: int, regularizer: str | None = None,
                 num_bases: int | None = None):
        super().__init__()
        if regularizer not in (None, "basis", "bdd"):
            raise ValueError(f'Supported regularizer options: "basis", "bdd", but got {regularizer}')
        if regularizer is not None and num_bases is None:
            raise ValueError(f'Missing "num_bases" for {regularizer} regularization.')
        self.in_size, self.out_size, self.num_types = in_size, out_size, num_types
        self.regularizer, self.num_bases = regularizer, num_bases
        if regularizer == "bdd" and num_bases is not None:
            if in_size % num_bases or out_size % num_bases:
                raise ValueError("Input and output sizes must be divisible by num_bases.")
            self.W = nn.Parameter(torch.empty(num_types, in_size * out_size // num_bases))
        elif regularizer == "basis" and num_bases is not None:
            self.W = nn.Parameter(torch.empty(num_bases, in_size, out_size))
            self.coeff = nn.Parameter(torch.empty(num_types, num_bases))
        else:
            self.W = nn.Parameter(torch.empty(num_types, in_size, out_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        width = self.in_size // self.num_bases if self.regularizer == "bdd" and self.num_bases else self.in_size
        nn.init.uniform_(self.W, -1 / math.sqrt(width), 1 / math.sqrt(width))
        if self.regularizer == "basis":
            nn.init.xavier_uniform_(self.coeff, gain=nn.init.calculate_gain("relu"))

    def get_weight(self) -> Tensor:
        return torch.einsum("tb,bio->tio", self.coeff, self.W) if self.regularizer == "basis" else self.W

    def forward(self, x: Tensor, x_type: Any, sorted_by_type: bool = False) -> Tensor:
        kinds = torch.as_tensor(x_type, device=x.device)
        order = None if sorted_by_type else torch.argsort(kinds, stable=True)
        rows = x if order is None else x.index_select(0, order)
        weight, counts = self.get_weight(), torch.bincount(kinds, minlength=self.num_types)
        if len(counts) > self.num_types:
            raise DGLError(f"a row's type is {len(counts) - 1}, and there are {self.num_types} types")
        found = [self._of_one(some, weight[kind]) for kind, some in enumerate(rows.split(counts.tolist())) if len(some)]
        if not found:
            return x.new_zeros(0, self.out_size)
        every = torch.cat(found)
        return every if order is None else torch.empty_like(every).index_copy(0, order, every)

    def _of_one(self, rows: Tensor, weight: Tensor) -> Tensor:
        if self.regularizer != "bdd":
            return rows @ weight
        blocks = weight.view(self.num_bases, -1, self.out_size // self.num_bases)  # type: ignore[operator, arg-type]
        return torch.einsum("nbi,bio->nbo", rows.view(len(rows), *blocks.shape[:2]), blocks).flatten(1)


class WeightBasis(nn.Module):
    """dgl.nn.WeightBasis: num_outputs matrices that are combinations of num_bases matrices.

    shape: the shape of each matrix. forward() returns [num_outputs, *shape]: output o is the sum over b of
    w_comp[o, b] · weight[b]. A warning reports that num_outputs does not exceed num_bases.

    Source: Schlichtkrull et al., Modeling Relational Data with Graph Convolutional Networks, 2018.
    """

    def __init__(self, shape: Sequence[int], num_bases: int, num_outputs: int):
        super().__init__()
        self.shape, self.num_bases, self.num_outputs = tuple(shape), num_bases, num_outputs
        if num_outputs <= num_bases:
            warnings.warn(f"WeightBasis: {num_bases} bases for {num_outputs} outputs save no parameters", stacklevel=2)
        self.weight = nn.Parameter(torch.empty(num_bases, *self.shape))
        self.w_comp = nn.Parameter(torch.empty(num_outputs, num_bases))
        for parameter in (self.weight, self.w_comp):
            nn.init.xavier_uniform_(parameter, gain=nn.init.calculate_gain("relu"))

    def forward(self) -> Tensor:
        return torch.matmul(self.w_comp, self.weight.flatten(1)).view(self.num_outputs, *self.shape)


class RelGraphConv(nn.Module):
    """dgl.nn.RelGraphConv: R-GCN over a homogeneous graph, in which each edge has the number of a relation.

    regularizer: None, "basis" or "bdd". num_bases: for "basis" and "bdd"; None: num_rels. low_mem: an argument of
    DGL before 1.0; it has no effect.
    forward(graph, rows, etypes, norm): etypes: [edges], the relations' numbers; norm: a factor for each edge.

    Source: Schlichtkrull et al., Modeling Relational Data with Graph Convolutional Networks, 2018.
    """

    def __init__(self, in_feat: int, out_feat: int, num_rels: int, regularizer: str | None = None,
                 num_bases: int | None = None, bias: bool = True, activation: Callable[..., Any] | None = None,
                 self_loop: bool = True, dropout: float = 0.0, layer_norm: bool = False, *, low_mem: Any = None):
        super().__init__()
        if regularizer is not None and num_bases is None:
            num_bases = num_rels
        self.linear_r = TypedLinear(in_feat, out_feat, num_rels, regularizer, num_bases)
        self.bias, self.activation, self.self_loop, self.layer_norm = bias, activation, self_loop, layer_norm
        if bias:
            self.h_bias = nn.Parameter(torch.zeros(out_feat))
        if layer_norm:
            self.layer_norm_weight = nn.LayerNorm(out_feat)
        if self_loop:
            self.loop_weight = nn.Parameter(torch.empty(in_feat, out_feat))
            nn.init.xavier_uniform_(self.loop_weight, gain=nn.init.calculate_gain("relu"))
        self.dropout = nn.Dropout(dropout)

    def forward(self, g: Any, feat: Tensor, etypes: Any, norm: Tensor | None = None, *,
                presorted: bool = False) -> Tensor:
        src, dst = g.adjacency().pairs
        messages = self.linear_r(feat.index_select(0, src), etypes, presorted)
        if norm is not None:
            messages = messages * norm.view(len(messages), 1)
        rows = messages.new_zeros(g.num_dst_nodes(), messages.shape[1]).index_add(0, dst, messages)
        if self.layer_norm:
            rows = self.layer_norm_weight(rows)
        if self.bias:
            rows = rows + self.h_bias
        if self.self_loop:
            rows = rows + feat[:g.num_dst_nodes()] @ self.loop_weight
        return self.dropout(rows if self.activation is None else self.activation(rows))


def get_aggregate_fn(agg: str) -> Any:
    """The function (rows of each relation, node type) -> rows, by which HeteroGraphConv combines them."""
    if agg not in ("sum", "mean", "max", "min", "stack"):
        raise DGLError(f'Invalid cross type aggregator. Must be one of "sum", "max", "min", "mean" or "stack". But got '
                       f'"{agg}"')
    return partial(_combined, agg)


def _combined(agg: str, rows: list[Tensor], ntype: str) -> Tensor:
    if not rows:
        raise DGLError(f"no relation gives rows of {ntype}")
    every = torch.stack(rows, 1 if agg == "stack" else 0)
    if agg in ("max", "min"):
        return every.amax(0) if agg == "max" else every.amin(0)
    return every if agg == "stack" else every.mean(0) if agg == "mean" else every.sum(0)


class HeteroGraphConv(nn.Module):
    """dgl.nn.HeteroGraphConv: a layer for each relation. The results that several relations give for a node type are
    combined by "sum", "mean", "max", "min" or "stack", or by a function."""

    def __init__(self, mods: Mapping[Any, nn.Module], aggregate: Any = "sum"):
        super().__init__()
        self.mod_dict = mods
        self.mods = nn.ModuleDict({str(name): layer for name, layer in mods.items()})
        self.agg = aggregate
        for layer in self.mods.values():  # a node need not have edges of every relation
            allow = getattr(layer, "set_allow_zero_in_degree", None)
            if callable(allow):
                allow(True)

    def _layer(self, etype: tuple[str, str, str]) -> nn.Module:
        found = self.mod_dict.get(etype, self.mod_dict.get(etype[1]))
        if found is None:
            raise KeyError(f"Cannot find module with edge type {etype}")
        return found

    def forward(self, g: Any, inputs: Any, mod_args: Mapping[Any, Any] | None = None,
                mod_kwargs: Mapping[Any, Any] | None = None) -> dict[str, Tensor]:
        if isinstance(inputs, tuple) or g.is_block:
            sources, targets = inputs if isinstance(inputs, tuple) else (inputs, {
                ntype: rows[:g.num_dst_nodes(ntype)] for ntype, rows in inputs.items() if ntype in g.dsttypes})
        else:
            sources = targets = inputs
        found: dict[str, list[Tensor]] = {}
        for etype in g.canonical_etypes:
            src, relation, dst = etype
            if src not in sources or dst not in targets:
                continue
            rows = self._layer(etype)(g[etype], (sources[src], targets[dst]), *(mod_args or {}).get(relation, ()),
                         **(mod_kwargs or {}).get(relation, {}))
            found.setdefault(dst, []).append(rows)
        combine = self.agg if callable(self.agg) else get_aggregate_fn(self.agg)
        return {ntype: combine(rows, ntype) for ntype, rows in found.items()}
