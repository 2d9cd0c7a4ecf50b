"""Attributes with names or axes of their own in the batches of graphwire.pyg's loaders, as in PyTorch Geometric's."""

from __future__ import annotations

import graphwire
import pytest
import torch

pytest.importorskip("torch_geometric")
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, from_pyg
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


def test_attributes_keep_their_axis(source):
    """PyG concatenates attributes such as "u_index" along their last axis."""
    data = some_data(u_index=torch.rand(4, EDGES), node_index=torch.rand(2, NODES))
    for batch in NeighborLoader(source(data), [2], batch_size=10):
        assert torch.equal(batch.u_index, data.u_index[:, batch.e_id]) and batch.u_index.is_contiguous()
        assert torch.equal(batch.node_index, data.node_index[:, batch.n_id])


def test_axis_of_a_class_and_of_native_batches():
    class Turned(Data):
        def __cat_dim__(self, key, value, *args):
            return 1 if key == "turned" else super().__cat_dim__(key, value, *args)

    made = some_data()
    data = Turned(edge_index=made.edge_index, turned=torch.rand(3, NODES), u_index=torch.rand(4, EDGES))
    graph = from_pyg(data)
    batch = next(iter(NeighborLoader(graph, [2], batch_size=10, custom_cls=Turned)))
    assert isinstance(batch, Turned) and torch.equal(batch.turned, data.turned[:, batch.n_id])
    native = graphwire.sample(graph, [1, 2, 3], [4], edge_features="u_index").to_pyg()
    columns = graph.original_ids(native.e_id, etype="_E")
    assert torch.equal(native.u_index, data.u_index[:, columns])


def test_ids_of_the_users_own(source):
    """n_id and e_id of the user's data stay, as in PyG: its documentation sets data.n_id before it makes a loader."""
    data = some_data(n_id=torch.arange(NODES) + 1000, e_id=torch.arange(EDGES) + 5000)
    for batch in NeighborLoader(source(data), [2], batch_size=10):
        assert torch.equal(batch.x, data.x[batch.n_id - 1000])
        assert torch.equal(data.edge_index[:, batch.e_id - 5000] + 1000, batch.n_id[batch.edge_index])


def test_names_that_loaders_write_are_refused_with_a_remedy():
    graph = from_pyg(some_data(seed_time=torch.arange(NODES)))
    with pytest.raises(ValueError, match=r"'seed_time' is a name of PyG's own: pass graphwire.pyg.stores\(graph"):
        NeighborLoader(graph, [2])


LINKS = torch.tensor([[1, 2], [3, 4]])


@pytest.mark.parametrize("call, error, text", [
    (lambda data: NeighborLoader(data, [2], [NODES]), LookupError, f"input_nodes: .*{NODES}"),
    (lambda data: NeighborLoader(data, [2], [-1]), LookupError, "input_nodes: .*-1"),
    (lambda data: NeighborLoader(data, [2], {1, 2}), TypeError, "input_nodes are integers"),
    (lambda data: NeighborLoader(data, [2], [None]), TypeError, "input_nodes are integers"),
    (lambda data: LinkNeighborLoader(data, [2], LINKS + NODES), LookupError, "edge_label_index: "),
    (lambda data: LinkNeighborLoader(data, [2], "a"), ValueError, "edge_label_index"),
    (lambda data: LinkNeighborLoader(data, [2], (LINKS[0], "a")), TypeError, "edge_label_index are integers"),
    (lambda data: LinkNeighborLoader(data, [2], LINKS, "a"), TypeError, "edge_label has numbers"),
    (lambda data: LinkNeighborLoader(data, [2], LINKS, torch.tensor(1)), ValueError, "edge_label: no list of values"),
    (lambda data: LinkNeighborLoader(data, [2], LINKS, input_id="a"), TypeError, "input_id has numbers"),
    (lambda data: NeighborLoader(data, [2], weight_attr="none"), LookupError, "weight_attr: no edge type"),
])
def test_errors_name_the_argument(source, call, error, text):
    with pytest.raises(error, match=text):
        call(source(some_data()))


def test_links_are_a_pair_too(source):
    batch = next(iter(LinkNeighborLoader(source(some_data()), [2], (LINKS[0], LINKS[1]), batch_size=2)))
    assert torch.equal(batch.n_id[batch.edge_label_index], LINKS)


def test_adj_t_in_memory_names_the_way():
    data = Data(adj_t=torch.eye(4).to_sparse_csr(), num_nodes=4)
    with pytest.raises(ValueError, match=r"no edge_index: pass graphwire.pyg.from_pyg\(data\)"):
        NeighborLoader(data, [2])
