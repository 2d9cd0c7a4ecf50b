"""weight=: which edges are drawn, and how often, against the arrays that went in; the same over every transport."""

from __future__ import annotations

import re
from itertools import permutations, product

import graphwire
import numpy as np
import pytest
from conftest import Servers

ACTS, LIKES, PLAIN = "user:acts:item", "user:likes:item", "item:plain:user"
USERS, ITEMS = 60, 40


def arrays():
    """Edges and weights of three types. Some items have only weights of 0, or one other weight, or no edges."""
    random = np.random.default_rng(2)
    ends = {ACTS: (random.integers(0, USERS, 700), random.integers(0, ITEMS - 3, 700)),
            LIKES: (random.integers(0, USERS, 500), random.integers(0, ITEMS, 500)),
            PLAIN: (random.integers(0, ITEMS, 400), random.integers(0, USERS, 400))}
    weights = {ACTS: (random.random(700) * (random.random(700) < 0.6)).astype(np.float32),
               LIKES: random.integers(0, 4, 500), PLAIN: None}
    weights[ACTS][ends[ACTS][1] < 4] = 0
    weights[ACTS][np.flatnonzero(ends[ACTS][1] == 3)[0]] = 1e-30
    return ends, weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The graph in two parts: a table of w of ACTS, and none of LIKES, whose lists draws read in whole."""
    ends, weights = arrays()
    features = {tuple(etype.split(":")): {"w": rows, "two": np.ones((len(rows), 2), np.float32)}
                for etype, rows in weights.items() if rows is not None}
    features[ACTS.split(":")[0], "acts", "item"]["same"] = weights[ACTS]
    return graphwire.partition_graph({tuple(etype.split(":")): pair for etype, pair in ends.items()}, "g", 2,
                                     tmp_path_factory.mktemp("weights") / "g", method="random", edge_features=features,
                                     weight=f"{ACTS}:w", num_nodes={"user": USERS, "item": ITEMS})


@pytest.fixture(scope="module")
def weighted(folder):
    with graphwire.open(folder, numpy=True) as opened:
        yield opened


def edges_of(graph, etype):
    """(destination of each edge, weight of each edge), by the graph's ids."""
    _, dst = graph.find_edges(range(graph.num_edges(etype)), etype)
    weights = None if etype == PLAIN else graph.feature("w", etype=etype)[:]
    original = graph.feature("orig_id", etype=etype)[:]
    if weights is not None:
        assert np.array_equal(weights, arrays()[1][etype][original])
    return dst, np.ones(len(dst)) if weights is None else weights


def test_what_is_drawn_from_each_list(weighted):
    """All edges of positive weight, if there are not more than the fanout; else so many different ones. Of repeated
    draws, as many as the fanout, if any weight is positive."""
    for etype in (ACTS, LIKES):
        dst, weights = edges_of(weighted, etype)
        positive = [np.flatnonzero((dst == item) & (weights > 0)) for item in range(ITEMS)]
        assert {0, 1} <= {len(some) for some in positive} if etype == ACTS else True
        for fanout, replace in product((-1, 0, 1, 3, 8, 100), (False, True)):
            found = weighted.neighbours(range(ITEMS), etype, fanout, replace=replace, weight="w", seed=fanout + 9)
            for item, legal in enumerate(positive):
                ids = found.of(item).edge_ids
                assert set(ids) <= set(legal) and np.all(np.diff(ids) >= 0), (etype, item)
                if fanout == -1 or not replace:
                    assert len(set(ids)) == len(ids) == (len(legal) if fanout == -1 else min(fanout, len(legal)))
                else:
                    assert len(ids) == (fanout if len(legal) else 0)


def test_one_hop_is_the_first_hop_of_a_batch(weighted):
    for weight, replace in product(("w", {"acts": "w"}, {"likes": "w", ("user", "acts", "item"): "same"}),
                                   (False, True)):
        batch = graphwire.sample(weighted, range(ITEMS), [3], ntype="item", seed=5, stream=7, replace=replace,
                                 weight=weight)
        for etype in (ACTS, LIKES):
            found = weighted.neighbours(range(ITEMS), etype, 3, replace=replace, seed=5, stream=7, weight=weight)
            assert np.array_equal(found.edge_ids, batch.blocks[0][etype].edge_ids)
            assert np.array_equal(found.offsets, batch.blocks[0][etype].indptr)
    uniform = weighted.neighbours(range(ITEMS), LIKES, 3, seed=5, stream=7)
    batch = graphwire.sample(weighted, range(ITEMS), [3], ntype="item", seed=5, stream=7, weight={"acts": "w"})
    assert np.array_equal(uniform.edge_ids, batch.blocks[0][LIKES].edge_ids)


