"""Draws nodes in proportion to weights: the ends of negatives.

    a weight for each row of the user's data -> in the order of the graph's ids, or of the times from which nodes exist
        -> sums -> a number below the sum of the nodes that exist -> the node in whose share the number falls

The sums are made once, so that the time of a draw does not depend on the number of nodes.

Errors: ValueError and TypeError for weights. NotFoundError: no node with a weight above 0 exists at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from graphwire._base import checks
from graphwire._base.native import NotFoundError
from graphwire._base.times import counts_until
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.times import Times


class _InTime:
    """The nodes of a type in the order of their times, and those of equal times in the order of the user's rows.

    nodes: the graph's ids, [nodes] int64. rows: their places in the user's data. times: theirs, int64 or float64, in
    ascending order."""

    def __init__(self, time: Times, ntype: str, in_rows: torch.Tensor):
        times = np.asarray(time.graph.feature(time.nodes[ntype], ntype)[:])[in_rows.numpy()]
        times = times.astype(np.float64 if times.dtype.kind == "f" else np.int64)
        self.rows = np.argsort(times, kind="stable")
        self.nodes, self.times = in_rows.numpy()[self.rows], times[self.rows]


def _numbers(name: str, weight: Any) -> torch.Tensor:
    try:
        found = torch.as_tensor(weight)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TypeError(f"{name} has a number for each node, not {checks.shown(weight)}: {error}") from None
    if found.is_complex():
        raise TypeError(f"{name} has a number for each node, not {found.dtype}")
    return found.detach().to("cpu", torch.float64)


class Weighted:
    """weight: [nodes], 0 or more, for each row of the user's data. time: the times from which nodes exist, whose order
    it keeps; None: they exist at all times. name: that of the argument.

    Raises ValueError, which has `name`, for a wrong shape, for weights that are negative, not finite or all 0, and for
    a type whose ids are not rows; and TypeError for weights that are no numbers."""

    def __init__(self, ids: OriginalIds, ntype: str, name: str, weight: Any, time: Times | None):
        count = ids.graph.num_nodes(ntype)
        weight = _numbers(name, weight)
        if weight.shape != (count,):
            raise ValueError(f"{name}: shape {list(weight.shape)} for {count} nodes of type {ntype}")
        if not bool((weight >= 0).all()) or not 0 < float(weight.sum()) < math.inf:
            raise ValueError(f"{name}: weights are finite, not negative, and not all 0")
        self._ids, self._ntype, self._name = ids, ntype, name
        self._order: _InTime | None = None
        if time is None:
            self._sums = torch.empty_like(weight).index_copy_(0, self._in_rows(count), weight).cumsum(0).numpy()
            return
        self._feature, key = time.nodes[ntype], (ids.word, ntype)
        if key not in time.orders:
            time.orders[key] = _InTime(time, ntype, self._in_rows(count))
        self._order = time.orders[key]
        self._sums = np.cumsum(weight.numpy()[self._order.rows])

    def _in_rows(self, count: int) -> torch.Tensor:
        nodes, in_rows = self._ids.all_nodes(self._ntype)
        if not in_rows:
            raise ValueError(f"{self._name} has a row for each id from 0 to {count - 1}, and nodes of {self._ntype} "
                             "have other original ids")
        return nodes

    def drawn(self, count: int, times: torch.Tensor | None, links: np.ndarray,
              generator: torch.Generator | None) -> torch.Tensor:
        """The graph's ids of `count` nodes, [count] int64, with replacement. times: with a time, a time for each of
        them, int64 or float64. links: the link that each of them belongs to, for errors."""
        at = torch.rand(count, dtype=torch.float64, generator=generator).numpy()
        if self._order is None or times is None:
            return torch.from_numpy(self._below(at, np.broadcast_to(self._sums[-1], count)))
        alive = counts_until(self._order.times, times.numpy())
        sums = np.where(alive > 0, self._sums[alive - 1], 0)
        if count and not sums.min() > 0:
            first = int((sums <= 0).argmax())
            raise NotFoundError("GW_NOT_FOUND", f"a negative for link {links[first]}, time {times[first].item()}: no "
                                f'node of {self._ntype} with a {self._name} above 0 exists at this time by its '
                                f'"{self._feature}"')
        return torch.from_numpy(self._order.nodes[self._below(at, sums)])

    def _below(self, at: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """The places in whose shares at * sums fall. at: from 0 to below 1."""
        number = np.minimum(at * sums, np.nextafter(sums, 0))  # the product of a tiny sum may round up to it
        return np.searchsorted(self._sums, number, side="right")
