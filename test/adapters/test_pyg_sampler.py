"""graphwire.pyg.NeighborSampler beside PyTorch Geometric's: the signature, every field of the outputs, and the batches
of PyG's own loaders, over every kind of data.

PyG's sampler gets its draws from pyg_draws.py, which takes whole neighbourhoods: the outputs are equal then, up to the
order within a hop.
"""

from __future__ import annotations

import inspect
import pickle
import random

import pyg_draws
import pytest
import torch
import torch_geometric.loader as pyg
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg, stores
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling, NodeSamplerInput
from torch_geometric.sampler import NeighborSampler as PygSampler
from torch_geometric.testing import MyFeatureStore, MyGraphStore

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
KINDS = ("memory", "parts", "GraphStore", "stores", "own stores", "own features", "own edges")
USER, ITEM, BUYS, BOUGHT, LIKES, NEVER = "user", "item", ("user", "buys", "item"), ("item", "by", "user"), (
    "user", "likes", "user"), ("item", "never", "item")


def ends(draw, sources, targets, count):
    """Edges that repeat, and nodes without edges."""
    src, dst = (torch.tensor([draw.randrange(max(nodes * 3 // 4, 1)) for _ in range(count)], dtype=torch.int64)
                for nodes in (sources, targets))
    return torch.stack([src, dst])


def some_data(draw, typed):
    """Random data in memory; with times "time" of users and items, or of nodes, and "when" of edges."""
    if not typed:
        nodes, edges = draw.randint(3, 12), draw.randint(13, 40)
        return Data(x=torch.arange(nodes * 2.).view(-1, 2), y=torch.arange(nodes), time=numbers(draw, nodes),
                    edge_index=ends(draw, nodes, nodes, edges), when=numbers(draw, edges))
    data = HeteroData()
    count = {USER: draw.randint(1, 12), ITEM: draw.randint(1, 12), "tag": 3}
    for ntype, nodes in count.items():
        data[ntype].x = torch.arange(nodes * 2.).view(-1, 2) + 1000 * len(ntype)
        if ntype != "tag":
            data[ntype].time = numbers(draw, nodes)
    for etype in (BUYS, BOUGHT, LIKES, NEVER, ("tag", "of", ITEM)):
        edges = 0 if etype == NEVER else draw.randint(1, 30)
        data[etype].edge_index = ends(draw, count[etype[0]], count[etype[2]], edges)
        if etype in (BUYS, LIKES):
            data[etype].when = numbers(draw, edges)
    return data


def numbers(draw, count):
    return torch.tensor([draw.randrange(6) for _ in range(count)])


def pointers(ids, count):
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(ids, minlength=count).cumsum(0)])


LAYOUTS = (["coo"], ["sorted"], ["csr"], ["csc"], ["coo", "csc"], ["csr", "sorted"])  # the last is the one that counts


def own_stores(draw, data):
    """(FeatureStore, GraphStore) of classes of the test, which have the data's edges in layouts of every kind. The
    data's edges, and their attributes, get the order of the stores, which decides their ids."""
    features, edges = MyFeatureStore(), MyGraphStore()
    for store in data.node_stores:
        for name in sorted(set(store.keys()) & {"x", "y", "time"}):
            features.put_tensor(store[name], getattr(store, "_key", None), name, None)
    for store in data.edge_stores:
        etype = getattr(store, "_key", None)
        size = (data.num_nodes,) * 2 if etype is None else tuple(data[end].num_nodes for end in (etype[0], etype[2]))
        for layout in draw.choice(LAYOUTS if etype else LAYOUTS[:4]):
            order = {"coo": torch.arange(store.edge_index.size(1)), "csr": store.edge_index[0].argsort()}.get(
                layout, store.edge_index[1].argsort())
            src, dst = store.edge_index[:, order]
            pair = {"csr": (pointers(src, size[0]), dst), "csc": (src, pointers(dst, size[1]))}.get(layout, (src, dst))
            layout, in_order = ("coo", True) if layout == "sorted" else (layout, layout == "csc")
            edges.put_edge_index(pair, etype, layout, in_order, size)
        for name in sorted(set(store.keys()) & {"edge_index", "when"}):
            store[name] = store[name][..., order]
        if etype is not None and "when" in store:
            features.put_tensor(store.when, etype, "when", None)
    return features, edges


class Given:
    """data: in memory, whose edge_index has the order of the edges' ids. ours: what our sampler gets; pair: the data of
    PyG's loaders."""

    def __init__(self, kind, typed, draw, folder, time=()):
        self.data = some_data(draw, typed)
        self.typed, self.own = typed, own_stores(draw, self.data) if kind.startswith("own") else None
        self.graph = None
        if kind == "memory":
            self.ours = self.pair = self.data
        elif kind == "own stores":
            self.ours = self.pair = self.own
        else:
            self.graph = from_pyg(self.data, folder, num_parts=2, time=time)
            mine = stores(self.graph, {USER: ["x", "time"], ITEM: ["x", "time"], "tag": "x"} if typed else
                          ["x", "y", "time"])
            self.pair = {"own features": (self.own and self.own[0], mine[1]),
                         "own edges": (mine[0], self.own and self.own[1])}.get(kind, mine)
            self.ours = {"parts": self.graph, "GraphStore": mine[1]}.get(kind, self.pair)

    def parallel(self, etype):
        ends = (self.data[etype] if self.typed else self.data).edge_index
        same = (ends[:, None] == ends[..., None]).all(0) | (ends[:, None] == ends.flip(0)[..., None]).all(0)
        return same.long().argmax(1)


def view(out, permutation, parallel):
    """What a SamplerOutput says, up to the order of a hop: {type: …} for nodes and for edges, each a list of hops.
    parallel(type): for each edge the first one with the same ends, as bidirectional outputs have one of them."""
    typed = isinstance(out.node, dict)

    def as_types(some):
        return {} if some is None else some if typed else {None: some}

    node, batch = as_types(out.node), as_types(out.batch)
    nodes = {key: list(zip(batch[key].tolist() if batch else [0] * len(ids), ids.tolist()))
             for key, ids in node.items()}
    found = {"nodes": {}, "edges": {}, "directed": {}}
    for key, some in nodes.items():
        found["nodes"][key] = hops(some, as_types(out.num_sampled_nodes).get(key))
    both = out.num_sampled_edges is None or out.orig_row is not None
    for key, row in as_types(out.row).items():
        source, target = (nodes[key[0]], nodes[key[2]]) if typed else (nodes[None],) * 2
        edge, perm = as_types(out.edge).get(key), permutation[key] if typed else permutation
        ids = torch.zeros_like(row) if edge is None else edge if perm is None else perm[edge]
        ids = (parallel(key)[ids] if both and edge is not None else ids).tolist()
        counts = as_types(out.num_sampled_edges).get(key)
        found["edges"][key] = hops([(source[i], target[j], e) for i, j, e in zip(
            row.tolist(), as_types(out.col)[key].tolist(), ids)], None if both else counts)
        if out.orig_row is not None:
            found["directed"][key] = hops([(source[i], target[j]) for i, j in zip(
                as_types(out.orig_row)[key].tolist(), as_types(out.orig_col)[key].tolist())], counts)
    return found


def hops(items, counts):
    if counts is None:
        return sorted(items)
    assert isinstance(counts, list) and all(type(one) is int for one in counts) and sum(counts) == len(items)
    at = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return [sorted(items[begin:end]) for begin, end in zip(at, at[1:])]


def shape(value):
    """The types of a value, with its keys and dtypes."""
    if isinstance(value, dict):
        return {key: shape(some) for key, some in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [shape(some) for some in value]
    return (value.dtype, value.dim()) if isinstance(value, torch.Tensor) else type(value)


def check_same(ours, theirs, mine, other, parallel):
    """Outputs of our sampler and of PyG's."""
    assert type(mine) is type(other)
    assert {name: shape(some) for name, some in vars(mine).items()} == {
        name: shape(some) for name, some in vars(other).items()}
    assert view(mine, ours.edge_permutation, parallel) == view(other, theirs.edge_permutation, parallel)
    for one, two in zip(mine.metadata, other.metadata):
        assert (one is None and two is None) or torch.equal(one, two)


def parameters(of):
    return [(one.name, one.kind, one.default) for one in inspect.signature(of).parameters.values()]


def test_signature():
    """PyG's parameters in its order, with its defaults, and two keywords."""
    theirs, mine = parameters(PygSampler), parameters(NeighborSampler)
    assert mine[:len(theirs)] == theirs
    assert [(name, kind) for name, kind, _ in mine[len(theirs):]] == [
        (name, inspect.Parameter.KEYWORD_ONLY) for name in ("ids", "held_out")]


HOW = ({}, {"disjoint": True}, {"subgraph_type": "bidirectional"}, {"time_attr": "time"}, {"time_attr": "when"})


@pytest.mark.filterwarnings("ignore:Cannot convert to bidirectional")
@pytest.mark.parametrize("typed", [False, True], ids=["data", "types"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", HOW, ids=lambda how: next(map(str, how.values()), "plain"))
def test_outputs(kind, typed, how, monkeypatch, tmp_path):
    """Of nodes and of links, with and without times of their own and negatives."""
    pyg_draws.install(monkeypatch)
    name = how.get("time_attr")
    if name == "when" and (kind == "own edges" or (kind == "own stores" and not typed)):
        pytest.skip("the FeatureStore has rows of nodes alone")
    for seed in range(2):
        draw = random.Random(f"{kind} {typed} {how} {seed}")
        given = Given(kind, typed, draw, tmp_path / str(seed), name or ())
        count = {BUYS: [-1, -1, -1], BOUGHT: [-1, 0, -1], LIKES: [0, -1, -1], NEVER: [-1] * 3,
                 ("tag", "of", ITEM): [-1, -1, 0]} if typed and seed else [-1] * draw.randint(1, 3)
        ours = NeighborSampler(given.ours, count, **how)
        theirs = PygSampler(given.data, count, **how)
        assert (ours.disjoint, ours.is_temporal, ours.num_neighbors) == (
            theirs.disjoint, theirs.is_temporal, theirs.num_neighbors)
        if seed == 1:
            ours.keep_orig_edges = theirs.keep_orig_edges = True
        for ntype in ((USER, ITEM) if typed else (None,)):
            nodes = (given.data[ntype] if typed else given.data).num_nodes
            ids = torch.tensor(draw.sample(range(nodes), draw.randint(1, nodes)))
            timed = numbers(draw, len(ids)) if name == "when" or (name and draw.random() < 0.5) else None
            asked = NodeSamplerInput(torch.arange(len(ids)) + 7, ids, timed, ntype)
            check_same(ours, theirs, ours.sample_from_nodes(asked), theirs.sample_from_nodes(asked), given.parallel)
        etype = draw.choice([BUYS, LIKES, (ITEM, "new", ITEM)]) if typed else None
        sizes = [(given.data[etype[end]] if typed else given.data).num_nodes for end in (0, -1)]
        links = torch.stack([torch.randint(nodes, (4,)) for nodes in sizes])
        timed = None if name is None else numbers(draw, 4) + 5
        for negatives in (None,) if name == "when" else (
                None, NegativeSampling("binary", 1.5 if name is None else 2), NegativeSampling("triplet", 2)):
            label = torch.arange(4) + 1 if negatives is None or negatives.is_binary() else None
            asked = EdgeSamplerInput(None if seed else torch.arange(4), *links, label, timed, etype)
            found = []
            for sampler in (ours, theirs):
                torch.manual_seed(seed)
                found.append(sampler.sample_from_edges(asked, negatives))
            if name is None or negatives is None:  # PyG's law of negatives with times is another one
                check_same(ours, theirs, *found, given.parallel)
            else:
                assert {key: shape(some) for key, some in vars(found[0]).items()} == {
                    key: shape(some) for key, some in vars(found[1]).items()}


def all_of(batch):
    return {getattr(store, "_key", None): dict(store.items()) for store in batch.stores}


def check_rows(batch, data, typed, with_edges):
    """Rows are those of the ids."""
    for store in [*batch.node_stores, *batch.edge_stores] if typed else batch.stores:
        key = getattr(store, "_key", None)
        rows = data[key] if typed else data
        for name in {"x", "y", "time"} & set(store.keys()):
            assert torch.equal(store[name], rows[name][store.n_id])
        if "edge_index" in store and "e_id" in store:
            source, target = (batch[key[0]], batch[key[2]]) if typed else (batch, batch)
            both = torch.stack([source.n_id[store.edge_index[0]], target.n_id[store.edge_index[1]]])
            assert torch.equal(both, rows.edge_index[:, store.e_id])
            assert not with_edges or "when" not in rows or torch.equal(store.when, rows.when[store.e_id])


@pytest.mark.parametrize("typed", [False, True], ids=["data", "types"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("parts", "GraphStore")])
@pytest.mark.parametrize("name", [None, "time"])
def test_batches_of_pygs_loaders(kind, typed, name, monkeypatch, tmp_path):
    """PyG's NodeLoader and LinkLoader over the data and our sampler, in this process and in workers, and ours over the
    same: as PyG's NeighborLoader and LinkNeighborLoader."""
    pyg_draws.install(monkeypatch)
    draw = random.Random(f"{kind} {typed} {name}")
    given = Given(kind, typed, draw, tmp_path, name or ())
    how = {} if name is None else {"time_attr": name}
    ours = NeighborSampler(given.ours, [-1, -1], **how)
    nodes, links = ((ITEM, None), LIKES) if typed else (None, None)
    if kind != "memory":
        nodes = ITEM if typed else torch.arange(given.data.num_nodes)
    edges = (given.data[LIKES] if typed else given.data).edge_index
    count = (given.data[ITEM] if typed else given.data).num_nodes
    size = max(count // 2, 1)
    options = [{"batch_size": size}, {"batch_size": max(edges.size(1) // 2, 1)}]
    if name is not None:
        options[0]["input_time"], options[1]["edge_label_time"] = numbers(draw, count), numbers(draw, edges.size(1))
    asked = (links, edges) if typed or kind != "memory" else edges
    theirs = (pyg.NeighborLoader(given.data, [-1, -1], (ITEM, None) if typed else None, **how, **options[0]),
              pyg.LinkNeighborLoader(given.data, [-1, -1], (LIKES, edges) if typed else edges, **how, **options[1]))
    loaders = [(pyg.NodeLoader(given.pair, ours, nodes, num_workers=workers, **options[0]),
                pyg.LinkLoader(given.pair, ours, asked, num_workers=workers, **options[1])) for workers in (0, 1)]
    loaders += [(NeighborLoader(given.pair, [5], nodes, neighbor_sampler=ours, **how, **options[0]),
                 LinkNeighborLoader(given.pair, [5], asked, neighbor_sampler=ours, **how, **options[1])),
                (NeighborLoader(given.pair, [-1, -1], nodes, **how, **options[0]),
                 LinkNeighborLoader(given.pair, [-1, -1], asked, **how, **options[1]))]
    for pair in loaders:
        for mine, other in zip(pair, theirs):
            assert len(mine) == len(other)
            for one, two in zip(mine, other):
                check_rows(one, given.data, typed, kind == "memory")
                compare(all_of(one), all_of(two), kind == "memory")


def compare(one, two, every):
    """Batches of our sampler and of PyG's over data in memory. every: the same attributes; else those that loaders
    write."""
    assert one.keys() == two.keys()
    for key, some in two.items():
        written = set(some) if every else set(some) - {"x", "y", "time", "when", "num_nodes"}
        assert written <= set(one[key]) and (not every or list(one[key]) == list(some)), key
        for name in written:
            value, same = one[key][name], some[name]
            if not isinstance(same, torch.Tensor):
                assert value == same, (key, name)
            elif name in ("edge_index", "x", "y", "time", "when", "edge_label_index"):
                assert value.dtype == same.dtype and value.shape == same.shape, (key, name)
            else:
                assert value.dtype == same.dtype and torch.equal(value.sort()[0], same.sort()[0]), (key, name)


def two_types(sizes=True):
    """(FeatureStore, GraphStore) whose edges are 0 -> 0, 1 -> 0, 2 -> 1 of users and items, in coo."""
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(torch.arange(3.), USER, "x", None)
    features.put_tensor(torch.arange(2.), ITEM, "x", None)
    features.put_tensor(torch.tensor([0., 1., 2.]), BUYS, "w", None)
    edges.put_edge_index((torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])), BUYS, "coo", False,
                         (3, 2) if sizes else None)
    return features, edges


def test_links_and_weights_of_own_stores():
    """All edges of a type are links without a list; weights and counts of nodes come from the FeatureStore."""
    for sizes in True, False:
        given = two_types(sizes)
        loader = LinkNeighborLoader(given, [-1], BUYS, weight_attr="w", batch_size=3)
        (batch,) = loader
        assert loader.data is given and (batch[USER].n_id.sort()[0].tolist(), batch[ITEM].n_id.tolist()) == (
            [0, 1, 2], [0, 1])
        assert batch[BUYS].edge_label_index.tolist() == [[0, 1, 2], [0, 0, 1]]
        assert sorted(batch[BUYS].e_id.tolist()) == [1, 2]  # an edge of weight 0 is never drawn
    features, edges = MyFeatureStore(), MyGraphStore()
    edges.put_edge_index((torch.tensor([0, 1, 1, 2]), torch.tensor([1, 3])), None, "csr", False, None)  # 0 -> 1, 2 -> 3
    (batch,) = LinkNeighborLoader((features, edges), [-1], batch_size=5)
    assert batch.n_id.tolist() == [0, 1, 2, 3] and batch.edge_label_index.tolist() == [[0, 2], [1, 3]]


def test_links_of_own_stores_are_in_pygs_order(monkeypatch):
    """As PyG's loader has them, also of arrays and of several layouts."""
    pyg_draws.install(monkeypatch)
    for typed in False, True:
        draw = random.Random(9 + typed)
        for _ in range(4):
            given = own_stores(draw, some_data(draw, typed))
            kinds = [BUYS, LIKES] if typed else [(None, None)]
            for kind in kinds:
                ours = LinkNeighborLoader(given, [-1], kind if typed else None, batch_size=99)
                theirs = (pyg.LinkNeighborLoader(given, [-1], kind).input_data if typed else
                          dict(zip(("row", "col"), given[1].coo()[:2])))
                for end in "row", "col":
                    expected = getattr(theirs, end) if typed else theirs[end]
                    assert torch.equal(getattr(ours.input_data, end), expected)
                given[1]._get_edge_index = lambda attr, store=given[1]: tuple(
                    some.numpy() for some in MyGraphStore._get_edge_index(store, attr))
                again = LinkNeighborLoader(given, [-1], kind if typed else None, batch_size=99)
                assert torch.equal(again.input_data.row, ours.input_data.row)
                del given[1]._get_edge_index


def test_hetero_data_as_both_stores():
    data = some_data(random.Random(3), True)
    (one,), (two,) = (NeighborLoader(given, [-1], (ITEM, [0]), time_attr="time") for given in ((data, data), data))
    for key, some in all_of(two).items():
        for name in set(some) & {"x", "time", "n_id", "edge_index", "e_id", "batch"}:
            assert torch.equal(one[key][name], some[name]), (key, name)


def test_times_of_edges_without_types():
    """A FeatureStore without types says by the number of rows whose times they are; batches ask for rows of nodes."""
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(torch.arange(4.), None, "x", None)
    features.put_tensor(torch.tensor([3, 1, 2, 5, 9, 0]), None, "when", None)
    edges.put_edge_index(torch.tensor([[0, 1, 2, 3, 1, 2], [1, 2, 3, 0, 0, 0]]), None, "coo", False, (4, 4))
    asked = torch.tensor([0, 0]), torch.tensor([5, 4])
    (batch,) = NeighborLoader((features, edges), [-1], asked[0], asked[1], time_attr="when", batch_size=2)
    assert sorted(batch.e_id.tolist()) == [3, 5, 5] and torch.equal(batch.x, batch.n_id.float())
    assert "when" not in batch


def test_the_edges_are_read_once():
    """By the sampler; a loader that gets it reads none, and asks the FeatureStore for the rows of each batch."""
    features, edges = two_types()
    sampler, asked = NeighborSampler((features, edges), [-1]), []
    edges._get_edge_index = None
    features._multi_get_tensor = lambda attrs: [asked.append((attr.group_name, attr.index.tolist())) or MyFeatureStore.
                                                _get_tensor(features, attr) for attr in attrs]
    (batch,) = NeighborLoader((features, edges), [9], ITEM, neighbor_sampler=sampler, batch_size=2)
    assert asked == [(USER, [0, 1, 2]), (ITEM, [0, 1])] and batch[USER].x.tolist() == [0, 1, 2]


def test_a_sampler_is_pickled_and_its_data_is_not(tmp_path):
    draw = random.Random(8)
    for kind in KINDS:
        given = Given(kind, True, draw, tmp_path / kind)
        sampler = NeighborSampler(given.ours, [-1, -1])
        data = pickle.dumps(sampler)
        assert len(data) < 5000
        again, asked = pickle.loads(data), NodeSamplerInput(torch.arange(2), torch.tensor([0, 0]), input_type=ITEM)
        check_same(again, sampler, again.sample_from_nodes(asked), sampler.sample_from_nodes(asked), given.parallel)


def test_a_subclass_of_pygs_loader():
    """As relbench.modeling.loader has it: outputs of the sampler at times of its own become batches."""
    class Loader(pyg.NodeLoader):
        def batch(self, nodes, times):
            out = self.node_sampler.sample_from_nodes(NodeSamplerInput(nodes, nodes, times, ITEM))
            return self.filter_fn(out)

    data = some_data(random.Random(4), True)
    with pytest.warns(UserWarning, match="share_memory, is_sorted have no effect") as told:
        sampler = NeighborSampler(data, num_neighbors=[4, 4], subgraph_type="directional", disjoint=False,
                                  temporal_strategy="last", time_attr="time", share_memory=True, is_sorted=True)
    assert len(told) == 1
    nodes, times = torch.tensor([0, 0, 0]), torch.tensor([1, 5, 3])
    batch = Loader(data, sampler, ITEM).batch(nodes, times)
    assert torch.equal(batch[ITEM].seed_time, times) and batch[ITEM].batch_size == 3
    for ntype in batch.node_types:
        assert batch[ntype].batch is not None
    assert (batch[USER].time <= times[batch[USER].batch]).all() and batch[USER].num_nodes
    check_rows(batch, data, True, True)


def test_data_without_edges():
    data = HeteroData({USER: {"x": torch.arange(3.)}, ITEM: {"x": torch.arange(2.)}})
    features = MyFeatureStore()
    for ntype in USER, ITEM:
        features.put_tensor(data[ntype].x, ntype, "x", None)
    for given in data, (features, MyGraphStore()):
        sampler = NeighborSampler(given, [-1])
        assert sampler.edge_types == [] and sampler.node_types == [USER, ITEM]
        out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([2]), input_type=USER))
        assert out.row == out.col == out.edge == out.num_sampled_edges == {} and out.metadata == (None, None)
        (batch,) = pyg.NodeLoader(given, sampler, (USER, [1]))
        assert batch[USER].x.tolist() == [1] and batch.edge_types == []


def test_errors():
    data, types = some_data(random.Random(1), False), some_data(random.Random(1), True)
    one = HeteroData({"a": {"x": torch.arange(3.)}, ("a", "r", "a"): {"edge_index": torch.zeros(2, 1).long()}})
    graph, short = from_pyg(data), HeteroData({"a": {"x": torch.arange(3.), "time": torch.arange(2)}})
    short["a", "r", "a"].edge_index = torch.zeros(2, 1).long()
    plain, timed, nodes = NeighborSampler(data, [2]), NeighborSampler(types, [2], time_attr="time"), torch.tensor([0])

    late = EdgeSamplerInput(None, nodes, nodes, None, torch.arange(2), BUYS)

    def own(pair, layout, etype=BUYS, size=(3, 2)):
        edges = MyGraphStore()
        edges.put_edge_index(pair, etype, layout, False, size)
        return two_types()[0], edges

    bad = two_types()
    bad[1].put_edge_index(torch.tensor([[0], [0]]), None, "coo", False, (3, 3))
    for call, error, text in (
            (lambda: NeighborSampler(3, [2]), TypeError, "data is a graphwire.Graph, .* of your own.*, not int"),
            (lambda: NeighborSampler(two_types()[::-1], [2]), TypeError, "data is .*not tuple"),
            (lambda: NeighborSampler(data, [2], "inducd"), ValueError, "inducd"),
            (lambda: NeighborSampler(data, [2], sample_direction="backward"), NotImplementedError, "backward"),
            (lambda: NeighborSampler(data, [2], sample_direction="up"), ValueError, "sample_direction"),
            (lambda: NeighborSampler(data, [2], ids="graph"), ValueError, "ids of its own"),
            (lambda: NeighborSampler(data, [2], replace=3), TypeError, "replace"),
            (lambda: NeighborSampler(data, [2], "whole"), ValueError, "subgraph_type is .*'whole'"),
            (lambda: NeighborLoader(data, [2], subgraph_type=None), ValueError, "subgraph_type is .* not None"),
            (lambda: LinkNeighborLoader(data, [2], directed="no"), TypeError, "directed is True or False, not 'no'"),
            (lambda: NeighborSampler(data, torch.rand(99)), TypeError, "num_neighbors"),
            (lambda: NeighborSampler(data, [2], weight_attr=7), TypeError, "weight_attr: the name .* not 7"),
            (lambda: NeighborLoader(data, [2], weight_attr=torch.rand(99)), TypeError, "weight_attr: the name"),
            (lambda: NeighborSampler(graph, [2], weight_attr=torch.rand(99)), TypeError, "weight_attr: the name"),
            (lambda: NeighborSampler(data, [2], weight_attr="y"), ValueError, r"weight_attr: y: \d+ rows for"),
            (lambda: NeighborLoader(short, [2], "a", time_attr="time"), ValueError, "time_attr: time of a: 2 rows"),
            (lambda: plain.sample_from_nodes(NodeSamplerInput(None, nodes - 1)), LookupError, "seeds .*-1"),
            (lambda: timed.sample_from_edges(late, "both"), ValueError, "neg_sampling:"),
            (lambda: LinkNeighborLoader(data, [2], neg_sampling="both"), ValueError, "neg_sampling: "),
            (lambda: timed.sample_from_edges(late, "binary"), ValueError, "edge_label_time: 2 times for 1"),
            (lambda: timed.sample_from_edges(late), ValueError, "edge_label_time: 2 times for 1"),
            (lambda: LinkNeighborLoader(data, [2], neg_sampling=NegativeSampling("binary", 1, list("abc"))), TypeError,
             "src_weight has a number for each node"),
            (lambda: LinkNeighborLoader(data, [2], neg_sampling=NegativeSampling("triplet", 1, None, 1j * nodes)),
             TypeError, "dst_weight has .* not torch.complex64"),
            (lambda: NeighborSampler(data, [2], time_attr="no"), ValueError, "time_attr: 'no'"),
            (lambda: NeighborSampler(data, [2], temporal_strategy="last"), ValueError, "needs time_attr"),
            (lambda: NeighborSampler(data, [2], time_atr="time"), TypeError, "did you mean 'time_attr'"),
            (lambda: plain.sample_from_nodes(NodeSamplerInput(None, nodes, input_type="a")), ValueError,
             "name a type, 'a', and the data has none"),
            (lambda: NeighborSampler(one, [2]).sample_from_nodes(NodeSamplerInput(None, nodes)), ValueError,
             "which node type.* a$"),
            (lambda: plain.sample_from_nodes(NodeSamplerInput(None, nodes + 99)), LookupError, "99"),
            (lambda: plain.sample_from_nodes(NodeSamplerInput(None, nodes, nodes)), ValueError, "no time_attr"),
            (lambda: plain.sample_from_edges(EdgeSamplerInput(None, nodes, nodes, time=nodes)), ValueError,
             "no time_attr"),
            (lambda: timed.sample_from_nodes(NodeSamplerInput(None, nodes, torch.arange(2), ITEM)), ValueError,
             "2 times for 1"),
            (lambda: NeighborLoader(own((torch.tensor([0, 1]), torch.tensor([0])), "coo"), [2], ITEM), ValueError,
             r"edges \('user', 'buys', 'item'\) in the layout coo .* \[\[2\], \[1\]\]"),
            (lambda: NeighborLoader(own((torch.tensor([0, 1]), torch.tensor([0, 1, 1])), "csc"), [2], ITEM), ValueError,
             "layout csc: the pointers"),
            (lambda: NeighborLoader(own((torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1])), "csr"), [2], ITEM),
             ValueError, "layout csr: the pointers"),
            (lambda: NeighborLoader(own((nodes.float(), nodes), "coo"), [2], ITEM), TypeError, "float32 and int64"),
            (lambda: NeighborLoader(own((nodes + 7, nodes), "coo"), [2], ITEM), RuntimeError,
             "user:buys:item, edge 0: .*user: an id of 3 or more"),
            (lambda: NeighborLoader(own((nodes - 1, nodes), "coo"), [2], ITEM), ValueError,
             "sources of user:buys:item: row 0 is -1"),
            (lambda: NeighborLoader(bad, [2], ITEM), ValueError, "some types of the stores are None"),
            (lambda: NeighborSampler((MyFeatureStore(), MyGraphStore()), [2]), ValueError, "no edge type"),
            (lambda: NeighborLoader(two_types(), [2]), ValueError, "input_nodes of which type"),
            (lambda: LinkNeighborLoader(two_types(), [2], LIKES), ValueError, "edge_label_index: no edge types")):
        with pytest.raises(error, match=text) as raised:
            call()
        assert "\n" not in str(raised.value)
