"""Names of features in PyG's data: each feature gets its own name, or the name is refused. Random names, compared with
a plain Python model of which feature has which name."""

from __future__ import annotations

import random
import weakref

import graphwire
import numpy as np
import pytest
import torch
from graphwire.pyg import NeighborSampler, stores
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
OWN = ["edge_index", "num_nodes", "n_id", "e_id", "batch_size", "num_sampled_nodes", "edge_label_index", "input_id"]
MEMBERS = ["keys", "values", "to", "_mapping"]  # attributes of any of PyG's classes, which would hide the rows
PLAIN = ["x", "y", "edge_attr", "feat", "pos", "edge_weight", "batch", "my-rows"]
POOL = OWN + MEMBERS + PLAIN
NODES, EDGES = 40, 120
WRITES = ("author", "writes", "paper")


def columns(count, first):
    """Features with each name, all different: the one at position i begins at (first + i) * 1000."""
    return {name: np.arange(count) + 1000 * (first + place) for place, name in enumerate(POOL)}


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    ids = np.arange(EDGES)
    path = graphwire.partition_graph((ids % NODES, (ids * 7 + 1) % NODES), "ring", 1,
                                     tmp_path_factory.mktemp("ring") / "parts", method="random",
                                     node_features=columns(NODES, 0), edge_features=columns(EDGES, 100))
    with graphwire.open(path) as graph:
        yield graph


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    ids = np.arange(EDGES)
    edges = {WRITES: (ids % 10, (ids * 7 + 1) % NODES), ("paper", "cites", "paper"): (ids % NODES, (ids * 3) % NODES)}
    path = graphwire.partition_graph(edges, "written", 1, tmp_path_factory.mktemp("written") / "parts", method="random",
                                     node_features={"paper": columns(NODES, 0), "author": columns(10, 50)},
                                     edge_features={WRITES: columns(EDGES, 100)})
    with graphwire.open(path) as graph:
        yield graph


def chosen(rng, most):
    return rng.sample(POOL if rng.random() < 0.2 else PLAIN, rng.randint(0, most))


def called(attributes, kind, name):
    return attributes.get(kind, {}).get(name, attributes.get(name, name))


def check(make, wanted, attributes):
    """make(): the data. wanted: (the store's key, kind, name, are_rows(data, store, found)) of each feature."""
    names = [(place, called(attributes, kind, name)) for place, kind, name, _ in wanted]
    refused = len(set(names)) < len(names) or any(name in OWN + MEMBERS for _, name in names)
    if refused:
        with pytest.raises(ValueError) as error:
            make()
        guilty = [name for at, (place, kind, name, _) in enumerate(wanted)
                  if names.count(names[at]) > 1 or names[at][1] in OWN + MEMBERS]
        assert any(repr(name) in str(error.value) for name in guilty)
        return False
    data = make()
    for (place, _, _, are_rows), (_, name) in zip(wanted, names):
        store = data if place is None else data[place]
        assert are_rows(data, store, getattr(store, name)) and store[name] is getattr(store, name)
    return True


def random_attributes(rng):
    """New names for some features, and for some of one kind."""
    attributes = {name: rng.choice(PLAIN) for name in rng.sample(PLAIN, rng.randint(0, 2))}
    for kind in ("features", "edge_features", "labels"):
        if rng.random() < 0.6:
            attributes[kind] = {name: f"{kind} of {name}" for name in rng.sample(POOL, 12)}
    return attributes


def of_nodes(name, first, labels=False):
    """In one part nodes keep their ids."""
    def are_rows(_, store, rows):
        ids = store.n_id[:store.batch_size] if labels else store.n_id
        return torch.equal(rows, ids + 1000 * (first + POOL.index(name)))
    return are_rows


def of_edges(name, ends="edge_index", place=(None, None), turns=(NODES, NODES, 7, 1)):
    """An input edge i is known by its ends, whatever its id: it leads from i % turns[0] to (i * turns[2] + turns[3]) %
    turns[1]."""
    def are_rows(data, store, rows):
        src, dst = (data if one is None else data[one] for one in place)
        edges = rows - 1000 * (100 + POOL.index(name))
        found = getattr(store, ends)
        return (len(edges) == found.shape[1] and torch.equal(src.n_id[found[0]], edges % turns[0]) and
                torch.equal(dst.n_id[found[1]], (edges * turns[2] + turns[3]) % turns[1]))
    return are_rows


