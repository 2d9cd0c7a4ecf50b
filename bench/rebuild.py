#!/usr/bin/env python3
"""Rebuilds the graph of ten tables after a change of one, beside the first build of the same tables.

    python bench/rebuild.py --rows 2000000

Parquet files with integer keys: eight tables of a sixteenth of the rows each; "events", the largest, of four tenths;
and "leaf", of a tenth, to which no table refers. Each row refers to two rows and has four features; half of the tables
have times. Every build is `graphwire import --tables` in a process of its own: first builds and rebuilds in turn, after
a change of leaf, and of events. Prints processor and wall seconds, and their medians as shares of the first build's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SHARES = {**{f"table{place}": 1 / 16 for place in range(8)}, "events": 0.4, "leaf": 0.1}
REFERS = {**{f"table{place}": ("table0", f"table{place // 2}") for place in range(8)},
          "events": ("table0", "table1"), "leaf": ("table2", "events")}


def write(folder: Path, name: str, rows: int, change: int) -> None:
    draw = np.random.default_rng([change, *name.encode()])
    count = int(rows * SHARES[name])
    columns = {"id": np.random.default_rng(list(name.encode())).permutation(count) * 3 + 1}
    for place, target in enumerate(REFERS[name]):
        columns[f"to{place}"] = draw.integers(0, int(rows * SHARES[target]), count) * 3 + 1
    for place in range(4):
        columns[f"x{place}"] = draw.random(count, np.float32)
    table = pa.table(columns)
    if name in ("events", "leaf", "table1", "table3", "table5"):
        table = table.append_column("at", pa.array(draw.integers(0, 10**9, count), pa.timestamp("s")))
    pa.parquet.write_table(table, folder / f"{name}.parquet")


def describe(folder: Path) -> None:
    tables = {name: {"source": f"{name}.parquet", "key": "id", "foreign_keys": {
        f"to{place}": target for place, target in enumerate(targets)}} for name, targets in REFERS.items()}
    for name in ("events", "leaf", "table1", "table3", "table5"):
        tables[name]["time"] = "at"
    (folder / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": tables}))


def build(folder: Path, *words: str) -> tuple[float, float]:
    """Processor and wall seconds of one import."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "graphwire", "import", "--tables", folder / "db.json", "--quiet", *words],
                   check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of all tables; there are four edges a row")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where to work (default: the system's folder for temporary files)")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    found: dict[str, list[tuple[float, float]]] = {"first build": [], "rebuild, leaf changed": [],
                                                   "rebuild, events changed": [], "rebuild, nothing changed": []}
    try:
        describe(folder)
        for name in SHARES:
            write(folder, name, given.rows, 0)
        for round_ in range(given.rounds):
            shutil.rmtree(folder / "graph", ignore_errors=True)
            found["first build"].append(build(folder, "--out", str(folder / "graph")))
            found["rebuild, nothing changed"].append(build(folder, "--out", str(folder / "graph"), "--rebuild"))
            for name in ("leaf", "events"):
                write(folder, name, given.rows, round_ + 1)
                found[f"rebuild, {name} changed"].append(build(folder, "--out", str(folder / "graph"), "--rebuild"))
    finally:
        shutil.rmtree(folder)
    first = [statistics.median(one) for one in zip(*found["first build"])]
    for what, times in found.items():
        middle = [statistics.median(one) for one in zip(*times)]
        print(f"{what:26} processor {middle[0]:6.2f} s ({middle[0] / first[0]:.2f})  "
              f"wall {middle[1]:6.2f} s ({middle[1] / first[1]:.2f})", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
