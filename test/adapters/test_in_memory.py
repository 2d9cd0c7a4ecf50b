"""Graphs in memory of every form: the graph has the edges and rows that went in, by original ids; what has two meanings
is refused in one line."""

from __future__ import annotations

import graphwire
import numpy as np
import pytest
import torch


def parts(graph, folder, num_parts=2, **options):
    path = graphwire.partition_graph(graph, "g", num_parts, folder / "parts", method="random", **options)
    return graphwire.open(path, numpy=True)


def names_of(graph, ntype=None):
    """The original ids of the nodes of a type."""
    ntype = ntype or graph.ntypes[0]
    try:
        return list(graph.node_texts(range(graph.num_nodes(ntype)), ntype))
    except graphwire.NotFoundError:
        return graph.feature("orig_id", ntype)[:].tolist()


def edges_of(graph, etype="_E", src=None, dst=None):
    ends = graph.find_edges(np.arange(graph.num_edges(etype)), etype)
    sources, destinations = names_of(graph, src), names_of(graph, dst)
    return sorted((sources[a], destinations[b]) for a, b in zip(*ends))


TEXT = [("ann", "bob"), ("bob", "cid"), ("cid", "ann"), ("ann", "\u6771 \n\"x\"")]
NUMBERS = [(10**9, 7), (7, 10**9), (7, 7)]


def frame(edges, names=("src", "dst"), **columns):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({names[0]: [src for src, _ in edges], names[1]: [dst for _, dst in edges], **columns})


def forms(edges):
    """The same edges in the forms in which users hold them."""
    src, dst = zip(*edges)
    yield np.array(src), np.array(dst)
    yield list(src), list(dst)
    yield list(edges)
    yield {"dst": list(dst), "src": list(src)}
    table = frame(edges, ("user_id", "item"))
    yield table[["item", "user_id"]]
    yield table.user_id, table["item"]
    yield {("_N", "_E", "_N"): table}
    if isinstance(src[0], int):
        yield np.array(edges)
        yield torch.tensor(edges).T
        yield np.array(src, ">i8"), np.array(dst, np.uint64)


@pytest.mark.parametrize("edges", [TEXT, NUMBERS], ids=["text", "sparse"])
def test_forms(edges, tmp_path):
    for number, form in enumerate(forms(edges)):
        with parts(form, tmp_path / str(number)) as graph:
            assert graph.num_nodes() == len({end for edge in edges for end in edge})
            assert edges_of(graph) == sorted(edges)


@pytest.mark.parametrize("form", [
    np.array([[0, 1], [2, 3]]), torch.tensor([[0, 1], [2, 3]]), [[0, 1], [2, 3]], ((0, 1), (2, 3)),
    [np.array([0, 1]), np.array([2, 3])]], ids=["array", "tensor", "lists", "tuples", "list of arrays"])
def test_two_edges_that_could_be_columns(form, tmp_path):
    with pytest.raises(ValueError, match="pairs or two columns"):
        parts(form, tmp_path)
    with pytest.raises(ValueError, match="pairs or two columns"):
        parts({("a", "r", "b"): form}, tmp_path)


def test_two_edges(tmp_path):
    """The forms that have one meaning."""
    for number, form in enumerate(((np.array([0, 1]), np.array([2, 3])), ([0, 1], [2, 3]), [(0, 2), (1, 3)],
                                   (torch.tensor([0, 1]), torch.tensor([2, 3])))):
        with parts(form, tmp_path / str(number)) as graph:
            assert edges_of(graph) == [(0, 2), (1, 3)]


def test_types_of_tables(tmp_path):
    """Columns are found by the types' names; text ids are numbered by type, over all tables."""
    graph = {("user", "rates", "film"): frame([("f1", "ann"), ("f2", "bob")], ("film", "user"), stars=[5, 3]),
             ("user", "knows", "user"): (np.array(["cid", "ann"]), np.array(["ann", "bob"]))}
    with parts(graph, tmp_path) as opened:
        assert edges_of(opened, "rates", "user", "film") == [("ann", "f1"), ("bob", "f2")]
        assert edges_of(opened, "knows", "user", "user") == [("ann", "bob"), ("cid", "ann")]
        stars = opened.feature("stars", etype="rates")[:]
        src, _ = opened.find_edges(np.arange(2), "rates")
        assert {names_of(opened, "user")[end]: star for end, star in zip(src, stars)} == {"ann": 5, "bob": 3}


