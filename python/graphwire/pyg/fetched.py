"""What the library has written for a mini-batch of a neighbour loader, as tensors.

Most tensors are views of the library's memory: the mini-batch is given back when the last of them is freed. Ids of
nodes and their narrow rows, such as labels, are copies, because loops over an epoch collect them. Each tensor is made
when it is asked for.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch

from graphwire._base.arrays import Lease, Records, addresses, windows
from graphwire._base.native import ffi, lib
from graphwire._train.minibatch import Spec

ORIGINAL = "orig_id"
NODES, EDGES = lib.GW_AT_INPUTS, lib.GW_AT_EDGES
COPIED_MAX = 16  # bytes of a row of nodes that is copied
_NOTHING = ffi.new("int64_t *")
_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_SAMPLED = Records("struct gw_sampled_edges", "count", "src", "ids")


def pointer(ids: torch.Tensor) -> Any:
    """The address of ids, contiguous int64; of no ids too, because C may read NULL as "all"."""
    return ffi.cast("int64_t *", ids.data_ptr()) if ids.numel() else _NOTHING


class Fetched:
    """lease, spec: the mini-batch and its description, with for_pyg."""

    def __init__(self, lease: Lease, spec: Spec):
        self.lease, self.spec = lease, spec
        self._view = windows(lease)
        self._rows: dict[int, torch.Tensor] = {}

    def rows(self, at: int, kind: str, name: str) -> torch.Tensor:
        """The rows of a feature: at NODES, for the batch's nodes of a type; at EDGES, for its edges, the seeds' hop
        first."""
        place = self.spec.places[at, kind, name]
        if place not in self._rows:
            self._rows[place] = self.spec.form.rows(self.lease, place, self._view, COPIED_MAX if at == NODES else 0)
        return self._rows[place]

    def replace(self, copy: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Replaces the rows of every feature by a copy."""
        for place, (_, kind, name, at) in enumerate(self.spec.fetches):
            if name != ORIGINAL:
                self._rows[place] = copy(self.rows(at, kind, name))

    def nodes(self) -> list[torch.Tensor]:
        """The graph's ids of the nodes of each type, copies."""
        mini, count = self.lease.minibatch, len(self.spec.form.ntypes)
        return [torch.from_numpy(self._view(ids, length, _INT64).copy()) for ids, length in zip(
            addresses(mini.nodes, count), ffi.unpack(mini.node_counts, count))]

    def groups(self, slots: np.ndarray | None = None) -> list[torch.Tensor] | None:
        """The group of each node of each type, int64; with slots, slots[group]. None: the batch is not disjoint."""
        mini, count = self.lease.minibatch, len(self.spec.form.ntypes)
        if mini.groups == ffi.NULL:
            return None
        groups = [self._view(numbers, length, _UINT32) for numbers, length in zip(
            addresses(mini.groups, count), ffi.unpack(mini.node_counts, count))]
        return [torch.from_numpy(some.astype(np.int64) if slots is None else slots[some]) for some in groups]

    def edges(self, wanted: list[bool]) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        """For each edge type the rows of its edges' ends, [2, edges], the seeds' hop first, and the graph's ids of the
        edges, where they are wanted."""
        view, tensor = self._view, torch.from_numpy
        return [(tensor(view(src, (2, count), _INT64)), tensor(view(ids, count, _INT64)) if needed else None)
                for (count, src, ids), needed in zip(_SAMPLED.read(self.lease.minibatch.sampled, len(wanted)), wanted)]
