"""Graphs of tables, against plain Python: ids, features, labels, masks and times of random tables, from every kind of
table; errors by their text."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import uuid
from pathlib import Path

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, TOP, run
from graphwire import _numbering as numbering

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402, F401

KINDS = ("arrow", "stream", "pandas", "polars", "csv", "parquet", "folder")
RATES = ("user", "rates", "film")
KNOWS = ("user", "knows", "user")


def partition(tables, out, parts=1, **options):
    return graphwire.open(graphwire.partition_graph(tables, "g", parts, out, method="random", **options), numpy=True)


def as_kind(kind, table, path):
    """A table of Arrow as another kind of table."""
    if kind == "arrow":
        return table
    if kind == "stream":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        return pytest.importorskip("polars").from_arrow(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "csv":
        pa.csv.write_csv(table, path.with_suffix(".csv"))
        return path.with_suffix(".csv")
    if kind == "parquet":
        pa.parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=5)
        return str(path.with_suffix(".parquet"))
    path.mkdir()
    (path / "_SUCCESS").touch()
    (path / ".part-00000.parquet.crc").write_bytes(b"crc")
    middle = len(table) // 3
    for part, piece in enumerate((table[:middle], table[middle:])):
        pa.parquet.write_table(piece, path / f"part-{part:05}-c000.snappy.parquet")
    return path


def ids_of(kind, count, draw):
    """Different ids of a kind, in random order."""
    if kind == "text":
        found = [f"person {i}é" for i in range(count)]
    elif kind == "uuid":
        found = [str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(count)]
    elif kind == "sparse":
        found = draw.sample(range(10**12), count)
    else:
        found = [i - count // 2 for i in range(count)]  # negative ones too
    draw.shuffle(found)
    return found


def random_tables(draw, kind):
    """(users, films, rates, knows) as {column: values}."""
    users, films = ids_of(kind, draw.randint(2, 40), draw), ids_of("sparse", draw.randint(1, 20), draw)
    n, m = len(users), len(films)
    rates, knows = draw.randint(1, 200), draw.randint(3, 60)
    return ({"id": users, "age": [draw.random() for _ in range(n)],
             "town": [draw.choice("zyx") + "-town" for _ in range(n)], "height": [draw.randint(0, 9) for _ in range(n)],
             "split": [draw.choice(["train", "val", "test"]) for _ in range(n)],
             "bio": [draw.choice(["ä, b", "", 'say "x"', "plain"]) + "!" for _ in range(n)]},
            {"film_id": films, "seen": [draw.random() < 0.5 for _ in range(m)], "year": [draw.randint(1900, 2030)
                                                                                        for _ in range(m)]},
            {"user": [draw.choice(users) for _ in range(rates)], "film": [draw.choice(films) for _ in range(rates)],
             "stars": [draw.random() * 5 for _ in range(rates)], "when": [draw.randint(-10**9, 10**9)
                                                                         for _ in range(rates)]},
            {"src": [draw.choice(users) for _ in range(knows)], "dst": [draw.choice(users) for _ in range(knows)]})


def graph_of(columns, kind, folder, parts=1):
    users, films, rates, knows = (as_kind(kind, pa.table(one), folder / f"tables/{place}")
                                  for place, one in enumerate(columns))
    tables = graphwire.from_tables(
        {RATES: rates, KNOWS: knows}, {"user": users, "film": films}, id={"user": "id"}, time={RATES: "when"},
        features={"user": {"feat": ["age", "height"], "age": "age"}, "film": ["year", "seen"], RATES: ["stars"]},
        labels={"user": "town"}, masks={"user": "split"}, text={"user": "bio"}, categories={"film": {"decade": "year"}})
    return partition(tables, folder / "parts", parts)


def check(graph, columns, folder):
    """Compares a graph with its tables."""
    users, films, rates, knows = columns
    at = graph.ids_of(users["id"], "user")
    film_at = graph.ids_of(films["film_id"], "film")
    assert graph.num_nodes("user") == len(users["id"]) and graph.num_nodes("film") == len(films["film_id"])
    assert list(graph.original_ids(at, "user")) == users["id"]
    assert list(graph.original_ids(film_at, "film")) == films["film_id"]
    feat = graph.feature("feat", "user")[at]
    assert np.array_equal(feat, np.stack([users["age"], users["height"]], 1)) and feat.dtype == np.float64
    assert graph.feature("age", "user")[at].tolist() == users["age"]
    towns = sorted(set(users["town"]))
    assert [towns[i] for i in graph.feature("label", "user")[at]] == users["town"]
    for split in ("train", "val", "test"):
        assert graph.feature(f"{split}_mask", "user")[at].tolist() == [one == split for one in users["split"]]
    assert graph.node_texts(at, "user", name="bio") == users["bio"]
    assert graph.feature("seen", "film")[film_at].tolist() == films["seen"]
    assert graph.feature("year", "film")[film_at].tolist() == films["year"]
    years = sorted(set(films["year"]))
    assert [years[i] for i in graph.feature("decade", "film")[film_at]] == films["year"]
    for etype, table, names in ((RATES, rates, ("user", "film")), (KNOWS, knows, ("src", "dst"))):
        everything = np.arange(graph.num_edges(etype))
        src, dst = graph.find_edges(everything, etype)
        rows = graph.original_ids(everything, etype=etype)
        got = list(zip(rows.tolist(), graph.original_ids(src, etype[0]), graph.original_ids(dst, etype[2])))
        assert sorted(got) == [(row, *ends) for row, ends in enumerate(zip(*(table[name] for name in names)))]
    rows = graph.original_ids(np.arange(graph.num_edges(RATES)), etype=RATES)
    assert graph.feature("stars", etype=RATES)[:].tolist() == [rates["stars"][row] for row in rows]
    when = graph.feature("time", etype=RATES)[:]
    assert when.tolist() == [rates["when"][row] for row in rows]
    _, dst = graph.find_edges(np.arange(graph.num_edges(RATES)), RATES)
    assert all(a <= b for a, b, same in zip(when, when[1:], dst[1:] == dst[:-1]) if same)


def contents(folder):
    """{file: bytes} of a graph, without its description, which has the time of its making."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix not in (".json", ".log")}


