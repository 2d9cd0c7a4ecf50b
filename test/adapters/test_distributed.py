"""dgl.distributed in one process, compared with the arrays of the graph; and each pitfall of DGL's API."""

from __future__ import annotations

import pickle
import shutil
import tracemalloc

import graphwire
import numpy as np
import pytest
import torch
from conftest import NODES, arrays_of_communities
from graphwire.dgl.dataloading import DistNodeDataLoader
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
ARRAYS = arrays_of_communities()
EDGES = len(ARRAYS["edges"])


@pytest.fixture(scope="module")
def g(two_parts):
    """In two parts, with original ids in ndata["orig_id"]."""
    dgl.distributed.initialize("there_is_no_ip_config.txt")
    graph = dgl.distributed.DistGraph("communities", part_config=str(two_parts / "communities.json"))
    yield graph
    dgl.distributed.exit_client()


@pytest.fixture(scope="module")
def orig(g):
    return g.ndata["orig_id"][:].numpy()


def pairs_of(g, src, dst, orig):
    """Edges as pairs of original ids."""
    return np.stack([orig[np.asarray(src)], orig[np.asarray(dst)]], 1)


def test_arguments_of_initialize_in_other_versions():
    for arguments, named in (
        (("ip.txt",), {}),
        (("ip.txt", 1), {"num_workers": 4}),  # num_servers, then
        (("ip.txt", 2, 4, 1 << 30), {}),
        (("ip.txt", 1 << 34, "socket", 1), {}),  # max_queue_size, since 0.7
        (("ip.txt",), {"max_queue_size": 1 << 34, "net_type": "tensorpipe", "num_worker_threads": 2}),
        (("ip.txt",), {"use_graphbolt": False}),
        ((), {"standalone": True}),
    ):
        dgl.distributed.initialize(*arguments, **named)
        assert dgl.distributed.is_initialized() and context.standalone
    with pytest.raises(TypeError, match="num_sampler"):
        dgl.distributed.initialize("ip.txt", num_sampler=1)
    with pytest.raises(ValueError, match="net_type"):
        dgl.distributed.initialize("ip.txt", net_type="carrier")


def test_no_graph_without_its_name_or_initialize(g, two_parts):
    assert dgl.distributed.DistGraph("communities", str(two_parts / "communities.json")).num_nodes() == NODES
    assert dgl.distributed.DistGraph("ip.txt", "communities", part_config=str(two_parts)).num_nodes() == NODES
    other = dgl.distributed.DistGraph("other", part_config=str(two_parts))  # as in DGL's standalone scripts
    assert (other.graph_name, other.num_nodes()) == ("other", NODES) and other.local_partition is None
    assert dgl.distributed.DistGraph(part_config=str(two_parts)).graph_name == "communities"


def test_original_ids_are_listed_if_a_script_sets_them(g):
    """DGL has no column orig_id; here it is found by its name alone."""
    for data in (g.ndata, g.edata):
        assert len(data["orig_id"]) > 0 and "orig_id" not in data and "orig_id" not in list(data)
        assert len(data) == len(list(data.keys())) and "orig_id" not in repr(data)
        data["mine"] = data["orig_id"]
        assert "mine" in data
        del data["mine"]
    assert "orig_id" not in {**g.node_attr_schemes(), **g.edge_attr_schemes()}
    ours = g.ndata["orig_id"]
    g.ndata["orig_id"] = dgl.distributed.DistTensor((NODES,), torch.int64, "orig_id")
    assert "orig_id" in g.ndata and "orig_id" in list(g.ndata) and not g.ndata["orig_id"][:].any()
    g.ndata["orig_id"] = ours
    with pytest.raises(KeyError) as error:
        g.ndata["featurs"]
    assert "orig_id" not in str(error.value)


def test_another_folder_is_another_graph(g, two_parts, tmp_path, monkeypatch):
    """Whatever its name; a folder that is named in another way is the same graph."""
    monkeypatch.chdir(two_parts)
    for same in (two_parts / "communities.json", two_parts, "communities.json", "."):
        assert dgl.distributed.DistGraph("communities", part_config=same).num_nodes() == NODES
    (tmp_path / "link").symlink_to(two_parts)
    assert dgl.distributed.DistGraph("communities", part_config=str(tmp_path / "link")).num_nodes() == NODES
    before = context.graph
    with pytest.raises(graphwire.GraphwireError, match="nowhere"):
        dgl.distributed.DistGraph("communities", part_config=str(tmp_path / "nowhere"))
    assert context.graph is before
    shutil.copytree(two_parts, tmp_path / "other")
    other = dgl.distributed.DistGraph("communities", part_config=str(tmp_path / "other"))
    assert other.graph is not before and context.graph is other.graph
    context.use(before)
    dgl.distributed.DistGraph("communities")


