"""dgl.dataloading.negative_sampler: pairs of nodes that are probably, or certainly, not edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwire._base import checks
from graphwire.dgl.id_arrays import edges_of, ids_tensor

Pair = tuple[torch.Tensor, torch.Tensor]


class _BaseNegativeSampler:
    """The base of negative samplers, under the name by which libraries derive their own. They implement _generate()."""

    def __call__(self, g: Any, eids: Any) -> Any:
        """(sources, destinations), int64 each; {edge type: (sources, destinations)} for {edge type: ids}."""
        if isinstance(eids, Mapping):
            return {g.to_canonical_etype(etype): self._generate(
                g, ids_tensor(ids, edges_of(g, etype), "eids"), g.to_canonical_etype(etype))
                for etype, ids in eids.items()}
        return self._generate(g, ids_tensor(eids, edges_of(g), "eids"), g.to_canonical_etype(None))

    def _generate(self, g: Any, eids: torch.Tensor, etype: tuple[str, str, str]) -> Pair:
        raise NotImplementedError


class PerSourceUniform(_BaseNegativeSampler):
    """For each edge, k pairs of its source and a random node of the destination's type. A pair may be an edge."""

    def __init__(self, k: int):
        self.k = checks.integer("k", k, 1)

    def _generate(self, g: Any, eids: torch.Tensor, etype: tuple[str, str, str]) -> Pair:
        src, _ = g.find_edges(eids, etype=etype)
        src = torch.repeat_interleave(src, self.k)
        return src, torch.randint(g.num_nodes(etype[2]), (len(src),))


Uniform = PerSourceUniform


class GlobalUniform(_BaseNegativeSampler):
    """For each edge, at most k pairs of a random source and a random destination. No pair is an edge. replace: pairs
    may be equal."""

    def __init__(self, k: int, exclude_self_loops: bool = True, replace: bool = False):
        self.k, self.exclude_self_loops, self.replace = checks.integer("k", k, 1), exclude_self_loops, replace

    def _generate(self, g: Any, eids: torch.Tensor, etype: tuple[str, str, str]) -> Pair:
        found: Pair = g.global_uniform_negative_sampling(len(eids) * self.k, self.exclude_self_loops, self.replace,
                                                         etype)
        return found
