"""Tables that are refused: each error is one line, which names the argument, or the table, the column and the row."""

from __future__ import annotations

import re
import subprocess
import sys

import graphwire
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import pyarrow.parquet  # noqa: E402, F401
from test_tables import partition  # noqa: E402

EDGES = {"src": ["a", "b"], "dst": ["b", "c"], "w": [1.0, 2.0]}
NODES = {"id": ["a", "b", "c"], "age": [1, 2, 3], "town": ["x", "y", "x"]}


def changed(table, **columns):
    return pa.table({**table, **columns})


@pytest.mark.parametrize("error, text, make", [
    (ValueError, "features: nodes has no column 'agee': did you mean 'age'", lambda: graphwire.from_tables(
        EDGES, NODES, features={"_N": ["agee"]})),
    (ValueError, "features: no table has a column 'agee': did you mean 'age'", lambda: graphwire.from_tables(
        EDGES, NODES, features=["agee"])),
    (ValueError, "features: nodes has no column 'aeg': did you mean 'age'", lambda: graphwire.from_tables(
        EDGES, NODES, features={"feat": ["age", "aeg"]})),
    (ValueError, "labels: no table has a column 'twon': did you mean 'town'", lambda: graphwire.from_tables(
        EDGES, NODES, labels="twon")),
    (ValueError, "time: edges has no column 'when'; its columns are src, dst, w", lambda: graphwire.from_tables(
        EDGES, NODES, time={("_N", "_E", "_N"): "when"})),
    (ValueError, "id: nodes has no column 'idd': did you mean 'id'", lambda: graphwire.from_tables(
        EDGES, NODES, id="idd")),
    (ValueError, "src: edges has no column 'scr': did you mean 'src'", lambda: graphwire.from_tables(EDGES, src="scr")),
    (ValueError, "edges: no columns have known names of ends", lambda: graphwire.from_tables(
        {"x": [1], "y": [2], "z": [3]})),
    (ValueError, "column src has both", lambda: graphwire.from_tables(EDGES, src="src", dst="src")),
    (ValueError, "nodes: no column is named as ids: pass id=", lambda: graphwire.from_tables(EDGES, {"x": ["a"]})),
    (ValueError, "no edges have the node type 'paepr': did you mean 'paper'", lambda: graphwire.from_tables(
        {("paper", "cites", "paper"): EDGES}, {"paepr": NODES})),
    (ValueError, "features: no table has the type 'papre'", lambda: graphwire.from_tables(
        {("paper", "cites", "paper"): EDGES}, {"paper": NODES}, features={"papre": ["age"], "paper": ["age"]})),
    (ValueError, "two features have the name 'age'", lambda: graphwire.from_tables(
        EDGES, NODES, features=["age"], categories=["age"])),
    (ValueError, "labels: one column", lambda: graphwire.from_tables(EDGES, NODES, labels=["age", "town"])),
    (TypeError, "has no argument 'feature': did you mean 'features'", lambda: graphwire.from_tables(
        EDGES, feature=["w"])),
    (TypeError, "edges: a table is one of pandas, polars", lambda: graphwire.from_tables(5)),
    (FileNotFoundError, "nowhere.csv: no such file", lambda: graphwire.from_tables("nowhere.csv")),
])
def test_wrong_arguments(error, text, make):
    """Refused at once, by one line that names the argument."""
    with pytest.raises(error, match=re.escape(text)) as raised:
        make()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("error, text, edges, nodes, options", [
    (ValueError, "edges, row 1: column dst is 'd', which no row of nodes has as its id", changed(EDGES, dst=["b", "d"]),
     NODES, {}),
    (ValueError, "nodes, row 2: column id: 'a' is the id of an earlier row too", EDGES,
     changed(NODES, id=["a", "b", "a"]), {}),
    (ValueError, "nodes, row 1: column id is missing", EDGES, changed(NODES, id=["a", None, "c"]), {}),
    (ValueError, "edges, row 0: column src is missing", changed(EDGES, src=[None, "b"]), None, {}),
    (ValueError, "edges, row 1: column src is missing", changed(EDGES, src=[1.0, float("nan")], dst=[1.0, 2.0]), None,
     {}),
    (ValueError, "edges, row 1: column src is 2.5: ids of float64 are whole numbers below 9007199254740992",
     changed(EDGES, src=[1.0, 2.5], dst=[1.0, 2.0]), None, {}),
    (ValueError, "edges, row 0: column dst is 9007199254740992.0: ids of float64",
     changed(EDGES, src=[1.0, 2.0], dst=[2.0**53, 2.0]), None, {}),
    (ValueError, "edges, row 1: column src is missing", pd.DataFrame({"src": [1.0, None], "dst": [1, 2]}), None, {}),
    (ValueError, "edges, row 1: column dst is missing",
     pd.DataFrame({"src": [1, 2], "dst": pd.array([1, None], "Int64")}), None, {}),
    (TypeError, "ids are integers or text, not bool: cast", changed(EDGES, src=[True, False], dst=[1, 2]), None, {}),
    (TypeError, "ids of _N are int64 here and text elsewhere", changed(EDGES, dst=[1, 2]), NODES, {}),
    (ValueError, "edges, row 1: column src is 18446744073709551615: ids are below 2^63",
     changed(EDGES, src=pa.array([1, 2**64 - 1], pa.uint64()), dst=[1, 2]), None, {}),
    (ValueError, "nodes, row 2: column age is missing", EDGES, changed(NODES, age=[1, 2, None]), {"features": ["age"]}),
    (ValueError, "nodes, row 1: column age is missing", EDGES, changed(NODES, age=[1, float("nan"), 2]),
     {"features": ["age"]}),
    (ValueError, "nodes, row 1: column age is missing", EDGES,
     pd.DataFrame({**NODES, "age": [1, float("nan"), 2]}), {"features": ["age"]}),
    (TypeError, "column town is string: declare it in text=", EDGES, NODES, {"features": ["town"]}),
    (TypeError, "column age is int64, not text", EDGES, NODES, {"text": ["age"]}),
    (ValueError, "nodes, row 1: column age is a list of 1, but the first row's has 2", EDGES,
     changed(NODES, age=[[1, 2], [3], [4, 5]]), {"features": ["age"]}),
    (ValueError, "nodes, row 2: column age is 3: a mask", EDGES, changed(NODES, age=[0, 1, 3]), {"masks": "age"}),
    (ValueError, "nodes, row 1: column town is 'y': a mask is", EDGES, changed(NODES, town=["train", "y", "test"]),
     {"masks": "town"}),
    (TypeError, "times are integers, timestamps or dates, not double", EDGES, NODES, {"time": "w"}),
    (TypeError, "column town is timestamp[us]: name it in features=[…] or time=", EDGES,
     changed(NODES, town=pa.array([1, 2, 3], pa.timestamp("us"))), {"labels": "town"}),
    (TypeError, "column town is time32[s]: ", EDGES,
     changed(NODES, town=pa.array([1, 2, 3], pa.time32("s"))), {"features": ["town"]}),
    (TypeError, "column town is a time: make it a feature of its own", EDGES,
     changed(NODES, town=pa.array([1, 2, 3], pa.timestamp("us"))), {"features": {"both": ["age", "town"]}}),
    (ValueError, "nodes, row 2: column town is missing", EDGES,
     changed(NODES, town=pa.array([1, 2, None], pa.date32())), {"features": ["town"]}),
])
def test_wrong_rows(error, text, edges, nodes, options, tmp_path):
    """Refused by one line that names the table, the row and the column; nothing is left behind."""
    with pytest.raises(error, match=re.escape(text)) as raised:
        graphwire.partition_graph(graphwire.from_tables(edges, nodes, **options), "g", 1, tmp_path / "g")
    assert "\n" not in str(raised.value) and not any(tmp_path.iterdir())


