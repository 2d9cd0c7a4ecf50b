"""Disjoint batches and draws by time of graphwire.pyg's loaders, against the law of PyTorch Geometric in plain Python
over all edges (test/support/pyg_oracle.py): random data in memory, its graph in one part and in three, and its stores.

PyG's own loaders need pyg-lib for both. So their NodeLoader and LinkLoader over our sampler show the attributes.
"""

from __future__ import annotations

import warnings

import graphwire
import numpy as np
import pyg_oracle as oracle
import pytest
import torch
import torch_geometric.loader as pyg
from conftest import Servers
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg, stores
from graphwire.pyg.times import Times
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NegativeSampling

FORMS = ("memory", "one part", "three parts", "stores", "servers")
NEGATIVES = (None, ("binary", 1), ("binary", 0.5), ("triplet", 1), ("triplet", 2))
GRAPHS = 8


def attributes_of(data):
    """What stores have of the nodes of `data`."""
    found = {ntype: [name for name in ("x", "half", "y", "train_mask", "time") if name in store]
             for ntype, store in oracle.nodes_of(data).items()}
    return found if isinstance(data, HeteroData) else found[None]


class Given:
    """What a loader gets as data. edge_rows: whether batches have rows of edges."""

    def __init__(self, data, form, folder, name):
        self.data, self.edge_rows, self._closed = data, form != "stores", []
        if form == "memory":
            return
        parts, out = 1 if form == "one part" else 3, folder / form.replace(" ", "-")
        self.data = graph = from_pyg(data, out, num_parts=parts, time=name or ())
        self._closed.append(graph)
        if form == "servers":
            servers = Servers(out, parts, folder)
            self.data = graphwire.open(servers=servers.addresses)
            self._closed += [self.data, servers]
        elif form == "stores":
            self.data = stores(graph, attributes_of(data))

    def close(self):
        for one in self._closed:
            one.close()


def counts_of(data, random):
    kinds = list(oracle.edges_of(data))
    drawn = random.choice([-1, 0, 1, 2, 4], (len(kinds), int(random.integers(1, 4)))).tolist()
    return dict(zip(kinds, drawn)) if isinstance(data, HeteroData) and random.random() < 0.5 else drawn[0]


def times_for(count, random):
    """Times of seeds: whole or not, also before and after all others."""
    times = random.integers(-11, 13, count) / random.choice([1, 2])
    return torch.from_numpy(times).to([torch.int64, torch.int32, torch.float64][int(random.integers(0, 3))])


def check_nodes(given, data, name, random):
    ntype = str(random.choice(list(data.node_types))) if isinstance(data, HeteroData) else None
    rows = oracle.nodes_of(data)[ntype]
    seeds = torch.from_numpy(random.integers(0, rows.num_nodes, int(random.integers(1, 30))))
    counts, replace, last = counts_of(data, random), bool(random.random() < 0.3), bool(random.random() < 0.5)
    times = own = None
    if name:
        own = times = times_for(len(seeds), random)
        if name == "time" and name in rows and random.random() < 0.5:
            own, times = rows[name][seeds], None
    loader = NeighborLoader(given.data, counts, (ntype, seeds) if ntype else seeds, replace=replace, time_attr=name,
                            temporal_strategy="last" if name and last else "uniform", disjoint=not name,
                            input_time=times, batch_size=7, shuffle=True)
    law = oracle.Law(data, times=oracle.times_of(data, name) if name else None, last=last)
    met = []
    for batch in loader:
        store = oracle.nodes_of(batch)[ntype]
        at = store.input_id
        oracle.check_nodes(batch, data, ntype, seeds[at], at)
        oracle.check_rows(batch, data, given.edge_rows)
        slots = {ntype: list(range(len(at)))}
        oracle.check_hops(batch, data, counts, replace, law=law, apart=oracle.Apart(
            slots, slots[ntype], None if own is None else own[at].tolist()))
        assert ("seed_time" in store) == (times is not None)
        assert times is None or oracle.same_rows(store.seed_time, times[at])
        met += at.tolist()
    assert sorted(met) == list(range(len(seeds)))


