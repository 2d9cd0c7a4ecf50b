"""Draws nodes that exist at times, uniformly: the ends of negatives of links with times.

    a time for each node to draw -> gw_edge_seeds: pairs with one negative each, without a hop -> the negatives' nodes

The owners of nodes have an index of their times, so that no column of times comes to this process.

Errors: those of gw_edge_seeds and of weighted.py. NotFoundError: no node exists at a time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch_geometric.sampler import NegativeSampling

from graphwire._base import arrays as _arrays
from graphwire._base.arrays import Lease
from graphwire._base.caller import level_of_the_caller
from graphwire._base.native import NotFoundError, c_name, ffi, finish, lib
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.times import Times
from graphwire.pyg.weighted import Weighted


def warn_of_times_of_edges(time: Times | None) -> None:
    """Warns of negatives of links whose time_attr does not say which nodes exist at the time of a link."""
    if time is not None and not time.nodes:
        warnings.warn(f"graphwire.pyg: neg_sampling with time_attr={time.name!r}: these are times of edges, and do not "
                      "say when nodes exist: negatives are drawn from all nodes", UserWarning,
                      stacklevel=level_of_the_caller())


class Existing:
    """The nodes of a type with times. Raises ValueError if no edge type of the graph has nodes of this type at an end.
    """

    def __init__(self, time: Times, ntype: str):
        graph = time.graph
        self._graph, self._ntype, self._name = graph, graph.ntype_number(ntype), time.nodes[ntype]
        ends = [(number, end) for number, pair in enumerate(graph._ends) for end in (1, 0)
                if pair[end] == self._ntype and graph._node_counts[pair[1 - end]]]
        if not ends:
            raise ValueError(f"neg_sampling with time_attr: no edge type of {graph.name} has nodes of type {ntype}")
        self._etype, self._end = ends[0]

    def drawn(self, times: torch.Tensor, links: np.ndarray, generator: torch.Generator | None) -> torch.Tensor:
        """The graph's ids of nodes that exist at the times, int64 or float64, one for each. links: the link that each
        of them belongs to, for errors."""
        graph, count, real = self._graph, len(times), times.is_floating_point()
        if not count:
            return torch.empty(0, dtype=torch.int64)
        client, places, zeros = graph._opened(), np.arange(count), np.zeros(count, np.int64)
        name, until = ffi.new("char[]", c_name("time_attr", self._name)), times.contiguous().numpy()
        pairs = ffi.new("struct gw_edge_seeds *", {
            "etype": self._etype, "negatives": lib.GW_NEGATIVES_DST if self._end else lib.GW_NEGATIVES_SRC,
            "negatives_each": 1, "src": _arrays.pointer(zeros, "int64_t *"), "dst": _arrays.pointer(zeros, "int64_t *"),
            "pair_count": count, "exist_time": name})
        fanouts = ffi.new("int32_t[]", len(graph.etypes))
        spec = ffi.new("struct gw_sample_spec *", {
            "hops": 1, "fanouts": fanouts, "edges": pairs, "frontier": lib.GW_FRONTIER_NEW, "real_times": real})
        seeds = ffi.new("struct gw_seeds *", {
            "type": self._etype, "count": count, "ids": _arrays.pointer(places, "int64_t *"),
            "times": _arrays.pointer(until)})
        number = int(torch.randint(2**63 - 1, (), generator=generator).item())
        lease = Lease(client)
        try:
            finish(lambda ticket: lib.gw_sample_lists_start(client.pointer, spec, number, 0, seeds, 1, lease.cell,
                                                            ticket))
        except NotFoundError as error:  # as nodes have no ends, none exists at the first time
            first, ntype = int(times.argmin()), graph.ntypes[self._ntype]
            raise NotFoundError(error.status, f"a negative for link {links[first]}, time {times[first].item()}: no "
                                f'node of {ntype} exists at this time by its "{self._name}"') from error
        mini = lease.minibatch
        rows = _arrays.copied(mini.edges[0].negative_rows, (count,), np.uint32)
        nodes = _arrays.copied(mini.nodes[self._ntype], (int(mini.node_counts[self._ntype]),), np.int64)
        return torch.from_numpy(nodes[rows])


class NegativesAtTimes:
    """PyG's NegativeSampling for links with times, as its edge_sample uses it. asked: without times. kinds: the types
    of the links' ends. given: the times of the links. links: their names for errors, or None. ids: the translation of
    the nodes."""

    def __init__(self, asked: NegativeSampling, time: Times, kinds: tuple[str, str], given: torch.Tensor, links: Any,
                 ids: OriginalIds):
        warn_of_times_of_edges(time)
        self._asked, self.amount, self.is_binary, self.is_triplet = (
            asked, asked.amount, asked.is_binary, asked.is_triplet)
        self._kinds = {end: kind for end, kind in zip(("src", "dst"), kinds) if kind in time.nodes}
        self._time, self._times, self._ids = time, given, ids
        self._links = np.arange(len(given)) if links is None else np.asarray(links)

    def sample(self, count: int, endpoint: str, num_nodes: int | None = None) -> torch.Tensor:
        if endpoint not in self._kinds:
            return self._asked.sample(count, endpoint, num_nodes)
        kind, name = self._kinds[endpoint], f"{endpoint}_weight"
        belongs, weight = np.arange(count) % max(len(self._times), 1), getattr(self._asked, name)
        times, links = self._times[torch.from_numpy(belongs)], self._links[belongs]
        if weight is None:
            found = Existing(self._time, kind).drawn(times, links, None)
        else:
            found = Weighted(self._ids, kind, name, weight, self._time).drawn(count, times, links, None)
        return self._ids.nodes_to_user(kind, found)