def small_graph(folder, nodes):
    every = torch.arange(nodes)
    whole = dgl.graph((every.repeat(2), torch.cat([every.roll(1), every.roll(2)])), num_nodes=nodes)
    whole.ndata["x"] = torch.arange(nodes) * 10
    if folder.exists():
        shutil.rmtree(folder)
    dgl.distributed.partition_graph(whole, "small", 1, str(folder))
    return dgl.distributed.DistGraph("small", part_config=str(folder / "small.json"))


def test_graphs_of_one_process_share_nothing(g, tmp_path):
    """Tensors, splits and columns belong to the graph of their objects, also when its folder has another graph now."""
    before, held = context.graph, g
    try:
        first = small_graph(tmp_path / "a", 30)
        mine = dgl.distributed.DistTensor((30,), torch.int64, "t")
        mine[torch.arange(30)] = torch.arange(30)
        second = small_graph(tmp_path / "a", 40)
        assert (first.num_nodes(), second.num_nodes(), held.num_nodes()) == (30, 40, NODES)
        theirs = dgl.distributed.DistTensor((40,), torch.int64, "t")
        late = dgl.distributed.DistTensor((30,), torch.int64, "t", part_policy=first.get_node_partition_policy("_N"))
        assert torch.equal(late[torch.arange(30)], torch.arange(30)) and not theirs[torch.arange(40)].any()
        kept, shape = pickle.dumps(mine), theirs.shape
        del mine, late
        dgl.distributed.DistTensor((40,), torch.int64, "other")  # deletes tensors that have no object
        assert theirs.shape == shape and not theirs[torch.arange(40)].any()
        for graph, count in ((first, 30), (second, 40)):
            assert torch.equal(graph.ndata["x"][torch.arange(count)], torch.arange(count) * 10)
            mask = torch.ones(count, dtype=torch.bool)
            assert len(dgl.distributed.node_split(mask, graph.get_partition_book())) == count
            assert graph.sample_neighbors(torch.arange(count), 2).num_nodes() == count
        with pytest.raises(dgl.DGLError, match="another graph open: make or unpickle its DistGraph"):
            pickle.loads(kept)
        assert pickle.loads(pickle.dumps(held)).num_nodes() == NODES
    finally:
        context.use(before)
        dgl.distributed.DistGraph("communities")


def test_sizes_and_data(g, orig):
    assert (g.number_of_nodes(), g.num_edges(), g.rank(), g.ntypes, g.etypes) == (NODES, EDGES, 0, ["_N"], ["_E"])
    assert g.canonical_etypes == [("_N", "_E", "_N")] and g.idtype == torch.int64
    assert np.array_equal(g.ndata["features"][np.arange(NODES)].numpy(), ARRAYS["features"][orig])
    assert np.array_equal(g.ndata["labels"][0:NODES].numpy(), ARRAYS["labels"][orig])
    assert g.ndata["features"][7].shape == (1, 16)  # an integer is one row, as in DGL
    assert g.ndata["train_mask"].shape == (NODES,) and g.ndata["features"].dtype == torch.float32
    assert {"features", "labels", "train_mask", "val_mask", "test_mask"} <= set(g.ndata)
    assert g.node_attr_schemes()["features"].shape == (16,)
    with pytest.raises(dgl.DGLError, match="does not change"):
        g.ndata["features"][[0]] = torch.zeros(1, 16)
    with pytest.raises(KeyError):
        g.ndata["featurs"]


def test_structure_against_the_arrays(g, orig):
    src, dst = g.find_edges(torch.arange(EDGES))
    found = pairs_of(g, src, dst, orig)
    assert np.array_equal(np.sort(found, 0), np.sort(ARRAYS["edges"], 0))
    key = ARRAYS["edges"][:, 0] * NODES + ARRAYS["edges"][:, 1]
    assert sorted(found[:, 0] * NODES + found[:, 1]) == sorted(key)
    degrees = np.bincount(ARRAYS["edges"][:, 1], minlength=NODES)
    assert np.array_equal(g.in_degrees().numpy(), degrees[orig]) and g.in_degrees(3) == degrees[orig[3]]
    assert np.array_equal(g.out_degrees(torch.tensor([5, 1])).numpy(),
                          np.bincount(ARRAYS["edges"][:, 0], minlength=NODES)[orig[[5, 1]]])
    assert dgl.distributed.in_degrees(g, torch.tensor([2])).tolist() == [degrees[orig[2]]]


