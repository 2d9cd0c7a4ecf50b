"""What a loop over a loader does after an error: a batch that a server has failed comes again, with the same bytes and
in its place; a batch that has failed otherwise is skipped, as torch's DataLoader does; StopIteration comes at the end.
"""

from __future__ import annotations

import _thread
import contextlib
import linecache
import os
import random
import signal
import sys
import threading
from itertools import islice

import graphwire
import graphwire._train.loader
import graphwire._train.loops
import pytest
import torch
from graphwire._base import native
from graphwire._train.loops import END, Loop

SEEDS, BATCH = 500, 50
STEPS = SEEDS // BATCH


def loaders_of(graph):
    return {
        "nodes": graphwire.NodeLoader(graph, range(SEEDS), [4, 3], features="feat", labels="label", batch_size=BATCH,
                                      shuffle=True, seed=3, depth=2),
        "edges": graphwire.EdgeLoader(graph, range(SEEDS), [4, 3], features="feat", batch_size=BATCH, shuffle=True,
                                      seed=3, depth=3),
        "nodes to a GPU": graphwire.NodeLoader(graph, range(SEEDS), [4, 3], batch_size=BATCH, depth=1, device="cuda")}


@pytest.mark.parametrize("how", ["lost", "silent"])
def test_a_server_that_returns_costs_no_batch(parts, own_servers, rmat, made_up_gpu, how):
    alone = {name: [batch.digest() for batch in loader] for name, loader in loaders_of(rmat).items()}
    errors, graph = 0, None
    while graph is None:  # on a busy machine a connection may take longer than this test's deadlines
        with contextlib.suppress(graphwire.PeerError, graphwire.DeadlineError):
            graph = graphwire.open(parts, own_servers.addresses, transport="tcp", timeout=0.3, reconnect=0.01)
    with graph:
        for name, loader in loaders_of(graph).items():
            for at in (0, 4, 8):
                loader.set_epoch(0)
                loop, found, said = iter(loader), [], []
                while True:
                    if len(found) == at and not said:
                        own_servers.end(1) if how == "lost" else own_servers.stop()
                        said.append(None)
                    try:
                        found.append(next(loop).digest())
                    except StopIteration:
                        break
                    except (graphwire.PeerError, graphwire.DeadlineError) as error:
                        assert loader.state_dict()["step"] == len(found) or not found
                        if len(said) == 1:
                            own_servers.start(1) if how == "lost" else own_servers.go_on()
                        said.append(error)
                if len(said) == 1:  # all further batches were there already
                    assert at == 8
                    own_servers.start(1) if how == "lost" else own_servers.go_on()
                assert found == alone[name], (name, at, said)
                assert next(loop, None) is None
                errors += len(said) - 1
    assert errors > 4


class Of(Loop):
    """A loop over numbers, whose calls end as `ends` says: None, or an exception."""

    def __init__(self, count, ends):
        super().__init__()
        self.count, self.at, self.ends, self.handed = count, 0, list(ends), 0

    def _make(self):
        if self.at == self.count:
            return END
        end = self.ends.pop(0) if self.ends else None
        if end is not None:
            raise end
        return self.at

    def _skip(self):
        self.at += 1

    def _took(self):
        self.at, self.handed = self.at + 1, self.handed + 1


KEPT = [lambda: graphwire.PeerError("GW_PEER_LOST", "lost"), lambda: graphwire.DeadlineError("GW_DEADLINE", "late"),
        KeyboardInterrupt, SystemExit]
SKIPPED = [lambda: RuntimeError("bad"), lambda: ValueError("bad"), lambda: graphwire.InvalidError("GW_INVALID", "bad"),
           lambda: graphwire.ResourceError("GW_LIMIT", "bad"), StopIteration, MemoryError]


def test_the_rule():
    draw = random.Random(7)
    for _ in range(200):
        count = draw.randint(0, 8)
        ends = [draw.choice(KEPT + SKIPPED)() if draw.random() < 0.4 else None for _ in range(20)]
        loop, expected, at, left = Of(count, ends), [], 0, list(ends)
        while at < count:
            end = left.pop(0) if left else None
            kept = end is not None and not isinstance(end, tuple(type(make()) for make in SKIPPED[:4]) + (
                StopIteration, MemoryError))
            expected.append(at if end is None else type(end))
            at += not kept
        found = []
        while True:
            try:
                found.append(next(loop))
            except StopIteration:
                break
            except BaseException as error:
                found.append(StopIteration if isinstance(error.__cause__, StopIteration) else type(error))
        assert found == expected
        assert next(loop, None) is None


def test_one_batch_at_a_time():
    """Threads that share a loop get each batch once; a loop that is asked while it makes a batch says so."""
    shared, found = Of(3000, []), [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda got=got: got.extend(shared)) for got in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one for some in found for one in some) == list(range(3000))

    class Asks(Of):
        def _make(self):
            return next(self)

    with pytest.raises(ValueError, match="already makes a batch"):
        next(Asks(2, []))

    class Forks(Of):
        """Another thread holds the loop at the moment of the fork."""

        def _make(self):
            held.release()
            go_on.acquire()
            return super()._make()

    held, go_on = threading.Semaphore(0), threading.Semaphore(0)
    loop = Forks(1, [])
    other = threading.Thread(target=next, args=(loop,))
    other.start()
    held.acquire()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        go_on.release()
        os._exit(next(loop))
    go_on.release()
    other.join()
    assert os.waitpid(pid, 0)[1] == 0


