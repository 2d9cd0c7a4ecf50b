"""What a mask is, decided alike by every interface: arrays of every type, length and origin, and features of the same
type, of another type with as many rows, of edges, and of another graph."""

from __future__ import annotations

import subprocess

import graphwire
import numpy as np
import pytest
import torch
from graphs import PROGRAM
from graphwire import pyg
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install
from graphwire.optim import Embedding
from graphwire.pyg.stores import NodeAttr
from id_forms import meaning
from torch_geometric.data import HeteroData

dgl = install()
ROWS = 12  # nodes of each type, and edges of each type
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
REFUSALS = (TypeError, ValueError, LookupError, AssertionError)


def columns(random):
    """{name: rows} of every dtype: 0 and 1, and other numbers."""
    found = {}
    for dtype in DTYPES:
        found[f"{dtype}_two"] = (random.random(ROWS) < 0.5).astype(dtype)
        if dtype != "bool":
            found[f"{dtype}_more"] = random.integers(0, 4, ROWS).astype(dtype)
    return found


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(7)
    made = HeteroData()
    for ntype in ("a", "b"):
        for name, rows in columns(random).items():
            made[ntype][name] = torch.from_numpy(rows)
        made[ntype].number = torch.arange(ROWS)
    for etype in (("a", "to", "a"), ("a", "by", "b")):
        made[etype].edge_index = torch.stack([(torch.arange(ROWS) + 1) % ROWS, torch.arange(ROWS)])
        for name, rows in columns(random).items():
            made[etype][name] = torch.from_numpy(rows)
    return made


@pytest.fixture(scope="module")
def folders(data, tmp_path_factory):
    made = [tmp_path_factory.mktemp(name) / "parts" for name in ("one", "other")]
    graphwire.partition_graph(data, "one", 1, made[0], method="random")
    other = data.clone()
    other["a"].number = other["a"].number + 1
    graphwire.partition_graph(other, "other", 1, made[1], method="random")
    return made


@pytest.fixture(scope="module")
def g(folders):
    context.close()
    dgl.distributed.initialize("none.txt")
    yield dgl.distributed.DistGraph("one", part_config=str(folders[0]))
    dgl.distributed.exit_client()


def seeds_of(loader, ntype="a"):
    return [seed for batch in loader for seed in batch.seeds.tolist()] if not hasattr(loader, "dataset") else [
        seed for batch in loader for seed in batch[ntype].n_id[:batch[ntype].batch_size].tolist()]


def own_nodes(graph, value):
    sampler = pyg.NeighborSampler(graph, [1])
    return seeds_of(pyg.NodeLoader(pyg.stores(graph, {"a": "number"}), sampler, ("a", value), batch_size=5))


def embedded(graph, value):
    table = Embedding(graph, "table", 1, ntype="a")
    table.tensor[:] = torch.arange(ROWS)[:, None]
    return table(value).flatten().tolist()


def dgl_nodes(g, value):
    found = dgl.distributed.DistNodeDataLoader(g, {"a": value}, dgl.dataloading.NeighborSampler([1]), batch_size=5)
    return [one for _, seeds, _ in found for one in seeds["a"].tolist()]


# {name: a call that returns the ids that it took}, for nodes of type a.
NODES = {
    "NodeLoader": lambda graph, g, value: seeds_of(graphwire.NodeLoader(graph, value, [1], ntype="a", batch_size=5)),
    "sample": lambda graph, g, value: graphwire.sample(graph, {"a": value}, [1]).seeds["a"].tolist(),
    "split": lambda graph, g, value: graph.split(value, "a", world=1, rank=0).tolist(),
    "feature[…]": lambda graph, g, value: graph.feature("number", "a")[value].tolist(),
    "Tensor[…]": lambda graph, g, value: graph.open_tensor("numbers")[value].tolist(),
    "Embedding": lambda graph, g, value: embedded(graph, value),
    "in_degrees": lambda graph, g, value: (
        graph.feature("number", "a")[value].tolist() if len(graph.in_degrees(value, "to")) else []),
    "pyg.NeighborLoader": lambda graph, g, value: seeds_of(pyg.NeighborLoader(graph, [1], ("a", value), batch_size=5)),
    "pyg.NodeLoader": lambda graph, g, value: own_nodes(graph, value),
    "dgl DistNodeDataLoader": lambda graph, g, value: dgl_nodes(g, value),
    "dgl DistTensor[…]": lambda graph, g, value: g.nodes["a"].data["number"][value].tolist(),
    "dgl sample_neighbors": lambda graph, g, value: (
        dgl.distributed.sample_neighbors(g, {"a": value}, -1).edges(etype="to")[1].tolist()),
}
# The same for edges of type a:to:a.
EDGES = {
    "EdgeLoader": lambda graph, g, value: seeds_of(graphwire.EdgeLoader(graph, value, [1], etype="to", batch_size=5)),
    "split": lambda graph, g, value: graph.split(value, etype="to", world=1, rank=0).tolist(),
    "HeldOut": lambda graph, g, value: graphwire.HeldOut(graph, value, etype="to")._lists[0][1][0].tolist(),
    "find_edges": lambda graph, g, value: graph.find_edges(value, "to")[1].tolist(),
    "dgl find_edges": lambda graph, g, value: g.find_edges(value, ("a", "to", "a"))[1].tolist(),
    "dgl edge_subgraph": lambda graph, g, value: g.edge_subgraph(
        {("a", "to", "a"): value}, relabel_nodes=False).edges["to"].data[dgl.EID].tolist(),
}


