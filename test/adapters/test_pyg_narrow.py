"""Features that are stored narrow, in PyTorch Geometric's interfaces: batches have torch's conversions of the user's
rows, in the original type or in the one that is asked."""

import graphwire
import graphwire.pyg as gwp
import pytest
import torch
from graphwire.pyg.stores import FeatureStore, GraphStore
from torch_geometric.data import HeteroData

NODES, EDGES = {"user": 80, "item": 120}, 900
LOADER = {"num_neighbors": [4, 3], "batch_size": 20}


def made():
    torch.manual_seed(3)
    data = HeteroData()
    for name, count in NODES.items():
        data[name].x = torch.randn(count, 9) * torch.exp(torch.randn(count, 1) * 9)
        data[name].number = torch.arange(count)
    data["user", "rates", "item"].edge_index = torch.stack(
        [torch.randint(0, NODES[name], (EDGES,)) for name in ("user", "item")])
    data["user", "rates", "item"].edge_attr = torch.randn(EDGES, 3, dtype=torch.float64)
    data["item", "rated_by", "user"].edge_index = data["user", "rates", "item"].edge_index.flip(0)
    return data


DATA = made()
STORED = {"user:x": "float16", "item:x": torch.bfloat16, "edge_attr": "float16"}


@pytest.fixture(scope="module", params=[1, 3])
def graph(request):
    with gwp.from_pyg(DATA, num_parts=request.param, store=STORED) as opened:
        yield opened


def wanted(kind, dtype=None):
    rows = DATA[kind].x if isinstance(kind, str) else DATA[kind].edge_attr
    stored = rows.to(torch.bfloat16 if kind == "item" else torch.float16)
    own = stored.to(rows.dtype)  # wide, exactly
    return own if dtype is None else own.to(dtype)


def check(batch, dtype):
    for kind in NODES:
        assert torch.equal(batch[kind].x, wanted(kind, dtype)[batch[kind].n_id])
        assert batch[kind].number.dtype == torch.int64
    edges = batch["user", "rates", "item"]
    if "edge_attr" in edges:
        assert torch.equal(edges.edge_attr, wanted(("user", "rates", "item"), dtype)[edges.e_id])


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16, torch.float32])
def test_batches_of_loaders(graph, dtype):
    rated = ("user", "rates", "item")
    for batch in (*gwp.NeighborLoader(graph, input_nodes="user", dtype=dtype, **LOADER),
                  *gwp.NeighborLoader(graph, input_nodes="user", dtype=dtype, subgraph_type="induced", **LOADER),
                  *gwp.LinkNeighborLoader(graph, edge_label_index=rated, dtype=dtype, num_neighbors=[3],
                                          batch_size=200),
                  *gwp.NeighborLoader(gwp.served(graph, dtype=dtype), input_nodes="item", **LOADER)):
        check(batch, dtype)


def test_batches_as_torch_converts_the_own_ones(graph):
    """The batch of an asked type is that of the original type, after torch's .to()."""
    torch.manual_seed(0)
    own = list(gwp.NeighborLoader(graph, input_nodes="user", shuffle=True, **LOADER))
    torch.manual_seed(0)
    asked = list(gwp.NeighborLoader(graph, input_nodes="user", shuffle=True, dtype="float16", **LOADER))
    for one, other in zip(own, asked, strict=True):
        assert torch.equal(one["item"].n_id, other["item"].n_id)
        assert torch.equal(one["item"].x.to(torch.float16), other["item"].x)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_stores(graph, dtype):
    names = {name: ["x", "number"] for name in NODES}
    features = FeatureStore(graph, names, dtype=dtype)
    for kind in NODES:
        found = features.get_tensor(group_name=kind, attr_name="x", index=None)
        assert torch.equal(found, wanted(kind, dtype))
        assert features.get_tensor_size(group_name=kind, attr_name="x", index=None) == found.shape
    for batch in gwp.NeighborLoader((features, GraphStore(graph)), input_nodes="user", num_neighbors=[3], batch_size=40,
                                    transform=features.edge_rows({("user", "rates", "item"): "edge_attr"})):
        check(batch, dtype)
    for batch in gwp.NeighborLoader(gwp.stores(graph, names, dtype=dtype), input_nodes="user", **LOADER):
        check(batch, dtype)


def test_rows_of_the_data(graph):
    data = gwp.served(graph, dtype="float16")
    assert data["item"].x.dtype == torch.float16 and data["item"].number.dtype == torch.int64
    assert torch.equal(data["item"].x[[5, 1]], wanted("item", torch.float16)[[5, 1]])
    assert gwp.served(graph)["item"].x.dtype == torch.float32


def test_types_that_are_not_chosen(graph):
    with pytest.raises(ValueError, match="PyTorch Geometric selects the rows of this data"):
        gwp.NeighborLoader(DATA, input_nodes="user", dtype=torch.float16, **LOADER)
    for wrong in ("int8", torch.int64):
        with pytest.raises(ValueError, match="is not one of the types float32"):
            gwp.NeighborLoader(graph, input_nodes="user", dtype=wrong, **LOADER)
        with pytest.raises(ValueError, match="is not one of the types float32"):
            gwp.served(graph, dtype=wrong)
        with pytest.raises(ValueError, match="is not one of the types float32"):
            FeatureStore(graph, {"user": "x", "item": "x"}, dtype=wrong)


def test_graphwires_own_loader_agrees(graph):
    """The two interfaces read the same rows."""
    for batch in graphwire.NodeLoader(graph, None, [3], ntype="user", features={"item": "x"}, dtype="bfloat16",
                                      batch_size=30):
        ids = graph.feature("orig_id", "item")[batch.nodes["item"]]
        assert torch.equal(batch.features["item"]["x"], wanted("item", torch.bfloat16)[ids])
