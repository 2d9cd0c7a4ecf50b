"""PyTorch Geometric's layer-wise inference over graphs in one part and in two, in this process and over servers; and
`loader.data` of a graph, beside the Data that the graph was made of."""

from __future__ import annotations

import pickle

import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers
from graphwire._base import arrays as _arrays
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, from_pyg, served, stores
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
NODES, EDGES, WIDTH = 90, 500, 8


def some_data():
    torch.manual_seed(5)
    return Data(edge_index=torch.randint(0, NODES, (2, EDGES)), x=torch.randn(NODES, WIDTH),
                edge_attr=torch.rand(EDGES, 2), y=torch.randint(0, 3, (NODES,)), train_mask=torch.rand(NODES) < 0.5,
                half=torch.randn(NODES, 3).half())


DATA = some_data()


@pytest.fixture(scope="module", params=["one part", "two parts", "two servers"])
def graph(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inference")
    made = from_pyg(DATA, folder / "parts", num_parts=1 if request.param == "one part" else 2)
    if request.param != "two servers":
        with made:
            yield made
        return
    made.close()
    servers = Servers(folder / "parts", 2, folder)
    with graphwire.open(None, servers.addresses) as opened:
        yield opened
    servers.close()


def models():
    torch.manual_seed(2)
    return [kind(WIDTH, 16, layers, 3).eval() for kind in (GraphSAGE, GAT, GCN, GIN) for layers in (1, 2, 3)]


@pytest.fixture
def fetched(monkeypatch):
    """The numbers of rows of x in each read, in the order of the reads."""
    counts, original = [], _arrays.gather_all

    def counted(client, asked, *more):
        rows = original(client, asked, *more)
        counts.extend(len(some) for some in rows if some.ndim == 2 and some.shape[1] == WIDTH)
        return rows

    monkeypatch.setattr(_arrays, "gather_all", counted)
    return counts


@pytest.mark.parametrize("cache", [False, True])
def test_inference_is_that_of_data_in_memory(graph, cache):
    for model in models():
        expected = model.inference(NeighborLoader(DATA, [-1], batch_size=16), cache=cache)
        if not isinstance(model, GCN):  # whose norm needs the degrees of neighbours, which one hop does not have
            assert torch.allclose(expected, model(DATA.x, DATA.edge_index), atol=1e-5)
        for source in (graph, stores(graph, "x"), stores(graph, {"x": "x", "label": "y"})):
            found = model.inference(NeighborLoader(source, [-1], batch_size=16), cache=cache)
            assert torch.allclose(found, expected, atol=1e-5), model


def test_ids_of_the_graph(graph):
    """With ids="graph" the rows of the result are in the order of the graph's ids."""
    model = models()[1]
    expected = model(DATA.x, DATA.edge_index)
    found = model.inference(NeighborLoader(graph, [-1], ids="graph", batch_size=16))
    order = torch.as_tensor(graph.original_ids(range(NODES)))
    assert torch.allclose(found, expected[order], atol=1e-5)


def test_the_first_layer_reads_batches_alone(graph, fetched):
    loader = NeighborLoader(graph, [-1], batch_size=7)
    sizes = [len(batch.n_id) for batch in loader]
    del fetched[:]
    models()[1].inference(loader)
    assert fetched == sizes and max(fetched) < NODES  # once for each batch of the first layer, and its rows alone
    del fetched[:]
    assert loader.data.x.to("cpu").float().shape == (NODES, WIDTH) and "x" in repr(loader.data) and not fetched


def test_rows_are_those_of_the_data(graph):
    for loader in (NeighborLoader(graph, [2]), LinkNeighborLoader(graph, [2]), NeighborLoader(
            stores(graph, ["x", "y", "train_mask", "half"]), [2])):
        for name in ("x", "y", "train_mask", "half", *(["edge_attr"] if "edge_attr" in loader.data else [])):
            rows, real = getattr(loader.data, name), DATA[name]
            assert rows.shape == real.shape and rows.size() == real.size()
            assert (rows.dtype, rows.device, len(rows), rows.dim(), rows.ndim, rows.size(0), rows.numel()) == (
                real.dtype, real.device, len(real), real.dim(), real.ndim, real.size(0), real.numel())
            ids = torch.randint(0, len(real), (30,))
            for index in (ids, ids.int(), ids.numpy(), ids.tolist(), 3, -1, slice(2, 9, 3), slice(None),
                          torch.arange(len(real)) % 3 == 1, (ids, ...), (slice(None), None), torch.empty(0).long()):
                expected = real[index if not isinstance(index, tuple) or index[0] is not ids else ids]
                assert torch.equal(rows[index], expected), index
            assert torch.equal(rows.index_select(0, ids), real[ids])
            assert np.array_equal(np.asarray(rows), real.numpy()) and rows.tolist() == real.tolist()
            for same in (rows.to("cpu"), rows.cpu(), rows.detach(), rows.to(torch.device("cpu"), non_blocking=True)):
                assert torch.equal(same[ids], real[ids])
            for other in (rows.double(), rows.to(torch.float64), rows.to("cpu", torch.float64), rows.to(
                    torch.empty(0, dtype=torch.float64))):
                assert other.dtype == torch.float64 and torch.equal(other[ids], real[ids].double())
            assert rows.to("meta").device.type == "meta" and rows.to("meta")[ids].device.type == "meta"
            for wrong in ([len(real)], torch.tensor([-1]), [1.5]):
                with pytest.raises((LookupError, TypeError)):
                    rows[wrong]
        assert torch.equal(loader.data.x[loader.data.train_mask], DATA.x[DATA.train_mask])
        assert torch.equal(loader.data.x[DATA.train_mask, 1], DATA.x[DATA.train_mask, 1])


def test_names_are_those_of_the_data(graph):
    loader = NeighborLoader(graph, [2], input_nodes=DATA.train_mask)
    data = loader.data
    assert (data.num_nodes, data.num_edges, data.num_features, data.num_node_features, data.num_edge_features) == (
        NODES, EDGES, WIDTH, WIDTH, 2)
    assert data.metadata() == (["_N"], [("_N", "_E", "_N")]) and not data.is_cuda
    assert data.graph is graph and data.name == graph.name and "x" in data and "z" not in data
    assert set(data.keys()) == {"x", "y", "train_mask", "half", "edge_attr"}
    seeds = NeighborLoader(graph, [2], data.train_mask).input_data.node
    assert sorted(seeds.tolist()) == DATA.train_mask.nonzero().view(-1).tolist()
    again = pickle.loads(pickle.dumps(loader)).data
    assert again.num_nodes == NODES and torch.equal(again.x[[3, 1]], DATA.x[[3, 1]])
    for call, error, text in (
            (lambda: data.edge_index, AttributeError, "batch.edge_index"),
            (lambda: data["edge_index"], KeyError, "batch.edge_index"),
            (lambda: data.adj_t, AttributeError, "batch.edge_index"),
            (lambda: data.z, AttributeError, "no 'z'; it has half"),
            (lambda: data["z"], KeyError, "no 'z'; it has half"),
            (lambda: setattr(data, "x", 1), AttributeError, "does not change"),
            (lambda: setattr(data, "x", torch.zeros(NODES - 1)), AttributeError, "does not change"),
            (lambda: setattr(data, "num_nodes", NODES + 1), AttributeError, "does not change"),
            (lambda: delattr(data, "z"), AttributeError, "does not change"),
            (lambda: delattr(served(graph), "x"), AttributeError, "does not change"),
            (lambda: data.x.relu(), AttributeError, r"x\[ids\] fetches rows"),
            (lambda: data.y == 1, TypeError, r"y\[ids\]"),
            (lambda: iter(data.x), TypeError, "iterable"),
            (lambda: torch.relu(data.x), TypeError, "ServedRows"),
            (lambda: data.x.index_select(1, torch.tensor([0])), IndexError, "dimension 0")):
        with pytest.raises(error, match=text):
            call()
    assert not hasattr(data, "edge_index") and not hasattr(data, "z")


def test_the_data_of_a_loader_loses_and_gets_attributes(graph):
    """As in PyG's script for Reddit: batches have what is left, and rows of tensors of the process. Another loader over
    the graph has everything."""
    loader, other = NeighborLoader(graph, [2], batch_size=50), NeighborLoader(graph, [2], batch_size=50)
    next(iter(loader))
    del loader.data.x, loader.data.edge_attr
    loader.data.num_nodes, loader.data.own, loader.data.y = NODES, torch.arange(NODES) * 2, torch.rand(NODES, 3)
    assert "x" not in loader.data and torch.equal(loader.data.own, torch.arange(NODES) * 2)
    again = pickle.loads(pickle.dumps(loader))
    del loader.data.own
    for batch in again:
        assert not {"x", "edge_attr"} & set(batch.keys()) and torch.equal(batch.own, 2 * batch.n_id)
        assert torch.equal(batch.y, again.data.y[batch.n_id]) and torch.equal(batch.half, DATA.half[batch.n_id])
    assert {"own", "x"}.isdisjoint(next(iter(loader)).keys())
    for batch in other:
        assert torch.equal(batch.x, DATA.x[batch.n_id]) and torch.equal(batch.y, DATA.y[batch.n_id])


def test_data_of_types():
    torch.manual_seed(3)
    typed = HeteroData()
    typed["a"].x, typed["b"].x = torch.randn(20, 4), torch.randn(30, 5)
    typed["a"].y, typed["b"].name_of_b = torch.arange(20), torch.arange(30)
    typed["a", "to", "b"].edge_index = torch.stack([torch.randint(0, 20, (60,)), torch.randint(0, 30, (60,))])
    typed["b", "by", "a"].edge_index = typed["a", "to", "b"].edge_index.flip(0)
    typed["a", "to", "b"].edge_attr = torch.rand(60, 2)
    with from_pyg(typed, num_parts=2) as graph:
        data = NeighborLoader(graph, [2], "a").data
        assert data.metadata() == typed.metadata() and data.num_nodes == 50 and data.num_edges == 120
        assert data.num_node_features == typed.num_node_features and data["a"].num_nodes == 20
        assert data.num_edge_features == {("a", "to", "b"): 2, ("b", "by", "a"): 0}
        for ntype in ("a", "b"):
            assert torch.equal(data[ntype].x[:], typed[ntype].x) and torch.equal(data.x_dict[ntype][:], typed[ntype].x)
            assert data[ntype].num_features == typed[ntype].num_features
        for key in (("a", "to", "b"), ("a", "b"), "a:to:b"):
            assert torch.equal(data[key].edge_attr[[5, 2]], typed["a", "to", "b"].edge_attr[[5, 2]])
        loader = NeighborLoader(graph, [2], "a")
        del loader.data["a"].x, loader.data["a", "b"].edge_attr
        loader.data["b"].own = torch.arange(30) * 2
        for batch in loader:
            assert set(batch["a"].keys()) >= {"y"} and "x" not in batch["a"] and "x" in batch["b"]
            assert torch.equal(batch["b"].own, 2 * batch["b"].n_id) and "edge_attr" not in batch["a", "to", "b"]
        for call, error, text in (
                (lambda: delattr(data, "x"), AttributeError, "does not change"),
                (lambda: setattr(data, "own", torch.arange(50)), AttributeError, "does not change"),
                (lambda: data.x, AttributeError, r"x of which type\? data\['a'\].x"),
                (lambda: data["a"].z, AttributeError, "a has no 'z'; it has "),
                (lambda: data["c"], KeyError, "no 'c'"),
                (lambda: data["a", "to", "b"].edge_index, AttributeError, "batch.edge_index"),
                (lambda: data.edge_index_dict, AttributeError, "batch.edge_index"),
                (lambda: data["a", "to", "b"].num_nodes, AttributeError, "no 'num_nodes'; it has edge_attr")):
            with pytest.raises(error, match=text):
                call()


def test_ids_that_are_no_rows(tmp_path):
    """The result of a layer has row i for node i, so ids that are other numbers are refused before the first."""
    numbers = np.arange(20) * 700 + 3
    ring = graphwire.partition_graph((numbers, np.roll(numbers, 1)), "sparse", 2, tmp_path / "parts", method="random")
    with graphwire.open(ring) as graph:
        source = stores(graph, [])
        source[0][None, "x", None] = torch.randn(20, WIDTH)
        every = torch.as_tensor(graph.original_ids(range(20)))
        with pytest.raises(ValueError, match=r'x: nodes of type .* have original ids .* ids="graph"'):
            models()[1].inference(NeighborLoader(source, [-1], every, batch_size=8))
        found = models()[1].inference(NeighborLoader(source, [-1], ids="graph", batch_size=8))
        assert found.shape == (20, 3)
