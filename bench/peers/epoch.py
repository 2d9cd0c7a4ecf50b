"""Compares epochs of GraphSAGE by several systems: epoch.py RESULTS.jsonl ROUNDS BATCHES load|train NAME=COMMAND…

Each COMMAND starts an epoch_worker.py, which waits for requests. In every round, each worker loads BATCHES
mini-batches, one worker after the other, and then, with "train", each trains on as many. So other work on the machine
affects all workers alike. The order is reversed in every second round. A line for each measurement is written to
RESULTS. Prints the medians, their ratios to the first worker's, and the number of rounds in which the first worker was
faster from end to end; then loading alone by returned edge, the time from a loader's constructor to its first batch,
and the bytes of original ids.
"""
from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys


class Worker:
    def __init__(self, word):
        self.name, command = word.split("=", 1)
        self.process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.lines = []

    def answer(self):
        """Returns the worker's next JSON object. Other lines, which its libraries print, are copied to stderr."""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
            sys.stderr.write(f"{self.name}: {line}")
        raise SystemExit(f"epoch: {self.name} ended with status {self.process.wait()}")

    def round(self, what, batches):
        self.process.stdin.write(f"{what} {batches}\n")
        self.process.stdin.flush()
        line = {"peer": self.name, **self.answer()}
        self.lines.append(line)
        return line

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def median(self, what, key):
        return statistics.median(line[key] / line["batches"] for line in self.lines if line["what"] == what)


def table(workers):
    first = workers[0]
    load_of_first = {what: first.median(what, "seconds") for what in ("load", "train")}
    print("| | loading alone, batches/s | of it | end to end, batches/s | of it | waiting for data | slower rounds |")
    print("|---|---|---|---|---|---|---|")
    ends = [line["seconds"] for line in first.lines if line["what"] == "train"]
    for worker in workers:
        load, train = (worker.median(what, "seconds") for what in ("load", "train"))
        share = statistics.median(line["waited"] / line["seconds"] for line in worker.lines if line["what"] == "train")
        own = [line["seconds"] for line in worker.lines if line["what"] == "train"]
        slower = sum(mine > its for mine, its in zip(own, ends))
        print(f"| {worker.name} | {1 / load:.2f} | {load / load_of_first['load']:.2f} x | {1 / train:.2f} | "
              f"{train / load_of_first['train']:.2f} x | {share:.0%} | " +
              (f"{slower} of {len(own)} |" if worker is not first else "|"))
    model = statistics.median(one.median("train", "seconds") - one.median("train", "waited") for one in workers)
    costs = {worker.name: worker.median("load", "processor") * 1e3 for worker in workers}
    print("\nprocessor time of a batch's loading, without processes of its own: " +
          ", ".join(f"{name} {cost:.0f} ms" for name, cost in costs.items()))
    print(f"\n\"of it\": how many times as long as {first.name}'s. The model alone takes {model * 1e3:.0f} ms a batch "
          f"(median); load of the machine at the end: {os.getloadavg()[0]:.1f}")


def of_edges(workers, firsts):
    """Loading alone by returned edge. The ratios are medians of those of the rounds."""
    rates = {worker.name: [line["batches"] * line["edges_per_batch"] / line["seconds"] / 1e6 for line in worker.lines
                           if line["what"] == "load"] for worker in workers}
    print("\n| loading alone, million edges/s | median | rounds | ratio to " + " | ratio to ".join(rates) +
          " | processor ms a batch, without its processes | original ids, bytes an edge"
          " | constructor to first batch, s |")
    print("|---|---|---|" + "---|" * (len(workers) + 3))
    for worker in workers:
        mine = rates[worker.name]
        ratios = [statistics.median(a / b for a, b in zip(mine, other)) for other in rates.values()]
        last = worker.lines[0]
        print(f"| {worker.name} | {statistics.median(mine):.2f} | {min(mine):.2f} to {max(mine):.2f} | " +
              " | ".join(f"{ratio:.2f}" for ratio in ratios) +
              f" | {worker.median('load', 'processor') * 1e3:.1f}"
              f" | {last['id_bytes'] / last['edges_per_batch']:.1f} | " +
              (f"{statistics.median(firsts[worker.name]):.3f} |" if firsts[worker.name] else "|"))


def main():
    results, rounds, batches, train = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "train"
    workers = [Worker(word) for word in sys.argv[5:]]
    try:
        for worker in workers:
            sys.stderr.write(f"{worker.name}: {worker.answer()}\n")
        with open(results, "w", encoding="utf-8") as out:
            for number in range(rounds):
                for what in ("load", "train") if train else ("load",):
                    for worker in workers if number % 2 == 0 else workers[::-1]:
                        line = worker.round(what, batches)
                        out.write(json.dumps(line) + "\n")
                        out.flush()
                sys.stderr.write(f"round {number + 1} of {rounds}\n")
        firsts = {}
        for worker in workers:
            worker.process.stdin.write("first 3\n")
            worker.process.stdin.flush()
            firsts[worker.name] = worker.answer()["seconds"]
        if train:
            table(workers)
        of_edges(workers, firsts)
    finally:
        for worker in workers:
            worker.close()


if __name__ == "__main__":
    main()
