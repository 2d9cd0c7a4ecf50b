"""Damaged copies of a file's bytes, the same ones in every run: flipped bits, cuts, exchanged and repeated blocks."""

from __future__ import annotations

import numpy as np


def damages(data, count, seed, block=32):
    """Yields count pairs (what, bytes), each different from data; none for an empty file. block: the bytes of exchanged
    blocks."""
    draw = np.random.default_rng([seed, len(data)])
    yielded = 0 if data else count
    while yielded < count:
        new, kind = bytearray(data), ("flip", "flips", "cut", "swap", "fill", "empty", "head")[draw.integers(7)]
        at = int(draw.integers(len(data)))
        if kind == "flip":
            new[at] ^= 1 << int(draw.integers(8))
        elif kind == "flips":
            for place in draw.integers(0, len(data), 8):
                new[place] ^= int(draw.integers(1, 256))
        elif kind == "cut":
            del new[at:]
        elif kind == "swap":
            one, two = (int(place) // block * block for place in draw.integers(0, len(data), 2))
            new[one:one + block], new[two:two + block] = data[two:two + block], data[one:one + block]
        elif kind == "fill":
            new[at:at + 16] = bytes([int(draw.integers(256))]) * len(new[at:at + 16])
        elif kind == "empty":
            new.clear()
        elif kind == "head":  # most of a format's structure is there
            new[int(draw.integers(min(len(data), 256)))] = int(draw.integers(256))
        if bytes(new) != bytes(data):
            yielded += 1
            yield f"{kind} at {at}", bytes(new)
