"""PyTorch Geometric's own loaders over graphwire.pyg: batches are valid and uniformly sampled, and models learn as
well. Batches have the graph's ids here; test_pyg_ids.py has those of the user's data."""

from __future__ import annotations

import copy
import functools
import gc
import multiprocessing
import pickle
import warnings
import weakref
from multiprocessing.process import BaseProcess

import graphwire
import numpy as np
import pytest
import torch
import torch.distributed as dist
from conftest import Servers
from graphwire.pyg import from_pyg
from rank_forks import in_ranks
from shared import given
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.nn import GraphSAGE

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
CITES, WRITES, BACK = ("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "rev_writes", "author")
NAMES = {"paper": {"x": "feat", "y": "label"}, "author": {"x": "age"}}


@pytest.fixture(scope="module")
def two_servers(two_parts, tmp_path_factory):
    started = Servers(two_parts, 2, tmp_path_factory.mktemp("servers"))
    yield started
    started.close()


@pytest.fixture(params=["folder", "servers"])
def graph(request, two_parts):
    """The homogeneous graph in two parts."""
    if request.param == "folder":
        opened = graphwire.open(two_parts)
    else:
        opened = graphwire.open(two_parts, request.getfixturevalue("two_servers").addresses)
    with opened:
        yield opened


@pytest.fixture(params=["folder", "servers"])
def papers(request, hetero):
    """The graph with several types, from two servers in two parts."""
    if request.param == "folder":
        opened = graphwire.open(hetero)
    else:
        servers = request.getfixturevalue("hetero2")
        opened = graphwire.open(servers.folder, servers.addresses)
    with opened:
        yield opened


stores = functools.partial(graphwire.pyg.stores, ids="graph")
NeighborSampler = functools.partial(graphwire.pyg.NeighborSampler, ids="graph")


def check_edges(graph, etype, edge_ids, src, dst):
    """Each is an edge of the graph with these ends."""
    expected = graph.find_edges(edge_ids, ":".join(etype) if etype else None)
    assert torch.equal(src, expected[0]) and torch.equal(dst, expected[1])


def check_fanouts(graph, etype, store, targets, fanouts):
    """Each node's neighbours are drawn at the hop after the one that found it: as many as exist, up to the fanout, and
    no edge twice. Nodes of the last hop have none."""
    name = ":".join(etype) if etype else None
    degrees = graph.in_degrees(targets.n_id, name)
    begin = 0
    for count, fanout in zip(targets.num_sampled_nodes, [*fanouts, 0]):
        hop = torch.arange(begin, begin + count)
        found = torch.bincount(store.edge_index[1], minlength=len(targets.n_id))[hop]
        most = degrees[hop] if fanout == -1 else torch.clamp(degrees[hop], max=fanout)
        assert torch.equal(found, most), (etype, fanout)
        begin += count
    assert begin == len(targets.n_id)
    assert len(torch.unique(store.e_id)) == len(store.e_id) and sum(store.num_sampled_edges) == len(store.e_id)


def check_homogeneous(graph, batch, fanouts):
    src, dst = batch.edge_index
    check_edges(graph, None, batch.e_id, batch.n_id[src], batch.n_id[dst])
    check_fanouts(graph, None, batch, batch, fanouts)
    assert len(torch.unique(batch.n_id)) == batch.num_nodes and batch.num_sampled_nodes[0] == batch.batch_size


def test_nodes(graph):
    """Two hops around nodes: every batch of an epoch; torch.manual_seed repeats it."""
    train = torch.arange(0, 600, 3)
    sampler = NeighborSampler(graph, [4, 3])
    loader = NodeLoader(stores(graph, {"x": "features", "y": "labels"}), node_sampler=sampler, input_nodes=train,
                        batch_size=64, shuffle=True)
    epochs = []
    for _ in range(2):
        torch.manual_seed(4)
        batches = list(loader)
        for batch in batches:
            check_homogeneous(graph, batch, [4, 3])
            assert torch.equal(batch.n_id[:batch.batch_size], train[batch.input_id])
            assert torch.equal(batch.x, graph.feature("features")[batch.n_id])
            assert torch.equal(batch.y, graph.feature("labels")[batch.n_id])
        epochs.append(torch.cat([batch.e_id for batch in batches]))
        assert torch.equal(torch.sort(torch.cat([batch.n_id[:batch.batch_size] for batch in batches]))[0], train)
    assert torch.equal(*epochs)


def test_a_mask_all_neighbours_and_replacement(graph):
    mask = graph.feature("train_mask")[:]
    whole = next(iter(NodeLoader(stores(graph, "features"), NeighborSampler(graph, [-1, -1]), mask, batch_size=20)))
    check_homogeneous(graph, whole, [-1, -1])
    again = next(iter(NodeLoader(stores(graph, "features"), NeighborSampler(graph, [50], replace=True), mask,
                                 batch_size=20)))
    check_edges(graph, None, again.e_id, again.n_id[again.edge_index[0]], again.n_id[again.edge_index[1]])
    assert set(torch.bincount(again.edge_index[1])[:20].tolist()) <= {0, 50}
    assert len(torch.unique(again.e_id)) < len(again.e_id)


def test_counts_that_are_set_in_a_copy(graph):
    """As Lightning does for evaluation. The other copy keeps its counts."""
    sampler = NeighborSampler(graph, [4, 3])
    other = copy.copy(sampler)
    other.num_neighbors = [2]
    seeds = torch.arange(50)
    for one, counts in ((sampler, [4, 3]), (other, [2]), (sampler, [4, 3])):
        batch = next(iter(NodeLoader(stores(graph, "features"), one, seeds, batch_size=50)))
        check_homogeneous(graph, batch, counts)
        assert one.num_neighbors.values == counts
    with pytest.raises(TypeError, match="num_neighbors"):
        other.num_neighbors = "all"


def test_the_same_over_servers(two_parts, two_servers):
    """torch's seed gives the same batches wherever the graph is stored."""
    found = []
    for servers in (None, two_servers.addresses):
        with graphwire.open(two_parts, servers) as opened:
            torch.manual_seed(11)
            loader = NodeLoader(stores(opened, "features"), NeighborSampler(opened, [5, 5]), torch.arange(100),
                                batch_size=50)
            found.append([(batch.n_id, batch.edge_index, batch.features) for batch in loader])
    for one, two in zip(*found):
        assert all(torch.equal(a, b) for a, b in zip(one, two))


def chi_square(counts):
    expected = counts.sum() / len(counts)
    return float(((counts - expected) ** 2 / expected).sum())


def test_draws_are_even(graph):
    """A node's in-edges are drawn equally often: at the seeds, and at nodes from the first hop. Seeds are fixed; the
    bound is eight deviations."""
    torch.manual_seed(0)
    degrees = graph.in_degrees(slice(None))
    hub = int(torch.argmax(degrees))
    source = graph.neighbours([hub]).src
    source = source[source != hub]
    other = int(source[torch.argmax(degrees[source])])
    sampler = NeighborSampler(graph, [3, 2])
    loader = NodeLoader(stores(graph, []), sampler, torch.tensor([hub]), batch_size=1)
    firsts, seconds = [], []
    for _ in range(1500):
        batch = loader([0])
        ends = batch.n_id[batch.edge_index[1]]
        firsts.append(batch.e_id[ends == hub])
        seconds.append(batch.e_id[ends == other])
    for node, drawn, each in ((hub, firsts, 3), (other, seconds, 2)):
        edges = graph.neighbours([node]).edge_ids
        assert {len(some) for some in drawn} <= {0, each}
        counts = torch.bincount(torch.cat(drawn) - edges.min())
        assert len(counts) == len(edges) and counts.sum() > 200
        assert chi_square(counts.double()) < len(edges) + 8 * (2 * len(edges)) ** 0.5


def test_equal_seeds(graph):
    """Each seed has its own row, in order, with the same neighbours."""
    seeds = torch.tensor([5, 9, 5, 7, 9, 5])
    batch = next(iter(NodeLoader(stores(graph, "features"), NeighborSampler(graph, [4, 2]), seeds, batch_size=6)))
    assert torch.equal(batch.n_id[:6], seeds) and len(torch.unique(batch.n_id)) == batch.num_nodes - 3
    src, dst = batch.edge_index
    check_edges(graph, None, batch.e_id, batch.n_id[src], batch.n_id[dst])
    for one, two in ((0, 2), (0, 5), (1, 4)):
        assert torch.equal(batch.e_id[dst == one], batch.e_id[dst == two])
        assert len(batch.e_id[dst == one]) == min(4, int(graph.in_degrees([int(seeds[one])])))
    assert batch.num_sampled_nodes[0] == 6 and sum(batch.num_sampled_edges) == len(batch.e_id)


def check_papers(graph, batch, fanouts):
    for etype in batch.edge_types:
        store = batch[etype]
        check_edges(graph, etype, store.e_id, batch[etype[0]].n_id[store.edge_index[0]],
                    batch[etype[2]].n_id[store.edge_index[1]])
        check_fanouts(graph, etype, store, batch[etype[2]], fanouts[etype] if isinstance(fanouts, dict) else fanouts)
    assert torch.equal(batch["paper"].x, graph.feature("feat", "paper")[batch["paper"].n_id])
    assert torch.equal(batch["author"].x, graph.feature("age", "author")[batch["author"].n_id])


@pytest.mark.parametrize("fanouts", [[3, 2, 2], {CITES: [4, 0], WRITES: [2, 3], BACK: [0, 2]}])
def test_several_types(papers, fanouts):
    if isinstance(fanouts, dict):
        fanouts = {tuple(name.split(":")): fanouts.get(tuple(name.split(":")), [1, 1]) for name in papers.etypes}
    data = stores(papers, NAMES)
    for seeds in ("paper", ("author", torch.arange(10, 60))):
        for batch in NodeLoader(data, NeighborSampler(data[1], fanouts), seeds, batch_size=40):
            check_papers(papers, batch, fanouts)
            assert len(batch.edge_types) == len(papers.etypes)


def test_links(graph):
    """Negatives are PyG's own; the ends of links are rows of the batch."""
    ids = torch.arange(0, graph.num_edges(), 7)
    ends = torch.stack(graph.find_edges(ids))
    data = stores(graph, "features")
    for negatives in (None, "binary", ("triplet", 3)):
        loader = LinkLoader(data, NeighborSampler(graph, [3, 3]), (None, ends), batch_size=200, shuffle=True,
                            neg_sampling=negatives)
        for batch in loader:
            expected = ends[:, batch.input_id]
            if negatives == ("triplet", 3):
                found = torch.stack([batch.src_index, batch.dst_pos_index])
                assert batch.dst_neg_index.shape == (len(batch.input_id), 3)
            else:
                found = batch.edge_label_index[:, :len(batch.input_id)]
                assert negatives is None or len(batch.edge_label) == 2 * len(batch.input_id)
            assert torch.equal(batch.n_id[found], expected)
            check_fanouts(graph, None, batch, batch, [3, 3])


def test_links_of_several_types(papers):
    """All links of a type, without a list: the graph store reads the type's edges."""
    data = stores(papers, NAMES)
    loader = LinkLoader(data, NeighborSampler(data[1], [2, 2]), WRITES, neg_sampling="binary", batch_size=300)
    every = torch.stack(papers.find_edges(slice(None), "writes"))
    links = 0
    for batch in loader:
        rows = batch[WRITES].edge_label_index[:, :len(batch[WRITES].input_id)]
        found = torch.stack([batch["author"].n_id[rows[0]], batch["paper"].n_id[rows[1]]])
        assert torch.equal(found, every[:, batch[WRITES].input_id])
        check_papers(papers, batch, [2, 2])
        links += len(rows[0])
    assert links == every.shape[1]


@pytest.mark.parametrize("filter_per_worker", [True, False])
def test_workers(graph, filter_per_worker):
    """A worker is a fork that opens its own connections; the parent's stay in use. A spawned worker gets the loader by
    pickle, with the same results."""
    data, sampler = pickle.loads(pickle.dumps((stores(graph, {"x": "features"}), NeighborSampler(graph, [4, 3]))))
    loader = NodeLoader(data, sampler, torch.arange(300), batch_size=100, num_workers=2,
                        filter_per_worker=filter_per_worker)
    assert graph.gather("labels", [1]).shape == (1,)
    found = list(loader)
    for batch in found:
        check_homogeneous(graph, batch, [4, 3])
        assert torch.equal(batch.x, graph.feature("features")[batch.n_id])
    assert torch.equal(torch.cat([batch.n_id[:100] for batch in found]), torch.arange(300))


def test_the_stores_of_pygs_guide(papers):
    """The code of PyG's page on remote backends, with data of this graph."""
    feature_store, graph_store = stores(papers, NAMES)
    paper_features, author_features = papers.feature("feat", "paper")[:], papers.feature("age", "author")[:]
    assert torch.equal(feature_store["paper", "x"], paper_features)
    assert torch.equal(feature_store["paper"].x, paper_features)
    assert torch.equal(feature_store["author", "x", 0:20], author_features[0:20])
    assert torch.equal(feature_store["author", "x", 3], author_features[3])
    hidden = torch.randn(300, 5)
    feature_store["paper", "h", None] = hidden
    feature_store["paper", "h", torch.tensor([7, 2])] = torch.ones(2, 5)
    hidden[[7, 2]] = 1
    assert torch.equal(feature_store["paper", "h"], hidden) and feature_store.get_tensor_size("paper", "h") == (300, 5)
    assert {(attr.group_name, attr.attr_name) for attr in feature_store.get_all_tensor_attrs()} == {
        ("paper", "x"), ("paper", "y"), ("author", "x"), ("paper", "h")}
    again = stores(papers, NAMES)[0]  # another trainer's tensor
    assert torch.equal(again["paper", "h", 7], hidden[7])
    del feature_store["paper", "h"]
    assert again.get_tensor("paper", "h") is None and not feature_store.remove_tensor("paper", "h", None)
    assert not feature_store.put_tensor(hidden, "paper", "g", slice(0, 2))  # of rows that do not exist
    with pytest.raises(ValueError, match="does not change"):
        feature_store["paper", "x", None] = paper_features
    row, col = graph_store[WRITES, "coo"]
    src, dst = papers.find_edges(slice(None), "writes")
    assert torch.equal(row, src) and torch.equal(col, dst)
    rows, pointers, _ = graph_store.csc([WRITES, CITES])
    assert torch.equal(rows[WRITES], src) and torch.equal(torch.diff(pointers[CITES]), papers.in_degrees(
        slice(None), "cites"))
    assert torch.equal(graph_store[WRITES, "csc"][1], pointers[WRITES])
    with pytest.raises(KeyError):
        graph_store[("paper", "reads", "paper"), "coo"]
    with pytest.raises(NotImplementedError, match="from_pyg"):
        graph_store[WRITES, "coo"] = row, col


def test_an_integer_index_is_torchs(papers):
    """From -n to n - 1: over features, which are in the order of the user's ids, and over a tensor that was put."""
    store = stores(papers, NAMES)[0]
    store["paper", "h", None] = torch.randn(300, 5)
    for name, graphs in (("x", papers.feature("feat", "paper")), ("h", None)):
        rows = store["paper", name]
        for index in (-300, -299, -1, 0, 1, 298, 299):
            assert torch.equal(store["paper", name, index], rows[index]), index
            assert graphs is None or torch.equal(graphs[index], graphs[:][index]), index
        for index in (-301, 300):
            with pytest.raises(IndexError):
                store["paper", name, index]
    for index in (-300, -1, 0, 299):
        store["paper", "h", index] = torch.full((5,), float(index))
        assert store["paper", "h"][index].eq(index).all()
    del store["paper", "h"]


def test_weights(graph, papers):
    """weight_attr: no edge of weight 0; all others, if there are not more than the fanout. Other types are uniform."""
    for sampler in (NeighborSampler(graph, [-1, 3], weight_attr="weight"),
                    NeighborSampler(graph, [-1, 3], weight_attr={"_E": "weight"})):
        loader = NodeLoader(stores(graph, "features"), pickle.loads(pickle.dumps(sampler)), torch.arange(600),
                            batch_size=600)
        batch = next(iter(loader))
        weights, ids = graph.feature("weight", etype="_E")[:], batch.e_id
        assert (weights == 0).sum() == 1 and len(ids) == len(weights) - 1 and torch.all(weights[ids] > 0)
    loader = NodeLoader(stores(papers, NAMES), NeighborSampler(papers, [4, 3], weight_attr="strength"),
                        ("paper", torch.arange(60)), batch_size=30)
    for batch in loader:
        check_papers(papers, batch, [4, 3])
    for weight, error, text in (("x", graphwire.NotFoundError, "no edge type has a feature 'x'; .*strength"),
                                ({WRITES: "strength"}, graphwire.NotFoundError, "author:writes:paper has no feature"),
                                (3, TypeError, "the name of an edge feature")):
        with pytest.raises(error, match=text):
            NeighborSampler(papers, [2], weight_attr=weight)


def test_to_pyg(papers):
    """graphwire's own loader: batches have rows of edges, and labels are those of the seeds."""
    loader = graphwire.NodeLoader(papers, None, [3, 2], ntype="paper", features={"paper": "feat", "author": "age"},
                                  labels="label", edge_features={"cites": "strength"}, batch_size=64, shuffle=True)
    assert len(loader) == 5
    for batch in loader:
        data = batch.to_pyg({"feat": "x", "age": "x", "label": "y"})
        check_papers(papers, data, [3, 2])
        size = data["paper"].batch_size
        assert size == len(batch.seeds) and torch.equal(data["paper"].n_id[:size], batch.seeds)
        assert torch.equal(data["paper"].y, papers.feature("label", "paper")[batch.seeds])
        assert torch.equal(data[CITES].strength, papers.feature("strength", etype="cites")[data[CITES].e_id])


def test_to_pyg_of_links_and_equal_seeds(graph):
    links = graphwire.EdgeLoader(graph, None, [3, 3], features="features", negatives=2, batch_size=100)
    with links:
        batch = next(iter(links))
    data = batch.to_pyg({"features": "x"})
    assert torch.equal(data.n_id[data.edge_label_index], torch.stack(graph.find_edges(batch.seeds)))
    assert torch.equal(data.n_id[data.negative_index], batch.nodes["_N"][batch.negative_rows])
    assert torch.equal(data.x, graph.feature("features")[data.n_id])
    check_edges(graph, None, data.e_id, *data.n_id[data.edge_index])
    data = graphwire.sample(graph, [4, 4, 8], [-1], features="features", labels="labels").to_pyg()
    assert data.n_id[:3].tolist() == [4, 4, 8] and torch.equal(data.labels, graph.feature("labels")[[4, 4, 8]])
    assert torch.equal(data.e_id[data.edge_index[1] == 0], data.e_id[data.edge_index[1] == 1])


def test_to_pyg_of_links_of_several_types(papers):
    with graphwire.EdgeLoader(papers, {"cites": torch.arange(200), "writes": None}, [2, 2], negatives=1,
                              batch_size=1100, features={"paper": "feat", "author": "age"}) as links:
        batch = next(iter(links))
    data = batch.to_pyg({"feat": "x", "age": "x"})
    check_papers(papers, data, [2, 2])
    for etype in (CITES, WRITES):
        (src, dst), ids = data[etype].edge_label_index, data[etype].input_id
        check_edges(papers, etype, ids, data[etype[0]].n_id[src], data[etype[2]].n_id[dst])
        assert len(ids) and data[etype].negative_index.shape == (len(ids), 1)


def test_from_pyg(tmp_path):
    random = np.random.default_rng(2)
    edges = torch.from_numpy(random.integers(0, 50, (2, 300)))
    data = Data(edge_index=edges, x=torch.randn(50, 3), weight=torch.rand(300), num_nodes=50)
    graph = from_pyg(data)
    src, dst = graph.find_edges(slice(None))
    found = sorted(zip(src.tolist(), dst.tolist(), graph.feature("weight", etype="_E")[:].tolist()))
    assert found == sorted(zip(*edges.tolist(), data.weight.tolist()))
    assert torch.equal(graph.feature("x")[:], data.x)
    graph.close()
    both = HeteroData()
    both["paper"].x, both["author"].num_nodes = torch.randn(40, 2), 9
    both["author", "writes", "paper"].edge_index = torch.stack([edges[0] % 9, edges[1] % 40])
    with from_pyg(both, tmp_path / "parts", num_parts=2, method="random", name="both") as graph:
        orig = graph.feature("orig_id", "paper")[:]
        assert torch.equal(graph.feature("x", "paper")[:], both["paper"].x[orig]) and graph.num_parts == 2
        assert (tmp_path / "parts" / "both.json").exists() and graph.num_nodes("author") == 9


def test_what_is_not_there(graph, papers):
    for make, error, says in (
        (lambda: NeighborSampler(graph, [3], sample_direction="backward"), NotImplementedError, "reverse the edges"),
        (lambda: NeighborSampler(papers, {CITES: [3]}), ValueError, "Missing number of neighbors"),
        (lambda: stores(papers, "feat"), ValueError, "node type"),
        (lambda: stores(papers, NAMES, hetero=False), ValueError, "not homogeneous"),
        (lambda: stores(graph, "no_such"), graphwire.NotFoundError, "features"),
        (lambda: NodeLoader(stores(papers, NAMES), NeighborSampler(papers, [3]), torch.arange(3))([0]), ValueError,
         "author, paper|paper, author"),
        (lambda: NodeLoader(stores(graph, "features"), NeighborSampler(graph, [3]), torch.tensor([700]))([0]),
         graphwire.OutOfRangeError, "700"),
        (lambda: NodeLoader(stores(graph, "features"), NeighborSampler(graph, [3]), torch.arange(3),
                            input_time=torch.arange(3))([0]), ValueError, "time_attr"),
    ):
        with pytest.raises(error, match=says):
            make()


def test_both_directions_and_edge_rows(graph):
    data = stores(graph, {"x": "features"})
    batch = next(iter(NodeLoader(data, NeighborSampler(graph, [3, 3], subgraph_type="bidirectional"), torch.arange(40),
                                 batch_size=40)))
    pairs = set(zip(*batch.edge_index.tolist()))
    assert pairs == {(dst, src) for src, dst in pairs}
    loader = NodeLoader(data, NeighborSampler(graph, [3, 3]), torch.arange(40), batch_size=40,
                        transform=data[0].edge_rows({"edge_attr": "weight"}))
    batch = next(iter(loader))
    assert torch.equal(batch.edge_attr, graph.feature("weight", etype="_E")[batch.e_id])


@functools.cache
def cora():
    with np.load(given("data/cora/cora.npz")) as found:
        words = torch.from_numpy(found["x"].astype(np.float32))
        torch.manual_seed(0)
        x, scale, _ = torch.svd_lowrank(words / words.sum(1, keepdim=True).clamp(min=1), 64)  # for speed
        return Data(x=x * scale / scale.mean() * 30, y=torch.from_numpy(found["y"].astype(np.int64)),
                    edge_index=torch.from_numpy(np.stack([found["src"], found["dst"]]).astype(np.int64)),
                    train=torch.from_numpy(found["train_idx"].astype(np.int64)),
                    test=torch.from_numpy(found["test_idx"].astype(np.int64)))


def trained(batches, epochs):
    """Accuracy of PyG's GraphSAGE over the whole graph, after training on batches."""
    data = cora()
    torch.manual_seed(1)
    model = GraphSAGE(data.x.shape[1], 32, 2, 7, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
    for _ in range(epochs):
        model.train()
        for batch, seeds in batches():
            loss = torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index)[seeds], batch.y[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        found = model(data.x, data.edge_index).argmax(1)[data.test] == data.y[data.test]
    return float(found.float().mean())


def test_accuracy():
    """The accuracy equals that of the same model on the whole graph, with as many updates."""
    data = cora()
    whole = trained(lambda: [(data, data.train)] * 2, 40)
    with from_pyg(Data(x=data.x, y=data.y, edge_index=data.edge_index)) as graph:
        loader = NodeLoader(stores(graph, ["x", "y"]), NeighborSampler(graph, [10, 10]), data.train, batch_size=70,
                            shuffle=True)
        sampled = trained(lambda: ((batch, slice(batch.batch_size)) for batch in loader), 40)
    assert whole > 0.7 and sampled > whole - 0.04, (whole, sampled)


def test_loops_over_one_loader_are_independent(graph):
    """Also with persistent workers, which loops of PyG's own loader take from each other."""
    nodes, links = torch.arange(200), torch.stack(graph.find_edges(torch.arange(200)))
    data, sampler = stores(graph, "features"), NeighborSampler(graph, [2])
    for named in ({}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}):
        loaders = [graphwire.pyg.NodeLoader(data, sampler, nodes, batch_size=50, shuffle=True, **named),
                   graphwire.pyg.LinkLoader(data, sampler, (None, links), batch_size=50, shuffle=True, **named)]
        if "persistent_workers" not in named:
            loaders.append(NodeLoader(data, sampler, nodes, batch_size=50, shuffle=True, **named))
        for loader in loaders:
            halves = list(zip(*[(one.input_id, two.input_id) for one, two in zip(loader, loader)]))
            assert [sorted(torch.cat(half).tolist()) for half in halves] == [nodes.tolist()] * 2
            assert len(list(loader)) == len(loader) == 4


@pytest.mark.parametrize("named", [{"persistent_workers": True}, {}])
def test_garbage_collection_ends_workers(graph, named, monkeypatch, request):
    """It sends them their end, and does not wait in vain and then kill them."""
    gc.disable()  # collect() does nothing while another thread collects, such as one of an earlier test's queues
    request.addfinalizer(gc.enable)
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 60)  # seconds that it waits for each
    monkeypatch.setattr(BaseProcess, "terminate", lambda worker: (killed.append(worker), worker.kill()))
    data, sampler, killed = stores(graph, "features"), NeighborSampler(graph, [2]), []
    before = multiprocessing.active_children()
    loader = graphwire.pyg.NodeLoader(data, sampler, torch.arange(200), batch_size=50, num_workers=2, **named)
    loop = iter(loader)
    next(loop)
    workers = [worker for worker in multiprocessing.active_children() if worker not in before]
    loop.me = loop  # as the traceback of an error that the loop has raised
    gone = weakref.ref(loop)
    del loader, loop
    while gone() is not None:
        gc.collect()
    assert [worker.exitcode for worker in workers] == [0, 0] and not killed


