"""Shuffled loaders follow the law of a uniform order for few seeds: the first two seeds of an epoch, and the
differences of seeds that follow each other. Seeds are fixed, so that a pass stays a pass."""

from collections import Counter
from itertools import permutations

import graphwire
import numpy as np
import pytest

EPOCHS = 2500


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    at, folder = np.arange(20), tmp_path_factory.mktemp("shuffle") / "ring"
    graphwire.partition_graph((at, (at + 1) % 20), "ring", 1, folder, num_nodes=20)
    with graphwire.open(folder, numpy=True) as graph:
        yield graph


def check_equally_likely(counts, cells):
    """Chi-square is below the value that it exceeds once in a million tests (Wilson and Hilferty)."""
    assert set(counts) <= set(cells)
    expected, freedom = sum(counts.values()) / len(cells), len(cells) - 1
    found = sum((counts[cell] - expected)**2 / expected for cell in cells)
    spread = 2 / (9 * freedom)
    assert found < freedom * (1 - spread + 4.753 * spread**0.5)**3, counts


@pytest.mark.parametrize("kind", [graphwire.NodeLoader, graphwire.EdgeLoader])
@pytest.mark.parametrize("count", [3, 5, 8])
def test_few_seeds_come_in_every_order(ring, kind, count):
    loader = kind(ring, np.arange(count), [0], batch_size=count, shuffle=True, seed=5)
    firsts, steps = Counter(), Counter()
    for _ in range(EPOCHS):
        for batch in loader:
            order = [int(seed) for seed in batch.seeds]
            firsts[order[0], order[1]] += 1
            steps.update((second - first) % count for first, second in zip(order, order[1:]))
    check_equally_likely(firsts, list(permutations(range(count), 2)))
    check_equally_likely(steps, range(1, count))
