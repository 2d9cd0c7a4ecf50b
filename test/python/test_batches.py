"""What an array of a mini-batch keeps alive; and mini-batches that are copied, pickled, and sent to other processes."""

from __future__ import annotations

import copy
import copyreg
import io
import multiprocessing
import pickle
import weakref

import graphwire
import numpy as np
import pytest
import torch
from graphwire._base.native import ffi
from graphwire._train.batch import _leaves

FEATURES = {"paper": ["feat", "year"], "author": "age"}
ALIKE = ["epoch", "step", "edge_type", "true_edges"]


def batches_of(graph):
    """{kind: the batch}; the arrays are NumPy's if the graph's are."""
    several = {"paper": [3, 1, 3], "author": [5, 7]}
    edges = {"features": FEATURES, "edge_features": {"cites": "strength"}, "batch_size": 30}
    return {
        "nodes": graphwire.sample(graph, [5, 9, 5], [4, 2], ntype="paper", features=FEATURES, labels=["year", "label"],
                                  edge_features={"cites": ["strength"]}),
        "several": graphwire.sample(graph, several, [4, 2], features=FEATURES, labels={"paper": "year"},
                                    index_dtype="int32"),
        "none": graphwire.sample(graph, [], [2], ntype="paper", features=FEATURES),
        "edges": next(iter(graphwire.EdgeLoader(graph, None, [3, 2], etype="cites", negatives=2, labels="strength",
                                                **edges))),
        "several edges": next(iter(graphwire.EdgeLoader(graph, {"cites": range(50), "writes": range(50)}, [3],
                                                        negatives={"cites": 1}, labels={"cites": "strength"},
                                                        **edges)))}


KINDS = ["nodes", "several", "none", "edges", "several edges"]


@pytest.fixture(scope="module", params=[False, True], ids=["torch", "numpy"])
def graph(request, hetero):
    with graphwire.open(hetero, numpy=request.param) as opened:
        yield opened


def small_of(batch):
    """The arrays that a user may keep, except rows of features, rows of edges and blocks."""
    return [array for part in (batch.seeds, batch.seed_rows, batch.src_rows, batch.dst_rows, batch.negative_rows,
                               batch.nodes, batch.labels) for array in _leaves(part)]


@pytest.mark.parametrize("kind", KINDS)
def test_small_arrays_keep_no_batch(graph, kind):
    batch = batches_of(graph)[kind]
    lease, kept = weakref.ref(batch._lease), small_of(batch)
    values = [np.asarray(array).copy() for array in kept]
    assert len(kept) > 3
    del batch
    assert lease() is None
    next(iter(graphwire.NodeLoader(graph, None, [4], ntype="paper", features=FEATURES)))  # acquires the memory
    assert all(np.array_equal(array, value) for array, value in zip(kept, values))


def large_of(batch):
    """Rows of features, rows of edges and blocks, if the batch has them."""
    edges = [some for block in batch.blocks for some in block.edges.values()]
    found = [*_leaves(batch.features), *[array for some in edges for array in (
        some.indptr, some.indices, some.edge_ids, *some.data.values())]]
    return [array for array in found if len(array)]


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_large_arrays_are_no_copies(graph, kind):
    """Each is a view of the batch's memory, and a slice of one keeps all of it alive."""
    for place in range(len(large_of(batches_of(graph)[kind]))):
        batch = batches_of(graph)[kind]
        lease, part = weakref.ref(batch._lease), large_of(batch)[place][-1:]
        del batch
        assert lease() is not None and len(part) == 1
        del part
        assert lease() is None


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other)


def check_equal(one, other):
    for name in ("seeds", "seed_rows", "src_rows", "dst_rows", "negative_rows", "nodes", "groups", "seed_times",
                 "features", "labels"):
        assert same(getattr(one, name), getattr(other, name)), name
    assert [getattr(one, name) for name in ALIKE] == [getattr(other, name) for name in ALIKE]
    assert len(one.blocks) == len(other.blocks)
    for block, again in zip(one.blocks, other.blocks):
        assert (block.num_src, block.num_dst) == (again.num_src, again.num_dst)
        assert block.edges.keys() == again.edges.keys()
        for name, edges in block.edges.items():
            assert repr(edges) == repr(again[name])
            for field in ("indptr", "indices", "edge_ids", "dst", "data"):
                assert same(getattr(edges, field), getattr(again[name], field)), field
    assert repr(one) == repr(other)


def size_of(batch):
    return sum(array.nbytes for array in batch._tensors())


