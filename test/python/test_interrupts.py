"""Signals and threads where they would do harm: during a call of C, in a handler, in code that continues after an
interrupted wait, at every line, and at random moments: $GRAPHWIRE_INTERRUPTS (500) of them, and 10,000 in `./check
soak`."""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import os
import random
import re
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import graphwire
import numpy as np
import pytest
import torch
from graphwire._base import native
from graphwire._base import opened as _opened
from graphwire._graph import edges


def live():
    """How many clients and shares of clients are open, after abandoned operations have ended."""
    gc.collect()
    counts = native.lib.count_live()
    return counts.clients, counts.shares


def interrupted_uses(whole, monkeypatch, taken):
    """A batch, a loader and a sample; a signal arrives as each takes its share of the client. Returns rows of a
    batch."""
    graph = graphwire.open(whole)
    loader = graphwire.NodeLoader(graph, None, [3], features="feat", batch_size=100)
    batches, state = iter(loader), loader.state_dict()
    held, lend = next(batches).x, graph._client.lend

    def interrupted(*arguments):
        raise KeyboardInterrupt(lend(*arguments) if taken else None)

    monkeypatch.setattr(graph._client, "lend", interrupted)
    for call in (lambda: next(batches), lambda: loader.load_state_dict(state),
                 lambda: graphwire.sample(graph, [1], [3])):
        with pytest.raises(KeyboardInterrupt):
            call()
    monkeypatch.undo()
    assert next(iter(loader)).num_seeds == 100
    graph.close()
    return held


@pytest.mark.parametrize("taken", [False, True])
def test_interrupts_while_objects_are_made(whole, monkeypatch, taken):
    """The signal arrives before or after the client lends a share. Each object is freed once, and the client after its
    last user."""
    before = live()
    held = interrupted_uses(whole, monkeypatch, taken)
    assert live() == (before[0] + 1, before[1] + 1) and held.shape[1] == 16
    del held
    assert live() == before


INTERRUPTS = int(os.environ.get("GRAPHWIRE_INTERRUPTS", 500))


PACKAGE = Path(graphwire.__file__).parent
FINALIZERS = re.compile(r"def __del__|\bfinalize\(|\bWeak\w+\(|\bref\([^()]*,|ThreadPoolExecutor\(|threading\.Thread\(")
POP_EXCEPT = dis.opmap["POP_EXCEPT"]


class Interrupted(KeyboardInterrupt):
    pass


@pytest.fixture
def dropped(monkeypatch):
    """Exceptions that Python has printed and dropped."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: found.append((one.exc_type, one.object)))
    monkeypatch.setattr(threading, "excepthook", lambda one: found.append((one.exc_type, one.thread)))
    return found


@functools.lru_cache
def reverses(opened):
    """Up to 40 edges that have a reverse, and the map from all edges to their reverses."""
    with opened() as graph:
        src, dst = graph.find_edges(slice(0, 4000))
        back = graph.edge_ids(dst, src)
        first, counts = back.offsets[:-1], back.offsets[1:] - back.offsets[:-1]
        some = torch.nonzero(torch.as_tensor(counts)).flatten()[:40]
        turned = np.zeros(graph.num_edges(), np.int64)
        turned[some] = back.edge_ids[first[some]]
        return some, turned


def uses(opened, device=None):
    """Creates every kind of object that must be freed: a client, loaders, batches, lists of edges, tickets."""
    seeds, turned = reverses(opened)
    with opened() as graph:
        for loader in (graphwire.NodeLoader(graph, range(40), [2, 2], features="feat", labels="label", batch_size=20,
                                            device=device),
                       graphwire.EdgeLoader(graph, seeds, [2], negatives=1, reverse_etype=graph.etypes[0],
                                            reverse_ids=turned, batch_size=20, features="feat")):
            for batch in loader:
                batch.x.sum()
            next(iter(loader))
        assert graphwire.sample(graph, [1, 2], [3], features="feat").to("cpu").num_seeds == 2
        around = graph.neighbours(range(20)).of(3)
        assert (graph.split(around.src, world=2, rank=1) >= 0).all()
        assert (graph.feature("feat")[[1, 5]] == graph.gather("feat", [1, 5])).all()
        cycle = [graph, loader]
        cycle.append(cycle)


def all_ended(before):
    """Operations that continue after an interrupted wait end by themselves."""
    while live() != before:
        time.sleep(0.001)
    return True


def interrupted_at(number, opened):
    """Runs uses(opened), with an exception at the number-th executed line of the package. Returns the number of
    lines."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if "graphwire" not in frame.f_code.co_filename:
            return None
        if event == "line" and frame.f_code.co_code[frame.f_lasti] == POP_EXCEPT:
            return trace  # Python runs no signal handler there, and an exception raised there stays in a handled state
        if event == "line" or (event == "call" and frame.f_lasti <= 0):  # closing a generator calls it too
            count += 1
            if count == number:
                raise Interrupted(frame.f_code.co_name, frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        uses(opened)
    finally:
        sys.settrace(before)
    return count


def test_at_every_line(small, dropped):
    """An exception at each line of the package that runs in the main thread, also of finalizers and callbacks, reaches
    the program and leaves nothing behind."""
    reverses(small)
    before, numbers = live(), range(1, interrupted_at(0, small) + 1)
    for number in random.Random(5).sample(numbers, min(INTERRUPTS, len(numbers))):
        try:
            reached = interrupted_at(number, small)
        except Interrupted:
            continue
        assert not dropped and reached < number  # waits execute more or fewer lines
    assert not dropped
    assert all_ended(before)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small") / "parts"
    ids = np.arange(60)
    graphwire.partition_graph((ids, (ids * 7 + 1) % 60), "small", 1, folder, method="random", undirected=True,
                              node_features={"feat": np.ones((60, 4), np.float32), "label": ids})
    return lambda: graphwire.open(folder, threads=1)


def interrupted_while(work, times, longest):
    """Repeats work() while signals arrive at random moments within `longest` seconds. Returns how many arrived, and how
    many exceptions reached the program."""
    moments, sent, arrived = random.Random(7), 0, 0

    def handler(*_):
        nonlocal sent
        sent += 1
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while sent < times:
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-6, longest))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                arrived += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    return sent, arrived