def check_links(given, data, name, negatives, random):
    kinds = [kind for kind, store in oracle.edges_of(data).items() if store.edge_index.shape[1]]
    if not kinds:
        return
    kind = kinds[int(random.integers(0, len(kinds)))]
    sizes = [oracle.nodes_of(data)[end].num_nodes for end in kind[::2]]
    links = torch.from_numpy(np.stack([random.integers(0, size, 12) for size in sizes]))
    counts, last = counts_of(data, random), bool(random.random() < 0.5)
    times = times_for(12, random) if name else None
    ends = [oracle.nodes_of(data)[end] for end in kind[::2]]
    if name and negatives:  # a node exists at each time
        first = max(int(np.ceil(end.time.min().item())) if "time" in end else -20 for end in ends)
        times = times.clamp(min=first)
    loader = LinkNeighborLoader(given.data, counts, (kind, links) if isinstance(data, HeteroData) else links,
                                neg_sampling=negatives, time_attr=name, edge_label_time=times, disjoint=not name,
                                temporal_strategy="last" if name and last else "uniform", batch_size=5, shuffle=True)
    law = oracle.Law(data, times=oracle.times_of(data, name) if name else None, last=last)
    met = []
    for batch in loader:
        link = oracle.edges_of(batch)[kind]
        slots, belongs = oracle.check_links(batch, data, kind, links, None, negatives, disjoint=True)
        oracle.check_rows(batch, data, given.edge_rows)
        own = None if times is None else times[link.input_id]
        oracle.check_hops(batch, data, counts, law=law, apart=oracle.Apart(
            slots, belongs, None if own is None else own[belongs].tolist()))
        if negatives is None or negatives[0] == "binary":
            assert ("edge_label_time" in link) == (times is not None)
            assert own is None or oracle.same_rows(
                link.edge_label_time, own[[at % len(own) for at in range(link.edge_label_index.shape[1])]])
        else:
            for end in kind[::2]:
                store = oracle.nodes_of(batch)[end]
                assert ("seed_time" in store) == (times is not None)
                assert own is None or oracle.same_rows(store.seed_time, own)
        if own is not None and negatives:
            check_existing([oracle.nodes_of(batch)[end] for end in kind[::2]], link, own, negatives[0])
        met += link.input_id.tolist()
    assert sorted(met) == list(range(12))


def check_existing(ends, link, own, mode):
    """The ends of negatives exist at the time of their link."""
    if mode == "binary":
        rows = list(zip(ends, link.edge_label_index[:, len(own):]))
    else:
        rows = [(ends[1], ends[1].dst_neg_index.reshape(len(own), -1).t().flatten())]
    for end, some in rows:
        if "time" in end:
            assert (end.time[some] <= own[torch.arange(len(some)) % len(own)]).all()


@pytest.mark.parametrize("name", [None, "time", "edge_time"])
@pytest.mark.parametrize("seed", range(GRAPHS))
def test_batches(seed, name, tmp_path):
    """Without times: disjoint batches. Of each graph, data in memory and one other form, which may be served."""
    data = oracle.random_data(seed)
    oracle.add_times(data, seed)
    for form in FORMS[0], FORMS[1 + seed % (len(FORMS) - 1)]:
        random = np.random.default_rng([seed, 9])
        torch.manual_seed(seed)
        given = Given(data, form, tmp_path, name)
        try:
            for _ in range(3):
                check_nodes(given, data, name, random)
            for negatives in NEGATIVES if name != "edge_time" else (None,):
                check_links(given, data, name, negatives, random)
        finally:
            given.close()


# --- Attributes. ---

def small():
    torch.manual_seed(4)
    data = Data(edge_index=torch.randint(0, 30, (2, 150)), x=torch.randn(30, 3), time=torch.randint(0, 9, (30,)),
                edge_attr=torch.arange(150), edge_time=torch.randint(0, 9, (150,)))
    return data


def small_types():
    torch.manual_seed(5)
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(20, 2), torch.randn(12, 2)
    data["a"].time = torch.randint(0, 9, (20,))
    data["a", "r", "b"].edge_index = torch.stack([torch.randint(0, 20, (70,)), torch.randint(0, 12, (70,))])
    data["b", "s", "a"].edge_index = data["a", "r", "b"].edge_index.flip(0)
    data["b", "s", "a"].edge_attr = torch.arange(70)
    return data


def all_of(batch):
    return {store._key if hasattr(store, "_key") else None: dict(store.items()) for store in batch.stores}


