#!/usr/bin/env python3
"""An epoch of mini-batches of a graph of four times the memory, with its rows or its lists on disk.

    sudo python bench/disk_epoch.py --rounds 5
    sudo python bench/disk_epoch.py --rounds 5 --on-disk lists --weight --edge-factor 32 --columns 4

Makes an R-MAT graph, and runs the same epoch by each of these ways in turn, each in a process of its own without torch:

    memory     the whole graph in memory, without a limit
    disk       on_disk="feat" or "lists", in a control group whose memory is a quarter of the graph
    offsets    the same with the offsets of lists on disk too
    lookahead  the same with lookahead=8 and, with --cache-share, rows that are kept (cache_bytes)
    memmap     batches without rows, and the rows by NumPy's memmap, in the same control group; stopped after --patience

Offsets are for lists alone, and the last two for rows. With --weight, edges are drawn by weight.

Prints seconds of the epoch and its rate as a share of memory's (medians of the rounds), the blocks of 4 KiB that the
rows of its batches touch, or the entries of lists of each batch, and what the disk alone needs for as many: in each
round `graphwire bench disk` reads blocks in a bare loop of io_uring with O_DIRECT. Digests of all rows are compared.
The page cache is empty at each start (root).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test/support"))
from control_groups import drop_page_cache, within

EPOCH = """
import hashlib, json, sys, time
sys.modules["torch"] = None  # it takes more memory than the rest
import graphwire, numpy as np
folder, way, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
(rows,) = __import__("glob").glob(folder + "/part0/node/*/feat.npy")
of_lists = options["on_disk"] == "lists"
left = [options["on_disk"]] + ["offsets"] * (way == "offsets")
kept = {"on_disk": left, "disk_cache": options["disk_cache"]} if way != "memory" else {}
ahead = {"lookahead": 8, "depth": 8, "cache_bytes": options["cache_bytes"]} if way == "lookahead" else {}
graph = graphwire.open(folder, numpy=True, threads=2, **kept)
seeds = np.random.default_rng(1).permutation(graph.num_nodes())[:options["seeds"]]
mapped = np.load(rows, mmap_mode="r") if way == "memmap" else None
digest, blocks, touched, row_bytes, drawn = hashlib.sha256(), 0, 0, 0, []
begun = time.perf_counter()
loader = graphwire.NodeLoader(graph, seeds, options["fanouts"], batch_size=options["batch_size"], seed=5,
                              features=None if way == "memmap" else ["feat"],
                              weight="weight" if options["weight"] else None, **ahead)
for batch in loader:
    if of_lists:
        drawn.append([block.only.edge_ids.copy() for block in batch.blocks])  # the batch goes
        continue
    nodes = batch.nodes[graph.ntypes[0]]
    values = mapped[nodes] if way == "memmap" else batch.features[graph.ntypes[0]]["feat"]
    digest.update(values)
    touched += len(nodes)
    row_bytes = values[0].nbytes
    if way == "memory":
        first, last = nodes * row_bytes // 4096, (nodes * row_bytes + row_bytes - 1) // 4096
        blocks += len(np.unique(np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last)])))
