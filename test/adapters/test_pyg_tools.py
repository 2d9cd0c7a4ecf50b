"""PyTorch Geometric's own code over graphwire.pyg's loaders: ZipLoader, inference of models, counts that are set later.

PyG's code uses collate_fn, filter_fn, node_sampler and link_sampler of a loader, and its text.
"""

from __future__ import annotations

import gc
import inspect
import pickle
import weakref

import graphwire
import pytest
import torch
import torch_geometric.loader as pyg
from graphwire._base.arrays import Lease
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, ahead, from_pyg, stores
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GraphSAGE

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
NODES, EDGES = 80, 500


def some_data():
    torch.manual_seed(5)
    return Data(edge_index=torch.randint(0, NODES, (2, EDGES)), x=torch.randn(NODES, 8), edge_attr=torch.rand(EDGES),
                y=torch.randint(0, 3, (NODES,)), train_mask=torch.rand(NODES) < 0.5)


DATA = some_data()


def check(batch):
    assert torch.equal(batch.x, DATA.x[batch.n_id]) and torch.equal(batch.edge_attr, DATA.edge_attr[batch.e_id])
    assert torch.equal(DATA.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("filter_per_worker", [False, True])
def test_zip_loader(source, filter_per_worker, num_workers):
    nodes = torch.randperm(NODES)
    loaders = [NeighborLoader(source, [4, 3], input_nodes=nodes),
               LinkNeighborLoader(source, [4], edge_label_index=DATA.edge_index[:, :90], neg_sampling="binary")]
    count = 0
    for of_nodes, of_links in pyg.ZipLoader(loaders, filter_per_worker, batch_size=25, num_workers=num_workers):
        check(of_nodes)
        check(of_links)
        places = torch.arange(count, min(count + 25, NODES))
        assert torch.equal(of_nodes.n_id[:of_nodes.batch_size], nodes[places])
        links = of_links.n_id[of_links.edge_label_index[:, of_links.edge_label == 1]]
        assert torch.equal(links, DATA.edge_index[:, places])
        count += of_nodes.batch_size
    assert count == NODES


def test_an_output_and_its_batch(source):
    """filter_fn(collate_fn(places)) is the batch of these places, also after the output went through a pickle; with
    filter_per_worker, collate_fn returns the batch itself."""
    loader = NeighborLoader(source, [4, 3])
    torch.manual_seed(1)
    whole = loader([3, 60, 7])
    for per_worker in (False, True):
        loader.filter_per_worker = per_worker
        torch.manual_seed(1)
        out = loader.collate_fn(torch.tensor([3, 60, 7]))
        for one in (out,) if per_worker else (out, pickle.loads(pickle.dumps(out))):
            found = one if per_worker else loader.filter_fn(one)
            check(found)
            assert found.keys() == whole.keys() and found.num_sampled_nodes == whole.num_sampled_nodes
            for name in ("n_id", "e_id", "x", "edge_attr", "edge_index", "input_id"):
                assert torch.equal(found[name], whole[name]), name


def test_inference():
    """Layer by layer, over data in memory: PyG reads `loader.data`."""
    model = GraphSAGE(DATA.num_features, hidden_channels=8, num_layers=2, out_channels=3).eval()
    every = NeighborLoader(DATA, [-1], batch_size=30)
    expected = model(DATA.x, DATA.edge_index)
    for cache in (False, True):
        assert torch.allclose(model.inference(every, cache=cache), expected, atol=1e-5)


def test_counts_of_the_sampler_can_be_set(source):
    """As PyTorch Lightning sets them: the next batches of a loop have the new counts, and as many hops."""
    loader = NeighborLoader(source, [2], batch_size=10)
    links = LinkNeighborLoader(source, [2], edge_label_index=DATA.edge_index, batch_size=10)
    for sampler, one in ((loader.node_sampler, loader), (links.link_sampler, links)):
        assert sampler.num_neighbors.values == [2] and len(next(iter(one)).num_sampled_edges) == 1
        sampler.num_neighbors = [3, -1]
        for batch in one:
            check(batch)
            assert len(batch.num_sampled_edges) == 2
        degree = torch.bincount(DATA.edge_index[1], minlength=NODES)
        first = one(list(range(10)))
        ends = first.n_id[:first.num_sampled_nodes[0]]
        assert first.num_sampled_edges[0] == int(degree[ends].clamp(max=3).sum())


def test_held_out_edges_of_the_sampler_are_not_drawn(tmp_path):
    with from_pyg(DATA, tmp_path / "parts", num_parts=3) as graph:
        ends = DATA.edge_index[:, torch.randperm(EDGES)[:200]]
        held = graphwire.HeldOut(graph, ends=ends, by="orig")
        gone = {tuple(pair) for pair in ends.t().tolist()}
        sampler = NeighborSampler(graph, [-1, 5], held_out=held)
        for loader in (NeighborLoader(graph, [1], neighbor_sampler=sampler, batch_size=16),
                       LinkNeighborLoader(graph, [1], edge_label_index=ends, neighbor_sampler=sampler, batch_size=16)):
            drawn = set()
            for batch in loader:
                check(batch)
                drawn |= {tuple(pair) for pair in batch.n_id[batch.edge_index].t().tolist()}
            assert drawn and not drawn & gone, type(loader)


@pytest.mark.parametrize("ids", ["orig", "graph"])
@pytest.mark.parametrize("collect, keeps", [
    (lambda batch: [batch.n_id[:2], batch.y[:2], batch.train_mask, batch.input_id], False),
    (lambda batch: batch.x[:2], True),
])
def test_what_loops_collect_keeps_no_batch(source, ids, collect, keeps, monkeypatch):
    """Labels, ids and masks that a loop collects do not keep the memory of batches; rows of features do."""
    if source is DATA and ids == "graph":
        return  # data in memory has ids of its own
    leases = []

    class Counted(Lease):
        def __init__(self, client):
            super().__init__(client)
            leases.append(weakref.ref(self))

    monkeypatch.setattr(ahead, "Lease", Counted)
    made = (NeighborLoader(source, [4, 3], batch_size=20, ids=ids),
            LinkNeighborLoader(source, [4], edge_label_index=DATA.edge_index[:, :90], batch_size=20, ids=ids))
    kept = [collect(batch) for loader in made for batch in loader]
    gc.collect()
    assert len(kept) == len(leases) == 4 + 5
    assert sum(lease() is not None for lease in leases) == (len(leases) if keeps and source is not DATA else 0)


@pytest.mark.parametrize("ours", [NeighborLoader, LinkNeighborLoader])
def test_the_text_is_that_of_pyg(source, ours):
    assert str(ours(source, [2])) == repr(ours(source, [2])) == f"{ours.__name__}()"


def test_data_without_edges():
    """Data without edge_index is a graph without edges, as in PyG."""
    data = Data(x=torch.randn(30, 2))
    for batch in NeighborLoader(data, [3, -1], batch_size=8):
        assert torch.equal(batch.x, data.x[batch.n_id]) and batch.num_nodes == batch.batch_size
        assert "edge_index" not in batch and batch.num_sampled_edges == [0, 0]
    links = torch.randint(0, 30, (2, 20))
    for batch in LinkNeighborLoader(data, [3], edge_label_index=links, batch_size=8):
        assert torch.equal(batch.n_id[batch.edge_label_index], links[:, batch.input_id])
        assert batch.num_nodes == batch.edge_label_index.unique().numel()


def test_no_hops(source):
    """num_neighbors=[]: the seeds alone, and no hop in the counts, of both loaders, the sampler and typed batches."""
    for seeds in (torch.randperm(NODES), torch.randint(0, 5, (40,))):
        for batch, some in zip(NeighborLoader(source, [], seeds, batch_size=15), seeds.split(15)):
            assert torch.equal(batch.n_id, some) and torch.equal(batch.x, DATA.x[some]) and not batch.num_edges
            assert batch.num_sampled_nodes == [len(some)] and batch.num_sampled_edges == []
        batch = next(iter(NeighborLoader(source, [], seeds, batch_size=15, subgraph_type="bidirectional")))
        assert torch.equal(batch.n_id, seeds[:15]) and not batch.num_edges
    for batch in LinkNeighborLoader(source, [], edge_label_index=DATA.edge_index, batch_size=40):
        assert torch.equal(batch.n_id[batch.edge_label_index], DATA.edge_index[:, batch.input_id])
        assert batch.num_nodes == batch.edge_label_index.unique().numel() and batch.num_sampled_edges == []


def test_no_hops_with_types():
    data = HeteroData(a={"x": torch.randn(9, 2)}, b={"num_nodes": 4})
    data["a", "to", "b"].edge_index = torch.tensor([[3, 5, 5], [0, 1, 3]])
    with from_pyg(data) as graph:
        sampler = NeighborSampler(graph, [])
        for loader in (NeighborLoader(data, [], "b", batch_size=3),
                       pyg.NodeLoader(stores(graph, {"a": "x"}), sampler, "b", batch_size=3)):
            batch = next(iter(loader))
            assert batch["b"].n_id.tolist() == [0, 1, 2] and batch["a"].x.shape == (0, 2)
            assert batch["b"].num_sampled_nodes == [3] and batch["a"].num_sampled_nodes == [0]
            assert batch["a", "b"].num_sampled_edges == [] and batch["a", "b"].num_edges == 0


def test_times_without_their_other_half(source):
    with pytest.raises(ValueError, match="'edge_label_time' is not set, and 'time_attr' is"):
        LinkNeighborLoader(source, [2], time_attr="time")
    with pytest.raises(ValueError, match="'time_attr' is not set, and 'edge_label_time' is"):
        LinkNeighborLoader(source, [2], edge_label_time=torch.arange(EDGES))


def test_a_compiled_function(source):
    """torch.compile of a step has no graph break; a loop within a compiled function has one for each batch, as other
    iterators have, and dynamo does not look into the C library."""
    import torch._dynamo as dynamo

    def step(batch):
        return model(batch.x, batch.edge_index)[:batch.batch_size].sum()

    def loop():
        total = torch.zeros(())
        for batch in loader:
            total = total + step(batch)
        return total

    loader, model = NeighborLoader(source, [4, 3], batch_size=40), GraphSAGE(DATA.num_features, 8, 2, 3)
    for call, given, breaks in ((step, (next(iter(loader)),), 0), (loop, (), 1)):
        dynamo.reset()
        assert dynamo.explain(call)(*given).graph_break_count <= breaks


@pytest.mark.parametrize("name", ["NodeLoader", "LinkLoader"])
def test_options_reach_pyg(name, monkeypatch):
    """Each by itself, and no other: older versions lack some of the options. A default is not passed."""
    ours, passed = getattr(graphwire.pyg, name), []
    monkeypatch.setattr(getattr(pyg, name), "__init__", lambda _, *data, **options: passed.append((data, options)))
    options = {one.name: one.default for one in inspect.signature(ours).parameters.values() if one.default is not
               one.empty}
    assert {"batch_size", "in_order", "transform", "input_id"} < options.keys()
    for option in options:
        value = torch.zeros(2, 3, dtype=torch.int64) if option in ("input_nodes", "edge_label_index") else object()
        ours("data", "sampler", **{**options, option: value})
        assert passed.pop() == (("data", "sampler"), {option: value}) and not passed
    ours("data", "sampler", **options)
    assert passed.pop() == (("data", "sampler"), {})
