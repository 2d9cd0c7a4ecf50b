"""gwke_train --num_proc: several clients on this machine, and a server that ends with them.

If a client fails, or a server ends, this process ends all others. The others also end if this process is killed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.program import ProgramError, program
from graphwire._base.scratch import Scratch
from graphwire.kge.data import Dataset
from graphwire.kge.store import build, run_program

_SERVING = re.compile(r"^serving part .* at (\S+): ", re.MULTILINE)
_POLL_SECONDS = 0.05
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Runs in a new process: the kernel sends it SIGTERM when its parent ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Processes:
    """A context of child processes; leaving the context ends all of them."""

    def __init__(self) -> None:
        self._all: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Processes:
        return self

    def start(self, name: str, words: Sequence[str | Path], **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # type: ignore[call-overload]
            [str(word) for word in words], preexec_fn=_end_with_parent, **options)
        self._all.append((name, process))
        return process

    def wait(self) -> None:
        """Returns when every client has ended with status 0. Raises ProgramError when a client fails or a server
        ends."""
        while True:
            running = 0
            for name, process in self._all:
                status = process.poll()
                if status is None:
                    running += name.startswith("client")
                elif status or not name.startswith("client"):
                    raise ProgramError(f"{name} ended with status {status}; the others are ended too")
            if not running:
                return
            time.sleep(_POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        for _name, process in self._all:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _name, process in self._all:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def serve(processes: Processes, graph: Path, part: int, log: Path) -> str:
    """Starts a part's server on a free loopback port; returns its address when it serves."""
    with open(log, "wb") as out:
        server = processes.start(f"server of part {part}", [
            program(), "serve", "--part-config", graph, "--part", str(part), "--listen", "127.0.0.1:0"],
            stdout=out, stderr=out)
    while not (up := _SERVING.search(log.read_text(errors="replace"))):
        if server.poll() is not None:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise ProgramError(f"graphwire serve: {lines[-1] if lines else 'ended'}")
        time.sleep(_POLL_SECONDS)
    return up.group(1)


def clients(processes: Processes, world: int, words: Sequence[str], graph: Path, servers: Sequence[str]) -> None:
    """Starts the clients of a job, with the environment that deploy/launch.py sets."""
    addresses = graph.parent / "servers.txt"
    addresses.write_text("".join(address.replace(":", " ") + "\n" for address in servers))
    shared = {**os.environ, "GRAPHWIRE_PART_CONFIG": str(graph), "GRAPHWIRE_IP_CONFIG": str(addresses),
              "GRAPHWIRE_JOB": f"kge-{uuid.uuid4().hex}", "WORLD_SIZE": str(world)}
    for rank in range(world):
        processes.start(f"client {rank}", [sys.executable, "-m", "graphwire.kge", "client", *words],
                        env={**shared, "RANK": str(rank)})


def train_local(args: argparse.Namespace, dataset: Dataset, folder: Path, words: Sequence[str],
                num_parts: int = 1) -> None:
    """Trains with --num_proc clients. num_parts: the number of parts; each part has a server."""
    with Scratch(prefix="gwke") as top, Processes() as processes:
        build(dataset, top / "graph")
        graph = top / "graph"
        if num_parts > 1:
            run_program("partition", graph, "--num-parts", str(num_parts), "--out", top / "parts")
            graph = top / "parts"
        servers = [serve(processes, graph, part, top / f"server{part}.log") for part in range(num_parts)]
        clients(processes, args.num_proc, ["train", str(folder), str(dataset.num_relations), *words], graph, servers)
        processes.wait()