@pytest.mark.parametrize("edge_dir", ["in", "out"])
def test_frontiers_have_all_nodes_and_real_edges(g, edge_dir):
    seeds = torch.tensor([3, 500, 42])
    for replace in (False, True):
        frontier = dgl.distributed.sample_neighbors(g, seeds, 4, edge_dir, None, replace)
        assert isinstance(frontier, dgl.DGLGraph) and frontier.num_nodes() == NODES
        src, dst = frontier.edges()
        ends = src if edge_dir == "out" else dst
        assert set(ends.tolist()) <= set(seeds.tolist())
        degrees = g.out_degrees(seeds) if edge_dir == "out" else g.in_degrees(seeds)
        expected = [4 if replace and degree else min(4, int(degree)) for degree in degrees]
        assert [int((ends == seed).sum()) for seed in seeds] == expected
        found = g.find_edges(frontier.edata[dgl.EID])
        assert torch.equal(found[0], src) and torch.equal(found[1], dst)
        if not replace:
            assert len(torch.unique(frontier.edata[dgl.EID])) == frontier.num_edges()


def test_all_neighbours(g):
    seeds = torch.tensor([0, 17])
    for frontier in (dgl.distributed.sample_neighbors(g, seeds, -1), dgl.distributed.in_subgraph(g, seeds),
                     dgl.distributed.sample_etype_neighbors(g, seeds, -1)):
        assert frontier.num_edges() == int(g.in_degrees(seeds).sum())


def test_names_of_columns_of_older_versions(g):
    """Columns of the edges' types and ids, given before fanout or by keyword."""
    seeds, call = torch.tensor([0, 17]), dgl.distributed.sample_etype_neighbors
    degrees = int(g.in_degrees(seeds).clamp(max=2).sum())
    for frontier in (call(g, seeds, dgl.ETYPE, 2), call(g, seeds, dgl.ETYPE, dgl.EID, 2),
                     call(g, seeds, dgl.ETYPE, 2, "in", None, False, True), call(g, seeds, 2, etype_sorted=False),
                     call(g, seeds, etype_field=dgl.ETYPE, eid_field=dgl.EID, fanout=2)):
        assert frontier.num_edges() == degrees


def test_the_order_of_arguments_of_the_method(g):
    """DistGraph.sample_neighbors has exclude_edges in a place where the function has replace."""
    seeds = torch.tensor([0, 17])
    full = dgl.distributed.in_subgraph(g, seeds)
    gone = full.edata[dgl.EID][:3]
    frontier = g.sample_neighbors(seeds, -1, "in", None, gone, False)
    assert set(full.edata[dgl.EID].tolist()) - set(frontier.edata[dgl.EID].tolist()) == set(gone.tolist())


def test_draws_follow_the_seed(g):
    def draw():
        return dgl.distributed.sample_neighbors(g, torch.arange(50), 2).edata[dgl.EID]

    one, two = draw(), draw()
    assert not torch.equal(one, two)
    torch.manual_seed(7)
    three = draw()
    assert not torch.equal(one, three)


def test_collates_get_lists_of_ids_or_pairs(g):
    got = []
    loader = dgl.distributed.DistDataLoader(dataset=torch.arange(10).numpy(), batch_size=4, collate_fn=got.append)
    assert len(list(loader)) == 3 and got == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert all(type(one) is int for items in got for one in items)
    pairs = [("_N", 3), ("_N", torch.tensor(5))]
    loader = dgl.distributed.DistDataLoader(dataset=pairs, batch_size=2, collate_fn=lambda items: items)
    assert list(loader) == [[("_N", 3), ("_N", 5)]]
    loader = dgl.distributed.DistDataLoader(torch.arange(10), 4, shuffle=True, drop_last=True)
    epochs = [sorted(one for items in loader for one in items) for _ in range(3)]
    assert all(len(set(epoch)) == 8 for epoch in epochs)


