"""What is drawn for each hop: the arguments of a neighbour sampler in PyTorch Geometric's words, checked.

Errors: NotImplementedError for weights among the edges of a time; TypeError and InvalidError for counts; TypeError
and NotFoundError for weights; ValueError for what does not go together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType

from graphwire._base import checks
from graphwire._graph.fanouts import check_hops, count
from graphwire._graph.graph import Graph
from graphwire._graph.rules import Rules, Weight
from graphwire.pyg.subgraph import triple
from graphwire.pyg.times import Times

_WORDS = {"weight": "weight_attr", "time": "time_attr", "pick": "temporal_strategy"}
Counts = Union[NumNeighbors, Sequence[int], Mapping[Any, Sequence[int]]]


class Draws:
    """num_neighbors: PyG's NumNeighbors. hops: for each hop {(source, relation, destination): count}, at least one hop.
    time: the times by which edges are drawn, or None; unit: theirs, or None. disjoint: whether each seed has nodes of
    its own; also with times. induced: whether a batch has all edges among its nodes. The other attributes are the
    arguments; graphwire.pyg.NeighborSampler documents them."""

    def __init__(self, graph: Graph, num_neighbors: Counts, replace: bool = False,
                 subgraph_type: str | SubgraphType = "directional", weight_attr: Weight = None,
                 disjoint: bool = False, temporal_strategy: str = "uniform", time: Times | None = None):
        check_together(weight_attr, temporal_strategy, time is not None)
        self.replace, self.weight = checks.flag("replace", replace), weight_attr
        self.time, self.temporal_strategy = time, temporal_strategy
        self.disjoint = checks.flag("disjoint", disjoint) or time is not None
        self.subgraph_type = SubgraphType(subgraph_type)
        self.induced = self.subgraph_type == SubgraphType.induced
        # A wrong name is an error here, and not in a worker.
        self.unit = Rules(graph, weight_attr, time=self.rules, pick=self.pick, what=_WORDS).unit
        etypes = [triple(name) for name in graph.etypes]
        given = num_neighbors if isinstance(num_neighbors, NumNeighbors) else NumNeighbors(_plain(num_neighbors))
        self.num_neighbors, values = given, given.get_values(etypes)
        check_hops(given.num_hops, "num_neighbors")
        self.hops = [{etype: count(values[etype][hop], "num_neighbors") for etype in etypes}
                     for hop in range(given.num_hops)] or [dict.fromkeys(etypes, 0)]

    @property
    def rules(self) -> dict[str, str] | None:
        """{edge type: the time by which its edges are drawn}; None: no edge is drawn by time."""
        return self.time.rules or None if self.time is not None else None

    @property
    def pick(self) -> str:
        return self.temporal_strategy if self.rules else "uniform"

    def counted(self, out: Any) -> Any:
        """Returns a SamplerOutput. Its numbers of nodes and edges lose the hop that stands for num_neighbors=[]."""
        if self.num_neighbors.num_hops:
            return out
        for name, length in (("num_sampled_nodes", 1), ("num_sampled_edges", 0)):
            counts = getattr(out, name)
            if counts is None:
                continue
            setattr(out, name, {kind: some[:length] for kind, some in counts.items()} if isinstance(counts, dict)
                    else counts[:length])
        return out


def check_together(weight_attr: Weight, temporal_strategy: str, timed: bool) -> None:
    """timed: there is a time_attr."""
    checks.choice("temporal_strategy", temporal_strategy, ("uniform", "last"))
    if temporal_strategy != "uniform" and not timed:
        raise ValueError(f"temporal_strategy={temporal_strategy!r} needs time_attr, which names the times of nodes or "
                         "edges")
    if weight_attr is not None and timed:
        raise NotImplementedError("weight_attr and time_attr: graphwire.pyg does not draw by weights among the edges "
                                  "of a time")


def _plain(num_neighbors: Any) -> Any:
    """Converts counts, also arrays and ranges, to the lists that NumNeighbors takes. Raises TypeError."""
    if isinstance(num_neighbors, Mapping):
        return {etype: _plain(counts) for etype, counts in num_neighbors.items()}
    found = num_neighbors.tolist() if hasattr(num_neighbors, "tolist") else num_neighbors
    if not isinstance(found, (list, tuple, range)):
        raise TypeError("num_neighbors: a list of one count for each hop, -1: all neighbours, or {edge type: such a "
                        f"list}}, not {checks.shown(num_neighbors)}")
    return [count(one, "num_neighbors") for one in found]
