"""Alias tables of graphs of PyTorch Geometric and DGL."""

import graphwire
import numpy as np
import pytest
import torch
from graphwire.dgl.install import install
from weight_tables import check_table, tables

dgl = install()
EDGES = torch.from_numpy(np.random.default_rng(3).integers(0, 40, (2, 300)))
WEIGHTS = torch.from_numpy(np.random.default_rng(4).integers(0, 4, 300)).float()


def test_pyg(tmp_path):
    data = pytest.importorskip("torch_geometric.data")
    from graphwire.pyg import from_pyg

    one = data.Data(edge_index=EDGES, edge_attr=WEIGHTS[:, None], num_nodes=40)
    with from_pyg(one, tmp_path / "one", num_parts=2, method="random", weight="edge_attr") as graph:
        assert graph.num_edges() == 300
    path = next((tmp_path / "one").glob("*.json"))
    assert check_table(path, "_N:_E:_N", "edge_attr") == (WEIGHTS > 0).sum()
    both = data.HeteroData()
    both["a"].num_nodes = both["b"].num_nodes = 40
    for etype in (("a", "r", "b"), ("b", "s", "a")):
        both[etype].edge_index, both[etype].w = EDGES, WEIGHTS
    path = graphwire.partition_graph(both, "g", 3, tmp_path / "both", method="random", weight=["b:s:a:w"])
    assert tables(path) == {("b:s:a", "w")}
    assert check_table(path, "b:s:a", "w") == (WEIGHTS > 0).sum()


def test_dgl(tmp_path):
    g = dgl.graph((EDGES[0], EDGES[1]), num_nodes=40)
    g.edata["w"], g.edata["v"] = WEIGHTS, WEIGHTS.double() / 3
    dgl.distributed.partition_graph(g, "g", 2, str(tmp_path), part_method="random", weight=["w", "v"])
    assert tables(tmp_path / "g.json") == {("_N:_E:_N", "w"), ("_N:_E:_N", "v")}
    for name in ("w", "v"):
        assert check_table(tmp_path / "g.json", "_N:_E:_N", name) == (WEIGHTS > 0).sum()
