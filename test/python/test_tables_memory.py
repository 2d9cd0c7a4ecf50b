"""partition_graph(from_tables(…), memory=…), and import --tables --memory: the graphs have the same bytes with any
memory, and errors the same text. Batches are small, so that a numbering is spilled between any two of them."""

import json
import logging
import os
import random
import re
import resource
import signal
import subprocess
import sys
from collections import namedtuple
from datetime import datetime, timedelta
from decimal import Decimal

import graphwire
import numpy as np
import pytest
from conftest import TOP

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

sys.path.insert(0, str(TOP / "test/support"))

import control_groups  # noqa: E402
import database_changes  # noqa: E402
import databases  # noqa: E402
from graphwire._files import database_command, numberings, table_kinds  # noqa: E402

MEMORY = ("1", "40k", "200k")
DATABASES = int(os.environ.get("GRAPHWIRE_DATABASES_MEMORY", "6"))
ERRORS = int(os.environ.get("GRAPHWIRE_DATABASES_MEMORY", "4"))
PYTHON_MIB = 150  # of Python with pyarrow, and of a batch


def stream(columns, rows=61):
    table = pa.table(columns)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids_of(kind, numbers):
    if kind == "integers":
        return [int(number) * 2654435761 - 10**9 for number in numbers]
    text = [f"{'node' * (number % 5)}-{number}" for number in numbers]
    return pa.array(text, pa.large_string() if kind == "large" else pa.string())


def tables_of(seed):
    """The arguments of from_tables. Streams can be read once, so each graph has its own."""
    draw, dice = np.random.default_rng(seed), random.Random(seed)
    kind = dice.choice(["text", "large", "integers"])
    users, films = 400, 300
    edges = {("user", "rates", "film"): (draw.integers(0, users, 2000), draw.integers(0, films, 2000)),
             ("user", "knows", "user"): (draw.integers(0, users, 900), draw.integers(0, users, 900))}
    with_table = [ntype for ntype in ("user", "film") if dice.random() < 0.5]
    counts, kinds = {"user": users, "film": films}, {"user": kind, "film": dice.choice(["text", "integers"])}
    nodes = {}
    for ntype in with_table:
        order = draw.permutation(counts[ntype])
        nodes[ntype] = stream({"id": ids_of(kinds[ntype], order), "age": order.astype(np.float32)})
    return {"edges": {etype: stream({"src": ids_of(kinds[etype[0]], src), "dst": ids_of(kinds[etype[2]], dst),
                                     "at": np.arange(len(src))}) for etype, (src, dst) in edges.items()},
            "nodes": nodes or None, "time": "at",
            **({"features": {ntype: ["age"] for ntype in nodes}} if nodes else {})}


@pytest.mark.parametrize("seed", range(8))
def test_bytes_do_not_depend_on_the_memory(seed, tmp_path, monkeypatch):
    spilled = []
    spill = numberings.Numbering.spill
    monkeypatch.setattr(numberings.Numbering, "spill",
                        lambda self, stem: (spilled.append(len(self)), spill(self, stem)))
    graphwire.partition_graph(graphwire.from_tables(**tables_of(seed)), "g", 2, tmp_path / "whole", method="random")
    assert not spilled
    for memory in MEMORY:
        graphwire.partition_graph(graphwire.from_tables(**tables_of(seed)), "g", 2, tmp_path / memory, method="random",
                                  memory=memory)
        assert tree(tmp_path / memory) == tree(tmp_path / "whole"), memory
    assert spilled and all(spilled)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["whole", *MEMORY])


def refused(tmp_path, memory, edges, nodes):
    with pytest.raises(ValueError) as error:
        graphwire.partition_graph(graphwire.from_tables(stream(edges), stream(nodes)), "g", 2, tmp_path / "out",
                                  method="random", memory=memory)
    assert not list(tmp_path.iterdir())
    return str(error.value)


@pytest.mark.parametrize("kind", ["text", "integers"])
def test_errors_do_not_depend_on_the_memory(kind, tmp_path):
    ids = list(range(200))
    edges = {"src": ids_of(kind, ids), "dst": ids_of(kind, ids)}
    missing = {"id": ids_of(kind, [number for number in ids if number != 137])}
    repeated = {"id": ids_of(kind, [*ids, 150])}
    for nodes, row in ((missing, 137), (repeated, 200)):
        said = {memory: refused(tmp_path, memory, edges, nodes) for memory in (None, *MEMORY)}
        assert len(set(said.values())) == 1 and f"row {row}" in said[None], said