def test_one_store(ring):
    rng, kept = random.Random(1), 0
    for _ in range(150):
        features, edges, labels = chosen(rng, 3), chosen(rng, 2), chosen(rng, 2)
        attributes = random_attributes(rng)
        batch = graphwire.sample(ring, [3, 5], [2, 2], features=features, edge_features=edges, labels=labels)
        wanted = [(None, "features", name, of_nodes(name, 0)) for name in features]
        wanted += [(None, "edge_features", name, of_edges(name)) for name in edges]
        wanted += [(None, "labels", name, of_nodes(name, 0, True)) for name in labels]
        kept += check(lambda batch=batch, some=attributes: batch.to_pyg(some), wanted, attributes)
    assert 20 < kept < 130


def test_a_store_for_each_type(written):
    """A name may mean rows of each type, but not two kinds of rows of one type."""
    rng, kept = random.Random(2), 0
    for _ in range(150):
        papers, authors, edges, labels = chosen(rng, 2), chosen(rng, 2), chosen(rng, 2), chosen(rng, 2)
        attributes = random_attributes(rng)
        batch = graphwire.sample(written, [3, 5], [4, 4], ntype="paper", labels=labels,
                                 features={"paper": papers, "author": authors}, edge_features={WRITES: edges})
        wanted = [("paper", "features", name, of_nodes(name, 0)) for name in papers]
        wanted += [("author", "features", name, of_nodes(name, 50)) for name in authors]
        wanted += [(WRITES, "edge_features", name, of_edges(name, "edge_index", ("author", "paper"),
                                                            (10, NODES, 7, 1))) for name in edges]
        wanted += [("paper", "labels", name, of_nodes(name, 0, True)) for name in labels]
        kept += check(lambda batch=batch, some=attributes: batch.to_pyg(some), wanted, attributes)
    assert 20 < kept < 130


def test_edges_as_seeds(ring):
    rng, kept = random.Random(3), 0
    for _ in range(100):
        features, edges, labels, attributes = chosen(rng, 2), chosen(rng, 2), chosen(rng, 2), random_attributes(rng)
        batch = next(iter(graphwire.EdgeLoader(ring, [8, 9, 4], [2], negatives=rng.randint(0, 1), features=features,
                                               edge_features=edges, labels=labels)))
        wanted = [(None, "features", name, of_nodes(name, 0)) for name in features]
        wanted += [(None, "edge_features", name, of_edges(name)) for name in edges]
        wanted += [(None, "labels", name, of_edges(name, "edge_label_index")) for name in labels]
        kept += check(lambda batch=batch, some=attributes: batch.to_pyg(some), wanted, attributes)
    assert 10 < kept < 90


def test_what_attributes_are(ring):
    batch = graphwire.sample(ring, [3], [2], features="feat", edge_features="feat")
    for one, text in (({"nodes": {"feat": "x"}}, "'nodes' is not a kind"), ({"feat": "x"}, "'feat'"),
                      ({"features": {"feat": "num_edges"}}, "'feat'.*something else")):
        with pytest.raises(ValueError, match=text):
            batch.to_pyg(one)
    for one in ({"feat": 3}, {"features": {"feat": None}}):
        with pytest.raises(TypeError, match="a name is a string"):
            batch.to_pyg(one)
    data = batch.to_pyg({"feat": "x", "edge_features": {"feat": "edge_attr"}})
    assert isinstance(data, Data) and len(data.x) == data.num_nodes and len(data.edge_attr) == data.num_edges


def test_names_of_stores(ring):
    """PyG's loaders use some names themselves; rows of edges and of nodes may be in one store."""
    for name in ("n_id", "e_id", "edge_index", "batch_size", "input_id", "edge_label_index"):
        with pytest.raises(ValueError, match=name):
            stores(ring, {name: "feat"})
        with pytest.raises(ValueError, match=name):
            stores(ring, "x")[0].edge_rows({name: "feat"})
    some = stores(ring, {"x": "feat"})
    with pytest.raises(ValueError, match="'feat' would be 'x'"):
        some[0].edge_rows({"x": "feat"})
    data = next(iter(NodeLoader(some, node_sampler=NeighborSampler(ring, [2]), input_nodes=torch.tensor([4, 7]),
                                transform=some[0].edge_rows({"edge_attr": "feat"}))))
    assert of_nodes("feat", 0)(data, data, data.x) and of_edges("feat")(data, data, data.edge_attr)


def test_to_pyg_keeps_no_batch(ring, written):
    """All returned arrays have their own memory."""
    options = {"edge_features": "pos", "labels": "y"}
    for make in (lambda: graphwire.sample(ring, [3, 5], [3], features="feat", **options),
                 lambda: next(iter(graphwire.EdgeLoader(ring, None, [3], negatives=1, features="feat", **options))),
                 lambda: graphwire.sample(written, {"paper": [1], "author": [2]}, [3], features={"paper": "feat"},
                                          edge_features={WRITES: "pos"}, labels={"paper": "y"})):
        batch = make()
        lease, data = weakref.ref(batch._lease), batch.to_pyg()
        del batch
        assert lease() is None and data.num_nodes
