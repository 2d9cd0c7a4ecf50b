"""Measures local sampling by DGL or GraphBolt: fanouts 15, 10, 5, batches of 1000 seeds. Prints a JSON object for each
kind of draw: uniform; by random float32 weights of the edges, with replacement; the same without.

local_sample.py GRAPH_DIR THREADS BATCHES dgl|graphbolt     GRAPH_DIR holds indptr.npy, indices.npy

The seeds and weights are drawn, and one batch is sampled, before the measurement starts.
"""
import json
import os
import sys
import time

import numpy as np

GRAPH, THREADS, BATCHES, SYSTEM = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
os.environ["OMP_NUM_THREADS"] = str(THREADS)  # read when torch and dgl are loaded
os.environ["DGLBACKEND"] = "pytorch"
import dgl  # noqa: E402
import torch  # noqa: E402

SEEDS, FANOUTS = 1000, [15, 10, 5]  # the fanout of the seeds comes first
KINDS = {"uniform": (False, False), "by weight, replace": (True, True), "by weight": (True, False)}  # weighted, replace


def dgl_sampler(indptr, indices, weights, replace):
    graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
    graph.create_formats_()
    if weights is not None:
        graph.edata["w"] = weights
    sampler = dgl.dataloading.NeighborSampler(  # DGL counts hops from the inputs
        FANOUTS[::-1], prob=None if weights is None else "w", replace=replace)

    def sample(seeds):
        inputs, _, blocks = sampler.sample_blocks(graph, seeds)
        return sum(block.num_edges() for block in blocks), len(inputs)

    return sample


def graphbolt_sampler(indptr, indices, weights, replace):
    import dgl.graphbolt as gb

    graph = gb.fused_csc_sampling_graph(indptr, indices, edge_attributes=None if weights is None else {"w": weights})

    def sample(seeds):
        edges = 0
        for fanout in FANOUTS:
            picked = graph.sample_neighbors(
                seeds, torch.tensor([fanout]), replace=replace, probs_name=None if weights is None else "w")
            seeds, block = gb.unique_and_compact_csc_formats(picked.sampled_csc, seeds)
            edges += len(block.indices)
        return edges, len(seeds)

    return sample


def measure(kind, sample, batches):
    sample(batches[0])
    edges = inputs = 0
    start = time.perf_counter()
    for seeds in batches:
        more_edges, more_inputs = sample(seeds)
        edges, inputs = edges + more_edges, inputs + more_inputs
    seconds = time.perf_counter() - start
    print(json.dumps({
        "peer": f"{SYSTEM} {dgl.__version__} local", "kind": kind, "threads": THREADS,
        "edges_per_s": round(edges / seconds), "batches_per_s": round(BATCHES / seconds, 2),
        "edges_per_batch": edges // BATCHES, "inputs_per_batch": inputs // BATCHES}), flush=True)


def main():
    torch.set_num_threads(THREADS)
    indptr, indices = (torch.from_numpy(np.load(f"{GRAPH}/{name}.npy")) for name in ("indptr", "indices"))
    random = np.random.default_rng(7)
    batches = [torch.from_numpy(random.choice(len(indptr) - 1, SEEDS, replace=False)) for _ in range(BATCHES)]
    weights = torch.from_numpy(1 - random.random(len(indices), np.float32))  # above 0, up to 1
    for kind, (weighted, replace) in KINDS.items():
        sampler = dgl_sampler if SYSTEM == "dgl" else graphbolt_sampler
        measure(kind, sampler(indptr, indices, weights if weighted else None, replace), batches)


if __name__ == "__main__":
    main()