@pytest.mark.parametrize("data", [small(), small_types()], ids=["data", "types"])
@pytest.mark.parametrize("timed", [False, True])
def test_attributes_are_those_of_pyg(data, timed):
    """PyG's NodeLoader and LinkLoader with our sampler over the data: the same attributes, in one order, and with all
    neighbours the same values, up to the order of the nodes of a hop."""
    typed = isinstance(data, HeteroData)
    seeds, kind = torch.tensor([3, 1, 3, 0, 7, 1]), ("a", "r", "b")
    times, links = torch.tensor([4, 9, 2, 0, 7, 1]), torch.stack([seeds, seeds.flip(0)])
    with from_pyg(data, time="time") as graph:
        how = {"time_attr": "time"} if timed else {"disjoint": True}
        sampler = NeighborSampler(graph, [-1, -1], **how)
        asked, given = ("a", seeds) if typed else seeds, {"input_time": times} if timed else {}
        pairs = [(NeighborLoader(data, [-1, -1], asked, batch_size=4, **how, **given),
                  pyg.NodeLoader(data, sampler, asked, batch_size=4, **given))]
        asked, given = (kind, links) if typed else links, {"edge_label_time": times} if timed else {}
        for negatives in None, "binary", ("triplet", 2):
            given = {**given, "neg_sampling": negatives, "batch_size": 4}
            pairs.append((LinkNeighborLoader(data, [-1, -1], asked, **how, **given),
                          pyg.LinkLoader(data, sampler, asked, **given)))
        for ours, theirs in pairs:
            for mine, other in zip(ours, theirs):
                one, two = all_of(mine), all_of(other)
                assert {key: list(some) for key, some in one.items()} == {key: list(some) for key, some in two.items()}
                for key, some in one.items():
                    for name, value in some.items():
                        same = two[key][name]
                        if isinstance(value, torch.Tensor) and getattr(ours, "neg_sampling", None) is not None:
                            assert value.dtype == same.dtype, name
                        elif isinstance(value, torch.Tensor) and name not in ("edge_index", "x", "edge_attr"):
                            assert value.dtype == same.dtype and torch.equal(value.sort()[0], same.sort()[0]), name


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_negatives_exist(parts):
    """Uniformly among the nodes that exist at the time of the link, which may be one, also with times that are equal to
    that of the link. parts: 0 is data in memory."""
    torch.manual_seed(11)
    data = HeteroData()
    data["a"].time, data["b"].time = torch.arange(60), torch.arange(80) // 2
    data["a", "r", "b"].edge_index = torch.stack([torch.arange(60), torch.arange(60)])
    data["a"].num_nodes, data["b"].num_nodes = 60, 80
    given = from_pyg(data, num_parts=parts, time="time") if parts else data
    times = torch.tensor([0, 4, 50]).repeat(4000)
    links = ("a", "r", "b"), torch.zeros(2, len(times), dtype=torch.long)
    for how, ends in (("binary", ("a", "b")), ("triplet", ("b",))):
        loader = LinkNeighborLoader(given, [0], links, edge_label_time=times, time_attr="time", neg_sampling=how,
                                    batch_size=len(times))
        (batch,) = loader
        for end in ends:
            rows = (batch["b"].dst_neg_index if how == "triplet" else
                    batch["a", "r", "b"].edge_label_index[int(end == "b"), len(times):])
            for time in 0, 4, 50:
                drawn = batch[end].n_id[rows[times == time]]
                alive = int((data[end].time <= time).sum())  # the first nodes
                counts = torch.bincount(drawn, minlength=alive).double()
                assert len(counts) == alive, (how, end, time)
                square = float(((counts - 4000 / alive) ** 2 * alive / 4000).sum())
                assert square < alive - 1 + 5 * (2 * alive) ** 0.5, (how, end, time)
    if parts:
        given.close()


def follows(drawn, law):
    """Whether numbers are drawn in proportion to a law: chi-square within eight deviations, and none of share 0."""
    counts, expected = np.bincount(drawn, minlength=len(law)), np.asarray(law) / np.sum(law) * len(drawn)
    some = expected > 0
    square = float(((counts - expected)[some] ** 2 / expected[some]).sum())
    return not counts[~some].any() and square < some.sum() + 8 * (2 * some.sum()) ** 0.5


