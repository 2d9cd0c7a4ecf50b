"""In a graph in one part, edges keep their ids: in EdgeIds, and at every interface of graphwire.pyg. Random graphs are
compared with PyG's own data: parallel edges, loops, isolated nodes, types without edges, with and without data of
edges; from a folder and from a server. In several parts the ids are the graph's, and a warning says so."""

from __future__ import annotations

import pickle
import warnings

import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers, run
from graphwire._graph.edge_ids import EdgeIds
from graphwire.pyg import NeighborSampler, from_pyg, stores
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
COUNTS = {"a": 40, "b": 25, "c": 3}
TYPES = {("a", "to", "b"): 300, ("b", "back", "a"): 200, ("a", "self", "a"): 250, ("c", "none", "b"): 0}


def pairs(random, counts, edges):
    """Ends with few different values: many edges are parallel, or loops, and the last nodes have no edges."""
    return torch.stack([torch.from_numpy(random.integers(0, max(1, count - 4), edges)) for count in counts])


def several_types(seed):
    random, data = np.random.default_rng(seed), HeteroData()
    for name, count in COUNTS.items():
        data[name].x = torch.arange(float(count))[:, None]
    for number, (etype, edges) in enumerate(TYPES.items()):
        data[etype].edge_index = pairs(random, (COUNTS[etype[0]], COUNTS[etype[2]]), edges)
        if (number + seed) % 2:
            data[etype].edge_attr = torch.from_numpy(random.standard_normal((edges, 2)))
    return data


def one_type(seed, attributes=True):
    random = np.random.default_rng(seed)
    data = Data(edge_index=pairs(random, (60, 60), 900), x=torch.arange(60.0)[:, None])
    if attributes:
        data.edge_attr = torch.from_numpy(random.standard_normal((900, 2)))
    return data


@pytest.fixture
def both(tmp_path):
    """Calls check with the graph of data in this many parts: from its folder, and from servers over sockets and mapped
    memory."""

    def each(check, data, parts=1, **options):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        from_pyg(data, folder, num_parts=parts, **options).close()
        run("verify", folder, "--quiet")
        with graphwire.open(folder) as graph:
            check(graph)
        servers = Servers(folder, parts, tmp_path)
        try:
            for transport in ("tcp", "shm"):
                with graphwire.open(folder, servers.addresses, transport=transport) as graph:
                    check(graph)
        finally:
            servers.close()

    return each


def check_there_and_back(graph, etype, edge_index):
    """Every position, in any order, and back. The ends of each edge are those of its original id."""
    ids, count = EdgeIds(graph), edge_index.shape[1]
    assert ids.translates(etype) and ids.is_known(etype) and ids.num_originals(etype) == count
    every = torch.randperm(count)
    originals = ids.to_original(etype, every)
    assert originals.dtype == torch.int64 and torch.equal(torch.sort(originals)[0], torch.arange(count))
    assert torch.equal(ids.to_position(etype, originals), every)
    assert torch.equal(torch.stack(graph.find_edges(every, etype)), edge_index[:, originals])
    for call in (ids.to_original, ids.to_position):
        assert call(etype, []).shape == call(etype, torch.empty(0, dtype=torch.int64)).shape == (0,)
        for wrong in ([-1], [count], [1 << 40]):
            with pytest.raises(graphwire.OutOfRangeError, match=str(wrong[-1])):
                call(etype, wrong)
    if count:
        assert ids.to_position(etype, np.array([3, 3, 0])).tolist() == [*ids.to_position(etype, [3, 3]).tolist(),
                                                                        *ids.to_position(etype, range(1)).tolist()]