@pytest.mark.parametrize("kind", ["text", "uuid", "sparse", "negative"])
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_random_tables(kind, parts, tmp_path):
    """Ids in are ids out, and each row is its node's, for every kind of id and number of parts."""
    for seed in range(1):
        draw = random.Random(f"{kind} {parts} {seed}")
        columns = random_tables(draw, kind)
        with graph_of(columns, draw.choice(("arrow", "pandas", "parquet")), tmp_path / str(seed), parts) as graph:
            check(graph, columns, tmp_path)


@pytest.mark.parametrize("kind", ["text", "sparse"])
def test_kinds_of_tables_give_the_same_graph(kind, tmp_path):
    """The files of the graph are equal byte for byte."""
    columns = random_tables(random.Random(kind), kind)
    first = None
    for source in KINDS:
        with graph_of(columns, source, tmp_path / source) as graph:
            check(graph, columns, tmp_path)
        found = contents(tmp_path / source / "parts")
        first = first or found
        assert found.keys() == first.keys() and len(found) > 10
        assert all(found[name] == first[name] for name in first), source


@pytest.mark.parametrize("by_command", [False, True])
def test_dgl_chunks(by_command, tmp_path):
    """A chunked graph of Parquet chunks, with DGL's shapes and without, and one of NumPy arrays are equal."""
    random = np.random.default_rng(3)
    edges, feat, label = random.integers(0, 20, (30, 2)), random.random((20, 2, 3)), random.integers(0, 4, 20)
    weight, mask = random.random(30).astype(np.float32), random.integers(0, 2, 20).astype(np.int8)

    def chunk(name, rows, shape):
        table = pa.Table.from_pandas(pd.DataFrame(rows.reshape(len(rows), -1)).rename(columns=str))
        table = table.replace_schema_metadata({"shape": str(rows.shape)} if shape else {})
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
        return f"{name}.parquet"

    def metadata(kind, write):
        def entry(name, rows, shape=True):
            half = len(rows) // 2
            return {"format": {"name": kind}, "data": [write(f"{name}0", rows[:half], shape),
                                                       str(tmp_path / write(f"{name}1", rows[half:], shape))]}
        return {"graph_name": "chunks", "node_type": ["a"], "num_nodes_per_chunk": [[10, 10]], "edge_type": ["a:to:a"],
                "num_edges_per_chunk": [[15, 15]], "edges": {"a:to:a": entry("edges", edges, False)},
                "node_data": {"a": {"feat": entry("feat", feat), "label": entry("label", label),
                                    "train_mask": entry("mask", mask)}},
                "edge_data": {"a:to:a": {"w": entry("w", weight)}}}

    def save(name, rows, _):
        np.save(tmp_path / f"{name}.npy", rows)
        return f"{name}.npy"

    (tmp_path / "numpy.json").write_text(json.dumps(metadata("numpy", save)))
    (tmp_path / "parquet.json").write_text(json.dumps(metadata("parquet", chunk)))
    run("import", "--from", tmp_path / "numpy.json", "--out", tmp_path / "right")
    if by_command:
        done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "parquet.json", "--out", tmp_path / "found"],
                              capture_output=True, text=True)
        said = re.search(r'"a:to:a": Parquet chunks: python (-m graphwire.chunks \S+ )OUT writes', done.stderr)
        assert done.returncode == 1 and said
        subprocess.run([sys.executable, *said.group(1).split(), tmp_path / "npy"], check=True)
        run("import", "--from", tmp_path / "npy" / "metadata.json", "--out", tmp_path / "found")
        assert contents(tmp_path / "found") == contents(tmp_path / "right")
        return
    with partition(graphwire.chunks.chunked(tmp_path / "parquet.json"), tmp_path / "found") as graph:
        assert np.array_equal(graph.feature("feat")[:], feat) and graph.feature("feat").shape == (20, 2, 3)
        assert np.array_equal(graph.feature("label")[:], label)
        assert np.array_equal(graph.feature("train_mask")[:], mask == 1)
        rows = graph.original_ids(np.arange(30), etype="to")
        assert np.array_equal(np.stack(graph.find_edges(np.arange(30)), 1), edges[rows])
        assert np.array_equal(graph.feature("w", etype="to")[:], weight[rows])


