"""Writes an R-MAT graph with Graph500's parameters, as the CSC arrays that all compared systems read.

rmat.py OUT SCALE EDGE_FACTOR     writes OUT/indptr.npy, OUT/indices.npy (int64), prints nodes, edges, largest in-degree

For Graphwire's import it writes the same edges, in the same order, as OUT/edges.npz (src, dst), and for every node 128
random float32 features and a label. Vertices are shuffled; parallel edges and loops are kept. The same arguments give
the same graph on every machine.
"""
import sys

import numpy as np

A, B, C = 0.57, 0.19, 0.19  # chances of the quadrants; D is the rest


def rmat(scale, edge_factor):
    """Source and destination ids [edge_factor << scale]: one random quadrant for each bit of each edge."""
    edges = edge_factor << scale
    random = np.random.default_rng(1)
    src, dst = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for bit in range(scale):
        u = random.random(edges, np.float32)
        src_bit = u > A + B
        dst_bit = ((u > A) & (u <= A + B)) | (u > A + B + C)
        src |= src_bit.astype(np.int64) << bit
        dst |= dst_bit.astype(np.int64) << bit
    shuffled = random.permutation(1 << scale)
    return shuffled[src], shuffled[dst]


def main():
    out, scale, edge_factor = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    src, dst = rmat(scale, edge_factor)
    order = np.argsort(dst, kind="stable")
    degrees = np.bincount(dst, minlength=1 << scale)
    indptr = np.zeros((1 << scale) + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    np.savez(f"{out}/edges.npz", src=src[order], dst=dst[order])
    random = np.random.default_rng(2)
    np.save(f"{out}/feat.npy", random.standard_normal((1 << scale, 128), np.float32))
    np.save(f"{out}/label.npy", random.integers(0, 47, 1 << scale))
    np.save(f"{out}/indices.npy", src[order])
    np.save(f"{out}/indptr.npy", indptr)  # written last: setup.sh checks only this file
    print(f"R-MAT: {1 << scale} nodes, {len(src)} edges, largest in-degree {degrees.max()}")


if __name__ == "__main__":
    main()
