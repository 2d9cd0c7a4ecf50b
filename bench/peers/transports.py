"""Compares Graphwire's transports with UCX and libfabric (bench/peers/run transports).

    transports.py FOLDER ROUNDS [--table BYTES]

FOLDER has the programs graphwire, public, ucx and fabric (bench/peers/transports). In each round the peers run in turn,
the server on processor 1 and the client on processor 0, over TCP with both sides polling, over TCP with both sides
asleep, and over shared memory. Each program checks its bytes, and a wrong byte ends the comparison. The medians of the
rounds are printed with the ratio to the best peer: above 1, Graphwire is better. All figures go to
FOLDER/results-transports.jsonl.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess

PORT = 31990
CASES = ("reads", "gathers", "setup", "memory")
SECONDS = 300  # for one case
PUBLIC = "Graphwire public"  # gw_gather over `graphwire serve`, rows of 512 B
WAYS = {
    "tcp, polling": (["--poll"], ["epoll", "io_uring", "auto"]),
    "tcp, asleep": ([], ["epoll", "io_uring", "auto"]),
    "shm": (["--shm", "--poll"], ["auto"]),
}
PEERS = (("ucx", "UCX"), ("fabric", "libfabric"))


def runs_of(way: str) -> list[tuple[str, str, list[str]]]:
    """Returns (name, program, options) of every run."""
    options, drivers = WAYS[way]
    runs = [(f"Graphwire {driver}", "graphwire", [*options, "--driver", driver]) for driver in drivers]
    runs.append((PUBLIC, "public", [*options, "--row", "512"]))
    for program, name in PEERS:
        runs += [(f"{name} get", program, options), (f"{name} packed", program, [*options, "--packed"])]
    return runs


def run(folder: pathlib.Path, program: str, options: list[str]) -> list[dict]:
    """Runs all cases of one peer, and returns its figures."""
    path = str(folder / program)
    found: list[dict] = []
    words = ["taskset", "-c", "1", path, "server", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            # UCX prints its warnings to stdout.
            if server.stdout is None or not any(line.startswith(("ready", "serving part")) for line in server.stdout):
                raise SystemExit(f"transports: {path} server {' '.join(options)} ended")
            for case in CASES[:2] if program == "public" else CASES:
                words = ["taskset", "-c", "0", path, "client", *options, "--server", str(server.pid), case]
                done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
                if done.returncode != 0:
                    raise SystemExit(f"transports: {' '.join(words)}: status {done.returncode}")
                found += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        finally:
            server.kill()
    return found


def measure(folder: pathlib.Path, rounds: int, table: int) -> dict:
    """Runs the rounds. Returns values by (way, case, size, unit) and peer."""
    values: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(folder / "results-transports.jsonl", "w", encoding="utf-8") as results:
        for number in range(rounds):
            for way in WAYS:
                for name, program, options in runs_of(way):
                    common = ["--port", str(PORT), "--table", str(table)]
                    for figure in run(folder, program, [*common, *options]):
                        key = (way, figure["case"], figure["size"], figure["unit"])
                        values[key][name].append(figure["value"])
                        line = {"round": number + 1, "way": way, "peer": name, **figure}
                        print(json.dumps(line), file=results, flush=True)
    return values


def print_table(values: dict) -> None:
    """Prints a table for each way. Times and memory are better if they are smaller."""
    for way in WAYS:
        rows = {key: peers for key, peers in values.items() if key[0] == way}
        names = [name for name, _, _ in runs_of(way)]
        print(f"\n{way}\n\n| | {' | '.join(names)} | auto, public to the best peer |")
        print("|---|" + "---|" * (len(names) + 1))
        for (_, case, size, unit), peers in rows.items():
            medians = {name: statistics.median(found) for name, found in peers.items()}
            smaller = unit in ("us", "KiB")
            best = (min if smaller else max)(value for name, value in medians.items() if "Graphwire" not in name)
            own = [medians[name] for name in ("Graphwire auto", PUBLIC) if name in medians]
            # A mapped table's pages count for each process in part: the memory of a server can shrink.
            ratios = ", ".join(f"{best / value if smaller else value / best:.2f}" for value in own) if best > 0 else ""
            cells = " | ".join(f"{medians[name]:.4g}" if name in medians else "" for name in names)
            print(f"| {case.replace('_', ' ')}{f' {size} B' if size else ''}, {unit} | {cells} | {ratios} |")


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--table", type=int, default=1 << 30)
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("transports: two processors are needed")
    print_table(measure(options.folder, options.rounds, options.table))


if __name__ == "__main__":
    main()