@pytest.mark.parametrize("seed", [1, 2])
def test_several_types(both, seed):
    data = several_types(seed)

    def check(graph):
        warnings.simplefilter("error", UserWarning)
        feature_store, graph_store = stores(graph, {name: "x" for name in COUNTS})
        sampler = pickle.loads(pickle.dumps(NeighborSampler(graph_store, [5, -1])))
        with_data = {etype: ["edge_attr"] for etype in TYPES if "edge_attr" in data[etype]}
        loader = NodeLoader((feature_store, graph_store), sampler, ("a", torch.arange(0, 40, 2)), batch_size=7,
                            transform=feature_store.edge_rows({":".join(key): rows for key, rows in with_data.items()}))
        seen = 0
        for batch in loader:
            seen += check_batch(data, batch, with_data)
        assert seen > 1000
        for etype in TYPES:
            check_there_and_back(graph, etype, data[etype].edge_index)
            row, col = graph_store[etype, "coo"]
            assert torch.equal(torch.stack([row, col]), data[etype].edge_index)
        check_csc(graph_store.csc(), data)

    both(check, data)


def check_batch(data, batch, with_data):
    """e_id names the columns of edge_index that are the batch's edges, and their rows match. Returns the number of
    edges."""
    for etype in TYPES:
        store = batch[etype]
        ends = torch.stack([batch[kind].n_id[rows] for kind, rows in zip(etype[::2], store.edge_index)])
        assert torch.equal(data[etype].edge_index[:, store.e_id], ends), etype
        if etype in with_data:
            assert torch.equal(store.edge_attr, data[etype].edge_attr[store.e_id]), etype
    return sum(len(batch[etype].e_id) for etype in TYPES)


def check_csc(converted, data):
    """PyG's conversion of the whole graph: its permutation leads to columns of edge_index."""
    for etype in TYPES:
        row, pointers, permutation = (by_type[etype] for by_type in converted)
        col = torch.repeat_interleave(torch.arange(len(pointers) - 1), pointers.diff())
        assert torch.equal(data[etype].edge_index[:, permutation], torch.stack([row, col]))


@pytest.mark.parametrize("attributes", [True, False])
def test_one_type(both, attributes):
    data = one_type(3, attributes)

    def check(graph):
        warnings.simplefilter("error", UserWarning)
        check_there_and_back(graph, None, data.edge_index)
        feature_store, graph_store = stores(graph, "x")
        transform = feature_store.edge_rows({"rows": "edge_attr"}) if attributes else None
        for subgraph_type in ("directional", "bidirectional"):
            sampler = NeighborSampler(graph_store, [4, 4], subgraph_type=subgraph_type)
            for batch in NodeLoader((feature_store, graph_store), sampler, torch.arange(60), batch_size=25,
                                    transform=transform):
                ends, expected = batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id]
                same = (ends == expected).all(0)
                assert bool(same.all() if subgraph_type == "directional" else (same | (ends.flip(0) == expected).all(
                    0)).all())
                assert not attributes or torch.equal(batch.rows, data.edge_attr[batch.e_id])

    both(check, data)


def test_links(both):
    """Seed edges are in the order of edge_index, so labels indexed by edge id are right."""
    data = one_type(4)
    labels = torch.arange(900)

    def check(graph):
        data_of = stores(graph, "x")
        every = torch.stack(data_of[1].coo()[:2])
        loader = LinkLoader(data_of, NeighborSampler(graph, [3]), (None, every), edge_label=labels, batch_size=128,
                            shuffle=True)
        for batch in loader:
            assert torch.equal(batch.edge_label, batch.input_id)
            assert torch.equal(batch.n_id[batch.edge_label_index], data.edge_index[:, batch.input_id])
            assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])

    both(check, data)


def test_links_of_a_type(both):
    data, etype = several_types(5), ("a", "to", "b")

    def check(graph):
        data_of = stores(graph, {name: "x" for name in COUNTS})
        for batch in LinkLoader(data_of, NeighborSampler(graph, [3, 3]), etype, batch_size=64, neg_sampling="binary"):
            store = batch[etype]
            rows = store.edge_label_index[:, :len(store.input_id)]
            found = torch.stack([batch["a"].n_id[rows[0]], batch["b"].n_id[rows[1]]])
            assert torch.equal(found, data[etype].edge_index[:, store.input_id])
            check_batch(data, batch, {})

    both(check, data)