def test_interrupts_lose_no_batch(rmat):
    """SIGINT at any moment of a loop: all batches come, in order."""
    alone = [batch.digest() for batch in loaders_of(rmat)["nodes"]]
    draw, interrupts = random.Random(5), 0
    for _ in range(40):
        loader = loaders_of(rmat)["nodes"]
        loop, found = iter(loader), []
        while len(found) < STEPS:
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.random() * 0.002 + 1e-6)
                batch = next(loop)
                signal.setitimer(signal.ITIMER_REAL, 0)
                found.append(batch.digest())
            except InterruptedHere:
                interrupts += 1
                if loader.state_dict()["step"] > len(found):  # it came between the return and the assignment
                    found.append(alone[len(found)])
        assert found == alone
        with pytest.raises(StopIteration):
            next(loop)
    assert interrupts


class InterruptedHere(BaseException):
    """Not of KeyboardInterrupt, which ends all tests."""


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_an_interrupt_at_any_line_of_the_first_batch(rmat, kind):
    """Also where the loop takes the loader's stream. Lines of "with" do not count, nor does the function that locks: a
    signal's handler does not run between a block and its end."""
    alone, number, raised = [batch.digest() for batch in islice(loaders_of(rmat)[kind], 2)], 0, True
    ours = {module.__file__ for module in (graphwire._train.loader, graphwire._train.loops)}
    while raised:
        number, left, raised = number + 1, [number + 1], False

        def trace(frame, event, _, left=left):
            place = frame.f_code.co_filename, frame.f_lineno
            locks = frame.f_code.co_name == "__next__" or linecache.getline(*place).lstrip().startswith("with ")
            if place[0] in ours and event != "exception" and not locks:
                left[0] -= 1
                if not left[0]:
                    raise InterruptedHere
            return trace

        loader = loaders_of(rmat)[kind]
        loop, found = iter(loader), []
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            found.append(next(loop).digest())
        except InterruptedHere:
            raised = True
        finally:
            sys.settrace(before)
        if raised and loader.state_dict()["step"]:  # it came between the return and the assignment
            found.append(alone[0])
        assert found + [batch.digest() for batch in islice(loop, 2 - len(found))] == alone, number
    assert number > 30


@pytest.fixture(autouse=True)
def alarms():
    def interrupt(*_):
        raise InterruptedHere

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_errors_of_workers_keep_their_type(rmat):
    """torch makes an error of a worker process anew, from a text."""
    for kind in (graphwire.PeerError, graphwire.DeadlineError, graphwire.ResourceError, graphwire.InvalidError,
                 graphwire.NotFoundError, graphwire.OutOfRangeError, graphwire.GraphwireError):
        def fails(ids, kind=kind):
            raise kind("GW_PEER_LOST", "server 3 is lost")

        loader = torch.utils.data.DataLoader(range(4), num_workers=1, collate_fn=fails)
        with pytest.raises(kind, match="server 3 is lost") as caught:
            next(iter(loader))
        assert caught.value.status.startswith("GW_")
        caught.value.__traceback__ = None  # refers to itself in torch: garbage collection would wait 5 s for the worker
        assert isinstance(kind("only a text"), kind)


# --- Threads that get no memory. ---


def no_thread(function, arguments=()):
    """As a thread that gets no memory at its start: it drops what it was given, and prints a line on stderr."""


def test_a_call_whose_thread_gets_no_memory_fails(parts, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(native, "_thread", _Threads(0))
        for call in (lambda: native.in_thread(lambda: 1), lambda: graphwire.open(parts),
                     lambda: native.Workers(3).submit(lambda: 1).wait()):
            with pytest.raises(graphwire.ResourceError, match="got no memory"):
                call()
    # One thread of three suffices; a thread that ends with a call fails this call, and not the others.
    monkeypatch.setattr(native, "_thread", _Threads(1))
    workers = native.Workers(3)
    assert [workers.submit(lambda i=i: i).wait() for i in range(5)] == list(range(5))
    busy = native._busy
    monkeypatch.setattr(native, "_busy", _NoRoom())
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)
    lost = [workers.submit(lambda: 1) for _ in range(3)]
    for call in lost:
        with pytest.raises(graphwire.ResourceError, match="got no memory"):
            call.wait()
    monkeypatch.setattr(native, "_busy", busy)
    monkeypatch.setattr(native, "_thread", _Threads(3))
    assert workers.submit(lambda: 5).wait() == 5  # the next call starts other threads


class _Threads:
    """The module _thread, whose first `count` threads start."""

    def __init__(self, count):
        self._left = count

    def __getattr__(self, name):
        return getattr(_thread, name)

    def start_new_thread(self, function, arguments):
        self._left -= 1
        return (_thread.start_new_thread if self._left >= 0 else no_thread)(function, arguments)


class _NoRoom(set):
    def add(self, one):
        raise MemoryError