# --- Numbers of ids. ---

@pytest.mark.parametrize("as_text", [False, True])
def test_numbering_is_that_of_a_dictionary(as_text):
    """Numbers by first appearance, row by row over two columns, in batches of any size; with and without new ids."""
    draw = random.Random(5)
    first, second = numbering.Numbering(), numbering.Numbering()
    known, other = {}, {}

    def batch(values):
        if not as_text:
            return np.array(values, np.int64)
        texts = [str(value).encode() * (value % 5) for value in values]  # empty ones, and different ones of one length
        kind = draw.choice((np.int32, np.int64))
        return numbering.Texts(np.cumsum([0, *map(len, texts)]).astype(kind), np.frombuffer(b"".join(texts), np.uint8))

    def key(value):
        return str(value) * (value % 5) if as_text else value

    for size in (0, 1, 63, 64, 65, 5000, 40000):
        a, b = ([draw.randrange(30000) for _ in range(size)] for _ in range(2))
        found = numbering.numbers((first, batch(a), True), (first, batch(b), True))
        assert found.tolist() == [[known.setdefault(key(x), len(known)), known.setdefault(key(y), len(known))]
                                  for x, y in zip(a, b)]
        found = numbering.numbers((first, batch(a), False), (second, batch(b), True))
        assert found.tolist() == [[known[key(x)], other.setdefault(key(y), len(other))] for x, y in zip(a, b)]
    missing = numbering.numbers((first, batch([10**6 + 1, 10**6 + 2]), False))
    assert missing.tolist() == [[-1], [-1]]
    assert len(first) == len(known) > 10000 and len(second) == len(other)


def test_limits_of_ids():
    texts = numbering.Texts(np.array([0, 65536]), np.zeros(65536, np.uint8))
    with pytest.raises(graphwire.ResourceError, match="65,536 bytes"):
        numbering.numbers((numbering.Numbering(), texts, True))


# --- Types of columns. ---

def edges_of(count, **columns):
    """A ring of `count` nodes with columns of edges."""
    return pa.table({"src": list(range(count)), "dst": [(i + 1) % count for i in range(count)], **columns})


