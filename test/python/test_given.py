"""Arguments: ids of every type and shape at every interface, compared with NumPy's and torch's meaning; indices of
rows; numbers, words and switches; fanouts; empty lists; calls that fail and leave nothing behind."""

from __future__ import annotations

import itertools
import re

import graphwire
import numpy as np
import pytest
import torch
from graphwire import optim
from graphwire._base import arrays as _arrays
from id_forms import ROWS, forms, meaning, must

NODES, EDGES = ROWS, 24  # 0 <- 1 <- 2 ..., and each node <- itself: edge 2 i + (0, 1) ends at node i
REFUSALS = (IndexError, TypeError, ValueError)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    ids = np.arange(NODES)
    dst = np.repeat(ids, 2)
    src = np.stack([ids, (ids + 1) % NODES], 1).reshape(-1)
    path = graphwire.partition_graph(
        (src, dst), "ring", 1, folder / "parts", method="random",
        node_features={"number": ids, "x": np.arange(4 * NODES, dtype=np.float32).reshape(NODES, 4),
                       "core": (ids >= 5).astype(np.uint8), "signed": (ids >= 5).astype(np.int8), "set": ids >= 5,
                       "cube": np.arange(NODES * 6).reshape(NODES, 2, 3)})
    with graphwire.open(path, timeout=None) as opened:
        yield opened


@pytest.fixture(scope="module")
def of_relations(tmp_path_factory):
    """Two relations whose names are numbers; each node has nine edges of either."""
    folder = tmp_path_factory.mktemp("relations")
    src, dst = np.repeat(np.arange(10), 9), np.concatenate([np.delete(np.arange(10), i) for i in range(10)])
    path = graphwire.partition_graph({("a", "3", "a"): (src, dst), ("a", "7", "a"): (dst, src)}, "g", 1,
                                     folder / "parts", method="random")
    with graphwire.open(path) as opened:
        yield opened


# --- Ids. ---


def found_by_push(graph, ids):
    tensor = graph.open_tensor("rows")
    tensor[:] = 0
    count = len(_arrays.ids_array(ids, NODES))
    tensor.push(ids, np.ones((count, 1)), kind="sgd", lr=1.0)
    return [row for row, times in enumerate(tensor[:].flatten().tolist()) for _ in range(int(-times))]


def found_by_write(graph, ids):
    tensor = graph.open_tensor("rows")
    tensor[:] = 0
    tensor[ids] = 1
    return torch.nonzero(tensor[:].flatten()).flatten().tolist()


def found_by_out(graph, ids):
    out = torch.empty(len(_arrays.ids_array(ids, NODES)), 1)
    tensor = graph.open_tensor("rows")
    tensor[:] = torch.arange(NODES)[:, None]
    return tensor.gather(ids, out).flatten().tolist()


def seeds_of(loader):
    return [seed for batch in loader for seed in batch.seeds.tolist()]


def negatives_of(graph, ids):
    """The distinct ids of many draws, ascending."""
    loader = graphwire.EdgeLoader(graph, [0] * 40, [1], negatives=20, negative_ids=ids, batch_size=40)
    batch = next(iter(loader))
    return sorted(set(batch.nodes["_N"][batch.negative_rows.flatten()].tolist()))


def found_by_ends(graph, ids):
    whole = list(zip(*map(torch.Tensor.tolist, graph.find_edges(range(EDGES)))))
    assert len(set(whole)) == EDGES
    return [whole.index(pair) for pair in zip(*map(torch.Tensor.tolist, graph.find_edges(ids)))]


def offsets_of(graph, ids):
    found = graph.neighbours(ids)
    assert found.offsets.tolist() == list(range(0, 2 * len(found.offsets) - 1, 2))
    return found.dst[::2].tolist()


