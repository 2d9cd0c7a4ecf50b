"""Compares the training of embeddings over Graphwire and over DGL: rows a second of read, backward and step.

  python bench/peers/dgl_embeddings.py [ROUNDS] [--rows N] [--width N] [--batch N] [--steps N]

Each of ROUNDS (5) rounds runs dgl_embedding_script.py over both systems, one after the other, with one server and one
trainer in a separate network namespace. The script trains a DistEmbedding of --rows (1,000,000) rows of --width (128)
floats by SparseAdagrad, in --steps (50) batches of --batch (10,000) ids, and compares rows with torch.optim.Adagrad's.
The Python that runs this file must have torch, graphwire and DGL 1.1.3. Prints a JSON object for each run, the medians,
and the ratios of the two rates in each round. Needs root.
"""
from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from dgl_bed import SYSTEMS, factors, job, prepare, rounds

SCRIPT = "dgl_embedding_script.py"


def ring(count):
    """A graph of `count` nodes, with an edge from each node to the next."""
    ids = np.arange(count)
    return {"src": ids, "dst": np.roll(ids, -1), "labels": np.zeros(count, np.int64)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    for word, most in (("rows", 1_000_000), ("width", 128), ("batch", 10_000), ("steps", 50)):
        parser.add_argument(f"--{word}", type=int, default=most)
    args = parser.parse_args()
    found = {system: [] for system in SYSTEMS}
    with tempfile.TemporaryDirectory(prefix="gwdgl-") as place:
        for system in SYSTEMS:
            prepare(Path(place, system), system, SCRIPT, Path(__file__).with_name(SCRIPT).read_text(), ring(args.rows))
        for number, systems in rounds(args.rounds):
            for system in systems:
                text = job(Path(place, system), system, f"{SCRIPT} {args.width} {args.batch} {args.steps}", 0)
                shutil.rmtree(Path(place, system, "logs"), ignore_errors=True)
                (line,) = [line for line in text.splitlines() if '"rows_per_s"' in line]
                found[system].append(json.loads(line[line.index("{"):]))
                print(json.dumps({"system": system, "round": number, **found[system][-1]}), flush=True)
    for system, runs in found.items():
        rate = statistics.median(one["rows_per_s"] for one in runs)
        print(f"{system}: {rate:,.0f} rows a second, median of {len(runs)}")
    seconds = [[one["seconds"] for one in found[system]] for system in SYSTEMS]
    print(f"rows a second, Graphwire over DGL, by rounds: {factors(*seconds)}; Graphwire faster in "
          f"{sum(own < its for own, its in zip(*seconds))} of {len(seconds[0])} rounds")


if __name__ == "__main__":
    main()