def test_seeds_by_type_stay_arrays(g):
    """{type: ids} needs at most 16 bytes per id, not a Python pair for each; batches consist of pairs all the same."""
    ids = {"a": torch.arange(200_000), "b": np.arange(7, dtype=np.int32), "c": [5, torch.tensor(6)], "d": []}
    tracemalloc.start()
    loader = DistNodeDataLoader(g, ids, dgl.dataloading.NeighborSampler([2]), batch_size=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 200_000 and loader.expected_idxs == -(-200_009 // 3)
    assert len(loader.dataset) == 200_009 and loader.dataset[200_001] == ("b", 1) and loader.dataset[-1] == ("c", 6)
    got = []
    loader.collate_fn, loader.batch_size = got.append, 100_005
    list(loader)
    assert got[0][0] == ("a", 0) and [pair for items in got for pair in items][200_000:] == [
        *[("b", one) for one in range(7)], ("c", 5), ("c", 6)]
    assert all(type(one) is int for items in got for _, one in items)
    loader.shuffle = True
    got.clear()
    list(loader)
    assert sorted(pair for items in got for pair in items) == sorted(
        (kind, int(one)) for kind, some in ids.items() for one in some)


def test_samplers_are_threads(g, monkeypatch):
    """The same batches in the same order as without workers; errors of the function reach the caller."""
    import threading

    def collate(items):
        frontier = dgl.distributed.sample_neighbors(g, torch.tensor(items), 3)
        return threading.current_thread() is threading.main_thread(), frontier.edata[dgl.EID]

    plain = dgl.distributed.DistDataLoader(torch.arange(100), 8, collate_fn=collate)
    monkeypatch.setenv("DGL_NUM_SAMPLER", "3")
    threaded = dgl.distributed.DistDataLoader(torch.arange(100), 8, collate_fn=collate)
    threaded._number = plain._number
    for (here, one), (there, two) in zip(plain, threaded):
        assert here and not there and torch.equal(one, two)

    def fail(items):
        raise KeyError("the script's own")

    with pytest.raises(KeyError, match="the script's own"):
        list(dgl.distributed.DistDataLoader(torch.arange(10), 4, collate_fn=fail))


@pytest.mark.parametrize("samplers", ["0", "2"])
def test_loops_over_one_loader_are_independent(g, monkeypatch, samplers):
    """Interleaved and nested loops: each loop has all ids once. next(loader) continues the latest loop."""
    monkeypatch.setenv("DGL_NUM_SAMPLER", samplers)
    nodes, sampler = torch.arange(100), dgl.dataloading.NeighborSampler([2])
    loaders = [dgl.distributed.DistDataLoader(nodes, 20, shuffle=True, collate_fn=torch.tensor),
               dgl.dataloading.DistNodeDataLoader(g, nodes, sampler, batch_size=20, shuffle=True),
               dgl.dataloading.DistEdgeDataLoader(g, nodes, sampler, batch_size=20, shuffle=True)]
    for loader, ids in zip(loaders, (lambda found: found, lambda found: found[1],
                                     lambda found: found[1].edata[dgl.EID])):
        halves = zip(*[(ids(one), ids(two)) for one, two in zip(loader, loader)])
        assert [sorted(torch.cat(half).tolist()) for half in halves] == [nodes.tolist()] * 2
        for _ in loader:
            inner = [ids(batch) for batch in loader]
            assert sorted(torch.cat(inner).tolist()) == nodes.tolist()
        first, last = iter(loader), iter(loader)
        some = [next(last), next(loader), *last]
        assert sorted(torch.cat([ids(batch) for batch in some]).tolist()) == nodes.tolist()
        assert len(list(first)) == len(loader) == 5
        with pytest.raises(StopIteration):
            next(loader)


def blocks_hold(g, inputs, outputs, blocks):
    """Blocks consist of edges of the graph, and fit together."""
    assert torch.equal(blocks[0].srcdata[dgl.NID], inputs) and torch.equal(blocks[-1].dstdata[dgl.NID], outputs)
    for block, later in zip(blocks, blocks[1:]):
        assert torch.equal(block.dstdata[dgl.NID], later.srcdata[dgl.NID])
    for block in blocks:
        src, dst = block.edges()
        found = g.find_edges(block.edata[dgl.EID])
        assert torch.equal(block.srcdata[dgl.NID][src], found[0])
        assert torch.equal(block.dstdata[dgl.NID][dst], found[1])
        assert torch.equal(block.srcdata[dgl.NID][:block.num_dst_nodes()], block.dstdata[dgl.NID])


def test_node_loader_takes_fanouts_from_the_first_layer(g):
    """With DGL's samplers the last fanout is the seeds'; the examples' own sampler begins at the seeds."""
    sampler = dgl.dataloading.NeighborSampler([3, 7])
    nodes = dgl.distributed.node_split(g.ndata["train_mask"])
    loader = dgl.dataloading.DistNodeDataLoader(g, nodes, sampler, batch_size=32, shuffle=True, drop_last=False)
    seen = []
    for inputs, outputs, blocks in loader:
        blocks_hold(g, inputs, outputs, blocks)
        for block, fanout in zip(blocks, (3, 7)):
            degrees = g.in_degrees(block.dstdata[dgl.NID])
            assert torch.equal(block.in_degrees(), degrees.clamp(max=fanout).to(block.in_degrees().dtype))
        seen.append(outputs)
    assert torch.equal(torch.sort(torch.cat(seen))[0], nodes)
    full = dgl.dataloading.MultiLayerFullNeighborSampler(1)
    for _, outputs, blocks in dgl.distributed.DistNodeDataLoader(g, nodes, full, batch_size=100):
        assert torch.equal(blocks[0].in_degrees().to(torch.int64), g.in_degrees(outputs))


def reverses_of(g):
    """The reverse of each edge in the arrays, whose second half is the first half reversed. "weight" is an edge's
    position there."""
    orig = g.edata["weight"][:].long()
    return torch.argsort(orig)[(orig + EDGES // 2) % EDGES]


def between_turned_ends(g, ids):
    """The edges from a destination of these edges to its source."""
    src, dst = (ends.tolist() for ends in g.find_edges(torch.arange(EDGES)))
    pairs = {(dst[edge], src[edge]) for edge in ids.tolist()}
    return {edge for edge in range(EDGES) if (src[edge], dst[edge]) in pairs}


def test_edge_loader(g):
    """Blocks around a batch have no edge of it and no reverse of one; negatives share the sources."""
    reverse = reverses_of(g)
    sampler = dgl.dataloading.NeighborSampler([-1, -1])
    loader = dgl.dataloading.DistEdgeDataLoader(
        g, torch.arange(0, EDGES, 7), sampler, batch_size=50, exclude="reverse_id", reverse_eids=reverse,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(3))
    steps = 0
    for inputs, positive, negative, blocks in loader:
        ids = positive.edata[dgl.EID]
        nodes = positive.ndata[dgl.NID]
        blocks_hold(g, inputs, nodes, blocks)
        src, dst = positive.edges()
        ends = g.find_edges(ids)
        assert torch.equal(nodes[src], ends[0]) and torch.equal(nodes[dst], ends[1])
        assert torch.equal(negative.ndata[dgl.NID], nodes)
        assert torch.equal(negative.edges()[0], torch.repeat_interleave(src, 3))
        for block in blocks:
            assert not torch.isin(block.edata[dgl.EID], torch.cat([ids, reverse[ids]])).any()
        steps += 1
        if steps == 3:
            break


@pytest.mark.parametrize("ours", [False, True])
def test_edge_prediction_samplers(g, ours):
    """DGL's own samplers if DGL is installed, and Graphwire's; each mode of exclude."""
    import graphwire.dgl

    dataloading = graphwire.dgl.dataloading if ours else dgl.dataloading
    seeds = torch.arange(3, EDGES, 97)
    turned = reverses_of(g)
    both = {*seeds.tolist(), *between_turned_ends(g, seeds)}
    assert both >= {*seeds.tolist(), *turned[seeds].tolist()}
    for exclude, gone in ((None, []), ("self", seeds), ("reverse_id", both), (lambda ids: ids + 1, seeds + 1)):
        sampler = dataloading.as_edge_prediction_sampler(
            dataloading.NeighborSampler([-1]), exclude=exclude, reverse_eids=turned,
            negative_sampler=dataloading.negative_sampler.Uniform(2))
        loader = dgl.dataloading.DistEdgeDataLoader(g, seeds, sampler, batch_size=len(seeds))
        ((inputs, positive, negative, blocks),) = loader
        nodes = positive.ndata[dgl.NID]
        blocks_hold(g, inputs, nodes, blocks)
        assert torch.equal(positive.edata[dgl.EID], seeds) and negative.num_edges() == 2 * len(seeds)
        every = dgl.distributed.in_subgraph(g, nodes).edata[dgl.EID]
        assert set(blocks[0].edata[dgl.EID].tolist()) == set(every.tolist()) - {int(one) for one in gone}
        assert exclude is None or set(every.tolist()) & {int(one) for one in gone}
    plain = dataloading.as_edge_prediction_sampler(dataloading.NeighborSampler([2]))
    for inputs, positive, blocks in dgl.dataloading.DistEdgeDataLoader(g, torch.arange(40), plain, batch_size=40):
        blocks_hold(g, inputs, positive.ndata[dgl.NID], blocks)
    with pytest.raises(TypeError, match=r"exclude.*as_edge_prediction_sampler only"):
        dgl.dataloading.DistEdgeDataLoader(g, torch.arange(40), plain, exclude="self")


def test_global_negatives_are_no_edges(g):
    """DGL's own class if DGL is installed, and Graphwire's."""
    from graphwire.dgl.dataloading.negative_sampler import GlobalUniform

    for sampler in (GlobalUniform, dgl.dataloading.negative_sampler.GlobalUniform):
        src, dst = sampler(2)(g, torch.arange(100))
        assert 150 < len(src) <= 200 and not (src == dst).any() and not g.has_edges_between(src, dst).any()
        assert len(torch.unique(torch.stack([src, dst]), dim=1)[0]) == len(src)


def test_blocks_train_layers(g):
    """Through the layers of this dgl: gradients reach the rows."""
    sampler = dgl.dataloading.NeighborSampler([5, 5])
    import dgl.nn.pytorch as dglnn

    layers = [dglnn.SAGEConv(16, 8, "mean"), dglnn.GraphConv(8, 3, allow_zero_in_degree=True)]
    _, _, blocks = sampler.sample_blocks(g, torch.arange(20))
    x = g.ndata["features"][blocks[0].srcdata[dgl.NID]].requires_grad_()
    out = layers[1](blocks[1], torch.relu(layers[0](blocks[0], x)))
    out.sum().backward()
    assert out.shape == (20, 3) and x.grad.abs().sum() > 0


GUIDE = """
import dgl
import torch as th
from dgl.distributed import DistDataLoader

dgl.distributed.initialize('ip_config.txt')
g = dgl.distributed.DistGraph('communities', 'part_config.json')
pb = g.get_partition_book()
train_nid = dgl.distributed.node_split(g.ndata['train_mask'], pb, force_even=True)

sampler = NeighborSampler(g, [10, 25],
                          dgl.distributed.sample_neighbors,
                          device)
dataloader = DistDataLoader(
    dataset=train_nid.numpy(),
    batch_size=batch_size,
    collate_fn=sampler.sample_blocks,
    shuffle=True,
    drop_last=False)
for step, blocks in enumerate(dataloader):
    load_subtensor(g, blocks[0].srcdata[dgl.NID], blocks[-1].dstdata[dgl.NID])
"""


def test_the_snippet_of_dgls_guide(g, two_parts, tmp_path, monkeypatch):
    """Chapter 7 of DGL's guide: the JSON is DistGraph's second argument, the loader is the module's, and a sampler of
    the script takes fanouts from the seeds on. dgl_ranks.py does the same under a launcher."""
    class NeighborSampler:
        def __init__(self, graph, fanouts, sample_neighbors, device):
            self.g, self.fanouts, self.sample_neighbors = graph, fanouts, sample_neighbors

        def sample_blocks(self, seeds):
            seeds, blocks = torch.as_tensor(seeds), []
            for fanout in self.fanouts:
                block = dgl.to_block(self.sample_neighbors(self.g, seeds, fanout, replace=True), seeds)
                seeds = block.srcdata[dgl.NID]
                blocks.insert(0, block)
            return blocks

    def load_subtensor(graph, inputs, seeds):
        seen.append(seeds)
        assert graph.ndata["features"][inputs].shape == (len(inputs), 16)

    seen = []
    (tmp_path / "part_config.json").symlink_to(two_parts / "communities.json")
    monkeypatch.chdir(tmp_path)
    exec(GUIDE, {"NeighborSampler": NeighborSampler, "load_subtensor": load_subtensor, "device": "cpu",
                 "batch_size": 64})
    assert len(seen) == 5
    assert torch.equal(torch.sort(torch.cat(seen))[0], torch.nonzero(g.ndata["train_mask"][:]).flatten())


def test_barriers(g):
    g.barrier()
    g._client.barrier()