@pytest.mark.parametrize("several", [False, True])
def test_pygs_own_data_with_the_sampler(several):
    """A loader over Data or HeteroData in memory finds its edges' rows by the sampler's permutation."""
    data = several_types(7) if several else one_type(7)
    if several:
        for etype in TYPES:
            data[etype].edge_attr = torch.arange(float(TYPES[etype]))
    with from_pyg(data) as graph:
        loader = NodeLoader(data, NeighborSampler(graph, [3, 3]), ("a", torch.arange(20)) if several else
                            torch.arange(20), batch_size=10, num_workers=1)
        for batch in loader:
            if several:
                check_batch(data, batch, TYPES)
            else:
                assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
                assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])


def test_undirected(both):
    """Both directions of an edge have its column of edge_index, and either direction's row."""
    data = one_type(8)

    def check(graph):
        warnings.simplefilter("error", UserWarning)
        ids = EdgeIds(graph)
        assert ids.is_known() and not ids.translates() and ids.num_originals() == 900 < graph.num_edges()
        firsts = ids.to_position(None, slice(None))
        assert torch.equal(ids.to_original(None, firsts), torch.arange(900))
        every = ids.to_original(None, slice(None))
        assert torch.equal(firsts, torch.stack([torch.nonzero(every == i)[0, 0] for i in range(900)]))
        feature_store, graph_store = stores(graph, "x")
        loader = NodeLoader((feature_store, graph_store), NeighborSampler(graph, [6, 6]), torch.arange(60),
                            batch_size=30, transform=feature_store.edge_rows({"rows": "edge_attr"}))
        turned = 0
        for batch in loader:
            ends, expected = batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id]
            forward, backward = (ends == expected).all(0), (ends.flip(0) == expected).all(0)
            assert bool((forward | backward).all()) and torch.equal(batch.rows, data.edge_attr[batch.e_id])
            turned += int((~forward).sum())
        assert turned > 0
        assert torch.equal(torch.stack(graph_store.coo()[:2]), torch.stack(graph.find_edges(slice(None))))

    both(check, data, undirected=True)


def test_an_undirected_feature_that_changes(tmp_path):
    """Here each direction has its own row, and an id alone does not determine it."""
    from_pyg(one_type(9), tmp_path / "parts", undirected=True).close()
    servers = Servers(tmp_path / "parts", 1, tmp_path, "--mutable", "edge_attr")
    try:
        with graphwire.open(tmp_path / "parts", servers.addresses) as graph:
            with pytest.raises(ValueError, match="both directions"):
                stores(graph, "x")[0].edge_rows("edge_attr")
    finally:
        servers.close()


def test_reverse_types(both):
    """The type that --reverse adds has the ids of the type that it reverses."""
    data, etype = several_types(10), ("a", "to", "b")
    back = ("b", "rev_to", "a")

    def check(graph):
        check_there_and_back(graph, back, data[etype].edge_index.flip(0))
        data_of = stores(graph, {name: "x" for name in COUNTS})
        for batch in NodeLoader(data_of, NeighborSampler(graph, [4, 4]), "a", batch_size=20):
            ends = torch.stack([batch["b"].n_id[batch[back].edge_index[0]], batch["a"].n_id[batch[back].edge_index[1]]])
            assert torch.equal(data[etype].edge_index.flip(0)[:, batch[back].e_id], ends)

    both(check, data, reverse=True)