def rank_of_pyg(graph, rank, join):
    """The warnings of graphwire.pyg's loaders about unequal numbers of batches and about none."""
    join()
    data, sampler, texts = stores(graph, "features"), NeighborSampler(graph, [2]), []
    for count in (100, 101, 20):
        own = torch.arange(count).tensor_split(2)[rank] if count > 20 else torch.arange(20 - 20 * rank)
        for _ in range(2):
            loader = graphwire.pyg.NodeLoader(data, sampler, own, batch_size=10, num_workers=rank)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                if rank:
                    dist.barrier()
                batches = iter(loader)
                seen = [next(batches, None)]
                if rank == 0:
                    dist.barrier()
                dist.barrier()
                seen = [batch.input_id for batch in [*seen, *batches] if batch is not None]
            assert sum(map(len, seen)) == len(own)  # the ranks get undivided seeds
            texts.append([str(one.message) for one in found if "graphwire" in str(one.message)])
    return texts


def test_ranks_hear_of_unequal_batches(two_parts, tmp_path):
    for texts in in_ranks(rank_of_pyg, two_parts, tmp_path / "meet"):
        assert [len(found) for found in texts] == [0, 0, 1, 0, 1, 0]
        assert "6 steps on rank 0, 5 steps on rank 1" in texts[2][0] and "model.join()" in texts[2][0]
        assert "2 steps on rank 0, 0 steps on rank 1" in texts[4][0]
