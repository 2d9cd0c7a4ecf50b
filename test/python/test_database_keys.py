"""Keys and times of any type in graphs of tables with keys, roles of columns, and graphs without edges."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import graphwire
import numpy as np
import pytest
from conftest import run
from graphwire._files import database_command

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow.parquet")


def made(tmp_path, tables, **options):
    """The graph of a database, opened."""
    config = graphwire.partition_graph(graphwire.from_database(tables, **options), "g", 1, tmp_path / "g",
                                       method="random")
    return graphwire.open(config, numpy=True)


MOMENTS = [datetime(2024, 1, 31), datetime(2024, 1, 31, 9, 30, 0, 250000), datetime(1969, 12, 31, 23, 59, 59)]
TEXTS = ["2024-01-31", "2024-01-31 09:30:00.25", "1969-12-31 23:59:59"]


def test_keys_of_times(tmp_path):
    """Equal times are equal keys in any unit, zone and library; the text of a key is that of its moment in UTC."""
    forms = [pa.array(MOMENTS, pa.timestamp("us")).cast(pa.timestamp(unit, zone))
             for unit in ("ms", "us", "ns") for zone in (None, "Asia/Tokyo")]
    forms += [pd.Series(MOMENTS), pd.Series(MOMENTS, dtype=object), np.array(MOMENTS, "M8[ns]"), MOMENTS,
              pd.Series(MOMENTS).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), pa.chunked_array([forms[0]]),
              pytest.importorskip("polars").Series(MOMENTS)]
    for number, (key, other) in enumerate(zip(forms, forms[1:] + forms[:1])):
        tables = {"days": graphwire.Table({"at": key}, "at", features=[]),
                  "events": graphwire.Table({"day": other}, None, {"day": "days"}, features=[])}
        with made(tmp_path / f"{number}", tables) as graph:
            assert graph.original_ids([0, 1, 2], "days") == TEXTS
            assert [ends.tolist() for ends in graph.find_edges([0, 1, 2], "f2p_day")] == [[0, 1, 2]] * 2
            assert graph.ids_of(other, "days").tolist() == graph.ids_of(TEXTS, "days").tolist() == [0, 1, 2]
            assert graph.seeds_of("days", {"at": other}).ids["days"].tolist() == [0, 1, 2]


ODD = {  # columns that become no features, and no keys
    "struct": pa.array([{"a": 1}] * 2), "map": pa.array([[("k", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
    "duration": pa.array([1, 2], pa.duration("s")), "clock": pa.array([1, 2], pa.time32("s")), "null": pa.nulls(2),
    "lists of lists": pa.array([[[1]], [[2]]]), "lists of texts": pa.array([["a"], ["b"]]),
    "runs": pa.RunEndEncodedArray.from_arrays([2], [7]), "bytes": pa.array([b"ab", b"cd"], pa.binary(2)),
    "reals": pa.array([1.5, 2.5]).dictionary_encode(), "months": pa.nulls(2, pa.month_day_nano_interval())}


@pytest.mark.parametrize("name", ODD)
def test_columns_of_other_types(name, tmp_path, caplog):
    """Left out in one line that names them; as keys they are errors that name the row."""
    with made(tmp_path, {"t": graphwire.Table({"id": [1, 2], name: ODD[name]}, "id")}) as graph:
        assert [feature.name for feature in graph.features] == ["orig_id"]
    assert [name in one.getMessage() for one in caplog.records] == [True]
    with pytest.raises((TypeError, ValueError), match=f"table t, row 0: column {name}"):
        made(tmp_path / "wrong", {"t": graphwire.Table({name: ODD[name]}, name)})


@pytest.mark.parametrize("values, error", [
    ([1, "a"], TypeError), ([1, 2.5], ValueError), ([True, 1], TypeError), ([2**70, 1], TypeError),
    ([date(2024, 1, 31), MOMENTS[1]], TypeError), ([MOMENTS[1], date(2024, 1, 31)], TypeError)])
def test_keys_of_mixed_objects(values, error, tmp_path):
    """Nothing is made text or rounded."""
    with pytest.raises(error, match=r"table t(, row 1)?: column id"):
        made(tmp_path, {"t": graphwire.Table(pd.DataFrame({"id": pd.Series(values, dtype=object)}), "id")})
    with pytest.raises(error, match=r"table t(, row 1)?: column id"):
        made(tmp_path, {"t": graphwire.Table({"id": values}, "id")})


def test_keys_of_several_types(tmp_path):
    """A natural key of a user, a day and a flag, whose columns have other types where it is referred to."""
    days = [date(2024, 1, 31), date(2024, 2, 1), date(2024, 1, 31)]
    places = {"user": pa.array([Decimal(7), Decimal(7), Decimal(8)]), "day": days, "new": [True, False, True]}
    rows = {"user": [8.0, 7.0, None, 7.0], "day": pd.to_datetime([days[0], days[0], days[1], days[1]]).astype("M8[ns]"),
            "new": pd.array([True, True, True, True], "boolean")}
    keys = ("user", "day", "new")
    tables = {"places": graphwire.Table(places, keys, features=[]),
              "rows": graphwire.Table(pd.DataFrame(rows), None, {keys: "places"}, features=[])}
    with made(tmp_path, tables) as graph:
        assert graph.original_ids([0], "places") == ['[7,"2024-01-31","true"]']
        assert [ends.tolist() for ends in graph.find_edges([0, 1], "f2p_user+day+new")] == [[1, 0], [0, 2]]
        for known in (pa.table(places), pd.DataFrame(places), list(zip(*(
                [7, 7, 8], days, places["new"])))):
            assert graph.seeds_of("places", known).ids["places"].tolist() == [0, 1, 2]
        some = graph.seeds_of("places", pd.DataFrame(rows), missing="drop")
        assert (some.ids["places"].tolist(), some.rows.tolist()) == ([2, 0], [0, 1])


def test_text_files_have_the_times_and_bools_of_the_other_table(tmp_path):
    """Where one column of a key has a type, the texts of CSV and of folders' names are read as that type."""
    (tmp_path / "events.csv").write_text("day,flag\n2024-01-31T00:00:00Z,True\n,False\n2024-01-31 02:00:00+02:00,1\n"
                                         "2024-02-02,false\n")
    folder = tmp_path / "rows/day=2024-01-31"
    folder.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"x": [1, 2]}), folder / "part-0.parquet")
    tables = {"days": graphwire.Table({"day": [date(2024, 1, 30), date(2024, 1, 31)]}, "day", features=[]),
              "flags": graphwire.Table({"flag": [False, True]}, "flag", features=[]),
              "events": graphwire.Table(tmp_path / "events.csv", None, {"day": "days", "flag": "flags"}),
              "rows": graphwire.Table(tmp_path / "rows", None, {"day": "days"})}
    with made(tmp_path, tables) as graph:
        found = [edges_of(graph, key) for key in ("events:f2p_day:days", "events:f2p_flag:flags", "rows:f2p_day:days")]
        assert found == [[(0, 1), (2, 1)], [(0, 1), (1, 0), (2, 1), (3, 0)], [(0, 1), (1, 1)]]
    (tmp_path / "events.csv").write_text("day,flag\n2024-01-31,1\n2024-01-32,0\n")
    with pytest.raises(ValueError, match=r"events.csv, row 1: column day is '2024-01-32', and the other column of the "
                                         r"key is date32\[day\]"):
        made(tmp_path / "wrong", tables)


