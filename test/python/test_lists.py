"""Lists of ids beside rows: row r belongs to line r of --nodes, whatever number the line has; without a list, to input
id r. Masks list ids of the input."""

from __future__ import annotations

import itertools
import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM

NAMES, AGES = ["Ann", "Bob", "Cid"], [20.0, 30.0, 40.0]  # by number


def imported(folder, *words):
    done = subprocess.run([PROGRAM, "import", "--out", folder, "--replace", "--quiet", *map(str, words)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return graphwire.open(folder, numpy=True)


def save_strings(path, names):
    encoded = [name.encode() for name in names]
    np.savez(path, offsets=np.cumsum([0, *map(len, encoded)]), bytes=np.frombuffer(b"".join(encoded), np.uint8))


def test_numbered_lines_in_any_order(tmp_path):
    """The same graph, whatever the order of the lines, if the rows have the same order."""
    (tmp_path / "e.csv").write_text("0,1\n1,2\n")
    found = set()
    for order in itertools.permutations(range(3)):
        order = list(order)
        (tmp_path / "nodes.csv").write_text("".join(f"{number},{NAMES[number]}\n" for number in order))
        np.save(tmp_path / "age.npy", np.array(AGES, np.float32)[order])
        np.save(tmp_path / "flag.npy", (np.array([0, 1, 1]))[order])
        np.save(tmp_path / "bool.npy", (np.array([0, 1, 1]) == 1)[order])
        np.save(tmp_path / "ids.npy", np.array([2]))
        save_strings(tmp_path / "town.npz", [NAMES[number] + "'s" for number in order])
        with imported(tmp_path / "g", "--from", tmp_path / "e.csv", "--nodes", tmp_path / "nodes.csv",
                      "--node-feature", f"age={tmp_path / 'age.npy'}", "--node-mask", f"a={tmp_path / 'flag.npy'}",
                      "--node-mask", f"b={tmp_path / 'bool.npy'}", "--node-mask", f"c={tmp_path / 'ids.npy'}",
                      "--node-feature", f"town={tmp_path / 'town.npz'}") as graph:
            assert graph.node_texts(range(3)) == NAMES and graph.feature("age")[:].tolist() == AGES
            assert graph.feature("a")[:].tolist() == graph.feature("b")[:].tolist() == [False, True, True]
            assert graph.feature("c")[:].tolist() == [False, False, True]
            assert graph.node_texts(range(3), name="town") == [name + "'s" for name in NAMES]
        found.add((tmp_path / "g" / "graph.json").read_text().split('"graph_id"')[1].split(",")[0])
    assert len(found) == 1


def test_lists_of_numbers(tmp_path):
    """Ids are the input's: 30 is the second line."""
    (tmp_path / "e.csv").write_text("10,20\n30,10\n")
    ids = np.array([10, 30, 20])
    (tmp_path / "nodes.txt").write_text("\n".join(map(str, ids)) + "\n")
    np.save(tmp_path / "nodes.npy", ids)
    np.save(tmp_path / "age.npy", np.array(AGES, np.float32))
    np.save(tmp_path / "mask.npy", np.array([20, 30]))
    for nodes in ("nodes.txt", "nodes.npy"):
        with imported(tmp_path / "g", "--from", tmp_path / "e.csv", "--nodes", tmp_path / nodes, "--node-feature",
                      f"age={tmp_path / 'age.npy'}", "--node-mask", f"m={tmp_path / 'mask.npy'}") as graph:
            assert graph.feature("orig_id")[:].tolist() == ids.tolist() and graph.feature("age")[:].tolist() == AGES
            assert graph.feature("m")[:].tolist() == [False, True, True]
            assert np.stack(graph.find_edges([0, 1])).T.tolist() == [[1, 0], [0, 2]]


def test_rows_by_id(tmp_path):
    """Sparse ids: row r belongs to input id r, for text too."""
    (tmp_path / "e.csv").write_text("3000,5\n5,1999\n")
    np.save(tmp_path / "x.npy", np.arange(3001))
    save_strings(tmp_path / "t.npz", [str(row) for row in range(3001)])
    with imported(tmp_path / "g", "--from", tmp_path / "e.csv", "--ids", "compact", "--node-feature",
                  f"x={tmp_path / 'x.npy'}", "--node-feature", f"t={tmp_path / 't.npz'}") as graph:
        ids = graph.feature("orig_id")[:].tolist()
        assert sorted(ids) == [5, 1999, 3000] and graph.feature("x")[:].tolist() == ids
        assert graph.node_texts(range(3), name="t") == [str(row) for row in ids]


@pytest.mark.parametrize("more", [[], ["--reverse"], ["--undirected"], ["--transpose"]], ids=str)
def test_names_of_values_of_edges(tmp_path, more):
    """One table for all edges, also of the reverse type, and in each part."""
    (tmp_path / "e.csv").write_text("0,1\n1,2\n2,0\n")
    np.save(tmp_path / "kind.npy", np.array([2, 0, 2]))
    save_strings(tmp_path / "t.npz", ["a", "", "cé"])
    with imported(tmp_path / "g", "--from", tmp_path / "e.csv", *more, "--edge-feature",
                  f"kind={tmp_path / 'kind.npy'}", "--edge-feature", f"kind.names={tmp_path / 't.npz'}") as graph:
        etypes = graph.etypes
    subprocess.run([PROGRAM, "partition", tmp_path / "g", "--num-parts", "2", "--method", "random", "--out",
                    tmp_path / "two"], check=True, capture_output=True)
    for folder in ("g", "two"):
        with graphwire.open(tmp_path / folder) as graph:
            for etype in etypes:
                kinds = graph.feature("kind", etype=etype)[:]
                assert set(graph.edge_texts(kinds, etype, name="kind.names")) == {"cé", "a"}
                assert graph.edge_texts(range(3), etype, name="kind.names") == ["a", "", "cé"]


def refusal(*words):
    done = subprocess.run([PROGRAM, "import", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_refused(tmp_path):
    edges, out = tmp_path / "e.csv", tmp_path / "g"
    edges.write_text("0,1\n1,2\n")
    save_strings(tmp_path / "few.npz", ["a", "b"])
    np.savez(tmp_path / "torn.npz", offsets=np.array([0, 2, 1, 3]), bytes=np.zeros(3, np.uint8))
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.save(tmp_path / "two.npy", np.array([[0, 1], [1, 2]]))
    np.save(tmp_path / "mask.npy", np.array([7]))
    np.save(tmp_path / "list.npy", np.array([0, 1, 2]))
    words = "--from", edges, "--out", out
    assert "2 rows" in refusal(*words, "--node-feature", f"t={tmp_path / 'few.npz'}")
    assert "ascend" in refusal(*words, "--node-feature", f"t={tmp_path / 'torn.npz'}")
    assert ":MEMBER" in refusal(*words, "--node-feature", f"t={tmp_path / 'other.npz'}")
    assert "Only nodes" in refusal(*words, "--edge-feature", f"t={tmp_path / 'few.npz'}")
    assert "node 7, which is not in" in refusal(*words, "--nodes", tmp_path / "list.npy", "--node-mask",
                                                f"m={tmp_path / 'mask.npy'}")
    assert "rows or columns" in refusal("--from", tmp_path / "two.npy", "--out", out)
    assert not out.exists()


def test_tables_of_numbers(tmp_path):
    """Equal to NumPy's own reading, with every number of threads."""
    random, made = np.random.default_rng(1), tmp_path / "made.npy"
    whole, real = random.integers(-10**15, 10**15, (5000, 3)), random.standard_normal((70000, 4))
    real[7, 2] = np.nan
    for name, rows, form, header in (("a.csv", whole, "%d", ""), ("b.csv.gz", real, "%.7g", ""),
                                     ("c.csv", real[:2], "%.3f", "w,x,y,z"), ("d.csv", whole[:, :1], "%d", "")):
        np.savetxt(tmp_path / name, rows, form, delimiter=",", header=header, comments="")
        expected = np.loadtxt(tmp_path / name, np.int64 if form == "%d" else np.float32, delimiter=",", ndmin=2,
                              skiprows=int(bool(header)))
        for threads in ("1", "3"):
            subprocess.run([PROGRAM, "import", "table", "--from", tmp_path / name, "--out", made, "--threads", threads],
                           check=True)
            found = np.load(made)
            assert found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=form != "%d")
    made.unlink()
    for text, error in (("1,2\n3\n", "line 2"), ("1,2\n3,4,5\n", "line 2: more than 2 columns"), ("", "no rows"),
                        ("1,2\n3,x\n", 'line 2, column 2: "x"'), ("1;0,5\n2;1,5\n", '"1;0"')):
        (tmp_path / "bad").write_text(text)
        assert error in refusal("table", "--from", tmp_path / "bad", "--out", made)
        assert not made.exists()
