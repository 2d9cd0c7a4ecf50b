"""Folders of parts that DGL itself wrote, and examples/partition_graph.py."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import graphwire
import numpy as np
import pytest
from conftest import NODES, TOP, arrays_of_communities
from graphwire.dgl import convert_parts, distributed, host
from graphwire.dgl.parts import PartsError

ARRAYS = arrays_of_communities()
of_dgl = pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="DGL writes the parts")

# DGL alone, without Graphwire's replacements.
WRITE = """
import sys
import dgl, numpy as np, torch
a = np.load(sys.argv[1])
src, dst = torch.from_numpy(a["edges"].T.copy())
if sys.argv[3] == "typed":
    g = dgl.heterograph({("paper", "cites", "paper"): (src, dst), ("author", "writes", "paper"): (src % 50, dst)},
                        {"paper": 600, "author": 50})
    g.nodes["author"].data["age"] = torch.arange(50)
    g.edges["writes"].data["order"] = torch.arange(len(src))
    papers = g.nodes["paper"].data
else:
    g = dgl.graph((src, dst), num_nodes=600)
    g.edata["weight"] = torch.arange(len(src)).float()
    papers = g.ndata
papers["features"], papers["number"] = torch.from_numpy(a["features"]), torch.arange(600)
papers["train_mask"] = torch.from_numpy(a["train_mask"])
dgl.distributed.partition_graph(g, "web", 3, sys.argv[2], part_method="random", num_hops=1)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return written(tmp_path_factory.mktemp("plain"), "plain")


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    return written(tmp_path_factory.mktemp("typed"), "typed")