def weighted_types():
    """Type "c" has no times. Of "b" several nodes have one time; the first that exist have the weight 0."""
    random = np.random.default_rng(7)
    data, weights = HeteroData(), {end: random.random(40) * random.integers(0, 2, 40) for end in "abc"}
    data["a"].time = torch.from_numpy(random.permutation(40) / 2 - 3)
    data["b"].time = torch.from_numpy(random.integers(2, 9, 40))
    for end in "abc":
        data[end].num_nodes = 40
    weights["b"][data["b"].time.numpy() <= 2] = 0
    weights["a"][data["a"].time.numpy() <= 0] = 1 + np.arange(7)
    for kind in ("a", "r", "b"), ("b", "s", "c"), ("c", "u", "a"):
        data[kind].edge_index = torch.from_numpy(random.integers(0, 40, (2, 90)))
    return data, weights


def negatives_of(batch, kind, how, links):
    """{end: the nodes in the user's ids of a batch's negatives}."""
    if how == "triplet":
        return {kind[2]: batch[kind[2]].n_id[batch[kind[2]].dst_neg_index.t().flatten()].numpy()}
    ends = batch[kind].edge_label_index[:, links:]
    return {end: batch[end].n_id[some].numpy() for end, some in zip(kind[::2], ends)}


@pytest.mark.parametrize("of_sampler", [False, True])
def test_weighted_negatives_exist(of_sampler, tmp_path):
    """In proportion to their weights, each end among the nodes that exist at the time of the link, by the loader and by
    PyG's loader over the sampler. Where nodes have times, each form of the data has the same negatives."""
    data, weights = weighted_types()
    times = torch.tensor([0, 3, 5.5, 100]).repeat(2000)
    for kind, how, since in ((("a", "r", "b"), "binary", 3), (("b", "s", "c"), "triplet", 0),
                             (("c", "u", "a"), "triplet", 0)):
        some, found = times[times >= since], []
        asked = NegativeSampling(how, src_weight=weights[kind[0]], dst_weight=torch.from_numpy(weights[kind[2]]))
        for form in ("one part", "servers") if of_sampler else FORMS:
            given = Given(data, form, tmp_path / form / how / kind[1], "time")
            torch.manual_seed(1)
            links = {"edge_label_index": (kind, torch.zeros(2, len(some), dtype=torch.long)), "neg_sampling": asked,
                     "edge_label_time": some, "batch_size": 2000}
            if of_sampler:
                loader = pyg.LinkLoader(stores(given.data, {}), NeighborSampler(given.data, [0], time_attr="time"),
                                        **links)
            else:
                loader = LinkNeighborLoader(given.data, [0], time_attr="time", **links)
            every = [negatives_of(batch, kind, how, 2000) for batch in loader]
            found.append({end: np.concatenate([one[end] for one in every]) for end in every[0]})
            given.close()
        for end, drawn in found[0].items():
            assert all(np.array_equal(drawn, other[end]) for other in found[1:]) or end == "c", end
            for time in sorted(set(some.tolist())):
                alive = data[end].time.numpy() <= time if "time" in data[end] else np.ones(40)
                mine = drawn[some.numpy() == time]
                assert follows(mine, weights[end] * alive) and not follows(mine, (weights[end] * alive)[::-1]), time


@pytest.mark.parametrize("how", ["binary", "triplet"])
def test_negatives_with_times_of_edges(how):
    """These do not say when a node exists: each end is any node of its type, with its weight, which a warning says."""
    data, weights = weighted_types()
    for end in "ab":
        del data[end].time
    kind, times = ("a", "r", "b"), torch.arange(90).repeat(20)
    data[kind].t = torch.arange(90)
    links = {"edge_label_index": (kind, torch.zeros(2, 1800, dtype=torch.long)), "edge_label_time": times,
             "batch_size": 1800}
    with from_pyg(data, num_parts=2, time="t") as graph:
        for weight, law in ((None, np.ones(40)), (torch.from_numpy(weights["b"]), weights["b"])):
            links["neg_sampling"] = NegativeSampling(how, dst_weight=weight)
            for given in data, graph:
                with pytest.warns(UserWarning, match="neg_sampling with time_attr='t'.*times of edges"):
                    loader = LinkNeighborLoader(given, [2], time_attr="t", **links)
                sampled = pyg.LinkLoader(stores(graph, {}), NeighborSampler(graph, [2], time_attr="t"), **links)
                with pytest.warns(UserWarning, match="neg_sampling with time_attr='t'"):
                    batches = [*loader, *sampled]
                for batch in batches:
                    assert follows(negatives_of(batch, kind, how, 1800)["b"], law)


