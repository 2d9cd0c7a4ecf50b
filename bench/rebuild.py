#!/usr/bin/env python3
"""Rebuilds the graph of ten tables after a change of one, compared with the first build of the same tables.

    python bench/rebuild.py --share 1

The tables have the sizes and the foreign keys of bench/peers/relational_shop.py: two million rows, from Parquet, with
three numbers and two columns of words each, which become categories; those with foreign keys have times. "reviews" has
a tenth of the rows, and no table refers to it; "lines" is the largest. Every build is `graphwire import --tables` in a
process of its own: first builds and rebuilds in turn, after a change of reviews and of lines. Prints medians of
processor and wall seconds, and as shares of the first build's.
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

# {table: (rows, {foreign key: its table})}
TABLES: dict[str, tuple[int, dict[str, str]]] = {
    "users": (50_000, {}), "items": (30_000, {}), "stores": (1_000, {}), "campaigns": (500, {}),
    "orders": (400_000, {"user": "users", "store": "stores"}),
    "lines": (800_000, {"order": "orders", "item": "items"}),
    "visits": (400_000, {"user": "users", "campaign": "campaigns"}),
    "reviews": (200_000, {"user": "users", "item": "items"}),
    "returns": (50_000, {"line": "lines"}),
    "messages": (68_500, {"user": "users", "store": "stores"}),
}


def keys_of(table: str, count: int) -> np.ndarray:
    return np.random.default_rng(list(table.encode())).permutation(count) * 3 + 1


def write(folder: Path, table: str, share: float, change: int) -> None:
    draw, counts = np.random.default_rng([change, *table.encode()]), {
        name: max(2, int(rows * share)) for name, (rows, _) in TABLES.items()}
    count = counts[table]
    columns = {"id": keys_of(table, count)}
    for key, target in TABLES[table][1].items():
        columns[key] = draw.choice(keys_of(target, counts[target]), count)
    for name in ("amount", "score", "length"):
        columns[name] = draw.random(count, np.float32)
    for name in ("colour", "country"):
        columns[name] = pa.array(np.array([f"{name} {place}" for place in range(50)])[draw.integers(0, 50, count)])
    if TABLES[table][1]:
        columns["at"] = pa.array(draw.integers(0, 10**9, count), pa.timestamp("s"))
    pa.parquet.write_table(pa.table(columns), folder / f"{table}.parquet")


def describe(folder: Path) -> None:
    tables = {table: {"source": f"{table}.parquet", "key": "id", "foreign_keys": keys, "features": [
        "amount", "score", "length"], "categories": ["colour", "country"], **({"time": "at"} if keys else {})}
        for table, (_, keys) in TABLES.items()}
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
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where to work (default: the system's folder for temporary files)")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    found: dict[str, list[tuple[float, float]]] = {"first build": [], "rebuild, reviews changed": [],
                                                   "rebuild, lines changed": [], "rebuild, nothing changed": []}
    try:
        describe(folder)
        for name in TABLES:
            write(folder, name, given.share, 0)
        for round_ in range(given.rounds):
            shutil.rmtree(folder / "graph", ignore_errors=True)
            found["first build"].append(build(folder, "--out", str(folder / "graph")))
            found["rebuild, nothing changed"].append(build(folder, "--out", str(folder / "graph"), "--rebuild"))
            for name in ("reviews", "lines"):
                write(folder, name, given.share, round_ + 1)
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
