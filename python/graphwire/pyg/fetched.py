"""The rows that the library has fetched for a mini-batch of a neighbour loader: features of nodes and edges, and ids.

A feature becomes a tensor when it is asked for: a view of the library's memory. Original ids are copied: a view that
the caller keeps would keep the memory of the whole mini-batch.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from graphwire import _arrays
from graphwire._arrays import Lease, window
from graphwire._minibatch import Spec
from graphwire._native import ffi, lib

ORIGINAL = "orig_id"
NODES, EDGES = lib.GW_AT_INPUTS, lib.GW_AT_EDGES


_NOTHING = ffi.new("int64_t *")


def pointer(ids: torch.Tensor) -> Any:
    """The address of ids, contiguous int64; of no ids too, because C may read NULL as "all"."""
    return ffi.cast("int64_t *", ids.data_ptr()) if len(ids) else _NOTHING


class Fetched:
    """lease, spec: the mini-batch and its description."""

    def __init__(self, lease: Lease, spec: Spec):
        self.lease, self.spec = lease, spec
        self._rows: dict[int, torch.Tensor] = {}

    def rows(self, at: int, kind: str, name: str) -> torch.Tensor:
        """The rows of a feature: at NODES, for the batch's nodes of a type; at EDGES, for its edges, the seeds' hop
        first."""
        place = self.spec.places[at, kind, name]
        if place not in self._rows:
            tensor, mini = self.spec.fetches[place][0], self.lease.minibatch
            shape, dtype = _arrays.stored_rows(tensor, mini.row_counts[place])
            self._rows[place] = _arrays.public_rows(
                window(self.lease, mini.rows[place], shape, dtype), tensor.dtype, torch)
        return self._rows[place]

    def ids(self, at: int, kind: str) -> torch.Tensor:
        """The original ids of the nodes or edges of a type, [n] int64, a copy."""
        place, mini = self.spec.places[at, kind, ORIGINAL], self.lease.minibatch
        ids = torch.empty(mini.row_counts[place], dtype=torch.int64)
        if len(ids):
            narrow = self.spec.fetches[place][0].dtype == lib.GW_UINT32
            lib.ids_copied(mini.rows[place], narrow, len(ids), pointer(ids))
        return ids

    def replace(self, copy: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Replaces the rows of every feature by a copy."""
        for place, (_, kind, name, at) in enumerate(self.spec.fetches):
            if name != ORIGINAL:
                self._rows[place] = copy(self.rows(at, kind, name))
