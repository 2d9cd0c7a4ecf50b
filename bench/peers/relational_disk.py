"""Compares draws by time of kumo-engine and Graphwire from graphs that exceed the memory: that of relational_graph.py.

relational_disk.py DIR RESULTS.jsonl ROUNDS BATCHES [MIB]

kumo-engine maps its index. Graphwire keeps its neighbour lists, their offsets, and the times and original ids of nodes
on disk. Each runs in a process of its own, which begins with an empty page cache, in a control group of MIB (a quarter
of Graphwire's part) of memory (root). It draws BATCHES batches of 512 users at times of their own, fanouts 16 and 8,
disjoint trees, without rows, and then as many others. Equal laws must return equally many edges. Prints thousand edges
a second of each half, and of the second half the blocks of 4 KiB that were read from the disk, medians of the rounds.
A line for each process goes to RESULTS. A system for which the memory does not suffice is left out, and said so.
"""
from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test/support"))
from control_groups import drop_page_cache, within

FANOUTS = [16, 8]
ON_DISK = ["lists", "offsets", "time", "orig_id"]
CACHE = "256Mi"  # of their blocks
SYSTEMS = {"kumo-engine, most recent": None, "Graphwire, last": {"time": "time", "pick": "last"},
           "Graphwire, temporal uniform": {"time": "time"}}


def blocks_read():
    """By this process, from the disk."""
    return int(dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())["read_bytes"]) // 4096


def one(folder, name, number, batches):
    """The figures of one process, as a line."""
    import graphwire
    from relational import Graphwire, Kumo, measured, seeds_of

    options = SYSTEMS[name]
    if options:
        graph = graphwire.open(f"{folder}/parts", threads=1, verify=False, on_disk=ON_DISK, disk_cache=CACHE)
    system = Graphwire(graph, options, name) if options else Kumo(folder, "temporal_most_recent", name)
    users = json.loads(Path(folder, "sizes.json").read_text())["users"]
    halves = []
    for half in range(2):
        seeds, seconds = seeds_of(np.random.default_rng([7, int(number), half]), users, int(batches))
        before = blocks_read()
        halves.append({**measured(system, seeds, seconds, FANOUTS), "blocks": blocks_read() - before})
    print(json.dumps({"peer": name, "round": int(number), "halves": halves}))


def main(folder, results, rounds, batches, mib=None):
    sizes = {what: sum(file.stat().st_size for file in Path(folder, what).rglob("*") if file.is_file())
             for what in ("index", "parts")}
    limit = int(mib) << 20 if mib else sizes["parts"] // 4
    rates = {name: [] for name in SYSTEMS}
    with open(results, "w", encoding="utf-8") as out, within(limit >> 20, "bench") as enter:
        if enter is None:
            raise SystemExit("this user can make no control group of memory")
        for number in range(int(rounds)):
            edges = {}
            for name in SYSTEMS:
                drop_page_cache()
                process = subprocess.run([sys.executable, __file__, "--one", folder, name, str(number), batches],
                                         stdout=subprocess.PIPE, text=True, preexec_fn=enter)
                if process.returncode:
                    print(f"{name}: the process ended with status {process.returncode}")
                    continue
                line = process.stdout
                out.write(line)
                halves = json.loads(line)["halves"]
                rates[name].append([half["edges"] / half["seconds"] / 1000 for half in halves] +
                                   [halves[1]["blocks"] / int(batches), halves[1]["blocks"] / halves[1]["seconds"]])
                edges[name] = [half["edges"] for half in halves]
            if len({str(counts) for counts in edges.values()}) > 1:
                raise SystemExit(f"equal laws return different numbers of edges: {edges}")
    print(f"kumo-engine's index {sizes['index'] >> 20} MiB, Graphwire's part {sizes['parts'] >> 20} MiB, memory "
          f"{limit >> 20} MiB, {next(iter(edges.values()))[0] // int(batches)} edges a batch")
    print("| thousand edges a second | first batches | next batches | rounds | blocks a batch | thousand a second |\n"
          "|---|---|---|---|---|---|")
    for name, some in rates.items():
        if not some:
            continue
        first, second, blocks, speed = zip(*some)
        print(f"| {name} | {statistics.median(first):.0f} | {statistics.median(second):.0f} | "
              f"{min(second):.0f} to {max(second):.0f} | {statistics.median(blocks):,.0f} | "
              f"{statistics.median(speed) / 1000:.0f} |")


if __name__ == "__main__":
    one(*sys.argv[2:]) if sys.argv[1] == "--one" else main(*sys.argv[1:])
