"""PyTorch Geometric's own NeighborSampler without pyg-lib: its operations in plain Python, for whole neighbourhoods.

PyG's sampler converts data, translates ids and makes its outputs itself, and asks pyg-lib for the nodes and edges of a
batch. Here each node's list is taken completely, -1, or not at all, 0, so that nothing is drawn at random.
"""

from __future__ import annotations

from collections import defaultdict

import torch
import torch_geometric.typing


def _sampled(etypes, colptr, row, seeds, counts, node_time, edge_time, seed_time, disjoint):
    """colptr, row, counts, edge_time: by edge type (source, name, destination); seeds and times by node type. Returns
    (row, col, edge, nodes as (slot, id), numbers of nodes and of edges) by type."""
    hops, slot = len(next(iter(counts.values()))), 0
    nodes, place, until = defaultdict(list), defaultdict(dict), []
    for ntype, ids in seeds.items():
        for i, node in enumerate(ids.tolist()):
            key = slot if disjoint else 0, node
            place[ntype].setdefault(key, len(nodes[ntype]))
            nodes[ntype].append(key)
            if seed_time is not None:
                until.append(seed_time[ntype][i].item())
            elif node_time is not None:
                until.append(node_time[ntype][node].item())
            slot += 1
    begin, found = defaultdict(int), {etype: ([], [], []) for etype in etypes}
    num_nodes, num_edges = defaultdict(list), {etype: [] for etype in etypes}
    for ntype in {end for etype in etypes for end in (etype[0], etype[-1])} | set(nodes):
        num_nodes[ntype].append(len(nodes[ntype]))
    for hop in range(hops):
        ends = {ntype: len(nodes[ntype]) for ntype in num_nodes}
        for etype in etypes:
            source, target = etype[0], etype[-1]
            before = len(found[etype][0])
            for at in range(begin[target], ends[target]) if counts[etype][hop] else ():
                group, node = nodes[target][at]
                for edge in range(int(colptr[etype][node]), int(colptr[etype][node + 1])):
                    other = int(row[etype][edge])
                    times = [table[key] for table, key in ((node_time, source), (edge_time, etype))
                             if table is not None and key in table]
                    if times and times[0][other if node_time is not None else edge].item() > until[group]:
                        continue
                    key = group, other
                    if key not in place[source]:
                        place[source][key] = len(nodes[source])
                        nodes[source].append(key)
                    for some, value in zip(found[etype], (place[source][key], at, edge)):
                        some.append(value)
            num_edges[etype].append(len(found[etype][0]) - before)
        for ntype, end in ends.items():
            num_nodes[ntype].append(len(nodes[ntype]) - end)
            begin[ntype] = end
    return found, nodes, num_nodes, num_edges


def _as_nodes(some, disjoint):
    pairs = torch.tensor(some, dtype=torch.int64).view(-1, 2)
    return pairs if disjoint else pairs[:, 1]


def neighbor_sample(colptr, row, seed, counts, node_time, edge_time, seed_time, weight, csc, replace, directed,
                    disjoint, strategy, return_edge_id):
    one, ntype = ("", "", ""), ""
    by_type = [None if some is None else {key: some} for key, some in (
        (one, colptr), (one, row), (ntype, seed), (one, counts), (ntype, node_time), (one, edge_time),
        (ntype, seed_time))]
    found, nodes, num_nodes, num_edges = _sampled([one], *by_type, disjoint)
    return (*(torch.tensor(some, dtype=torch.int64) for some in (found[one][0], found[one][1])),
            _as_nodes(nodes[ntype], disjoint), torch.tensor(found[one][2], dtype=torch.int64), num_nodes[ntype],
            num_edges[one])


def hetero_neighbor_sample(ntypes, etypes, colptr, row, seeds, counts, node_time, edge_time, seed_time, weight, csc,
                           replace, directed, disjoint, strategy, return_edge_id):
    names = {etype: "__".join(etype) for etype in etypes}
    colptr, row, counts = ({etype: some[name] for etype, name in names.items()} for some in (colptr, row, counts))
    if edge_time is not None:
        edge_time = {etype: edge_time[name] for etype, name in names.items() if name in edge_time}
    found, nodes, num_nodes, num_edges = _sampled(etypes, colptr, row, seeds, counts, node_time, edge_time, seed_time,
                                                  disjoint)
    rows, cols, edges = ({names[etype]: torch.tensor(some[i], dtype=torch.int64) for etype, some in found.items()}
                         for i in range(3))
    return (rows, cols, {ntype: _as_nodes(nodes[ntype], disjoint) for ntype in ntypes}, edges,
            {ntype: num_nodes[ntype] for ntype in ntypes}, {names[etype]: some for etype, some in num_edges.items()})


def install(monkeypatch):
    """PyG's samplers, and so its loaders, draw with these operations until the test ends."""
    for name in ("WITH_PYG_LIB", "WITH_EDGE_TIME_NEIGHBOR_SAMPLE", "WITH_WEIGHTED_NEIGHBOR_SAMPLE"):
        monkeypatch.setattr(torch_geometric.typing, name, True)
    for call in (neighbor_sample, hetero_neighbor_sample):
        monkeypatch.setattr(torch.ops.pyg, call.__name__, call, raising=False)
