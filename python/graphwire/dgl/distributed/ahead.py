"""Look-ahead of a loader over a DistGraph: a row that one batch has fetched serves the next ones.

    Rows(columns, lookahead): one epoch -> batch(number): the sampler's rows of these columns come through it

The sampler names the columns (prefetch_node_feats). Batches are made in several threads, in any order of time; which of
them fetches a row depends on their numbers alone. A batch that is lost or has failed passes: the others do not wait for
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Callable

import numpy as np
import torch

import graphwire
from graphwire._base.arrays import fetched_as, fetched_rows, public_rows
from graphwire._base.native import ffi, lib
from graphwire._train.lookahead import Lookahead, Options
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.tensor import DistTensor, rows_of


class Rows:
    """The rows of an epoch. columns: DistTensors; those that are no features of the graph take no part. goes_on:
    whether the epoch does."""

    def __init__(self, columns: Sequence[DistTensor], lookahead: int, goes_on: Callable[[], bool]):
        self._features = [one._data for one in columns if isinstance(one._data, graphwire.Feature)]
        self._goes_on, self._look = goes_on, None
        if not self._features:
            return
        tensors = [feature.pointer() for feature in self._features]
        self._codes = [fetched_as(tensor, torch) for tensor in tensors]
        fetches = ffi.new("struct gw_fetch[]", [{"tensor": tensor, "at": lib.GW_AT_INPUTS, "convert": code}
                                                for tensor, code in zip(tensors, self._codes)])
        self._look = Lookahead(self._features[0]._graph._opened(), fetches, len(tensors), Options(1, lookahead, 0, 0))
        self._look.begin()

    @contextlib.contextmanager
    def batch(self, number: int) -> Iterator[None]:
        """While this thread makes the batch of this number."""
        context.looking(partial(self._rows, number))
        try:
            yield
        finally:
            context.looking(None)
            self.skip(number)

    def skip(self, number: int) -> None:
        """The batch needs no more rows."""
        if self._look is not None:
            self._look.skip(number)

    def _rows(self, number: int, column: DistTensor, ids: Any) -> torch.Tensor:
        feature = column._data
        place = next((place for place, one in enumerate(self._features) if isinstance(feature, graphwire.Feature)
                      and (one.type, one.name) == (feature.type, feature.name)), None)
        if place is None or self._look is None:
            return column[ids]
        wanted = np.ascontiguousarray(rows_of(ids, column.rows_of))
        rows = np.empty(*fetched_rows(feature.pointer(), self._codes[place], len(wanted)))
        self._look.gather(number, place, wanted, rows, self._goes_on)
        return torch.as_tensor(public_rows(rows, self._codes[place], torch))
