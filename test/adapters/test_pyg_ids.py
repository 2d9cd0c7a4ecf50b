"""Whose ids graphwire.pyg takes and returns: those of the user's data, for its own loaders and for PyG's over stores.
In one part and in three, standalone and over servers."""

from __future__ import annotations

import warnings

import graphwire
import numpy as np
import pyg_oracle as oracle
import pytest
import torch
from conftest import TOP, Servers, run
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg, stores
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
NAMES = ["x", "half", "y", "train_mask"]


def names_of(data):
    return {ntype: NAMES for ntype in data.node_types} if isinstance(data, HeteroData) else NAMES


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("parts", [1, 3])
def test_pygs_loaders_over_stores(seed, parts, tmp_path):
    """Every attribute of a batch, against the user's tensors."""
    data = oracle.random_data(seed)
    hetero, random = isinstance(data, HeteroData), np.random.default_rng(seed)
    from_pyg(data, tmp_path / "parts", num_parts=parts).close()
    servers = Servers(tmp_path / "parts", parts, tmp_path)
    with graphwire.open(tmp_path / "parts", servers.addresses if seed % 4 >= 2 else None) as graph:
        both, sampler = stores(graph, names_of(data)), NeighborSampler(graph, [3, 2])
        for ntype in data.node_types if hetero else (None,):
            rows = oracle.nodes_of(data)[ntype]
            seeds = torch.from_numpy(random.permutation(rows.num_nodes))
            for batch in NodeLoader(both, sampler, (ntype, seeds) if hetero else seeds, batch_size=7):
                store = oracle.nodes_of(batch)[ntype]
                oracle.check_nodes(batch, data, ntype, seeds[store.input_id], store.input_id)
                oracle.check_rows(batch, data, False)
                oracle.check_hops(batch, data, [3, 2])
            assert torch.equal(both[0][ntype, "x", None], rows.x)
            assert torch.equal(both[0][ntype, "x", seeds[:3]], rows.x[seeds[:3]])
            assert torch.equal(both[0][ntype, "x", 1 % rows.num_nodes], rows.x[1 % rows.num_nodes])
            both[0][ntype, "h", None] = rows.y
            both[0][ntype, "h", seeds[:2]] = torch.zeros(len(seeds[:2]), dtype=torch.int64)
            expected = rows.y.clone()
            expected[seeds[:2]] = 0
            assert torch.equal(both[0][ntype, "h", None], expected)
        for kind, rows in oracle.edges_of(data).items():
            src, dst = both[1][kind if hetero else None, "coo"]
            assert torch.equal(torch.stack([src, dst]), rows.edge_index)
            if not rows.num_edges:
                continue
            links = (kind, None) if hetero else (None, rows.edge_index)
            for batch in LinkLoader(both, sampler, links, batch_size=9, neg_sampling="binary"):
                oracle.check_links(batch, data, kind, rows.edge_index, None, ("binary", 1))
                oracle.check_rows(batch, data, False)
    servers.close()


@pytest.mark.parametrize("parts", [1, 3])
def test_edge_rows(parts):
    data = oracle.random_data(0)
    with from_pyg(data, num_parts=parts) as graph:
        both = stores(graph, NAMES)
        for batch in NodeLoader(both, NeighborSampler(graph, [4, 4]), torch.arange(data.num_nodes), batch_size=5,
                                transform=both[0].edge_rows(["edge_attr", "weight"])):
            oracle.check_rows(batch, data, True)


@pytest.mark.parametrize("parts", [1, 2])
def test_ids_of_the_graph(parts):
    """ids="graph": find_edges and features of the graph fit."""
    data = oracle.random_data(2)
    with from_pyg(data, num_parts=parts) as graph:
        for batch in NeighborLoader(graph, [3, 3], torch.arange(data.num_nodes), batch_size=8, ids="graph"):
            assert torch.equal(torch.stack(graph.find_edges(batch.e_id)), batch.n_id[batch.edge_index])
            assert torch.equal(graph.feature("x")[batch.n_id], batch.x)
        links = torch.stack(graph.find_edges(slice(None)))
        for batch in LinkNeighborLoader(graph, [2], batch_size=8, ids="graph"):
            assert torch.equal(batch.n_id[batch.edge_label_index], links[:, batch.input_id])
    with pytest.raises(ValueError, match="of from_pyg"):
        NeighborLoader(data, [2], ids="graph")