def edges_of(graph, etype):
    return sorted(zip(*(ends.tolist() for ends in graph.find_edges(np.arange(graph.num_edges(etype)), etype))))


@pytest.mark.parametrize("names, kind, times", [
    (["2024-01-31", "2024-02-01"], "D", [19753, 19754]),
    (["2024-01-31 09%3A30%3A00", "2024-01-31 09%3A30%3A00.25"], "us", [1706693400000000, 1706693400250000]),
    (["20240131", "20240201"], None, [20240131, 20240201])])
def test_times_of_folders(names, kind, times, tmp_path):
    """The names of Spark's folders are times, of rows and of edges, and parts of keys; other texts are refused."""
    for name in names:
        folder = tmp_path / f"rows/at={name}"
        folder.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"src": [0], "dst": [1]}), folder / "part-0.parquet")
    table = graphwire.Table(tmp_path / "rows", ["src", "at"], {"src": "users"}, time="at")
    with made(tmp_path, {"rows": table, "users": graphwire.Table({"id": [0, 1]}, "id")}) as graph:
        assert graph.feature("time", "rows")[:].tolist() == times
        assert graph.feature("time", etype="f2p_src")[:].tolist() == times
        assert kind is None or graph.seeds_of("rows", [(0, np.datetime64(times[1], kind))]).ids["rows"].tolist() == [1]
    made_of = graphwire.from_tables(tmp_path / "rows", time="at")
    config = graphwire.partition_graph(made_of, "e", 1, tmp_path / "e", method="random")
    with graphwire.open(config, numpy=True) as graph:
        assert graph.feature("time", etype="_E")[:].tolist() == [
            one * 86400 * 10**6 if kind == "D" else one for one in times]
    (tmp_path / "rows/at=soon").mkdir()
    pa.parquet.write_table(pa.table({"src": [0], "dst": [1]}), tmp_path / "rows/at=soon/part-0.parquet")
    with pytest.raises(TypeError, match="column at: times are integers, timestamps or dates, not string"):
        made(tmp_path / "wrong", {"rows": table, "users": graphwire.Table({"id": [0, 1]}, "id")})


