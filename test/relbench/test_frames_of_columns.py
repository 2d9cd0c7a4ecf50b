"""TensorFrames of plain columns: the frame of a batch is what PyTorch Frame makes of the same rows of the tables with
the user's statistics, bit for bit."""

from __future__ import annotations

import contextlib
import pickle
import re

import graphwire
import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TOP
from shared import imported

imported("torch_frame")
import graphs  # noqa: E402
from graphwire.pyg import NeighborLoader, TensorFrames, served, stores  # noqa: E402
from test_frames import bits  # noqa: E402
from torch_frame import stype  # noqa: E402
from torch_frame.data import Dataset  # noqa: E402
from torch_frame.data.stats import StatType  # noqa: E402

RENAMED = {"events": {"at": "time", "until": "end_time"}}
CATEGORIES = ["word", "code", "none"]
WORDS = np.array(["", "Ulm", "Bonn", "Köln", "7", "07", "nein"])


def some_missing(values, random):
    return pd.Series(values, dtype=object).mask(random.random(len(values)) < 0.2, None)


def dates(rows, random, unit):
    return pd.Series(np.datetime64("1950-01-01", unit) + random.integers(0, 10**9, rows).astype("m8[s]").astype(
        f"m8[{unit}]"))


COLUMNS = {
    "whole": (stype.numerical, lambda n, r: r.integers(-2**62, 2**62, n)),
    "unsigned": (stype.numerical, lambda n, r: r.integers(0, 2**64, n, np.uint64)),
    "missing wholes": (stype.numerical, lambda n, r: some_missing(r.integers(-2**53, 2**53, n), r).astype(float)),
    "real": (stype.numerical, lambda n, r: np.where(r.random(n) < 0.2, np.nan, r.normal(0, 1e9, n))),
    "single": (stype.numerical, lambda n, r: r.normal(0, 1, n).astype(np.float32)),
    "word": (stype.categorical, lambda n, r: some_missing(r.choice(WORDS, n), r).astype("category")),
    "code": (stype.categorical, lambda n, r: some_missing(r.integers(-3, 12, n), r).astype(float)),
    "none": (stype.categorical, lambda n, r: pd.Series(pd.Categorical([None] * n, ["a"]))),
    "few": (stype.categorical, lambda n, r: r.integers(0, 5, n)),
    "few missing": (stype.categorical, lambda n, r: some_missing(r.integers(0, 5, n), r).astype(float)),
    "big": (stype.categorical, lambda n, r: r.integers(2**64 - 4, 2**64 - 1, n, np.uint64)),
    "yes": (stype.categorical, lambda n, r: r.random(n) < 0.5),
    "days": (stype.timestamp, lambda n, r: dates(n, r, "s")),
    "ticks": (stype.timestamp, lambda n, r: dates(n, r, "ns")),
    "vector": (stype.embedding, lambda n, r: list(map(list, r.normal(0, 1, (n, 3))))),
    "one": (stype.embedding, lambda n, r: list(map(list, r.integers(0, 9, (n, 1))))),
    "curve": (stype.sequence_numerical, lambda n, r: list(map(list, r.normal(0, 1, (n, 4))))),
    "step": (stype.sequence_numerical, lambda n, r: list(map(list, r.normal(0, 1, (n, 2))))),
}


def columns(rows, random):
    """({column: values}, {column: stype}) in a random order."""
    names = random.permutation(list(COLUMNS))
    return ({name: COLUMNS[name][1](rows, random) for name in names}, {name: COLUMNS[name][0] for name in names})