@pytest.mark.parametrize("ids", ["orig", "graph"])
def test_links_of_a_large_graph(ids, monkeypatch):
    """The ends of many edges are not read when the loader is made; batches and input_data are the same."""
    data, batches = Data(edge_index=torch.randint(0, 20, (2, 50)), num_nodes=20), []
    with from_pyg(data, num_parts=3) as graph:
        for most in (graph.num_edges(), graph.num_edges() - 1):
            monkeypatch.setattr("graphwire.pyg.links.READ_MAX", most)
            torch.manual_seed(4)
            loader = LinkNeighborLoader(graph, [2], batch_size=8, shuffle=True, ids=ids)
            assert isinstance(loader.input_data.row, torch.Tensor) == (most == graph.num_edges())
            batches.append([*loader])
            some = loader.input_data[[5, 2, 5]]
            batches[-1].append({"row": some.row, "col": some.col})
        for one, other in zip(*batches):
            assert all(torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one.keys())


@pytest.mark.parametrize("parts", [1, 2])
def test_numbers_and_texts_of_tables(parts, tmp_path):
    """Numbers that are no rows are ids; a mask cannot name them. Texts are not ids of a tensor."""
    users, items = np.array(["ann", "bob", "cy", "ann"]), np.array([100000, 20000000, 100000, 3])
    path = graphwire.partition_graph({("u", "buys", "i"): (users, items)}, "t", parts, tmp_path / "t", method="random")
    with graphwire.open(path) as graph:
        batch = next(iter(NeighborLoader(graph, [2], ("i", torch.tensor([100000, 3])), batch_size=2)))
        assert batch["i"].n_id.tolist() == [100000, 3] and sorted(batch["u", "buys", "i"].e_id.tolist()) == [0, 2, 3]
        edges, rows = batch["u", "buys", "i"], graph.node_texts(batch["u"].n_id, "u")
        assert [rows[row] for row in edges.edge_index[0]] == [str(users[edge]) for edge in edges.e_id]
        assert batch["i"].n_id[edges.edge_index[1]].tolist() == items[edges.e_id].tolist()
        for batch in NeighborLoader(graph, [1], "i"):
            assert int(batch["i"].n_id[0]) in items
        batch = next(iter(LinkNeighborLoader(graph, [1], ("u", "buys", "i"), batch_size=4)))
        assert batch["i"].n_id[batch["u", "buys", "i"].edge_label_index[1]].tolist() == items.tolist()
        with pytest.raises(ValueError, match="give ids"):
            NeighborLoader(graph, [2], ("i", torch.ones(3, dtype=torch.bool)))
        with pytest.raises(graphwire.NotFoundError, match=": 4 "):
            NeighborLoader(graph, [2], ("i", torch.tensor([3, 4])))


@pytest.mark.parametrize("parts", [1, 2])
def test_ids_that_occur_twice(parts, tmp_path):
    np.save(tmp_path / "edges.npy", np.random.default_rng(0).integers(0, 10, (40, 2)))
    np.save(tmp_path / "ids.npy", np.array([5, 7, 1, 2, 3, 4, 6, 7, 8, 9]))
    run("import", "--edges", f"_N:_E:_N={tmp_path}/edges.npy", "--edge-ids", "--num-nodes", 10, "--node-feature",
        f"orig_id={tmp_path}/ids.npy", "--name", "twice", "--out", tmp_path / "one", "--quiet")
    run("partition", tmp_path / "one", "--num-parts", parts, "--method", "random", "--out", tmp_path / "parts")
    with graphwire.open(tmp_path / "parts") as graph:
        for _ in range(2):
            for call in (lambda: NeighborLoader(graph, [2]), lambda: stores(graph, []),
                         lambda: NeighborSampler(graph, [2])):
                with pytest.raises(graphwire.InvalidError, match="original id 7 belongs to several nodes"):
                    call()
        assert len(list(NeighborLoader(graph, [2], ids="graph"))) == 10


def test_graphs_without_ids(tmp_path):
    """One warning for each graph: an older version's, in two parts; edges without ids. None for ids="graph"."""
    np.save(tmp_path / "edges.npy", np.random.default_rng(0).integers(0, 10, (40, 2)))
    run("import", "--edges", f"_N:_E:_N={tmp_path}/edges.npy", "--name", "none", "--out", tmp_path / "one", "--quiet")
    for folder in (TOP / "test/formats/0.1/two", tmp_path / "one"):
        with graphwire.open(folder) as graph:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                NeighborLoader(graph, [2], ids="graph")
            with pytest.warns(UserWarning, match="no original ids of .* the graph's, and not those of your") as warned:
                loader = NeighborLoader(graph, [2], batch_size=1000)
                NeighborLoader(graph, [2])
                stores(graph, [])
            assert len(warned) == 1 and warned[0].filename == __file__
            batch = next(iter(loader))
            assert torch.equal(torch.stack(graph.find_edges(batch.e_id)), batch.n_id[batch.edge_index])


def test_both_directions_share_a_column():
    data = oracle.random_data(2)
    with from_pyg(data, num_parts=2, undirected=True) as graph:
        for batch in NeighborLoader(graph, [-1], batch_size=9):
            ends, own = batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id]
            assert bool(((ends == own) | (ends == own.flip(0))).all(0).all())
            assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
