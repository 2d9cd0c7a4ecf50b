"""The law of sampling by time, in plain Python over the whole edge list, for batches of graphwire.

    Law(graph, name) -> the times of all edges -> check(batch, …): each list of a batch, beside what it may draw
"""

from __future__ import annotations

import numpy as np


class Law:
    """times: {edge type: the time of each edge, by the graph's ids; None: the type has none}. It is the edge's feature
    `name`, else that of its source. ends: {edge type: when the edge ends}, likewise of `end`."""

    def __init__(self, graph, name, end=None):
        self.graph = graph
        self.edges = {etype: tuple(np.asarray(ids) for ids in graph.find_edges(range(graph.num_edges(etype)), etype))
                      for etype in graph.etypes}
        self.times = {etype: self._feature(etype, name) for etype in graph.etypes}
        self.ends = {etype: end and self._feature(etype, end) for etype in graph.etypes}
        self.lists = {etype: np.split(np.argsort(dst, kind="stable"), np.cumsum(np.bincount(
            dst, minlength=graph.num_nodes(graph.ends(etype)[1])))[:-1]) for etype, (_, dst) in self.edges.items()}

    def _feature(self, etype, name):
        here = {(one.of_edges, one.type) for one in self.graph.features if one.name == name}
        source = self.graph.ends(etype)[0]
        if (True, etype) in here:
            return np.asarray(self.graph.feature(name, etype=etype)[:])
        if (False, source) in here:
            return np.asarray(self.graph.feature(name, source)[:])[self.edges[etype][0]]
        return None

    def eligible(self, etype, node, until, begin=None, strict=False):
        """The edges of a node's list that a seed sees, in the order of the list. Python compares their numbers."""
        some = self.lists[etype][node].tolist()
        times, ends = self.times[etype], self.ends[etype]
        if times is None:
            return some
        return [edge for edge in some if (times[edge].item() < until if strict else times[edge].item() <= until)
                and (begin is None or times[edge].item() >= begin)
                and (ends is None or np.isnan(ends[edge]) or until < ends[edge].item())]

    def last(self, etype, edges, count):
        """The last edges by time; of equal times those that are later in the list."""
        order = sorted(range(len(edges)), key=lambda at: (self.times[etype][edges[at]].item(), at))
        return [edges[at] for at in order[max(0, len(order) - count):]]

    def check(self, batch, fanouts, until, begins=None, strict=False, replace=False, pick="uniform"):
        """Each draw of a batch, for its own group. until, begins: the range of each group, as Python's numbers; begins
        may be None. fanouts: a count for each hop. Returns the number of edges."""
        nodes, groups = ({kind: np.asarray(some).tolist() for kind, some in of.items()}
                         for of in (batch.nodes, batch.groups))
        for kind, some in nodes.items():
            assert len(set(zip(groups[kind], some))) == len(some), "a group has a node twice"
            assert set(groups[kind]) <= set(range(len(until)))
        total = 0
        for fanout, block in zip(fanouts, reversed(batch.blocks)):
            for etype, edges in block.edges.items():
                src, dst = self.edges[etype]
                indptr, ids = np.asarray(edges.indptr).tolist(), np.asarray(edges.edge_ids)
                indices = np.asarray(edges.indices).tolist()
                of_src, of_dst = nodes[edges.src_type], nodes[edges.dst_type]
                assert [of_src[row] for row in indices] == src[ids].tolist()
                for row in range(edges.num_dst):
                    at, group = row + edges.dst_first, groups[edges.dst_type][row + edges.dst_first]
                    found = ids[indptr[row]:indptr[row + 1]].tolist()
                    assert all(groups[edges.src_type][one] == group for one in indices[indptr[row]:indptr[row + 1]])
                    assert set(dst[found].tolist()) <= {of_dst[at]}
                    legal = self.eligible(etype, of_dst[at], until[group], begins and begins[group], strict)
                    assert set(found) <= set(legal), f"{etype}: the seed of group {group} may not see all edges"
                    self._check_count(etype, found, legal, fanout, replace, pick)
                    total += len(found)
        return total

    def _check_count(self, etype, found, legal, fanout, replace, pick):
        if fanout == -1:
            assert sorted(found) == legal
        elif pick == "last" and self.times[etype] is not None:
            assert sorted(found) == sorted(self.last(etype, legal, fanout))
        elif replace:
            assert len(found) == (fanout if legal else 0)
        else:
            assert len(set(found)) == len(found) == min(fanout, len(legal))
