"""Children and a grandchild of multiprocessing, each with Graphwire's dgl.distributed. Prints "METHOD ok" for each
method that starts a new interpreter."""

from __future__ import annotations

import multiprocessing
import sys

import dgl
import dgl.distributed
from dgl.distributed import DistGraph


def child(method, generation):
    assert DistGraph.__module__ == dgl.distributed.DistGraph.__module__ == "graphwire.dgl.distributed.graph"
    if generation:
        started = multiprocessing.get_context(method).Process(target=child, args=(method, generation - 1))
        started.start()
        started.join()
        sys.exit(started.exitcode)


if __name__ == "__main__":
    for method in sys.argv[1:]:
        process = multiprocessing.get_context(method).Process(target=child, args=(method, int(method == "spawn")))
        process.start()
        process.join()
        assert process.exitcode == 0, method
        print(method, "ok", flush=True)