def test_types_without_the_feature_are_uniform(weighted):
    """In all hops of a batch of several types; no edge of weight 0 comes."""
    degrees = {etype: edges_of(weighted, etype) for etype in (ACTS, LIKES, PLAIN)}
    for batch in graphwire.NodeLoader(weighted, {"item": None}, [4, 3, 2], weight="w", batch_size=16,
                                      edge_features={ACTS: "w", LIKES: "w"}):
        for block, fanout in zip(reversed(batch.blocks), (4, 3, 2)):
            for etype, (dst, weights) in degrees.items():
                edges = block[etype]
                counts = np.bincount(dst[weights > 0], minlength=60)[batch.nodes[edges.dst_type][:edges.num_dst]]
                assert np.array_equal(edges.in_degrees, np.minimum(counts, fanout))
                if etype != PLAIN:
                    assert np.all(edges.data["w"] > 0) and np.array_equal(edges.data["w"], weights[edges.edge_ids])


def test_links(weighted):
    """EdgeLoader: negatives, and exclusion after the draw."""
    loader = graphwire.EdgeLoader(weighted, None, [4, 4], etype="likes", negatives=2, exclude=["edges"], weight="w",
                                  batch_size=100, edge_features={ACTS: "w", LIKES: "w"}, seed=3)
    free = graphwire.EdgeLoader(weighted, None, [4, 4], etype="likes", negatives=2, weight="w", batch_size=100, seed=3)
    dropped = 0
    for batch, whole in zip(loader, free):
        assert batch.negative_rows.shape == (100, 2) and np.array_equal(batch.seeds, whole.seeds)
        for block in batch.blocks:
            assert np.all(block[ACTS].data["w"] > 0) and np.all(block[LIKES].data["w"] > 0)
            assert not np.isin(block[LIKES].edge_ids, batch.seeds).any()
        kept = whole.blocks[-1][LIKES].edge_ids
        assert np.array_equal(batch.blocks[-1][LIKES].edge_ids, kept[~np.isin(kept, whole.seeds)])
        dropped += np.isin(kept, whole.seeds).sum()
    assert dropped > 50


def chances(weights, draws):
    """The probability of each set of `draws` edges that successive sampling picks."""
    found = {}
    for order in permutations(np.flatnonzero(weights), draws):
        chance, left = 1.0, float(np.sum(weights))
        for edge in order:
            chance *= weights[edge] / left
            left -= weights[edge]
        found[tuple(sorted(order))] = found.get(tuple(sorted(order)), 0) + chance
    return found


LAWS = {"few": [1, 2, 0, 3, 4], "heavy": [1e6, 1, 1, 2], "even": [1, 1, 1, 1, 1, 1], "small": [1e-30, 3e-30, 2e-30]}


@pytest.fixture(scope="module", params=[True, False], ids=["table", "lists"])
def law(request, tmp_path_factory):
    """3,000 nodes for each of LAWS, whose lists have these weights."""
    nodes, parts = 3000, []
    for number, weights in enumerate(LAWS.values()):
        dst = np.repeat(np.arange(number * nodes, (number + 1) * nodes), len(weights))
        parts.append((np.tile(np.arange(len(weights)), nodes), dst, np.tile(np.array(weights), nodes)))
    src, dst, weights = (np.concatenate(rows) for rows in zip(*parts))
    path = graphwire.partition_graph((src, dst), "law", 1, tmp_path_factory.mktemp("law") / "g", method="random",
                                     edge_features={"w": weights}, weight=["w"] if request.param else [])
    with graphwire.open(path, numpy=True) as opened:
        yield opened


