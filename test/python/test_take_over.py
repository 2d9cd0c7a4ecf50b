"""Servers that are replaced while clients read and train (serve --take-over): no batch differs, no push is lost or
applied twice. If a successor fails, at any step, the running server goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import graphwire
import handover
import numpy as np
import pytest
from conftest import PROGRAM, TOP, Servers

ROWS = 64
TOOK_OVER = re.compile(r"took over from pid \d+: pause \d+ ms")


class Worker:
    """A thread that repeats a call; `turns` counts them."""

    def __init__(self, turn):
        self.turns, self.failure, self.stop = 0, None, False
        self.moved = threading.Condition()
        self.thread = threading.Thread(target=self.run, args=(turn,), daemon=True)
        self.thread.start()

    def run(self, turn):
        while not self.stop and not self.failure:
            try:
                turn()
            except BaseException as failure:  # the test reports it
                self.failure = failure
            with self.moved:
                self.turns += 1
                self.moved.notify_all()

    def advance(self, turns=2):
        """Waits for so many more turns."""
        with self.moved:
            until = self.turns + turns
            assert self.moved.wait_for(lambda: self.failure or self.turns >= until, 30)
        if self.failure:
            raise self.failure

    def end(self):
        self.stop = True
        self.thread.join(100)
        if self.failure:
            raise self.failure


def epoch(graph):
    seeds = np.arange(0, 4096, 7)
    loader = graphwire.NodeLoader(graph, seeds, [5, 3], batch_size=100, shuffle=True, seed=11, features=["feat"])
    digest = hashlib.sha256()
    for batch in loader:
        for part in (*batch.nodes.values(), batch.x, *(block.only.indices for block in batch.blocks)):
            digest.update(np.ascontiguousarray(part.numpy()))
    return digest.hexdigest()


@pytest.fixture
def servers_of(parts, tmp_path, monkeypatch):
    """Starts servers with a runtime folder of their own."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    begun = []

    def begin(*words, folder=parts):
        begun.append(Servers(folder, 2, tmp_path, *words))
        return begun[-1]
    yield begin
    for servers in begun:
        servers.close()


def one(kind):
    """The arguments by which a push of -1 counts."""
    return {"kind": kind, "lr": 1.0}


class Training:
    """Threads that push -1 to all rows of two tensors: SGD adds the pushes up in the rows, Adagrad in its state."""

    def __init__(self, graph, threads=2):
        self.tensors = {kind: graph.create_tensor(kind, (ROWS, 5)) for kind in ("sgd", "adagrad")}
        self.word = graph.create_tensor("word", (ROWS, 1))  # rows without a trailer
        self.workers = [Worker(self.push) for _ in range(threads)]

    def push(self):
        for kind, tensor in self.tensors.items():
            tensor.push(np.arange(ROWS), -np.ones((ROWS, 5), np.float32), **one(kind))
        self.word.push(np.arange(ROWS), -np.ones((ROWS, 1), np.float32), **one("sgd"))

    def advance(self):
        for worker in self.workers:
            worker.advance()

    def end(self):
        """Ends the threads: every push counts once."""
        for worker in self.workers:
            worker.end()
        pushes = sum(worker.turns for worker in self.workers)
        assert (self.tensors["sgd"][:].numpy() == pushes).all()
        assert (self.word[:].numpy() == pushes).all()
        assert (self.tensors["adagrad"].read_state(slice(None), kind="adagrad", array="sum").numpy() == pushes).all()


def free_port():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


def test_servers_are_replaced_under_trainers(parts, servers_of):
    """Clients over TCP and mapped ones read and train, and scrapers scrape, while each server is replaced at random
    moments. The soak (test/slow/soak/upgrade.sh) has more turns."""
    turns = int(os.environ.get("GRAPHWIRE_UPGRADES", "3"))
    epochs = int(os.environ.get("GRAPHWIRE_UPGRADE_EPOCHS", "1"))
    random = np.random.default_rng(turns)
    servers = servers_of()
    ports = [free_port() for _ in range(2)]
    for part in range(2):
        servers.replace(part, "--metrics", str(ports[part]))
    with graphwire.open(parts) as alone:
        expected = epoch(alone)
    graphs = [graphwire.open(parts, servers.addresses, transport=transport) for transport in ("tcp", "shm")]
    training = Training(graphs[0])
    mapped = graphs[1].create_tensor("mapped", (ROWS, 5))
    counted = scraped = 0

    def counts():
        """Each write is seen by the reads after it, whichever server has the rows."""
        nonlocal counted
        counted += 1
        mapped[:] = np.full((ROWS, 5), counted, np.float32)
        assert (mapped[:].numpy() == counted).all()

    def batches(graph):
        assert epoch(graph) == expected

    def scrape():
        nonlocal scraped
        for port in ports:
            # While a server is replaced, none may have the port.
            with contextlib.suppress(ConnectionError, urllib.error.URLError):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                    assert answer.status == 200 and b"graphwire_build_info" in answer.read()
                scraped += 1

    readers = [Worker(lambda graph=graph: batches(graph)) for graph in graphs]
    others = [Worker(counts), Worker(scrape)]
    found = []
    for turn in range(turns):
        for part in random.permutation(2):
            random.choice(training.workers + readers + others).advance(int(random.integers(1, 4)))
            log = servers.replace(part, "--threads", str(turn % 3 + 1), "--metrics", str(ports[part]))
            assert TOOK_OVER.search(log)
        training.advance()
        found.append([memories_of(process) for process in servers.processes])
    for reader in readers:
        reader.advance(max(1, epochs - reader.turns))
    for worker in readers + others:
        worker.end()
    training.end()
    for graph in graphs:
        graph.close()
    assert scraped
    assert found[1:] == found[1:2] * (turns - 1)  # memory mapped by the servers