def test_a_long_id(tmp_path):
    edges = {"src": ["a"] * 100 + ["b" * 65536], "dst": ["c"] * 101}
    with pytest.raises(graphwire.ResourceError, match="65,536"):
        graphwire.partition_graph(graphwire.from_tables(stream(edges)), "g", 2, tmp_path / "out", memory="1")
    assert not list(tmp_path.iterdir())

# --- Tables with keys. ---

def build(folder, out, *words):
    logging.getLogger().handlers.clear()
    return database_command.main(["--tables", str(folder / "db.json"), "--out", str(out), "--quiet", *words])


@pytest.fixture
def spilled(monkeypatch):
    """Keys of each numbering that was spilled, when it was."""
    found, spill = [], numberings.Numbering.spill
    monkeypatch.setattr(numberings.Numbering, "spill", lambda self, stem: (found.append(len(self)), spill(self, stem)))
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    yield found
    logging.getLogger().handlers.clear()


@pytest.mark.parametrize("seed", range(DATABASES))
def test_databases_do_not_depend_on_the_memory(seed, tmp_path, monkeypatch, spilled):
    """Random databases with keys of every kind: bytes, records and errors, also of builds in steps and of rebuilds."""
    monkeypatch.setattr(table_kinds, "BATCH_ROWS", 3)
    draw, database = random.Random(f"memory {seed}"), databases.Database(seed)
    database.write(tmp_path)
    for step in range(2):
        whole = build(tmp_path, tmp_path / "whole", "--replace")
        assert not spilled
        for memory, *words in (("1",), ("24k", "--resume"), ("60k",), ("1", "--rebuild")):
            out = tmp_path / ("rebuilt" if "--rebuild" in words else f"out{memory}{step}")
            assert build(tmp_path, out, "--memory", memory, *words) == whole, (memory, words)
            assert not out.exists() if whole else tree(out) == tree(tmp_path / "whole"), (memory, words)
        for _ in range(2):
            database_changes.changed(database, tmp_path, draw)
        spilled.clear()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("option, value", [("--memory", "-5"), ("--memory", "x"), ("--memory", "99999999Ti"),
                                           ("--threads", "0")])
def test_options_that_are_no_numbers(option, value, tmp_path, capfd):
    """One line, and the status of wrong options."""
    databases.Database(0).write(tmp_path)
    before = sorted(tmp_path.iterdir())
    for out in ([], ["--resume"]):
        assert build(tmp_path, tmp_path / "out", option, value, *out) == 2
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 1 and said[0].startswith(f"graphwire import: {option}: ") and value in said[0]
        assert sorted(tmp_path.iterdir()) == before


