"""Attributes with names or axes of their own in the batches of graphwire.pyg's loaders, as in PyTorch Geometric's."""

from __future__ import annotations

import graphwire
import pytest
import torch

pytest.importorskip("torch_geometric")
from graphwire.pyg import NeighborLoader, from_pyg
from torch_geometric.data import Data, HeteroData

NODES, EDGES = 30, 90


def some_data(**attributes):
    torch.manual_seed(4)
    return Data(edge_index=torch.randint(0, NODES, (2, EDGES)), x=torch.randn(NODES, 3), **attributes)


@pytest.fixture(params=["memory", 1, 3])
def source(request):
    """Makes the loader's `data` of a Data: itself, or its graph in parts."""
    return lambda data: data if request.param == "memory" else from_pyg(data, num_parts=request.param)


@pytest.mark.parametrize("shape", [(EDGES,), (EDGES, 3)])
def test_bools_of_edges_stay_bools(source, shape):
    data = some_data(kept=torch.rand(shape) < 0.5)
    for batch in NeighborLoader(source(data), [-1], batch_size=10):
        assert batch.kept.dtype == torch.bool and torch.equal(batch.kept, data.kept[batch.e_id])


def test_bools_of_edges_are_masks_of_a_graph():
    data = some_data(kept=torch.rand(EDGES) < 0.5)
    graph = from_pyg(data, num_parts=3)
    held = graphwire.HeldOut(graph, graph.feature("kept", etype="_E"))
    for batch in graphwire.NodeLoader(graph, None, [-1], edge_features=["kept", "orig_id"], held_out=held):
        assert not batch.blocks[0].only.data["kept"].any()


def test_batch_of_a_sampler_output(source):
    """data.batch is what a transform sets; otherwise no attribute of the user's Data stands there, as in PyG."""
    data = some_data(batch=torch.zeros(NODES, dtype=torch.int64))

    def numbered(out):
        out.batch = torch.arange(len(out.node))
        return out

    for batch in NeighborLoader(source(data), [2], batch_size=10, transform_sampler_output=numbered):
        assert torch.equal(batch.batch, torch.arange(batch.num_nodes))
    assert all("batch" not in one for one in NeighborLoader(data, [2], batch_size=10))


def test_an_index_can_be_a_mask(source):
    loader = NeighborLoader(source(some_data()), [2], input_nodes=torch.arange(5, 25), batch_size=10)
    chosen = torch.zeros(20, dtype=torch.bool)
    chosen[[3, 8]] = True
    batch = loader(chosen)
    assert batch.input_id.tolist() == [3, 8] and batch.n_id[:2].tolist() == [8, 13]


def test_types_are_in_the_order_of_the_data():
    data = HeteroData()
    for ntype in ("z", "y", "x", "w"):
        data[ntype].num_nodes = 5
    for etype in (("w", "to", "z"), ("a", "to", "y"), ("z", "to", "w")):
        data[etype].edge_index = torch.randint(0, 5, (2, 9))
    with pytest.warns(UserWarning, match="a: num_nodes is not set"):
        graph = from_pyg(data, num_parts=2)
    batch = next(iter(NeighborLoader(graph, [2], ("z", [0, 1]))))
    assert batch.node_types == ["z", "y", "x", "w", "a"] == graph.ntypes and batch.edge_types == data.edge_types