TYPES = {  # {a column of three rows: (what the rows are, their dtype)}
    "float32": (pa.array([1, 2, 3], pa.float32()), [1, 2, 3], np.float32),
    "float16": (pa.array(np.array([1, 2, 3], np.float16)), [1, 2, 3], np.float16),
    "int8": (pa.array([-1, 2, 3], pa.int8()), [-1, 2, 3], np.int8),
    "uint64": (pa.array([1, 2, 2**64 - 1], pa.uint64()), [1, 2, 2**64 - 1], np.uint64),
    "bool": (pa.array([True, False, True]), [True, False, True], np.bool_),
    "fixed": (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)), [[1, 2], [3, 4], [5, 6]], np.float32),
    "lists": (pa.array([[1, 2], [3, 4], [5, 6]]), [[1, 2], [3, 4], [5, 6]], np.int64),
    "nested": (pa.array([[[1], [2]], [[3], [4]], [[5], [6]]]), [[[1], [2]], [[3], [4]], [[5], [6]]], np.int64),
    "sliced": (pa.array([[9, 9], [1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))[1:], [[1, 2], [3, 4], [5, 6]],
               np.int16),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_features(name, tmp_path):
    column, right, dtype = TYPES[name]
    nodes = pa.table({"id": [0, 1, 2], "x": column})
    with partition(graphwire.from_tables(edges_of(3), nodes, features=["x"]), tmp_path / "g") as graph:
        found = graph.feature("x")[:]
        assert found.dtype == dtype and found.tolist() == right


DAY = 86_400_000_000


@pytest.mark.parametrize("column, right", [
    (pa.array([3, 1, 2]), [3, 1, 2]), (pa.array([3, 1, 2], pa.int32()), [3, 1, 2]),
    (pa.array([3000, 1000, 2000], pa.timestamp("ns")), [3, 1, 2]),
    (pa.array([3, 1, -2], pa.timestamp("s", "UTC")), [3 * 10**6, 10**6, -2 * 10**6]),
    (pa.array([3, 1, 2], pa.date32()), [3 * DAY, DAY, 2 * DAY])])
def test_times(column, right, tmp_path):
    edges = pa.table({"src": [0, 1, 2], "dst": [3, 3, 3], "when": column})
    with partition(graphwire.from_tables(edges, time="when"), tmp_path / "g") as graph:
        assert graph.feature("time", etype="_E")[:].tolist() == sorted(right)  # the edges of a node are sorted


IDS = {
    "dictionary": pa.array(["b", "a", "c"]).dictionary_encode(), "large": pa.array(["b", "a", "c"], pa.large_string()),
    "binary": pa.array([b"b", b"a", b"c"]), "zeros": pa.array(["007", "7", "07"]),
    "int8": pa.array([-5, 3, 7], pa.int8()), "uint64": pa.array([2**63 - 1, 5, 0], pa.uint64())}


@pytest.mark.parametrize("name", IDS)
def test_types_of_ids(name, tmp_path):
    column = IDS[name]
    right = [one.decode() if isinstance(one, bytes) else one for one in column.to_pylist()]
    nodes = pa.table({"id": column, "x": [0, 1, 2]})
    edges = pa.table({"src": column.take(pa.array([0, 1])), "dst": column.take(pa.array([2, 2]))})
    for given in (nodes, None):
        out = tmp_path / str(given is None)
        features = ["x"] if given is not None else None
        with partition(graphwire.from_tables(edges, given, features=features), out) as graph:
            at = graph.ids_of(right)
            assert list(graph.original_ids(at)) == right
            assert given is None or graph.feature("x")[at].tolist() == [0, 1, 2]
            src, dst = graph.find_edges(np.arange(2))
            assert {(right[at.tolist().index(a)], right[at.tolist().index(b)]) for a, b in zip(src, dst)} == {
                (right[0], right[2]), (right[1], right[2])}


def test_uuids_of_arrow_and_categories_of_polars(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"src": ["x", "y"], "dst": ["y", "x"]},
                             schema={"src": polars.Categorical, "dst": polars.Categorical})
    with partition(graphwire.from_tables(frame), tmp_path / "polars") as graph:
        assert sorted(graph.node_texts(range(2))) == ["x", "y"]
    found = [uuid.UUID(int=i) for i in (7, 5)]
    edges = pa.table({"src": pa.array(found, pa.uuid()), "dst": pa.array(found[::-1], pa.uuid())})
    with partition(graphwire.from_tables(edges), tmp_path / "uuid") as graph:
        assert sorted(graph.node_texts(range(2))) == sorted(map(str, found))