@pytest.mark.parametrize("name", LAWS)
def test_the_law(law, name):
    """How often each edge, or each set of edges, is drawn: chi-square, with eight deviations. The seed is fixed."""
    weights, first = np.array(LAWS[name]), list(LAWS).index(name) * 3000
    nodes = range(first, first + 3000)

    def differs(counts, expected):
        counts, expected = (np.array([some[key] for key in expected]) for some in (counts, expected))
        expected = expected * counts.sum()
        square, free = ((counts - expected) ** 2 / expected).sum(), len(expected) - 1
        return square > free + 8 * np.sqrt(2 * free)

    def drawn(fanout, replace):
        found = law.neighbours(nodes, fanout=fanout, replace=replace, weight="w", seed=1)
        return found.src.reshape(3000, -1)

    edges = {edge: weight / weights.sum() for edge, weight in enumerate(weights) if weight}
    counts = dict(zip(*np.unique(drawn(4, True), return_counts=True)))
    assert set(counts) <= set(edges)
    assert not differs({edge: counts.get(edge, 0) for edge in edges}, edges)
    for draws in (1, 2):
        sets = chances(weights, draws)
        counts = dict.fromkeys(sets, 0)
        for row in np.sort(drawn(draws, False), 1).tolist():
            counts[tuple(row)] += 1
        assert not differs(counts, sets), draws
        if name != "even" and draws == 1:  # the test can fail
            assert differs(counts, dict.fromkeys(sets, 1 / len(sets)))


def loaders(graph):
    """Epochs of digests, and one hop, of every function that draws by weight."""
    found = []
    for weight, options in (("w", {}), ({"acts": "same", "likes": "w"}, {"replace": True}), ("w", {"frontier": "new"})):
        found.append([batch.digest() for batch in graphwire.NodeLoader(
            graph, {"item": None, "user": None}, [5, 3, 2], weight=weight, batch_size=30, shuffle=True, seed=4,
            features=None, edge_features={ACTS: "w"}, **options)])
        found.append([batch.digest() for batch in graphwire.EdgeLoader(
            graph, {ACTS: None, LIKES: None}, [5, 3], weight=weight, batch_size=300, seed=4, negatives=2,
            exclude=["ends"], **options)])
    for etype, fanout, replace in product((ACTS, LIKES), (-1, 2, 30), (False, True)):
        found.append(np.asarray(graph.neighbours(range(ITEMS), etype, fanout, replace=replace, weight="w",
                                                 seed=1).edge_ids).tolist())
    return found


def test_the_same_over_every_transport(weighted, folder, tmp_path_factory):
    expected = loaders(weighted)
    with graphwire.open(folder, threads=3) as opened:
        assert loaders(opened) == expected
    servers = Servers(folder, 2, tmp_path_factory.mktemp("servers"))
    try:
        for transport, neighbours in product(("shm", "tcp"), ("reads", "requests")):
            with graphwire.open(folder, servers.addresses, transport=transport, neighbours=neighbours) as opened:
                assert loaders(opened) == expected, (transport, neighbours)
    finally:
        servers.close()


def test_a_loader_continues(weighted):
    def made():
        return graphwire.NodeLoader(weighted, {"item": None}, [3, 3], weight="w", batch_size=7, seed=2, shuffle=True)

    loader, again = made(), made()
    batches = iter(loader)
    next(batches)
    again.load_state_dict(loader.state_dict())
    assert [batch.digest() for batch in again] == [batch.digest() for batch in batches]


@pytest.mark.parametrize("weight, error, told", [
    ("strength", graphwire.NotFoundError,
     f"no edge type has a feature 'strength'; {PLAIN} has orig_id; {ACTS} has .*same.*two.*w; {LIKES} has .*w"),
    ({"acts": "strength"}, graphwire.NotFoundError, f"edge type {ACTS} has no feature 'strength'; it has .*same.*w"),
    ({"plain": "w"}, graphwire.NotFoundError, f"edge type {PLAIN} has no feature 'w'; it has "),
    ({"rates": "w"}, graphwire.NotFoundError, 'no edge type "rates"; it has'),
    ({"acts": "w", ACTS: "w"}, graphwire.InvalidError, f"{ACTS} is named twice"),
    ({"acts": 3}, TypeError, "the name of an edge feature, or {edge type: name}, not 3"),
    (["w"], TypeError, r"the name of an edge feature, or {edge type: name}, not \['w'\]"),
    ({3: "w"}, TypeError, "3 is not an edge type's name"),
    ("w\0", ValueError, "NUL byte"),
])
def test_names(weighted, weight, error, told):
    """Every function refuses a wrong name before it draws, in one line that begins with the argument."""
    for call in (lambda: graphwire.sample(weighted, [1], [2], ntype="item", weight=weight),
                 lambda: graphwire.NodeLoader(weighted, [1], [2], ntype="item", weight=weight),
                 lambda: graphwire.EdgeLoader(weighted, [1], [2], etype="acts", weight=weight)):
        with pytest.raises(error, match=told) as failed:
            call()
        assert str(failed.value).startswith("weight") and "\n" not in str(failed.value)
    with pytest.raises(error, match=r"^weight"):
        weighted.neighbours([1], "acts", 2, weight=weight)


