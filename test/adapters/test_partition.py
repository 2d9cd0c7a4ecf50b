"""Graphs in memory that are partitioned: the parts have the input's data, by original ids."""

from __future__ import annotations

import os

import graphwire
import numpy as np
import pytest
import torch
from conftest import NODES, arrays_of_communities, runner
from graphwire.dgl.distributed.context import context
from graphwire.dgl.host import is_installed
from graphwire.dgl.install import install

dgl = install()
ARRAYS = arrays_of_communities()
FEATURES = {name: rows for name, rows in ARRAYS.items() if name != "edges"}


def holds(path, features=("features", "labels", "train_mask"), arrays=ARRAYS, weight=None):
    """The parts have the edges and the features of the arrays."""
    with graphwire.open(path, numpy=True) as graph:
        orig = graph.feature("orig_id")[:]
        src, dst = graph.find_edges(np.arange(graph.num_edges()))
        key = orig[src] * NODES + orig[dst]
        expected = arrays["edges"][:, 0] * NODES + arrays["edges"][:, 1]
        assert np.array_equal(np.sort(key), np.sort(expected))
        for name in features:
            found = graph.feature(name)[:]
            assert np.array_equal(found, arrays[name][orig]), name
        if weight is not None:
            found = graph.feature("weight", etype="_E")[:]
            assert sorted(zip(key, found)) == sorted(zip(expected, weight))
        return graph.num_parts, graph.name


def test_numpy(tmp_path):
    for number, edges in enumerate((ARRAYS["edges"], ARRAYS["edges"].T, tuple(ARRAYS["edges"].T))):
        features = {**FEATURES, "features": np.asfortranarray(FEATURES["features"])}
        path = graphwire.partition_graph(edges, "web", 2, tmp_path / str(number), method="random", num_nodes=NODES,
                                         node_features=features)
        assert holds(path) == (2, "web")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["0", "1", "2"]  # no other file is left
    path = graphwire.partition_graph(ARRAYS["edges"], "web", 3, tmp_path / "0", method="random", num_nodes=NODES)
    assert holds(path, ()) == (3, "web")  # the old folder is replaced