def test_networkx(tmp_path):
    networkx = pytest.importorskip("networkx")
    karate = networkx.karate_club_graph()
    with parts(karate, tmp_path / "karate") as graph:
        assert edges_of(graph) == sorted([*karate.edges, *((dst, src) for src, dst in karate.edges)])
        clubs = graph.node_texts(range(34), name="club")
        assert dict(zip(names_of(graph), clubs)) == dict(karate.nodes(data="club"))
        src, dst = (np.array(names_of(graph))[ends] for ends in graph.find_edges(np.arange(156)))
        weights = graph.feature("weight", etype="_E")[:]
        assert all(karate[a][b]["weight"] == weight for a, b, weight in zip(src, dst, weights))
    several = networkx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "b")])
    several.add_node("alone", rank=1)
    with pytest.warns(UserWarning, match=r"rank of the nodes \(2 of 3 lack it\)"):
        graph = parts(several, tmp_path / "several", node_features={"x": np.arange(3.0)})
    with graph:
        assert edges_of(graph) == [("a", "b"), ("a", "b"), ("b", "b")]
        assert dict(zip(names_of(graph), graph.feature("x")[:])) == {"a": 0, "b": 1, "alone": 2}
        assert "rank" not in {feature.name for feature in graph.features}  # not all nodes have it
    loops = networkx.Graph([(30, 20), (20, 20)])
    with parts(loops, tmp_path / "loops") as graph:
        assert edges_of(graph) == [(20, 20), (20, 30), (30, 20)]


def test_networkx_attributes_that_are_left_out(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiGraph(name="a name", source="a file")
    graph.add_node("a", kind=["x", "y"], size=1)
    graph.add_node("b", kind=["z", "y"], size=2)
    graph.add_edge("a", "b", key="knows", label="text", weight=0.5)
    with pytest.warns(UserWarning) as said:
        opened = parts(graph, tmp_path, 1)
    (text,) = (str(one.message) for one in said)
    for name, why in (("kind of the nodes", "each node has several texts"), ("label of the edges", "it is text"),
                      ("keys of the edges", "no names"), ("source of the graph", "no node or edge")):
        assert f"{name} (" in text and why in text
    assert said[0].filename.endswith("test_in_memory.py") and "a name" not in text
    assert {feature.name for feature in opened.features} == {"size", "weight", "orig_id"}


def test_names_and_dtypes_of_dgl(tmp_path):
    dgl = pytest.importorskip("dgl")
    ends = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
    given = dgl.heterograph({("gene/protein", "off-label use", "drug"): ends}, {"gene/protein": 4, "drug": 3})
    given.nodes["drug"].data["x y"] = torch.rand(3, 2).bfloat16()
    given.edata[">=50"] = torch.tensor([True, False, True])
    graph = graphwire.open(graphwire.partition_graph(given, "g", 1, tmp_path / "parts"))
    assert sorted(graph.ntypes) == given.ntypes and graph.etypes == [":".join(given.canonical_etypes[0])]
    assert torch.equal(graph.feature("x y", "drug")[:], given.nodes["drug"].data["x y"])
    order = graphwire.EdgeIds(graph).to_position(None, slice(None))
    assert graph.feature(">=50", etype="off-label use")[order].tolist() == [1, 0, 1]
    given.nodes["drug"].data["s"] = torch.eye(3).to_sparse()
    with pytest.raises(TypeError, match="s of drug: sparse"):
        graphwire.partition_graph(given, "g", 1, tmp_path / "other")


def test_scipy(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(5, 300, 0.05, random_state=1, format="csr")
    found = sorted(zip(*map(list, matrix.nonzero())))
    with parts(matrix, tmp_path / "one") as graph:
        assert (graph.num_nodes("row"), graph.num_nodes("column")) == (5, 300)
        assert edges_of(graph, "_E", "row", "column") == found
    with parts({("user", "rates", "film"): matrix.tocsc()}, tmp_path / "two") as graph:
        assert (graph.num_nodes("user"), graph.num_nodes("film")) == (5, 300)
        assert edges_of(graph, "rates", "user", "film") == found
    with pytest.raises(ValueError, match="two node types"):
        parts({("a", "r", "a"): matrix}, tmp_path / "three")


def test_columns(tmp_path):
    """Text, other byte orders, bfloat16 and tables of features, in the nodes' order."""
    pandas = pytest.importorskip("pandas")
    edges = np.array([0, 1, 2]), np.array([1, 2, 0])
    columns = {"text": np.array(["ab", "", "d\u6771f"]), "big": np.array([1, 2, 3], ">f4"),
               "brain": torch.tensor([[1.5], [-2.0], [3e38]], dtype=torch.bfloat16),
               "table": pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6]}),
               "whole": pandas.Series([1, 2, 3], dtype="Int64"), "objects": np.array([True, False, True], object)}
    path = graphwire.partition_graph(edges, "g", 2, tmp_path / "parts", method="random", node_features=columns,
                                     edge_features={"w": torch.ones(3, dtype=torch.bfloat16)})
    with graphwire.open(path) as graph:
        order = graph.feature("orig_id")[:]
        assert [columns["text"][row] for row in order] == graph.node_texts(range(3), name="text")
        assert graph.feature("brain").dtype == torch.bfloat16 == graph.feature("w", etype="_E").dtype
        assert torch.equal(graph.feature("brain")[:], columns["brain"][order])
        assert torch.equal(graph.feature("big")[:], torch.tensor([1.0, 2.0, 3.0])[order])
        assert torch.equal(graph.feature("table")[:], torch.tensor([[1.0, 4], [2, 5], [3, 6]]).double()[order])
        assert graph.feature("whole")[:].tolist() == [row + 1 for row in order]
        assert graph.feature("objects").dtype == torch.bool