def test_a_type_without_the_feature(weighted):
    with pytest.raises(graphwire.NotFoundError, match=f"weight: edge type {LIKES} has no feature 'same'; it has .*w"):
        weighted.neighbours([1], "likes", 2, weight="same")
    assert len(weighted.neighbours([1], "likes", 2, weight={"acts": "same"})) == 2  # {type: name}: others are uniform
    assert len(graphwire.sample(weighted, [1], [{"likes": 2}], ntype="item", weight={"likes": None}).blocks) == 1


def test_features_that_are_no_weights(weighted, graph):
    for call in (lambda: graphwire.sample(weighted, [1], [2], ntype="item", weight={"acts": "two"}),
                 lambda: weighted.neighbours([1], "acts", 2, weight="two")):
        with pytest.raises(graphwire.GraphwireError, match=f'{ACTS}, feature "two": .*one number for each edge') as bad:
            call()
        assert bad.value.status == "GW_UNSUPPORTED" and "\n" not in str(bad.value)
    with pytest.raises(graphwire.GraphwireError, match=r'paper:cites:paper: out-edges .*"strength"') as failed:
        graph.neighbours([1], "cites", 2, out_edges=True, weight="strength")
    assert failed.value.status == "GW_UNSUPPORTED"


def test_values_that_are_no_weights(tmp_path, tmp_path_factory):
    """Without a table, a draw is the first to see a value. The error names the feature, its edge type, the node and
    the edge's position in the node's list, in the same words over every transport."""
    ends, _ = arrays()
    rows = np.ones(500, np.float32)
    rows[np.flatnonzero(ends[LIKES][1] == 7)[2]] = np.nan
    path = graphwire.partition_graph({("user", "likes", "item"): ends[LIKES], ("user", "acts", "item"): ends[ACTS]},
                                     "g", 2, tmp_path / "g", method="random",
                                     num_nodes={"user": USERS, "item": ITEMS},
                                     edge_features={("user", "likes", "item"): {"v": rows}})

    def fails(graph):
        item, told = int(graph.ids_of([7], "item")[0]), []
        place = np.flatnonzero(np.isnan(graph.feature("v", etype=LIKES)[graph.neighbours([item], LIKES).edge_ids]))[0]
        for call in (lambda: graph.neighbours([item], LIKES, 2, weight="v"),
                     lambda: graph.neighbours([item], LIKES, -1, weight="v"),
                     lambda: graphwire.sample(graph, [item], [2], ntype="item", weight="v")):
            with pytest.raises(graphwire.OutOfRangeError) as failed:
                call()
            told.append(re.search("weight .*", str(failed.value)).group())
            assert told[-1].startswith(f'weight "v" of {LIKES}, in the list of vertex {item}: edge {place}: its weight')
        assert "__" not in str(failed.value)
        return set(told)

    with graphwire.open(path, numpy=True) as opened:
        expected = fails(opened)
    servers = Servers(path, 2, tmp_path_factory.mktemp("nan"))
    try:
        for transport, neighbours in product(("shm", "tcp"), ("auto", "reads", "requests")):
            with graphwire.open(path, servers.addresses, transport=transport, neighbours=neighbours,
                                numpy=True) as opened:
                assert fails(opened) == expected, (transport, neighbours)
    finally:
        servers.close()


def test_weights_that_change_are_refused(folder, tmp_path_factory, monkeypatch, tmp_path):
    """serve --mutable: the tables would not follow."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    servers = Servers(folder, 2, tmp_path_factory.mktemp("mutable"), "--mutable", "w")
    try:
        with graphwire.open(folder, servers.addresses) as opened:
            with pytest.raises(graphwire.GraphwireError, match=f'{ACTS}: "w" is served as mutable rows') as failed:
                opened.neighbours([1], "acts", 2, weight="w")
            assert failed.value.status == "GW_UNSUPPORTED"
            assert len(opened.neighbours([5], "acts", 2, weight="same")) == 2
    finally:
        servers.close()
