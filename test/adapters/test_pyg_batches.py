"""graphwire.pyg.NeighborLoader and LinkNeighborLoader over random data: every attribute of every batch is compared with
plain Python over the user's tensors. Data in memory, its graph in one part and in three, standalone and over servers.

GRAPHWIRE_PYG_GRAPHS=N: the number of random graphs (test/slow/soak).
"""

from __future__ import annotations

import os

import graphwire
import numpy as np
import pyg_oracle as oracle
import pytest
import torch
from conftest import Servers
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, from_pyg
from torch_geometric.data import HeteroData

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
GRAPHS = int(os.environ.get("GRAPHWIRE_PYG_GRAPHS", "12"))
FORMS = ("memory", "one part", "three parts")


def form_of(data, form, folder, servers):
    """(what the loader gets as data, servers to close or None)."""
    if form == "memory":
        return data, None
    parts = 1 if form == "one part" else 3
    graph = from_pyg(data, folder / form.replace(" ", "-"), num_parts=parts)
    if not servers:
        return graph, None
    started = Servers(folder / form.replace(" ", "-"), parts, folder)
    graph.close()
    return graphwire.open(servers=started.addresses), started


def node_loaders(given, data, random):
    """(arguments of oracle, loader) of a few node loaders with random options."""
    for _ in range(3):
        kinds = list(oracle.edges_of(data))
        hops = int(random.integers(1, 4))
        drawn = random.choice([-1, 0, 1, 2, 4], (len(kinds), hops)).tolist()
        hetero = isinstance(data, HeteroData)
        counts = dict(zip(kinds, drawn)) if hetero and random.random() < 0.5 else drawn[0]
        ntype = str(random.choice(list(data.node_types))) if hetero else None
        rows = oracle.nodes_of(data)[ntype]
        seeds = [rows.train_mask.nonzero().flatten(), torch.from_numpy(random.permutation(rows.num_nodes)),
                 torch.arange(rows.num_nodes)]
        form = int(random.integers(0, 3))
        asked = [rows.train_mask, seeds[1], None][form]
        replace, weighted = bool(random.random() < 0.3), bool(random.random() < 0.3)
        if weighted and not any("weight" in store and store.num_edges for store in oracle.edges_of(data).values()):
            weighted = False
        loader = NeighborLoader(given, counts, (ntype, asked) if hetero else asked, replace=replace,
                                weight_attr="weight" if weighted else None, batch_size=int(random.integers(1, 12)),
                                shuffle=bool(random.random() < 0.5) and len(seeds[form]) > 0)
        yield loader, ntype, seeds[form], form == 0, counts, replace, weighted


def check_node_loaders(given, data, random):
    for loader, ntype, seeds, masked, counts, replace, weighted in node_loaders(given, data, random):
        met = []
        for batch in loader:
            store = oracle.nodes_of(batch)[ntype]
            places = torch.searchsorted(seeds, store.input_id) if masked else store.input_id
            oracle.check_nodes(batch, data, ntype, seeds[places], store.input_id)
            oracle.check_rows(batch, data, True)
            oracle.check_hops(batch, data, counts, replace, weighted)
            met += places.tolist()
        assert sorted(met) == list(range(len(seeds)))


def check_link_loaders(given, data, random):
    for negatives in (None, ("binary", 1), ("binary", 0.5), ("triplet", 1), ("triplet", 2)):
        kinds = [kind for kind, store in oracle.edges_of(data).items() if store.edge_index.shape[1]]
        if not kinds:
            return
        kind = kinds[int(random.integers(0, len(kinds)))]
        links = own = oracle.edges_of(data)[kind].edge_index
        if random.random() < 0.5:  # links that need not be edges
            sizes = [oracle.nodes_of(data)[end].num_nodes for end in kind[::2]]
            links = torch.from_numpy(np.stack([random.integers(0, size, 9) for size in sizes]))
        asked = None if links is own else links
        labels = None
        if negatives is None or (negatives[0] == "binary" and random.random() < 0.5):
            labels = torch.from_numpy(random.integers(0, 3, links.shape[1]))
        loader = LinkNeighborLoader(given, [2, 1], (kind, asked) if isinstance(data, HeteroData) else asked,
                                    edge_label=labels, neg_sampling=negatives, batch_size=5,
                                    shuffle=bool(random.random() < 0.5))
        met = []
        for batch in loader:
            oracle.check_links(batch, data, kind, links, labels, negatives)
            oracle.check_rows(batch, data, True)
            oracle.check_hops(batch, data, [2, 1])
            met += oracle.edges_of(batch)[kind].input_id.tolist()
        assert sorted(met) == list(range(links.shape[1]))


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_batches(seed, tmp_path, monkeypatch):
    """Every second pair of graphs is served too, by processes of their own. The ends of links that are all edges are
    read at once or, in every second graph, with each batch."""
    monkeypatch.setattr("graphwire.pyg.links.READ_MAX", 0 if seed % 2 else 1 << 22)
    data = oracle.random_data(seed)
    for form in FORMS:
        random = np.random.default_rng([seed, 7])
        torch.manual_seed(seed)
        given, servers = form_of(data, form, tmp_path, seed % 4 >= 2)
        try:
            check_node_loaders(given, data, random)
            check_link_loaders(given, data, random)
        finally:
            if servers:
                given.close()
                servers.close()