def test_wrong_files(tmp_path):
    """Errors name the file and its row, from 0."""
    folder = tmp_path / "spark"
    folder.mkdir()
    pa.parquet.write_table(changed(EDGES), folder / "part-0.parquet")
    pa.parquet.write_table(changed(EDGES, src=["a", None]), folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet, row 1: column src is missing"):
        partition(graphwire.from_tables(folder), tmp_path / "g")
    pa.parquet.write_table(changed(EDGES, src=[1, 2]), folder / "part-1.parquet")
    with pytest.raises(TypeError, match=r"part-1\.parquet: column src is int64, but string in part-0\.parquet"):
        partition(graphwire.from_tables(folder), tmp_path / "g")
    pa.parquet.write_table(pa.table({"dst": [1]}), folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet: no column 'src', which part-0\.parquet has"):
        graphwire.from_tables(folder)
    (folder / "day").mkdir()
    with pytest.raises(ValueError, match="folder day, and a folder in a table is named column=value"):
        graphwire.from_tables(folder)
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    (tmp_path / "bad.csv").write_text("src,dst\n1,2\n3\n")
    (tmp_path / "bad.txtx").write_text("src,dst\n")
    with pytest.raises(ValueError, match=r"bad\.parquet: "):
        graphwire.from_tables(tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad\.csv"):
        partition(graphwire.from_tables(tmp_path / "bad.csv"), tmp_path / "g")
    with pytest.raises(ValueError, match=r"neither \.csv, \.tsv, \.csv\.gz nor \.parquet"):
        graphwire.from_tables(tmp_path / "bad.txtx")


def test_a_stream_is_read_once(tmp_path):
    tables = graphwire.from_tables(pa.table(EDGES).to_reader())
    partition(tables, tmp_path / "a").close()
    with pytest.raises(ValueError, match="the stream has been read"):
        partition(tables, tmp_path / "b")


def test_features_beside_tables_are_refused(tmp_path):
    with pytest.raises(TypeError, match="this graph is in files"):
        partition(graphwire.from_tables(EDGES), tmp_path / "g", node_features={"x": np.zeros(3)})


def test_without_pyarrow():
    """One line says what to install; the package works otherwise."""
    done = subprocess.run([sys.executable, "-c", "import sys; sys.modules['pyarrow'] = None; import graphwire\n"
                           "try: graphwire.from_tables({})\nexcept ModuleNotFoundError as error: print(error)"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == 'tables need pyarrow, which is not installed: "pip install pyarrow"\n'
