"""Measures imports of tables: memory with text ids, and the rate of Parquet beside that of CSV.

    python test/slow/soak/tables.py memory FOLDER --edges 100000000 --ids 50000000
    python test/slow/soak/tables.py rate FOLDER --edges 100000000

memory: the peak of a partition_graph of text ids, and of the same edges with dense integers, which is the graph's own.
The difference may be 16 bytes an id, the ids' own text and 256 MB. Memory is what a control group cannot take back:
anonymous and shared pages of all processes, read every 20 ms.

rate: edges a second of `graphwire import` of CSV, and of from_tables of the same edges in Parquet, import included. The
second may not be below 0.8 of the first. Ids are integers; both use the same processors.

Exits with 1 if a bound is exceeded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import graphwire
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from graphwire._files import partition

BLOCK = 1 << 20
SLACK = 256 << 20


def texts(numbers):
    """Ids of 20 to 30 bytes."""
    return pc.binary_join_element_wise("customer-", pc.cast(pa.array(numbers * 7919), pa.string()), "@shop", "")


def generate(path, edges, ids, as_text):
    random, writer = np.random.default_rng(1), None
    for begin in range(0, edges, BLOCK):
        ends = random.integers(0, ids, (2, min(BLOCK, edges - begin)))
        columns = [texts(one) if as_text else one for one in ends]
        table = pa.table({"src": columns[0], "dst": columns[1]})
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    writer.close()


def to_csv(parquet, path):
    file = pq.ParquetFile(parquet)
    with pa.csv.CSVWriter(path, file.schema_arrow, write_options=pa.csv.WriteOptions(quoting_style="none")) as writer:
        for batch in file.iter_batches(BLOCK):
            writer.write_batch(batch)


def held(process):
    """Bytes of anonymous and shared memory of a process and of its descendants."""
    total, rest = 0, [process]
    while rest:
        one = rest.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            total += sum(int(line.split()[1]) << 10 for line in status.splitlines()
                         if line.startswith(("RssAnon", "RssShmem")))
            for thread in Path(f"/proc/{one}/task").iterdir():
                rest += map(int, (thread / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


class Peak(threading.Thread):
    """The peak of a process and its descendants. most: bytes; when: seconds after the start."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self._process, self._ended, self.most, self.when = process, threading.Event(), 0, 0.0

    def run(self):
        begun = time.monotonic()
        while not self._ended.wait(0.02):
            now = held(self._process)
            if now > self.most:
                self.most, self.when = now, time.monotonic() - begun

    def end(self):
        self._ended.set()
        self.join()
        return self.most


def partitioned(path, out):
    """The peak and the seconds of a partition_graph in a process of its own."""
    shutil.rmtree(out, ignore_errors=True)
    words = (f"import graphwire; graphwire.partition_graph(graphwire.from_tables({str(path)!r}), 'g', 1, {str(out)!r}, "
             "method='random')")
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", words]) as process:
        peak = Peak(process.pid)
        peak.start()
        if process.wait():
            raise SystemExit(f"partition_graph of {path} failed")
        most = peak.end()
    return most, time.monotonic() - begun, peak.when


def memory(args):
    peaks = {}
    for kind in ("integers", "text"):
        path, out = args.folder / f"{kind}.parquet", args.folder / f"{kind}-parts"
        if not path.exists():
            generate(path, args.edges, args.ids, kind == "text")
        most, seconds, when = partitioned(path, out)
        peaks[kind] = most
        print(f"{kind}: peak {most / 2**20:,.0f} MiB after {when:.0f} s of {seconds:.0f} s", flush=True)
    with graphwire.open(args.folder / "text-parts", numpy=True) as graph:
        nodes = graph.num_nodes()
    own = sum(path.stat().st_size for path in (args.folder / "text-parts").rglob("*orig_id.bytes*"))
    more, bound = peaks["text"] - peaks["integers"], 16 * nodes + own + SLACK
    print(f"{args.edges:,} edges, {nodes:,} text ids of {own / 2**20:,.0f} MiB: {more / 2**20:,.0f} MiB beyond the "
          f"graph; bound {bound / 2**20:,.0f} MiB")
    return more <= bound


def rate(args):
    path, text = args.folder / "integers.parquet", args.folder / "integers.csv"
    if not path.exists():
        generate(path, args.edges, args.ids, False)
    if not text.exists():
        to_csv(path, text)
    best = {"csv": 0.0, "parquet": 0.0}
    for _ in range(args.rounds):
        for kind in best:
            files, out = args.folder / "files", args.folder / "imported"
            shutil.rmtree(files, ignore_errors=True)
            shutil.rmtree(out, ignore_errors=True)
            files.mkdir()
            begun = time.monotonic()
            words = graphwire.from_tables(path).write(files)[0] if kind == "parquet" else ["--from", text]
            partition.run(["import", *words, "--out", out])
            best[kind] = max(best[kind], args.edges / (time.monotonic() - begun))
    share = best["parquet"] / best["csv"]
    print(f"{args.edges:,} edges, integer ids, {os.cpu_count()} processors: CSV {best['csv']:,.0f}, "
          f"Parquet {best['parquet']:,.0f} edges a second, {share:.2f} of CSV")
    return share >= 0.8


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("memory", "rate"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--ids", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if {"memory": memory, "rate": rate}[args.what](args) else 1)


if __name__ == "__main__":
    main()