def statistics(frame, stypes, random):
    """Of some rows; categories in an order of their own, some of them unknown to the table."""
    some = frame.iloc[random.permutation(len(frame))[:len(frame) // 3]].reset_index(drop=True)
    found = Dataset(some, stypes).materialize().col_stats
    for name, stats in found.items():
        if StatType.COUNT in stats:
            values = [*stats[StatType.COUNT][0], *(["Rom"] if name == "word" else [99])]
            stats[StatType.COUNT] = [values[i] for i in random.permutation(len(values))], [1] * len(values)
    return found


class Place:
    """Random tables, the stypes and statistics of their columns, and their graph."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        users, self.stypes = {}, {}
        users, self.stypes["users"] = columns(50, random)
        self.tables = {"users": pd.DataFrame({"id": random.permutation(1000)[:50], **users})}
        events, self.stypes["events"] = columns(90, random)
        begin = dates(90, random, "us")
        end = (begin + pd.Timedelta(days=3)).mask(random.random(90) < 0.4)
        self.tables["events"] = pd.DataFrame({"user": random.choice(self.tables["users"]["id"], 90), "at": begin,
                                              "until": end, **events})
        self.stypes["events"].update(at=stype.timestamp, until=stype.timestamp)
        self.stats = {name: statistics(self.tables[name], stypes, random) for name, stypes in self.stypes.items()}

    def database(self):
        return graphwire.from_database({
            "users": graphwire.Table(self.tables["users"], key="id", categories=CATEGORIES),
            "events": graphwire.Table(self.tables["events"], foreign_keys={"user": "users"}, time="at",
                                      end_time="until", categories=CATEGORIES)})

    def frames(self, graph):
        return TensorFrames.of_columns(graph, self.stypes, self.stats, RENAMED)

    def wanted(self, table, n_id):
        """What PyTorch Frame makes of the rows of these keys."""
        rows = self.tables[table].set_index("id") if table == "users" else self.tables[table]
        return bits(Dataset(rows.loc[n_id.numpy()].reset_index(drop=True), self.stypes[table]).materialize(
            col_stats=self.stats[table]).tensor_frame)


@pytest.fixture(scope="module", params=[(seed, hosts) for seed in (1, 2, 3) for hosts in (1, 2)],
                ids=lambda given: f"tables {given[0]}, {given[1]} hosts")
def place(request, tmp_path_factory):
    seed, hosts = request.param
    made, folder = Place(seed), tmp_path_factory.mktemp("columns")
    graphwire.partition_graph(made.database(), "shop", hosts, folder / "parts", method="random")
    with contextlib.ExitStack() as stack:
        if hosts == 1:
            made.graph = stack.enter_context(graphwire.open(folder / "parts"))
        else:
            servers = stack.enter_context(contextlib.closing(graphs.Servers(folder / "parts", hosts, folder)))
            made.graph = stack.enter_context(graphwire.open(servers=servers.addresses, transport="tcp"))
        yield made


def test_frames_of_batches(place):
    frames = pickle.loads(pickle.dumps(place.frames(place.graph)))
    for data, options in ((served(place.graph, frames), {}), (place.graph, {"transform": frames}),
                          (stores(place.graph, frames.names), {"transform": frames}),
                          (stores(place.graph, {"users": [], "events": []}, frames=frames), {})):
        for seeds in ("users", "events"):
            for batch in NeighborLoader(data, [4, 3], input_nodes=seeds, batch_size=20, **options):
                for table in ("users", "events"):
                    if len(batch[table].n_id):
                        assert bits(batch[table].tf) == place.wanted(table, batch[table].n_id)
                    assert batch[table].tf.num_rows == len(batch[table].n_id)
                    assert not set(place.stypes[table]) & set(batch[table].keys())
                assert len(batch["events"].time) == len(batch["events"].end_time) == batch["events"].num_nodes


def test_rows_of_the_data(place):
    data = served(place.graph, place.frames(place.graph))
    keys = torch.from_numpy(place.tables["users"]["id"].to_numpy())
    assert bits(data["users"].tf[keys[[3, 1, 3]]]) == place.wanted("users", keys[[3, 1, 3]])
    assert data["users"].tf.stypes == data["users"].tf[keys[:0]].stypes
    assert "time" in data["events"] and "word" not in data["users"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("errors")
    graphwire.partition_graph(graphwire.from_database({
        "users": graphwire.Table(pd.DataFrame({"id": [1, 2], "age": [30, 40], "name": ["Ada", "Bo"], "row": [
            [1.0, 2.0], [3.0, 4.0]], "city": pd.Categorical(["Ulm", "Bonn"])}), key="id"),
        "events": graphwire.Table(pd.DataFrame({"user": [1], "at": pd.to_datetime(["2020-01-01"])}),
                                  foreign_keys={"user": "users"}, time="at")}), "shop", 1, folder / "parts")
    with graphwire.open(folder / "parts") as found:
        yield found


@pytest.mark.parametrize(("stypes", "said"), [
    ({"users": {"agee": "numerical"}}, r"users\.agee: users has no feature 'agee': leave out .*, or name one of age"),
    ({"users": {"name": "categorical"}}, r"users\.name: the graph stores text, .* graphwire\.Table\(…, categories="),
    ({"users": {"name": "text_embedded"}}, r"users\.name: the graph stores text, .* column of the texts' embeddings"),
    ({"users": {"age": "categorical"}}, r"users\.age: stats has no StatType\.COUNT"),
    ({"users": {"city": "numerical"}}, "stores categories, which is categorical, not numerical"),
    ({"users": {"row": "numerical"}}, "stores 2 numbers in a row, which is embedding or sequence_numerical, not"),
    ({"users": {"age": "timestamp"}}, "stores one number in a row, which is numerical or categorical, not timestamp"),
    ({"users": {"row": "multicategorical"}}, r"users\.row: plain columns become .*, not multicategorical"),
    ({"events": {"at": "timestamp"}}, r"if it is the rows' time: stored=\{'events': \{'at': 'time'\}\}"),
    ({"events": {"time": "numerical"}}, r"events\.time: the graph stores times in .*s, which is timestamp, not"),
    ({"user": {}}, "stypes: user is no node type of the graph, which has "),
])
def test_errors(graph, stypes, said):
    with pytest.raises(ValueError, match=said) as error:
        TensorFrames.of_columns(graph, stypes, {})
    assert "\n" not in str(error.value)


def test_a_table_without_columns_has_rows(graph):
    frames = TensorFrames.of_columns(graph, {"events": {}}, {})
    for batch in NeighborLoader(served(graph, frames), [2], input_nodes="users", batch_size=2):
        assert batch["events"].tf.num_rows == 1 and batch["events"].tf.num_cols == 0 and "tf" not in batch["users"]


def test_the_page(tmp_path, monkeypatch):
    """docs/TABLES.md: the block of TensorFrames runs after the first ones; its batches have PyTorch Frame's rows."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\w*\n(.*?)^```", (TOP / "docs/TABLES.md").read_text(), re.MULTILINE | re.DOTALL)
    made = {}
    for block in blocks[:2]:
        exec(block, made)
    with graphwire.open("parts/") as made["graph"]:
        exec(next(block for block in blocks if "of_columns(" in block), made)
        (batch,) = made["loader"]
        rows = made["users"].to_pandas().set_index("id").loc[batch["users"].n_id.numpy()].reset_index(drop=True)
        assert bits(batch["users"].tf) == bits(Dataset(rows, made["stypes"]["users"]).materialize(
            col_stats=made["stats"]["users"]).tensor_frame)
        assert batch["orders"].tf.num_rows == batch["orders"].num_nodes > 0
