"""Rows saved with original ids: each kind of file, from one rank and from several, against the arrays that went in."""

from __future__ import annotations

import csv
import os
import sys

import graphwire
import numpy as np
import pytest
import torch
from conftest import arrays_of_hetero, run
from rank_forks import in_ranks

KINDS = ("csv", "npy", "parquet")
NODES = 50


def need(kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")


def read(path):
    """({id: row}) of a file with one column of rows."""
    path = str(path)
    if path.endswith(".npy"):
        table = np.load(path)
        return dict(zip(table["id"].tolist(), table[table.dtype.names[1]].tolist()))
    if path.endswith(".csv"):
        with open(path, newline="") as file:
            _, *lines = csv.reader(file)
        found = [(one[0], [float(np.float32(cell)) for cell in one[1:]]) for one in lines]
        assert len(dict(found)) == len(found)
        return {key: row if len(row) > 1 else row[0] for key, row in found}
    import pyarrow.parquet
    table = pyarrow.parquet.read_table(path)
    return dict(zip(table["id"].to_pylist(), table[1].to_pylist()))


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A graph of 50 nodes with texts as ids, some awkward, and a feature; in two parts. ({id: row}, folder)."""
    folder = tmp_path_factory.mktemp("named")
    names = ["a,b", 'say "hi"', "Zoë", "7", "007"] + [f"n{i}" for i in range(NODES - 5)]
    rows = np.random.default_rng(2).standard_normal((NODES, 3)).astype(np.float32)
    (folder / "edges.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(names, names[1:] + names[:1])))
    (folder / "nodes.txt").write_text("".join(f"{name}\n" for name in names))
    np.save(folder / "x.npy", rows)
    run("import", "--edges", f"n:r:n={folder}/edges.tsv", "--no-header", "--delimiter", "tab", "--ids", "text",
        "--nodes", f"n={folder}/nodes.txt", "--node-feature", f"n:x={folder}/x.npy", "--out", folder / "whole",
        "--quiet")
    run("partition", folder / "whole", "--num-parts", 2, "--method", "random", "--out", folder / "parts")
    return dict(zip(names, rows.tolist())), folder / "parts"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numpy", (False, True))
def test_a_feature(named, tmp_path, kind, numpy, monkeypatch):
    need(kind)
    wanted, folder = named
    monkeypatch.setattr(graphwire._graph.save, "BLOCK_BYTES", 7 * 24)  # several blocks, the last one short
    with graphwire.open(folder, numpy=numpy) as graph:
        graphwire.save(graph.feature("x"), tmp_path / f"out.{kind}")
        assert read(tmp_path / f"out.{kind}") == wanted
        assert os.listdir(tmp_path) == [f"out.{kind}"]
        with pytest.raises(FileExistsError, match="replace=True"):
            graphwire.save(graph.feature("x"), tmp_path / f"out.{kind}")
        graphwire.save(graph.feature("x")[:1], tmp_path / f"out.{kind}", graph=graph, ids=[0], replace=True)
        first = graph.original_ids([0])[0]
        assert read(tmp_path / f"out.{kind}") == {first: wanted[first]}
        assert os.listdir(tmp_path) == [f"out.{kind}"]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_and_tensors(hetero, tmp_path, kind):
    need(kind)
    arrays = arrays_of_hetero()
    with graphwire.open(hetero) as graph:
        nodes = graph.ids_of([5, 2, 299], "paper")
        graphwire.save(torch.tensor([1.5, 2.5, 3.5]), tmp_path / f"a.{kind}", "paper", graph=graph, ids=nodes)
        assert {int(key): row for key, row in read(tmp_path / f"a.{kind}").items()} == {5: 1.5, 2: 2.5, 299: 3.5}
        tensor = graph.create_tensor("emb", (0, 2), "bfloat16", ntype="author")
        tensor[:] = torch.arange(200).reshape(100, 2).bfloat16()
        graphwire.save(tensor, tmp_path / f"t.{kind}", "author")
        found = {int(key): row for key, row in read(tmp_path / f"t.{kind}").items()}
        assert found == dict(enumerate(tensor[:].float().tolist()))
        graphwire.save({"year": graph.feature("year", "paper"), "feat": graph.feature("feat", "paper")},
                       tmp_path / f"two.{kind}", "paper")
        years = {int(key): row[0] if isinstance(row, list) else row
                 for key, row in read(tmp_path / f"two.{kind}").items()}
        assert years == dict(enumerate(arrays["year"].tolist()))
        graphwire.save(np.empty((0, 2)), tmp_path / f"none.{kind}", "paper", graph=graph, ids=[])
        assert read(tmp_path / f"none.{kind}") == {}


def test_the_columns_are_named(hetero, tmp_path):
    with graphwire.open(hetero) as graph:
        graphwire.save({"year": graph.feature("year", "paper"), "feat": graph.feature("feat", "paper")},
                       tmp_path / "two.csv")
        head = (tmp_path / "two.csv").read_text().splitlines()[0]
        assert head == "id,year," + ",".join(f"feat_{i}" for i in range(8))
        graphwire.save(graph.feature("feat", "paper"), tmp_path / "feat.npy")
        table = np.load(tmp_path / "feat.npy")
        assert table.dtype == np.dtype([("id", "<i8"), ("feat", "<f4", (8,))])
        assert np.array_equal(table["feat"][np.argsort(table["id"])], arrays_of_hetero()["feat"])


def test_what_does_not_fit(hetero, tmp_path):
    out = tmp_path / "out.csv"
    with graphwire.open(hetero) as graph:
        feat = graph.feature("feat", "paper")
        for error, words, call in (
                (ValueError, r"\.parquet, \.csv, \.npy", lambda: graphwire.save(feat, tmp_path / "out.txt")),
                (ValueError, "paper, not to nodes of type author", lambda: graphwire.save(feat, out, "author")),
                (ValueError, "300 rows|100 nodes", lambda: graphwire.save(
                    graph.create_tensor("t", (7, 1)), out, "author")),
                (TypeError, "graph=", lambda: graphwire.save(np.ones(3), out)),
                (TypeError, "ids=", lambda: graphwire.save(np.ones(3), out, "paper", graph=graph)),
                (TypeError, "every node", lambda: graphwire.save(feat, out, ids=[1])),
                (ValueError, "3 rows, and there are 2 ids", lambda: graphwire.save(
                    np.ones(3), out, "paper", graph=graph, ids=[1, 2])),
                (graphwire.OutOfRangeError, "id 300", lambda: graphwire.save(
                    np.ones(1), out, "paper", graph=graph, ids=[300])),
                (graphwire.NotFoundError, "which node type", lambda: graphwire.save(
                    np.ones(1), out, graph=graph, ids=[0])),
                (ValueError, "strength.*cites", lambda: graphwire.save(
                    graph.feature("strength", etype="cites"), out, "paper")),
                (ValueError, "torch.distributed", lambda: graphwire.save(feat, out, world=2, rank=0)),
                (graphwire.InvalidError, "one or ranks", lambda: graphwire.save(feat, out, files="many"))):
            with pytest.raises(error, match=words):
                call()
        assert not os.listdir(tmp_path)


def test_the_type_of_a_tensor(hetero, tmp_path):
    """A tensor has the type of its nodes; one without a type goes by its number of rows."""
    with graphwire.open(hetero) as graph:
        papers, authors = (graph.create_tensor(f"of {kind}".replace(" ", "."), (0, 1), ntype=kind)
                           for kind in ("paper", "author"))
        papers[:] = np.arange(300, dtype=np.float32)[:, None]
        graphwire.save(papers, tmp_path / "p.csv")
        found = read(tmp_path / "p.csv")
        assert {int(key): row for key, row in found.items()} == {
            int(key): float(node) for node, key in enumerate(graph.original_ids(np.arange(300), "paper"))}
        graphwire.save({"x": papers, "feat": graph.feature("feat", "paper")}, tmp_path / "two.csv")
        plain = graph.create_tensor("plain", (100, 1))
        graphwire.save({"x": plain, "y": authors}, tmp_path / "a.csv")
        assert len(read(tmp_path / "a.csv")) == 100
        cites = graph.create_tensor("edges", (0, 1), etype="cites")
        same = graph.create_tensor("like", (graph.num_nodes("author"), 1))
        for error, words, call in (
                (ValueError, "belong to paper, not to nodes of type author", lambda out: graphwire.save(
                    papers, out, "author")),
                (ValueError, "belong to author, not to nodes of type paper", lambda out: graphwire.save(
                    {"x": papers, "y": authors}, out)),
                (ValueError, "cites", lambda out: graphwire.save(cites, out, "paper")),
                (graphwire.NotFoundError, "which node type", lambda out: graphwire.save(cites, out)),
                (graphwire.NotFoundError, "which node type", lambda out: graphwire.save(same, out))):
            with pytest.raises(error, match=words):
                call(tmp_path / "none.csv")
        assert not (tmp_path / "none.csv").exists()
    with graphwire.open(hetero) as graph:  # an opened tensor, and one after the graph's reopening
        assert graph.create_tensor("again", (0, 1), ntype="author").shape[0] == 100


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_is_known_beforehand(named, tmp_path, kind):
    """No file is opened for writing under a name that another user could have put a link at; a link at the file's own
    name is replaced."""
    need(kind)
    other, opened, out = tmp_path / "other", [], tmp_path / "out"
    other.write_text("not yours")
    out.mkdir()
    (out / f"rows.{kind}").symlink_to(other)
    watched = [True]
    sys.addaudithook(lambda event, found: opened.append((str(found[0]), found[2])) if (
        watched and event == "open" and isinstance(found[0], str)) else None)
    with graphwire.open(named[1]) as graph:
        graphwire.save(graph.feature("x"), out / f"rows.{kind}", replace=True)
        (tmp_path / f"dangling.{kind}").symlink_to(tmp_path / "absent")
        with pytest.raises(FileExistsError, match="replace=True"):
            graphwire.save(graph.feature("x"), tmp_path / f"dangling.{kind}")
    watched.clear()
    written = [path for path, mode in opened if path.startswith(f"{out}/") and mode & (os.O_WRONLY | os.O_RDWR)]
    assert all(os.path.dirname(path) != str(out) for path in written) and (written or kind == "parquet")
    assert other.read_text() == "not yours" and not (out / f"rows.{kind}").is_symlink()
    assert read(out / f"rows.{kind}") == named[0] and os.listdir(out) == [f"rows.{kind}"]


def test_without_pyarrow(hetero, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with graphwire.open(hetero) as graph, pytest.raises(ModuleNotFoundError, match=r"pip install pyarrow.*csv"):
        graphwire.save(graph.feature("feat", "paper"), tmp_path / "out.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_ranks(named, tmp_path, kind):
    need(kind)
    wanted, config = named

    def work(graph, rank, join):
        join()
        graphwire.save(graph.feature("x"), f"{tmp_path}/one.{kind}")
        graphwire.save(graph.feature("x"), f"{tmp_path}/many.{kind}", files="ranks")
        try:  # one rank's ids are wrong: all of them get an error, and no file appears
            graphwire.save(np.ones(1), f"{tmp_path}/bad.{kind}", graph=graph, ids=[10**6 if rank == 1 else 0])
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    errors = in_ranks(work, config, tmp_path / "meet", 3)
    assert read(tmp_path / f"one.{kind}") == wanted
    parts = [read(tmp_path / f"many-{rank:05}-of-00003.{kind}") for rank in range(3)]
    assert sum(map(len, parts)) == NODES and {**parts[0], **parts[1], **parts[2]} == wanted
    assert errors[1].startswith("OutOfRangeError: id 1000000")
    assert errors[0].startswith("RuntimeError: save: rank 1: OutOfRangeError") and errors[2] == errors[0]
    left = {name for name in os.listdir(tmp_path) if name.endswith(kind) or ".rank" in name or ".tmp" in name}
    assert left == {f"one.{kind}", *(f"many-{rank:05}-of-00003.{kind}" for rank in range(3))}