# A call that returns the ids that it got; how many ids exist; its argument's name.
INTERFACES = {
    "feature[…]": (lambda g, ids: g.feature("number")[ids].reshape(-1).tolist(), NODES, "rows|indices"),
    "gather": (lambda g, ids: g.gather("number", ids).reshape(-1).tolist(), NODES, "rows|indices"),
    "Tensor[…]": (lambda g, ids: g.open_tensor("ids")[ids].reshape(-1).tolist(), NODES, "rows|indices"),
    "Tensor[…] =": (found_by_write, NODES, "rows|indices"),
    "push": (found_by_push, NODES, "ids"),
    "gather(out)": (found_by_out, NODES, "ids"),
    "find_edges": (found_by_ends, EDGES, "ids"),
    "in_degrees": (lambda g, ids: [one for one, degree in zip(
                   _arrays.ids_array(ids, NODES).tolist(), g.in_degrees(ids).tolist()) if degree == 2], NODES, "ids"),
    "edge_ids": (lambda g, ids: (g.edge_ids(ids, ids).edge_ids // 2).tolist(), NODES, "src"),
    "has_edges": (lambda g, ids: [one for one, there in zip(_arrays.ids_array(ids, NODES).tolist(),
                  g.has_edges(ids, ids).tolist()) if there], NODES, "src|ids"),
    "neighbours": (offsets_of, NODES, "ids"),
    "split": (lambda g, ids: g.split(ids, world=1, rank=0).tolist(), NODES, "what|no feature"),
    "NodeLoader": (lambda g, ids: seeds_of(graphwire.NodeLoader(g, ids, [1], batch_size=5)), NODES, "seeds"),
    "NodeLoader, by type": (lambda g, ids: [seed for batch in graphwire.NodeLoader(g, {"_N": ids}, [1], batch_size=5)
                            for seed in batch.seeds["_N"].tolist()], NODES, "seeds"),
    "EdgeLoader": (lambda g, ids: seeds_of(graphwire.EdgeLoader(g, ids, [1], batch_size=5)), EDGES, "seeds"),
    "sample": (lambda g, ids: graphwire.sample(g, ids, [1]).seeds.tolist(), NODES, "seeds"),
    "Embedding": (lambda g, ids: optim.Embedding(g, "table", 1, rows=NODES, initial="zeros")(ids).flatten().tolist(),
                  NODES, "ids"),
    "negative_ids": (negatives_of, NODES, "negative_ids|draw negatives"),
}


@pytest.mark.parametrize("name", INTERFACES)
def test_ids_mean_what_they_mean_in_numpy_and_torch(graph, name):
    """Ids mean the same as in NumPy and torch, or are refused by name. A mask of all edges or nodes has one entry for
    each."""
    call, count, argument = INTERFACES[name]
    for tensor, initial in (("rows", None), ("ids", "number"), ("table", "number")):
        made = graph.create_tensor(tensor, (NODES, 1), "float32")
        if initial:
            made[:] = torch.arange(NODES)[:, None]
    right = refused = 0
    for value, text in forms():
        if isinstance(value, (dict, type(iter([])))) and name != "feature[…]":
            continue  # {type: ids} of loaders; an iterator
        if isinstance(value, (str, tuple)) and name in ("split", "feature[…]", "Tensor[…]", "Tensor[…] ="):
            continue  # a mask's name; several dimensions
        wanted = meaning(value, count, argument.startswith("rows"))
        try:
            got = call(graph, value)
        except REFUSALS as error:
            assert wanted is None or not must(value) or (name == "negative_ids" and not wanted), f"{text}: {error}"
            if not isinstance(error, graphwire.OutOfRangeError):
                assert re.search(argument, str(error)), f"{text}: {error}"
            refused += 1
            continue
        assert wanted is not None, f"{text}: taken as {got}"
        if name in ("push", "Tensor[…] =", "negative_ids"):
            wanted = sorted(wanted if name == "push" else set(wanted))
        assert got == wanted, text
        right += 1
    assert right > 90 and refused > 90


@pytest.mark.parametrize("name", ["core", "signed", "set"])
def test_a_feature_of_bytes_is_a_mask(graph, name):
    feature = graph.feature(name)
    wanted = list(range(5, NODES))
    for mask in (feature, feature[:], feature[:].numpy(), feature[:].bool().tolist()):
        assert graph.gather("number", mask).tolist() == wanted
        assert seeds_of(graphwire.NodeLoader(graph, mask, [1])) == wanted
        assert graph.split(mask, world=1, rank=0).tolist() == wanted
    assert graph.split(name, world=1, rank=0).tolist() == wanted
    with pytest.raises(TypeError, match="no mask"):
        graph.gather("number", graph.feature("number"))


@pytest.mark.filterwarnings("ignore:.*(uint8|non-tuple)")
@pytest.mark.parametrize("feature", ["number", "x", "cube"])
def test_indices_mean_what_they_mean_in_torch(graph, feature):
    """An index means the same as in torch, or is refused with a hint about rows. The call fetches only rows that the
    index names."""
    rows = graph.feature(feature)
    whole = rows[:]
    mask = torch.arange(NODES) % 3 == 1
    first = [3, -1, -NODES, np.int32(4), torch.tensor(3), torch.tensor(-2), np.array(5), slice(None), slice(2, 7, 2),
             slice(-3, None), slice(5, 5), [3, 2], [4], [], range(3), torch.tensor([5, 5, 0]), mask, mask.tolist(),
             mask.to(torch.uint8), ..., None, True, NODES, -NODES - 1, 1.5, "a"]
    rest = [(), (0,), (-1,), (slice(None),), (slice(1, None),), (...,), (..., 0), ([0, 1],), (torch.tensor([1, 0, 1]),),
            (None,), (0, 0), (slice(None), 1), (0, [1, 0, 1]), ([1, 0, 1], [0, 1, 2]), (9,), ("a",),
            (slice(None), None)]
    taken = 0
    for one, more in itertools.product(first, rest):
        index = one if more == () else (one, *more)
        try:
            wanted = whole[index]
        except (IndexError, TypeError, ValueError, RuntimeError):
            wanted = None
        try:
            got = rows[index]
        except (*REFUSALS, RuntimeError) as error:
            assert wanted is None or one is None or one is True or "ellipsis" in str(error), f"{index}: {error}"
            continue
        assert wanted is not None and got.shape == wanted.shape and torch.equal(got, wanted), index
        taken += 1
    assert taken > 40
    assert torch.equal(rows[()], whole) and torch.equal(rows[..., -1], whole[..., -1])
    for index in ((3, 2, 1, 0), None, True, "a", 1.5, [[1], [2]], (None, 3)):
        with pytest.raises(REFUSALS, match="row"):
            rows[index]


def test_an_index_fetches_its_rows_alone(graph, monkeypatch):
    asked, gather = [], _arrays.gather

    def noted(client, tensor, ids, *more):
        asked.append(len(ids))
        return gather(client, tensor, ids, *more)

    monkeypatch.setattr(_arrays, "gather", noted)
    rows = graph.feature("cube")
    for index in (3, -1, (3, 1), (3, 1, 2), [4, 4], (slice(2, 5), 0), ([1, 2], [0, 1]), (..., 3, 1, 2)):
        rows[index]
    assert asked == [1, 1, 1, 1, 2, 3, 2, 1]


def test_rows_of_numpy(graph):
    with graphwire.open(graph._options["part_config"], numpy=True) as other:
        rows = other.feature("cube")
        whole = rows[:]
        for index in (3, -1, (3, 1), [3, 2], slice(4, 1, -1), whole[:, 0, 0] > 20, ([1, 2], [0, 1]), (..., 2)):
            assert np.array_equal(rows[index], whole[index])
        assert rows[3, 1, 2].dtype == whole.dtype and other.feature("number")[3] == 3


def test_whole_rows_are_overwritten(graph):
    tensor, copy = graph.create_tensor("written", (5, 3)), torch.zeros(5, 3)
    for number, index in enumerate((1, -1, torch.tensor(2), [0, 3], slice(3, None), ..., copy[:, 0] == 0, (2, ...),
                                    (slice(None), slice(None))), 1):
        tensor[index] = number
        copy[index] = number
        assert torch.equal(tensor[:], copy)
    tensor[3] = [1, 2, 3]
    copy[3] = torch.tensor([1, 2, 3])
    for index in ((3, 1), (slice(None), 0), True, [True], None, 2.5, "a", [9], 5):
        with pytest.raises(REFUSALS):
            tensor[index] = 7
    assert torch.equal(tensor[:], copy)


def test_rows_of_an_embedding(graph):
    table = optim.Embedding(graph, "looked", 3, rows=5)
    whole = table.weight
    assert torch.equal(table(4), whole[4]) and torch.equal(table(torch.tensor(2)), whole[2])
    optimizer = optim.SparseSGD([table], 1.0)
    optimizer.zero_grad()
    table(4).sum().backward()
    optimizer.step()
    assert torch.equal(table.weight[4], whole[4] - 1) and torch.equal(table.weight[:4], whole[:4])


# --- Numbers, words, switches. ---

NO_INTEGERS = (True, np.True_, torch.tensor(True), 1.0, 2.5, np.float32(2), float("nan"), "2", b"2", [2], None, 1j,
               torch.tensor(2.0), np.array([2]), torch.tensor([2]))
NO_NUMBERS = (True, np.True_, "2", [2], None, 1j, np.array([2.0]), float("nan"), float("inf"), -1)
NO_SWITCHES = ("yes", "False", 2, 1.0, None, [], torch.tensor([True]))


LOADERS = (graphwire.NodeLoader, graphwire.EdgeLoader)


def integers(graph):
    """(argument, a call with it, invalid numbers)."""
    for (name, wrong), kind in itertools.product((
            ("batch_size", (0, -3, 2**24 + 1, 2**70)), ("depth", (0, -1, 257, 2**40)), ("seed", (-1, 2**64))), LOADERS):
        yield name, lambda value, name=name, kind=kind: kind(graph, None, [2], **{name: value}), wrong
    yield "world", lambda value: graphwire.NodeLoader(graph, None, [2], world=value, rank=0), (0, -1, 2**40)
    yield "rank", lambda value: graphwire.NodeLoader(graph, None, [2], world=3, rank=value), (-1, 3, 2**40)
    yield "rank", lambda value: graph.split(None, world=3, rank=value), (-1, 3, 2**40)
    yield "fanouts", lambda value: graphwire.NodeLoader(graph, None, [value]), (-2, 2**31)
    yield "fanouts", lambda value: graphwire.sample(graph, [1], [{"_E": value}]), (-2, 2**31)
    yield "negatives", lambda value: graphwire.EdgeLoader(graph, None, [2], negatives={"_E": value}), (-1, 2**40)
    for name in ("seed", "stream"):
        yield name, lambda value, name=name: graphwire.sample(graph, [1], [2], **{name: value}), (-1, 2**64)
        yield name, lambda value, name=name: graph.neighbours([1], **{name: value}), (-1, 2**64)
    yield "fanout", lambda value: graph.neighbours([1], fanout=value), (-2, 2**31)
    for call in (graph.part_range, graph.part_edge_range, graph.transport):
        yield "part", call, (-1, 1, 2**40)
    path = graph._options["part_config"]
    yield "threads", lambda value: graphwire.open(path, threads=value), (-1, 2**40)
    yield "seed", lambda value: graph.create_tensor("n", (3, 3), seed=value), (-1, 2**64)
    yield "shape", lambda value: graph.create_tensor("n", (3, value)), (-1, 2**70)
    yield "width", lambda value: optim.Embedding(graph, "n", value, rows=3), (0, -1, 2**40)
    yield "step", lambda value: graph.create_tensor("pushed", (3, 1)).push([1], [[1]], kind="adam", lr=1, step=value), (
        -1, 2**64)
    for name, wrong in (("num_parts", (0, -1, 2**40)), ("num_trainers_per_machine", (0, -1)), ("seed", (-1, 2**64)),
                        ("num_nodes", (-1, 2**64))):
        yield name, lambda value, name=name: graphwire.partition_graph(
            ([0], [1]), "n", **{"num_parts": 1, "out": "/nowhere/at/all", name: value}), wrong


def numbers(graph):
    for name in ("lr", "eps"):
        yield name, lambda given, name=name: graph.create_tensor("pushed", (3, 1)).push(
            [1], [[1]], **{"kind": "adam", "lr": 1.0, name: given}), (1e39,)
        for optimizer in (optim.SparseAdam, optim.SparseAdagrad):
            yield name, lambda given, name=name, optimizer=optimizer: optimizer([], **{name: given}), (1e39,)
    yield "lr", lambda given: optim.SparseSGD([], given), (1e39,)
    yield "betas", lambda given: optim.SparseAdam([], betas=(0.5, given)), (1, 2)
    yield "initial", lambda given: graph.create_tensor("n", 3, initial=("uniform", given, 2)), (3,)
    path = graph._options["part_config"]
    yield "timeout", lambda given: graphwire.open(path, timeout=given), (0, -0.5, 1e300)
    yield "reconnect", lambda given: graphwire.open(path, reconnect=given), (-0.5, 1e300)
    yield "idle", lambda given: graphwire.open(path, idle=given), (0, -0.5, 1e300)


def switches(graph):
    for name, kind in itertools.product(("shuffle", "replace"), LOADERS):
        yield name, lambda value, name=name, kind=kind: kind(graph, None, [2], **{name: value})
    yield "no_true_edges", lambda value: graphwire.EdgeLoader(graph, None, [2], no_true_edges={"_E": value})
    yield "out_edges", lambda value: graph.neighbours([1], out_edges=value)
    yield "kept", lambda value: graph.create_tensor("n", 3, kept=value)
    yield "sync", lambda value: optim.SparseSGD([], 1.0, sync=value)
    path = graph._options["part_config"]
    for name in ("insecure", "verify", "numpy"):
        yield name, lambda value, name=name: graphwire.open(path, **{name: value})
    yield "transpose", lambda value: graphwire.partition_graph(([0], [1]), "n", 1, "/nowhere/at/all", transpose=value)


def words(graph):
    for name, kind in itertools.product(("last", "index_dtype"), LOADERS):
        yield name, lambda value, name=name, kind=kind: kind(graph, None, [2], **{name: value})
    yield "negative_end", lambda value: graphwire.EdgeLoader(graph, None, [2], negatives=1, negative_end=value)
    yield "exclude", lambda value: graphwire.EdgeLoader(graph, None, [2], exclude=[value])
    yield "place", lambda value: graph.create_tensor("n", 3, place=value)
    yield "dtype", lambda value: graph.create_tensor("n", 3, value)
    yield "kind", lambda value: graph.create_tensor("pushed", (3, 1)).push([1], [[1]], kind=value, lr=1.0)
    yield "combine", lambda value: optim.SparseAdam([], combine=value)
    yield "combine", lambda value: graph.create_tensor("pushed", (3, 1)).push([1], [[1]], kind="sgd", lr=1.0,
                                                                             combine=value)


def refused(name, call, value):
    with pytest.raises(REFUSALS) as error:
        call(value)
    assert name in str(error.value) and not isinstance(error.value, OverflowError), (name, value)


def test_invalid_numbers_are_refused_by_name_and_leave_nothing(graph):
    graph.create_tensor("pushed", (3, 1))
    before = sorted(tensor["name"] for tensor in graph.tensors)
    for name, call, wrong in integers(graph):
        for value in (*NO_INTEGERS, *wrong):
            if value is not None or name not in ("threads", "negatives", "num_nodes", "rank", "world"):
                refused(name, call, value)
    for name, call, wrong in numbers(graph):
        for value in (*NO_NUMBERS, *wrong):
            if (value is None and name in ("timeout", "reconnect", "idle")) or (value == -1 and name == "initial"):
                continue
            refused(name, call, value)
    for name, call in switches(graph):
        for value in NO_SWITCHES:
            if value is not None or name != "no_true_edges":
                refused(name, call, value)
    for name, call in words(graph):
        for value in ("bogus", 3, "", ("short",), "adam " if name == "kind" else "adam"):
            if (name, value) != ("kind", "adam"):
                refused(name, call, value)
    assert sorted(tensor["name"] for tensor in graph.tensors) == before
    graph.open_tensor("pushed").push([1], [[1.0]], kind="sgd", lr=1.0)  # no failed push has fixed another optimizer
    assert graph.open_tensor("pushed")[:].flatten().tolist() == [0, -1, 0]


def test_numbers_of_numpy_and_torch_are_numbers(graph):
    whole = [batch.digest() for batch in graphwire.NodeLoader(graph, None, [2, 1], batch_size=5, seed=3, shuffle=True)]
    for one in (np.int8, np.uint64, np.array, torch.tensor):
        loader = graphwire.NodeLoader(graph, None, [one(2), one(1)], batch_size=one(5), seed=one(3), depth=one(2),
                                      shuffle=np.True_)
        assert [batch.digest() for batch in loader] == whole
    made = graph.create_tensor("sized", (np.int32(3), torch.tensor(2)), initial=np.float32(0.5),
                               seed=np.uint64(2**64 - 1))
    made.push([1], [[1, 1]], kind="sgd", lr=torch.tensor(0.5))
    assert made[:].tolist() == [[0.5, 0.5], [0, 0], [0.5, 0.5]]


def test_servers_that_are_given_are_not_none(graph):
    for servers in ([], (), "", " , ", iter(())):
        with pytest.raises(ValueError, match="servers"):
            graphwire.open(graph._options["part_config"], servers)


# --- Fanouts. ---

def degrees_of(graph, fanouts):
    """[hop, beginning at the seeds][relation] of a seed's in-degrees."""
    batch = next(iter(graphwire.NodeLoader(graph, [0], fanouts)))
    return [{etype: int(edges.in_degrees[0]) for etype, edges in block.edges.items()}
            for block in reversed(batch.blocks)]


THREE, SEVEN = "a:3:a", "a:7:a"


@pytest.mark.parametrize("fanouts, wanted", [
    ([2, 3], [{THREE: 2, SEVEN: 2}, {THREE: 3, SEVEN: 3}]),
    ((2,), [{THREE: 2, SEVEN: 2}]),
    (range(1, 3), [{THREE: 1, SEVEN: 1}, {THREE: 2, SEVEN: 2}]),
    (np.array([2, -1]), [{THREE: 2, SEVEN: 2}, {THREE: 9, SEVEN: 9}]),
    (torch.tensor([4], dtype=torch.int32), [{THREE: 4, SEVEN: 4}]),
    ([{"3": 2}, 1], [{THREE: 2}, {THREE: 1, SEVEN: 1}]),
    ([{"3": 2, SEVEN: 5}], [{THREE: 2, SEVEN: 5}]),
    ({"3": [2, 1], "7": [4, 3]}, [{THREE: 2, SEVEN: 4}, {THREE: 1, SEVEN: 3}]),
    ({("a", "7", "a"): (4, 0), THREE: np.array([2, 1])}, [{THREE: 2, SEVEN: 4}, {THREE: 1}]),
    ({"3": torch.tensor([2]), "7": range(1, 2)}, [{THREE: 2, SEVEN: 1}]),
])
def test_fanouts_in_every_form(of_relations, fanouts, wanted):
    assert degrees_of(of_relations, fanouts) == wanted
    sampled = graphwire.sample(of_relations, [0], fanouts)
    assert [set(block.edges) for block in reversed(sampled.blocks)] == [set(hop) for hop in wanted]


@pytest.mark.parametrize("fanouts", [
    5, None, "5", "55", b"5", 2.0, [], (), {}, [1.9], ["5"], [True], [[2, 2]], [None], np.array([1.0]), np.array([[2]]),
    torch.tensor([2.0]), np.array([True]), [np.float64(2)], {2, 3}, iter([2]), [-2], [2**31], [{3: 2}], [{"3": 2.5}],
    [{"3": "2"}], [{"3": [2]}], [{None: 2}], [{"x": 2}], [{"3": 2, THREE: 2}], {"3": 2, "7": 2},
    {"3": [2], "7": [2, 2]}, {"3": [2]}, {"3": [2], "7": ["2"]}, {"3": "2", "7": "2"}, {"3": [], "7": []},
    {3: [2], 7: [2]},
    {"3": [2], "7": [2], "x": [2]}, {"3": [2], "7": [2], THREE: [2]}, {"3": [2.5], "7": [2]}, {"3": [True], "7": [1]}])
def test_other_fanouts_are_refused_by_name(of_relations, fanouts):
    with pytest.raises((ValueError, TypeError, graphwire.NotFoundError), match="fanouts"):
        graphwire.NodeLoader(of_relations, None, fanouts)


# --- Empty lists. ---

@pytest.mark.parametrize("empty", [[], (), range(0), np.array([], np.int64), torch.tensor([]), slice(0, 0),
                                   np.zeros(EDGES, bool)])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"last": "drop"}, {"last": "wrap"}, {"world": 3, "rank": 1},
                                     {"device": "cpu"}])
