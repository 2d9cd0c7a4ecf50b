"""DistTensor, DistEmbedding and the optimizers in one process: names, initial values, and ends of tensors."""

from __future__ import annotations

import pickle

import graphwire
import numpy as np
import pytest
import torch
from conftest import NODES, arrays_of_communities
from graphwire.dgl.distributed import initial
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
EDGES = len(arrays_of_communities()["edges"])


@pytest.fixture(scope="module")
def g(two_parts):
    dgl.distributed.initialize("there_is_no_ip_config.txt")
    graph = dgl.distributed.DistGraph("communities", part_config=str(two_parts / "communities.json"))
    yield graph
    dgl.distributed.exit_client()


def test_tensors(g):
    tensor = dgl.distributed.DistTensor((NODES, 3), torch.float32, "hidden", persistent=True)
    assert tensor.count_nonzero() == 0 and tensor.shape == (NODES, 3) and len(tensor) == NODES
    tensor[torch.tensor([1, 599])] = torch.ones(2, 3, requires_grad=True)
    assert tensor[np.array([599, 0])].tolist() == [[1, 1, 1], [0, 0, 0]] and tensor.count_nonzero() == 6
    again = dgl.distributed.DistTensor((NODES, 3), torch.float32, "hidden")
    assert again[1].tolist() == [[1, 1, 1]]  # an existing name opens its tensor
    assert tensor.part_policy.policy_str == "node~_N" and tensor.tensor_name == "hidden"
    with pytest.raises(Exception, match="hidden"):
        dgl.distributed.DistTensor((NODES, 4), torch.float32, "hidden")
    with pytest.raises(AssertionError, match="right partition policy"):
        dgl.distributed.DistTensor((7,), torch.float32)
    with pytest.raises(AssertionError, match="anonymous"):
        dgl.distributed.DistTensor((NODES,), torch.float32, persistent=True)
    of_edges = dgl.distributed.DistTensor((EDGES,), torch.int64, part_policy=g.get_edge_partition_policy("_E"))
    of_edges[[0]] = torch.tensor([5])
    assert of_edges.part_policy.get_part_size() == len(of_edges.local_partition)


@pytest.mark.parametrize("first", [torch.ones, torch.rand, torch.randn])
def test_a_name_that_exists_is_referenced(g, first):
    """Whatever the initial values: shape and dtype are compared, as in DGL."""
    tensor = dgl.distributed.DistTensor((NODES, 3), torch.float32, "there", first)
    torch.manual_seed(torch.initial_seed() + 1)
    for again in (dgl.distributed.DistTensor((NODES, 3), torch.float32, "there"),
                  dgl.distributed.DistTensor((NODES, 3), torch.float32, "there", torch.zeros),
                  dgl.distributed.DistTensor((NODES, 3), torch.float32, "there", first),
                  dgl.distributed.DistTensor((NODES, 3), torch.float32, "there", lambda shape, dtype: 1 / 0),
                  pickle.loads(pickle.dumps(tensor))):
        assert torch.equal(again[:], tensor[:]) and again.count_nonzero() > NODES
    for shape, dtype in (((NODES, 2), torch.float32), ((NODES, 3), torch.float64), ((NODES,), torch.float32)):
        with pytest.raises(graphwire.GraphwireError, match=r"there.* exists with"):
            dgl.distributed.DistTensor(shape, dtype, "there", first)


def test_all_trainers_meet_for_an_init_func(g, monkeypatch):
    """The number of barriers is the same with and without an object of the tensor, because trainers free their objects
    at different times."""
    met, counts = [], []
    monkeypatch.setattr(context, "barrier", lambda: met.append(1))
    objects = []
    for held in (False, True, False):  # first; with an object; without one, while another trainer has one
        if not held:
            context._tensors.pop("node/_N/met", None)
        objects.append(dgl.distributed.DistTensor((NODES,), torch.float32, "met", lambda shape, _: torch.ones(shape)))
        counts.append(len(met))
        met.clear()
    assert len(set(counts)) == 1 and objects[2].count_nonzero() == NODES


def test_tensors_go_with_their_objects(g):
    """A tensor ends at the next use of a tensor, or barrier. Not when its object is freed, because Python drops an
    interrupt there."""
    g.barrier()  # ends tensors of other tests
    names = {tensor["name"] for tensor in g.graph.tensors}
    one = dgl.distributed.DistTensor((NODES,), torch.float32, "passing")
    two = dgl.distributed.DistTensor((NODES,), torch.float32, "passing")
    two[0] = 1.0
    del one
    assert two[0].tolist() == [1]
    del two
    again = dgl.distributed.DistTensor((NODES,), torch.float32, "passing")
    assert again[0].tolist() == [0]
    del again
    other = dgl.distributed.DistTensor((NODES,), torch.float32, "other")
    assert {tensor["name"] for tensor in g.graph.tensors} == {*names, other._data.name}
    del other
    g.barrier()
    assert {tensor["name"] for tensor in g.graph.tensors} == names


