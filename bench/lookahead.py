#!/usr/bin/env python3
"""What a trainer fetches for each mini-batch, with look-ahead and kept rows.

    python bench/lookahead.py --part-config parts/ --fanouts 15,10,5 --batch-size 1024

Starts a server for each part of a graph on this host. The trainer is that of part 0, whose seeds it takes and whose
memory it maps; it reads the other parts over TCP. For each --lookahead and each share of --cache (percent of the
feature's rows in all parts, as cache_bytes), a loader returns whole epochs, and the script prints the bytes of rows
that it fetched for each batch, those of kept rows included, as they were counted; the share of what it fetches without
either; and the seconds that counting took for each epoch. Digests are compared with those of a loader without
look-ahead. The bytes do not depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import graphwire
import numpy as np

UP = re.compile(r"^serving part .* at (\S+): ", re.MULTILINE)


def serve(folder: str, part: int, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    words = [] if part == 0 else ["--transport", "tcp"]
    with open(log, "w") as out:
        process = subprocess.Popen(["graphwire", "serve", "--part-config", folder, "--part", str(part), "--listen",
                                    "127.0.0.1:0", *words], stdout=out, stderr=out)
    while not (found := UP.search(log.read_text())):
        if process.poll() is not None:
            sys.exit(f"the server of part {part} ended: {log.read_text()}")
        time.sleep(0.05)
    return process, found.group(1)


def fetched(graph: graphwire.Graph) -> int:
    return sum(row["read_bytes"] for row in graph.stats()["parts"] if row["transport"] == "tcp")


def settled(graph: graphwire.Graph) -> int:
    """The bytes when the batches ahead have their rows."""
    bytes_, since = fetched(graph), time.monotonic()
    while time.monotonic() - since < 2:
        time.sleep(0.05)
        if fetched(graph) != bytes_:
            bytes_, since = fetched(graph), time.monotonic()
    return bytes_


def measure(graph: graphwire.Graph, arguments: argparse.Namespace, seeds: np.ndarray,
            **options: int) -> tuple[float, float, list[int]]:
    """Bytes for each batch, seconds of counting for each epoch, and digests."""
    loader = graphwire.NodeLoader(graph, seeds, arguments.fanouts, features=arguments.features, shuffle=True, seed=1,
                                  batch_size=arguments.batch_size, depth=arguments.depth, **options)
    steps, before, counted = len(loader), fetched(graph), graph.stats()["cache_count_s"]
    count = max(steps * arguments.epochs, arguments.depth + 1)
    count += -count % steps
    digests: list[int] = []
    while len(digests) < count - arguments.depth:  # the batches ahead are the last ones of an epoch
        for batch in loader:
            digests.append(batch.digest())
            if len(digests) == count - arguments.depth:
                break
    bytes_ = (settled(graph) - before) / count
    seconds = (graph.stats()["cache_count_s"] - counted) / (count // steps)
    loader.close()
    return bytes_, seconds, digests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part-config", required=True, help="the folder of a partitioned graph of one node type")
    parser.add_argument("--features", default="feat")
    parser.add_argument("--fanouts", default="15,10,5")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lookahead", default="1,2,4,8")
    parser.add_argument("--cache", default="0,5,10")
    arguments = parser.parse_args()
    arguments.fanouts = [int(word) for word in arguments.fanouts.split(",")]
    (description,) = Path(arguments.part_config).glob("*.json")
    (ranges,) = json.loads(description.read_text())["node_map"].values()
    seeds = np.arange(*ranges[0], dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        servers = [serve(arguments.part_config, part, Path(folder, f"log{part}")) for part in range(len(ranges))]
        try:
            with graphwire.open(servers=[address for _, address in servers], neighbours="requests") as graph:
                report(graph, arguments, seeds)
        finally:
            for process, _ in servers:
                process.kill()
                process.wait()


def report(graph: graphwire.Graph, arguments: argparse.Namespace, seeds: np.ndarray) -> None:
    feature = graph.feature(arguments.features)
    rows, row_bytes = feature.shape[0], feature[[0]].nbytes
    print(f"{graph.name}: {rows} rows of {row_bytes} bytes in {graph.num_parts} parts, {len(seeds)} seeds")
    print("lookahead  cache  KiB for each batch  share  seconds of counting an epoch")
    first: tuple[float, list[int]] | None = None
    measure(graph, arguments, seeds, lookahead=1)  # until every thread has mapped part 0
    for cache, lookahead in itertools.product(map(float, arguments.cache.split(",")),
                                              map(int, arguments.lookahead.split(","))):
        bytes_, seconds, digests = measure(graph, arguments, seeds, lookahead=lookahead,
                                           cache_bytes=int(rows * row_bytes * cache / 100))
        first = first or (bytes_, digests)
        if digests != first[1]:
            sys.exit("a batch differs from those without look-ahead")
        print(f"{lookahead:9}  {cache:4g} %  {bytes_ / 1024:18.1f}  {bytes_ / first[0]:5.3f}  {seconds:.3f}",
              flush=True)


if __name__ == "__main__":
    main()
