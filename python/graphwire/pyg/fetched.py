"""What the library has written for a mini-batch of a neighbour loader, as tensors.

Most tensors are views of the library's memory: the mini-batch is given back when the last of them is freed. Ids of
nodes and their narrow rows, such as labels, are copies, because loops over an epoch collect them. Each tensor is made
when it is asked for.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch

from graphwire._base import arrays as _arrays
from graphwire._base.arrays import Lease, window
from graphwire._base.native import ffi, lib
from graphwire._train.minibatch import Spec

ORIGINAL = "orig_id"
NODES, EDGES = lib.GW_AT_INPUTS, lib.GW_AT_EDGES
COPIED_MAX = 16  # bytes of a row of nodes that is copied
_NOTHING = ffi.new("int64_t *")


def pointer(ids: torch.Tensor) -> Any:
    """The address of ids, contiguous int64; of no ids too, because C may read NULL as "all"."""
    return ffi.cast("int64_t *", ids.data_ptr()) if len(ids) else _NOTHING


class Fetched:
    """lease, spec: the mini-batch and its description, with for_pyg."""

    def __init__(self, lease: Lease, spec: Spec):
        self.lease, self.spec = lease, spec
        self._rows: dict[int, torch.Tensor] = {}

    def rows(self, at: int, kind: str, name: str) -> torch.Tensor:
        """The rows of a feature: at NODES, for the batch's nodes of a type; at EDGES, for its edges, the seeds' hop
        first."""
        place = self.spec.places[at, kind, name]
        if place not in self._rows:
            stored = self.spec.stored(self.lease, place)
            if at == NODES and stored.nbytes <= COPIED_MAX * len(stored):
                stored = stored.copy()
            self._rows[place] = _arrays.public_rows(stored, self.spec.fetches[place][0].dtype, torch)
        return self._rows[place]

    def replace(self, copy: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Replaces the rows of every feature by a copy."""
        for place, (_, kind, name, at) in enumerate(self.spec.fetches):
            if name != ORIGINAL:
                self._rows[place] = copy(self.rows(at, kind, name))

    def nodes(self, number: int) -> torch.Tensor:
        """The graph's ids of the nodes of a type, a copy."""
        mini = self.lease.minibatch
        return torch.from_numpy(window(self.lease, mini.nodes[number], (mini.node_counts[number],), np.int64).copy())

    def ends(self, number: int) -> torch.Tensor:
        """The rows of the ends of the edges of a type, [2, edges], the seeds' hop first."""
        edges = self.lease.minibatch.sampled[number]
        return torch.from_numpy(window(self.lease, edges.src, (2, edges.count), np.int64))

    def edges(self, number: int) -> torch.Tensor:
        """The graph's ids of the edges of a type."""
        edges = self.lease.minibatch.sampled[number]
        return torch.from_numpy(window(self.lease, edges.ids, (edges.count,), np.int64))
