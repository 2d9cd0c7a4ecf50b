"""ogb_folder.py facebook.npz FOLDER [NODES]: facebook's graph in the layout of ogbn-products in ogb.

Has the first NODES nodes, or all. The graph's sparse columns are projected to 100 columns, as many as products has. A
seeded draw divides the nodes into train, valid and test: 60, 20 and 20 %.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

COLUMNS, SEED = 100, 1


def _write(path: Path, rows: np.ndarray, form: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", compresslevel=1) as file:
        np.savetxt(file, rows, form, delimiter=",")


def main(source: str, folder: str, nodes: str = "1000000000") -> None:
    random = np.random.default_rng(SEED)
    with np.load(source) as arrays:
        count = min(int(nodes), len(arrays["y"]))
        edges = np.stack([arrays["src"], arrays["dst"]], 1)
        ends = arrays["x_indptr"][:count + 1]
        projected = random.standard_normal((int(arrays["x_dim"]), COLUMNS))
        rows = np.add.reduceat(projected[arrays["x_indices"][:ends[-1]]], ends[:-1]) / np.sqrt(np.diff(ends))[:, None]
        labels = arrays["y"][:count]
    edges = edges[(edges < count).all(1)]  # one direction: ogb adds the other one to products
    raw, split = Path(folder, "raw"), Path(folder, "split", "sales_ranking")
    _write(raw / "edge.csv.gz", edges, "%d")
    _write(raw / "node-feat.csv.gz", rows, "%.4f")
    _write(raw / "node-label.csv.gz", labels[:, None], "%d")
    _write(raw / "num-node-list.csv.gz", np.array([[count]]), "%d")
    _write(raw / "num-edge-list.csv.gz", np.array([[len(edges)]]), "%d")
    order = random.permutation(count)
    for name, ids in zip(("train", "valid", "test"), np.split(order, [count * 6 // 10, count * 8 // 10])):
        _write(split / f"{name}.csv.gz", np.sort(ids)[:, None], "%d")
    Path(folder, "RELEASE_v1.txt").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
