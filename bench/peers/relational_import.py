"""Compares making a graph of tables by keys: relational_import.py DIR RESULTS.jsonl ROUNDS

DIR has the tables of relational_graph.py as Parquet: 8 million edges of four types, in both directions. In every round
one system after the other makes them from the tables, each in a process of its own; the order is reversed in every
second round. A line for each measurement goes to RESULTS.

    graphwire import --tables    keys looked up, times, lists sorted by them, the index of keys, original ids, digests
    from_database                the same by partition_graph, in one part
    kumo-engine                  its index, by its own program, without statistics
    DuckDB                       the join of each foreign key, and the sort by destination and time, in both directions,
                                 to Parquet

Prints processor time, user and system, of each process and its children; edges a second of it; the peak of the memory
that they hold together (resident, read every few milliseconds); and ratios to the others of the same round. Every
system's edges are counted and compared. Other work on the machine lengthens the time on the clock, and not this one by
much.
"""
from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from relational_graph import SCHEMA, kumo_words

PAGE = os.sysconf("SC_PAGE_SIZE")
POLL_S = 0.005


def description(tables):
    """The description in JSON for Graphwire."""
    return {"format": "graphwire-tables-1", "name": "relational", "tables": {
        name: {"source": str(tables / f"{name}.parquet"), "key": "id", **(
            {"foreign_keys": keys, "time": "time"} if keys else {})} for name, keys in SCHEMA.items()}}


def duckdb_script(tables, out):
    """A script of Python that joins and sorts with DuckDB, and prints the number of edges."""
    lines = ["import duckdb", f"c = duckdb.connect({str(out / 'work.duckdb')!r})",
             "c.execute('set enable_progress_bar = false')", "edges = 0"]
    for name in SCHEMA:
        lines.append(f"c.sql(\"create table {name} as select id, row_number() over () - 1 as row "
                     f"from read_parquet('{tables / name}.parquet')\")")
    for name, keys in SCHEMA.items():
        for key, target in keys.items():
            joined = (f"(select f.file_row_number as a, t.row as b, f.time from read_parquet('{tables / name}.parquet'"
                      f", file_row_number=true) f join {target} t on f.\\\"{key}\\\" = t.id)")
            for direction, order in (("to", "b, time, a"), ("from", "a, time, b")):
                lines.append(f"edges += c.execute(\"copy (from {joined} order by {order}) to "
                             f"'{out / f'{key}-{direction}.parquet'}'\").fetchone()[0]")
    return "\n".join([*lines, "print(edges)"])


def systems(tables, work):
    """{name: (words of its process, a function that counts its edges)}."""
    (work / "db.json").write_text(json.dumps(description(tables)))
    graph, parts, index, joined = (work / name for name in ("graph", "parts", "index", "joined"))
    made = f"import graphwire; graphwire.partition_graph(graphwire.from_database({str(work / 'db.json')!r}), " \
           f"'relational', 1, {str(parts)!r}, progress=False)"

    def of_graph(folder):
        return lambda _: json.loads(subprocess.run([os.environ["GRAPHWIRE"], "inspect", folder, "--json"], check=True,
                                                   capture_output=True).stdout)["edges"]

    def of_index(_):
        return sum(json.loads((index / "ingest_stats.json").read_text())["stats"]["edge_counts"].values())

    joined.mkdir(exist_ok=True)
    return {
        "graphwire import --tables": ([sys.executable, "-m", "graphwire", "import", "--tables", work / "db.json",
                                       "--out", graph, "--quiet"], of_graph(graph)),
        "from_database, partition_graph": ([sys.executable, "-c", made], of_graph(parts)),
        "kumo-engine's index": (kumo_words(SCHEMA, tables, index), of_index),
        "DuckDB's join and sort": ([sys.executable, "-c", duckdb_script(tables, joined)], int)}


def resident(pid):
    """The bytes that a process and its descendants hold."""
    total, left = 0, [str(pid)]
    while left:
        one = left.pop()
        try:
            total += int(Path("/proc", one, "statm").read_text().split()[1]) * PAGE
            for task in os.listdir(f"/proc/{one}/task"):
                left += Path("/proc", one, "task", task, "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def measured(words, work):
    """Runs a process. Returns its figures, and what it prints."""
    shutil.rmtree(work / "joined", ignore_errors=True)
    for name in ("graph", "parts", "index"):
        shutil.rmtree(work / name, ignore_errors=True)
    (work / "joined").mkdir()
    begun, ended, peak = time.perf_counter(), threading.Event(), [0]
    with open(work / "log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=log, text=True)

        def watch():
            while not ended.wait(POLL_S):
                peak[0] = max(peak[0], resident(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        watcher.join()
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"{words[0]} failed: {said}{log.read()}")
    return {"processor": usage.ru_utime + usage.ru_stime, "seconds": time.perf_counter() - begun,
            "memory": max(peak[0], usage.ru_maxrss * 1024)}, said


def table(lines, names):
    print("| | CPU seconds | M edges a CPU second | peak memory, MiB | seconds |\n|---|---|---|---|---|")
    of = {name: [line for line in lines if line["peer"] == name] for name in names}
    for name, own in of.items():
        mid = {key: statistics.median(line[key] for line in own) for key in ("processor", "memory", "seconds")}
        print(f"| {name} | {mid['processor']:.2f} | {own[0]['edges'] / mid['processor'] / 1e6:.2f} | "
              f"{mid['memory'] / 2**20:,.0f} | {mid['seconds']:.1f} |")
    first = next(iter(names))
    for name in list(names)[2:]:
        for key in ("processor", "memory"):
            ratios = sorted(a[key] / b[key] for a, b in zip(of[first], of[name]))
            print(f"\n{key}, {first} / {name}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}")


def main(folder, results, rounds):
    folder = Path(folder).absolute()
    sizes, work, lines = json.loads((folder / "sizes.json").read_text()), folder / "import", []
    work.mkdir(exist_ok=True)
    want = sum(2 * len(keys) * sizes[name] for name, keys in SCHEMA.items())
    made = systems(folder / "tables", work)
    with open(results, "w", encoding="utf-8") as out:
        for number in range(int(rounds)):
            for name in list(made)[::1 if number % 2 == 0 else -1]:
                words, count = made[name]
                figures, said = measured(words, work)
                edges = count(said)
                if edges != want:
                    raise SystemExit(f"{name}: {edges:,} edges, and not {want:,}")
                lines.append({"peer": name, "round": number, "edges": edges, **figures})
                out.write(json.dumps(lines[-1]) + "\n")
                out.flush()
            sys.stderr.write(f"round {number + 1} of {rounds}\n")
    lines.sort(key=lambda line: line["round"])
    table(lines, list(made))


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main(*sys.argv[1:])
