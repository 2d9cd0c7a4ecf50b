"""Runs torch.distributed ranks on this host for a test: forks of the test, which meet through a file."""

from __future__ import annotations

import multiprocessing
import traceback

import graphwire
import torch.distributed as dist


def _rank(work, folder, rank, world, meet, backend, pipe):
    try:
        if backend == "refusing":
            dist.Backend.register_backend("refusing", lambda store, rank, size, timeout: dist.ProcessGroup(rank, size),
                                          devices=["cpu"])

        def join():
            dist.init_process_group(backend, init_method=f"file://{meet}", rank=rank, world_size=world)

        with graphwire.open(folder) as graph:
            pipe.send((work(graph, rank, join), None))
    except BaseException:
        pipe.send((None, traceback.format_exc()))


def in_ranks(work, folder, meet, world=2, backend="gloo"):
    """Returns what work(graph, rank, join) returned on each rank. join() makes the process group."""
    forked, started = multiprocessing.get_context("fork"), []
    for rank in range(world):
        ours, theirs = forked.Pipe()
        process = forked.Process(target=_rank, args=(work, folder, rank, world, meet, backend, theirs))
        process.start()
        started.append((process, ours))
        theirs.close()
    said = [ours.recv() if ours.poll(120) else (None, "nothing after two minutes") for _, ours in started]
    for process, _ in started:
        process.kill()
        process.join()
    assert not any(wrong for _, wrong in said), "\n".join(wrong for _, wrong in said if wrong)
    return [result for result, _ in said]