@pytest.mark.parametrize(("graph", "options", "error", "says"), [
    ((np.array([0, -5]), np.array([1, 1])), {}, ValueError, "row 1 is -5"),
    ((np.array([0, 2**63], np.uint64), np.array([1, 1])), {}, ValueError, "below 2"),
    ((np.array([0.0, 1.0]), np.array([1, 1])), {}, TypeError, "integers or text"),
    ((np.array(["a", "b"]), np.array([1, 1])), {}, TypeError, "text elsewhere"),
    ((["a", None], ["b", "c"]), {}, ValueError, "row 1 is None"),
    (([1, "b"], ["b", "c"]), {}, TypeError, "numbers or text, not int, str"),
    ((np.array([[0, 1], [1, 2], [2, 0]]), np.array([1, 1])), {}, ValueError, "one column"),
    ({"left": [1, 2], "middle": [2, 3], "right": [3, 4]}, {}, ValueError, "left, middle, right"),
    ({"src": [1], "source_id": [2], "src_id": [2], "dst": [3]}, {}, ValueError, "several columns"),
    ({"src": [1], "dst": [2], "note": ["x"]}, {}, TypeError, "note is text"),
    (np.ma.masked_array(np.arange(12).reshape(6, 2), np.arange(12).reshape(6, 2) == 3), {}, ValueError, "masked"),
    (([0, 1], [1, 0]), {"node_features": {"x": np.ma.masked_array([1, 2], [0, 1])}}, ValueError, "masked"),
    (([0, 1], [1, 0]), {"node_features": {"x": np.array(["2020-01-01", "NaT"], "M8[D]")}}, ValueError, "row 1 is NaT"),
    (([0, 1], [1, 0]), {"node_features": {"x": [1, [2, 3]]}}, ValueError, "x of _N"),
    (([0, 1], [1, 0]), {"node_features": {"x": np.array(["a", None], object)}}, ValueError, "row 1 is None"),
    (([0, 1], [1, 0]), {"edge_features": {"x": ["a", "b"]}}, TypeError, "x of _N:_E:_N is text"),
    ((["a", "b"], ["b", "c"]), {"node_features": {"x": [1, 2, 3]}}, ValueError, "no order"),
    ((["a", "b"], ["b", "c"]), {"num_nodes": 5}, ValueError, "ids of their own"),
])
def test_refused(graph, options, error, says, tmp_path):
    with pytest.raises(error, match=says) as caught:
        parts(graph, tmp_path, **options)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
