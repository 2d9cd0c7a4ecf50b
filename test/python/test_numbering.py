"""Numbers of ids, against a dictionary; limits, and memory of an id."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import graphwire
import numpy as np
import pytest
from conftest import TOP
from graphwire._files import numbering


@pytest.mark.parametrize("as_text", [False, True])
def test_numbering_is_that_of_a_dictionary(as_text):
    """Numbers by first appearance, row by row over two columns, in batches of any size; with and without new ids."""
    draw = random.Random(5)
    first, second = numbering.Numbering(), numbering.Numbering()
    known, other = {}, {}

    def batch(values):
        if not as_text:
            return np.array(values, np.int64)
        texts = [str(value).encode() * (value % 5) for value in values]  # empty ones, and different ones of one length
        kind = draw.choice((np.int32, np.int64))
        return numbering.Texts(np.cumsum([0, *map(len, texts)]).astype(kind), np.frombuffer(b"".join(texts), np.uint8))

    def key(value):
        return str(value) * (value % 5) if as_text else value

    for size in (0, 1, 63, 64, 65, 5000, 40000):
        a, b = ([draw.randrange(30000) for _ in range(size)] for _ in range(2))
        found = numbering.numbers((first, batch(a), True), (first, batch(b), True))
        assert found.tolist() == [[known.setdefault(key(x), len(known)), known.setdefault(key(y), len(known))]
                                  for x, y in zip(a, b)]
        found = numbering.numbers((first, batch(a), False), (second, batch(b), True))
        assert found.tolist() == [[known[key(x)], other.setdefault(key(y), len(other))] for x, y in zip(a, b)]
    missing = numbering.numbers((first, batch([10**6 + 1, 10**6 + 2]), False))
    assert missing.tolist() == [[-1], [-1]]
    assert len(first) == len(known) > 10000 and len(second) == len(other)


def test_limits_of_ids():
    texts = numbering.Texts(np.array([0, 65536]), np.zeros(65536, np.uint8))
    with pytest.raises(graphwire.ResourceError, match="65,536 bytes"):
        numbering.numbers((numbering.Numbering(), texts, True))


def held():
    """Bytes of this process's anonymous memory."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status).group(1)) << 10


@pytest.mark.parametrize("count", [700_000, 1_500_000])
def test_memory_of_an_id(count):
    """At most 16 bytes, and the id's own text, at any filling of the table."""
    script = f"""if True:
        import numpy as np, test_numbering as tests
        from graphwire._files import numbering
        width, step = 36, 50_000
        offsets, one = np.arange(step + 1) * width, numbering.Numbering()
        data = np.full((step, width), 65, np.uint8)
        numbering.numbers((one, numbering.Texts(offsets[:2], data.reshape(-1)), True))
        before, most = tests.held(), 0
        for begin in range(0, {count}, step):
            data[:, :8] = np.arange(begin, begin + step).astype(np.int64).view(np.uint8).reshape(-1, 8)
            numbering.numbers((one, numbering.Texts(offsets, data.reshape(-1)), True))
            most = max(most, tests.held())
        assert len(one) > {count}
        print((most - before) / {count} - width)"""
    environment = {**os.environ, "PYTHONPATH": f"{TOP / 'test/python'}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert 5 < float(done.stdout) <= 16
