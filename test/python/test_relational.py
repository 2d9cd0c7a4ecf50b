"""graphwire.pyg.relational: batches of a task's table beside plain pandas, over data in memory, a graph's folder and
servers; values that are refused; Tables of RelBench; examples/relational.py and docs/RELATIONAL.md."""

from __future__ import annotations

import importlib
import pickle
import re
from types import SimpleNamespace

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP, Servers

pytest.importorskip("torch_geometric")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

import pyarrow.parquet  # noqa: E402, F401
import torch_geometric.loader  # noqa: E402
from graphwire.pyg import relational, stores  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402

NS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # of a unit
FORMS = ("memory", "one part", "servers", "stores")
USERS, EVENTS, ROWS = 15, 90, 60


class Database:
    """Users, and events of users at times. keys: the users' ids; those of data in memory are rows."""

    def __init__(self, seed, in_memory):
        self.random = random = np.random.default_rng(seed)
        kinds = [np.arange(USERS), random.permutation(10**12 + np.arange(USERS) * 7) - 10**12,
                 np.array([f"user {number}/é" for number in random.permutation(USERS)], object)]
        self.keys = kinds[0 if in_memory else seed % 3]
        self.unit = str(random.choice(list(NS)))
        self.user, self.time = random.integers(0, USERS, EVENTS), random.integers(-20, 50, EVENTS)

    def data(self):
        data = HeteroData()
        data["user"].x, data["event"].time = torch.randn(USERS, 2), torch.from_numpy(self.time)
        data["event"].num_nodes = EVENTS
        data["event", "of", "user"].edge_index = torch.from_numpy(np.stack([np.arange(EVENTS), self.user]))
        data["user", "rev_of", "event"].edge_index = data["event", "of", "user"].edge_index.flip(0)
        return data

    def parts(self, folder, count):
        events = {"event": np.arange(EVENTS), "user": self.keys[self.user]}
        tables = graphwire.from_tables(
            {("event", "of", "user"): events},
            {"user": {"id": self.keys, "x": np.arange(USERS)},
             "event": {"id": np.arange(EVENTS), "time": self.time.astype(f"M8[{self.unit}]")}},
            src="event", dst="user", features={"user": ["x"], "event": ["time"]})
        return graphwire.partition_graph(tables, "g", count, folder / str(count), reverse=True, time="time")

    def task(self):
        """A frame: users, at repeated and random times, with a target, in an order and an index of no meaning."""
        random = self.random
        user, when = random.integers(0, USERS, ROWS), random.integers(-30, 60, ROWS)
        targets = [random.random(ROWS) < 0.5, random.integers(-5, 5, ROWS).astype(np.int16),
                   random.random(ROWS).astype(np.float32), list(random.random((ROWS, 3)))]
        return pd.DataFrame({"who": self.keys[user], "at": when, "row": np.arange(ROWS),
                             "y": targets[int(random.integers(0, 4))]}, index=random.permutation(ROWS))

    def table(self, frame, folder):
        """(the frame as a table of some kind, with dates or numbers; whether it has dates)."""
        frame, random = frame.copy(), self.random
        dated = bool(random.random() < 0.7)
        if dated:
            frame["at"] = pd.to_datetime(frame["at"].to_numpy() * NS[self.unit], unit="ns")
            if random.random() < 0.5:
                frame["at"] = frame["at"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")
        kind = int(random.integers(0, 6))
        if kind == 5 and frame["y"].dtype.kind in "bi" and self.unit != "ns":  # dates of text have microseconds
            utc = pd.to_datetime(frame["at"], utc=True).dt.tz_localize(None) if dated else frame["at"]
            frame.assign(at=utc).to_csv(folder / "task.csv", index=False)
            return folder / "task.csv", dated
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
        if kind == 1:
            return pl.from_arrow(arrow), dated
        if kind == 2:
            return arrow, dated
        if kind == 3:
            pa.parquet.write_table(arrow, folder / "task.parquet")
            return folder / "task.parquet", dated
        if kind == 4:
            return {"who": frame["who"].to_numpy(), "y": torch.tensor(plain(frame["y"])), "at": frame["at"]}, dated
        return frame, dated


class Opened:
    """A form of a database's graph."""

    def __init__(self, database, form, folder):
        self.graph, self._closed = None, []
        if form == "memory":
            self.data = database.data()
            return
        path = database.parts(folder, 1 if form == "one part" else 2)
        if form == "servers":
            self._closed.append(Servers(path.parent, 2, folder))
            self.graph = graphwire.open(servers=self._closed[0].addresses)
        else:
            self.graph = graphwire.open(path)
        self._closed.insert(0, self.graph)
        self.data = stores(self.graph, {"event": ["time"], "user": []}) if form == "stores" else self.graph

    def keys_of(self, store, keys):
        """The keys of a batch's users."""
        if self.graph is not None and keys.dtype == object:
            return np.array(self.graph.original_ids(store.n_id, "user"), object)
        return store.n_id.numpy()

    def close(self):
        for one in self._closed:
            one.close()


def plain(column):
    """A column of targets as an array, [rows] or [rows, 3]."""
    return np.stack(column.to_list()) if column.dtype == object else column.to_numpy()


def expected(frame):
    """The targets of all rows, as batches have them."""
    y = plain(frame["y"])
    return torch.from_numpy(y.astype(np.int64) if y.dtype.kind in "bi" else y.copy())


@pytest.mark.parametrize("seed", range(12))
def test_batches(seed, tmp_path):
    """Each row of a batch is the table's row input_id; its tree has the events of its user up to its time, and no
    other, as pandas finds them."""
    form = FORMS[seed % len(FORMS)]
    database = Database(seed, form == "memory")
    opened = Opened(database, form, tmp_path)
    try:
        frame = database.task()
        table, dated = database.table(frame, tmp_path)
        unit = database.unit if form == "memory" and dated else None
        loader = relational(opened.data, table, [-1], ("user", "who"), "at", "y", unit=unit, batch_size=17,
                            shuffle=True)
        assert isinstance(loader, torch_geometric.loader.NeighborLoader) and loader.skipped == 0
        events, targets, met = pd.DataFrame({"user": database.user, "time": database.time}), expected(frame), []
        for batch in loader:
            store, rows = batch["user"], frame.iloc[batch["user"].input_id.numpy()]
            count = store.batch_size
            assert opened.keys_of(store, database.keys)[:count].tolist() == rows["who"].tolist()
            assert store.seed_time.tolist() == rows["at"].tolist() and store.seed_time.dtype == torch.int64
            assert store.y.dtype == targets.dtype and torch.equal(store.y, targets[rows["row"].tolist()])
            trees = pd.Series(batch["event"].n_id.numpy()).groupby(batch["event"].batch.numpy()).agg(set).to_dict()
            for slot, (who, at) in enumerate(zip(rows["who"], rows["at"])):
                own = events[(database.keys[events["user"]] == who) & (events["time"] <= at)]
                assert trees.get(slot, set()) == set(own.index)
            met += rows["row"].tolist()
        assert sorted(met) == list(range(ROWS))
    finally:
        opened.close()


def content(batch):
    return [(str(getattr(store, "_key", None)), name, str(value.dtype), tuple(value.shape), value.numpy().tobytes())
            if isinstance(value, torch.Tensor) else (str(getattr(store, "_key", None)), name, value)
            for store in batch.stores for name, value in store.items()]


@pytest.mark.parametrize("seed, strategy", [(0, "uniform"), (1, "last"), (2, "uniform")])
def test_two_hosts_have_the_bytes_of_one(seed, strategy, tmp_path):
    database = Database(seed, False)
    frame = database.task()
    found = []
    for form in "two parts", "servers":
        opened = Opened(database, form, tmp_path)
        try:
            torch.manual_seed(5)
            loader = relational(opened.data, frame, [3, 2, 2], ("user", "who"), "at", "y", batch_size=13, shuffle=True,
                                temporal_strategy=strategy)
            found.append([content(batch) for batch in loader])
        finally:
            opened.close()
    assert found[0] == found[1] and len(found[0]) == 5


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Of times in seconds, with users of text keys."""
    database = Database(2, False)
    database.unit = "s"
    with graphwire.open(database.parts(tmp_path_factory.mktemp("small"), 2)) as opened:
        yield opened


def rows(**columns):
    """A frame of a user's two rows, with other columns."""
    return pd.DataFrame({"who": ["user 1/é", "user 3/é"], "at": [4, 5], "y": [0, 1], **columns})


def asked(data, table, entity=("user", "who"), time="at", target="y", **options):
    return relational(data, table, [2], entity, time, target, **options)


def dates(*texts):
    return pd.to_datetime(list(texts), format="ISO8601")


REFUSED = [
    (rows(who=["user 1/é", None]), ValueError, "table, row 1: column who is missing"),
    (rows(who=["user 1/é", "nobody"]), LookupError, "table, row 1: column who is 'nobody', which no node of type user"),
    (rows(who=[1, 2]), TypeError, "table: column who: ids of user are texts, and the keys are numbers"),
    (rows(who=[1.5, 2]), ValueError, "table, row 0: column who is 1.5"),
    (rows(who=[True, False]), TypeError, "table, row 0: column who: ids are integers or text, not bool"),
    (rows(at=[1.0, np.nan]), ValueError, "table, row 1: column at is missing"),
    (rows(at=dates("2020-01-01", "NaT")), ValueError, "table, row 1: column at is missing"),
    (rows(at=pd.array([None, 3], "Int64")), ValueError, "table, row 0: column at is missing"),
    (rows(at=["2020-01-01", "2020-01-02"]), TypeError, "table: column at is .*string: times are numbers or dates, as"),
    (rows(at=[True, False]), TypeError, "table: column at is bool: times are numbers or dates"),
    (rows(at=pd.to_timedelta([1, 2], "s")), TypeError, "table: column at is duration.*: times are numbers or dates"),
    (rows(at=dates("2020-01-01", "2020-01-01T00:00:00.5")), ValueError, "column at: .* position 1 is no whole number"),
    (rows(y=[0.5, np.nan]), ValueError, "table, row 1: column y is missing"),
    (rows(y=["no", "yes"]), TypeError, "table: column y is .*string: targets are numbers.*number the values"),
    (rows(y=pd.Categorical(["no", "yes"])), TypeError, "table: column y is .*string: targets are numbers"),
    (rows(y=dates("2020-01-01", "2020-01-02")), TypeError, "table: column y is timestamp.*: targets are numbers"),
    (rows(y=[[1, 2], [3]]), ValueError, "table, row 1: column y is a list of 1"),
    (rows(y=np.array([1, 2**63], np.uint64)), ValueError, "table, row 1: column y is 9223372036854775808"),
]


@pytest.mark.parametrize("table, kind, said", REFUSED, ids=[said for _, _, said in REFUSED])
def test_refused_values(graph, table, kind, said):
    with pytest.raises(kind, match=said):
        asked(graph, table)


def test_refused_arguments(graph):
    for options, kind, said in [
            ({"entity": ("user", "hwo")}, ValueError, "entity: table has no column 'hwo': did you mean 'who'"),
            ({"entity": ("person", "who")}, LookupError, 'no node type "person"'),
            ({"entity": "who"}, ValueError, r"entity of which type\? give \(\"type\", .*user"),
            ({"entity": None}, TypeError, r"entity is \(\"type\", .*not None"),
            ({"time": "ta"}, ValueError, "time: table has no column 'ta'"),
            ({"target": "label"}, ValueError, "target: table has no column 'label'"),
            ({"input_time": [1, 2]}, TypeError, "input_time: the table says it"),
            ({"missing": "drop"}, ValueError, "missing is raise or skip"),
            ({"unit": "year"}, ValueError, "unit is one of"),
            ({"unit": "ms"}, ValueError, "unit: the times of the data are in s, not in ms"),
            ({"ids": "graph"}, TypeError, "column who: ids of user are numbers, and the keys are texts"),
            ({"temporal_stratgy": "last"}, TypeError, r"relational\(\) has no .* did you mean 'temporal_strategy'"),
            ({"batch_sise": 3}, TypeError, r"relational\(\) has no argument 'batch_sise': did you mean 'batch_size'")]:
        with pytest.raises(kind, match=said):
            asked(graph, rows(), **options)
    with pytest.raises(TypeError, match="its arguments are ") as raised:
        asked(graph, rows(), zzzzzzz=3)
    words = str(raised.value).partition("its arguments are ")[2].split(", ")
    assert {"table", "entity", "batch_size", "replace"} <= set(words) and len(words) == len(set(words))
    assert not {"task", "options", "kwargs", "input_nodes", "input_time"} & set(words)
    with pytest.raises(TypeError, match="table: a table is one of"):
        asked(graph, 7)
    data = Database(0, True).data()
    with pytest.raises(ValueError, match=r'column at has dates.*unit="s"'):
        asked(data, rows(who=[1, 2], at=dates("2020-01-01", "2020-01-02")))
    for wrong in -1, USERS:
        with pytest.raises(LookupError, match=f"table, row 1: column who is {wrong}, which no node.*so are 1 rows"):
            asked(data, pd.DataFrame({"who": [0, wrong, USERS], "at": [1, 2, 3], "y": [1, 2, 3]}))
    with pytest.raises(ValueError, match="entity names a type, and the data has none"):
        asked(Data(edge_index=torch.zeros(2, 3, dtype=torch.long), num_nodes=5), rows(who=[1, 2]), time=None)


def test_rows_without_a_node_are_skipped(graph):
    """input_id stays the row of the table. A table may have no rows that are left."""
    table = pd.DataFrame({"who": ["x", "user 1/é", "y", "user 2/é", "user 1/é"], "at": [1, 2, 3, 4, 5],
                          "y": [0, 1, 2, 3, 4]})
    loader = asked(graph, table, missing="skip", batch_size=5)
    (batch,) = loader
    store = batch["user"]
    assert loader.skipped == 2 and store.input_id.tolist() == store.y.tolist() == [1, 3, 4]
    assert store.seed_time.tolist() == [2, 4, 5] and loader.target.tolist() == [0, 1, 2, 3, 4]
    none = asked(graph, table[:1], missing="skip")
    assert none.skipped == 1 and len(none) == 0 and list(none) == []
    assert len(asked(graph, table[:0].astype({"who": "str"}))) == 0
    assert len(asked(graph, {"who": pa.array([], "string"), "at": [], "y": []})) == 0


def test_a_table_without_times_or_targets(graph):
    (batch,) = asked(graph, rows(), time=None, target=None, batch_size=2)
    assert "y" not in batch["user"] and "seed_time" not in batch["user"] and "batch" not in batch["user"]
    (batch,) = asked(graph, rows(), time=None, target="y", batch_size=2, disjoint=True)
    assert batch["user"].y.tolist() == [0, 1] and batch["user"].batch[:2].tolist() == [0, 1]


def test_batches_without_ids_of_edges():
    """Nodes and edges are the same; no attribute of edges is left but where they are."""
    data, of = Database(0, True).data(), ("event", "of", "user")
    data[of].edge_attr = torch.rand(EVENTS)
    table = {"who": list(range(USERS)), "y": [0.5] * USERS}

    def batches(wanted):
        torch.manual_seed(5)
        return list(relational(data, table, [4, 3], ("user", "who"), target="y", batch_size=4, edge_ids=wanted))

    pairs = list(zip(batches(True), batches(False), strict=True))
    assert len(pairs) == 4
    for batch, without in pairs:
        assert {"e_id", "edge_attr"} <= set(batch[of].keys()) and not {"e_id", "edge_attr"} & set(without[of].keys())
        assert all(torch.equal(batch[ntype].n_id, without[ntype].n_id) for ntype in batch.node_types)
        assert all(torch.equal(batch[etype].edge_index, without[etype].edge_index) for etype in batch.edge_types)


def test_a_transform_has_the_targets(graph):
    """The user's transform comes last. The targets replace a feature y of the nodes, and are copies."""
    def transform(batch):
        batch["user"].doubled = batch["user"].y * 2
        batch["user"].y += 7
        return batch

    loader = pickle.loads(pickle.dumps(asked(graph, rows(), batch_size=2)))
    loader.transform = transform
    for _ in range(2):
        (batch,) = loader
        assert batch["user"].doubled.tolist() == [0, 2] and loader.target.tolist() == [0, 1]
    data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), y=torch.arange(4) + 90, node_time=torch.arange(4))
    (batch,) = relational(data, {"who": [3, 1], "at": [5, 6], "y": [0.5, 1.5]}, [1], "who", "at", "y",
                          time_attr="node_time", batch_size=2)
    assert batch.y.tolist() == [0.5, 1.5] and batch.seed_time.tolist() == [5, 6]


