"""Graphs: types, features, single calls, errors; results are compared with the input arrays."""

from __future__ import annotations

import pickle
import subprocess
import sys

import graphwire
import numpy as np
import pytest
import torch
from conftest import arrays_of_hetero, run


def test_types(graph):
    assert sorted(graph.ntypes) == ["author", "paper"]
    assert "author:writes:paper" in graph.etypes and len(graph.etypes) == 4
    assert graph.num_nodes("paper") == 300 and graph.num_nodes() == 400
    assert graph.num_edges("cites") == 2000 == graph.num_edges(("paper", "cites", "paper"))
    assert graph.ends("writes") == ("author", "paper")
    assert graph.part_range(0, "author") == range(100)
    assert graph.transport(0) == "memory"
    with pytest.raises(IndexError):
        graph.transport(1)


def test_reverses(graph, whole, tmp_path):
    assert graph.reverse("cites") == "paper:rev_cites:paper" and graph.reverse("rev_cites") == "paper:cites:paper"
    assert graph.reverse(("author", "writes", "paper")) == "paper:rev_writes:author"
    with pytest.raises(graphwire.NotFoundError, match="nix"):
        graph.reverse("nix")
    (tmp_path / "edges.tsv").write_text("0\t1\n1\t2\n")
    run("import", "--from", tmp_path / "edges.tsv", "--undirected", "--out", tmp_path / "both", "--quiet")
    with graphwire.open(tmp_path / "both") as both, graphwire.open(whole) as one_way:
        assert both.reverse() == both.etypes[0]
        assert one_way.reverse() is None


def test_rows_are_those_that_went_in(graph):
    arrays = arrays_of_hetero()
    feat = graph.feature("feat", "paper")
    assert feat.shape == (300, 8) and feat.dtype == torch.float32 and len(feat) == 300
    ids = [7, 3, 7, 299]
    assert np.array_equal(graph.gather("feat", tuple(ids), "paper").numpy(), arrays["feat"][ids])
    for kind in (ids, np.array(ids, np.int32), torch.tensor(ids)):
        assert np.array_equal(feat[kind].numpy(), arrays["feat"][ids])
    assert np.array_equal(feat[4].numpy(), arrays["feat"][4])
    assert np.array_equal(feat[290:].numpy(), arrays["feat"][290:])
    assert np.array_equal(np.asarray(feat), arrays["feat"])
    mask = arrays["year"] > 2010
    assert np.array_equal(graph.gather("year", mask, "paper").numpy(), arrays["year"][mask])
    assert feat[[]].shape == (0, 8)


def test_edge_rows(graph):
    assert len(graph.feature("strength", etype="cites")) == 2000
    original = graph.gather("orig_id", range(2000), etype="cites").numpy()
    strength = graph.gather("strength", range(2000), etype="cites").numpy()
    assert np.array_equal(strength, arrays_of_hetero()["strength"][original])


def test_degrees(graph):
    expected = np.bincount(arrays_of_hetero()["writes"][1], minlength=300)
    assert np.array_equal(graph.in_degrees(range(300), "writes").numpy(), expected)


def test_features_are_listed(graph):
    found = {(feature.type, feature.name): feature for feature in graph.features}
    assert found["paper", "feat"].shape == (300, 8)
    assert found["paper:cites:paper", "strength"].of_edges


