"""Ids of every type and shape at the interfaces of DGL and PyTorch Geometric, compared with NumPy's and torch's
meaning; masks of splits; invalid seeds; arguments that are refused by name and leave nothing behind."""

from __future__ import annotations

import re

import graphwire
import numpy as np
import pytest
import torch
import torch_geometric.loader
from graphwire import pyg
from graphwire.dgl.distributed import split as of_split
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install
from graphwire.pyg.stores import NodeAttr
from id_forms import ROWS, forms, meaning, must

dgl = install()
EDGES = 2 * ROWS
REFUSALS = (IndexError, TypeError, ValueError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ring, 0 <- 1 <- 2 ..., of nodes with self loops."""
    ids = np.arange(ROWS)
    src = np.sort(np.stack([ids, (ids + 1) % ROWS], 1), 1).reshape(-1)
    return graphwire.partition_graph(
        (src, np.repeat(ids, 2)), "ring", 1, tmp_path_factory.mktemp("ring") / "parts", method="random",
        transpose=True, node_features={"number": ids, "core": (ids >= 5).astype(np.uint8)},
        edge_features={"edge": np.arange(EDGES)})


@pytest.fixture(scope="module")
def g(folder):
    dgl.distributed.initialize("there_is_no_ip_config.txt")
    graph = dgl.distributed.DistGraph("ring", part_config=str(folder))
    made["tensor"] = dgl.distributed.DistTensor((ROWS,), torch.int64, "written")
    made["table"] = dgl.distributed.DistEmbedding(ROWS, 1, "table")
    made["table"].weight[:] = torch.arange(ROWS)[:, None]
    yield graph
    made.clear()
    dgl.distributed.exit_client()


@pytest.fixture(scope="module")
def graph(folder):
    with graphwire.open(folder) as opened:
        yield opened


made = {}  # a DistTensor and a DistEmbedding of the graph


def sampled(g, ids):
    return dgl.distributed.sample_neighbors(g, ids, -1).edges()[1][::2].tolist()


def written(g, ids):
    tensor = made["tensor"]
    tensor[:] = torch.zeros(ROWS, dtype=torch.int64)
    tensor[ids] = torch.tensor(1)
    return torch.nonzero(tensor[:]).flatten().tolist()


def loaded(g, ids):
    sampler = dgl.dataloading.NeighborSampler([1])
    return [one for _, seeds, _ in dgl.distributed.DistNodeDataLoader(g, ids, sampler, batch_size=5)
            for one in (seeds["_N"] if isinstance(seeds, dict) else seeds).tolist()]


def loaded_edges(g, ids):
    sampler = dgl.dataloading.NeighborSampler([1])
    found = dgl.distributed.DistEdgeDataLoader(g, ids, sampler, batch_size=5)
    return [one for _, pairs, _ in found for one in pairs.edata[dgl.EID].tolist()]


def excluded(g, ids):
    left = g.sample_neighbors(torch.arange(ROWS), -1, exclude_edges=ids).edata[dgl.EID]
    return sorted(set(range(EDGES)) - set(left.tolist()))


def around(g, ids):
    return sorted(set(dgl.distributed.in_subgraph(g, ids).edges()[1].tolist()))


# A call that returns the ids that it got; how many ids exist; its argument's name; the order of its result.
INTERFACES = {
    "DistTensor[…]": (lambda g, ids: g.ndata["number"][ids].tolist(), ROWS, "rows", list),
    "DistTensor[…] =": (written, ROWS, "rows", set),
    "DistEmbedding": (lambda g, ids: made["table"](ids).flatten().tolist(), ROWS, "idx", list),
    "edata[…]": (lambda g, ids: g.edata["edge"][ids].tolist(), EDGES, "rows", list),
    "sample_neighbors": (sampled, ROWS, "nodes", list),
    "in_subgraph": (around, ROWS, "nodes", set),
    "find_edges": (lambda g, ids: (2 * g.find_edges(ids)[1]).tolist(), EDGES, "ids", "even"),
    "edge_subgraph": (lambda g, ids: g.edge_subgraph(ids, relabel_nodes=False).edata[dgl.EID].tolist(), EDGES, "edges",
                      list),
    "exclude_edges": (excluded, EDGES, "exclude_edges", set),
    "nid2partid": (lambda g, ids: [0] * len(g.get_partition_book().nid2partid(ids)), ROWS, "ids", "zeros"),
    "nid2localnid": (lambda g, ids: g.get_partition_book().nid2localnid(ids, 0).tolist(), ROWS, "ids", list),
    "map_to_homo_eid": (lambda g, ids: g.get_partition_book().map_to_homo_eid(ids).tolist(), EDGES, "ids", list),
    "map_to_per_ntype": (lambda g, ids: g.get_partition_book().map_to_per_ntype(ids)[1].tolist(), ROWS, "ids", list),
    "DistNodeDataLoader": (loaded, ROWS, "nids", list),
    "DistNodeDataLoader, by type": (lambda g, ids: loaded(g, {"_N": ids}), ROWS, "nids", list),
    "DistEdgeDataLoader": (loaded_edges, EDGES, "eids", list),
    "DistDataLoader": (lambda g, ids: [one for batch in dgl.distributed.DistDataLoader(ids, 5) for one in batch], None,
                       "dataset", list),
}
ORDERS = {list: list, set: lambda ids: sorted(set(ids)), "even": lambda ids: [one - one % 2 for one in ids],
          "zeros": lambda ids: [0] * len(ids)}


@pytest.mark.parametrize("name", INTERFACES)
def test_ids_of_dgl_mean_what_they_mean_in_numpy_and_torch(g, name):
    """Ids mean the same as in NumPy and torch, or are refused by name."""
    call, count, argument, order = INTERFACES[name]
    right = refused = 0
    for value, text in forms():
        if isinstance(value, (dict, str, type(iter([])), set, bytes)):
            continue
        if isinstance(value, (slice, tuple)) and not count:
            continue
        if isinstance(value, tuple) and "[" in name:
            continue
        if name == "exclude_edges" and "-1" in text:
            continue  # this edge is not in the sample
        wanted = meaning(value, ROWS if count is None else count)
        masked = str(getattr(value, "dtype", "")).endswith("bool") or (isinstance(value, list) and any(
            isinstance(one, (bool, np.bool_)) or str(getattr(one, "dtype", "")).endswith("bool") for one in value))
        if count is None and (masked or str(getattr(value, "dtype", "")).endswith("int8")):
            wanted = None  # a mask of unknown length
        try:
            got = call(g, value)
        except REFUSALS as error:
            assert wanted is None or not must(value) or count is None, f"{text}: {error}"
            if not isinstance(error, graphwire.OutOfRangeError) and count is not None:
                assert re.search(argument, str(error)), f"{text}: {error}"
            refused += 1
            continue
        if count is None and not masked and wanted is None and np.asarray(value).dtype.kind in "iu":
            continue  # the number of ids is unknown; pairs are rows
        assert wanted is not None, f"{text}: taken as {got}"
        assert got == ORDERS[order](wanted), text
        right += 1
    assert right > 60 and refused > 60


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32"])
def test_the_type_of_an_array_makes_it_a_mask_of_splits(g, dtype):
    """As everywhere: bools, and bytes of 0 and 1. Wider numbers may be ids or labels, and are refused whatever they
    are, also as a DistTensor."""
    book = g.get_partition_book()
    node_split, edge_split = dgl.distributed.node_split, dgl.distributed.edge_split
    random = np.random.default_rng(4)
    tensor = dgl.distributed.DistTensor((ROWS,), getattr(torch, dtype), f"mask-{dtype}")
    for _ in range(5):
        array = (random.random(ROWS) < 0.4).astype(dtype)
        wanted = np.flatnonzero(array).tolist()
        tensor[:] = torch.from_numpy(array)
        for mask in (array, torch.from_numpy(array), tensor, *([array.tolist()] if dtype == "bool" else [])):
            if dtype not in ("bool", "uint8", "int8"):
                with pytest.raises(TypeError, match=r"nodes: .* mask"):
                    node_split(mask, book)
                continue
            assert node_split(mask, book).tolist() == wanted
            assert node_split(mask, book, force_even=False).tolist() == wanted
        if dtype != "bool":
            with pytest.raises(TypeError, match=r"nodes: .* mask"):
                node_split(array.tolist(), book)
            tensor[:] = torch.from_numpy(array) * 3
            with pytest.raises((TypeError, ValueError), match=r"nodes: .* mask"):
                node_split(tensor)
    if dtype not in ("bool", "uint8", "int8"):
        return
    of_edges = (np.arange(EDGES) % 5 == 1).astype(dtype)
    assert edge_split(of_edges, book).tolist() == np.flatnonzero(of_edges).tolist()
    assert node_split(np.zeros(ROWS, dtype), book).tolist() == []
    assert node_split(g.ndata["core"]).tolist() == list(range(5, ROWS))
    for few in ([0, 1], [0], [1]):
        found = of_split._chosen(np.array(few, dtype), len(few), "nodes")
        assert (found is None and all(few)) or found.tolist() == np.flatnonzero(few).tolist()


def test_numbers_that_could_be_all_ids_or_a_mask_of_splits_are_refused():
    for count in (1, 2):
        with pytest.raises(TypeError, match="nodes: a mask"):
            of_split._chosen(np.arange(count), count, "nodes")
    assert of_split._chosen(np.arange(3), 3, "nodes") is None


def test_splits_refuse_invalid_masks(g):
    book = g.get_partition_book()
    assert dgl.distributed.node_split(np.arange(ROWS), book).tolist() == list(range(ROWS))
    assert dgl.distributed.edge_split(torch.arange(EDGES), book).tolist() == list(range(EDGES))
    for array in (np.arange(ROWS)[::-1].copy(), np.full(ROWS, 2), np.arange(ROWS) + 1, np.arange(ROWS) / 2,
                  torch.full((ROWS,), float("nan"))):
        with pytest.raises(TypeError, match="nodes: a mask of nodes is of bool"):
            dgl.distributed.node_split(array, book)
    with pytest.raises(ValueError, match=r"nodes: .* 0 and 1 only"):
        dgl.distributed.node_split(np.full(ROWS, 2, np.uint8), book)
    for array in (np.array(["a"] * ROWS), np.full(ROWS, None)):
        with pytest.raises(TypeError, match="nodes: a mask"):
            dgl.distributed.node_split(array, book)
    for array in (np.ones(ROWS - 1, bool), np.ones((ROWS, 1), bool), np.arange(3), []):
        with pytest.raises(AssertionError, match="length of boolean mask"):
            dgl.distributed.node_split(array, book)
    for rank in (True, 0.0, "0"):
        with pytest.raises(TypeError, match="rank"):
            dgl.distributed.node_split(np.ones(ROWS, bool), book, rank=rank)


def test_no_ids_are_no_batches_of_dgl(g):
    empty = torch.empty(0, dtype=torch.int64)
    for ids in ([], empty, {}, {"_N": []}, np.zeros(ROWS, bool), g.ndata["core"][:] > 1):
        assert loaded(g, ids) == []
    for ids in ([], empty, {}, {"_E": []}, np.zeros(EDGES, bool)):
        assert loaded_edges(g, ids) == []
    assert list(dgl.distributed.DistDataLoader([], 3)) == [] and len(dgl.distributed.DistDataLoader(empty, 3)) == 0
    assert dgl.distributed.sample_neighbors(g, [], 3).num_edges() == 0


def test_arguments_of_dgl_are_refused_by_name_and_leave_nothing(g):
    distributed, loading = dgl.distributed, dgl.dataloading
    graph = context.graph
    before = sorted(tensor["name"] for tensor in graph.tensors)
    policy = g.get_node_partition_policy("_N")
    table = distributed.DistEmbedding(ROWS, 1, "bad")

    def fails(shape, dtype):
        raise ValueError("init_func: mine")

    cases = [(name, lambda value, call=call: call(value), wrong) for name, call, wrong in (
        ("batch_size", lambda value: distributed.DistDataLoader([1], value), (0, -1)),
        ("batch_size", lambda value: distributed.DistNodeDataLoader(g, [1], loading.NeighborSampler([2]),
                                                                    batch_size=value), (0, -1)),
        ("queue_size", lambda value: distributed.DistDataLoader([1], 1, queue_size=value), (-1,)),
        ("fanout", lambda value: distributed.sample_neighbors(g, [1], value), (-2,)),
        ("fanout", lambda value: distributed.sample_neighbors(g, [1], {"_E": value}), (-2,)),
        ("shape", lambda value: distributed.DistTensor((ROWS, value), torch.float32, "bad1", part_policy=policy),
         (-1,)),
        ("shape", lambda value: distributed.DistEmbedding(ROWS, value, "bad2", part_policy=policy), (-1,)),
        ("part", lambda value: g.get_partition_book().partid2nids(value), (-1, 1)))]
    for name, call, wrong in cases:
        for value in (True, 2.5, "2", np.float32(2), *wrong):
            with pytest.raises(REFUSALS, match=name):
                call(value)
    for value in (2.5, "55", [2.0], ["2"], [True], {"_E": 2}):
        with pytest.raises((TypeError, ValueError), match="fanouts"):
            graphwire.dgl.dataloading.NeighborSampler(value)
    for make in (distributed.optim.SparseAdam, distributed.optim.SparseAdagrad):
        for options in ({"lr": -1}, {"lr": "x"}, {"lr": float("nan")}, {"eps": -1}, {"sync": "no"}):
            with pytest.raises((TypeError, ValueError), match=next(iter(options))):
                make([table], **{"lr": 0.1, **options})
    for arguments in (((ROWS, 2), "adam", "bad3"), ((ROWS, 2), torch.float32, "bad4", fails),
                      ((ROWS, 2), torch.float32, "bad5", lambda shape, dtype: torch.zeros(3))):
        with pytest.raises((TypeError, ValueError), match=r"dtype|init_func"):
            distributed.DistTensor(*arguments, part_policy=policy)
    for index in ((3, 2), True, 1.5, "a", None, [True]):
        with pytest.raises(REFUSALS, match="rows"):
            g.ndata["number"][index]
    del table
    g.barrier()  # deletes dropped tensors
    assert sorted(tensor["name"] for tensor in graph.tensors) == before


def test_ids_of_graphs_of_the_subset():
    """In memory, without DGL: the same rule, with DGLError."""
    from graphwire.dgl import subset

    ring = subset.graph(((torch.arange(ROWS) + 1) % ROWS, torch.arange(ROWS)))
    for value, text in forms():
        if isinstance(value, dict) or "-1" in text:
            continue  # {type: ids}; torch's -1
        wanted = meaning(value, ROWS)
        try:
            got = ring.find_edges(value)[1].tolist()
        except (subset.DGLError, IndexError) as error:
            assert wanted is None or not must(value), f"{text}: {error}"
            continue
        assert wanted is not None and got == wanted, text
    mask = torch.arange(ROWS) >= 5
    assert ring.subgraph(mask).num_nodes() == ROWS - 5 and ring.in_degrees(mask).tolist() == [1] * (ROWS - 5)
    assert ring.edge_subgraph(mask.numpy()).num_edges() == ROWS - 5
    for call in (ring.subgraph, ring.edge_subgraph, ring.in_degrees, ring.find_edges):
        for ids in (mask[1:], [True, False], [1.7], torch.tensor([1.0]), "a"):
            if call != ring.in_degrees or ids != "a":
                with pytest.raises(subset.DGLError, match="ids"):
                    call(ids)


def test_the_most_hops(graph, g):
    """Every interface samples 64 hops, and refuses one more by name when the loader, or the sampler, is made."""
    stores, links = pyg.stores(graph, {"x": "number"}), torch.tensor([[0, 1], [1, 2]])
    loading = graphwire.dgl.dataloading  # DGL's own samplers ask for one layer after the other, without a limit
    calls = {
        "fanouts": [lambda hops: graphwire.NodeLoader(graph, [0], hops),
                    lambda hops: graphwire.EdgeLoader(graph, [0], hops),
                    lambda hops: [graphwire.sample(graph, [0], hops)],
                    lambda hops: graphwire.NodeLoader(graph, [0], {"_E": hops}),
                    lambda hops: graphwire.NodeLoader(graph, [0], [{"_E": count} for count in hops]),
                    lambda hops: loading.DistNodeDataLoader(g, [0], loading.NeighborSampler(hops)),
                    lambda hops: loading.DistNodeDataLoader(g, [0], loading.MultiLayerFullNeighborSampler(len(hops))),
                    lambda hops: loading.DistEdgeDataLoader(g, [0], loading.as_edge_prediction_sampler(
                        loading.NeighborSampler(hops)))],
        "num_neighbors": [lambda hops: pyg.NeighborLoader(graph, hops, [0]),
                          lambda hops: pyg.NeighborLoader(stores, hops, [0]),
                          lambda hops: pyg.NeighborLoader(graph, {("_N", "_E", "_N"): hops}, [0]),
                          lambda hops: pyg.LinkNeighborLoader(graph, hops, links),
                          lambda hops: pyg.NodeLoader(stores, pyg.NeighborSampler(graph, hops), [0]),
                          lambda hops: pyg.LinkLoader(stores, pyg.NeighborSampler(graph, hops), (None, links))]}
    for name, makes in calls.items():
        for make in makes:
            assert len(list(make([1] * 64)))
            for many in (65, 200):
                with pytest.raises(graphwire.InvalidError, match=f"{name}: {many} hops: at most 64"):
                    make([1] * many)
    batch = next(iter(pyg.NeighborLoader(graph, [1] * 64, [0])))
    assert len(batch.num_sampled_edges) == 64 and len(batch.num_sampled_nodes) == 65
    sampler = pyg.NeighborSampler(graph, [1])
    with pytest.raises(graphwire.InvalidError, match="num_neighbors: 65 hops"):
        sampler.num_neighbors = [1] * 65


# --- PyTorch Geometric. ---

def test_indices_of_the_feature_store(graph):
    """Through PyG's own get_tensor, which passes them on."""
    store = pyg.FeatureStore(graph, {"x": "number"})
    whole = torch.arange(ROWS)
    for value, text in forms():
        if not isinstance(value, (int, list, slice, range, np.ndarray, np.generic, torch.Tensor)):
            continue
        wanted = meaning(value, ROWS, index=True)
        try:
            got = store._multi_get_tensor([NodeAttr(None, "x", value)])[0]
        except REFUSALS as error:
            assert wanted is None or not must(value), f"{text}: {error}"
            continue
        assert wanted is not None and got.flatten().tolist() == whole[wanted].tolist(), text
    assert torch.equal(store.get_tensor(group_name=None, attr_name="x", index=torch.tensor([3, 1])), whole[[3, 1]])


def test_input_nodes_of_pyg(graph):
    """Masks of bools work as in PyG. PyG would take a mask of bytes for ids, so it is refused."""
    stores, sampler = pyg.stores(graph, {"x": "number"}), pyg.NeighborSampler(graph, [1])

    def seeds(nodes, **options):
        loader = torch_geometric.loader.NodeLoader(stores, node_sampler=sampler, input_nodes=nodes, **options)
        return [one for batch in loader for one in batch.n_id[:batch.batch_size].tolist()]

    mask = torch.arange(ROWS) >= 5
    assert seeds(mask, batch_size=3) == list(range(5, ROWS))
    assert seeds(torch.tensor([7, 2], dtype=torch.int32)) == [7, 2]
    for nodes in (mask.to(torch.uint8), mask.float(), torch.tensor([1.5]), mask.to(torch.int8)):
        for batch_size in (1, ROWS):
            with pytest.raises(TypeError, match="input_nodes"):
                seeds(nodes, batch_size=batch_size)
    for nodes in (torch.empty(0, dtype=torch.int64), torch.zeros(ROWS, dtype=torch.bool)):
        assert seeds(nodes, batch_size=3) == []


def test_arguments_of_pyg_are_refused_by_name_and_leave_nothing(graph):
    for value in (5, "5", [2.5], ["2"], [True], np.array([1.5]), {("_N", "_E", "_N"): 2}, {("_N", "_E", "_N"): [2.5]},
                  [-2], None):
        with pytest.raises((TypeError, ValueError), match="num_neighbors"):
            pyg.NeighborSampler(graph, value)
    assert pyg.NeighborSampler(graph, np.array([3, 2])).num_neighbors.num_hops == 2
    store = pyg.FeatureStore(graph, {"x": "number"})
    for rows in (torch.zeros(3, 2), torch.zeros(1, 2), torch.tensor(1.0), torch.zeros(0, 2),
                 torch.zeros(ROWS, 2, dtype=torch.complex64)):
        with pytest.raises((TypeError, ValueError)):
            store.put_tensor(rows, group_name=None, attr_name="put", index=None)
    assert not graph.tensors
    assert store.put_tensor(torch.ones(ROWS, 2), group_name=None, attr_name="put", index=None)
    with pytest.raises(REFUSALS):
        store.put_tensor(torch.zeros(3, 2), group_name=None, attr_name="put", index=None)
    with pytest.raises(REFUSALS):
        store.put_tensor(torch.zeros(1, 2), group_name=None, attr_name="put", index=[True])
    assert torch.equal(store.get_tensor(group_name=None, attr_name="put", index=None), torch.ones(ROWS, 2))
    store.remove_tensor(group_name=None, attr_name="put")
