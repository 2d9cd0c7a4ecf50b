"""Measures the cost of Python in a loader: python -m graphwire.bench --part_config parts/

Two loops over the same epoch alternate. The first, the ceiling, takes each mini-batch from the library and releases it.
The second, the case, also makes the tensors of each mini-batch, and reads what a model would read. The program prints
the medians of the rounds and their ratio, in batches per second and in processor time. Other work on the machine
changes processor time less than elapsed time.
--json prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Callable

import graphwire
from graphwire._base.native import check, ffi, lib
from graphwire._train.loader import Loader


def _bare(loader: Loader) -> int:
    """One epoch of mini-batches that are released unread. Returns their number."""
    stream, out, batches = loader._there(), ffi.new("struct gw_minibatch **"), 0
    while (status := lib.gw_loader_next(stream.pointer, out, -1)) != lib.GW_END:
        check(status)
        lib.gw_minibatch_release(out[0])
        batches += 1
    return batches


def _whole(loader: Loader) -> int:
    batches = 0
    for batch in loader:
        assert len(batch.seed_rows) and all(edges.num_edges >= 0 for block in batch.blocks
                                            for edges in block.edges.values())
        batches += 1
    return batches


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the loader from Python with the C loader.")
    parser.add_argument("--part_config", "--part-config", required=True, help="the graph's JSON or its folder")
    parser.add_argument("--servers", help="host:port,host:port; without servers, this process reads the parts")
    parser.add_argument("--fanouts", default="15,10,5", help="neighbours of each hop, from the seeds outwards")
    parser.add_argument("--batch_size", "--batch-size", type=int, default=1000, help="seeds of a mini-batch")
    parser.add_argument("--batches", type=int, default=40, help="mini-batches of one round")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each loop")
    parser.add_argument("--feature", default="feat", help="the feature of the nodes that is fetched")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()

    with graphwire.open(args.part_config, args.servers) as graph:
        ntype = graph.ntypes[0]
        seeds = range(min(graph.num_nodes(ntype), args.batches * args.batch_size))

        def loader() -> graphwire.NodeLoader:
            return graphwire.NodeLoader(
                graph, seeds, [int(count) for count in args.fanouts.split(",")], ntype=ntype,
                features={ntype: args.feature}, batch_size=args.batch_size, shuffle=True)

        rates: dict[str, list[float]] = {"ceiling": [], "case": []}
        costs: dict[str, list[float]] = {"ceiling": [], "case": []}
        pairs: list[tuple[str, Callable[[Loader], int]]] = [("ceiling", _bare), ("case", _whole)]
        for one in range(args.rounds + 1):  # round 0 is a warm-up; the loops take turns to run first
            for name, run in pairs[::-1] if one % 2 else pairs:
                begun, used = time.perf_counter(), time.process_time()  # a loader samples as soon as it is made
                with loader() as some:
                    batches = run(some)
                    if one:
                        rates[name].append(batches / (time.perf_counter() - begun))
                        costs[name].append((time.process_time() - used) / batches)
    figures = {name: statistics.median(values) for name, values in rates.items()}
    ratio = figures["case"] / figures["ceiling"]
    cost = statistics.median(costs["ceiling"]) / statistics.median(costs["case"])
    spread = max(max(values) / min(values) - 1 for values in rates.values())
    if args.json:
        print(json.dumps({"name": "python loader", "batches_per_s": figures["case"],
                          "ceiling_batches_per_s": figures["ceiling"], "ratio": ratio, "cpu_ratio": cost,
                          "spread": spread}))
    else:
        print(f"loader from Python {figures['case']:.1f} batches/s, without Python's arrays {figures['ceiling']:.1f}: "
              f"{ratio:.3f}, by processor time {cost:.3f} (rounds differ by up to {spread:.0%})")


if __name__ == "__main__":
    main()