def test_numpy_instead_of_torch(hetero):
    with graphwire.open(hetero, numpy=True) as graph:
        rows = graph.gather("feat", [1, 2], "paper")
        assert isinstance(rows, np.ndarray) and rows.dtype == np.float32
        batch = graphwire.sample(graph, [1], [5], ntype="paper", features={"paper": "feat"})
        assert isinstance(batch.blocks[0]["cites"].indices, np.ndarray)
        assert batch.blocks[0]["cites"].edge_index.shape[0] == 2


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it fails
import graphwire
import numpy as np
from graphwire._base.arrays import torch_module
assert torch_module() is None
graph = graphwire.open(sys.argv[1])
feat, label = graph.feature("feat"), graph.gather("label", slice(None))
assert feat.dtype == np.float32 and type(label) is np.ndarray
train = graph.split("train_mask")
assert np.array_equal(np.sort(train), np.flatnonzero(graph.gather("train_mask", slice(None))))
loader = graphwire.NodeLoader(graph, train, [3, 2], features="feat", labels="label", batch_size=500, shuffle=True)
for batch in loader:
    assert np.array_equal(batch.x, feat[batch.nodes["_N"]]) and np.array_equal(batch.y, label[batch.seeds])
    assert np.array_equal(batch.nodes["_N"][batch.seed_rows], batch.seeds)
    block = batch.blocks[0].only
    src, dst = graph.find_edges(block.edge_ids)
    assert np.array_equal(batch.nodes["_N"][block.edge_index], np.stack([src, dst]))
    assert graph.has_edges(src, dst).all() and block.in_degrees.sum() == block.num_edges
links = graphwire.EdgeLoader(graph, range(600), [2], negatives=3, exclude=["ends"], batch_size=200)
for batch in links:
    src, dst = graph.find_edges(batch.seeds)
    assert np.array_equal(batch.nodes["_N"][np.stack([batch.src_rows, batch.dst_rows])], np.stack([src, dst]))
    assert batch.negative_rows.shape == (200, 3) and batch.negative_rows.dtype == np.int64
around = graph.neighbours(train[:9])
assert np.array_equal(np.diff(around.offsets), graph.in_degrees(train[:9]))
assert np.isin(around.edge_ids, graph.edge_ids(around.src, around.dst).edge_ids).all()
for dtype in ("float32", "bfloat16", "int64", "uint16", "bool"):
    tensor = graph.create_tensor(dtype, (10, 2), dtype)
    tensor[[3, 4]] = np.ones((2, 2))
    tensor[5] = 1
    assert type(tensor[:]) is np.ndarray and tensor[:].sum() == 6 == tensor.count_nonzero()
tensor = graph.open_tensor("float32")
tensor.push([3, 3], np.ones((2, 2)), kind="sgd", lr=0.25)
assert tensor[[3, 4]].tolist() == [[0.5, 0.5], [1, 1]]
graph.checkpoint(sys.argv[2])
tensor[:] = 0
graph.restore(sys.argv[2])
assert tensor[3].tolist() == [0.5, 0.5]
try:
    next(iter(graphwire.NodeLoader(graph, train, [2], device="cpu")))
except ValueError as error:
    print(error)
"""


def test_numpy_alone(parts, tmp_path):
    """Where torch is not installed."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, parts, tmp_path / "saved"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "device= needs torch\n"