def test_tables_of_relbench():
    """Its keys and times need no names. Dates are seconds, as in its own graphs. A table without targets is masked."""
    data = Database(0, True).data()
    frame = pd.DataFrame({"UserId": [3, 1, 3], "timestamp": dates("1970-01-01T00:00:09", "1970-01-01", "1970-01-02"),
                          "churn": [True, False, True]})
    table = SimpleNamespace(df=frame, fkey_col_to_pkey_table={"UserId": "user"}, pkey_col=None, time_col="timestamp")
    (batch,) = relational(data, table, [-1, 2], target="churn", batch_size=3)
    store = batch["user"]
    assert store.seed_time.tolist() == [9, 0, 86400] and store.n_id[:3].tolist() == [3, 1, 3]
    assert store.y.tolist() == [1, 0, 1] and (batch["event"].time <= store.seed_time[batch["event"].batch]).all()
    table.df = frame[["UserId", "timestamp"]]
    (batch,) = relational(data, table, [2], target="churn", batch_size=3)
    assert "y" not in batch["user"] and len(batch["user"].seed_time) == 3
    table.fkey_col_to_pkey_table = {"UserId": "user", "EventId": "event"}
    with pytest.raises(TypeError, match=r"entity is .*the table has UserId, EventId"):
        relational(data, table, [2])
    (batch,) = relational(data, table, [2], "UserId", batch_size=3)
    assert batch["user"].n_id[:3].tolist() == [3, 1, 3]


