"""time=: no seed sees a later edge, at any hop; every draw beside plain Python over the whole edge list, in memory and
over servers; times, windows and names as callers give them."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import pickle

import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers
from shared import given
from time_law import Law

COUNTS = {"user": 40, "item": 25, "tag": 9}
TYPES = [("user", "buys", "item"), ("user", "sees", "item"), ("item", "of", "user"), ("tag", "on", "item"),
         ("user", "knows", "user"), ("item", "has", "tag")]
SPANS = ("int64", "int32", "float64", "float32")


def random_times(random, count):
    """Few different times, so that many are equal; of a random type."""
    dtype = np.dtype(random.choice(SPANS))
    found = random.integers(-5, 30, count).astype(dtype)
    return found / 2 if dtype.kind == "f" else found


class Made:
    """A random graph in two parts. user and item may have the times t; tag has none. Edge types have t by chance, and
    all of them an end."""

    def __init__(self, seed, folder, ordered):
        random = np.random.default_rng(seed)
        nodes = {ntype: {"t": random_times(random, count)} for ntype, count in COUNTS.items()
                 if ntype != "tag" and random.random() < 0.8}
        edges, features = {}, {}
        for etype in TYPES:
            amount = int(random.choice([0, 40, 300, 900]))
            edges[etype] = tuple(random.integers(0, COUNTS[end], amount) for end in etype[::2])
            features[etype] = {"e": random_times(random, amount) + 5}
            if random.random() < 0.5 or (not ordered and etype[0] in nodes):
                features[etype]["t"] = random_times(random, amount)
        if not nodes and not any("t" in some for some in features.values()):
            nodes["user"] = {"t": random_times(random, COUNTS["user"])}
        self.path = graphwire.partition_graph(edges, "g", 2, folder / "g", method="random", num_nodes=COUNTS,
                                              node_features=nodes, edge_features=features, seed=seed,
                                              time="t" if ordered else ())


@pytest.fixture(scope="module", params=range(5))
def made(request, tmp_path_factory):
    """Graphs whose lists are sorted by time, and every second one whose lists are not."""
    return Made(request.param, tmp_path_factory.mktemp("times"), request.param % 2 == 0)


@pytest.fixture(scope="module")
def opened(made):
    with graphwire.open(made.path, numpy=True) as graph:
        yield graph


def seed_times(random, count):
    times = random.integers(-8, 35, count)
    return [times, times.astype(np.int32), times / 2, (times / 4).astype(np.float32)][random.integers(4)]


def options_of(random):
    """What a caller may ask for, and whether the law of an end is part of it."""
    found = {"pick": str(random.choice(["uniform", "last"])), "strict": bool(random.integers(2)),
             "replace": bool(random.integers(2)), "frontier": str(random.choice(["all", "new"]))}
    fanouts = random.choice([-1, 0, 1, 2, 5, 40], 2).tolist()
    return found, fanouts if max(fanouts) != 0 else [2, -1]


def window_of(random, times):
    """(window, the begin of each seed's)."""
    kind = random.integers(3)
    if kind == 0:
        return None, None
    width = random.integers(0, 12, len(times)) if kind == 1 else np.full(len(times), random.integers(0, 12))
    begins = (np.asarray(times, np.float64) - width if times.dtype.kind == "f" else times.astype(np.int64) - width)
    return (width if kind == 1 else int(width[0])), begins.tolist()


def plain(times):
    return times.astype(np.float64 if times.dtype.kind == "f" else np.int64).tolist()


def test_every_draw_of_nodes(opened):
    """Seeds of one type and of several, equal seeds with different times, at every hop."""
    random, edges, seen = np.random.default_rng(1), 0, 0
    for turn in range(14):
        (options, fanouts), end = options_of(random), [None, "e"][turn % 2]
        law = Law(opened, "t", end)
        if end is not None:  # C compares ends with times of their own kind, and strictly with whole times
            law.ends = {etype: ends if law.times[etype] is not None and law.times[etype].dtype.kind == ends.dtype.kind
                        else None for etype, ends in law.ends.items()}
            options.update(end={etype: "e" for etype, ends in law.ends.items() if ends is not None}, strict=False)
        kinds = [["item"], ["user", "item"], ["tag", "user"]][turn % 3]
        seeds = {kind: random.integers(0, COUNTS[kind], 6) for kind in kinds}
        times = {kind: seed_times(random, 6) for kind in kinds}
        if any(some.dtype.kind == "f" for some in times.values()):
            times = {kind: some.astype(np.float64) for kind, some in times.items()}
        every = np.concatenate(list(times.values()))
        window, begins = window_of(random, every)
        by_type = window
        if isinstance(window, np.ndarray):
            by_type = dict(zip(kinds, np.split(window, len(kinds))))
        batch = graphwire.sample(opened, seeds, fanouts, time="t", times=times, window=by_type, seed=turn, **options)
        if len(kinds) == 1:
            of_one = {"times": times["item"], "window": window, "seed": turn}
            sampler = graphwire.Sampler(opened, fanouts, ntype="item", time="t", **options)
            assert sampler(seeds["item"], **of_one).digest() == graphwire.sample(
                opened, seeds["item"], fanouts, ntype="item", time="t", **of_one, **options).digest()
        edges += law.check(batch, fanouts, plain(every), begins, options["strict"], options["replace"],
                           options["pick"])
        try:
            law.check(batch, fanouts, [time - 4 for time in plain(every)], begins, options["strict"],
                      options["replace"], options["pick"])
        except AssertionError:
            seen += 1
        for kind in kinds:
            assert np.array_equal(batch.seed_times[kind], times[kind])
            rows = batch.seed_rows[kind]
            assert np.array_equal(batch.nodes[kind][rows], seeds[kind])
        assert np.concatenate([batch.groups[kind][batch.seed_rows[kind]] for kind in kinds]).tolist() == list(
            range(6 * len(kinds)))
    assert edges > 100 and seen > 5, "the check would not see edges from the future"


def test_every_draw_of_links(opened):
    """The ends and the negatives of an edge are groups of their own, which see its time."""
    random = np.random.default_rng(2)
    law = Law(opened, "t")
    kinds = [etype for etype in opened.etypes if opened.num_edges(etype)]
    for turn in range(8):
        options, fanouts = options_of(random)
        some = list(random.choice(kinds, 2, replace=False))
        seeds = {etype: random.integers(0, opened.num_edges(etype), 5) for etype in some}
        times = {etype: random.integers(-8, 35, 5) for etype in some}
        each, end = int(random.integers(3)), str(random.choice(["src", "dst"]))
        if each:
            options |= {"negatives": each, "negative_end": end, "exist_time": False}
        loader = graphwire.EdgeLoader(opened, seeds, fanouts, time="t", times=times, batch_size=10, seed=turn,
                                      **options)
        batch = next(iter(loader))
        until = [np.concatenate([times[etype], times[etype], np.repeat(times[etype], each)]) for etype in some]
        law.check(batch, fanouts, np.concatenate(until).tolist(), None, options["strict"], options["replace"],
                  options["pick"])
        first = 0
        for etype, kind in zip(some, map(opened.ends, some)):
            assert np.array_equal(batch.seeds[etype], seeds[etype])
            assert np.array_equal(batch.seed_times[etype], times[etype])
            for rows, ntype in ((batch.src_rows, kind[0]), (batch.dst_rows, kind[1]),
                                (batch.negative_rows, kind[end == "dst"])):
                groups = batch.groups[ntype][rows[etype].ravel()]
                assert groups.tolist() == list(range(first, first + len(groups)))
                first += len(groups)


def test_negatives_exist_at_the_times_of_their_edges(opened):
    """Without a word: the nodes with the edges' name of times, and a type without it is refused by name."""
    random = np.random.default_rng(4)
    here = {one.type for one in opened.features if one.name == "t" and not one.of_edges}
    index = {ntype for ntype in here if any(opened.ends(etype)[0] == ntype for etype in opened.etypes)}
    for etype, end in itertools.product(opened.etypes, ("src", "dst")):
        ntype, count = opened.ends(etype)[end == "dst"], opened.num_edges(etype)
        if not count:
            continue
        options = dict(etype=etype, negatives=5, negative_end=end, batch_size=30)
        if ntype not in here:
            with pytest.raises(graphwire.InvalidError, match=f"negatives: {ntype} has no feature 't', so that"):
                graphwire.EdgeLoader(opened, [0], [2], time="t", times=3, **options)
            with pytest.raises(graphwire.NotFoundError, match=f"{ntype} has no feature|and not of {ntype}"):
                graphwire.EdgeLoader(opened, [0], [2], times=3, exist_time="t", **options)
            continue
        born = opened.feature("t", ntype)[:]
        times = random.choice(born, 30)
        try:
            loaders = [graphwire.EdgeLoader(opened, random.integers(0, count, 30), [2], times=times, **options, **more)
                       for more in ({"time": "t"}, {"exist_time": "t"}, {"time": "t", "strict": True},
                                    {"time": "t", "exist_time": False})]
        except graphwire.GraphwireError as error:  # the lists are not sorted by time, and nothing is indexed
            assert error.status == "GW_UNSUPPORTED" and "graphwire partition --time t" in str(error)
            continue
        later = []
        for loader in loaders:
            batch = next(iter(loader))
            drawn = batch.nodes[ntype][batch.negative_rows]
            assert np.array_equal(batch.seed_times, times) and drawn.shape == (30, 5)
            later.append(int((born[drawn] > times[:, None]).sum()))
        assert later[:3] == [0, 0, 0] and (later[3] > 0 or (born[:, None] <= times).all()) and index
        assert graphwire.EdgeLoader(opened, [0], [2], time="t", times=3, negative_ids=[0], **options)
    with pytest.raises(graphwire.InvalidError, match="exist_time and exist_end need times="):
        graphwire.EdgeLoader(opened, [0], [2], etype="buys", negatives=1, exist_time="t")
    with pytest.raises(TypeError, match="exist_time: the name of a node feature, or False, not True"):
        graphwire.EdgeLoader(opened, [0], [2], etype="buys", negatives=1, times=2, exist_time=True)


def test_one_hop(opened):
    """Graph.neighbours: an id has a time of its own at each place; and the first hop of a batch is the same."""
    random, law = np.random.default_rng(3), Law(opened, "t")
    for etype in opened.etypes:
        target = opened.ends(etype)[1]
        ids = random.integers(0, COUNTS[target], 30)
        times, timed = seed_times(random, 30), law.times[etype] is not None
        window, begins = window_of(random, times)
        if not timed:
            with pytest.raises(graphwire.NotFoundError, match=f"time: edge type {etype} has no feature 't'"):
                opened.neighbours(ids, etype, time="t", times=times)
            continue
        for fanout, pick, strict in itertools.product((-1, 0, 3), ("uniform", "last"), (False, True)):
            found = opened.neighbours(ids, etype, fanout, time="t", times=times, window=window, pick=pick,
                                      strict=strict, seed=5)
            for place, node in enumerate(ids):
                legal = law.eligible(etype, node, plain(times)[place], begins and begins[place], strict)
                law._check_count(etype, found.of(place).edge_ids.tolist(), legal, fanout, False, pick)
            batch = graphwire.sample(opened, ids, [{etype: fanout}], ntype=target, time={etype: "t"}, times=times,
                                     window=window, pick=pick, strict=strict, seed=5)
            edges = batch.blocks[0].edges.get(etype)
            assert np.array_equal(found.edge_ids, edges.edge_ids if edges else [])


def test_seeds_have_times_of_their_own(opened):
    """Without times=: nodes that of their type, edges that of theirs; what has none is refused by name."""
    law, here = Law(opened, "t"), {(one.of_edges, one.type) for one in opened.features if one.name == "t"}
    for ntype in opened.ntypes:
        def loader(seeds, ntype=ntype):
            return graphwire.NodeLoader(opened, seeds, [3], ntype=ntype, time="t", batch_size=100)
        if (False, ntype) not in here:
            with pytest.raises(graphwire.NotFoundError, match=f"times: {ntype} has no feature 't': give times"):
                loader(None)
            continue
        times = opened.feature("t", ntype)[:]
        for seeds in (None, [3, 1, 3]):
            batch = next(iter(loader(seeds)))
            wanted = times if seeds is None else times[seeds]
            assert np.array_equal(batch.seed_times, wanted) and batch.seed_times.dtype.kind == wanted.dtype.kind
            law.check(batch, [3], plain(batch.seed_times))
    for etype in opened.etypes:
        if (True, etype) in here and opened.num_edges(etype):
            batch = next(iter(graphwire.EdgeLoader(opened, [1, 0], [2], etype=etype, time="t")))
            assert np.array_equal(batch.seed_times, opened.feature("t", etype=etype)[[1, 0]])
            pairs = dict(ends=opened.find_edges([0, 1], etype), etype=etype, time="t")
            with pytest.raises(graphwire.InvalidError, match=r"times: .* by their ends"):
                graphwire.EdgeLoader(opened, None, [2], **pairs)
            by_ends = next(iter(graphwire.EdgeLoader(opened, None, [2], times=[4, 5], **pairs)))
            assert by_ends.seed_times.tolist() == [4, 5]


def epochs(graph):
    """Digests of batches by every function."""
    found = []
    for options in ({}, {"pick": "last", "strict": True}, {"window": 9, "replace": True, "frontier": "new"}):
        found.append([batch.digest() for batch in graphwire.NodeLoader(
            graph, {"item": None, "user": range(20)}, [4, 3], time="t", batch_size=11, shuffle=True, seed=4,
            times={"item": np.arange(COUNTS["item"]), "user": range(20)}, **options)])
    for etype in (etype for etype in graph.etypes if graph.num_edges(etype)):
        found.append([batch.digest() for batch in graphwire.EdgeLoader(
            graph, {etype: None}, [3, -1], time="t", times=17, batch_size=60, negatives=1, exist_time=False)])
    return found


def test_the_same_over_servers(made, opened, tmp_path_factory):
    expected = epochs(opened)
    with contextlib.closing(Servers(made.path, 2, tmp_path_factory.mktemp("servers"))) as servers:
        for transport, neighbours in (("shm", "reads"), ("tcp", "requests"), ("tcp", "reads")):
            with graphwire.open(None, servers.addresses, transport=transport, neighbours=neighbours,
                                numpy=True) as graph:
                assert epochs(graph) == expected, (transport, neighbours)


def test_times_stay_with_their_seeds(opened):
    """Over ranks, shuffles, epochs and ends of epochs; a loop continues with the same bytes, and another plan is
    refused."""
    random = np.random.default_rng(6)
    for turn in range(12):
        world, count = int(random.integers(1, 5)), int(random.integers(5, 40))
        kinds = [["item"], ["item", "user"]][turn % 2]
        seeds = {kind: random.integers(0, COUNTS[kind], count) for kind in kinds}
        times = {kind: random.integers(0, 1000, count) for kind in kinds}
        options = dict(batch_size=int(random.integers(1, 6)), shuffle=bool(turn % 3), seed=turn, world=world,
                       last=str(random.choice(["wrap", "drop", "short"])))
        if not turn % 2:
            seeds, times, options["ntype"] = seeds["item"], times["item"], "item"

        def made(rank, times=times, seeds=seeds, options=options):
            return graphwire.NodeLoader(opened, seeds, [2], time="t", times=times, rank=rank, **options)

        def pairs(batch):
            if not isinstance(batch.seeds, dict):
                return list(zip(itertools.repeat("item"), batch.seeds.tolist(), batch.seed_times.tolist()))
            return [(kind, *pair) for kind, ids in batch.seeds.items()
                    for pair in zip(ids.tolist(), batch.seed_times[kind].tolist())]

        try:
            loaders = [made(rank) for rank in range(world)]
        except graphwire.InvalidError as error:
            assert "step" in str(error)
            continue
        given = ([("item", *pair) for pair in zip(seeds, times)] if not turn % 2 else
                 [(kind, *pair) for kind in kinds for pair in zip(seeds[kind], times[kind])])
        for _ in range(2):
            found = [pair for loader in loaders for batch in loader for pair in pairs(batch)]
            assert set(found) <= set(given)
            if options["last"] == "short":
                assert sorted(found) == sorted(given)
            elif options["last"] == "wrap":
                assert set(found) == set(given) and len(found) < len(given) + world
        expected = [batch.digest() for batch in made(0)]
        if expected:
            first, again, stop = made(0), made(0), int(random.integers(len(expected)))
            loop = iter(first)
            for _ in range(stop):
                next(loop)
            again.load_state_dict(first.state_dict())
            assert [batch.digest() for batch in again] == expected[stop:]
            later = times + 1 if not turn % 2 else {kind: some + 1 for kind, some in times.items()}
            with pytest.raises(graphwire.InvalidError, match="other seeds"):
                made(0, times=later).load_state_dict(first.state_dict())
            with pytest.raises(graphwire.InvalidError, match="other seeds"):
                graphwire.NodeLoader(opened, seeds, [2], time="t", times=times, rank=0, window=3,
                                     **options).load_state_dict(first.state_dict())


@pytest.fixture(scope="module")
def otc(tmp_path_factory):
    """bitcoin-otc in two parts: who rated whom, and when, in fractions of seconds."""
    with gzip.open(given("data/bitcoin-otc/soc-sign-bitcoinotc.csv.gz"), "rt") as rows:
        src, dst, _, time = np.loadtxt(rows, delimiter=",", skiprows=1, unpack=True)
    path = graphwire.partition_graph((src.astype(np.int64), dst.astype(np.int64)), "otc", 2,
                                     tmp_path_factory.mktemp("otc") / "g", method="random",
                                     edge_features={"time": time}, time="time")
    with graphwire.open(path, numpy=True) as graph:
        yield graph


@pytest.mark.parametrize("pick", ["uniform", "last"])
def test_no_edge_from_the_future(otc, pick):
    """GRAPHWIRE_TIME_EDGES sampled edges of bitcoin-otc, at both hops by the time of their own seed."""
    random, edges = np.random.default_rng(8), 0
    times = otc.feature("time", etype=otc.etypes[0])[:]
    while edges < int(os.environ.get("GRAPHWIRE_TIME_EDGES", "500000")):
        seeds = random.integers(0, otc.num_nodes(), 20000)
        until = random.choice(times, 20000)
        for batch in graphwire.NodeLoader(otc, seeds, [15, 10], time="time", times=until, window=4e7, pick=pick,
                                          edge_features="time", batch_size=1000, shuffle=True, seed=edges):
            groups = batch.groups[otc.ntypes[0]]
            for block in batch.blocks:
                some, seen = block.only, batch.seed_times[groups[block.only.dst]]
                assert np.array_equal(groups[some.indices], groups[some.dst])
                assert np.all(some.data["time"] <= seen) and np.all(some.data["time"] >= seen - 4e7)
                assert np.array_equal(some.data["time"], times[some.edge_ids])
                edges += some.num_edges
            assert np.array_equal(np.sort(groups[batch.seed_rows]), np.arange(len(batch.seeds)))


@pytest.mark.parametrize("numpy", [False, True], ids=["torch", "numpy"])
@pytest.mark.parametrize("options", [{}, {"time": "t", "times": 9}, {"time": "t", "times": 9.5}], ids=["disjoint",
                                                                                                   "whole", "real"])
def test_groups_and_times_travel(made, options, numpy, made_up_gpu):
    """To another process, a file, a device, and PyG; equal seeds stay apart, and the batch says that it is disjoint."""
    with graphwire.open(made.path, numpy=numpy) as graph:
        options = {"ntype": "item", "disjoint": True, "batch_size": 4, **options}

        def first(**more):
            return next(iter(graphwire.NodeLoader(graph, [3, 3, 3, 1], [4, 2], **options, **more)))

        batch = first(features={"user": "orig_id"})
        assert f"disjoint{' by time' if 'time' in options else ''}>" in repr(batch)
        for again in (pickle.loads(pickle.dumps(batch)), pickle.loads(pickle.dumps(first()))):
            assert repr(again) == repr(batch)
            assert all(np.array_equal(again.groups[kind], batch.groups[kind]) for kind in COUNTS)
            assert batch.seed_times is None or np.array_equal(again.seed_times, batch.seed_times)
        assert list(batch.seed_rows) == [0, 1, 2, 3] and batch.groups["item"][:4].tolist() == [0, 1, 2, 3]
        assert (batch.seed_times is None) == ("time" not in options)
        if numpy:
            return
        for moved in (batch.to("cpu"), first(device="cuda")):
            assert all(torch.equal(moved.groups[kind], batch.groups[kind]) for kind in COUNTS)
        held = {id(tensor) for tensor in batch._tensors()}
        assert {id(some) for some in batch.groups.values()} <= held
        assert batch.seed_times is None or id(batch.seed_times) in held


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_to_pyg(opened, made, frontier):
    """PyG's `batch` of every node type is the group of n_id, and edges join equal groups; links have edge_label_time.
    """
    with graphwire.open(made.path) as graph:
        options = dict(time="t", frontier=frontier, seed=3)
        seeds, times = {"item": [3, 3, 7], "user": [1]}, {"item": [5, 20, 9], "user": [4]}
        batch = graphwire.sample(graph, seeds, [3, 2], times=times, **options)
        data = batch.to_pyg()
        for ntype in graph.ntypes:
            assert data[ntype].batch.shape == data[ntype].n_id.shape and data[ntype].batch.dtype == torch.int64
            pairs = set(zip(data[ntype].batch.tolist(), data[ntype].n_id.tolist()))
            assert len(pairs) == len(data[ntype].n_id)
            assert pairs <= set(zip(batch.groups[ntype].tolist(), batch.nodes[ntype].tolist()))
        assert data["item"].seed_time.tolist() == [5, 20, 9] and data["user"].seed_time.tolist() == [4]
        assert torch.equal(data["item"].batch[:3], torch.arange(3)) and data["user"].batch[0] == 3
        law, until = Law(opened, "t"), [5, 20, 9, 4]
        for etype in data.edge_types:
            store, name = data[etype], ":".join(etype)
            group = data[etype[0]].batch[store.edge_index[0]]
            assert torch.equal(group, data[etype[2]].batch[store.edge_index[1]])
            assert law.times[name] is None or all(law.times[name][edge] <= until[at]
                                                  for edge, at in zip(store.e_id.tolist(), group.tolist()))
        etype = next(etype for etype in graph.etypes if graph.num_edges(etype))
        links = next(iter(graphwire.EdgeLoader(graph, [2, 2], [3], etype=etype, times=[6, 30], negatives=1,
                                                exist_time=False, **options)))
        data = links.to_pyg()
        assert data[tuple(etype.split(":"))].edge_label_time.tolist() == [6, 30]
        assert all("batch" in data[ntype] for ntype in graph.ntypes)


def test_features_do_not_take_the_names_of_groups(tmp_path):
    path = graphwire.partition_graph((np.arange(4), np.arange(4) // 2), "g", 1, tmp_path / "g", method="random",
                                     node_features={"batch": np.arange(4), "seed_time": np.arange(4)})
    with graphwire.open(path) as graph:
        plain_batch = graphwire.sample(graph, [0, 1], [2], features="batch")
        assert plain_batch.to_pyg().batch.tolist() == plain_batch.nodes["_N"].tolist()
        batch = graphwire.sample(graph, [0, 1], [2], features="batch", disjoint=True)
        with pytest.raises(ValueError, match=r"to_pyg: PyG's 'batch' and the .*'batch' would both be"):
            batch.to_pyg()
        assert batch.to_pyg({"batch": "b"}).batch.tolist() == batch.groups["_N"].tolist()


def test_rows_of_repeated_nodes(opened, made):
    """A disjoint batch has a row for each place of a node: features, and gradients, which add up."""
    with graphwire.open(made.path) as graph:
        batch = graphwire.sample(graph, [3, 3, 3], [5], ntype="item", disjoint=True, features={"item": "orig_id",
                                                                                              "user": "orig_id"})
        for ntype in ("item", "user"):
            assert torch.equal(batch.features[ntype]["orig_id"], graph.feature("orig_id", ntype)[batch.nodes[ntype]])
        table = graphwire.Embedding(graph, "rows", 2, ntype="item", initial="zeros")
        optimizer = graphwire.optim.SparseSGD([table], lr=1.0)
        table(batch.nodes["item"]).sum().backward()
        optimizer.step()
        counts = torch.bincount(batch.nodes["item"], minlength=COUNTS["item"])
        assert torch.equal(table.weight[:, 0], -counts.float())


def test_times_that_change(tmp_path):
    """Servers serve times as rows that change, also those by which lists are sorted, and no edge is drawn by them."""
    random, etypes = np.random.default_rng(3), [("a", "r", "b"), ("b", "s", "a")]
    path = graphwire.partition_graph(
        {etype: (random.integers(0, 30, 400), random.integers(0, 30, 400)) for etype in etypes}, "g", 2,
        tmp_path / "g", method="random", num_nodes={"a": 30, "b": 30}, node_features={"a": {"t": random.random(30)}},
        edge_features={etypes[1]: {"t": random.random(400)}}, transpose=True, time="t")
    with graphwire.open(path, numpy=True) as graph:
        wanted = graphwire.sample(graph, range(30), [4, 4], ntype="a").digest()
    for key, etype, says in (("edge/b__s__a/t", "b:s:a", '"t" is served as mutable rows'),
                             ("node/a/t", "a:r:b", 'cannot be drawn by "t.source", because the feature of a is')):
        logs = tmp_path / etype[0]
        logs.mkdir()
        servers = Servers(path.parent, 2, logs, "--mutable", key)
        try:
            with graphwire.open(servers=servers.addresses, numpy=True) as graph:
                assert graphwire.sample(graph, range(30), [4, 4], ntype="a").digest() == wanted
                with pytest.raises(graphwire.GraphwireError, match=says):
                    graph.neighbours([0], etype, 2, time="t", times=1.0)
                other = "a:r:b" if etype == "b:s:a" else "b:s:a"
                assert len(graph.neighbours([0], other, -1, time="t", times=1.0).edge_ids)
        finally:
            for part in range(2):
                servers.end(part)