def test_scipy(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    src, dst = np.unique(ARRAYS["edges"], axis=0).T
    weight = np.arange(2, len(src) + 2, dtype=np.float32)
    matrix = sparse.csr_matrix((weight, (src, dst)), shape=(NODES, NODES))
    path = graphwire.partition_graph(matrix, "web", 2, tmp_path / "parts", node_features=FEATURES)
    holds(path, arrays={**ARRAYS, "edges": np.stack([src, dst], 1)}, weight=weight)


def test_pyg(tmp_path):
    data = pytest.importorskip("torch_geometric.data")
    weight = np.arange(len(ARRAYS["edges"]), dtype=np.float32)
    edges = torch.from_numpy(ARRAYS["edges"].T.copy())
    one = data.Data(edge_index=edges, weight=torch.from_numpy(weight),
                    num_nodes=NODES, **{name: torch.from_numpy(rows) for name, rows in FEATURES.items()})
    path = graphwire.partition_graph(one, "web", 2, tmp_path / "parts", method="random", balance_train=True)
    holds(path, weight=weight)


def test_pyg_of_several_types(tmp_path):
    data = pytest.importorskip("torch_geometric.data")
    random = np.random.default_rng(1)
    both = data.HeteroData()
    both["paper"].x = torch.from_numpy(random.standard_normal((50, 4)).astype(np.float32))
    both["author"].num_nodes = 20
    writes = torch.from_numpy(np.stack([random.integers(0, 20, 90), random.integers(0, 50, 90)]))
    both["author", "writes", "paper"].edge_index = writes
    both["author", "writes", "paper"].year = torch.arange(90)
    path = graphwire.partition_graph(both, "papers", 2, tmp_path / "parts", method="random")
    with graphwire.open(path, numpy=True) as graph:
        assert sorted(graph.ntypes) == ["author", "paper"] and graph.num_nodes("author") == 20
        orig = {ntype: graph.feature("orig_id", ntype)[:] for ntype in graph.ntypes}
        assert np.array_equal(graph.feature("x", "paper")[:], both["paper"].x.numpy()[orig["paper"]])
        src, dst = graph.find_edges(np.arange(90), "writes")
        years = graph.feature("year", etype="writes")[:]
        assert np.array_equal(np.stack([orig["author"][src], orig["paper"][dst]]), writes.numpy()[:, years])


def graph_of_dgl():
    graph = dgl.graph(tuple(torch.from_numpy(ARRAYS["edges"].T.copy())), num_nodes=NODES)
    for name, rows in FEATURES.items():
        graph.ndata[name] = torch.from_numpy(rows)
    return graph


def test_dgl_graph_book_and_part(tmp_path):
    graph = graph_of_dgl()
    nodes, edges = dgl.distributed.partition_graph(
        graph, "web", 2, str(tmp_path / "data"), num_hops=1, part_method="metis",
        balance_ntypes=graph.ndata["train_mask"], balance_edges=True, return_mapping=True, graph_formats=["csc"])
    path = str(tmp_path / "data" / "web.json")
    assert holds(path) == (2, "web")
    assert sorted(nodes.tolist()) == list(range(NODES)) and sorted(edges.tolist()) == list(range(graph.num_edges()))
    for part in range(2):
        book, name, ntypes, etypes = dgl.distributed.load_partition_book(path, part)
        assert (name, ntypes, etypes, book.partid) == ("web", {"_N": 0}, {("_N", "_E", "_N"): 0}, part)
        local, node_features, _, _, _, _, _ = dgl.distributed.load_partition(path, part)
        own = book.partid2nids(part)
        assert torch.equal(local.ndata[dgl.NID][:len(own)], own) and int(local.ndata["inner_node"].sum()) == len(own)
        assert torch.equal(node_features["_N/features"], graph.ndata["features"][nodes[own]])
        src, dst = local.edges()
        original = graph.find_edges(edges[local.edata[dgl.EID]])
        assert torch.equal(nodes[local.ndata[dgl.NID][src]], original[0])
        assert torch.equal(nodes[local.ndata[dgl.NID][dst]], original[1])
    with pytest.raises(AssertionError, match="out of range"):
        dgl.distributed.load_partition_book(path, 2)
    with pytest.raises(ValueError, match="balance_nodes of _N: 600 classes, and at most 32"):
        dgl.distributed.partition_graph(graph, "web", 2, str(tmp_path / "x"), balance_ntypes=torch.arange(NODES))


@pytest.mark.skipif(not hasattr(dgl.DGLGraph, "adj_tensors"), reason="the subset makes formats when it needs them")
@pytest.mark.parametrize("several", (False, True))
@pytest.mark.parametrize("formats, stored", (
    (None, {"coo", "csc", "csr"}), (["csc", "csr"], {"coo", "csc", "csr"}), ("csc", {"coo", "csc"}),
    (["coo"], {"coo", "csc"})))
def test_formats_of_a_loaded_part(tmp_path, formats, stored, several):
    """A part's graph begins in the formats in which edges are stored, and finds its edges in the same order."""
    src, dst = torch.from_numpy(ARRAYS["edges"].T.copy())
    graph = dgl.heterograph({("a", "to", "a"): (src, dst), ("a", "of", "b"): (dst, src)}, {"a": NODES, "b": NODES}) \
        if several else graph_of_dgl()
    dgl.distributed.partition_graph(graph, "web", 2, str(tmp_path), part_method="random", graph_formats=formats)
    for part in range(2):
        local = dgl.distributed.load_partition(str(tmp_path / "web.json"), part)[0]
        assert set(local.formats()["created"]) == stored
        assert torch.equal(local.edges(form="all")[2], torch.arange(local.num_edges()))


def test_a_book_of_a_damaged_json(tmp_path):
    """Its only source is the JSON, which must be unchanged."""
    dgl.distributed.partition_graph(graph_of_dgl(), "web", 2, str(tmp_path / "data"), part_method="random")
    path = tmp_path / "data" / "web.json"
    text = path.read_bytes()
    for bit in np.random.default_rng(1).choice(8 * len(text), 60, replace=False):
        damaged = bytearray(text)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises((graphwire.GraphwireError, ValueError, dgl.DGLError)):
            dgl.distributed.load_partition_book(str(path), 0)
    path.write_bytes(text.replace(b'"graphwire-1"', b'"graphwire-2"'))
    with pytest.raises(graphwire.GraphwireError, match="take the Graphwire that wrote it"):
        dgl.distributed.load_partition_book(str(path), 0)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(dgl.DGLError, match="not the JSON of a Graphwire graph"):
        dgl.distributed.load_partition_book(str(path), 0)


@pytest.mark.parametrize(("formats", "out"), [(None, True), (["csr", "coo", "csc"], True), ("csc", False),
                                              (["csc", "coo"], False)])
def test_out_edges(tmp_path, formats, out):
    """DGL's parts have out-edges, unless graph_formats says otherwise: out_degrees, and edge_dir="out"."""
    path = str(tmp_path / "data" / "web.json")
    dgl.distributed.partition_graph(graph_of_dgl(), "web", 2, str(tmp_path / "data"), part_method="random",
                                    graph_formats=formats)
    context.close()
    dgl.distributed.initialize("none.txt")
    try:
        g = dgl.distributed.DistGraph("web", part_config=path)
        orig, nodes = g.ndata["orig_id"][:].numpy(), torch.arange(NODES)
        assert np.array_equal(g.in_degrees().numpy(), np.bincount(ARRAYS["edges"][:, 1], minlength=NODES)[orig])
        if not out:
            with pytest.raises(graphwire.GraphwireError):
                g.out_degrees()
            return
        degrees = np.bincount(ARRAYS["edges"][:, 0], minlength=NODES)[orig]
        assert np.array_equal(g.out_degrees().numpy(), degrees)
        frontier = dgl.distributed.sample_neighbors(g, nodes, -1, edge_dir="out")
        assert sorted(frontier.edata[dgl.EID].tolist()) == list(range(g.num_edges()))
        frontier = dgl.distributed.sample_neighbors(g, nodes, 2, edge_dir="out")
        assert np.array_equal(frontier.out_degrees().numpy(), degrees.clip(max=2))
    finally:
        dgl.distributed.exit_client()


def test_metis_balances_the_given_nodes(tmp_path):
    """Two halves with few edges between them. Without balance_ntypes one part has all training nodes and nine in ten
    edges; with it, no part does."""
    random = np.random.default_rng(4)
    dense, sparse = random.integers(0, 100, (1800, 2)), random.integers(100, 200, (200, 2))
    ring = np.stack([np.arange(200), np.roll(np.arange(200), 1)], 1)
    edges = np.concatenate([dense, sparse, ring])
    shares = {}
    for told in (False, True):
        path = graphwire.partition_graph(edges, "web", 2, tmp_path / str(told), num_nodes=200, undirected=True,
                                         node_features={"train_mask": np.arange(200) < 100}, balance_train=told,
                                         balance_edges=told)
        with graphwire.open(path, numpy=True) as graph:
            train = graph.feature("train_mask")[:]
            shares[told] = [max(sum(train[part.start:part.stop]) for part in map(graph.part_range, range(2))) / 100,
                            max(len(graph.part_edge_range(part)) for part in range(2)) / graph.num_edges()]
    assert min(shares[False]) > 0.8 and max(shares[True]) < 0.6, shares


def test_options_that_there_are_not(tmp_path):
    """A misspelt argument is refused, and so is a request for unchanged ids."""
    graph = dgl.graph((torch.tensor([0, 1]), torch.tensor([1, 0])))
    with pytest.raises(TypeError, match="balance_edge"):
        dgl.distributed.partition_graph(graph, "web", 2, str(tmp_path / "x"), balance_edge=True)
    with pytest.raises(dgl.DGLError, match="reshuffle=False"):
        dgl.distributed.partition_graph(graph, "web", 2, str(tmp_path / "x"), reshuffle=False)
    assert not (tmp_path / "x").exists()


def test_what_does_not_fit(tmp_path, monkeypatch):
    edges = ARRAYS["edges"]
    for wrong, error, says in (
        ({"graph": (edges[:, 0], edges[1:, 1])}, ValueError, "sources"),
        ({"graph": edges.astype(np.float32)}, TypeError, "integers"),
        ({"graph": np.zeros((3, 3), np.int64)}, ValueError, "2, edges"),
        ({"graph": edges, "node_features": {"x": np.ones(3)}}, ValueError, "3 rows"),
        ({"graph": edges, "method": "magic"}, RuntimeError, "magic"),
        ({"graph": edges, "num_nodes": 5}, RuntimeError, "graphwire"),
        # The arrays go through files that the user never sees, so the error names the feature.
        ({"graph": edges, "num_nodes": NODES, "node_features": {"x": np.ones(NODES, np.complex64)}}, TypeError,
         "x of _N: complex numbers cannot be stored"),
        *(({"graph": edges, "num_nodes": NODES, "node_features": {"x": one}}, TypeError,
           "x of _N: rows are an array or a list") for one in (5, np.array(5), torch.tensor(5), "text", None)),
        ({"graph": edges, "edge_features": {"y": np.ones((len(edges), 1, 1, 1, 1))}}, RuntimeError,
         r'^graphwire import: edge feature y of _N:_E:_N: more than'),
        ({"graph": edges, "num_nodes": NODES, "node_features": {"train_mask": np.ones((NODES, 2))}}, RuntimeError,
         r'^graphwire import: .*train_mask'),
    ):
        with pytest.raises(error, match=says):
            graphwire.partition_graph(**{"name": "web", "num_parts": 2, "out": tmp_path / "out", **wrong})
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("GRAPHWIRE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", "")
    for place in ("_PACKAGE", "_TOP"):
        monkeypatch.setattr(f"graphwire._base.program.{place}", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="INSTALL"):
        graphwire.partition_graph(edges, "web", 2, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.skipif(is_installed(), reason="DGL's own Reddit is downloaded even if its files are there")
def test_the_scripts_own_partitioning(scripts, tmp_path):
    """partition_graph.py, unmodified, with Reddit's files, and train_dist.py on the result, with the subset."""
    reddit = tmp_path / "raw" / "reddit_self_loop"
    reddit.mkdir(parents=True)
    kinds = np.select([FEATURES["train_mask"], FEATURES["val_mask"]], [1, 2], 3)
    np.savez(reddit / "reddit_data.npz", feature=FEATURES["features"], label=FEATURES["labels"], node_types=kinds)
    np.savez(reddit / "reddit_self_loop_graph.npz", row=ARRAYS["edges"][:, 0], col=ARRAYS["edges"][:, 1])
    text = runner(scripts / "partition_graph.py", "--dataset", "reddit", "--num_parts", 2, "--balance_train",
                  "--balance_edges", "--undirected", folder=tmp_path,
                  environment={**os.environ, "DGL_DOWNLOAD_DIR": str(tmp_path / "raw")})
    assert f"|V|={NODES}, |E|={len(ARRAYS['edges'])}" in text and "train: 300, valid: 120, test: 180" in text
    undirected = np.unique(np.concatenate([ARRAYS["edges"], ARRAYS["edges"][:, ::-1]]), axis=0)
    assert holds(tmp_path / "data" / "reddit.json", arrays={**ARRAYS, "edges": undirected}) == (2, "reddit")


@pytest.mark.parametrize("parts", [1, 2])
def test_a_node_type_without_edges(parts, tmp_path):
    """It has its nodes and columns; no edges lead to it."""
    whole = dgl.heterograph({("reader", "took", "book"): (torch.tensor([0, 1, 1]), torch.tensor([0, 0, 2]))},
                            {"reader": 2, "book": 3, "shelf": 4})
    whole.nodes["shelf"].data["metres"] = torch.arange(4.0)
    nodes, _ = dgl.distributed.partition_graph(whole, "lib", parts, str(tmp_path / "lib"), return_mapping=True)
    dgl.distributed.initialize("none.txt")
    g = dgl.distributed.DistGraph("lib", part_config=str(tmp_path / "lib" / "lib.json"))
    try:
        assert g.num_nodes("shelf") == 4 and sorted(g.ntypes) == ["book", "reader", "shelf"]
        assert torch.equal(g.nodes["shelf"].data["metres"][:], nodes["shelf"].float())
        assert g.sample_neighbors({"shelf": torch.arange(4)}, -1).num_edges() == 0
        _, _, (block,) = dgl.dataloading.NeighborSampler([-1]).sample_blocks(
            g, {"shelf": torch.tensor([2]), "book": torch.arange(3)})
        assert block.num_edges() == 3 and block.num_dst_nodes("shelf") == 1
    finally:
        dgl.distributed.exit_client()


def test_a_folder_with_other_files(tmp_path):
    """They stay, with a graph beside them and with one that is replaced; a file in the way is an error, and stays."""
    out, edges = tmp_path / "mine", (np.array([0, 1, 2, 3]), np.array([3, 2, 1, 0]))
    (out / "notes").mkdir(parents=True)
    others = {"ip_config.txt": "10.0.0.1\n", "settings.json": '{"format": "mine"}', "notes/part0": "x"}
    for name, text in others.items():
        (out / name).write_text(text)
    before = {name: (out / name).stat().st_ino for name in others}
    for parts in (2, 1):
        path = graphwire.partition_graph(edges, "g", parts, out)
        assert path == out / "g.json" and {name: (out / name).read_text() for name in others} == others
        with graphwire.open(path) as graph:
            assert (graph.num_parts, graph.num_edges()) == (parts, 4)
        assert before == {name: (out / name).stat().st_ino for name in others}
        assert sorted(name.name for name in tmp_path.iterdir()) == ["mine"]
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "part0").write_text("x")
    with pytest.raises(FileExistsError, match="part0 exists already, and is not a graph's"):
        graphwire.partition_graph(edges, "g", 1, taken)
    assert [name.name for name in taken.iterdir()] == ["part0"] and (taken / "part0").read_text() == "x"


@pytest.mark.parametrize("method, u", [("metis", "u"), ("random", "u"), ("random", "größe = a/b")])
def test_classes_are_balanced(method, u, tmp_path):
    """Each part has its share of the nodes of each class and type, as with DGL's balance_ntypes."""
    random = np.random.default_rng(3)
    sizes = {u: 600, "v": 400}
    pairs = {etype: tuple(torch.from_numpy(random.integers(0, sizes[ntype], 4000)) for ntype in etype[::2])
             for etype in ((u, "e", "v"), ("v", "r", u))}
    whole = dgl.heterograph(pairs, sizes)
    kinds = {u: torch.from_numpy(random.choice([0, 3, 7], 600, p=[0.2, 0.7, 0.1])), "v": torch.arange(400) < 100}
    mapping, _ = dgl.distributed.partition_graph(whole, "g", 2, str(tmp_path / "p"), part_method=method,
                                                 balance_ntypes=kinds, return_mapping=True)
    book = dgl.distributed.load_partition_book(str(tmp_path / "p" / "g.json"), 0)[0]
    for ntype, numbers in kinds.items():
        for kind in numbers.unique():
            parts = [int((numbers[mapping[ntype][book.partid2nids(part, ntype)]] == kind).sum()) for part in (0, 1)]
            assert min(parts) >= 0.4 * sum(parts), (ntype, kind, parts)


def test_classes_that_are_refused(tmp_path):
    edges = {("a", "r", "b"): (np.arange(5), np.arange(5))}
    for given, error, text in (({"c": np.zeros(5, int)}, ValueError, "no node type c; it has a, b"),
                               ({"a": np.zeros(4, int)}, ValueError, "4 rows for 5 nodes of a"),
                               ({"a": np.zeros(5)}, TypeError, "one integer or bool for each node, not float64"),
                               ({"a": np.zeros((5, 1), int)}, TypeError, "integer or bool for each node")):
        with pytest.raises(error, match=text):
            graphwire.partition_graph(edges, "g", 2, tmp_path / "g", balance_nodes=given)
    with pytest.raises(RuntimeError, match="balance_train"):
        graphwire.partition_graph(edges, "g", 2, tmp_path / "g", balance_nodes={"a": np.zeros(5, int)},
                                  balance_train=True)
    assert not (tmp_path / "g").exists()


def test_one_part_needs_no_method(tmp_path):
    whole = dgl.graph((torch.arange(5), torch.arange(5).flip(0)))
    for number, method in enumerate((None, "None")):
        dgl.distributed.partition_graph(whole, "g", 1, str(tmp_path / str(number)), part_method=method)
        assert (tmp_path / str(number) / "g.json").exists()
    with pytest.raises(RuntimeError, match="None"):
        dgl.distributed.partition_graph(whole, "g", 2, str(tmp_path / "two"), part_method="None")


def test_values_of_a_matrix(tmp_path):
    """A matrix of SciPy keeps the type of its values."""
    sparse = pytest.importorskip("scipy.sparse")
    for kind, value in ((np.int64, 16777217), (np.float64, 0.1), (np.float64, 1e300), (np.float32, 0.5)):
        matrix = sparse.coo_matrix((np.array([value, 2], kind), ([0, 1], [1, 0])), (2, 2))
        out = graphwire.partition_graph(matrix, "g", 1, tmp_path / "g", method="random")
        with graphwire.open(out, numpy=True) as graph:
            assert sorted(graph.feature("weight", etype=graph.etypes[0])[:].tolist()) == sorted([value, 2])
    with pytest.raises(TypeError, match="complex"):
        graphwire.partition_graph(matrix * 1j, "g", 1, tmp_path / "g")
