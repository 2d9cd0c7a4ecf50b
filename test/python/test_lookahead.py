"""Look-ahead and kept rows: the rows that a loader fetches are those of the definition (client/rows/row_window.h,
client/batch/kept_rows.h), computed by sets from the batches' own nodes; and the batches are the same."""

from __future__ import annotations

import time

import graphwire
import numpy as np
import pytest
from row_sets import fetched_rows, read_bytes

ROW = 16 * 4  # bytes of "feat"
BATCHES = 24


def batches_of(loader, count):
    """The first `count` batches, over the ends of epochs."""
    found = 0
    while True:
        for batch in loader:
            yield batch
            found += 1
            if found == count:
                return


@pytest.mark.parametrize(("lookahead", "cache_bytes"), [(1, 0), (4, 0), (1, 300 * ROW), (3, "64Ki"), (2, 0)])
def test_fetched_rows_are_those_of_the_definition(parts, servers, lookahead, cache_bytes):
    options = {"features": "feat", "batch_size": 512, "shuffle": True, "seed": 3, "depth": 4}
    with graphwire.open(parts) as alone, graphwire.open(servers=servers.addresses, transport="tcp", threads=3,
                                                        neighbours="requests") as graph:
        steps = len(graphwire.NodeLoader(alone, None, [5, 5], **options))
        assert BATCHES % steps == 0
        wanted = [(batch.nodes["_N"].numpy().copy(), batch.x.numpy().copy(), batch.digest())
                  for batch in batches_of(graphwire.NodeLoader(alone, None, [5, 5], **options), BATCHES)]
        before = read_bytes(graph)
        loader = graphwire.NodeLoader(graph, None, [5, 5], lookahead=lookahead, cache_bytes=cache_bytes, **options)
        taken = BATCHES - 4
        for batch, (nodes, rows, digest) in zip(batches_of(loader, taken), wanted):
            assert batch.digest() == digest
            assert np.array_equal(batch.nodes["_N"].numpy(), nodes)
            assert np.array_equal(batch.x.numpy(), rows)
            batch.x.mul_(0)  # the batch is the caller's
        limit = 1024 if cache_bytes == "64Ki" else int(cache_bytes) // ROW
        lists = [nodes.tolist() for nodes, _, _ in wanted]
        expected = fetched_rows(lists, steps, lookahead, limit) * ROW
        until = time.monotonic() + 60
        while read_bytes(graph) - before < expected and time.monotonic() < until:
            pass  # the batches ahead
        stats = graph.stats()
        assert read_bytes(graph) - before == expected
        assert (stats["ahead_bytes"] > 0) == (lookahead > 1)
        assert (stats["cached_bytes"] > 0) == (stats["cache_count_s"] > 0) == bool(cache_bytes)
        assert (stats["kept_rows"] > 0) == bool(cache_bytes)
        assert stats["kept_bytes"] == stats["kept_rows"] * ROW
        if lookahead > 1 or cache_bytes:
            assert expected < sum(map(len, lists)) * ROW
        loader.close()


def test_edges_look_ahead(parts, servers):
    options = {"features": "feat", "negatives": 2, "batch_size": 300, "shuffle": True, "seed": 3, "depth": 8}
    with graphwire.open(parts) as alone, graphwire.open(servers=servers.addresses, transport="tcp") as graph:
        wanted = [batch.digest() for batch in batches_of(graphwire.EdgeLoader(alone, None, [4], **options), 20)]
        loader = graphwire.EdgeLoader(graph, None, [4], lookahead=8, cache_bytes="16k", cache_batches=10, **options)
        assert [batch.digest() for batch in batches_of(loader, 20)] == wanted
        assert graph.stats()["ahead_bytes"] > 0
        loader.close()


def test_wrong_options(rmat):
    for options, error in [({"lookahead": 5}, "lookahead=5 needs .* depth is 4"), ({"lookahead": 0}, "1 or more"),
                           ({"cache_bytes": "4 GB"}, r'cache_bytes: "4 GB" is not a whole number'),
                           ({"cache_bytes": -1}, "0 or more"), ({"cache_batches": -1}, "0 or more"),
                           ({"cache_batches": 5}, "cache_batches has no effect: cache_bytes is 0")]:
        with pytest.raises(graphwire.InvalidError, match=error):
            graphwire.NodeLoader(rmat, None, [2], **options)
    with pytest.raises(TypeError, match="cache_bytes is an integer"):
        graphwire.NodeLoader(rmat, None, [2], cache_bytes=1.5)