def test_a_link_without_weighted_negatives():
    """The error names the link, its time and the weight."""
    data, weights = weighted_types()
    kind, times, ends = ("a", "r", "b"), torch.full((90,), 5), torch.zeros(2, 90, dtype=torch.long)
    times[[70, 71]] = torch.tensor([2, 1])
    with from_pyg(data, num_parts=2, time="time") as graph:
        for asked, text in ((NegativeSampling("triplet", 2, dst_weight=torch.from_numpy(weights["b"])),
                             "link 70, time 2: no node of b with a dst_weight above 0 exists"),
                            (NegativeSampling("triplet", 2), "link 71, time 1: no node of b exists")):
            for given in data, graph:
                links = {"neg_sampling": asked, "edge_label_time": times, "batch_size": 40}
                loader = LinkNeighborLoader(given, [0], (kind, ends), time_attr="time", **links)
                with pytest.raises(graphwire.NotFoundError, match=text):
                    list(loader)
            loader = pyg.LinkLoader(stores(graph, {}), NeighborSampler(graph, [0], time_attr="time"), (kind, ends),
                                    **links)
            with pytest.raises(graphwire.NotFoundError, match=text):
                list(loader)
            assert loader([3, 69])["b"].seed_time.tolist() == [5, 5]


def test_the_place_of_times():
    """Data with as many edges as nodes says by a name alone whose rows are times; PyG takes them for those of nodes."""
    edges = torch.stack([torch.arange(1, 30), torch.zeros(29, dtype=torch.long)])
    data = Data(edge_index=torch.cat([edges, edges[:, :1]], 1), x=torch.randn(30, 1), time=torch.arange(30))
    with pytest.raises(ValueError, match=r"time_attr: .*does not say .*'time'.*node_time or edge_time"):
        NeighborLoader(data, [-1], time_attr="time", input_time=torch.full((30,), 7))
    with pytest.raises(ValueError, match=r"time: .*does not say"):
        from_pyg(data, time="time")
    data.node_time = data.edge_time = data.time
    for name, last in (("node_time", 7), ("edge_time", 8)):  # edge i comes from node i + 1
        with from_pyg(data, time=name) as graph:
            for given in (data, graph):
                (batch,) = NeighborLoader(given, [-1], [0], torch.tensor([7]), time_attr=name)
                assert sorted(batch.n_id.tolist()) == list(range(last + 1)), (name, given)
    types = HeteroData({"a": {"x": data.x}, ("a", "r", "a"): {"edge_index": data.edge_index, "time": data.time}})
    (batch,) = NeighborLoader(types, [-1], ("a", [0]), torch.tensor([7]), time_attr="time")
    assert sorted(batch["a"].n_id.tolist()) == list(range(9))


def test_the_place_of_times_of_stores():
    """An attribute of the FeatureStore is of nodes, also if edges have a feature of its name."""
    data = small_types()
    data["a", "r", "b"].time = torch.full((70,), 99)
    with from_pyg(data, time="time.source") as graph:
        given = stores(graph, {"a": ["x", "time"], "b": "x"})
        (batch,) = NeighborLoader(given, [-1], "b", torch.full((12,), 4), time_attr="time", batch_size=12)
        ends = data["a", "r", "b"].edge_index
        assert batch["a", "r", "b"].num_edges == int((data["a"].time[ends[0]] <= 4).sum()) > 0


def test_a_graph_in_which_nodes_and_edges_have_times():
    """Edges are drawn by their own times, those of other types by the times of their sources."""
    data = small_types()
    data["a", "r", "b"].time = torch.arange(70) % 9
    own = data["a", "r", "b"].time
    with from_pyg(data, time="time") as graph:
        (batch,) = NeighborLoader(graph, [-1], "b", torch.full((12,), 4), time_attr="time", batch_size=12)
        assert batch["a", "r", "b"].num_edges == int((own <= 4).sum())
        rules = Times.of_graph(graph, "time").rules
        for src, rel, dst in data.edge_types:
            name = "time" if (src, rel, dst) == ("a", "r", "b") else "time" if "time" in data[src] else None
            assert rules.get(f"{src}:{rel}:{dst}") == name