@pytest.mark.parametrize("call, kind, text", [
    (lambda g: g.gather("feat", [300], "paper"), graphwire.OutOfRangeError, "id 300 at position 0"),
    (lambda g: g.gather("feat", [300], "paper"), IndexError, "ids run from 0 to 299"),
    (lambda g: g.feature("nix", "paper"), graphwire.NotFoundError, 'no feature "nix"'),
    (lambda g: g.feature("feat", "nix"), LookupError, "nix"),
    (lambda g: g.feature("feat"), graphwire.NotFoundError, "which node type"),
    (lambda g: g.num_edges("nix"), graphwire.NotFoundError, "nix"),
    (lambda g: g.gather("feat", [0.5], "paper"), TypeError, "integers"),
    (lambda g: g.gather("feat", [[1]], "paper"), ValueError, "one dimension"),
    (lambda g: g.gather("feat", np.ones(3, bool), "paper"), IndexError, "mask"),
    (lambda g: graphwire.sample(g, [0], [5], ntype="paper", features="feat"), ValueError, "several types"),
    (lambda g: graphwire.sample(g, [0], [], ntype="paper"), ValueError, "fanouts"),
    (lambda g: graphwire.NodeLoader(g, ntype="paper", rank=2, world=2), ValueError, "world"),
    (lambda g: graphwire.NodeLoader(g, ntype="paper", batch_size=301, last="drop"), graphwire.InvalidError, ""),
    (lambda g: graphwire.NodeLoader(g, [0, 300], ntype="paper"), graphwire.OutOfRangeError, "300"),
    (lambda g: g.ends("nix"), graphwire.NotFoundError, "paper:cites:paper"),
    (lambda g: g.num_nodes("nix"), graphwire.NotFoundError, "author"),
    (lambda g: g.transport(1), IndexError, "no part 1"),
    (lambda g: g.node_texts([1], "paper"), graphwire.NotFoundError, "are numbers"),
    (lambda g: g.node_texts([1], "nix"), graphwire.NotFoundError, "nix"),
    (lambda g: g.edge_texts([1], "cites"), graphwire.NotFoundError, "no strings \"rel.names\""),
    (lambda g: g.edge_texts([1], "nix"), graphwire.NotFoundError, "nix"),
    (lambda g: g.restore("absent"), graphwire.NotFoundError, "absent"),
    (lambda g: g.checkpoint("absent", ["nix"]), graphwire.NotFoundError, "no tensors"),
    (lambda g: graphwire.sample(g, [300], [2], ntype="paper"), graphwire.OutOfRangeError, "300"),
    (lambda g: graphwire.sample(g, [1], [-5], ntype="paper"), graphwire.InvalidError, "fanout -5"),
    (lambda g: graphwire.sample(g, [1], [2], ntype="nix"), graphwire.NotFoundError, "nix"),
    (lambda g: graphwire.sample(g, [1], [2], ntype="paper").x, ValueError, "features="),
    (lambda g: graphwire.sample(g, [1], [2], ntype="paper", features={"paper": ["feat", "year"]}).x, ValueError,
     "several features"),
    (lambda g: graphwire.sample(g, [1], [2], ntype="paper").y, ValueError, "labels="),
    (lambda g: graphwire.sample(g, [1], [2], ntype="paper").blocks[0].only, ValueError, "4 edge types"),
    (lambda g: graphwire.sample(g, [1], [{"cites": 2}], ntype="paper").blocks[0]["writes"], KeyError, "cites"),
    (lambda g: graphwire.nn.SAGEConv(8, 4, "median"), ValueError, "median"),
    (lambda g: graphwire.nn.RelGraphConv(8, 4, g.etypes, aggregator="median"), ValueError, "median"),
])
def test_errors_carry_the_line(graph, call, kind, text):
    with pytest.raises(kind) as error:
        call(graph)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_that_numpy_has_no_type_for(graph):
    feature = graph.feature("feat", "paper")
    assert np.asarray(feature).dtype == np.float32
    feature.dtype = torch.bfloat16
    with pytest.raises(TypeError, match="NumPy has no bfloat16"):
        np.asarray(feature)


def test_an_absent_graph():
    with pytest.raises(graphwire.NotFoundError, match="absent"):
        graphwire.open("absent")
    with pytest.raises(graphwire.NotFoundError, match="GRAPHWIRE_"):
        graphwire.open()


def test_errors_survive_pickling(graph):
    with pytest.raises(graphwire.OutOfRangeError) as error:
        graph.gather("feat", [-1], "paper")
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is graphwire.OutOfRangeError and again.status == "GW_RANGE" and str(again) == str(error.value)


def test_a_closed_graph_is_an_error(hetero):
    graph = graphwire.open(hetero)
    feature = graph.feature("feat", "paper")
    batch = graphwire.sample(graph, [1], [5], ntype="paper", features={"paper": "feat"})
    graph.close()
    with pytest.raises(ValueError, match="closed"):
        feature[[1]]
    ids = batch.nodes["paper"].numpy()  # a tensor in use stays
    assert np.array_equal(batch.features["paper"]["feat"].numpy(), arrays_of_hetero()["feat"][ids])


def test_a_pickled_graph_opens_its_own(hetero):
    with graphwire.open(hetero) as graph, pickle.loads(pickle.dumps(graph)) as other:
        assert other.graph_id == graph.graph_id
        assert torch.equal(other.gather("year", [5], "paper"), graph.gather("year", [5], "paper"))
