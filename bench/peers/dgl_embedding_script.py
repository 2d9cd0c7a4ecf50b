"""A script of DGL's for dgl_embeddings.py: rows of a DistEmbedding of a graph's nodes, read by batches of ids, their
gradients, SparseAdagrad. Over DGL 1.1.3 and over Graphwire it is the same file.

  dgl_embedding_script.py WIDTH BATCH STEPS

Prints a JSON object: seconds of STEPS steps after some that are not timed, rows a second, and how far some rows end
from those of torch.optim.Adagrad: apart, of rows that were read once, and apart_again, of others. Fails where the first
is too far, or where a row that was not read has changed. The second is only printed: DGL 1.1.3 on the processor takes the
root of an element's sum of squares in place, and keeps that for the next step in the sum's stead.
"""
import json
import sys
import time

import dgl
import torch

WARM, LR, LOOKED_AT = 3, 0.1, 500


def first(shape, dtype):
    """What rows begin with."""
    return torch.ones(shape, dtype=dtype)


def main():
    width, batch, steps = map(int, sys.argv[1:4])
    dgl.distributed.initialize("ip_config.txt")
    torch.distributed.init_process_group("gloo")
    g = dgl.distributed.DistGraph("g")
    count = g.num_nodes()
    random = torch.Generator().manual_seed(1)
    read = [torch.randperm(count - 1, generator=random)[:batch].clone()  # the last node never
            for _ in range(WARM + steps)]
    slopes = torch.randn(batch, width, generator=random)
    table = dgl.distributed.DistEmbedding(count, width, "table", first, g.get_node_partition_policy("_N"))
    optimizer = dgl.distributed.optim.SparseAdagrad([table], lr=LR)
    for step, ids in enumerate(read):
        if step == WARM:
            start = time.perf_counter()
        optimizer.zero_grad()
        (table(ids) * slopes).sum().backward()
        optimizer.step()
    seconds = time.perf_counter() - start

    looked_at = torch.cat([read[0][:LOOKED_AT], torch.tensor([count - 1])])
    expected = torch.nn.Parameter(torch.ones(len(looked_at), width))
    reference = torch.optim.Adagrad([expected], lr=LR)
    for ids in read:
        expected.grad = torch.zeros_like(expected)
        found = ids[:, None] == looked_at
        places, rows = torch.nonzero(found, as_tuple=True)
        expected.grad[rows] = slopes[places]
        reference.step()
    found = table(looked_at).detach()
    differences = (found - expected.detach()).abs().amax(1)
    once = sum(torch.isin(looked_at, ids).long() for ids in read) == 1
    apart, again = (differences[some].max().item() if some.any() else 0.0 for some in (once, ~once))
    assert once.any() and apart < 1e-4 and (found[-1] == 1).all(), f"{apart} from torch.optim.Adagrad"
    print(json.dumps({"rows_per_s": round(steps * batch / seconds), "seconds": round(seconds, 4), "rows": count,
                      "width": width, "batch": batch, "apart": apart, "apart_again": again}), flush=True)


if __name__ == "__main__":
    main()