def keys_of(kind, numbers):
    """Keys of a kind, in columns. Numbers that are equal, and no others, have equal keys."""
    numbers = [int(number) for number in numbers]
    if kind == "two columns":
        return {"a": [number // 7 for number in numbers], "b": [f"b{number % 7}" for number in numbers]}
    day = datetime(2020, 1, 1)
    return {"a": {"int": lambda: pa.array([number * 2654435761 - 10**9 for number in numbers]),
                  "text": lambda: pa.array([f"{'key' * (number % 4)}-{number}" for number in numbers]),
                  "day": lambda: pa.array([(day + timedelta(days=number)).date() for number in numbers]),
                  "moment": lambda: pa.array([day + timedelta(seconds=number) for number in numbers]),
                  "decimal": lambda: pa.array([Decimal(number) for number in numbers], pa.decimal128(20, 2))}[kind]()}


KINDS = ("int", "text", "day", "moment", "decimal", "two columns")


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_databases_do_not_depend_on_the_memory(kind, tmp_path, monkeypatch, spilled):
    """The first wrong row is named, whether it is a second row of a key, a key without a row, or a missing one. Tables
    with several wrong rows, in one batch or in several."""
    monkeypatch.setattr(table_kinds, "BATCH_ROWS", 50)
    for seed in range(ERRORS):
        draw, count = random.Random(f"{kind} {seed}"), 300
        rows = {name: draw.sample(range(count), count) for name in ("users", "films")}
        referring = {name: draw.choices(range(count), k=count) for name in ("users", "films")}
        for fault in draw.choices(("twice", "dangling", "null"), k=draw.choice((1, 2, 3))):
            name = draw.choice(("users", "films"))
            at = draw.choice((draw.randrange(200, 210), draw.randrange(1, count)))
            if fault == "twice":
                rows[name][at] = rows[name][draw.randrange(at)]
            else:
                referring[name][at] = count + at if fault == "dangling" else None
        tables = {name: keys_of(kind, some) for name, some in rows.items()}
        tables["rates"] = {}
        for name, some in referring.items():
            for column, keys in keys_of(kind, [one or 0 for one in some]).items():
                keys = pa.array(keys)
                there = pa.array([one is not None for one in some])
                tables["rates"][f"{name}_{column}"] = pa.compute.if_else(there, keys, pa.scalar(None, keys.type))
        for name, columns in tables.items():
            pa.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        names = list(tables["users"])
        (tmp_path / "db.json").write_text(json.dumps({
            "format": "graphwire-tables-1", "missing": "error", "tables": {
                **{name: {"source": f"{name}.parquet", "key": names} for name in rows},
                "rates": {"source": "rates.parquet", "foreign_keys": [
                    {"columns": [f"{name}_{column}" for column in names], "table": name} for name in rows]}}}))
        said = {}
        for memory in (None, "1", "30k", "45k"):
            with pytest.raises(ValueError) as error:
                graphwire.partition_graph(graphwire.from_database(tmp_path / "db.json"), "g", 1, tmp_path / "out",
                                          method="random", memory=memory)
            said[memory] = str(error.value)
            assert not spilled or memory
        assert len(set(said.values())) == 1 and ", row " in said[None], said
        assert spilled
        spilled.clear()
        assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] + [".parquet"] * 3


def wide_database(folder, users, orders):
    """Keys of 50 bytes of text; an order in eight refers to no user, and one in ten to none at all."""
    folder.mkdir()
    random = np.random.default_rng(1)
    for name, numbers in (("users", random.permutation(users)), ("orders", random.integers(0, users * 8 // 7, orders))):
        numbers = pa.array(numbers * 104729 + 10**12)
        keys = pa.compute.binary_join_element_wise("x" * 36, numbers.cast(pa.string()), "")
        if name == "orders":
            keys = pa.compute.if_else(pa.array(random.random(orders) < 0.9), keys, pa.scalar(None, pa.string()))
        pa.parquet.write_table(pa.table({"key" if name == "users" else "user": keys}), folder / f"{name}.parquet",
                               row_group_size=1 << 16, use_dictionary=False)
    (folder / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        "users": {"source": "users.parquet", "key": "key", "features": []},
        "orders": {"source": "orders.parquet", "features": [], "foreign_keys": {"user": "users"}}}}))


def command(folder, out, *words):
    return [sys.executable, "-c", "import sys; from graphwire._files.database_command import main; "
            "sys.exit(main(sys.argv[1:]))", "--tables", str(folder / "db.json"), "--out", str(out), *words]


def test_keys_that_exceed_the_memory(tmp_path):
    """The keys of 2 million rows, 130 MB as they are numbered in memory, in a control group without room for them."""
    users, orders, budget = 2_000_000, 300_000, 32
    wide_database(tmp_path / "wide", users, orders)
    with control_groups.within(PYTHON_MIB + budget + (8 * (users + orders) >> 20), "keys") as enter:
        if enter is None:
            pytest.skip("this user can make no control group of memory")
        limited = ["--threads", "2", "--memory", f"{budget}Mi"]
        done = subprocess.run(command(tmp_path / "wide", tmp_path / "little", *limited), capture_output=True, text=True,
                              preexec_fn=enter)
        assert done.returncode == 0, done.stderr
        refused = subprocess.run(command(tmp_path / "wide", tmp_path / "large", "--memory", "1Gi"), preexec_fn=enter,
                                 capture_output=True, text=True)
        assert refused.returncode != 0, "the limit does not bind"
    assert re.search(r"memory: the ids of users take temporary files of about \d+\.\d MiB in .*, where ", done.stderr)
    runs = re.search(r"memory: ids numbered in (\d+) runs\n", done.stderr)
    assert runs and int(runs[1]) >= 4, done.stderr
    subprocess.run(command(tmp_path / "wide", tmp_path / "whole", "--quiet"), check=True)
    assert tree(tmp_path / "little") == tree(tmp_path / "whole")
    while list(tmp_path.glob(".*")):  # guards remove the temporary folders
        pass


def wide_sources(folder, kind):
    """A table of wide rows, in a way of tables. Their values are random, so that no format shortens them."""
    random, rows = np.random.default_rng(5), 40_000
    few = pa.array([random.bytes(500).hex() for _ in range(100)])
    texts = few.take(pa.array(random.integers(0, 100, rows))) if kind == "few values" else pa.array(
        [random.bytes(250 * (row > 20_000) + 250).hex() for row in range(rows)])
    table = pa.table({"key": texts, "other.part": pa.array(random.integers(0, 9, rows))})
    path = folder / f"wide.{'csv' if kind == 'csv' else 'parquet'}"
    if kind == "arrow":
        return table, table
    if kind == "pandas":
        return table.to_pandas(), table
    if kind == "csv":
        path.write_text("key,other.part\n" + "".join(f"{key},{number}\n" for key, number in zip(
            *(column.to_pylist() for column in table.columns))))
    else:
        pa.parquet.write_table(table, path, compression="none", use_dictionary=kind == "few values",
                               row_group_size=rows if kind == "one group" else 1000)
    return path, table


pools = []  # a pool lives as long as its buffers

@pytest.mark.parametrize("kind", ["one group", "groups", "few values", "arrow", "pandas", "csv"])
def test_batches_of_wide_rows_have_fewer(kind, tmp_path):
    """Neither a batch nor what the reader holds grows with the width of the rows, and no row is lost."""
    source, table = wide_sources(tmp_path, kind)
    opened, pool = table_kinds.opened(source, "wide"), pa.proxy_memory_pool(pa.default_memory_pool())
    pools.append(pool)
    types = opened.used(table.column_names, ["key"])
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        first = 0
        for where, batch in opened.read(types):
            assert batch.nbytes < 8 << 20 and where(0).endswith(f"row {first}")
            assert batch.select(table.column_names).to_pylist() == table[first:first + len(batch)].to_pylist()
            first += len(batch)
    finally:
        pa.set_memory_pool(before)
    assert first == len(table)
    assert pool.max_memory() < 36 << 20, pool.max_memory()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_end_leaves_no_keys(end, tmp_path):
    """A signal comes when keys are in files, and when they are numbered."""
    wide_database(tmp_path / "wide", 60000, 60000)
    for line in ("take temporary files", "ids numbered in"):
        with subprocess.Popen(command(tmp_path / "wide", tmp_path / "out", "--memory", "100k"), stderr=subprocess.PIPE,
                              text=True) as process:
            assert any(line in said for said in process.stderr)
            process.send_signal(end)
            process.wait()
        while os.listdir(tmp_path) != ["wide"]:  # guards remove the temporary folders of killed processes
            pass


def test_keys_that_exceed_the_disk(tmp_path, spilled, monkeypatch):
    """One line, before the files are written; and where the disk is full in the middle."""
    wide_database(tmp_path / "wide", 3000, 3000)
    used = namedtuple("used", "total used free")
    monkeypatch.setattr(table_kinds, "BATCH_ROWS", 500)
    monkeypatch.setattr(numberings.shutil, "disk_usage", lambda folder: used(10**6, 0, 10**5))
    assert build(tmp_path / "wide", tmp_path / "out", "--memory", "20k") == 1
    assert not spilled and [path.name for path in tmp_path.iterdir()] == ["wide"]
    monkeypatch.undo()

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

    done = subprocess.run(command(tmp_path / "wide", tmp_path / "out", "--memory", "20k"), capture_output=True,
                          text=True, preexec_fn=limit)
    assert done.returncode == 1 and "File too large" in done.stderr.splitlines()[-1], done.stderr
    while os.listdir(tmp_path) != ["wide"]:
        pass
