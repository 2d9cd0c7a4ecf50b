"""Random data of PyTorch Geometric, and a check of a loader's batches in plain Python against the user's tensors.

    data = random_data(seed) -> a loader over the data, a graph of it or its servers -> check_nodes, check_links

PyG's definitions: the seeds are the first nodes. Hop by hop, each node that the hop before has added gets its in-edges
drawn once for each edge type: all of them, or as many as the count, none twice unless `replace`. The new sources of the
drawn edges follow. All ids are the user's: rows of the nodes' tensors, and
columns of edge_index.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

A, B, C = "a", "b", "c"
KINDS = ((A, "r", A), (A, "s", B), (B, "s", A), (B, "none", B), (C, "t", A))


def _ends(random, sources, targets):
    """Edges with loops and parallel edges, and for some graphs none."""
    count = int(random.choice([0, 1, 30, 80]))
    if not sources or not targets:
        count = 0
    return torch.from_numpy(np.stack([random.integers(0, max(1, sources), count),
                                      random.integers(0, max(1, targets), count)]))


def _add_nodes(store, random, count):
    store.num_nodes = count
    store.x = torch.from_numpy(random.standard_normal((count, 3)).astype(np.float32))
    store.half = torch.from_numpy(random.standard_normal((count, 2))).to(torch.float16)
    store.y = torch.from_numpy(random.integers(-2**62, 2**62, count))
    store.train_mask = torch.from_numpy(random.random(count) < 0.6)


def _add_edges(store, random, ends):
    store.edge_index = ends
    store.edge_attr = torch.from_numpy(random.standard_normal((ends.shape[1], 2)))
    store.weight = torch.from_numpy(random.integers(0, 3, ends.shape[1]).astype(np.float32))


def random_data(seed):
    """Data, for even seeds, or HeteroData. Some nodes have no edges, and some edge types have none."""
    random = np.random.default_rng(seed)
    if seed % 2 == 0:
        data, count = Data(), int(random.integers(2, 40))
        ends = _ends(random, max(1, count - 3), count)
        ends = ends if ends.shape[1] else torch.tensor([[0, 0, 1], [1, 1, 1]])
        count += ends.shape[1] == count  # with as many edges as nodes, PyG guesses whose rows an attribute has
        _add_nodes(data, random, count)
        _add_edges(data, random, ends)
        return data
    data, counts = HeteroData(), {A: int(random.integers(2, 30)), B: int(random.integers(1, 20)), C: 4}
    for ntype, count in counts.items():
        _add_nodes(data[ntype], random, count)
    for kind in KINDS:
        _add_edges(data[kind], random, _ends(random, counts[kind[0]], counts[kind[2]] if kind[1] != "none" else 0))
    return data


# --- One view of Data and HeteroData. ---

def nodes_of(data):
    return {ntype: data[ntype] for ntype in data.node_types} if isinstance(data, HeteroData) else {None: data}


def edges_of(data):
    if isinstance(data, HeteroData):
        return {kind: data[kind] for kind in data.edge_types}
    return {(None, None, None): data}


def counts_of(num_neighbors, kind):
    return num_neighbors[kind] if isinstance(num_neighbors, dict) else num_neighbors


def same_rows(found, expected):
    """Bit for bit."""
    return found.dtype == expected.dtype and found.shape == expected.shape and bytes(
        found.contiguous().numpy()) == bytes(expected.contiguous().numpy())


# --- The checks. ---

def check_rows(batch, data, edge_rows):
    """Rows of nodes and edges are those of the user's tensors. edge_rows: whether the loader fetches those of edges."""
    for ntype, store in nodes_of(batch).items():
        rows = nodes_of(data)[ntype]
        assert store.num_nodes == len(store.n_id)
        for name in ("x", "half", "y", "train_mask"):
            assert same_rows(store[name], rows[name][store.n_id]), (ntype, name)
    for kind, store in edges_of(batch).items():
        rows = edges_of(data)[kind]
        ends = torch.stack([nodes_of(batch)[end].n_id[row] for end, row in zip(kind[::2], store.edge_index)])
        assert torch.equal(rows.edge_index[:, store.e_id], ends), kind
        for name in ("edge_attr", "weight") if edge_rows else ():
            assert same_rows(store[name], rows[name][store.e_id]), (kind, name)


def _degrees(data, kind, weighted):
    """The number of in-edges that can be drawn, of each node."""
    rows = edges_of(data)[kind]
    into = rows.edge_index[1][rows.weight > 0] if weighted else rows.edge_index[1]
    return torch.bincount(into, minlength=nodes_of(data)[kind[2]].num_nodes).tolist()


def _expected(degree, count, replace):
    """How many in-edges of a node are drawn."""
    if count == -1 or not degree:
        return degree
    return count if replace else min(count, degree)


