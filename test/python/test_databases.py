"""Graphs of tables with keys: the edges of random databases beside pandas' merge, by Python and by the command line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import graphwire
import numpy as np
import pytest
from conftest import TOP, run
from graphwire._files import database as database_module
from graphwire._files import database_command, descriptions, table_kinds

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

sys.path.insert(0, str(TOP / "test/support"))

from databases import Database  # noqa: E402

COUNT = int(os.environ.get("GRAPHWIRE_DATABASES", "24"))


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows_of(graph, database, name):
    """The row of each node of a table, by its key."""
    table = database.tables[name]
    known = graph.original_ids(np.arange(table.rows), name)
    if not table.kinds:
        return list(known)
    place = {tuple(map(plain, key, table.kinds.values())): row
             for row, key in enumerate(zip(*(table.columns[key] for key in table.kinds)))}
    return [place[tuple(map(plain, json.loads(one) if len(table.kinds) > 1 else [one], table.kinds.values()))]
            for one in known]


def plain(part, kind):
    """A part of a key as text, in the forms that CSV and keys have. In CSV a text of digits is an integer."""
    return pd.Timestamp(part) if kind in ("day", "moment") else str(part).lower() if kind == "bool" else str(part)


def edges_of(graph, database, etype):
    """[(source row, destination row, time, end)] of a graph, sorted."""
    count = graph.num_edges(etype) if graph.etypes else 0
    src, dst = graph.find_edges(np.arange(count), etype)
    names = {feature.name for feature in graph.features if feature.of_edges and feature.type == ":".join(etype)}
    times = [graph.feature(name, etype=etype)[:].tolist() if name in names else [None] * count
             for name in ("time", "end_time")]
    rows = {name: rows_of(graph, database, name) for name in (etype[0], etype[2])}
    return sorted(zip((rows[etype[0]][i] for i in src), (rows[etype[2]][i] for i in dst), *times))


@pytest.mark.parametrize("seed", range(COUNT))
def test_edges_are_those_of_merge(seed, tmp_path, monkeypatch):
    """Python objects and the description in JSON, by Python and by the command line, give equal bytes. The edges, their
    times and what is lost are pandas'. Batches of half of the databases have three rows."""
    monkeypatch.setattr(table_kinds, "BATCH_ROWS", (1 << 17, 3)[seed % 2])
    database = Database(seed)
    files = database.write(tmp_path)
    memory = {name: path if database.tables[name].csv else database.in_memory(name) for name, path in files.items()}
    made = graphwire.from_database(database.described(memory))
    graphwire.partition_graph(made, "db", 2, tmp_path / "memory", method="random")
    graphwire.partition_graph(graphwire.from_database(tmp_path / "db.json"), "db", 2, tmp_path / "json",
                              method="random")
    assert database_command.main(["--tables", str(tmp_path / "db.json"), "--out", str(tmp_path / "whole"),
                                  "--quiet"]) == 0
    run("partition", tmp_path / "whole", "--num-parts", 2, "--method", "random", "--out", tmp_path / "command")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "json") == bytes_of(tmp_path / "command")
    expected, lost = database.edges()
    with graphwire.open(tmp_path / "memory", numpy=True) as graph:
        assert set(graph.ntypes) == set(database.tables)
        assert {tuple(one.split(":")) for one in graph.etypes} == set(expected)
        for etype, edges in expected.items():
            assert edges_of(graph, database, etype) == edges, etype
        for name, table in database.tables.items():
            assert graph.num_nodes(name) == table.rows
            if table.rows:
                place = np.argsort(rows_of(graph, database, name))
                numbers = graph.feature("n", name)[:][place].tolist()
                assert [None if one != one else int(one) for one in numbers] == table.columns["n"]
                codes = graph.feature("word", name)[:][place]
                words = [None if code < 0 else graph.node_texts([code], name, "word.names")[0] for code in codes]
                assert words == table.columns["word"]
    for name, one in made.record["tables"].items():
        assert {(name, tuple(key["columns"])): (key["null"], key["dangling"]) for key in one["foreign_keys"]} == {
            key: counts for key, counts in lost.items() if key[0] == name}


# --- Single rules. ---

USERS = {"id": [10, 20, 2**60 + 1], "age": [1, 2, 3]}
ORDERS = {"user": [20, None, 2**60 + 1, 5], "at": pa.array([4, 5, 6, 7], pa.timestamp("s"))}


def made(tmp_path, tables, **options):
    """The graph of a database, opened."""
    config = graphwire.partition_graph(graphwire.from_database(tables, **options), "g", 1, tmp_path / "g",
                                       method="random")
    return graphwire.open(config, numpy=True)


