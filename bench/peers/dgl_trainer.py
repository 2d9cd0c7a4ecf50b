"""One process of DGL's distributed service: a server or the trainer, as DGL_ROLE in the environment names it.

The trainer takes its seeds from part 0, which is on its own host. It reads mini-batches of 1000 seeds with fanouts 15,
10, 5, 128 float32 features of the inputs, and labels of the seeds. Then it reads single remote rows, and 10,000 remote
rows at a time. Prints two JSON objects. dgl_two_hosts.sh sets the environment. BATCHES: the number of batches to time.
"""
import json
import os
import time

import dgl
import dgl.distributed
import numpy as np
import torch

BATCHES, WARM, SEEDS, ROWS = int(os.environ.get("BATCHES", "40")), 2, 1000, 10000


def batches(graph, own):
    """The rate of mini-batches over both hosts."""
    seeds = np.random.default_rng(7).choice(own, SEEDS * (BATCHES + WARM), replace=False)
    sampler = dgl.dataloading.MultiLayerNeighborSampler([5, 10, 15])
    loader = iter(dgl.dataloading.DistNodeDataLoader(
        graph, torch.from_numpy(seeds), sampler, batch_size=SEEDS, shuffle=True, drop_last=False))
    edges = rows = 0
    for i in range(BATCHES + WARM):
        if i == WARM:
            edges, rows, start = 0, 0, time.perf_counter()
        inputs, outputs, blocks = next(loader)
        _features, _labels = graph.ndata["feat"][inputs], graph.ndata["label"][outputs]
        edges += sum(block.num_edges() for block in blocks)
        rows += len(inputs)
    seconds = time.perf_counter() - start
    return {"batches_per_s": round(BATCHES / seconds, 2), "edges_per_s": round(edges / seconds),
            "edges_per_batch": edges // BATCHES, "rows_per_batch": rows // BATCHES}


def timed(features, requests):
    """Seconds of each request, ascending."""
    times = []
    for ids in requests:
        start = time.perf_counter()
        features[ids]
        times.append(time.perf_counter() - start)
    return sorted(times)


def remote_rows(graph, own):
    """Times reads of one row, and of many rows, of the other host's part."""
    features, nodes = graph.ndata["feat"], graph.num_nodes()
    one = timed(features, [torch.tensor([nodes - 1 - i]) for i in range(1000)])
    many = timed(features, [torch.randint(own, nodes, (ROWS,)) for _ in range(50)])
    return {"remote_row_us_p50": round(one[500] * 1e6), "remote_row_us_p99": round(one[990] * 1e6),
            "remote_10000_rows_ms_p50": round(many[25] * 1e3, 2), "remote_rows_per_s": round(ROWS / many[25])}


def main():
    start = time.time()
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])  # in a server, this call returns when the server is stopped
    graph = dgl.distributed.DistGraph("r20", part_config=os.environ["DGL_CONF_PATH"])
    name = {"peer": f"dgl {dgl.__version__} distributed"}
    name["open_s"] = round(time.time() - start, 1)
    own = len(graph.get_partition_book().partid2nids(0))
    print(json.dumps({**name, **batches(graph, own)}), flush=True)
    print(json.dumps({**name, **remote_rows(graph, own)}), flush=True)
    dgl.distributed.exit_client()


if __name__ == "__main__":
    main()