def wait_for(process, status, pattern, log):
    assert process.wait(30) == status
    text = log.read_text()
    assert len(text.splitlines()) == 1 and re.search(pattern, text), text


def hand_over_socket(runtime):
    return str(next(Path(runtime, "graphwire").glob("shm-part-*-0")))


@pytest.fixture
def relayed(monkeypatch):
    """Starts the relay of test/support/handover.py for part 0."""
    started = []

    def start(victim, number):
        started.append(subprocess.Popen(
            [sys.executable, TOP / "test/support/handover.py", hand_over_socket(os.environ["XDG_RUNTIME_DIR"]),
             str(victim), str(number)], stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "ready\n"
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_successor_that_is_killed_at_any_step_changes_nothing(parts, servers_of, relayed):
    servers = servers_of()
    with graphwire.open(parts, servers.addresses, transport="shm") as graph:
        training = Training(graph, 1)
        training.advance()
        passed, number = [], 0
        while passed[-1:] != ["copied"]:  # "go" was the last one that could fail
            number += 1
            relay = relayed("new", number)
            successor, _ = servers.successor(0)
            passed = relay.communicate()[0].split()
            assert (successor.wait(30), len(passed)) == (-9, number - 1)
            training.advance()
            assert servers.processes[0].poll() is None
        servers.replace(0)
        training.advance()
        training.end()
    assert set(passed) == {"hello", "offer", "tensor", "ready", "state", "bytes", "copied"}


def test_a_server_that_is_killed_during_the_hand_over(parts, servers_of, relayed):
    """Until the successor has everything, it is as if the server had been killed alone. After that, nothing is lost."""
    servers = servers_of()
    passed, number = [], 0
    while passed[-1:] != ["copied"]:
        number += 1
        graph = graphwire.open(parts, servers.addresses, transport="tcp")
        tensor = graph.create_tensor("rows", (ROWS, 5))
        tensor[:] = np.full((ROWS, 5), number, np.float32)
        relay = relayed(servers.processes[0].pid, number)
        successor, log = servers.successor(0)
        passed = relay.communicate()[0].split()
        servers.processes[0].wait(30)
        if "bytes" in passed:  # the successor has everything
            servers.await_up(successor, log)
            assert "ended during the hand-over" in log.read_text()
            servers.processes[0] = successor
            assert (tensor[:].numpy() == number).all()
            tensor.push([1], [[-1.0] * 5], **one("sgd"))
            assert (tensor[1].numpy() == number + 1).all()
        else:
            wait_for(successor, 1, "closed the connection|no server of part", log)
            servers.start(0)
            with pytest.raises(graphwire.NotFoundError):
                tensor[:]
        graph.delete_tensor("rows")
        graph.close()


def memories_of(process):
    """How many mappings of memory files it has."""
    return len(re.findall("/memfd:", Path(f"/proc/{process.pid}/maps").read_text()))


def files_of(process):
    """Its descriptors and its mappings of memory files: what a hand-over could leave behind."""
    descriptors = sorted(re.sub(r"\d+", "N", os.readlink(path)) for path in Path(f"/proc/{process.pid}/fd").iterdir())
    return descriptors, memories_of(process)


def test_descriptors_and_memory_are_the_same_after_ten(parts, servers_of):
    servers = servers_of()
    with graphwire.open(parts, servers.addresses, transport="shm") as graph:
        tensor = graph.create_tensor("rows", (ROWS, 5))
        found = []
        for turn in range(10):
            tensor.push(np.arange(ROWS), -np.ones((ROWS, 5), np.float32), **one("adagrad"))
            tensor[:].numpy()
            servers.replace(0)
            assert (tensor.read_state(slice(None), kind="adagrad", array="sum").numpy() == turn + 1).all()
            found.append(files_of(servers.processes[0]))
        assert found[1:] == found[1:2] * 9


def test_a_kept_server_and_its_files(parts, servers_of):
    """The successor has the lock, the key and the names, and removes them when it ends."""
    servers = servers_of()
    folder = Path(os.environ["XDG_RUNTIME_DIR"], "graphwire")
    before = {path.name for path in folder.iterdir()}
    servers.replace(0)
    assert {path.name for path in folder.iterdir()} == before
    again = subprocess.run([PROGRAM, "serve", "--part-config", parts, "--part", "0", "--listen", "127.0.0.1:0"],
                           capture_output=True, text=True)
    assert again.returncode == 1 and f"pid {servers.processes[0].pid} at {servers.addresses[0]}" in again.stderr
    for process in servers.processes:
        process.terminate()
        assert process.wait(30) == 0
    assert list(folder.iterdir()) == []


def refused(servers, status, pattern, *words):
    successor, log = servers.successor(0, *words)
    wait_for(successor, status, pattern, log)
    assert servers.processes[0].poll() is None


@pytest.mark.parametrize("words", [["--on-disk", "feat"], ["--on-disk", "lists,feat"], ["--mutable", "feat"]])
def test_what_a_predecessor_must_have_in_common(servers_of, words):
    """Arrays that the running server has not loaded."""
    servers = servers_of(*words)
    servers.words = ()
    kind = "mutable" if "--mutable" in words else "on disk"
    refused(servers, 1, f"\".*\" is {kind} at the running server: give the same {words[0]}")
    servers.replace(0, *words)


def test_what_a_successor_must_have_in_common(parts, whole, servers_of, tmp_path):
    servers = servers_of()
    with socket.socket() as taken, graphwire.open(parts, servers.addresses, transport="shm") as graph:
        tensor = graph.create_tensor("rows", (ROWS, 5))
        tensor[:] = np.ones((ROWS, 5), np.float32)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused(servers, 1, "--take-over: the running server listens at .*give the same", "--listen", "127.0.0.1:1")
        refused(servers, 1, "listens at .*give the same", "--listen", "127.0.0.2:0")
        refused(servers, 1, "\"node/.*feat\" is not mutable at the running server", "--mutable", "feat")
        refused(servers, 1, "\"node/.*feat\" is not on disk at the running server", "--on-disk", "feat")
        refused(servers, 1, f"--metrics: .*{taken.getsockname()[1]}", "--metrics", str(taken.getsockname()[1]))
        refused(servers, 1, "no server of part 0 of .* that can hand over", "--part-config", str(whole))
        assert (tensor[:].numpy() == 1).all()
        # The parts' files were written again with other features: the memory is not that of the files.
        other = tmp_path / "other"
        subprocess.run([PROGRAM, "partition", whole, "--num-parts", "2", "--method", "random", "--seed", "5", "--out",
                        other], check=True, capture_output=True)
        refused(servers, 1, "no server of part 0|differs from that of the running server", "--part-config", str(other))
        servers.end(0)
        successor, log = servers.successor(0)
        wait_for(successor, 1, "no server of part 0 .* start without --take-over", log)
        servers.start(0)


def test_garbage_at_the_socket(parts, servers_of):
    servers = servers_of()
    path = hand_over_socket(os.environ["XDG_RUNTIME_DIR"])
    random = np.random.default_rng(3)
    hello = {"is": "hello", "version": 1, "graph_id": 5, "part": 0, "more": ["x"]}
    graph_id = int(Path(path).name.split("-")[2], 16)
    right = hello | {"graph_id": graph_id - (1 << 64) if graph_id >> 63 else graph_id}
    texts = [b"", b"x", random.bytes(100), handover.HEAD.pack(handover.MAGIC, 1, 1 << 60),
             handover.HEAD.pack(handover.MAGIC, 1, 5) + b"[1,2]", handover.HEAD.pack(handover.MAGIC, 1, 2) + b"{}"]
    before = None
    for words in [*texts, hello, hello | {"version": 2}, {"is": "ready"}, right, (right, {"is": "copied"}),
                  (right, {"is": "ready"}, {"is": "copied", "retire": [1, "x"]}),
                  (right, {"is": "ready"}, {"is": "copied", "retire": 5}, b"bytes")]:
        with handover.connect(path) as peer:
            try:  # the server may refuse what came before
                for word in words if isinstance(words, tuple) else (words,):
                    peer.sendall(word) if isinstance(word, bytes) else handover.send(peer, word)
                peer.shutdown(socket.SHUT_WR)
                while True:
                    message, fds = handover.receive(peer)
                    for fd in fds:
                        os.close(fd)
                    if message is None:
                        break
            except ConnectionError:
                pass
        with graphwire.open(parts, servers.addresses, transport="tcp") as graph:
            graph.in_degrees([1, 2])
        before = before or files_of(servers.processes[0])
    assert len(files_of(servers.processes[0])[0]) <= len(before[0]) + 1
    servers.replace(0)
