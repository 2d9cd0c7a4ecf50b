"""partition_graph(weight=…): tables of the named features in every part; and what cannot be a weight."""

import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, run
from graphwire.datasets.plain import edge_list
from weight_tables import check_table, tables

NODES, EDGES = 30, 400
RANDOM = np.random.default_rng(5)
SRC, DST = RANDOM.integers(0, NODES, EDGES), RANDOM.integers(0, NODES, EDGES) ** 2 // NODES
WEIGHTS = {"real": RANDOM.random(EDGES).astype(np.float32), "whole": RANDOM.integers(0, 5, EDGES),
           "column": RANDOM.integers(0, 3, (EDGES, 1)).astype(np.float64), "train_mask": RANDOM.random(EDGES) < 0.5,
           "other": RANDOM.random((EDGES, 2))}


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_features(tmp_path, parts):
    path = graphwire.partition_graph((SRC, DST), "g", parts, tmp_path / "g", method="random", edge_features=WEIGHTS,
                                     weight=["real", "_N:_E:_N:whole", "column", "train_mask"])
    assert tables(path) == {("_N:_E:_N", name) for name in ("real", "whole", "column", "train_mask")}
    for name in ("real", "whole", "column", "train_mask"):
        assert check_table(path, "_N:_E:_N", name) == (WEIGHTS[name] > 0).sum()


def test_several_types(tmp_path):
    given = {("a", "r", "b"): (SRC, DST), ("b", "s", "b"): (DST, SRC)}
    features = {etype: {"w": WEIGHTS["real"], "v": WEIGHTS["whole"]} for etype in given}
    path = graphwire.partition_graph(given, "g", 2, tmp_path / "g", method="random", edge_features=features,
                                     weight=["w", "a:r:b:v"], reverse=True)
    assert tables(path) == {("a:r:b", "w"), ("b:s:b", "w"), ("a:r:b", "v"), ("b:rev_r:a", "w"), ("b:rev_s:b", "w"),
                            ("b:rev_r:a", "v")}
    assert {check_table(path, *table) for table in tables(path)} == {EDGES, int((WEIGHTS["whole"] > 0).sum())}


def test_other_graphs(tmp_path):
    """A matrix, and a file whose column is named; one name needs no list."""
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_matrix((WEIGHTS["real"], (SRC, DST)), shape=(NODES, NODES)).tocsr()
    path = graphwire.partition_graph(matrix, "g", 2, tmp_path / "matrix", method="random", weight="weight")
    assert check_table(path, "_N:_E:_N", "weight") == matrix.nnz
    (tmp_path / "e.txt").write_text("".join(f"{src} {dst} {w}\n" for src, dst, w in zip(SRC, DST, WEIGHTS["whole"])))
    path = edge_list(tmp_path / "e.txt").partition(2, tmp_path / "file", method="random", weight=["3"])
    assert check_table(path, "_N:_E:_N", "weight") == (WEIGHTS["whole"] > 0).sum()


@pytest.mark.parametrize("rows, weight, error, told", [
    (np.where(np.arange(EDGES) == 7, -1.5, 1), "w", RuntimeError,
     'edge feature w of _N:_E:_N, row 7: weight "w" is -1.5'),
    (np.where(np.arange(EDGES) == 9, np.nan, 1), "w", RuntimeError, r"row 9: .* is nan"),
    (np.where(np.arange(EDGES) == 9, np.inf, 1), "w", RuntimeError, r"row 9: .* is inf"),
    (np.ones((EDGES, 2)), "w", RuntimeError, r"float64 \[400, 2\] cannot be a weight"),
    (np.ones(EDGES), ["w", "v"], RuntimeError, '"v" is not an edge feature.*pass arrays with edge_features'),
    (np.ones(EDGES), "a:b:c:w", RuntimeError, '"a:b:c:w" is not an edge feature'),
    (np.ones(EDGES), 3, TypeError, "weight is a name"),
    (np.ones(EDGES), ["w", None], TypeError, "weight is a name"),
    (np.ones(EDGES), "", ValueError, "at least one character"),
])
def test_refusals(tmp_path, rows, weight, error, told):
    with pytest.raises(error, match=told) as failed:
        graphwire.partition_graph((SRC, DST), "g", 2, tmp_path / "g", method="random", edge_features={"w": rows},
                                  weight=weight)
    assert "\n" not in str(failed.value) and ".npy" not in str(failed.value) and "--" not in str(failed.value)
    assert not (tmp_path / "g").exists()


def test_names_of_tables_fit(tmp_path):
    """The array of a table is named NAME.alias. A longer name is refused before any work, in one short line."""
    fits, long = "x" * 58, "x" * 59
    np.save(tmp_path / "e.npy", np.stack((SRC, DST), 1))
    np.save(tmp_path / "w.npy", np.ones(EDGES))
    edges = ["import", "--from", tmp_path / "e.npy", "--edge-feature", f"{fits}={tmp_path}/w.npy", "--edge-feature",
             f"{long}={tmp_path}/w.npy", "--quiet"]
    run(*edges, "--out", tmp_path / "whole")
    cases = (["generate", "rmat", "--scale", 6, "--quiet"], edges,
             ["partition", tmp_path / "whole", "--num-parts", 2, "--method", "random"])
    for number, words in enumerate(cases):
        run(*words, "--weight", fits, "--out", tmp_path / f"fits{number}")
        out = tmp_path / f"long{number}"
        failed = subprocess.run([PROGRAM, *map(str, words), "--weight", long, "--out", out], capture_output=True,
                                text=True)
        told = f'graphwire {words[0]}: --weight: "{long}": the name of a weight has at most 58 characters\n'
        assert failed.stderr == told and not out.exists() and failed.returncode in (1, 2)
