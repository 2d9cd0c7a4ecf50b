"""Tables of nodes on the command line, against plain Python; errors by their text."""

from __future__ import annotations

import random
import re
import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, run

pa = pytest.importorskip("pyarrow")

from test_tables import random_tables  # noqa: E402


@pytest.mark.parametrize("kind", ["text", "uuid", "sparse", "negative"])
def test_tables_on_the_command_line(kind, tmp_path):
    """`graphwire import --node-table` makes the graph of from_tables; features are float32."""
    columns = random_tables(random.Random(f"command {kind}"), kind)
    for name, table in zip(("users", "films", "rates", "knows"), columns):
        pa.csv.write_csv(pa.table(table), tmp_path / f"{name}.csv")
    users, films, _, knows = columns
    run("import", "--edges", f"user:rates:film={tmp_path}/rates.csv",
        "--edges", f"user:knows:user={tmp_path}/knows.csv", "--node-table", f"user={tmp_path}/users.csv",
        "--node-table", f"film={tmp_path}/films.csv", "--id-column", "user=id", "--node-column", "user:feat=age,height",
        "--label-column", "user=town", "--mask-column", "user=split", "--mask-column", "film=seen", "--edge-ids",
        "--out", tmp_path / "g")
    with graphwire.open(tmp_path / "g", numpy=True) as graph:
        ids = [str(one) for one in users["id"]] if kind == "negative" else users["id"]  # with a sign they are text
        at = graph.ids_of(ids, "user")
        assert at.tolist() == list(range(len(ids)))  # the order of the rows
        right = np.stack([users["age"], users["height"]], 1).astype(np.float32)
        assert np.array_equal(graph.feature("feat", "user")[at], right)
        towns = sorted(set(users["town"]))
        assert [towns[i] for i in graph.feature("label", "user")[at]] == users["town"]
        for split in ("train", "val", "test"):
            assert graph.feature(f"{split}_mask", "user")[at].tolist() == [one == split for one in users["split"]]
        assert graph.feature("seen", "film")[graph.ids_of(films["film_id"], "film")].tolist() == films["seen"]
        src, dst = graph.find_edges(np.arange(len(knows["src"])), "knows")
        rows = graph.original_ids(np.arange(len(src)), etype="knows")
        for ends, name in ((src, "src"), (dst, "dst")):
            assert [str(ids[i]) for i in ends] == [str(knows[name][row]) for row in rows]


@pytest.mark.parametrize("text, words", [
    (r'edges.csv, line 3: node type _N: "d" is not in the list \S+nodes.csv', ["--node-table", "nodes.csv"]),
    (r"twice.csv, line 4: an id that the list has before", ["--node-table", "twice.csv"]),
    (r'--id-column: \S+nodes.csv: no column "idd"; it has: id, age, town', ["--node-table", "nodes.csv",
                                                                           "--id-column", "idd"]),
    (r"no column is named id, node_id or _N", ["--node-table", "edges.csv"]),
    (r"--label-column: no node type has a --node-table", ["--label-column", "town"]),
    (r"--node-table: node type _N has a list or a table already", ["--nodes", "nodes.csv", "--node-table",
                                                                   "nodes.csv"]),
    (r'whole.csv, line 3: column town is "y": a mask is 0 or 1', ["--node-table", "whole.csv", "--mask-column",
                                                                  "town"]),
    (r'whole.csv, line 2, column 3: "train" as feature is not a number', ["--node-table", "whole.csv", "--node-column",
                                                                         "x=town"]),
    (r"--node-column: column age occurs twice", ["--node-table", "whole.csv", "--node-column", "x=age,age"]),
    (r"a name of a column has 1 to", ["--node-table", "whole.csv", "--node-column", "x=age,"]),
    (r"write columns as TYPE:NAME=COLUMN", ["--node-table", "whole.csv", "--node-column", "age"]),
])
def test_wrong_tables_on_the_command_line(text, words, tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\na,b\nb,d\n")
    for name, last in (("nodes", "c"), ("twice", "a"), ("whole", "d")):
        (tmp_path / f"{name}.csv").write_text(f"id,age,town\na,1,train\nb,2,y\n{last},3,x\n")
    words = [str(tmp_path / word) if word.endswith(".csv") else word for word in words]
    done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "edges.csv", "--out", tmp_path / "g", *words],
                          capture_output=True, text=True)
    assert done.returncode != 0 and re.search(text, done.stderr), done.stderr


