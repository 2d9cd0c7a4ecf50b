"""Single mini-batches: sample(), and a Sampler, which keeps the settings for many of them.

settings -> Spec, once | seeds of a call -> NodeSeeds -> gw_sample_start, awaited -> Batch

Errors: sample lists them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from graphwire._base import checks
from graphwire._base.arrays import Ids, Lease
from graphwire._base.keywords import keywords
from graphwire._base.native import OfProcess, ffi, finish, lib
from graphwire._base.times import Times
from graphwire._graph.fanouts import Fanouts
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import HeldOut
from graphwire._graph.rules import Time, Weight
from graphwire._train.batch import Batch
from graphwire._train.minibatch import Names, Spec, make_batch
from graphwire._train.seeds import NodeSeeds, Seeds


@keywords
def sample(graph: Graph, seeds: Seeds, fanouts: Fanouts, *, seed: int = 0, stream: int = 0,
           ntype: str | None = None, features: Names = None, labels: Names = None, edge_features: Names = None,
           dtype: Any = None, replace: bool = False, weight: Weight = None, time: Time = None, times: Times = None,
           window: Times = None, pick: str = "uniform", strict: bool = False, end: Time = None,
           disjoint: bool = False, frontier: str = "all", held_out: HeldOut | None = None,
           edge_ids: bool = True, index_dtype: str = "int64") -> Batch:
    """Samples one mini-batch around `seeds`, which may be empty. The other arguments are NodeLoader's, except stream:
    seed, stream and seeds together determine the sampling.

    Raises OutOfRangeError for a seed that is not a node; InvalidError for invalid fanouts; NotFoundError if a type or a
    feature does not exist; GraphwireError (GW_UNSUPPORTED) for a weight or a time that is not one number for each edge;
    ValueError and TypeError for other arguments; PeerError or DeadlineError if a server does not answer.
    """
    client = graph._opened()
    seed, stream = checks.integer("seed", seed, 0, checks.U64), checks.integer("stream", stream, 0, checks.U64)
    nodes = NodeSeeds(graph, seeds, ntype, one=True)
    spec = Spec(graph, fanouts, nodes=nodes, features=features, labels=labels, edge_features=edge_features,
                dtype=dtype, replace=replace, weight=weight, time=time, end=end, pick=pick, disjoint=disjoint,
                frontier=frontier, index_dtype=index_dtype, held_out=held_out, edge_ids=edge_ids)
    spec.take_times(graph, nodes, times, window, strict)
    return _sampled(graph, client, spec, spec.pointer, nodes, seed, stream)


def _sampled(graph: Graph, client: Any, spec: Spec, pointer: Any, nodes: NodeSeeds, seed: int, stream: int) -> Batch:
    """pointer: the gw_sample_spec, with the forms of the seeds' times."""
    lease = Lease(client)

    def start(ticket: Any) -> int:
        if nodes.several or nodes.times.until:
            return lib.gw_sample_lists_start(client.pointer, pointer, seed, stream, nodes.lists, len(nodes.ids),
                                             lease.cell, ticket)
        return lib.gw_sample_start(client.pointer, pointer, seed, stream, nodes.lists[0].ids, nodes.lists[0].count,
                                   lease.cell, ticket)

    finish(start)
    return make_batch(graph, lease, spec)


@keywords
class Sampler(OfProcess):
    """Samples one mini-batch at each call, always with the same settings, as an online service does. The settings are
    checked once; sample() checks them in every call, which takes longer than the sampling of one seed.

        sampler = graphwire.Sampler(graph, [25, 10], features="feat")
        batch = sampler([user])

    The arguments are those of sample(), and the same arguments and seeds give the same bytes. All seeds are of one
    type, ntype, which may be left out if the graph has only one. Any number of threads may call a sampler.

    Raises the errors of sample(): those of settings at once, those of seeds and of servers in a call.
    """

    __module__ = "graphwire.loader"

    def __init__(self, graph: Graph, fanouts: Fanouts, *, ntype: str | None = None, features: Names = None,
                 labels: Names = None, edge_features: Names = None, dtype: Any = None, replace: bool = False,
                 weight: Weight = None, time: Time = None, pick: str = "uniform", strict: bool = False,
                 end: Time = None, disjoint: bool = False, frontier: str = "all", held_out: HeldOut | None = None,
                 edge_ids: bool = True, index_dtype: str = "int64"):
        none = NodeSeeds(graph, [], ntype, one=True)
        self.graph = graph
        self._client, self._ntype = graph._opened(), graph.ntypes[none.types[0]]
        self._spec = Spec(graph, fanouts, nodes=none, features=features, labels=labels, edge_features=edge_features,
                          dtype=dtype, replace=replace, weight=weight, time=time, end=end, pick=pick, disjoint=disjoint,
                          frontier=frontier, index_dtype=index_dtype, held_out=held_out, edge_ids=edge_ids)
        self._strict = checks.flag("strict", strict)
        self._spec.rules.needs_time("strict", self._strict or None)
        self._fanouts = reprlib.repr(fanouts)

    def __repr__(self) -> str:
        return f"<graphwire.Sampler {self.graph.name}: seeds of {self._ntype}, fanouts {self._fanouts}>"

    def __call__(self, seeds: Ids, *, seed: int = 0, stream: int = 0, times: Times = None,
                 window: Times = None) -> Batch:
        """Samples one mini-batch around `seeds`. seed, stream and seeds together determine the sampling; times and
        window are sample()'s."""
        self.graph._opened()
        seed, stream = checks.integer("seed", seed, 0, checks.U64), checks.integer("stream", stream, 0, checks.U64)
        if isinstance(seeds, Mapping):
            raise TypeError(f"seeds: a sampler has seeds of one type, {self._ntype}: give their ids")
        nodes = NodeSeeds(self.graph, seeds, self._ntype, one=True)
        found = nodes.take_times(self.graph, self._spec.rules, times, window, self._strict)
        pointer = ffi.new("struct gw_sample_spec *", self._spec.pointer[0])  # of this call, since threads may share it
        pointer.real_times, pointer.strict_times = found.real, found.strict
        return _sampled(self.graph, self._client, self._spec, pointer, nodes, seed, stream)