def two(users=None, orders=None, **arguments):
    """Users and their orders. users, orders: further columns; arguments: of the table of orders."""
    arguments = {"time": "at", "features": [], **arguments}
    return {"users": graphwire.Table({**USERS, **(users or {})}, "id", features=[]),
            "orders": graphwire.Table({**ORDERS, **(orders or {})}, None, {"user": "users"}, **arguments)}


def test_a_database_of_relbench(tmp_path):
    """As it is, by the attributes that make_pkey_fkey_graph reads; the edges' names are those that it gives."""
    class Of:
        def __init__(self, **given):
            self.__dict__.update(given)

    events = pd.DataFrame({"user_id": pd.array([1, None, 0], "Int64"), "kind": pd.Categorical(["a", None, "b"]),
                           "when": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-02"]), "n": [1.5, None, 2]})
    users = pd.DataFrame({"user_id": [0, 1], "seen": pd.to_datetime(["2020-01-01", None]), "name": ["x", None]})
    database = Of(table_dict={
        "users": Of(df=users, pkey_col="user_id", fkey_col_to_pkey_table={}, time_col=None),
        "events": Of(df=events, pkey_col=None, fkey_col_to_pkey_table={"user_id": "users"}, time_col="when")})
    with made(tmp_path, database, unit="s") as graph:
        assert graph.etypes == ["events:f2p_user_id:users", "users:rev_f2p_user_id:events"]
        seconds = [1577836800, 1577836800 + 2 * 86400, 1577836800 + 86400]
        assert graph.feature("time", "events")[:].tolist() == seconds
        assert graph.feature("time", etype="f2p_user_id")[:].tolist() == [seconds[2], seconds[0]]
        assert graph.feature("kind", "events")[:].tolist() == [0, -1, 1]
        assert graph.node_texts([0, 1], "users", "name") == ["x", ""]
        assert np.array_equal(graph.feature("n", "events")[:], [1.5, np.nan, 2], equal_nan=True)
        assert not any(one.name == "seen" for one in graph.features)


def test_frames_of_polars(tmp_path):
    """Texts, lists, categories and missing values of its own types."""
    pl = pytest.importorskip("polars")
    users = pl.DataFrame({"id": ["x", "y"], "kind": pl.Series(["u", None], dtype=pl.Categorical),
                          "row": [[1.0, 2.0], [3.0, 4.0]], "n": [None, 1]})
    orders = pl.DataFrame({"user": ["y", None, "z", "x"]})
    with made(tmp_path, {"users": graphwire.Table(users, "id"),
                         "orders": graphwire.Table(orders, None, {"user": "users"})}) as graph:
        assert [one.tolist() for one in graph.find_edges([0, 1], "f2p_user")] == [[3, 0], [0, 1]]
        assert graph.feature("kind", "users")[:].tolist() == [0, -1]
        assert graph.feature("row", "users")[:].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert np.array_equal(graph.feature("n", "users")[:], [np.nan, 1], equal_nan=True)


@pytest.mark.parametrize("tables, error, text", [
    (two({"id": [10, 20, 20]}), ValueError, "table users, row 2: column id: 20 is the key of an earlier row too"),
    (two({"id": [10, None, 20]}), ValueError, "table users, row 1: column id is missing"),
    (two(orders={"at": pa.array([1, None, 2, 3], pa.timestamp("s"))}), ValueError,
     "orders, row 1: column at is missing (null or NaN): pass fill={…}, or leave out the row"),
    (two(orders={"user": ["a", "b", "c", "d"]}), TypeError, "column id is int64, and orders user is text"),
    (two(orders={"user": pa.array([1, 2, 3, 4], pa.date32())}), TypeError,
     "table users: column id is int64, and orders user is date32[day]: a key and what it refers to have one type"),
    (two(orders={"user": [True] * 4}), TypeError, "table users: column id is int64, and orders user is bool"),
    (two({"id": pa.array([1, 2, 3], pa.timestamp("s"))}, {"user": ["1970-01-01"] * 4}), TypeError,
     "table orders: column user is string, and users id is timestamp[s]"),
    (two({"id": pa.array([1, 2, 2**63], pa.uint64())}), ValueError,
     "table users, row 2: column id is 9223372036854775808: ids are below 2^63: cast the column to text"),
    (two({"id": pa.array([Decimal("1.00"), Decimal("2.50"), None])}), ValueError, "row 2: column id is missing"),
    (two({"id": pa.array([Decimal("1.00"), Decimal("2.50"), Decimal(3)])}), ValueError,
     "row 1: column id is 2.50: ids of decimal128(3, 2) are whole numbers of 64 bits: cast the column to text"),
    (two({"id": pa.array([Decimal(2**63 - 1), Decimal(2**63), Decimal(3)])}), ValueError,
     "row 1: column id is 9223372036854775808: ids of decimal"),
    (two({"id": [1.0, 2.0, 2.0**53]}), ValueError, "row 2: column id is 9007199254740992.0: ids of float64"),
    (two({"id": [{"a": 1}] * 3}), TypeError, "row 0: column id: ids are integers or text, not struct<a: int64>"),
    (two(orders={"at": pa.array([1, 2, 3, 4], pa.float64())}, end_time="end", time="at",
         **{"fill": {"end": 0.5}}), ValueError, "has no column 'end'"),
    (two(orders={"x": [1, None, 2, 3]}, features=["x"], fill={"x": "one"}), ValueError,
     "fill: column x is int64, which 'one' is not"),
    (two(orders={"x": [2**60 + 1, None, 2, 3]}, features=["x"]), ValueError,
     "column x has missing values, and integers that float64 does not hold"),
    (two(orders={"time": [1, 2, 3, 4]}, features=None), ValueError, "two features have the name 'time'"),
    (two(orders={"x": [[1], [1, 2], [1], [1]]}, features=["x"]), ValueError, "lists of a feature have one length"),
    (two(orders={"at": [1.5, 2, 3, 4]}), ValueError, "column at is 1.5: times of float64 are whole numbers"),
    (two(orders={"c": ["x"] * 4, "c.names": ["y"] * 4}, features=None, categories=["c"], text=["c.names"]), ValueError,
     "table orders: two features have the name 'c.names'"),
    ({"a": graphwire.Table({"k": [1], "orig_id": [1]}, "k", {"k": "a"}, features=["orig_id"])}, ValueError,
     "table a: the feature 'orig_id' has the primary keys"),
    ({"a": graphwire.Table({"k": [b"\xff"], "j": [1]}, ["k", "j"], {("k", "j"): "a"})}, ValueError,
     r"table a, row 0: column k is b'\xff', which is no text in UTF-8"),
])
def test_wrong_rows_of_databases(tables, error, text, tmp_path):
    """Refused by one line, which names the table, the row and the column; nothing is left behind."""
    with pytest.raises(error) as raised:
        made(tmp_path, tables)
    assert text in str(raised.value) and "\n" not in str(raised.value)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("empty", [pa.nulls(0), pa.nulls(0).dictionary_encode(), pd.Series([], dtype="category")])
def test_tables_without_rows(empty, tmp_path):
    """Their keys have any type, and their lists any length."""
    orders = {"text": ["x"], "number": [1], "row": pa.array([[1, 2]], pa.list_(pa.int64(), 2))}
    coded = pa.nulls(0, pa.dictionary(pa.uint32(), pa.string_view()))  # as polars has it
    users = {"id": empty, "row": pa.array([], pa.list_(pa.float32())), "kind": coded}
    tables = {"users": graphwire.Table(users, "id"),
              "orders": graphwire.Table(orders, None, {"text": "users", "number": "users"})}
    with made(tmp_path, tables) as graph:
        assert [graph.num_edges(etype) for etype in graph.etypes] == [0] * 4
        assert {feature.name for feature in graph.features} == {"orig_id", "row", "kind"}


def test_columns_whose_names_features_cannot_have(tmp_path, caplog):
    """Columns that are not named are left out, with their names in one line."""
    wrong = ["a:b", "", "..", "x" * 65, "nul\0", "orig_id"]
    table = {"id": [1, 2], "x": [2**62, None], **{name: [1, 2] for name in wrong}}
    with made(tmp_path, {"t": graphwire.Table(table, "id", {"id": "t"})}) as graph:
        assert {feature.name for feature in graph.features} == {"orig_id", "x"}
        assert graph.original_ids([0, 1], "t").tolist() == [1, 2]
        assert np.array_equal(graph.feature("x", "t")[:], [2.0**62, np.nan], equal_nan=True)
    (said,) = (record.getMessage() for record in caplog.records)
    assert all(f"{name} (features cannot have this name" in said for name in wrong)


class Stays:
    """Tables a, b and c at random, some with times and ends, that refer to each other; and their edges in Python."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.counts = {name: int(random.integers(1, 12)) for name in "abc"}
        self.times, self.ends, self.tables, self.edges = {}, {}, {}, []
        for name, timed, ended in zip("abc", random.random(3) < 0.6, random.random(3) < 0.7):
            if timed or name == "b":
                self.times[name] = random.integers(0, 10, self.counts[name]).tolist()
            if name in self.times and ended:
                self.ends[name] = [None if random.random() < 0.3 else int(one) for one in random.integers(
                    0, 14, self.counts[name])]
        for name in "abc":
            self.add(name, random)
        self.random = random

    def add(self, name, random):
        columns, keys, count = {"id": range(self.counts[name])}, {}, self.counts[name]
        for column, known, unit in (("at", self.times, "ms"), ("until", self.ends, "s")):
            if name in known:
                factor = 1000 if unit == "ms" else 1
                columns[column] = pa.array([None if one is None else one * factor for one in known[name]],
                                           pa.timestamp(unit))
        for key in ("k", "j")[:int(random.integers(name == "b", 3))]:
            target = str(random.choice(list("abc")))
            columns[key] = [None if random.random() < 0.1 else int(one) for one in random.integers(
                0, self.counts[target] + 1, count)]
            keys[key] = graphwire.ForeignKey(target, reverse=bool(random.random() < 0.8))
            for row, found in enumerate(columns[key]):
                if found is not None and found < self.counts[target]:
                    self.edges += self.edges_of(name, row, key, target, found)[:1 + keys[key].reverse]
        self.tables[name] = graphwire.Table(
            columns, "id", keys, time="at" if name in self.times else None,
            end_time="until" if name in self.ends else None)

    def edges_of(self, name, row, key, target, found):
        """(edge type, source row, destination row, time, end) in both directions."""
        def of(known, source):
            where = (name, row) if name in known else (target, found) if target in self.ends else source
            return known[where[0]][where[1]] if where[0] in known else None

        return [(etype, *ends, of(self.times, source), of(self.ends, source)) for etype, ends, source in (
            (f"{name}:f2p_{key}:{target}", (row, found), (name, row)),
            (f"{target}:rev_f2p_{key}:{name}", (found, row), (target, found)))]


@pytest.mark.parametrize("seed", range(10))
def test_loaders_show_valid_rows_alone(seed, tmp_path):
    """At each hop, in both directions: the edges of valid rows at the seed's time, and no later or ended ones."""
    stays = Stays(seed)
    config = graphwire.partition_graph(graphwire.from_database(stays.tables), "g", 1 + seed % 2, tmp_path / "g",
                                       method="random")
    with graphwire.open(config, numpy=True) as graph:
        rows = {name: graph.original_ids(np.arange(count), name) for name, count in stays.counts.items()}
        ntype, when = str(stays.random.choice(list("abc"))), stays.random.integers(0, 13, 12)
        keys = stays.random.integers(0, stays.counts[ntype], 12)
        seeds = graph.seeds_of(ntype, keys, when.astype("M8[s]"))
        for end in ([None, "end_time"] if stays.ends else [None]):
            loader = graphwire.NodeLoader(graph, seeds.ids, [-1, 50, -1], time="time", times=seeds.times, end=end,
                                          batch_size=1)
            for key, at, batch in zip(keys.tolist(), when.tolist(), loader):
                known = {(ntype, key)}
                for block in reversed(batch.blocks):
                    found = set()
                    for etype in graph.etypes:
                        src, _, dst = etype.split(":")
                        ends = block[etype].edge_index if block[etype].num_edges else np.zeros((2, 0), int)
                        found |= {(etype, int(rows[src][batch.nodes[src][a]]), int(rows[dst][batch.nodes[dst][b]]))
                                  for a, b in ends.T}
                    assert found == {edge[:3] for edge in stays.edges if (edge[0].split(":")[2], edge[2]) in known
                                     and (edge[3] is None or edge[3] <= at)
                                     and (end is None or edge[4] is None or at < edge[4])}
                    known |= {(etype.split(":")[0], row) for etype, row, _ in found}


def test_missing_keys_may_be_errors(tmp_path):
    for user, text in (([20, None, 10, 10], "row 1: the foreign key user is missing"),
                       ([20, 10, 5, 10], "row 2: the foreign key user is 5, which no row of users has as its key")):
        with pytest.raises(ValueError) as raised:
            made(tmp_path, two(orders={"user": user}), missing="error")
        assert text in str(raised.value)
    keys = {"user": graphwire.ForeignKey("users", missing="error")}
    table = {**two(), "orders": graphwire.Table(ORDERS, None, keys, features=[])}
    with pytest.raises(ValueError, match="row 1: the foreign key user is missing"):
        made(tmp_path, table)


@pytest.mark.parametrize("make, error, text", [
    (lambda: graphwire.from_database({}), ValueError, "a database has at least one table"),
    (lambda: graphwire.from_database({"a": graphwire.Table(USERS, "ids", {"age": "a"})}), ValueError,
     "table a: key: table a has no column 'ids': did you mean 'id'?"),
    (lambda: graphwire.from_database({"a": graphwire.Table(USERS, "id", {"age": "b"})}), ValueError,
     "table a: the foreign key age: no table 'b'"),
    (lambda: graphwire.from_database({"a": graphwire.Table(USERS, ["id", "age"], {"age": "a"})}), ValueError,
     "table a: the foreign key age refers to a, which has the key id, age"),
    (lambda: graphwire.from_database({"a": USERS}), TypeError, "table a: a graphwire.Table, not dict"),
    (lambda: graphwire.Table(USERS, "id", end_time="age"), ValueError, "end_time: a table with it has a time too"),
    (lambda: graphwire.Table(USERS, "id", {"age": 3}), TypeError, "foreign_keys are {column: table}, not 3"),
    (lambda: graphwire.from_database(two(), unit="h"), ValueError, "unit: one of 'D', 's', 'ms', 'us', 'ns', not 'h'"),
    (lambda: graphwire.Table(USERS, "id", {"age": "a"}, tme="x"), TypeError, "did you mean 'time'?"),
    (lambda: graphwire.Table(USERS, "id", fill={"age": None}), ValueError, "fill: column age: a value, not None"),
    (lambda: graphwire.from_database({"a": graphwire.Table({"k": [1], "x": ["\udcff"]}, "k", {"k": "a"})}), TypeError,
     "table a: column x: "),
    (lambda: graphwire.from_database({"a": graphwire.Table({"k": [1], "x": [1, "y"]}, "k", {"k": "a"})}), TypeError,
     "table a: column x: "),
])
def test_wrong_descriptions(make, error, text):
    with pytest.raises(error) as raised:
        make()
    assert text in str(raised.value)


@pytest.mark.parametrize("change, text", [
    ({"format": "graphwire-tables-2"}, '"format" is not "graphwire-tables-1"'),
    ({"table": {}}, "the description: no key 'table': did you mean 'tables'?"),
    ({"tables": {"a": {"sorce": "x"}}}, "table a: no key 'sorce': did you mean 'source'?"),
    ({"tables": {"a": {"source": "a.csv", "foreign_keys": {"x": {"tabel": "a"}}}}}, "no key 'tabel'"),
    ({"tables": {"a": {"source": {"duckdb": "x"}}}}, "table a: source: a path"),
    ({"tables": {"a": {"source": "none.csv", "key": "x", "foreign_keys": {"x": "a"}}}}, "none.csv: no such file"),
    ({"tables": {"a": {"source": "none.csv", "key": 3}}}, "table a: key: a column, or a list of columns, not 3"),
    ({"name": 3}, '"name" is a text, not 3'),
    *(({"tables": {"a": {"source": "x.csv", "key": "x", "foreign_keys": {"x": "a"}, **more}}},
       text) for more, text in [({"features": {"f": 3}}, "table a: features: columns are names, not 'f': [3]"),
                                ({"masks": 5}, "table a: masks: columns are a name, a list of names"),
                                ({"labels": "z"}, "table a: labels: ")]),
])
def test_wrong_files_of_descriptions(change, text, tmp_path, capsys):
    """One line names the file and the key, in Python and on the command line."""
    path = tmp_path / "db.json"
    path.write_text(json.dumps({"format": "graphwire-tables-1", "tables": {}, **change}))
    (tmp_path / "x.csv").write_text("x,y\n1,2\n")
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as raised:
        graphwire.from_database(path)
    assert text in str(raised.value)
    assert database_command.main(["--tables", str(path), "--out", str(tmp_path / "g")]) == 1
    said = capsys.readouterr().err
    assert text in said and said.count("\n") == 1


def test_a_deep_description(tmp_path):
    (tmp_path / "db.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"db\.json: too deep"):
        graphwire.from_database(tmp_path / "db.json")


def test_the_schema_has_the_keys_of_the_description():
    schema = json.loads((TOP / "python/graphwire/tables.schema.json").read_text())
    parts = [schema, schema["$defs"]["table"], schema["$defs"]["foreign_key"]]
    assert [set(part["properties"]) for part in parts] == [
        set(descriptions._ROOT), set(descriptions._OF_TABLE), set(descriptions._OF_KEY)]
    assert schema["properties"]["format"]["const"] == descriptions.FORMAT


def test_units_and_ends(tmp_path):
    """The finest unit holds all times; missing ends are the last time; another unit is exact or refused."""
    stays = {"user": [10, 20], "at": pa.array([1, 2], pa.date32()),
             "until": pa.array([None, 3 * 86400], pa.timestamp("s"))}
    tables = {**two(), "stays": graphwire.Table(stays, None, {"user": "users"}, time="at", end_time="until",
                                                features=[])}
    day = 86400
    for unit, factor in ((None, 1), ("ms", 1000)):
        with made(tmp_path, tables, unit=unit) as graph:
            assert graph.feature("time", "stays")[:].tolist() == [day * factor, 2 * day * factor]
            assert graph.feature("end_time", "stays")[:].tolist() == [2**63 - 1, 3 * day * factor]
            seeds = graph.seeds_of("users", [10, 20, 20], np.array([1, 2, 3], "M8[D]"))
            assert seeds.times["users"].tolist() == [day * factor, 2 * day * factor, 3 * day * factor]
            loader = graphwire.NodeLoader(graph, seeds.ids, [9], time="time", times=seeds.times, end="end_time",
                                          batch_size=1)
            assert [batch.blocks[0]["stays:f2p_user:users"].num_edges for batch in loader] == [1, 1, 0]
    with pytest.raises(ValueError, match=r"row 0: column at is 4 as timestamp\[s\], which is no number of days"):
        made(tmp_path, tables, unit="D")
    numbers = {**two(), "stays": graphwire.Table({"user": [10], "at": [5]}, None, {"user": "users"}, time="at")}
    with pytest.raises(ValueError, match="at of table stays is plain numbers, which have no unit, and at of table "
                                         "orders has one"):
        made(tmp_path, numbers)


def test_seeds_of(tmp_path):
    """Keys in any form, of one column and of several."""
    places = {"a": ["x", 'say "', "x"], "b": [1, 2**60 + 1, 3]}
    tables = {"places": graphwire.Table(places, ["a", "b"], {("a", "b"): "places"}, features=[])}
    with made(tmp_path, tables) as graph:
        right = [1, 0, 1]
        rows = [(places["a"][one], places["b"][one]) for one in right]
        columns = {"a": [one[0] for one in rows], "b": [one[1] for one in rows]}
        for keys in (rows, columns, pd.DataFrame(columns), pa.table(columns)):
            assert graph.seeds_of("places", keys).ids["places"].tolist() == right
        some = graph.seeds_of("places", [("x", 1), ("y", 1), ("x", 3)], missing="drop")
        assert (some.ids["places"].tolist(), some.rows.tolist(), some.times) == ([0, 2], [0, 2], None)
        with pytest.raises(graphwire.NotFoundError, match=r'"y"'):
            graph.seeds_of("places", [("y", 1)])
        with pytest.raises(TypeError, match="keys: texts or integers, and number 0"):
            graph.seeds_of("places", [("y", 1.5)])
        with pytest.raises(graphwire.NotFoundError, match="time"):
            graph.seeds_of("places", rows, 5)
        graphwire.save(np.arange(3), tmp_path / "out.npy", "places", graph=graph, ids=[0, 1, 2])
        assert [tuple(json.loads(one)) for one in np.load(tmp_path / "out.npy")["id"]] == list(zip(*places.values()))


@pytest.mark.parametrize("make", [
    lambda keys: pd.Series(keys, dtype="float64"), lambda keys: pd.Series(keys, dtype="Int64"), pa.array, list,
    lambda keys: np.array(keys, object), lambda keys: pa.chunked_array([pa.array(keys, pa.float64())]),
    lambda keys: pd.DataFrame({"user": keys}), lambda keys: pytest.importorskip("polars").Series(keys),
    lambda keys: pd.Series([None if key is None else str(key) for key in keys], dtype="str")])
def test_seeds_without_a_key(make, tmp_path):
    """A missing key has no node, in any form. Large floats are no keys."""
    keys, ids = [30, None, 10, 99, 30], [10, 20, 30]
    texts = not isinstance(make(keys), pd.DataFrame) and "str" in str(getattr(make(keys), "dtype", "")).lower()
    users = {"id": list(map(str, ids)) if texts else ids}
    with made(tmp_path, {"users": graphwire.Table(users, "id", {"id": "users"})}) as graph:
        seeds = graph.seeds_of("users", make(keys), missing="drop")
        assert (seeds.ids["users"].tolist(), seeds.rows.tolist()) == ([2, 0, 2], [0, 2, 4])
        assert graph.seeds_of("users", make([None]), missing="drop").rows.tolist() == []
        with pytest.raises(ValueError, match="keys: number 1 is missing"):
            graph.seeds_of("users", make(keys))
        for wrong in np.array([2.0**53]), np.array([2.0**24], np.float32), np.array([1.5]):
            with pytest.raises(TypeError, match="keys are texts, or integers"):
                graph.seeds_of("users", wrong)


def test_inspect_shows_the_tables(tmp_path):
    """Beside the graph that they became, and no other graph of the folder."""
    with made(tmp_path, two()):
        pass
    text = run("inspect", tmp_path / "g")
    assert re.search(r"^users +3  id +- +-$", text, re.MULTILINE)
    assert re.search(r"^orders\.user -> users +4 +25\.00% +25\.00%$", text, re.MULTILINE)
    found = json.loads(run("inspect", tmp_path / "g", "--json"))["tables"]["orders"]["foreign_keys"]
    assert found == [{"columns": ["user"], "table": "users", "rows": 4, "null": 1, "dangling": 1, "reverse": True}]
    graphwire.partition_graph((np.array([0, 1]), np.array([1, 0])), "g", 1, tmp_path / "g", method="random")
    assert "users" not in run("inspect", tmp_path / "g")
    (tmp_path / "g/g.tables.json").write_text("{")
    with pytest.raises(AssertionError, match="no record of tables, or damaged: remove it"):
        run("inspect", tmp_path / "g")


def test_duckdb(tmp_path):
    """Relations, and tables and queries of a file."""
    duckdb = pytest.importorskip("duckdb")
    users, orders = pa.table(USERS), pa.table(ORDERS)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("create table users as select * from users")
        connection.execute("create table orders as select * from orders")
        relations = {"users": connection.table("users"), "orders": connection.sql("select * from orders")}
        made(tmp_path, {"users": graphwire.Table(relations["users"], "id", features=[]), "orders": graphwire.Table(
            relations["orders"], None, {"user": "users"}, time="at", features=[])}).close()
        first = bytes_of(tmp_path / "g")
    (tmp_path / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        "users": {"source": {"duckdb": "shop.duckdb", "table": "users"}, "key": "id", "features": []},
        "orders": {"source": {"duckdb": "shop.duckdb", "query": "from orders"}, "foreign_keys": {"user": "users"},
                   "time": "at", "features": []}}}))
    made(tmp_path, tmp_path / "db.json").close()
    made(tmp_path / "memory", {"users": graphwire.Table(users, "id", features=[]), "orders": graphwire.Table(
        orders, None, {"user": "users"}, time="at", features=[])}).close()
    assert bytes_of(tmp_path / "g") == first == bytes_of(tmp_path / "memory/g")
    with pytest.raises(ValueError, match=r"table a: .*shop.duckdb: the query has no result"):
        graphwire.from_database({"a": graphwire.Table(descriptions.Duckdb(tmp_path / "shop.duckdb", None, ""), "x",
                                                      {"x": "a"})})
    with pytest.raises(ValueError, match=r"table users: .*shop.duckdb: Catalog Error"):
        text = (tmp_path / "db.json").read_text().replace('"table": "users"}', '"table": "user"}')
        (tmp_path / "db.json").write_text(text)
        graphwire.from_database(tmp_path / "db.json")


