"""Signals and threads where they would do harm: beside a call of C, in a handler, in what goes on when the wait has
ended. Each comes at a line that the test names."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref

import graphwire
import numpy as np
import pytest
import torch
from graphwire import _native, edges


def interrupted_uses(graph, taken):
    """A batch, a loader and a sample whose client hears of them as a signal comes. Returns rows of a batch, and what
    the client would be closed with."""
    client, closed = graph._client, []
    close, take, client._close = client._close, client.take, closed.append
    loader = graphwire.NodeLoader(graph, None, [3], features="feat", batch_size=100)
    batches, state = iter(loader), loader.state_dict()
    held = next(batches).x

    def interrupted(*user):
        if taken:
            take(*user)
        raise KeyboardInterrupt

    client.take = interrupted
    for call in (lambda: next(batches), lambda: loader.load_state_dict(state),
                 lambda: graphwire.sample(graph, [1], [3])):
        with pytest.raises(KeyboardInterrupt):
            call()
    del client.take
    gc.collect()
    assert not closed and next(iter(loader)).num_seeds == 100
    return held, closed, client.pointer, close


@pytest.mark.parametrize("taken", [False, True])
def test_beside_an_owner(whole, taken):
    """Before its client knows of it, and after: what was made goes once, and the client when the last user has gone."""
    with graphwire.open(whole) as graph:
        held, closed, pointer, close = interrupted_uses(graph, taken)
    gc.collect()
    assert not closed and held.shape[1] == 16
    del held
    gc.collect()
    assert closed == [pointer]
    close(pointer)


def test_within_a_handler(parts, own_servers):
    """A second signal while the first one's handler cancels: nothing is written into memory that may be gone by then.
    """
    graph = graphwire.open(parts, own_servers.addresses, transport="tcp")
    tensor = graph.create_tensor("some", (100, 2), initial=1.0)
    out = torch.full((100, 2), -1.0)
    client, pointer = tensor._there()
    ids = np.arange(100)
    own_servers.stop()

    def begin(ticket):
        return _native.lib.gw_gather_start(client.pointer, pointer, graphwire._arrays.ids_pointer(ids), 100,
                                           _native.ffi.cast("void *", out.data_ptr()), ticket)

    def first(ticket):
        raise KeyboardInterrupt("first")

    def trace(frame, event, argument):
        if frame.f_code is not _native.finish.__code__:
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
        _native.finish(begin, first)
    except KeyboardInterrupt as error:
        assert str(error) == "second"
    finally:
        sys.settrace(before)
    gc.collect()
    own_servers.go_on()
    assert tensor[:].sum() == 200
    tensor[[1]] = 5
    assert tensor[1].tolist() == [5, 5] and (out == -1).all()


def test_what_goes_on_holds_what_it_reads(whole, monkeypatch):
    """A copy, since its caller goes on too; the copy goes when the call has ended."""
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
        monkeypatch.setattr(edges, "aside", left)
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
    """The first use in a child that was forked: here as if this process were one."""
    graph = graphwire.open(whole)
    graph._client.pid = -1
    other, opened, found = threading.Barrier(2), [], []
    client = graphwire.graph._Client

    def opens(options):
        opened.append(1)
        with contextlib.suppress(threading.BrokenBarrierError):
            other.wait(0.5)  # for the other thread, if that opens one too
        return client(options)

    monkeypatch.setattr(graphwire.graph, "_Client", opens)
    threads = [threading.Thread(target=lambda: found.append(graph._opened())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1 and found[0] is found[1]
    graph.close()