def saved(batch):
    file = io.BytesIO()
    torch.save(batch, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_equal(graph, kind):
    """Copies are separate: they do not keep the batch's memory alive, except copy.copy, which shares the batch's
    arrays."""
    batch = batches_of(graph)[kind]
    lease, kept = weakref.ref(batch._lease), batches_of(graph)[kind]
    check_equal(batch, copy.copy(batch))
    again = [pickle.loads(pickle.dumps(batch, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    again += [copy.deepcopy(batch), saved(batch)]
    assert len(pickle.dumps(batch)) < 2 * size_of(batch) + 40000
    edges = list(pickle.loads(pickle.dumps(batch.blocks[0])).edges.values())
    assert [repr(some) for some in edges] == [repr(some) for some in batch.blocks[0].edges.values()]
    batch.digest()
    del batch
    assert lease() is None
    for one in again:
        check_equal(kept, one)
        with pytest.raises(ValueError, match="pickled"):
            one.digest()


class Pickled:
    """Becomes a Batch that has this state."""

    def __init__(self, state):
        self.state = state

    def __reduce__(self):
        return copyreg._reconstructor, (graphwire.Batch, object, None), self.state


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_an_older_version_pickled(graph, kind):
    """It lacks the attributes that came later."""
    batch = batches_of(graph)[kind]
    state = {name: value for name, value in batch.__getstate__().items() if name not in ("groups", "seed_times")}
    again = pickle.loads(pickle.dumps(Pickled(state)))
    for one in (again, pickle.loads(pickle.dumps(again)), again._changed(lambda array: array)):
        check_equal(batch, one)


class Batches(torch.utils.data.IterableDataset):
    """A loader in a DataLoader's worker, with a batch's parts and lists of edges."""

    def __init__(self, folder):
        self.folder = folder

    def __iter__(self):
        with graphwire.open(self.folder) as graph:
            yield from batches_of(graph).values()
            yield graph.neighbours([1, 2, 3], "cites")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_of_another_process(hetero, method):
    """Sent through a worker's queue, as the loaders of Accelerate and Fabric need it."""
    *batches, around = torch.utils.data.DataLoader(Batches(hetero), batch_size=None, num_workers=1,
                                                   multiprocessing_context=method)
    with graphwire.open(hetero) as graph:
        for one, other in zip(batches_of(graph).values(), batches, strict=True):
            check_equal(one, other)
        assert torch.equal(around.edge_ids, graph.neighbours([1, 2, 3], "cites").edge_ids)


MADE = ["nodes", "groups", "blocks", "features"]
OF_A_PICKLE = {"epoch", "step", "frontier", "seeds", "seed_rows", "nodes", "blocks", "features", "labels", "etypes",
               "src_rows", "dst_rows", "negative_rows", "true_edges", "edge_type", "groups", "seed_times", "_lease"}


@pytest.fixture(scope="module")
def many_types(tmp_path_factory):
    """Forty edge types between seven node types, some of which have no edges or no nodes."""
    random, counts = np.random.default_rng(3), {f"n{i}": 30 * i for i in range(7)}
    edges, rows = {}, {}
    for number in range(40):
        ends = random.integers(0, 7, 2)
        amount = int(random.integers(0, 4)) * 40 * bool(ends.all())
        edges[f"n{ends[0]}", f"r{number}", f"n{ends[1]}"] = np.stack(
            [random.integers(0, max(30 * end, 1), amount) for end in ends])
    for etype, some in edges.items():
        rows[etype] = {"w": np.arange(some.shape[1], dtype=np.float32), "b": np.arange(some.shape[1]) % 200 > 9}
    return graphwire.partition_graph(
        edges, "many", 2, tmp_path_factory.mktemp("many") / "parts", num_nodes=counts, edge_features=rows,
        node_features={kind: {"x": random.random((counts[kind], 2)), "u": np.arange(counts[kind], dtype=np.uint16)}
                       for kind in ("n2", "n5")})


def read(pointer, count, dtype):
    """A copy of memory, read field by field."""
    return np.frombuffer(bytes(ffi.buffer(ffi.cast("char *", pointer), count * np.dtype(dtype).itemsize)), dtype)


def check_against_memory(graph, batch, minibatch, index):
    for number, ntype in enumerate(graph.ntypes):
        assert same(read(minibatch.nodes[number], minibatch.node_counts[number], np.int64),
                    np.asarray(batch.nodes[ntype]))
        assert batch.groups is None or same(
            read(minibatch.groups[number], minibatch.node_counts[number], np.uint32).astype(np.int64),
            np.asarray(batch.groups[ntype]))
    for hop, block in enumerate(reversed(batch.blocks)):
        there = minibatch.blocks[hop]
        assert list(block.num_src.values()) == [there.src_counts[i] for i in range(len(graph.ntypes))]
        assert list(block.num_dst.values()) == [there.dst_counts[i] for i in range(len(graph.ntypes))]
        assert list(block.edges) == [graph.etypes[there.edges[i].etype] for i in range(there.edges_count)]
        for number, edges in enumerate(block.edges.values()):
            some = there.edges[number]
            assert (edges.src_type, edges.dst_type) == graph.ends(edges.etype)
            assert (edges.num_src, edges.num_dst, edges.dst_first) == (
                block.num_src[edges.src_type], some.dst_count, some.dst_first)
            for array, pointer, count, dtype in ((edges.indptr, some.indptr, some.dst_count + 1, np.int64),
                                                 (edges.indices, some.indices, some.edge_count, index),
                                                 (edges.edge_ids, some.edge_ids, some.edge_count, np.int64)):
                assert same(np.asarray(array), read(pointer, count, dtype))


@pytest.mark.parametrize("numpy", [False, True], ids=["torch", "numpy"])
def test_attributes_are_made_when_they_are_asked_for(many_types, numpy):
    """In any order, by a copy first, of a closed graph: the arrays are those of the library's memory. What is asked for
    twice is one object."""
    random = np.random.default_rng(5)
    graph = graphwire.open(many_types, numpy=numpy)
    for turn in range(12):
        options = {"frontier": ["all", "new"][turn % 2], "index_dtype": ["int64", "int32"][turn // 2 % 2],
                   "disjoint": turn % 3 == 0}
        edges = {graph.etypes[i]: ["w", "b"] for i in random.choice(40, 5, replace=False)}
        batch = graphwire.sample(graph, {"n3": random.integers(0, 90, 20), "n6": [turn]}, [3, 2], seed=turn,
                                 features={"n2": ["x", "u"], "n5": "x"}, edge_features=edges, **options)
        count, again = batch.num_edges, pickle.loads(pickle.dumps(batch)) if turn % 4 == 3 else None
        for name in random.permutation(MADE):
            assert name not in vars(batch) or again is not None
            assert getattr(batch, name) is getattr(batch, name)
        assert (batch.groups is None) == (turn % 3 != 0)
        assert count == batch.num_edges == sum(block.num_edges for block in batch.blocks)
        check_against_memory(graph, batch, batch._lease.minibatch, options["index_dtype"])
        for ntype, rows in batch.features.items():
            assert list(rows) == {"n2": ["x", "u"], "n5": ["x"]}.get(ntype, [])
            assert all(same(np.asarray(some), np.asarray(graph.feature(name, ntype)[batch.nodes[ntype]]))
                       for name, some in rows.items())
        for some in (some for block in batch.blocks for some in block.edges.values()):
            assert list(some.data) == edges.get(some.etype, [])
            assert all(same(np.asarray(rows), np.asarray(graph.feature(name, etype=some.etype)[some.edge_ids]))
                       for name, rows in some.data.items())
        check_equal(batch, pickle.loads(pickle.dumps(batch)) if again is None else again)
        assert batch.__getstate__().keys() == OF_A_PICKLE
    last = graphwire.sample(graph, {"n3": [4, 5]}, [2])
    lease, nodes = weakref.ref(last._lease), last.nodes["n3"]
    graph.close()
    assert len(last.blocks) == 1 and list(nodes[:2]) == [4, 5]
    blocks = last.blocks
    del last
    assert lease() is not None
    del blocks
    assert lease() is None


def test_what_nobody_asks_for_ends_with_the_batch(many_types):
    with graphwire.open(many_types) as graph:
        loader = graphwire.NodeLoader(graph, None, [2, 2], ntype="n3", batch_size=9)
        leases = [weakref.ref(batch._lease) for batch in loader]
        assert len(leases) == 10 and not any(lease() for lease in leases[:-1])
        for batch in loader:
            assert batch.num_edges and not vars(batch).keys() & set(MADE)


def _sent(batch, pipe):
    pipe.send((batch, batch.num_seeds, [len(array) for array in small_of(batch)]))
    pipe.recv()  # torch shares memory only while its sender runs


def test_a_batch_goes_to_a_child_and_back(graph):
    batch = batches_of(graph)["nodes"]
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_sent, args=(batch, theirs))
    child.start()
    again, seeds, lengths = ours.recv()
    ours.send("done")
    child.join()
    check_equal(batch, again)
    assert (seeds, lengths) == (3, [len(array) for array in small_of(batch)])


def test_a_part_of_a_list_goes_alone(graph):
    whole = graph.neighbours(range(300), "cites")
    part = whole.of(7)
    for again in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
        assert np.array_equal(again.src, part.src) and np.array_equal(again.offsets, part.offsets)
    assert len(pickle.dumps(part)) < 4000 < whole.edge_ids.nbytes


def test_objects_of_a_process_cannot_be_sent(graph):
    node, edge = graphwire.NodeLoader(graph, None, [2], ntype="paper"), graphwire.EdgeLoader(graph, None, [2],
                                                                                             etype="cites")
    table = graph.create_tensor("mine", (3, 2))
    for one in (node, edge, iter(node), graph._client, table, [table], {"loader": edge}):
        for way in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="process") as error:
                way(one)
            assert "\n" not in str(error.value) and "cffi" not in str(error.value)
    graph.delete_tensor("mine")
