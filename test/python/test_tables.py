"""Graphs of tables, against plain Python: ids, features, labels, masks and times of random tables, from every kind of
table; errors by their text."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import uuid

import graphwire
import numpy as np
import pytest
import torch
from conftest import PROGRAM, run

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402, F401

KINDS = ("arrow", "stream", "pandas", "objects", "polars", "csv", "parquet", "folder")
RATES = ("user", "rates", "film")
KNOWS = ("user", "knows", "user")


def partition(tables, out, parts=1, **options):
    return graphwire.open(graphwire.partition_graph(tables, "g", parts, out, method="random", **options), numpy=True)


def as_kind(kind, table, path):
    if kind == "arrow":
        return table
    if kind == "stream":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
    if kind == "pandas":
        return table.to_pandas()
    if kind == "objects":  # columns of Python's objects, as pandas had them for text before version 3
        return table.to_pandas().astype(object)
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
            {"src": [draw.choice(users) for _ in range(knows)], "dst": [draw.choice(users) for _ in range(knows)],
             "from": [draw.choice(["wörk", "", "school", "a b"]) for _ in range(knows)]})


def graph_of(columns, kind, folder, parts=1):
    users, films, rates, knows = (as_kind(kind, pa.table(one), folder / f"tables/{place}")
                                  for place, one in enumerate(columns))
    tables = graphwire.from_tables(
        {RATES: rates, KNOWS: knows}, {"user": users, "film": films}, id={"user": "id"}, time={RATES: "when"},
        features={"user": {"feat": ["age", "height"], "age": "age"}, "film": ["year", "seen"], RATES: ["stars"]},
        labels={"user": "town"}, masks={"user": "split"}, text={"user": "bio"},
        categories={"film": {"decade": "year"}, KNOWS: {"met at": "from"}})
    return partition(tables, folder / "parts", parts)


def check(graph, columns, folder):
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
    labels = graph.feature("label", "user")[at]
    assert [towns[i] for i in labels] == users["town"] == graph.node_texts(labels, "user", name="label.names")
    for value in (-1, len(towns)):
        with pytest.raises(graphwire.OutOfRangeError, match=str(value)):
            graph.node_texts([value], "user", name="label.names")
    with pytest.raises(graphwire.NotFoundError, match="has no strings"):
        graph.node_texts([0], "user", name="age.names")
    for split in ("train", "val", "test"):
        assert graph.feature(f"{split}_mask", "user")[at].tolist() == [one == split for one in users["split"]]
    assert graph.node_texts(at, "user", name="bio") == users["bio"]
    assert graph.feature("seen", "film")[film_at].tolist() == films["seen"]
    assert graph.feature("year", "film")[film_at].tolist() == films["year"]
    years = sorted(set(films["year"]))
    decades = graph.feature("decade", "film")[film_at]
    assert [years[i] for i in decades] == films["year"]
    assert graph.node_texts(decades.astype(np.uint16), "film", name="decade.names") == list(map(str, films["year"]))
    for etype, table, names in ((RATES, rates, ("user", "film")), (KNOWS, knows, ("src", "dst"))):
        everything = np.arange(graph.num_edges(etype))
        src, dst = graph.find_edges(everything, etype)
        rows = graph.original_ids(everything, etype=etype)
        got = list(zip(rows.tolist(), graph.original_ids(src, etype[0]), graph.original_ids(dst, etype[2])))
        assert sorted(got) == [(row, *ends) for row, ends in enumerate(zip(*(table[name] for name in names)))]
        if etype == KNOWS and len(rows):
            met, places = graph.feature("met at", etype=etype)[everything], sorted(set(table["from"]))
            assert [places[i] for i in met] == [table["from"][row] for row in rows]
            assert graph.edge_texts(met, etype, name="met at.names") == [table["from"][row] for row in rows]
            assert graph.edge_texts([], etype, name="met at.names") == []
            for value in (-1, len(places)):
                with pytest.raises(graphwire.OutOfRangeError, match=str(value)):
                    graph.edge_texts([value], etype, name="met at.names")
        with pytest.raises(graphwire.NotFoundError, match="has no strings"):
            graph.edge_texts([0], etype, name="bio")
    with pytest.raises(graphwire.NotFoundError, match="nix"):
        graph.edge_texts([0], "nix")
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


def test_names_with_other_characters(tmp_path):
    """Of types, columns and categories, for each role of a column."""
    person, knows = "person/é", ("person/é", ">= 50", "person/é")
    rows = {"id": [3, 1, 2], "birth year": [1.0, 2.0, 3.0], "home town": ["b", "a", "b"], "c+2B": ["x", "y", "z"]}
    links = {"src": [1, 2], "dst": [2, 3], "how?": ["v", "u"], "a km": [4.0, 5.0]}
    tables = graphwire.from_tables(
        {knows: links}, {person: rows}, features={person: ["birth year"], knows: ["a km"]}, text={person: "c+2B"},
        categories={person: ["home town"], knows: ["how?"]})
    with partition(tables, tmp_path / "parts", 2) as graph:
        assert graph.ntypes == [person] and graph.etypes == [":".join(knows)]
        at = graph.ids_of(rows["id"], person)
        assert graph.feature("birth year")[at].tolist() == rows["birth year"]
        assert graph.node_texts(at, name="c+2B") == rows["c+2B"]
        assert graph.node_texts(graph.feature("home town")[at], name="home town.names") == rows["home town"]
        edges = graph.ids_of([0, 1], etype=knows)
        assert graph.feature("a km", etype=knows)[edges].tolist() == links["a km"]
        assert graph.edge_texts(graph.feature("how?", etype=knows)[edges], name="how?.names") == links["how?"]
    with pytest.raises(ValueError, match="a:b"):
        partition(graphwire.from_tables({knows: links}, {person: {**rows, "a:b": [1, 2, 3]}},
                                        features={person: ["a:b"]}), tmp_path / "other", 1)


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


@pytest.mark.parametrize("rows", [np.arange(6, dtype=np.int16).reshape(3, 2), np.ones((3, 2), np.float32, "F"),
                                  torch.arange(6).reshape(3, 2), torch.arange(6.)[::2], torch.ones(3).bfloat16()],
                         ids=["array", "order", "tensor", "strides", "bfloat16"])
def test_columns_of_arrays_and_tensors(rows, tmp_path):
    nodes = {"id": torch.arange(3), "x": rows}
    with partition(graphwire.from_tables(edges_of(3), nodes, features=["x"]), tmp_path / "g") as graph:
        right = np.asarray(rows.float() if rows.dtype == torch.bfloat16 else rows)
        found = graph.feature("x")[:]
        assert found.dtype == right.dtype and np.array_equal(found, right)


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


UNITS = {
    "D": pa.array([3, -1, 2], pa.date32()), "ms": pa.array([86_400_000, 0, -86_400_000], pa.date64()),
    **{unit: pa.array([5, 2**62, -(2**62)], pa.timestamp(unit, "Asia/Tokyo" if unit == "us" else None))
       for unit in ("s", "us", "ns")}}


@pytest.mark.parametrize("unit", UNITS)
def test_features_keep_their_unit(unit, tmp_path):
    """Of nodes and edges, and beside the edges of the nodes."""
    edges = pa.table({"src": [2, 1, 0], "dst": [1, 1, 1], "seen": UNITS[unit]})
    nodes = pa.table({"id": [0, 1, 2], "born": UNITS[unit]})
    tables = graphwire.from_tables(edges, nodes, features=["seen", "born"])
    path = graphwire.partition_graph(tables, "g", 1, tmp_path / "g", method="random", time="born")
    graph = json.loads(path.read_text())
    edge = next(name for name in graph["part-0"] if name.endswith("/seen")).removesuffix("seen")
    node = next(name for name in graph["part-0"] if name.endswith("/born"))
    assert graph["units"] == {node: unit, f"{edge}seen": unit, f"{edge}born.source": unit} and graph["minor"] == 4
    counts = UNITS[unit].cast(pa.int32()).to_pylist() if unit == "D" else UNITS[unit].cast(pa.int64()).to_pylist()
    with graphwire.open(path) as opened:
        assert opened.feature("born")[:].tolist() == counts
    run("verify", path)


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


@pytest.mark.parametrize("largest", [900, 1030, 10**4, 10**12])
def test_integers_without_a_table(largest, tmp_path):
    """They keep their values, or are numbered, as partition_graph does with arrays: the graphs are equal."""
    random = np.random.default_rng(largest % 97)
    a, b = random.integers(0, 400, (2, 600)), random.integers(0, largest, (2, 600))
    b[0, 0] = largest
    edges = {("a", "to", "b"): (a[0], b[0]), ("b", "in", "b"): (b[1], b[0])}
    frames = {etype: {"src": src, "dst": dst} for etype, (src, dst) in edges.items()}
    partition(graphwire.from_tables(frames), tmp_path / "tables").close()
    partition(edges, tmp_path / "arrays").close()
    assert contents(tmp_path / "tables") == contents(tmp_path / "arrays")


def test_tables_without_rows(tmp_path):
    """An edge type without edges, a node type without nodes."""
    nodes, none = pa.table({"id": ["a", "b"], "x": [1.0, 2.0]}), pa.table({"id": pa.array([], pa.string())})
    edges = {("a", "to", "a"): pa.table({"src": ["a"], "dst": ["b"]}),
             ("a", "in", "b"): pa.table({"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())})}
    with partition(graphwire.from_tables(edges, {"a": nodes, "b": none}, features=["x"]), tmp_path / "g") as graph:
        assert graph.num_edges("in") == 0 and graph.num_edges("to") == 1 and graph.num_nodes("b") == 0


def test_masks_and_categories_of_edges(tmp_path):
    """In the order of the graph's edges, whose permutation is not its own inverse."""
    draw = np.random.default_rng(5)
    edges = pd.DataFrame({"src": draw.integers(0, 12, 60), "dst": draw.integers(0, 12, 60),
                          "split": draw.choice(["val", "train", "test", None], 60),
                          "good": draw.integers(0, 2, 60) == 1, "kind": draw.choice(["b", "a", "c"], 60)})
    kinds = {"a": 0, "b": 1, "c": 2}
    tables = graphwire.from_tables(edges, masks=["split", "good"], categories=["kind"])
    with partition(tables, tmp_path / "g") as graph:
        rows = graph.original_ids(np.arange(60), etype="_E")
        assert sorted(rows) == list(range(60)) and not np.array_equal(rows[rows], np.arange(60))
        there = edges.iloc[rows]
        for end, nodes in zip(("src", "dst"), graph.find_edges(np.arange(60))):
            assert graph.original_ids(nodes).tolist() == there[end].tolist()

        def of(name):
            return graph.feature(name, etype="_E")[:].tolist()

        for name in ("train", "val", "test"):
            assert of(f"{name}_mask") == (there["split"] == name).tolist()
        assert of("good") == there["good"].tolist() and of("kind") == there["kind"].map(kinds).tolist()