def test_the_reverse_of_one_edge_type(tmp_path):
    """--reverse-of adds what --reverse adds, for the types that it names."""
    for name in ("writes", "cites"):
        (tmp_path / f"{name}.csv").write_text("1,0\n0,2\n")
    edges = ["--edges", f"a:writes:p={tmp_path}/writes.csv", "--edges", f"p:cites:p={tmp_path}/cites.csv"]
    reversed_types = {"--reverse": {"p:rev_writes:a", "p:rev_cites:p"}, "--reverse-of=a:writes:p": {"p:rev_writes:a"}}
    for word, more in reversed_types.items():
        run("import", *edges, word, "--out", tmp_path / word)
        with graphwire.open(tmp_path / word, numpy=True) as graph:
            assert set(graph.etypes) == {"a:writes:p", "p:cites:p", *more}
            assert [one.tolist() for one in graph.find_edges([0, 1], "rev_writes")] == [
                one.tolist() for one in reversed(graph.find_edges([1, 0], "writes"))]
    for words, text in ((["--reverse-of=a:cites:p"], "--reverse-of: edge type a:cites:p does not exist"),
                        (["--reverse-of=p:cites:p", "--undirected"], "leave out --reverse-of"),
                        (["--tables", "db.json"], "python -m graphwire import --tables db.json")):
        done = subprocess.run([PROGRAM, "import", *edges, *words, "--out", tmp_path / "g"], capture_output=True,
                              text=True)
        assert done.returncode != 0 and text in done.stderr, done.stderr


@pytest.mark.parametrize("use, cells, found", [
    ("number", ["1", "", "NA", "null", "\\N", "7"], ["1", "", "", "", "", "7"]),
    ("signed", ["-1", "", "7"], ["-1", "", "7"]),
    ("text", ["a", "NULL", '"NULL"', '"x,y"'], ["a", "", '"NULL"', '"x,y"'])])
def test_keys_may_be_missing(use, cells, found, tmp_path):
    """A missing key is an empty field, and a missing id is an error."""
    (tmp_path / "t.csv").write_text("k,v\n" + "".join(f"{one},0\n" for one in cells))
    words = ["import", "columns", f"--from={tmp_path}/t.csv", "--delimiter=44", "--header", "--column=2"]
    assert run(*words, f"--{use}-key=1").split("\n")[1:-1] == [f"0,{one}" for one in found]
    done = subprocess.run([PROGRAM, *words, f"--{use}-id=1"], capture_output=True, text=True)
    assert done.returncode == 1 and "missing" in done.stderr


def test_the_times_that_edges_were_given_need_no_warning(tmp_path):
    """--time NAME says that both edges and sources have it; not if --edge-time has chosen the edges' times."""
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [1, 2], [2, 0]]))
    np.save(tmp_path / "times.npy", np.array([5, 3, 4]))
    times = f"{tmp_path}/times.npy"
    words = ["import", "--from", tmp_path / "edges.npy", "--node-feature", f"time={times}", "--time", "time"]
    for option, warns in ((f"--edge-feature=time={times}", True), (f"--edge-time={times}", False)):
        done = subprocess.run([PROGRAM, *words, option, "--out", tmp_path / str(warns)], capture_output=True, text=True)
        assert done.returncode == 0 and ("have this time, and so have their sources" in done.stderr) == warns
