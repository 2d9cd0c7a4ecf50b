"""The relational graph of relational.py: relational_graph.py DIR [USERS ITEMS EVENTS]

200,000 users, 50,000 items, and 2 million events, each of a user, with an item, at a time: 8 million edges of four
types, in both directions. DIR gets the tables as Parquet, kumo-engine's index of them, and Graphwire's graph of them in
one part, whose lists are sorted by the times of the events. Existing ones are not made again. Prints how long each
took.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

SIZES = {"users": 200_000, "items": 50_000, "events": 2_000_000}
SCHEMA = {"users": {}, "items": {}, "events": {"user": "users", "item": "items"}}
SECONDS = 4 * 365 * 86400  # the times of events; whole seconds, which is the unit of kumo-engine's index
NS = 10**9


def columns_of(sizes):
    """(user, item, time in ns) of each event."""
    random = np.random.default_rng(12)
    user, item, seconds = (random.integers(0, most, sizes["events"])
                           for most in (sizes["users"], sizes["items"], SECONDS))
    return user, item, seconds * NS


def write_tables(folder, sizes):
    user, item, times = columns_of(sizes)
    for name in ("users", "items"):
        parquet.write_table(pa.table({"id": np.arange(sizes[name])}), folder / f"{name}.parquet")
    parquet.write_table(pa.table({"id": np.arange(sizes["events"]), "user": user, "item": item,
                                  "time": pa.array(times, pa.timestamp("ns"))}), folder / "events.parquet")


def kumo_words(schema, tables, out):
    """The words of kumo-engine's own program that write its index, without statistics, from the configuration that its
    own converter makes here. schema: {table: {foreign key: its table}}; tables with foreign keys have times."""
    import diskgraph

    def key(name, **more):
        return {"name": name, "dtype": "int", "stype": "ID", **more}

    def table(name, keys):
        timed = {"time_col": {"name": "time", "dtype": "time", "stype": "timestamp"}} if keys else {}
        return {"table_name": name, "source_table_name": name, "data_source": "local", "pkey": key("id"), "cols": [],
                "fkeys": [key(own, dst_table=to, dst_key="id") for own, to in keys.items()], **timed}

    config = {"name": "relational", "tables": [table(name, keys) for name, keys in schema.items()]}
    source = out.with_suffix(".config")
    source.mkdir(exist_ok=True)
    (source / "diskgraph_config.json").write_text(json.dumps(diskgraph.DiskgraphConfigConverter(
        config, str(tables), dict.fromkeys(schema, "1"),
        source_paths={name: str(tables / f"{name}.parquet") for name in schema}).convert()))
    return [Path(diskgraph.__file__).parent / "bin/ingest", "--source", source, "--output", out]


def kumo_index(schema, tables, out):
    """Writes kumo-engine's index."""
    subprocess.run(kumo_words(schema, tables, out), check=True, stdout=sys.stderr)


def graphwire_parts(tables, out):
    import graphwire

    events = str(tables / "events.parquet")
    graphwire.partition_graph(
        graphwire.from_tables({("events", "of", "users"): events, ("events", "with", "items"): events},
                              {name: str(tables / f"{name}.parquet") for name in SIZES}, id="id", src="id",
                              dst={("events", "of", "users"): "user", ("events", "with", "items"): "item"},
                              features={"events": ["time"]}),
        "relational", 1, out, reverse=True, time="time", progress=False)


def made(what, path, make):
    """Makes `path`, under another name until it is complete."""
    if path.exists():
        return
    unready = path.with_name(f"{path.name}.unready")
    subprocess.run(["rm", "-rf", unready], check=True)
    begun = time.perf_counter()
    make(unready)
    unready.rename(path)
    print(f"{what}: {time.perf_counter() - begun:.1f} s", flush=True)


def main(folder, *sizes):
    folder = Path(folder).absolute()
    sizes = dict(zip(SIZES, map(int, sizes))) if sizes else SIZES
    folder.mkdir(parents=True, exist_ok=True)

    def tables(path):
        path.mkdir()
        write_tables(path, sizes)
        (folder / "sizes.json").write_text(json.dumps(sizes))

    made("the tables", folder / "tables", tables)
    made("kumo-engine's index", folder / "index", lambda path: kumo_index(SCHEMA, folder / "tables", path))
    made("from_tables and partition_graph", folder / "parts", lambda path: graphwire_parts(folder / "tables", path))


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main(*sys.argv[1:])