def test_errors():
    data, types = small(), small_types()
    zeros, of_links = torch.zeros(30, dtype=torch.long), torch.zeros(150)
    data.short, data.nan, data.two, data.w = zeros.short(), torch.full((30,), torch.nan), torch.rand(30, 2), of_links
    both, binary = small_types(), {"neg_sampling": "binary"}
    weighted = {"neg_sampling": NegativeSampling("binary", dst_weight=torch.ones(7))}
    both["a", "r", "b"].time = torch.arange(70)
    graph, timed = from_pyg(data), from_pyg(data, time="time")
    sampler = NeighborSampler(timed, [2], time_attr="time")
    for call, error, text in (
            (lambda: NeighborLoader(data, [2], time_attr="no"), ValueError, "time_attr: 'no' .* neither"),
            (lambda: NeighborLoader(graph, [2], time_attr="no"), ValueError, "time_attr: 'no' .* neither"),
            (lambda: NeighborLoader(both, [2], "a", time_attr="time"), ValueError, "nodes and edges both have 'time'"),
            (lambda: NeighborLoader(data, [2], time_attr=["time"]), TypeError, "time_attr"),
            (lambda: NeighborLoader(data, [2], time_attr="short"), TypeError, "time_attr: short.*int16"),
            (lambda: NeighborLoader(data, [2], time_attr="train_mask"), ValueError, "train_mask"),
            (lambda: NeighborLoader(data, [2], time_attr="nan"), ValueError, "time_attr: nan: row 0 is NaN"),
            (lambda: NeighborLoader(data, [2], time_attr="two"), TypeError, r"time_attr: two.*\[30, 2\]"),
            (lambda: NeighborLoader(data, [2], time_attr="edge_time"), ValueError, "input_time is not set"),
            (lambda: NeighborLoader(types, [2], "b", time_attr="time"), ValueError,
             "input_time is not set.* b .*'time'"),
            (lambda: NeighborLoader(data, [2], input_time=zeros), ValueError, "input_time needs time_attr"),
            (lambda: NeighborLoader(data, [2], time_attr="time", input_time=zeros[:4]), ValueError,
             "input_time: 4 times for 30 seeds"),
            (lambda: NeighborLoader(data, [2], time_attr="time", input_time=7), ValueError, "input_time: 1 times"),
            (lambda: NeighborLoader(data, [2], time_attr="time", input_time=zeros.view(30, 1)), ValueError,
             "input_time"),
            (lambda: NeighborLoader(data, [2], time_attr="time", input_time=data.nan), ValueError, "input_time.*NaN"),
            (lambda: NeighborLoader(data, [2], time_attr="time", input_time=zeros.bool()), TypeError,
             "input_time.*bool"),
            (lambda: NeighborLoader(data, [2], time_attr="time", weight_attr="w"), NotImplementedError,
             "weight_attr and time_attr"),
            (lambda: NeighborLoader(data, [2], time_attr="time", temporal_strategy="first"), ValueError,
             "temporal_strategy is uniform or last"),
            (lambda: NeighborLoader(data, [2], temporal_strategy="last"), ValueError, "temporal_strategy.*time_attr"),
            (lambda: NeighborLoader(data, [2], disjoint=3), TypeError, "disjoint"),
            (lambda: LinkNeighborLoader(data, [2], time_attr="time"), ValueError, "'edge_label_time' is not set"),
            (lambda: LinkNeighborLoader(data, [2], edge_label_time=of_links), ValueError, "'time_attr' is not set"),
            (lambda: LinkNeighborLoader(data, [2], edge_label_time=torch.zeros(300), time_attr="time"), ValueError,
             "edge_label_time: 300 times for 150"),
            (lambda: LinkNeighborLoader(data, [2], edge_label_time=of_links, time_attr="time", **weighted), ValueError,
             r"dst_weight: shape \[7\] for 30 nodes"),
            (lambda: LinkNeighborLoader(data, [2], edge_label_time=of_links - 1, time_attr="time", **binary)([0]),
             graphwire.NotFoundError, "time -1.*no node"),
            (lambda: NeighborLoader(graph, [2], time_attr="time"), graphwire.NotFoundError,
             "time_attr: .*graphwire partition --time time"),
            (lambda: NeighborSampler(graph, [2], time_attr="time"), graphwire.NotFoundError, "partition --time time"),
            (lambda: NeighborLoader(timed, [2], neighbor_sampler=sampler, time_attr="x"), ValueError,
             "time_attr='x'.*neighbor_sampler.*'time'"),
            (lambda: NeighborLoader(timed, [2], neighbor_sampler=sampler, temporal_strategy="last", time_attr="time"),
             ValueError, "temporal_strategy='last'.*'uniform'"),
            (lambda: NeighborLoader(timed, [2], neighbor_sampler=NeighborSampler(timed, [2]), disjoint=True),
             ValueError, "disjoint=True.*neighbor_sampler.*False"),
            (lambda: LinkNeighborLoader(timed, [2], neighbor_sampler=sampler), ValueError, "edge_label_time"),
            (lambda: next(iter(pyg.NodeLoader(data, NeighborSampler(timed, [2]), zeros, zeros))), ValueError,
             "no time_attr")):
        with pytest.raises(error, match=text):
            call()


