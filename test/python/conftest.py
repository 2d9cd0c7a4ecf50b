"""Graphs, servers and the report for the tests of the Python package. $GRAPHWIRE is the program
(build/release/graphwire). Each test prints a line "ok - …" or "not ok - …"."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import graphwire
import numpy as np
import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/support"))

from forks import limit_forks  # noqa: E402
from report import tell  # noqa: E402

PROGRAM = os.environ.get("GRAPHWIRE", str(TOP / "build/release/graphwire"))
UP = re.compile(r"^serving part .* at (\S+): ", re.MULTILINE)

limit_forks()


def pytest_runtest_logreport(report):
    tell(report, "python")


def pytest_collection_finish():
    """What the modules of all tests have made stays: collections in tests need not look at it."""
    gc.collect()
    gc.freeze()


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stopped(process):
    """Whether all of its threads are stopped."""
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return set(states) == {"T"}


class Servers:
    """One server for each part of a graph, on free ports of loopback. words: further arguments of `graphwire serve`."""

    def __init__(self, folder, parts, log_folder, *words):
        self.folder, self.words = folder, words
        self.processes, self.addresses = [None] * parts, ["127.0.0.1:0"] * parts
        self.logs = [Path(log_folder, f"server{part}.log") for part in range(parts)]
        for part in range(parts):
            self.start(part)

    def begin(self, part, log, *words):
        with open(log, "w") as out:
            return subprocess.Popen(
                [PROGRAM, "serve", "--part-config", str(self.folder), "--part", str(part), "--listen",
                 self.addresses[part], *self.words, *words], stdout=out, stderr=out)

    def successor(self, part, *words):
        """Starts a successor of a part's server: the process and its log."""
        log = self.logs[part].with_suffix(f".{time.monotonic_ns()}")
        return self.begin(part, log, "--take-over", *words), log

    def replace(self, part, *words):
        """Replaces a part's server by a successor; returns when that one serves and the other has ended."""
        process, log = self.successor(part, *words)
        self.await_up(process, log)
        before, self.processes[part] = self.processes[part], process
        assert before.wait(100) == 0
        return log.read_text()

    @staticmethod
    def await_up(process, log):
        while not (up := UP.search(log.read_text())):
            try:
                ended = process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the server ended with {ended}: {log.read_text()}")
        return up.group(1)

    def start(self, part):
        """Starts a part's server, at its former address if it had one; returns when it serves."""
        self.processes[part] = self.begin(part, self.logs[part])
        self.addresses[part] = self.await_up(self.processes[part], self.logs[part])

    def stop(self):
        """Suspends the servers until go_on(). A thread that runs when the signal comes may still answer."""
        for process in self.processes:
            process.send_signal(signal.SIGSTOP)
        for process in self.processes:
            while not stopped(process.pid):
                time.sleep(0.001)

    def go_on(self):
        for process in self.processes:
            process.send_signal(signal.SIGCONT)

    def end(self, part):
        self.processes[part].kill()
        self.processes[part].wait()

    def close(self):
        for part in range(len(self.processes)):
            self.end(part)


@pytest.fixture(scope="session", autouse=True)
def runtime_folder(tmp_path_factory):
    """Uses a runtime folder with the keys and locks of these servers only."""
    folder = tmp_path_factory.mktemp("runtime")
    folder.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(folder)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """An R-MAT graph of one part: 4,096 nodes, 65,536 edges, 16 features, 5 classes, masks."""
    folder = tmp_path_factory.mktemp("graphs") / "whole"
    run("generate", "rmat", "--scale", 12, "--features", 16, "--labels", 5, "--train-share", 0.5, "--out", folder,
        "--quiet")
    return folder


@pytest.fixture(scope="session")
def parts(whole):
    folder = whole.parent / "parts"
    run("partition", whole, "--num-parts", 2, "--method", "random", "--out", folder)
    return folder


@pytest.fixture(scope="session")
def servers(parts, tmp_path_factory):
    started = Servers(parts, 2, tmp_path_factory.mktemp("servers"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def hetero2(hetero, tmp_path_factory):
    """Servers of the heterogeneous graph in two parts."""
    folder = tmp_path_factory.mktemp("hetero2")
    run("partition", hetero, "--num-parts", 2, "--method", "random", "--out", folder / "parts")
    started = Servers(folder / "parts", 2, folder)
    yield started
    started.close()


@pytest.fixture
def first_of_two(monkeypatch):
    """Pretends that torch.distributed has two ranks and this process is the first."""
    import torch.distributed as dist

    for name, value in (("is_initialized", True), ("get_world_size", 2), ("get_rank", 0)):
        monkeypatch.setattr(dist, name, lambda value=value: value)


@pytest.fixture
def made_up_gpu(monkeypatch):
    """Replaces torch's GPU functions on a machine without GPU: batches stay in memory, but are still loaded one
    ahead."""
    import torch

    class Stream:
        def __init__(self, device=None):
            pass

        def wait_stream(self, other):
            pass

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(graphwire.Batch, "pinned", lambda batch: batch)
    monkeypatch.setattr(graphwire.Batch, "to", lambda batch, device, non_blocking=False: batch)
    monkeypatch.setattr(graphwire.Batch, "record_stream", lambda batch, stream: None)


@pytest.fixture
def own_servers(parts, tmp_path, monkeypatch):
    """Servers of one test, which may stop and kill them. They have their own runtime folder, because a host serves a
    part once."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    started = Servers(parts, 2, tmp_path)
    yield started
    started.go_on()
    started.close()


def arrays_of_hetero():
    """300 papers and 100 authors: papers cite papers, authors write papers, and the reverse of both."""
    random = np.random.default_rng(3)
    return {
        "cites": (random.integers(0, 300, 2000), random.integers(0, 300, 2000)),
        "writes": (random.integers(0, 100, 900), random.integers(0, 300, 900)),
        "feat": random.standard_normal((300, 8)).astype(np.float32),
        "age": random.standard_normal((100, 3)).astype(np.float32),
        "year": random.integers(1990, 2020, 300),
        "strength": random.random(2000).astype(np.float32),
        "label": random.integers(0, 4, 300),
        **{f"{part}_mask": np.arange(300) % 3 == i for i, part in enumerate(("train", "val", "test"))}}


@pytest.fixture(scope="session")
def hetero(tmp_path_factory):
    """The heterogeneous graph's folder, in one part, with out-edges; ids are unchanged."""
    folder = tmp_path_factory.mktemp("hetero")
    arrays = arrays_of_hetero()
    for name in ("cites", "writes"):
        np.save(folder / f"{name}.npy", np.stack(arrays[name], 1))
        del arrays[name]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    of_papers = [f"paper:{name}={folder}/{name}.npy" for name in arrays if name not in ("age", "strength")]
    run("import", "--edges", f"paper:cites:paper={folder}/cites.npy", "--edges",
        f"author:writes:paper={folder}/writes.npy", "--reverse", "--transpose", "--num-nodes", "paper=300",
        "--num-nodes", "author=100",
        "--node-feature", f"author:age={folder}/age.npy",
        *[word for feature in of_papers for word in ("--node-feature", feature)],
        "--edge-feature", f"paper:cites:paper:strength={folder}/strength.npy", "--out", folder / "graph", "--quiet")
    return folder / "graph"


@pytest.fixture(scope="module")
def graph(hetero):
    """The heterogeneous graph, opened from its folder."""
    with graphwire.open(hetero) as opened:
        yield opened


@pytest.fixture(scope="module")
def rmat(parts):
    """The R-MAT graph in two parts, opened from their folder."""
    with graphwire.open(parts) as opened:
        yield opened