def test_lists_of_files_are_one_table(tmp_path):
    for part in range(2):
        (tmp_path / f"{part}.csv").write_text(f"id,x\n{part},{part + 5}\n")
    nodes = [tmp_path / "0.csv", tmp_path / "1.csv"]
    for given in (nodes, list(map(str, nodes)), {"_N": nodes}, {"_N": list(map(str, nodes))}):
        with partition(graphwire.from_tables({"src": [0], "dst": [1]}, given, features=["x"]), tmp_path / "g") as graph:
            assert graph.feature("x")[:].tolist() == [5, 6]


def test_mixed_columns_are_refused_in_one_line():
    for table in (pd.DataFrame({"src": [1, "a"], "dst": [1, 2]}), {"src": [1, "a"], "dst": [1, 2]},
                  pd.DataFrame({"src": [object()], "dst": [1]})):
        with pytest.raises(TypeError, match="edges") as raised:
            graphwire.from_tables(table).write(None)
        assert "\n" not in str(raised.value)


def test_edges_keep_their_own_times(tmp_path):
    """from_tables(time=) sorts the lists of its edges; partition_graph(time=) those of the others."""
    days = pa.array([3, 1, 2], pa.date32())
    nodes = {"a": pa.table({"id": [0, 1, 2], "born": days})}
    edges = {("a", "r", "a"): pa.table({"src": [0, 1, 2], "dst": [2, 2, 2], "when": [5, 6, 7]}),
             ("a", "s", "a"): pa.table({"src": [0, 1, 2], "dst": [2, 2, 2]})}
    tables = graphwire.from_tables(edges, nodes, features={"a": ["born"]}, time={("a", "r", "a"): "when"})
    path = graphwire.partition_graph(tables, "g", 1, tmp_path / "g", method="random", time="born")
    order = json.loads(path.read_text())["order"]
    assert order == {"a:r:a": ["time:time", "src"], "a:s:a": ["time:born.source", "src"]}
    with pytest.raises(RuntimeError, match=r'edge type a:r:a has two times, "time" and "born\.source"'):
        graphwire.partition_graph(tables, "g", 1, tmp_path / "g", method="random", time="a:r:a:born.source")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_with_values_in_their_names(kind, tmp_path):
    """Spark's partitionBy: the names of folders are columns, of integers if all values are."""
    rows = [(3, "de", 0), (3, "a/b", 1), (10, None, 2), (-7, "de", 1)]
    for place, (day, land, dst) in enumerate(rows):
        name = "__HIVE_DEFAULT_PARTITION__" if land is None else land.replace("/", "%2F")
        folder = tmp_path / "t" / f"day={day}" / f"land={name}"
        folder.mkdir(parents=True)
        table = pa.table({"src": [place], "dst": [dst]})
        if kind == "csv":
            pa.csv.write_csv(table, folder / "part-0.csv")
        else:
            pa.parquet.write_table(table, folder / "part-0.parquet")
    (tmp_path / "t" / "_SUCCESS").write_text("")
    made = graphwire.from_tables(tmp_path / "t", features=["day"])
    graphwire.partition_graph(made, "g", 1, tmp_path / "g")
    with graphwire.open(tmp_path / "g", numpy=True) as graph:
        src, dst = graph.find_edges(np.arange(4))
        assert sorted(zip(src.tolist(), dst.tolist(), graph.feature("day", etype="_E")[:].tolist())) == [
            (place, dst, day) for place, (day, _, dst) in enumerate(rows)]
    with pytest.raises(ValueError, match=r"land=__HIVE_DEFAULT_PARTITION__.*row 0: column land is missing"):
        graphwire.partition_graph(graphwire.from_tables(tmp_path / "t", categories=["land"]), "g", 1, tmp_path / "h")
    (tmp_path / "t" / "day=3" / "part-1.csv").write_text("src,dst\n1,2\n")
    with pytest.raises(ValueError, match="name different columns"):
        graphwire.from_tables(tmp_path / "t")