def test_what_decides_with_a_sampler():
    """A neighbor_sampler with times: the loader needs no time_attr; new counts keep the times."""
    data = small()
    with from_pyg(data, time="time") as graph:
        sampler = NeighborSampler(graph, [2], time_attr="time", temporal_strategy="last")
        times = torch.arange(30) % 9
        for more in ({}, {"time_attr": "time", "input_time": times}):
            loader = NeighborLoader(graph, [1], batch_size=30, neighbor_sampler=sampler, **more)
            loader.node_sampler.num_neighbors = [-1, -1]
            (batch,) = loader
            until = data.time if not more else times
            assert (batch.time <= until[batch.batch])[batch.batch_size:].all() and len(batch.num_sampled_edges) == 2
            assert sum(batch.num_sampled_edges[:1]) == int(
                (data.time[data.edge_index[0]] <= until[data.edge_index[1]]).sum())


def test_a_new_loader_draws_by_the_times_of_now():
    data = small()
    loaders = [NeighborLoader(data, [-1], batch_size=30, time_attr="time", input_time=torch.full((30,), 4))]
    data.time.numpy()[...] = 9
    loaders.append(NeighborLoader(data, [-1], batch_size=30, time_attr="time", input_time=torch.full((30,), 4)))
    counts = [next(iter(loader)).edge_index.shape[1] for loader in loaders]
    assert counts[0] > 0 and counts[1] == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float64, torch.float32])
def test_a_loader_keeps_the_times_of_its_seeds(dtype):
    """A batch says the times by which it was drawn, of the type that was given."""
    data, ends = small(), torch.arange(12).repeat(2, 1)
    given = torch.arange(12, dtype=dtype)
    loaders = [NeighborLoader(data, [-1], torch.arange(12), batch_size=12, time_attr="time", input_time=given),
               LinkNeighborLoader(data, [-1], ends, batch_size=12, time_attr="time", edge_label_time=given)]
    given.zero_()
    for name, loader in zip(("seed_time", "edge_label_time"), loaders):
        (batch,) = loader
        assert torch.equal(batch[name], torch.arange(12, dtype=dtype))


def test_dates():
    """Dates of seeds are converted to the unit of the graph's times, exactly or not at all."""
    data = small_types()
    del data["a"].time
    days = np.arange(20).astype("datetime64[D]")
    with from_pyg(data, node_features={"a": {"time": days}}, time="time") as graph:
        plain = NeighborLoader(graph, [-1], ("b", [2, 5]), torch.tensor([7, 11]), time_attr="time", batch_size=2)
        dates = np.array(["1970-01-08", "1970-01-12"], "datetime64[s]")
        dated = NeighborLoader(graph, [-1], ("b", [2, 5]), dates, time_attr="time", batch_size=2)
        for mine, other in zip(dated, plain):
            assert mine["b"].seed_time.tolist() == [7, 11] and torch.equal(mine["a"].n_id, other["a"].n_id)
            assert len(mine["a"].n_id) and (mine["a"].time <= mine["b"].seed_time[mine["a"].batch]).all()
        with pytest.raises(ValueError, match=r"input_time.*no whole number of D"):
            NeighborLoader(graph, [-1], ("b", [2]), dates[:1] + np.timedelta64(1, "h"), time_attr="time")
        (own,) = NeighborLoader(graph, [-1, -1], "a", time_attr="time", batch_size=20)
        assert (own["a"].time <= own["a"].batch)[20:].all() and own["a"].num_nodes > 20
    data["a"].time = days
    with pytest.raises(TypeError, match=r"time_attr: time of a.*datetime64"):
        NeighborLoader(data, [-1], "a", time_attr="time")


