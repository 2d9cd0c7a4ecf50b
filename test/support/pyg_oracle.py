"""Random data of PyTorch Geometric, and a check of a loader's batches in plain Python against the user's tensors.

    data = random_data(seed) -> a loader over the data, a graph of it or its servers -> check_nodes, check_links

PyG's definitions: the seeds are the first nodes. Hop by hop, each node that the hop before has added gets its in-edges
drawn once for each edge type: all of them, or as many as the count, none twice unless `replace`. The new sources of the
drawn edges follow. In a disjoint batch every seed has a slot, and nodes of different slots are different nodes. With
times, only edges are drawn whose time is not later than the slot's. All ids are the user's: rows of the nodes' tensors,
and columns of edge_index.
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


def add_times(data, seed):
    """Adds time, of nodes, and edge_time, of edges; of HeteroData to some types. Many times are equal."""
    random = np.random.default_rng([seed, 5])
    for kinds, name, count in ((nodes_of(data), "time", lambda store: store.num_nodes),
                               (edges_of(data), "edge_time", lambda store: store.edge_index.shape[1])):
        timed = list(kinds) if not isinstance(data, HeteroData) else [
            kind for kind in kinds if random.random() < 0.7] or list(kinds)[:1]
        for kind in timed:
            times = random.integers(-9, 10, count(kinds[kind])) / random.choice([1, 4])
            kinds[kind][name] = torch.from_numpy(times).to(
                [torch.int64, torch.int32, torch.float64, torch.float32][int(random.integers(0, 4))])


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
        for name in ("x", "half", "y", "train_mask", "time"):
            assert (name in store) == (name in rows)
            assert name not in store or same_rows(store[name], rows[name][store.n_id]), (ntype, name)
    for kind, store in edges_of(batch).items():
        rows = edges_of(data)[kind]
        ends = torch.stack([nodes_of(batch)[end].n_id[row] for end, row in zip(kind[::2], store.edge_index)])
        assert torch.equal(rows.edge_index[:, store.e_id], ends), kind
        for name in ("edge_attr", "weight", "edge_time") if edge_rows else ():
            assert (name in store) == (name in rows)
            assert name not in store or same_rows(store[name], rows[name][store.e_id]), (kind, name)


class Law:
    """Which in-edges of a node can be drawn. times: {edge type: the time of each edge} of the types that have times;
    last: of these the latest are drawn."""

    def __init__(self, data, weighted=False, times=None, last=False):
        self.times, self.last = {kind: some.tolist() for kind, some in (times or {}).items()}, last
        self._edges = {}
        for kind, store in edges_of(data).items():
            into = self._edges[kind] = {}
            for edge, (end, weight) in enumerate(zip(store.edge_index[1].tolist(), store.weight.tolist())):
                if weight > 0 or not weighted:
                    into.setdefault(end, []).append(edge)

    def check(self, kind, node, until, drawn, count, replace):
        """until: the time of the seed; None: it has none."""
        own, times = self._edges[kind].get(node, []), self.times.get(kind)
        own = [edge for edge in own if times is None or times[edge] <= until]
        assert set(drawn) <= set(own), (kind, node)
        if count == -1 or (times is not None and self.last):
            most = len(own) if count == -1 else min(count, len(own))
            assert len(drawn) == len(set(drawn)) == most, (kind, node)
            if times is not None:
                latest = sorted(times[edge] for edge in own)[len(own) - most:]
                assert sorted(times[edge] for edge in drawn) == latest, (kind, node)
        else:
            assert len(drawn) == (count if replace and own else min(count, len(own))), (kind, node)
            assert replace or len(set(drawn)) == len(drawn)


class Apart:
    """What a disjoint batch has. slots: {node type: the slot of each seed}; belongs: the value of `batch` for each
    slot; times: the time of each slot, or None."""

    def __init__(self, slots, belongs, times=None):
        self.slots, self.belongs, self.times = slots, belongs, times

    def until(self, slot):
        return None if self.times is None else self.times[slot]


def times_of(data, name):
    """{edge type: the time of each edge}: those of its source, if nodes have times."""
    nodes, edges = nodes_of(data), edges_of(data)
    if name == "edge_time":
        return {kind: store[name] for kind, store in edges.items() if name in store}
    return {kind: nodes[kind[0]][name][store.edge_index[0]] for kind, store in edges.items() if name in nodes[kind[0]]}


def _by_end(drawn, ends):
    found = {}
    for edge, end in zip(drawn, ends):
        found.setdefault(end, []).append(edge)
    return found


def check_hops(batch, data, num_neighbors, replace=False, weighted=False, law=None, apart=None):
    """The draws of each hop, and the order of nodes and edges. apart: the batch is disjoint."""
    nodes, edges = nodes_of(batch), edges_of(batch)
    law = law or Law(data, weighted)
    hops = len(counts_of(num_neighbors, next(iter(edges))))
    added = {ntype: list(range(store.num_sampled_nodes[0])) for ntype, store in nodes.items()}
    reached = {ntype: len(rows) for ntype, rows in added.items()}
    done, ids = dict.fromkeys(edges, 0), {ntype: store.n_id.tolist() for ntype, store in nodes.items()}
    slots = {ntype: dict(enumerate(apart.slots.get(ntype, ()) if apart else [0] * reached[ntype])) for ntype in nodes}
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
                until = apart.until(slots[target][row]) if apart else None
                law.check(kind, ids[target][row], until, of_row.get(row, []), count, replace)
            for row, end in zip(rows[0].tolist(), at):  # trees of different seeds share no node
                assert slots[source].setdefault(row, slots[target][end]) == slots[target][end]
            met[source] += rows[0].tolist()
        for ntype, store in nodes.items():
            more = store.num_sampled_nodes[hop + 1]
            added[ntype] = list(range(reached[ntype], reached[ntype] + more))
            assert set(met[ntype]) - set(range(reached[ntype])) == set(added[ntype]), (ntype, hop)
            reached[ntype] += more
    for ntype, store in nodes.items():
        own = [slots[ntype][row] for row in range(reached[ntype])]
        assert reached[ntype] == len(store.n_id) == len(slots[ntype])
        seeds = store.num_sampled_nodes[0] if apart else 0  # equal seeds are apart
        assert len(set(zip(own, ids[ntype]))) == len(own) and own[:seeds] == list(apart.slots.get(ntype, ()) if apart
                                                                                   else ())
        assert ("batch" in store) == (apart is not None)
        assert apart is None or (store.batch.dtype == torch.int64 and store.batch.tolist() == [
            apart.belongs[slot] for slot in own])
    assert all(done[kind] == store.edge_index.shape[1] == sum(store.num_sampled_edges) and len(
        store.num_sampled_edges) == hops for kind, store in edges.items())


def check_nodes(batch, data, ntype, seeds, input_id):
    """The seeds of a batch are the first nodes."""
    store = nodes_of(batch)[ntype]
    assert store.batch_size == len(seeds) == store.num_sampled_nodes[0]
    assert torch.equal(store.n_id[:len(seeds)], seeds) and torch.equal(store.input_id, input_id)
    assert all(other.num_sampled_nodes[0] == 0 for kind, other in nodes_of(batch).items() if kind != ntype)


def check_links(batch, data, kind, links, labels, negatives, disjoint=False):
    """Links and negatives. negatives: None, or (mode, amount); labels: those of the links, or None. Returns the slots
    of the ends, {node type: slots}, and the link that each slot belongs to."""
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
    sources = count if mode == "triplet" else count + more
    slots = [list(range(sources)), list(range(sources, sources + count + more))]
    if disjoint:  # each end is a seed of its own, in this order
        second = sources if kind[0] == kind[2] else 0
        if mode == "triplet":
            drawn[2] = target.dst_neg_index.t().flatten()
            drawn = [drawn[0], torch.cat(drawn[1:])]
        assert [rows.tolist() for rows in drawn] == [slots[0], [row - sources + second for row in slots[1]]]
    elif kind[0] == kind[2]:  # each end is a seed, once
        assert set(torch.cat(drawn).tolist()) == set(range(seeds[0]))
    elif mode != "triplet":
        assert [set(rows.tolist()) for rows in drawn] == [set(range(seeds[0])), set(range(seeds[1]))]
    belongs = [slot % max(count, 1) for slot in (*slots[0], *range(count + more))]
    return ({kind[0]: slots[0] + slots[1]} if kind[0] == kind[2] else dict(zip(kind[::2], slots))), belongs