def test_init_func_is_called_once_for_each_part(g):
    shapes = []

    def rows(shape, dtype):
        shapes.append((tuple(shape), dtype))
        return torch.full(shape, len(shapes), dtype=dtype)

    tensor = dgl.distributed.DistTensor((NODES, 2), torch.float32, init_func=rows)
    book = g.get_partition_book()
    sizes = [len(book.partid2nids(part)) for part in range(2)]
    assert shapes == [((size, 2), torch.float32) for size in sizes]
    for part in range(2):
        assert (tensor[book.partid2nids(part)] == part + 1).all()
    with pytest.raises(ValueError, match="returned shape"):
        dgl.distributed.DistTensor((NODES, 2), torch.float32, init_func=lambda shape, dtype: torch.ones(3))
    ones = dgl.distributed.DistTensor((NODES, 2), torch.float32, init_func=torch.ones)
    assert ones.count_nonzero() == 2 * NODES  # drawn by the servers


def test_an_init_func_that_fails_leaves_no_tensor(g):
    """The name stays free, and no tensor of zeros exists."""
    g.barrier()  # ends tensors of other tests
    names = {tensor["name"] for tensor in g.graph.tensors}
    for function, error in ((lambda shape, dtype: torch.ones(3), ValueError), (lambda shape, dtype: 1 / 0,
                                                                              ZeroDivisionError)):
        with pytest.raises(error):
            dgl.distributed.DistTensor((NODES, 2), torch.float32, "failing", function)
        assert {tensor["name"] for tensor in g.graph.tensors} == names
    made = dgl.distributed.DistTensor((NODES, 2), torch.float32, "failing", lambda shape, dtype: torch.ones(shape))
    assert made.count_nonzero() == 2 * NODES
    made[0] = torch.zeros(1, 2)
    again = dgl.distributed.DistTensor((NODES, 2), torch.float32, "failing", lambda shape, dtype: 1 / 0)
    assert again.count_nonzero() == 2 * NODES - 2  # the existing tensor stays


@pytest.mark.parametrize("function", [None, torch.zeros, torch.ones, torch.rand, torch.randn])
def test_known_functions_run_in_the_servers(g, function, monkeypatch):
    """The servers draw the rows themselves, so no rows are made in Python, and no trainer waits."""
    def fail(*_):
        raise AssertionError("in Python")

    assert initial.known(function, torch.float32) is not None
    monkeypatch.setattr(initial, "filled", fail)
    monkeypatch.setattr(context, "barrier", fail)
    monkeypatch.setattr(graphwire.Tensor, "__setitem__", fail)
    made = dgl.distributed.DistTensor((NODES, 2), torch.float32, init_func=function)
    rows = made[:]
    if function in (torch.rand, torch.randn):
        assert len(rows.unique()) > NODES and made.count_nonzero() > NODES
        assert (rows.min() >= 0) == (function is torch.rand)
    else:
        assert (rows == (1 if function is torch.ones else 0)).all()
    assert initial.known(lambda shape, dtype: torch.zeros(shape), torch.float32) is None


@pytest.mark.parametrize("kind", ["SparseAdam", "SparseAdagrad"])
def test_optimizers_against_torch(g, kind):
    """Rows of equal ids are averaged, as in DGL; compared with torch's dense optimizer on the rows that are read. The
    ids change after the read."""
    start = torch.randn(NODES, 4)
    book = g.get_partition_book()
    parts = iter([start[book.partid2nids(part)] for part in range(2)])
    table = dgl.distributed.DistEmbedding(NODES, 4, f"table-{kind}", init_func=lambda shape, dtype: next(parts))
    optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1)
    ids = torch.tensor([3, 8, 599])
    dense = torch.nn.Parameter(start[ids].clone())
    oracle = (torch.optim.Adam if kind == "SparseAdam" else torch.optim.Adagrad)([dense], lr=0.1)
    weight = torch.randn(3, 4)
    for _ in range(4):
        asked = torch.cat([ids, ids[:1]])
        rows = table(asked)
        asked.fill_(7)
        (rows * torch.cat([weight, weight[:1]])).pow(2).sum().backward()
        optimizer.zero_grad()
        optimizer.step()
        assert table._trace == []
        oracle.zero_grad()
        (dense * weight).pow(2).sum().backward()
        oracle.step()
    assert torch.allclose(table.weight[ids], dense, atol=1e-5)
    rest = torch.ones(NODES, dtype=torch.bool)
    rest[ids] = False
    assert torch.equal(table.weight[torch.nonzero(rest).flatten()], start[rest])
    with pytest.raises(AssertionError, match="DistEmbedding"):
        getattr(dgl.distributed.optim, kind)([torch.zeros(3)], lr=0.1)


def test_keys_of_the_client(g):
    """Features and tensors, while an object has them."""
    made = dgl.distributed.DistTensor((g.num_nodes(), 3), torch.float32, "keyed")
    names = g._client.data_name_list()
    assert {made.kvstore_key, g.ndata["features"].kvstore_key} <= set(names) == set(g._client.gdata_name_list())
    key = str(made.kvstore_key)
    del made
    assert key not in g._client.data_name_list()


def test_masks_of_a_part(two_parts):
    """DGL's own names, by which programs count a part's nodes and edges."""
    from dgl.distributed.partition import RESERVED_FIELD_DTYPE, _get_inner_edge_mask, _get_inner_node_mask

    part, _, _, book, _, _, _ = dgl.distributed.load_partition(str(two_parts / "communities.json"), 1)
    assert torch.equal(part.ndata[dgl.NID][_get_inner_node_mask(part, 0)], book.partid2nids(1))
    assert torch.equal(part.edata[dgl.EID][_get_inner_edge_mask(part, 0)], book.partid2eids(1))
    for data in (part.ndata, part.edata):
        assert all(data[name].dtype == RESERVED_FIELD_DTYPE[name] for name in data)