def written(folder, kind):
    """The JSON of parts that DGL wrote."""
    np.savez(folder / "arrays.npz", **ARRAYS)
    done = subprocess.run([sys.executable, "-c", WRITE, folder / "arrays.npz", folder / "dgl", kind], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder / "dgl" / "web.json"


def changed(config, change):
    """The same with another JSON."""
    words = json.loads(config.read_text())
    change(words)
    path = config.with_name("changed.json")
    path.write_text(json.dumps(words))
    return path


def check(path, typed):
    """Compares data by the columns that identify nodes and edges."""
    paper, cites = ("paper", "cites") if typed else ("_N", "_E")
    with graphwire.open(path, numpy=True) as graph:
        number = graph.feature("number", paper)[:]
        assert np.array_equal(np.sort(number), np.arange(NODES)) and graph.name == "web"
        assert np.array_equal(graph.feature("features", paper)[:], ARRAYS["features"][number])
        assert np.array_equal(graph.feature("train_mask", paper)[:], ARRAYS["train_mask"][number])
        src, dst = graph.find_edges(slice(None), cites)
        found = np.stack([number[src], number[dst]], 1)
        assert sorted(map(tuple, found)) == sorted(map(tuple, ARRAYS["edges"]))
        degrees = graph.out_degrees(np.arange(NODES), cites)  # DGL's parts have out-edges
        assert np.array_equal(degrees, np.bincount(ARRAYS["edges"][:, 0], minlength=NODES)[number])
        if typed:
            order = graph.feature("order", etype="writes")[:]
            src, dst = graph.find_edges(slice(None), "writes")
            age = graph.feature("age", "author")[:]
            assert np.array_equal(age[src], ARRAYS["edges"][order, 0] % 50)
            assert np.array_equal(number[dst], ARRAYS["edges"][order, 1])
        else:
            weight = graph.feature("weight", etype="_E")[:].astype(np.int64)
            assert np.array_equal(found, ARRAYS["edges"][weight])
        return graph.num_parts


@of_dgl
@pytest.mark.parametrize("kind", ["plain", "typed"])
def test_parts_of_dgl(kind, tmp_path, request):
    """With DGL 1's names of edge types and with earlier ones; in the same number of parts and in others."""
    config, typed = request.getfixturevalue(kind), kind == "typed"
    assert check(convert_parts(config, tmp_path / "one", method="random"), typed) == 3

    def older(words):
        for word in ("edge_map", "etypes"):
            words[word] = {name.split(":")[1]: value for name, value in words[word].items()}

    assert check(convert_parts(changed(config, older), tmp_path / "two", num_parts=2), typed) == 2
    if not typed:
        def oldest(words):
            words["node_map"] = [end for _, end in words["node_map"]["_N"]]
            words["edge_map"] = [end for _, end in words["edge_map"]["_N:_E:_N"]]

        assert check(convert_parts(changed(config, oldest), tmp_path / "three", num_parts=1), typed) == 1


@of_dgl
def test_parts_that_do_not_fit(plain, tmp_path):
    for change, says in ((lambda words: words.update(node_map="map.npy"), "reshuffle"),
                         (lambda words: words["edge_map"]["_N:_E:_N"][0].__setitem__(1, 5), "5 rows|rows, and not 5"),
                         (lambda words: words.update(num_parts=4), "each of 4 parts"),
                         (lambda words: words["node_map"]["_N"].__setitem__(2, [500, 520]), "ranges|rows")):
        with pytest.raises(PartsError, match=says):
            convert_parts(changed(plain, change), tmp_path / "out")


def test_without_dgl(tmp_path, monkeypatch):
    """The error says what to install. A file that is not a config is refused too."""
    config = tmp_path / "web.json"
    config.write_text(json.dumps({"graph_name": "web", "num_parts": 1, "node_map": {"_N": [[0, 3]]},
                                  "edge_map": {"_E": [[0, 2]]}, "part-0": {"part_graph": "part0/graph.dgl"}}))
    monkeypatch.setattr(host, "_chosen", importlib.import_module("graphwire.dgl.subset"))
    with pytest.raises(host.MissingError, match=r"part0/graph\.dgl.*install dgl"):
        convert_parts(config, tmp_path / "out")
    config.write_text("{}")
    with pytest.raises(PartsError, match="no JSON of DGL's parts"):
        convert_parts(config, tmp_path / "out")


def example(folder, *arguments):
    done = subprocess.run([sys.executable, TOP / "examples/partition_graph.py", *map(str, arguments)], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_example(tmp_path):
    """Flags of DGL's script, with - and _. Balanced as requested: one of two halves has the training nodes and most
    edges, and an unbalanced cut would not divide it."""
    import test_datasets as sets

    random = np.random.default_rng(4)
    edges = np.concatenate([random.integers(0, 30, (230, 2)), random.integers(30, 60, (68, 2)), [[3, 40], [50, 9]]])
    splits = {"train": np.arange(30), "valid": np.arange(30, 40), "test": np.arange(40, 60)}
    sets.write(tmp_path / "dataset" / "ogbn_products", {
        **sets.of_nodes("sales_ranking"), "raw/edge.csv.gz": sets.csv(edges),
        **{f"split/sales_ranking/{word}.csv.gz": sets.csv(ids) for word, ids in splits.items()}})
    text = example(tmp_path, "--dataset", "ogb-product", "--num-parts", 2, "--balance_train", "--balance_edges",
                   "--no_download")
    assert "|V|=60, |E|=600" in text and "train: 30, valid: 10, test: 20" in text
    with graphwire.open(tmp_path / "data" / "ogb-product.json", numpy=True) as graph:
        assert graph.num_parts == 2 and graph.name == "ogb-product"
        orig, train = graph.feature("orig_id")[:], graph.feature("train_mask")[:]
        assert np.array_equal(graph.feature("labels")[:], sets.A["label"][orig])
        assert np.allclose(graph.feature("features")[:], sets.A["feat"][orig], atol=1e-6)
        shares = [int(train[part.start:part.stop].sum()) for part in map(graph.part_range, range(2))]
        edges = [len(graph.part_edge_range(part)) for part in range(2)]
        assert graph.out_degrees(np.arange(60)).sum() == 600  # DGL's parts have out-edges
    assert max(shares) <= 18 and max(edges) <= 360, (shares, edges)


@of_dgl
def test_the_example_of_dgls_parts(plain, tmp_path):
    example(tmp_path, "--dataset", plain, "--num_parts", 2, "--part_method", "random")
    assert check(tmp_path / "data" / "web.json", False) == 2


def test_the_book_of_dgls_json(tmp_path):
    """Its ranges are read as they are; without DGL too. Types are not sorted by their numbers in the file."""
    config = {"graph_name": "g", "num_parts": 2, "ntypes": {"b": 1, "a": 0}, "etypes": {"b:s:a": 1, "a:r:b": 0},
              "node_map": {"b": [[10, 30], [34, 35]], "a": [[0, 10], [30, 34]]},
              "edge_map": {"b:s:a": [[5, 9], [11, 20]], "a:r:b": [[0, 5], [9, 11]]}}
    path = tmp_path / "g.json"
    path.write_text(json.dumps(config))
    book, name, ntypes, etypes = distributed.load_partition_book(str(path), 1)
    assert (name, ntypes, etypes) == ("g", {"a": 0, "b": 1}, {("a", "r", "b"): 0, ("b", "s", "a"): 1})
    assert book.ntypes == ["a", "b"] and book.local_ntype_offset == [0, 4, 5] and book.local_etype_offset == [0, 2, 11]
    assert book.map_to_homo_nid([9, 10], "a").tolist() == [9, 30]
    for part in (-1, 2):
        with pytest.raises(AssertionError, match="2 parts"):
            distributed.load_partition_book(str(path), part)
    path.write_text(json.dumps({**config, "node_map": {"a": {"0": 0}}}))
    with pytest.raises(TypeError, match="node_map"):
        distributed.load_partition_book(str(path), 0)


def test_the_command_names_its_fault(tmp_path):
    done = subprocess.run([sys.executable, "-m", "graphwire.dgl.convert", str(tmp_path / "none.json"),
                           str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("graphwire.dgl.convert: ") and "none.json" in done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