def _by_end(drawn, ends):
    found = {}
    for edge, end in zip(drawn, ends):
        found.setdefault(end, []).append(edge)
    return found


def check_hops(batch, data, num_neighbors, replace=False, weighted=False):
    """The draws of each hop, and the order of nodes and edges."""
    nodes, edges = nodes_of(batch), edges_of(batch)
    hops = len(counts_of(num_neighbors, next(iter(edges))))
    added = {ntype: list(range(store.num_sampled_nodes[0])) for ntype, store in nodes.items()}
    reached = {ntype: len(rows) for ntype, rows in added.items()}
    done, ids = dict.fromkeys(edges, 0), {ntype: store.n_id.tolist() for ntype, store in nodes.items()}
    degrees = {kind: _degrees(data, kind, weighted) for kind in edges}
    for hop in range(hops):
        met = {ntype: [] for ntype in nodes}
        for kind, store in edges.items():
            source, _, target = kind
            part = slice(done[kind], done[kind] + store.num_sampled_edges[hop])
            done[kind] = part.stop
            rows, drawn = store.edge_index[:, part], store.e_id[part].tolist()
            at = rows[1].tolist()
            assert set(at) <= set(added[target]), (kind, hop)
            of_row, count = _by_end(drawn, at), counts_of(num_neighbors, kind)[hop]
            for row in added[target]:
                mine = of_row.get(row, [])
                assert len(mine) == _expected(degrees[kind][ids[target][row]], count, replace), (kind, hop, row)
                assert replace or len(set(mine)) == len(mine)
            if weighted:
                assert bool((edges_of(data)[kind].weight[store.e_id[part]] > 0).all())
            met[source] += rows[0].tolist()
        for ntype, store in nodes.items():
            more = store.num_sampled_nodes[hop + 1]
            added[ntype] = list(range(reached[ntype], reached[ntype] + more))
            assert set(met[ntype]) - set(range(reached[ntype])) == set(added[ntype]), (ntype, hop)
            reached[ntype] += more
    assert all(reached[ntype] == len(store.n_id) == len(set(store.n_id.tolist())) for ntype, store in nodes.items())
    assert all(done[kind] == store.edge_index.shape[1] == sum(store.num_sampled_edges) and len(
        store.num_sampled_edges) == hops for kind, store in edges.items())


def check_nodes(batch, data, ntype, seeds, input_id):
    """The seeds of a batch are the first nodes."""
    store = nodes_of(batch)[ntype]
    assert store.batch_size == len(seeds) == store.num_sampled_nodes[0]
    assert torch.equal(store.n_id[:len(seeds)], seeds) and torch.equal(store.input_id, input_id)
    assert all(other.num_sampled_nodes[0] == 0 for kind, other in nodes_of(batch).items() if kind != ntype)


def check_links(batch, data, kind, links, labels, negatives):
    """Links and negatives. negatives: None, or (mode, amount); labels: those of the links, or None."""
    link, ends = edges_of(batch)[kind], [nodes_of(batch)[kind[0]].n_id, nodes_of(batch)[kind[2]].n_id]
    wanted, count = links[:, link.input_id], len(link.input_id)
    seeds = [nodes_of(batch)[end].num_sampled_nodes[0] for end in kind[::2]]
    mode, amount = negatives or (None, 0)
    more = int(np.ceil(count * amount))
    if mode == "triplet":
        source, target = (nodes_of(batch)[end] for end in kind[::2])
        found = torch.stack([ends[0][source.src_index], ends[1][target.dst_pos_index]])
        drawn = [source.src_index, target.dst_pos_index, target.dst_neg_index.flatten()]
        assert target.dst_neg_index.shape == ((count,) if more == count else (count, more // count))
        assert "edge_label_index" not in link and "edge_label" not in link
    else:
        assert link.edge_label_index.shape == (2, count + more)
        found = torch.stack([ends[side][link.edge_label_index[side, :count]] for side in (0, 1)])
        drawn = list(link.edge_label_index)
        if mode is None:
            assert ("edge_label" in link) == (labels is not None)
            assert labels is None or torch.equal(link.edge_label, labels[link.input_id])
        else:
            given = torch.ones(count) if labels is None else (labels + (labels.min() == 0))[link.input_id]
            assert torch.equal(link.edge_label, torch.cat([given, given.new_zeros(more)]))
    assert torch.equal(found, wanted)
    if kind[0] == kind[2]:  # each end is a seed, once
        assert set(torch.cat(drawn).tolist()) == set(range(seeds[0]))
    elif mode != "triplet":
        assert [set(rows.tolist()) for rows in drawn] == [set(range(seeds[0])), set(range(seeds[1]))]