def test_the_page(tmp_path):
    """docs/TABLES.md: every block is run, in order; both ways of its example give the same bytes."""
    script = ["import subprocess"]
    page = (TOP / "docs/TABLES.md").read_text()
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        script.append(text if kind == "python" else f"subprocess.run(['bash', '-euc', {text!r}], check=True)")
    setting = {**os.environ, "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = [text.replace("--embeddings", "--num_epochs 1 --fan_out 2,2 --embeddings") for text in script]
    (tmp_path / "examples").symlink_to(TOP / "examples")
    (tmp_path / "graphwire").write_text(f'#!/bin/sh\nexec {sys.executable} -m graphwire "$@"\n')
    (tmp_path / "graphwire").chmod(0o755)
    done = subprocess.run([sys.executable, "-c", "\n".join(script)], cwd=tmp_path, env=setting, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert bytes_of(tmp_path / "parts") == bytes_of(tmp_path / "same-parts")
    lost = "orders.user -> users: 2 of 4 rows have no edge: the key is missing in 1, and refers to no row in 1"
    assert lost in done.stderr and lost in page
    assert (tmp_path / "scores.csv").read_text().splitlines() == ["id,value", "103,0.1", "101,0.9"]
    rows = pa.parquet.read_table(tmp_path / "rows_orders.parquet")
    assert sorted(rows["id"].to_pylist()) == ["a-1", "a-2", "a-3", "a-4"] and rows["row"].type.list_size == 64


def command_of(folder, out, **options):
    """`graphwire import --tables` of the folder's db.json, running. The guard removes what it leaves."""
    return subprocess.Popen([sys.executable, "-m", "graphwire", "import", "--tables", folder / "db.json", "--out", out,
                             "--quiet"], stderr=subprocess.PIPE, text=True, **options)


def temporary_files(parent):
    """The files in temporary folders, which vanish at any time."""
    with contextlib.suppress(FileNotFoundError):
        return [one for folder in parent.glob(".g.tmp*") for one in os.listdir(folder)]
    return []


def test_a_killed_import_leaves_nothing(tmp_path):
    """Killed at any of its steps, an import leaves no graph and no files; the next one makes the same bytes."""
    Database(3).write(tmp_path)
    parent = tmp_path / "out"
    parent.mkdir()
    for files in (1, 4, 9, None):  # None: not killed
        process = command_of(tmp_path, parent / "g", start_new_session=True)
        while files and process.poll() is None and len(temporary_files(parent)) < files:
            pass
        if files:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        while list(parent.glob(".g.tmp*")):
            pass
        if files and (parent / "g").exists():  # the kill came too late
            shutil.rmtree(parent / "g")
    first = bytes_of(parent / "g")
    assert database_command.main(["--tables", str(tmp_path / "db.json"), "--out", str(tmp_path / "whole"),
                                  "--quiet"]) == 0
    assert first == bytes_of(tmp_path / "whole") and os.listdir(parent) == ["g"]


def test_a_full_disk_is_one_line(tmp_path):
    """No file may be larger than a limit, which is as a full disk to the writer."""
    users = pa.table({"id": range(20000), "x": [0.5] * 20000})
    pa.parquet.write_table(users, tmp_path / "users.parquet")
    (tmp_path / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        "users": {"source": "users.parquet", "key": "id", "foreign_keys": {"id": "users"}}}}))
    (tmp_path / "out").mkdir()
    process = command_of(tmp_path, tmp_path / "out/g", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (100_000, 100_000)))
    said = process.communicate()[1]
    assert process.returncode == 1 and re.fullmatch(r"graphwire import: \S+\.npy: File too large\n", said), said
    while list((tmp_path / "out").glob(".g.tmp*")):
        pass
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("kind", ["arrow", "pandas", "parquet", "csv"])
def test_progress(kind, tmp_path, monkeypatch):
    """The bar counts the rows of all passes; their number is known before, except for text."""
    shown = []

    class Recorder(database_module.Bar):
        def __init__(self, what, progress, **more):
            shown.append((what, progress, more["total"]))
            super().__init__(what, False, **more)

        def to(self, done):
            shown.append(done)

    monkeypatch.setattr(database_module, "Bar", Recorder)
    users = pa.table(USERS)
    pa.parquet.write_table(users, tmp_path / "users.parquet")
    pa.csv.write_csv(users, tmp_path / "users.csv")
    source = {"arrow": users, "pandas": users.to_pandas()}.get(kind, tmp_path / f"users.{kind}")
    tables = {**two(), "users": graphwire.Table(source, "id", features=[])}
    graphwire.partition_graph(graphwire.from_database(tables), "g", 1, tmp_path / "g", method="random", progress=True)
    assert shown == [("tables", True, None if kind == "csv" else 3 + 2 * 4), 3, 7, 11]


def test_a_table_without_columns(tmp_path):
    with pytest.raises(ValueError, match="table a: it has no columns"):
        graphwire.from_database({"a": graphwire.Table(pd.DataFrame(), None)}).write(tmp_path)


@pytest.mark.parametrize("option", ["--memory", "--threads", "--name"])
def test_an_empty_value_is_a_value(option, tmp_path, capfd):
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    described = {"format": "graphwire-tables-1", "tables": {"a": {"source": "a.csv", "key": "id"}}}
    (tmp_path / "db.json").write_text(json.dumps(described))
    assert database_command.main(["--tables", str(tmp_path / "db.json"), "--out", str(tmp_path / "g"), option, ""]) == 2
    assert re.fullmatch(r"graphwire import: [^\n]*\n", capfd.readouterr().err)
