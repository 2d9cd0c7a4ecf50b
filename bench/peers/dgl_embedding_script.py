"""A DGL script for dgl_embeddings.py. It reads batches of rows of a DistEmbedding, computes gradients, and runs
SparseAdagrad. DGL 1.1.3 and Graphwire run the same file.

  dgl_embedding_script.py WIDTH BATCH STEPS

Prints a JSON object: the seconds of STEPS steps, after a few steps that are not timed; rows a second; and the greatest
difference of some rows from torch.optim.Adagrad's. "apart" is the difference of rows that were read once, "apart_again"
of other rows. Fails if "apart" is too large, or if a row that was not read has changed. "apart_again" is only printed,
because DGL 1.1.3 differs from Adagrad there: on the processor it stores the square root of an element's sum of squares
instead of the sum.
"""
import json
import sys
import time

import dgl
import torch

WARM, LR, LOOKED_AT = 3, 0.1, 500


def first(shape, dtype):
    """The initial values of the rows."""
    return torch.ones(shape, dtype=dtype)


def main():
    width, batch, steps = map(int, sys.argv[1:4])
    dgl.distributed.initialize("ip_config.txt")
    torch.distributed.init_process_group("gloo")
    g = dgl.distributed.DistGraph("g")
    count = g.num_nodes()
    random = torch.Generator().manual_seed(1)
    read = [torch.randperm(count - 1, generator=random)[:batch].clone()  # never the last node
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