@pytest.mark.parametrize("where", ["standalone", "servers", "device"])
def test_at_any_moment(parts, servers, small, dropped, made_up_gpu, where):
    graph = graphwire.open(parts, servers.addresses)
    opened = (lambda: contextlib.nullcontext(graph)) if where == "servers" else small
    reverses(opened)
    before, begun = live(), time.monotonic()
    uses(opened, "cuda" if where == "device" else None)
    threads = set(os.listdir("/proc/self/task"))  # the graph's thread for short calls, which begins late, stays
    times = INTERRUPTS // 3 + 1
    sent, arrived = interrupted_while(lambda: uses(opened, "cuda" if where == "device" else None), times,
                                      2 * (time.monotonic() - begun))
    assert sent == arrived == times and not dropped
    assert all_ended(before)
    while not set(os.listdir("/proc/self/task")) <= threads:
        time.sleep(0.001)
    graph.close()


def test_no_finalizer_is_python():
    """The places where Python drops an interrupt: __del__, callbacks of weak references, and the ends of Python's own
    threads. kge's training and the reader of tables shut their executors down; the callback of pyg/loaders.py is not
    Python. deploy/, which the wheel contains, is a separate package."""
    found = [f"{path.relative_to(PACKAGE)}: {line.strip()}" for path in PACKAGE.rglob("*.py")
             if not path.is_relative_to(PACKAGE / "deploy")
             for line in path.read_text().splitlines() if FINALIZERS.search(line)]
    assert [line for line in found if not line.startswith((
        "kge/training.py: ", "_files/table_kinds.py: with ",
        "pyg/loaders.py: weakref.ref(iterator, functools.partial(_queues.pop, "))] == []


def test_within_a_handler(parts, own_servers):
    """A second signal arrives while the first one's handler cancels: no call may write into memory that may be freed by
    then."""
    graph = graphwire.open(parts, own_servers.addresses, transport="tcp")
    tensor = graph.create_tensor("some", (100, 2), initial=1.0)
    out = torch.full((100, 2), -1.0)
    client, pointer = tensor._there()
    ids = np.arange(100)
    own_servers.stop()

    def begin(ticket):
        return native.lib.gw_gather_start(client.pointer, pointer, graphwire._base.arrays.ids_pointer(ids), 100,
                                           native.ffi.cast("void *", out.data_ptr()), ticket)

    def first(ticket):
        raise KeyboardInterrupt("first")

    def trace(frame, event, argument):
        if frame.f_code is not native.finish.__code__:
            return trace
        frame.f_trace_lines = True
        if event == "exception":
            trace.failed = True
        elif event == "line" and trace.failed:
            raise KeyboardInterrupt("second")
        return trace

    trace.failed = False
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        native.finish(begin, first)
    except KeyboardInterrupt as error:
        assert str(error) == "second"
    finally:
        sys.settrace(before)
    gc.collect()
    own_servers.go_on()
    assert tensor[:].sum() == 200
    tensor[[1]] = 5
    assert tensor[1].tolist() == [5, 5] and (out == -1).all()


def test_an_abandoned_call_reads_a_copy(whole, monkeypatch):
    """The call reads a copy, because its caller continues too. The copy is freed when the call has ended."""
    going, copies, own = [], [], edges._arrays.own_ids

    def copied(ids, count, what):
        array = own(ids, count, what)
        copies.append(weakref.ref(array))
        return array

    def left(call):
        going.append(call)
        raise KeyboardInterrupt

    with graphwire.open(whole) as graph:
        ids = np.arange(100)
        expected = graph.split(ids).tolist()
        monkeypatch.setattr(edges, "in_thread", left)
        monkeypatch.setattr(edges._arrays, "own_ids", copied)
        with pytest.raises(KeyboardInterrupt):
            graph.split(ids)
        ids[:] = 0
        gc.collect()
        (held,) = copies
        assert held() is not None
        assert going[0]().tolist() == expected
        gc.collect()
        assert held() is None


def test_a_childs_threads_open_one_client(whole, monkeypatch):
    """The first use in a forked child; here this process pretends to be one."""
    graph = graphwire.open(whole)
    graph._client.pid = -1
    other, opened, found = threading.Barrier(2), [], []
    client = _opened._Client

    def opens(*arguments):
        opened.append(1)
        with contextlib.suppress(threading.BrokenBarrierError):
            other.wait(0.5)  # for the other thread, in case it opens one too
        return client(*arguments)

    monkeypatch.setattr(_opened, "_Client", opens)
    threads = [threading.Thread(target=lambda: found.append(graph._opened())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1 and found[0] is found[1]
    graph.close()


def test_the_end_sees_a_call_that_begins(monkeypatch):
    """A worker that is about to begin a call is among those that the end of the process waits for."""
    waited_for = []

    class Ending(threading.Event):
        def is_set(self):
            waited_for.append(set(native._busy))
            return super().is_set()

    others = set(native._busy)
    monkeypatch.setattr(native, "_ending", Ending())
    workers = native.Workers(1)
    assert workers.submit(lambda: 1).wait() == 1
    assert len(waited_for[0] - others) == 1