def arrays(random):
    """(value, its text) of arrays of random type, length and origin."""
    for dtype in DTYPES:
        for count in (ROWS, ROWS - 1, ROWS + 1, 3, 0):
            for high in (2, ROWS):
                array = random.integers(0, high, count).astype(dtype)
                yield array, f"numpy {dtype} {array.tolist()}"
                yield torch.from_numpy(array), f"torch {dtype} {array.tolist()}"
                if dtype in ("bool", "int64", "float64"):
                    yield array.tolist(), f"list {array.tolist()}"


def outcome(call, graph, g, value):
    try:
        return call(graph, g, value)
    except REFUSALS as error:
        assert str(error)
        return None


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_every_interface_decides_alike_on_arrays(folders, g, kind):
    with graphwire.open(folders[0]) as graph:
        graph.create_tensor("numbers", (0,), "int64", ntype="a")[:] = torch.arange(ROWS)
        taken = 0
        for value, text in arrays(np.random.default_rng(5)):
            wanted = meaning(value, ROWS)
            for name, call in (NODES if kind == "nodes" else EDGES).items():
                if "sample_neighbors" in name and wanted is not None and len(set(wanted)) < len(wanted):
                    continue  # of repeated seeds each edge is one
                assert outcome(call, graph, g, value) == wanted, f"{name}: {text}"
            taken += wanted is not None
        assert taken > 40
        for many in (graph.num_nodes("a"), graph.num_edges("to")):
            assert type(many) is int


def is_mask(rows):
    return str(rows.dtype) in ("torch.bool", "torch.uint8", "torch.int8") and bool((rows < 2).all())


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_every_interface_decides_alike_on_features(data, folders, g, kind):
    """A feature is a mask by its dtype, if it is of the seeds' own type and graph, and has 0 and 1 only."""
    own = {} if kind == "nodes" else {"etype": "to"}
    with graphwire.open(folders[0]) as graph, graphwire.open(folders[1]) as other:
        graph.create_tensor("numbers", (0,), "int64", ntype="a")[:] = torch.arange(ROWS)
        for name in columns(np.random.default_rng(0)):
            rows = data["a"][name] if kind == "nodes" else data["a", "to", "a"][name]
            wanted = rows.nonzero().view(-1).tolist() if is_mask(rows) else None
            tables = [(graph.feature(name, "a") if kind == "nodes" else graph.feature(name, **own), wanted),
                      (graph.feature(name, "b"), None), (graph.feature(name, etype="by"), None),
                      (graph.feature(name, etype="to") if kind == "nodes" else graph.feature(name, "a"), None),
                      (other.feature(name, "a") if kind == "nodes" else other.feature(name, **own), None)]
            for table, right in tables:
                for what, call in (NODES if kind == "nodes" else EDGES).items():
                    of_dgl = what.startswith("dgl")
                    if not (of_dgl and table._graph is other):  # one process of DGL has one graph
                        # DGL's ids of edges are not the graph's, so that a feature is no mask of them.
                        wanted_here = None if of_dgl and kind == "edges" else right
                        assert outcome(call, graph, g, table) == wanted_here, f"{what}: {table!r}"


@pytest.mark.parametrize("call", [
    lambda graph, value: graph.in_degrees(value, "to", by="orig"),
    lambda graph, value: graph.gather("number", value, "a", by="orig"),
    lambda graph, value: graph.find_edges(value, "to", by="orig"),
    lambda graph, value: graphwire.HeldOut(graph, value, etype="to", by="orig"),
    lambda graph, value: graphwire.HeldOut(graph, ends=(value, value), etype="to", by="orig")])
def test_original_ids_are_no_masks(folders, call):
    """Their order is not the graph's; bytes would be the ids 0 and 1."""
    with graphwire.open(folders[0]) as graph:
        call(graph, np.arange(3, dtype=np.int64))
        for value in (*(np.ones(ROWS, dtype) for dtype in ("bool", "uint8", "int8")), torch.ones(ROWS).byte(),
                      graph.feature("uint8_two", "a"), graph.feature("bool_two", etype="to")):
            with pytest.raises(TypeError, match=r"mask|integers"):
                call(graph, value)