@pytest.mark.parametrize("kind, given, filled", [
    (pa.timestamp("s"), "2024-01-31", MOMENTS[0]),
    (pa.timestamp("us", "Asia/Tokyo"), "2024-01-31 09:30:00.25", MOMENTS[1]),
    (pa.timestamp("ms"), "2024-01-31T09:30:00.25Z", MOMENTS[1]), (pa.date32(), "2024-01-31", MOMENTS[0]),
    (pa.timestamp("ns"), np.datetime64("2024-01-31"), MOMENTS[0]), (pa.timestamp("s"), date(2024, 1, 31), MOMENTS[0]),
    (pa.timestamp("ns", "UTC"), pd.Timestamp("2024-01-31 09:00", tz="Asia/Tokyo"), MOMENTS[0]),
    (pa.timestamp("s"), MOMENTS[1], None), (pa.date32(), MOMENTS[1], None), (pa.timestamp("s"), 1.5, None),
    (pa.timestamp("s"), "soon", None), (pa.timestamp("s"), True, None)])
def test_filled_times(kind, given, filled, tmp_path):
    """A missing time may be filled in with a date of any form, exactly or not at all."""
    orders = {"at": pa.array([None, None], kind), "user": [10, 20]}
    tables = {"users": graphwire.Table({"id": [10, 20]}, "id"),
              "orders": graphwire.Table(orders, None, {"user": "users"}, time="at", fill={"at": given})}
    if filled is None:
        with pytest.raises(ValueError, match=r"table orders: fill: column at is .*, which .* is not"):
            made(tmp_path, tables)
        return
    with made(tmp_path, tables, unit="ns") as graph:
        assert graph.feature("time", "orders")[:].tolist() == [int(np.datetime64(filled, "ns").astype(int))] * 2


def test_tables_without_foreign_keys(tmp_path):
    """Their graph has nodes alone, which loaders serve with their rows."""
    tables = {"users": graphwire.Table({"id": ["x", "y", "z"], "age": [1, 2, 3]}, "id"),
              "shops": graphwire.Table({"at": pa.array([5, 6], pa.timestamp("s"))}, time="at")}
    with made(tmp_path, tables) as graph:
        assert (graph.ntypes, graph.etypes, graph.num_nodes("shops")) == (["users", "shops"], [], 2)
        batches = list(graphwire.NodeLoader(graph, graph.seeds_of("users", ["z", "x", "y"]).ids, [3, 3], batch_size=2,
                                            features={"users": ["age"]}))
        assert [batch.features["users"]["age"].tolist() for batch in batches] == [[3, 1], [2]]
        assert [batch.num_edges for batch in batches] == [0, 0]
    assert "3" in run("inspect", tmp_path / "g")
    run("verify", tmp_path / "g")
    graphwire.partition_graph(graphwire.from_database(tables), "m", 2, tmp_path / "m")
    (tmp_path / "users.csv").write_text("id,age\nx,1\n")
    (tmp_path / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        "users": {"source": "users.csv", "key": "id"}}}))
    assert database_command.main(["--tables", str(tmp_path / "db.json"), "--out", str(tmp_path / "c"), "--quiet"]) == 0
    run("verify", tmp_path / "c")


def test_roles_of_columns_of_relbench(tmp_path):
    """A Database of relbench has no roles of columns; from_database has them by tables."""
    class Of:
        def __init__(self, **given):
            self.__dict__.update(given)

    frame = pd.DataFrame({"id": [0, 1], "to": [1, 0], "kind": ["b", "a"], "at": [5, 6], "until": [7, None],
                          "n": [1, None]})
    database = Of(table_dict={"t": Of(df=frame, pkey_col="id", fkey_col_to_pkey_table={"to": "t"}, time_col="at")})
    with made(tmp_path, database, categories={"t": ["kind"]}, end_time={"t": "until"}, fill={"t": {"n": 0}}) as graph:
        assert graph.feature("kind", "t")[:].tolist() == [1, 0]
        assert graph.feature("n", "t")[:].tolist() == [1, 0]
        assert graph.feature("end_time", "t")[:].tolist() == [7, 2**63 - 1]
    for wrong, error, text in (({"text": {"tt": ["kind"]}}, ValueError, "text: no table 'tt': did you mean 't'?"),
                               ({"features": ["n"]}, TypeError, "features: {table: columns}, not ['n']"),
                               ({"labels": {"t": 3}}, TypeError, "table t: labels: a column is a name, not 3"),
                               ({"text": {"t": ["kin"]}}, ValueError, "has no column 'kin'")):
        with pytest.raises(error) as raised:
            graphwire.from_database(database, **wrong)
        assert text in str(raised.value)
    with pytest.raises(ValueError, match="table orders: features: its description has them too"):
        orders = graphwire.Table({"x": [1]}, features=["x"])
        graphwire.from_database({"orders": orders}, features={"orders": ["x"]})
