"""Partitions the graph in two by DGL's own code, with 128 float32 features, a label and a train mask for every node.

dgl_partition.py GRAPH_DIR OUT [metis|random]     prints the time and the peak memory
"""
import os
import resource
import sys
import time

import numpy as np

os.environ["DGLBACKEND"] = "pytorch"
import dgl
import torch


def main():
    folder, out, method = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "metis"
    indptr, indices = (torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("indptr", "indices"))
    graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
    nodes = graph.num_nodes()
    torch.manual_seed(0)
    graph.ndata["feat"] = torch.randn(nodes, 128)
    graph.ndata["label"] = torch.randint(0, 47, (nodes,))
    graph.ndata["train_mask"] = torch.rand(nodes) < 0.1
    start = time.time()
    dgl.distributed.partition_graph(graph, "r20", 2, out, part_method=method, num_hops=1)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"DGL partitioned ({method}) in {time.time() - start:.1f} s, peak {peak_mib} MiB")


if __name__ == "__main__":
    main()