def test_a_script_of_relbench():
    """One id many times at different times; types with and without times; a transform that reads input_id."""
    data = small_types()
    ids, times = torch.randint(0, 12, (90,)), torch.randint(0, 9, (90,))
    table = torch.rand(90)

    def transform(batch):
        batch["b"].y = table[batch["b"].input_id]
        return batch

    loader = NeighborLoader(data, num_neighbors=[128, 64], time_attr="time", input_nodes=("b", ids), input_time=times,
                            transform=transform, batch_size=32, temporal_strategy="last", shuffle=True)
    met = 0
    for batch in loader:
        store = batch["b"]
        assert torch.equal(store.y, table[store.input_id]) and torch.equal(store.seed_time, times[store.input_id])
        assert torch.equal(store.n_id[:store.batch_size], ids[store.input_id])
        assert set(batch.batch_dict) == {"a", "b"} and set(batch.time_dict) == {"a"}
        assert (batch["a"].time <= store.seed_time[batch["a"].batch]).all()
        assert torch.equal(store.batch[:store.batch_size], torch.arange(store.batch_size))
        met += store.batch_size
    assert met == 90
    every = NeighborLoader(data, [2], input_nodes="b", time_attr="time", input_time=torch.full((12,), 4), batch_size=12)
    (batch,) = every
    assert batch["b"].batch_size == 12 and batch["a"].time.max() <= 4


@pytest.mark.parametrize("far, said", [(10**9, "far after the last"), (-5, "before the first"), (20, None)])
def test_times_that_cannot_be_meant(far, said):
    """One warning names both ranges, and the argument, whether data or its graph is given."""
    ends, seeds = torch.stack([torch.arange(40) % 10, torch.arange(40) % 7]), torch.full((3,), far)
    for made, more, name in ((NeighborLoader, {"input_nodes": [1, 2, 3], "input_time": seeds}, "input_time"),
                             (LinkNeighborLoader, {"edge_label_index": ends[:, :3], "edge_label_time": seeds},
                              "edge_label_time")):
        for in_memory in (True, False):
            given = Data(edge_index=ends, edge_time=torch.arange(40) + far % 2, num_nodes=10)
            data = given if in_memory else from_pyg(given, time="edge_time")
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                loader = made(data, [2], time_attr="edge_time", **more)
                assert len(list(loader)) == len(list(loader)) == 3
            told = [str(one.message) for one in found if "seeds' times" in str(one.message)]
            assert len(told) <= (said is not None)
            assert in_memory or len(told) == (said is not None)  # equal data in memory shares a graph
            assert all(one.startswith(f"{name}: ") and said in one for one in told)


def test_own_times_are_never_told():
    """Seeds that are older than each edge: their own times have the unit of the others."""
    types = HeteroData({"a": {"time": torch.arange(5)}, "b": {"time": torch.arange(5) + 100}})
    types["b", "r", "a"].edge_index = torch.arange(5).repeat(2, 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        (batch,) = NeighborLoader(types, [-1], "a", time_attr="time", batch_size=5)
    assert batch["b"].num_nodes == 0 and not [one for one in found if "seeds' times" in str(one.message)]


def test_batches_without_links():
    data = small()
    for how in {}, {"disjoint": True}, {"time_attr": "time", "edge_label_time": torch.full((150,), 8)}:
        for negatives in NEGATIVES:
            batch = LinkNeighborLoader(data, [2], neg_sampling=negatives, **how)([])
            assert batch.num_nodes == 0 and len(batch.input_id) == 0 and ("batch" in batch) == bool(how)
