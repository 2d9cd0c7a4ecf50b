"""Lists of R-MAT edges in files, made a piece at a time, and sums that show whether a graph has the same edges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

A, B, C = 0.57, 0.19, 0.19  # chances of the quadrants, Graph500's; D is the rest
PIECE = 1 << 20  # edges
FORMS = ("text", "names", "npy", "chunks")


def pieces(scale: int, edge_factor: int) -> list[tuple[int, int]]:
    """The first and the last edge of each piece."""
    edges = edge_factor << scale
    return [(first, min(first + PIECE, edges)) for first in range(0, edges, PIECE)]


def ends(scale: int, first: int, last: int) -> np.ndarray:
    """Sources and destinations, [2, last - first]: one random quadrant for each bit. Hubs are all over the ids."""
    random = np.random.default_rng(first)
    src, dst = np.zeros(last - first, np.uint64), np.zeros(last - first, np.uint64)
    for _ in range(scale):
        u = random.random(last - first, np.float32)
        src = src << np.uint64(1) | (u > A + B)
        dst = dst << np.uint64(1) | ((u > A) & (u <= A + B)) | (u > A + B + C)
    odd, mask = np.uint64(0x9E3779B97F4A7C15 | 1), np.uint64((1 << scale) - 1)
    return np.stack([src * odd & mask, dst * odd & mask])


def edge_sum(src: np.ndarray, dst: np.ndarray) -> int:
    """The same for the same edges in any order."""
    key = src * np.uint64(0xD6E8FEB86659FD93) ^ (dst + np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ key >> np.uint64(shift)) * np.uint64(factor)
    return int(key.sum(dtype=np.uint64))


def lines(two: np.ndarray, prefix: bytes) -> bytes:
    """A line for each edge: ids in decimals, each behind the prefix, and a tab between them."""
    width = len(str(int(two.max())))
    row = np.zeros((two.shape[1], 2 * (len(prefix) + width + 1)), np.uint8)
    kept = np.ones(row.shape, bool)
    for side, (values, end) in enumerate(zip(two, b"\t\n")):
        at = side * (len(prefix) + width + 1)
        row[:, at:at + len(prefix)] = np.frombuffer(prefix, np.uint8)
        at += len(prefix)
        left = values.copy()
        for digit in reversed(range(width)):
            row[:, at + digit] = left % np.uint64(10) + np.uint64(48)
            kept[:, at + digit] = (left > 0) | (digit == width - 1)
            left //= np.uint64(10)
        row[:, at + width] = end
    return row[kept].tobytes()


def write(folder: Path, scale: int, edge_factor: int, form: str) -> tuple[list[str], int]:
    """Writes the edges in one of FORMS. Returns the words of `graphwire import` that read them, and their sum."""
    total = 0

    def made(first: int, last: int) -> np.ndarray:
        nonlocal total
        two = ends(scale, first, last)
        total = (total + edge_sum(*two)) % (1 << 64)
        return two

    if form in ("text", "names"):
        path = folder / "edges.tsv"
        with path.open("wb") as file:
            for first, last in pieces(scale, edge_factor):
                file.write(lines(made(first, last), b"node-" if form == "names" else b""))
        return ["--from", str(path), "--no-header", "--ids", "text" if form == "names" else "dense"], total
    edges = edge_factor << scale
    if form == "npy":
        path = folder / "edges.npy"
        array = np.lib.format.open_memmap(path, "w+", np.uint64, (edges, 2))
        for first, last in pieces(scale, edge_factor):
            array[first:last] = made(first, last).T
        array.flush()
        return ["--edges", str(path), "--num-nodes", str(1 << scale)], total
    listed = []
    for number, (first, last) in enumerate(pieces(scale, edge_factor)):
        np.save(folder / f"edges{number}.npy", np.ascontiguousarray(made(first, last).T))
        listed.append(f"edges{number}.npy")
    description = {"graph_name": "g", "node_type": ["_N"], "num_nodes_per_chunk": [[1 << scale]],
                   "edge_type": ["_N:_E:_N"], "edges": {"_N:_E:_N": {"format": {"name": "numpy"}, "data": listed}},
                   "num_edges_per_chunk": [[last - first for first, last in pieces(scale, edge_factor)]]}
    (folder / "metadata.json").write_text(json.dumps(description))
    return ["--from", str(folder / "metadata.json")], total