def test_two_parts(both):
    """EdgeIds does not translate; stores, sampler and PyG's loaders do, without a warning."""
    data = several_types(11)

    def check(graph):
        ids = EdgeIds(graph)
        assert not any(ids.translates(etype) or ids.is_known(etype) for etype in TYPES)
        for call in (ids.to_original, ids.to_position):
            with pytest.raises(graphwire.NotFoundError, match="2 parts"):
                call(("a", "to", "b"), [0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sampler = NeighborSampler(graph, [3, 3])
            data_of = stores(graph, {name: "x" for name in COUNTS})
        assert set(sampler.edge_permutation) == set(TYPES)
        for batch in NodeLoader(data_of, sampler, "a", batch_size=25):
            for etype in TYPES:
                store = batch[etype]
                ends = torch.stack([batch[kind].n_id[rows] for kind, rows in zip(etype[::2], store.edge_index)])
                assert torch.equal(data[etype].edge_index[:, store.e_id], ends)

    both(check, data, parts=2)


def test_without_original_ids(tmp_path):
    """The import did not keep the edges' ids: ids are the graph's, and a warning says so."""
    np.save(tmp_path / "edges.npy", np.ascontiguousarray(one_type(12).edge_index.T))
    for words in ([], ["--edge-ids"]):
        run("import", "--from", tmp_path / "edges.npy", *words, "--out", tmp_path / "one", "--replace", "--quiet")
        with graphwire.open(tmp_path / "one") as graph, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            sampler = NeighborSampler(graph, [3])
            assert EdgeIds(graph).translates() is bool(words) is (sampler.edge_permutation is not None)
            assert bool(told) is not bool(words)
            if not words:
                with pytest.raises(graphwire.NotFoundError, match="--edge-ids"):
                    EdgeIds(graph).to_original(None, [0])


def test_hidden_and_refused(tmp_path):
    """The inverse of ids is not a feature, and no feature may have its name."""
    data = one_type(13)
    with from_pyg(data) as graph:
        assert "orig_id.inverse" not in [feature.name for feature in graph.features]
        with pytest.raises(graphwire.NotFoundError) as error:
            graph.feature("no_such", etype="_E")
        assert "orig_id" in str(error.value) and "inverse" not in str(error.value)
        for call in (lambda: graphwire.sample(graph, [1], [3], edge_features="orig_id.inverse"),
                     lambda: graphwire.EdgeLoader(graph, None, [3], labels="orig_id.inverse", batch_size=10)):
            with pytest.raises(graphwire.InvalidError, match="belong to no nodes or edges"):
                call()
    with pytest.raises(RuntimeError, match="reserves this name"):
        graphwire.partition_graph((*data.edge_index,), "g", 1, tmp_path / "g", method="random",
                                  edge_features={"orig_id.inverse": np.zeros(900)})
    for name in ("orig_id.inverse", "orig_id.index", "orig_id.buckets"):
        with pytest.raises(RuntimeError, match="reserves this name"):
            graphwire.partition_graph((*data.edge_index,), "g", 1, tmp_path / "g", method="random",
                                      num_nodes=60, node_features={name: np.zeros(60)})


def test_names_are_taken_where_they_mean_something(tmp_path):
    """The builder accepts the feature: names that the format reserves for edges are free for nodes, and the reverse."""
    given = {"indices": np.arange(60.0), "rel": np.arange(60.0)}
    config = graphwire.partition_graph((*one_type(15).edge_index,), "g", 1, tmp_path / "g", method="random",
                                       num_nodes=60, node_features=given, edge_features={"indptr": np.arange(900.0)})
    with graphwire.open(config) as graph:
        for name, rows in given.items():
            assert np.array_equal(graph.feature(name)[:].numpy(), rows)
        own = EdgeIds(graph).to_original(None, slice(None))
        assert torch.equal(graph.feature("indptr", etype="_E")[:], own.double())


def test_numpy_arrays(tmp_path):
    data = one_type(14)
    from_pyg(data, tmp_path / "parts").close()
    with graphwire.open(tmp_path / "parts", numpy=True) as graph:
        ids = EdgeIds(graph)
        originals = ids.to_original(None, range(900))
        assert isinstance(originals, np.ndarray) and originals.dtype == np.int64
        assert np.array_equal(ids.to_position(None, originals), np.arange(900))
