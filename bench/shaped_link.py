#!/usr/bin/env python3
"""Mini-batches between two hosts over a link of a given rate: batches/s, compared with what the bytes allow.

    sudo build/python/venv/bin/python bench/shaped_link.py --rates 1,10 --scale 17

Two network namespaces of this machine are the hosts. A veth pair joins them, with a token bucket filter (tbf) at both
ends. For each rate, each type of rows and each means this program prints, from one run:

    raw        bytes/s of one plain TCP stream over the same link, before and after the mini-batches: what it carries
    batches/s  of a NodeLoader of the trainers' host, whose batches have float32 rows whatever is stored
    MB/batch   bytes that the trainers' host received for a batch, counted by its interface; and of them the rows
    of bytes   batches/s as a share of raw / (bytes of a batch): 1.00 means that the link is always full
    cpu        processors that the servers and the trainer kept busy meanwhile
    busy       of them and all other processes: processors of this machine that were not idle
    bound by   the link, if batches/s are at least 0.95 of what it allows; else the processors, if none was idle

Each figure is the median of --rounds rounds, in which all cases take turns. The rate "none" is the veth pair without a
filter, which both hosts' processors carry.

--parts 1: the only server is on the other host, and every byte crosses the link. --parts 2: each host has a server, and
the trainer is on the first host, whose part it maps; seeds are of all parts. Means, with --parts 2:
    lists      the first host's server holds the lists of both parts (serve --lists all)
    ahead=W    the loader fetches each row once for its next W batches, if this version has lookahead=
    replicas   the first host's part has replicas of the other's rows (graphwire replicate), if this version has them

Needs root, iproute2, and graphwire installed in this Python.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import inspect
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HOSTS = [f"gwshape{os.getpid()}h{host}" for host in (0, 1)]
ADDRESSES = ["10.79.0.1", "10.79.0.2"]
LINK = f"gws{os.getpid()}"[:12]
PROGRAM = os.environ.get("GRAPHWIRE", "graphwire")
CLONE_NEWNET = 0x40000000
RAW_S = 1.5
PORT = 31650


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def hosts() -> Iterator[None]:
    """Both namespaces, joined by a veth pair."""
    try:
        for host in HOSTS:
            run("ip", "netns", "add", host)
        run("ip", "link", "add", f"{LINK}a", "netns", HOSTS[0], "type", "veth", "peer", "name", f"{LINK}b", "netns",
            HOSTS[1])
        for host, end, address in zip(HOSTS, "ab", ADDRESSES):
            run("ip", "-n", host, "addr", "add", f"{address}/24", "dev", f"{LINK}{end}")
            run("ip", "-n", host, "link", "set", "lo", "up")
            run("ip", "-n", host, "link", "set", f"{LINK}{end}", "up")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


def shape(gbit: float | None) -> None:
    """Gives the link a rate; None: no limit."""
    for host, end in zip(HOSTS, "ab"):
        subprocess.run(["tc", "-n", host, "qdisc", "del", "dev", f"{LINK}{end}", "root"], check=False,
                       capture_output=True)
        if gbit:  # a burst of 4 ms: a busy machine may not run the filter for so long, and unused tokens are lost
            run("tc", "-n", host, "qdisc", "add", "dev", f"{LINK}{end}", "root", "tbf", "rate", f"{gbit}gbit",
                "burst", str(int(gbit * 1e9 / 8 / 250)), "latency", "20ms")


def enter(host: str) -> None:
    """The calling thread's network becomes that of the host."""
    with open(f"/run/netns/{host}", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {host}")


class Counter:
    """Reads the interface of the trainers' host, by a thread that lives in its network."""

    def __init__(self) -> None:
        self._ready, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._stay, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _stay(self) -> None:
        enter(HOSTS[0])
        self._file = f"/proc/self/task/{threading.get_native_id()}/net/dev"
        self._ready.set()
        self._end.wait()

    def received(self) -> int:
        """Returns the bytes that the host has received, headers included."""
        for line in Path(self._file).read_text().splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == f"{LINK}a":
                return int(counts.split()[0])
        raise RuntimeError(f"{self._file} has no {LINK}a")

    def close(self) -> None:
        """Leaves the network, which could not end before."""
        self._end.set()
        self._thread.join()


def raw_rate(counter: Counter) -> float:
    """Bytes/s that the trainers' host receives from one TCP stream of the other host, headers included."""
    listener: list[socket.socket] = []
    ready = threading.Event()

    def send() -> None:
        enter(HOSTS[1])
        with socket.create_server((ADDRESSES[1], PORT - 1)) as server:
            listener.append(server)
            ready.set()
            connection = server.accept()[0]
            block = bytes(1 << 20)
            with connection, contextlib.suppress(OSError):
                while True:
                    connection.sendall(block)

    def take() -> None:
        enter(HOSTS[0])
        buffer = bytearray(1 << 20)
        with socket.create_connection((ADDRESSES[1], PORT - 1)) as connection:
            warm = time.monotonic() + RAW_S / 3
            while time.monotonic() < warm:
                connection.recv_into(buffer)
            began, before = time.monotonic(), counter.received()
            while time.monotonic() < began + RAW_S:
                connection.recv_into(buffer)
            rates.append((counter.received() - before) / (time.monotonic() - began))

    rates: list[float] = []
    sender = threading.Thread(target=send)
    sender.start()
    ready.wait()
    taker = threading.Thread(target=take)
    taker.start()
    taker.join()
    sender.join()
    return rates[0]


def busy_seconds() -> float:
    """Processor seconds of this machine so far in which it was not idle."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def cpu_of(pids: Sequence[int]) -> float:
    """Processor seconds of processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def servers(parts: Path, count: int, lists: bool) -> Iterator[list[subprocess.Popen]]:
    """A server for each part: of one part on the other host; of two, one on each host."""
    key = parts / "job.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    started = []
    try:
        for part in range(count):
            host = part if count == 2 else 1
            words = ["ip", "netns", "exec", HOSTS[host], PROGRAM, "serve", "--part-config", str(parts), "--part",
                     str(part), "--listen", f"{ADDRESSES[host]}:{PORT}", "--key-file", str(key)]
            # Both hosts are this machine, and share its runtime folder; only the trainer's own host maps memory.
            words += ["--transport", "tcp"] if host == 1 else ["--transport", "shm"]
            words += ["--lists", "all"] if lists and host == 0 else []
            started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for server in started:
            assert server.stdout and server.stderr
            if not server.stdout.readline().startswith("serving part"):
                raise RuntimeError(server.stderr.read())
        yield started
    finally:
        for server in started:
            server.terminate()
            server.wait()


def train(options: argparse.Namespace) -> None:
    """The trainer, in a process of its own on the first host: prints its figures as JSON."""
    import graphwire

    more = {"lookahead": options.ahead} if options.ahead else {}
    graph = graphwire.open(servers=options.servers, key_file=options.key, threads=options.threads, numpy=True)
    loader = graphwire.NodeLoader(graph, None, fanouts=options.fanouts, features=["feat"],
                                  batch_size=options.batch_size, shuffle=True, seed=1, depth=options.depth, world=1,
                                  rank=0, **more)

    def row_bytes() -> int:
        return sum(part["read_bytes"] for part in graph.stats()["parts"] if part["transport"] == "tcp")

    batches = iter(loader)
    for _ in range(options.depth + 1):  # the link is in use, and every connection open
        next(batches)
    print("warm", flush=True)
    sys.stdin.readline()
    began, rows, used = time.monotonic(), row_bytes(), time.process_time()
    done = 0
    while done < options.batches or time.monotonic() < began + options.seconds:
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            continue
        done += 1
    seconds = time.monotonic() - began
    print(json.dumps({"batches": done, "seconds": seconds, "rows": (row_bytes() - rows) / done,
                      "cpu": (time.process_time() - used) / seconds,
                      "held_hops": graph.stats().get("held_hops", 0)}), flush=True)
    sys.stdin.readline()


def measure(counter: Counter, options: argparse.Namespace, parts: Path, means: str) -> dict:
    """One case over the link as it is."""
    count, ahead = options.parts, int(means.partition("ahead=")[2].partition("+")[0] or 0)
    with servers(parts, count, "lists" in means) as started:
        addresses = ",".join(f"{ADDRESSES[part if count == 2 else 1]}:{PORT}" for part in range(count))
        words = ["ip", "netns", "exec", HOSTS[0], sys.executable, __file__, "--train", "--servers", addresses, "--key",
                 str(parts / "job.key"), "--ahead", str(ahead), "--fanouts", ",".join(map(str, options.fanouts)),
                 *(f"--{name}={getattr(options, name)}" for name in ("threads", "depth", "batches", "seconds"))]
        words.append(f"--batch-size={options.batch_size}")
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as trainer:
            assert trainer.stdin and trainer.stdout
            if trainer.stdout.readline() != "warm\n":
                raise RuntimeError(f"the trainer ended with status {trainer.wait()}")
            pids = [server.pid for server in started]
            before, used, busy = counter.received(), cpu_of(pids), busy_seconds()
            trainer.stdin.write("go\n")
            trainer.stdin.flush()
            found = json.loads(trainer.stdout.readline())
            found["bytes"] = (counter.received() - before) / found["batches"]
            found["cpu"] += (cpu_of(pids) - used) / found["seconds"]
            found["busy"] = (busy_seconds() - busy) / found["seconds"]
            trainer.stdin.write("end\n")
            trainer.stdin.flush()
    found["rate"] = found["batches"] / found["seconds"]
    return found


def graphs(folder: Path, options: argparse.Namespace) -> dict[str, Path]:
    """The same graph with each type of rows."""
    run(PROGRAM, "generate", "rmat", f"--scale={options.scale}", f"--features={options.columns}", "--labels=4",
        f"--out={folder}/graph", "--quiet")
    found = {}
    for dtype in options.dtypes:
        found[dtype] = folder / dtype
        store = [] if dtype == "float32" else ["--store", f"feat={dtype}"]
        run(PROGRAM, "partition", f"{folder}/graph", f"--num-parts={options.parts}", "--method=random",
            f"--out={found[dtype]}", *store)
    shutil.rmtree(folder / "graph")
    return found


def replicated(parts: Path, options: argparse.Namespace) -> Path:
    """The parts with replicas of a twentieth of the rows."""
    found = parts.with_name(parts.name + "-replicas")
    if not found.exists():
        shutil.copytree(parts, found)
        run(PROGRAM, "replicate", str(found), "--rows=5%", f"--fanouts={','.join(map(str, options.fanouts))}",
            f"--batch-size={options.batch_size}")
    return found


def chosen_means(options: argparse.Namespace) -> list[str]:
    """The means that this version has, of those that are wanted."""
    import graphwire

    commands = subprocess.run([PROGRAM, "--help"], check=False, capture_output=True, text=True).stdout
    lookahead = "lookahead" in inspect.signature(graphwire.NodeLoader).parameters
    found = []
    for means in options.means.split(","):
        if ("ahead=" in means and not lookahead) or ("replicas" in means and "replicate" not in commands):
            print(f"(this version has no {means})", file=sys.stderr)
        elif means != "none" and options.parts == 1 and "ahead" not in means:
            print(f"({means} needs --parts 2)", file=sys.stderr)
        else:
            found.append(means)
    return found


Case = tuple["float | None", str, str]  # rate, means, dtype


def rounds(counter: Counter, options: argparse.Namespace, folder: Path) -> dict[Case, list[dict]]:
    """The figures of each case, in each round."""
    made, means_of_all = graphs(folder, options), chosen_means(options)
    found: dict[Case, list[dict]] = {}
    for _ in range(options.rounds):
        for rate in [None, *options.rates]:
            shape(rate)
            for means in means_of_all:
                for dtype, parts in made.items():
                    used = replicated(parts, options) if "replicas" in means else parts
                    before = raw_rate(counter)
                    one = measure(counter, options, used, means)
                    one["raw"] = (before + raw_rate(counter)) / 2
                    one["share"] = one["rate"] * one["bytes"] / one["raw"]
                    found.setdefault((rate, means, dtype), []).append(one)
                    line = {"gbit": rate, "means": means, "stored": dtype, **one}
                    print(json.dumps(line), file=sys.stderr, flush=True)
    return found


def compare(counter: Counter, options: argparse.Namespace, folder: Path) -> None:
    """Prints the table."""
    found = rounds(counter, options, folder)
    names = ["Gbit/s", "raw MB/s", "rows", "means", "batches/s", "MB/batch", "of them rows", "of bytes", "cpu", "busy"]
    print(f"| {' | '.join(names)} | bound by |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for (rate, means, dtype), all_rounds in found.items():
        one = {name: statistics.median(each[name] for each in all_rounds) for name in all_rounds[0]}
        full = one["busy"] > 0.9 * (os.cpu_count() or 1)
        bound = "link" if one["share"] >= 0.95 else "processors" if full else "neither"
        print(f"| {rate or 'none'} | {one['raw'] / 1e6:.0f} | {dtype} | {means} | {one['rate']:.1f} | "
              f"{one['bytes'] / 1e6:.2f} | {one['rows'] / 1e6:.2f} | {one['share']:.2f} | {one['cpu']:.2f} | "
              f"{one['busy']:.2f} | {bound} |")


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--rates", type=lambda text: [float(word) for word in text.split(",")], default=[1.0, 10.0],
                        help="Gbit/s of the link")
    parser.add_argument("--parts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=["float32", "float16", "int8_row"])
    parser.add_argument("--means", default="none", help="none, lists, ahead=W, replicas; lists+ahead=8: both")
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--scale", type=int, default=17, help="an R-MAT graph of 2^N nodes, 16 edges each")
    parser.add_argument("--fanouts", type=numbers, default=[15, 10, 5])
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=10, help="at least so many of each case")
    parser.add_argument("--seconds", type=float, default=5.0, help="and for at least so long")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    for name in ("--servers", "--key"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--ahead", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the namespaces end too
    with tempfile.TemporaryDirectory(prefix="graphwire-shaped-") as folder, hosts():
        counter = Counter()
        try:
            compare(counter, options, Path(folder))
        finally:
            counter.close()


if __name__ == "__main__":
    main()