# --- The example. ---

def test_the_example_over_servers(tmp_path, monkeypatch):
    """It learns more than the customers' own columns say, and the same over two servers. A leak shows in the figure."""
    monkeypatch.syspath_prepend(str(TOP / "examples"))
    main = importlib.import_module("relational").main
    words = ["--customers", "200", "--num_epochs", "5", "--batch_size", "64"]
    main([*words, "--out", str(tmp_path / "parts")])
    servers = Servers(tmp_path / "parts", 2, tmp_path)
    try:
        found = main([*words, "--servers", ",".join(servers.addresses)])
    finally:
        servers.close()
    assert found == main(words) and found[0] > found[1] + 0.1
    assert main([*words, "--leak"])[0] > found[0] + 0.1


# --- The page. ---

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path, monkeypatch, capsys):
    """Every block of docs/RELATIONAL.md, in order, over two servers in the place of the page's."""
    monkeypatch.chdir(tmp_path)
    names, servers, count = {"__name__": "page"}, None, 0
    try:
        for kind, text in BLOCK.findall((TOP / "docs/RELATIONAL.md").read_text()):
            if kind == "sh":
                assert [line.split("--listen")[0] for line in text.splitlines()] == [
                    f"graphwire serve --part-config parts/ --part {part} " for part in range(2)]
                servers = Servers(tmp_path / "parts", 2, tmp_path)
                continue
            for number, address in enumerate(servers.addresses if servers else ()):
                text = text.replace(f"10.0.0.{number + 1}:30050", address)
            exec(compile(text.replace(', key_file="job.key"', ""), "docs/RELATIONAL.md", "exec"), names)
            count += 1
    finally:
        if servers:
            names["graph"].close()
            servers.close()
    printed = capsys.readouterr().out
    assert count == 9 and float(re.search(r"area under the ROC curve ([01]\.\d+)", printed)[1]) > 0.7, printed
