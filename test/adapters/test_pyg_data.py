"""from_pyg keeps every attribute of PyG's data, with its values and dtype, or a warning names the attribute."""

from __future__ import annotations

import contextlib
import random
import warnings

import graphwire
import numpy as np
import pytest
import torch

pytest.importorskip("torch_geometric")
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NeighborSampler

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8,
          torch.int8, torch.bool]
NAMES = ["a", "gene/protein", ">=50", "off-label use", "+", "a+2F", "\u6771", ".x", "1%"]


def converted(data, **options):
    """(the graph, the text of its warnings)"""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = graphwire.pyg.from_pyg(data, **options)
    return graph, " ".join(str(one.message) for one in said)


def rows_of(draw, count):
    """Rows in the forms and dtypes in which users hold them, and the same rows as a tensor."""
    shape = (count, *draw.choice([(), (1,), (3,), (2, 3)]))
    rows = (torch.rand(shape) * 100).to(draw.choice(DTYPES))
    form = draw.choice(["tensor", "numpy", "list", "turned"])
    if form == "numpy" and rows.dtype != torch.bfloat16:
        return rows.numpy(), rows
    if form == "list" and rows.ndim == 1 and rows.dtype in (torch.float64, torch.int64, torch.bool):
        return rows.tolist(), rows
    return (rows.T.contiguous().T if rows.ndim == 2 else rows), rows


def check(feature, rows):
    assert tuple(feature.shape) == tuple(rows.shape)
    found = feature[:]
    assert found.dtype == rows.dtype and torch.equal(found, rows)


def random_data(draw):
    """(data, {(type, attribute): rows}, {name of an attribute that has no rows}): a graph of random types."""
    nodes = {ntype: draw.randrange(0, 40) for ntype in draw.sample(NAMES, draw.randrange(1, 4))}
    data, kept, lost = HeteroData(), {}, set()
    for ntype, count in nodes.items():
        data[ntype].num_nodes = count
        for name in draw.sample(["x", "y", "time", "train_mask", "a.b"], draw.randrange(3)):
            data[ntype][name], kept[ntype, name] = rows_of(draw, count)
            if name == "train_mask":
                data[ntype][name] = kept[ntype, name] = torch.rand(count, draw.randrange(2, 5)) < 0.5
        if draw.random() < 0.5:
            data[ntype].spare = torch.zeros(count + 1)
            lost.add("spare")
    for relation in draw.sample(NAMES, draw.randrange(1, 4)):
        etype = draw.choice([*nodes]), relation, draw.choice([*nodes])
        count = draw.randrange(60) if nodes[etype[0]] and nodes[etype[2]] else 0
        data[etype].edge_index = torch.stack([
            torch.randint(0, max(1, nodes[end]), (count,)) for end in (etype[0], etype[2])])
        for name in draw.sample(["edge_attr", "weight", "u_index"], draw.randrange(3)):
            data[etype][name], kept[etype, name] = rows_of(draw, count)
            if name == "u_index":  # PyG has the edges of such attributes in the last dimension
                data[etype][name], kept[etype, name] = torch.ones(4, count), torch.ones(count, 4)
    if draw.random() < 0.5:
        data.u, data.title = torch.zeros(3), "a title"
        lost |= {"u", "title"}
    return data, kept, lost