def test_csv_is_read_exactly(tmp_path):
    """Ids as they are written; numbers that only a later row shows to be fractions; quotes, a delimiter, a BOM."""
    (tmp_path / "nodes.csv").write_text("\ufeffid;x;y;name\n007;1;2;'a\n7;2;3;\"b;\"\"c\n\"\n08;3.5;4;d\n",
                                        encoding="utf-8")
    (tmp_path / "edges.tsv").write_text("src\tdst\n007\t7\n7\t7\n")
    tables = graphwire.from_tables(tmp_path / "edges.tsv", tmp_path / "nodes.csv", features=["x", "y"], text=["name"])
    with partition(tables, tmp_path / "g") as graph:
        at = graph.ids_of(["007", "7", "08"])
        assert graph.feature("x")[at].tolist() == [1, 2, 3.5] and graph.feature("y")[at].tolist() == [2, 3, 4]
        assert graph.feature("y").dtype == np.int64 and graph.node_texts(at, name="name") == ["'a", 'b;"c\n', "d"]


# --- Errors. ---

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
    (TypeError, "ids are integers or text, not double: cast", changed(EDGES, src=[1.0, 2.0], dst=[1.0, 2.0]), None, {}),
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
    (TypeError, "column town is timestamp[us]: name it in time=", EDGES,
     changed(NODES, town=pa.array([1, 2, 3], pa.timestamp("us"))), {"features": ["town"]}),
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
    (folder / "day=1").mkdir()
    with pytest.raises(ValueError, match="folder day=1: name the files"):
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


# --- The command line. ---

@pytest.mark.parametrize("kind", ["text", "uuid", "sparse", "negative"])
def test_tables_on_the_command_line(kind, tmp_path):
    """`graphwire import --node-table` makes the graph of from_tables; features are float32."""
    columns = random_tables(random.Random(f"command {kind}"), kind)
    for name, table in zip(("users", "films", "rates", "knows"), columns):
        pa.csv.write_csv(pa.table(table), tmp_path / f"{name}.csv")
    users, films, _, knows = columns
    run("import", "--edges", f"user:rates:film={tmp_path}/rates.csv", "--edges",
        f"user:knows:user={tmp_path}/knows.csv", "--node-table", f"user={tmp_path}/users.csv",
        "--node-table", f"film={tmp_path}/films.csv", "--id-column", "user=id", "--node-column", "user:feat=age,height", "--label-column", "user=town",
        "--mask-column", "user=split", "--mask-column", "film=seen", "--edge-ids", "--out", tmp_path / "g")
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


def held():
    """Bytes of this process's anonymous memory."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status).group(1)) << 10


@pytest.mark.parametrize("count", [700_000, 1_500_000])
def test_memory_of_an_id(count):
    """At most 16 bytes, and the id's own text, at any filling of the table."""
    script = f"""if True:
        import numpy as np, test_tables as tests
        from graphwire import _numbering as numbering
        width, step = 36, 50_000
        offsets, one = np.arange(step + 1) * width, numbering.Numbering()
        data = np.full((step, width), 65, np.uint8)
        numbering.numbers((one, numbering.Texts(offsets[:2], data.reshape(-1)), True))
        before, most = tests.held(), 0
        for begin in range(0, {count}, step):
            data[:, :8] = np.arange(begin, begin + step).astype(np.int64).view(np.uint8).reshape(-1, 8)
            numbering.numbers((one, numbering.Texts(offsets, data.reshape(-1)), True))
            most = max(most, tests.held())
        assert len(one) > {count}
        print((most - before) / {count} - width)"""
    environment = {**os.environ, "PYTHONPATH": f"{TOP / 'test/python'}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert 5 < float(done.stdout) <= 16