@pytest.mark.parametrize("split", ["node_split", "edge_split"])
def test_splits_of_dgl_decide_alike(data, g, split):
    """They take masks alone, so that numbers which are ids elsewhere are refused."""
    call, of = getattr(dgl.distributed, split), "a" if split == "node_split" else ("a", "to", "a")
    book, kind = g.get_partition_book(), {"ntype": "a"} if split == "node_split" else {"etype": ("a", "to", "a")}
    for value, text in arrays(np.random.default_rng(6)):
        array = np.asarray(value)
        wanted = meaning(value, ROWS) if array.dtype.name in ("bool", "uint8", "int8") else None
        wanted = None if len(array) != ROWS else wanted
        found = outcome(lambda *_, one=value: call(one, book, **kind).tolist(), None, g, value)
        assert found == wanted, text
    views = [g.nodes["a"].data, g.nodes["b"].data, g.edges["to"].data, g.edges["by"].data]
    own = views[0] if split == "node_split" else views[2]
    for name in columns(np.random.default_rng(0)):
        rows = data[of][name]
        for view in views:
            wanted = rows.nonzero().view(-1).tolist() if is_mask(rows) and view is own else None
            found = outcome(lambda *_, one=view[name]: call(one, book, **kind).tolist(), None, g, None)
            assert found == wanted, f"{name} {view[name]!r}"


def test_the_program_takes_the_same_masks(folders, data):
    for name in columns(np.random.default_rng(0)):
        rows = data["a"][name]
        done = subprocess.run([PROGRAM, "epoch", "--part-config", str(folders[0]), "--ntype", "a", "--mask", name,
                               "--fanouts", "1"], capture_output=True, text=True)
        right = is_mask(rows) and bool(rows.any())
        assert (done.returncode == 0) == right, done.stderr
        assert right or name in done.stderr


def test_indices_of_rows_in_the_users_order(data):
    """In three parts: a feature of the graph as the index of rows in the order of the user's data."""
    with pyg.from_pyg(data, num_parts=3) as graph:
        served, store = pyg.NeighborLoader(graph, [1], "a").data, pyg.FeatureStore(graph, {"a": "number", "b": []})
        mask, wanted = graph.feature("bool_two", "a"), data["a"].bool_two.nonzero().view(-1).tolist()
        assert served["a"].number[served["a"].bool_two].tolist() == wanted
        assert sorted(served["a"].number[mask].tolist()) == wanted
        assert sorted(store._multi_get_tensor([NodeAttr("a", "number", mask)])[0].tolist()) == wanted
        for wrong in (graph.feature("bool_two", "b"), served["b"].bool_two, served["a", "to", "a"].bool_two,
                      served["a"].number, served["a"].uint8_more):
            for call in (lambda one: served["a"].number[one],
                         lambda one: store._multi_get_tensor([NodeAttr("a", "number", one)])):
                with pytest.raises((TypeError, ValueError), match=r"mask"):
                    call(wrong)
        ids = graphwire.EdgeIds(graph)
        with pytest.raises(TypeError, match="originals"):
            ids.to_position("to", graph.feature("bool_two", etype="to"))


def test_places_of_a_loader_by_a_mask(data):
    with pyg.from_pyg(data) as graph:
        loader = pyg.NeighborLoader(graph, [1], ("a", [7, 3, 5]))
        for mask in ([True, False, True], torch.tensor([1, 0, 1], dtype=torch.uint8)):
            assert loader(mask)["a"].n_id[:2].tolist() == [7, 5]
        for wrong in ([True], torch.tensor([1, 2, 0], dtype=torch.uint8)):
            with pytest.raises(ValueError, match="index"):
                loader(wrong)


def test_masks_in_the_rows_of_the_users_data(data):
    """In three parts the graph has other ids: arrays are rows of the data, features are rows of the graph, and both
    select the same nodes."""
    with pyg.from_pyg(data, num_parts=3) as graph:
        for name in columns(np.random.default_rng(0)):
            rows = data["a"][name]
            wanted = rows.nonzero().view(-1).tolist() if is_mask(rows) else None
            served = pyg.NeighborLoader(graph, [1], "a").data["a"][name]
            for value in (graph.feature(name, "a"), served, *([rows, rows.numpy()] if "_two" in name else [])):
                for what in ("pyg.NeighborLoader", "pyg.NodeLoader"):
                    found = outcome(NODES[what], graph, None, value)
                    if wanted is None and not hasattr(value, "rows_by_id") and "int" in name:
                        continue  # ids
                    assert (found if found is None else sorted(found)) == wanted, f"{what}: {value!r}"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_ends_of_links_are_ids_by_their_type(folders, dtype):
    """Two rows of bytes are no ids, in any loader of links."""
    ends = torch.randint(0, 2, (2, 5)).to(getattr(torch, dtype))
    with graphwire.open(folders[0]) as graph:
        sampler, stores = pyg.NeighborSampler(graph, [1]), pyg.stores(graph, {"a": "number"})
        for call in (lambda: graphwire.EdgeLoader(graph, [0], [1], etype="to", ends=ends),
                     lambda: pyg.LinkNeighborLoader(graph, [1], (("a", "to", "a"), ends)),
                     lambda: pyg.LinkLoader(stores, sampler, (("a", "to", "a"), ends))):
            with pytest.raises((TypeError, ValueError), match=r"ends|edge_label_index"):
                call()
