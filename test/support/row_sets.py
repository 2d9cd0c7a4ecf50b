"""The rows that batches with look-ahead fetch, by plain sets: the definitions of client/rows/row_window.h and
client/batch/kept_rows.h."""

from __future__ import annotations


def kept_rows(epoch, lookahead, limit):
    """The rows that save most, in `limit` rows: those that most batches would fetch, and of equal ones the first."""
    counts, by = {}, {}
    for k, nodes in enumerate(epoch):
        for node in set(nodes):
            if node not in by or by[node] + lookahead <= k:
                by[node] = k
                counts[node] = counts.get(node, 0) + 1
    ranked = sorted((-count, node) for node, count in counts.items() if count > 1)
    return {node for _, node in ranked[:limit]}


def fetched_rows(batches, steps, lookahead, limit, counted=None, anew=False):
    """How many rows the batches fetch, with the kept ones. batches: their rows. counted: how many batches of an epoch
    are; None: all. anew: no row of an epoch serves the next one."""
    by, kept, fetched = {}, set(), 0
    for k, nodes in enumerate(batches):
        if limit and k % steps == 0:
            chosen = kept_rows(batches[k:k + steps][:counted], lookahead, limit)
            fetched += len(chosen - kept)
            kept = chosen
        if anew and k % steps == 0:
            by = {}
        for node in set(nodes) - kept:
            if node not in by or by[node] + lookahead <= k:
                by[node] = k
                fetched += 1
    return fetched


def read_bytes(graph):
    """What a graph has read from its servers."""
    return sum(row["read_bytes"] for row in graph.stats()["parts"])