def test_no_seeds_are_no_batches(graph, empty, options):
    of_nodes = np.zeros(NODES, bool) if isinstance(empty, np.ndarray) and len(empty) else empty
    loaders = [graphwire.NodeLoader(graph, of_nodes, [2], features="x", labels="number", **options),
               graphwire.NodeLoader(graph, {"_N": of_nodes}, [2], labels={"_N": "number"}, **options),
               graphwire.NodeLoader(graph, {}, [2], labels={"_N": "number"}, **options),
               graphwire.EdgeLoader(graph, empty, [2], negatives=2, exclude=["edges"], **options),
               graphwire.EdgeLoader(graph, {"_E": empty}, [2], reverse_etype="_E", **options),
               graphwire.EdgeLoader(graph, {}, [2], negatives={"_E": 2}, exclude="reverse", **options)]
    for loader in loaders:
        assert len(loader) == 0
        for epoch in range(2):
            assert loader.state_dict()["epoch"] == epoch and list(loader) == []
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert list(loader) == []


def test_a_rank_without_seeds_takes_part(parts):
    with graphwire.open(parts) as graph:
        mask = torch.zeros(graph.num_nodes(), dtype=torch.bool)
        mask[5] = True
        shares = [graph.split(mask, world=3, rank=rank) for rank in range(3)]
        found = [seeds_of(graphwire.NodeLoader(graph, share, [2], world=1, rank=0)) for share in shares]
        assert sorted(found) == [[], [], [5]]


def test_an_empty_list_is_not_all(graph, tmp_path):
    with pytest.raises(graphwire.InvalidError, match="draw negatives"):
        graphwire.EdgeLoader(graph, None, [2], negatives=1, negative_ids=[])
    graph.create_tensor("saved", 3)
    with pytest.raises(graphwire.InvalidError, match="names"):
        graph.checkpoint(tmp_path / "none", [])
    graph.checkpoint(tmp_path / "all")
    with pytest.raises(graphwire.InvalidError, match="names"):
        graph.restore(tmp_path / "all", [])
    assert not (tmp_path / "none").exists()
    assert graph.split([], world=1, rank=0).tolist() == []
    assert len(graph.find_edges([])[0]) == len(graph.neighbours([])) == 0
    assert graphwire.sample(graph, [], [2]).num_seeds == 0