seconds = time.perf_counter() - begun
for batch in drawn:
    edges = np.concatenate(batch)
    digest.update(edges)
    touched, row_bytes = touched + len(edges), 4
    # the neighbours; of a draw by weight also the entries of the alias table, as far as they were taken
    blocks += len(np.unique(edges * 4 // 4096)) + (len(np.unique(edges * 8 // 4096)) if options["weight"] else 0)
print(json.dumps({"s": seconds, "digest": digest.hexdigest(), "rows": touched, "blocks": blocks,
                  "row_bytes": row_bytes}))
"""


def epoch(folder: Path, way: str, options: dict[str, object], enter: Callable[[], None]) -> dict[str, float] | None:
    """One epoch's figures; None: it did not end in time."""
    drop_page_cache()
    process = subprocess.Popen([sys.executable, "-c", EPOCH, folder, way, json.dumps(options)], stdout=subprocess.PIPE,
                               text=True, preexec_fn=enter if way != "memory" else None)
    try:
        out, _ = process.communicate(timeout=float(str(options["patience"])))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    if process.returncode:
        sys.exit(f"{way}: the epoch ended with status {process.returncode}")
    return dict(json.loads(out))


def bare_rate(folder: Path, bytes_: int) -> float:
    """Blocks of 4 KiB a second in a bare loop over a file of this length."""
    out = subprocess.run([os.environ.get("GRAPHWIRE", "graphwire"), "bench", "disk", "--folder", folder, "--bytes",
                          str(bytes_), "--row-bytes", "4096", "--seconds", "1", "--repeats", "5", "--json", "-"],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return float(json.loads(out.splitlines()[0])["ceiling"]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on-disk", choices=["feat", "lists"], default="feat")
    parser.add_argument("--weight", action="store_true")
    parser.add_argument("--scale", default="20")
    parser.add_argument("--edge-factor", default="8")
    parser.add_argument("--columns", default="256")
    parser.add_argument("--seeds", type=int, default=16384)
    parser.add_argument("--batch-size", type=int, default=200)
    parser.add_argument("--fanouts", default="5,5")
    parser.add_argument("--disk-cache", default="16Mi")
    parser.add_argument("--cache-share", type=float, default=0, help="of all rows, kept by lookahead")
    parser.add_argument("--ways", help="with commas (all that fit)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=100)
    parser.add_argument("--folder", default=None, help="on the disk to measure (the temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
        folder = Path(made, "graph")
        subprocess.run([os.environ.get("GRAPHWIRE", "graphwire"), "generate", "rmat", "--scale", arguments.scale,
                        "--edge-factor", arguments.edge_factor, "--features", arguments.columns, "--out", folder,
                        "--quiet", *(["--weights"] if arguments.weight else [])], check=True)
        bytes_ = sum(file.stat().st_size for file in folder.rglob("*.npy"))
        of_lists = arguments.on_disk == "lists"
        arguments.ways = arguments.ways or ("memory,disk,offsets" if of_lists else "memory,disk,lookahead,memmap")
        rows = (1 << int(arguments.scale)) * int(arguments.edge_factor if of_lists else arguments.columns) * 4
        options = {"on_disk": arguments.on_disk, "weight": arguments.weight, "disk_cache": arguments.disk_cache,
                   "seeds": arguments.seeds, "batch_size": arguments.batch_size,
                   "fanouts": [int(word) for word in arguments.fanouts.split(",")], "patience": arguments.patience,
                   "cache_bytes": int(arguments.cache_share * rows)}
        with within(bytes_ // 4 >> 20, "bench") as enter:
            if enter is None:
                raise SystemExit("this user can make no control group of memory")
            report(folder, bytes_, rows, options, arguments, enter)


def report(folder: Path, bytes_: int, rows: int, options: dict[str, object], arguments: argparse.Namespace,
           enter: Callable[[], None]) -> None:
    ways = arguments.ways.split(",")
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    rates: list[float] = []
    facts: dict[str, float] = {}
    for _ in range(arguments.rounds):
        for way in list(ways):
            figures = epoch(folder, way, options, enter)
            if figures is None:
                ways.remove(way)
                continue
            facts = facts or figures
            if figures["digest"] != facts["digest"]:
                sys.exit(f"{way}: the rows differ from those in memory")
            seconds[way].append(figures["s"])
        rates.append(bare_rate(folder, rows))
    needs = facts["blocks"] / statistics.median(rates)
    what = "entries" if arguments.on_disk == "lists" else "rows"
    print(f"a graph of {bytes_ >> 20} MiB within {bytes_ >> 22} MiB: {facts['rows']} {what} of {facts['row_bytes']} "
          f"bytes in {facts['blocks']} blocks")
    print(f"the disk alone, {statistics.median(rates) / 1000:.0f} k blocks/s ({min(rates) / 1000:.0f} to "
          f"{max(rates) / 1000:.0f}): {needs:.2f} s")
    memory = statistics.median(seconds["memory"])
    print("way        seconds (rounds)      of memory's rate  of memory's rate or the disk's")
    for way, all_of in seconds.items():
        if not all_of:
            print(f"{way:9}  not within {arguments.patience:g} s")
            continue
        middle = statistics.median(all_of)
        print(f"{way:9}  {middle:6.2f} ({min(all_of):.2f} to {max(all_of):.2f})  {memory / middle:16.2f}  "
              f"{max(memory, needs) / middle:16.2f}")


if __name__ == "__main__":
    main()