@pytest.mark.parametrize("seed", range(12))
def test_every_attribute_is_kept_or_named(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    data, kept, lost = random_data(draw)
    graph, said = converted(data)
    assert graph.ntypes == data.node_types and graph.etypes == [":".join(etype) for etype in data.edge_types]
    for ntype in data.node_types:
        assert graph.num_nodes(ntype) == data[ntype].num_nodes
    for etype in data.edge_types:
        order = graphwire.EdgeIds(graph).to_position(etype, slice(None)) if graph.num_edges(etype) else slice(0)
        assert torch.equal(torch.stack(list(graph.find_edges(order, etype))), data[etype].edge_index)
    for (kind, name), rows in kept.items():
        if isinstance(kind, str):
            check(graph.feature(name, kind), rows)
        else:
            order = graphwire.EdgeIds(graph).to_position(kind, slice(None)) if len(rows) else slice(0)
            feature = graph.feature(name, etype=kind)
            found = feature[order]
            assert torch.equal(found, rows) and tuple(feature.shape) == tuple(rows.shape)
    assert all(f"{name} of" in said for name in lost) and bool(said) == bool(lost)
    names = {one.name for one in graph.features} - {"orig_id", "orig_id.inverse"}
    assert names == {name for _, name in kept}


def edges(count=30, nodes=10):
    return torch.randint(0, nodes, (2, count))


@pytest.mark.parametrize("name, value, why", [
    ("x", torch.eye(10).to_sparse(), "sparse"), ("x", torch.eye(10).to_sparse_csr(), "sparse"),
    ("z", torch.ones(10, 2, dtype=torch.complex64), "complex"), ("z", np.ones(10, complex), "complex"),
    ("z", torch.ones(10, dtype=torch.float8_e4m3fn), "float8"), ("u", torch.ones(7), r"\[7\]"),
    ("s", "a title", "str"), ("o", [object()] * 10, "numbers or text"), ("t", [["a", "b"]] * 10, "one text"),
    ("n", [None] * 10, "None"), ("y", torch.tensor(1.0), r"\[\]"), ("face", torch.ones(3, 4).long(), r"\[3, 4\]"),
    ("edge_label", torch.ones(5), "a loader takes it"), ("edge_label_index", torch.ones(2, 30).long(), "a loader"),
])
def test_attributes_that_are_left_out(name, value, why):
    with pytest.warns(UserWarning, match=rf"\b{name} of .*{why}") as said:
        graph = graphwire.pyg.from_pyg(Data(edge_index=edges(), num_nodes=10, feat=torch.ones(10), **{name: value}))
    assert len(said) == 1 and said[0].filename == __file__
    assert {one.name for one in graph.features} == {"orig_id", "feat"}


def test_texts_of_nodes_are_kept_as_texts():
    names = [f"n\u00e4me {number}" for number in range(10)]
    with pytest.warns(UserWarning, match=r"names of _N \(it is text, which Graph.node_texts"):
        graph = graphwire.pyg.from_pyg(Data(edge_index=edges(), num_nodes=10, names=names))
    assert graph.node_texts(range(10), name="names") == names
    with pytest.warns(UserWarning, match="labels of _N:_E:_N .*text, which edges do not store"):
        graphwire.pyg.from_pyg(Data(edge_index=edges(), num_nodes=10, labels=["a"] * 30))


def test_rows_of_nodes_and_edges_are_distinguished_by_name():
    """A homogeneous graph with as many edges as nodes: PyG decides by the name."""
    data = Data(edge_index=edges(10), x=torch.rand(10, 2), edge_attr=torch.rand(10))
    graph, said = converted(data)
    check(graph.feature("x"), data.x)
    assert graph.feature("edge_attr", etype="_E").shape == (10,) and not said


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_the_edges_of_a_sparse_matrix(layout):
    torch.manual_seed(1)
    pairs = torch.unique(edges(), dim=1)
    data = Data(edge_index=pairs, num_nodes=12, edge_weight=torch.rand(pairs.shape[1]), x=torch.rand(12))
    ends = {tuple(pair): weight for pair, weight in zip(pairs.T.tolist(), data.edge_weight.tolist())}
    graph, said = converted(transforms.ToSparseTensor(layout=layout)(data))
    assert "adj_t" in said and graph.num_nodes() == 12
    src, dst = graph.find_edges(slice(None))
    weights = graph.feature("edge_weight", etype="_E")[:]
    assert dict(zip(zip(src.tolist(), dst.tolist()), weights.tolist())) == ends


@pytest.mark.parametrize("undirected", [False, True])
def test_link_split(undirected):
    torch.manual_seed(1)
    data = Data(x=torch.rand(100, 8), edge_index=torch.randint(0, 100, (2, 500)))
    if undirected:
        data = transforms.ToUndirected()(data)
    for part in transforms.RandomLinkSplit(is_undirected=undirected)(data):
        graph, said = converted(part)
        assert graph.num_edges() == part.num_edges and "edge_label_index" in said
        check(graph.feature("x"), data.x)


def hetero(**columns):
    data = HeteroData()
    for name, rows in columns.items():
        data["a"][name] = rows
    data["a", "e", "a"].edge_index = torch.tensor([[0, 1], [1, 4]])
    return data


def test_the_number_of_nodes():
    assert converted(hetero(time=torch.arange(7)))[0].num_nodes("a") == 7
    graph, said = converted(hetero())
    assert graph.num_nodes("a") == 5
    assert said == "a: num_nodes is not set: it is taken as 5, the greatest id of an edge plus 1"
    graph, said = converted(hetero(x=torch.ones(6), time=torch.arange(7)))
    assert graph.num_nodes("a") == 6 and "time of a" in said
    graph, said = converted(Data(edge_index=torch.tensor([[0, 1], [1, 4]]), u=torch.ones(7), y=torch.ones(5)))
    assert graph.num_nodes() == 5 and "u of the data ([7]" in said  # u may be the graph's
    check(graph.feature("y"), torch.ones(5))
    graph, said = converted(hetero(one=torch.ones(6), time=torch.arange(7)), num_nodes={"a": 7})
    assert graph.num_nodes("a") == 7 and "one of a" in said
    with pytest.raises(ValueError, match=r"a: .*\(one: 6 rows, time: 7 rows; edges need 5\): set num_nodes"):
        graphwire.pyg.from_pyg(hetero(one=torch.ones(6), time=torch.arange(7)))
    with pytest.raises(ValueError, match=r"a: .*time: 3 rows; edges need 5"):
        graphwire.pyg.from_pyg(hetero(time=torch.arange(3)))


def test_types_without_edges():
    data = hetero(x=torch.rand(6, 2))
    data["alone"].x = torch.rand(3, 2)
    graph, said = converted(data)
    check(graph.feature("x", "alone"), data["alone"].x)
    assert not said
    empty = HeteroData()
    empty["a"].x = torch.ones(5)
    for data, words in ((empty, "has no edge type"), (Data(x=torch.ones(3)), "there is no edge_index")):
        with pytest.raises(ValueError, match=words):
            graphwire.pyg.from_pyg(data)
    with pytest.raises(ValueError, match=r"edge_index has the shape \[3, 2\]"):
        graphwire.pyg.from_pyg(Data(edge_index=torch.ones(3, 2).long()))


def test_names_that_cannot_be_kept():
    for data, words in ((hetero(), r"a type's name: 'a:x' .*"), (hetero(**{"a:b": torch.ones(5)}), "a feature's")):
        if "type" in words:
            data["a:x"].x = torch.ones(2)
        with pytest.raises(ValueError, match=words):
            graphwire.pyg.from_pyg(data)
    data = hetero()
    data["\u6771" * 30].x = torch.ones(2)
    with pytest.raises(ValueError, match=r"a type's name: '\u6771.* takes 270 bytes as .*: at most 64"):
        graphwire.pyg.from_pyg(data)


def test_batches_have_the_names():
    data = hetero(**{"x/y": torch.rand(5, 2)})
    data["a", ">=50", "a"].edge_index = data["a", "e", "a"].edge_index
    data["a", ">=50", "a"]["w 1"] = torch.tensor([0.0, 1.0])
    graph, _ = converted(data)
    loader = graphwire.NodeLoader(graph, None, {">=50": [-1], "e": [0]}, features={"a": ["x/y"]}, batch_size=5,
                                  weight={">=50": "w 1"}, edge_features={">=50": ["w 1"]})
    found = next(iter(loader)).to_pyg()
    assert found.edge_types == [("a", "e", "a"), ("a", ">=50", "a")]
    assert torch.equal(found["a"]["x/y"], data["a"]["x/y"][found["a"].n_id])
    assert found["a", ">=50", "a"]["w 1"].tolist() == [1.0]


@pytest.mark.parametrize("seed", range(6))
def test_to_pyg_has_every_type(seed):
    """For any seeds and fanouts: HeteroData exactly if the graph has several types, with all of them."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    nodes = {ntype: draw.randrange(1, 20) for ntype in draw.sample(["a", "b", "c"], draw.choice([1, 1, 3]))}
    relations = ["r", "s", "t"][:draw.choice([1, 3])]
    data = HeteroData()
    for ntype, count in nodes.items():
        data[ntype].x = torch.rand(count, 2)
    for relation in relations:
        etype = draw.choice([*nodes]), relation, draw.choice([*nodes])
        data[etype].edge_index = torch.stack([torch.randint(0, nodes[end], (40,)) for end in (etype[0], etype[2])])
    graph, _ = converted(data)
    several = len(nodes) > 1 or len(relations) > 1
    for _ in range(5):
        fanouts = [{relation: draw.choice([-1, 0, 2]) for relation in draw.sample(relations, draw.randrange(
            len(relations) + 1))} for _ in range(draw.randrange(1, 3))]
        ntype = draw.choice([*nodes])
        batch = next(iter(graphwire.NodeLoader(graph, None, fanouts, ntype=ntype, features={one: "x" for one in nodes},
                                               batch_size=draw.randrange(1, 20), frontier=draw.choice(["all", "new"]))))
        assert batch.etypes == graph.etypes
        found = batch.to_pyg()
        assert isinstance(found, HeteroData) == several
        if several:
            assert set(found.node_types) == set(nodes) and set(found.edge_types) == set(data.edge_types)
        for ntype in nodes:
            store = found[ntype] if several else found
            assert torch.equal(store.x, data[ntype].x[store.n_id])
        for etype in data.edge_types:
            store = found[etype] if several else found
            ends = [found[end].n_id if several else found.n_id for end in (etype[0], etype[2])]
            columns = graphwire.EdgeIds(graph).to_original(etype, store.e_id)
            assert store.edge_index.shape == (2, len(store.e_id))
            assert torch.equal(data[etype].edge_index[:, columns], torch.stack([
                ends[0][store.edge_index[0]], ends[1][store.edge_index[1]]]))


def test_reading_every_edge_is_told_once():
    """PyG's own NeighborLoader reads every edge into each trainer. Other calls are meant to."""
    graph, _ = converted(Data(edge_index=edges(), num_nodes=10, x=torch.ones(10)))
    feature_store, graph_store = graphwire.pyg.stores(graph, "x")

    def sampler():
        with contextlib.suppress(ImportError):  # it needs pyg-lib or torch-sparse, after it has read the edges
            NeighborSampler((feature_store, graph_store), num_neighbors=[2])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph_store.coo()
        graph_store.csc()
    with pytest.warns(UserWarning, match=r"every edge of the graph .* graphwire.pyg.NeighborLoader"):
        sampler()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "every edge of the graph")
        sampler()


def test_errors_have_the_names():
    data = HeteroData()
    data["gene/protein"].x = torch.ones(4, 1)
    data["gene/protein", ">=50", "gene/protein"].edge_index = torch.tensor([[0], [1]])
    graph, _ = converted(data)
    for call in (lambda: graph.ntype_number("drug/x"), lambda: graph.etype_number("<50")):
        with pytest.raises(graphwire.NotFoundError, match=r"gene/protein") as error:
            call()
        assert "+" not in str(error.value)
    with pytest.raises(graphwire.OutOfRangeError, match=">=50"):
        graphwire.EdgeLoader(graph, [7], [2])
