"""Steps of SparseAdam or SparseAdagrad over a DistEmbedding: `python` runs it over DGL, `python -m graphwire.dgl` over
Graphwire.

  dgl_optim.py SparseAdam|SparseAdagrad FOLDER OUT.npz

Writes rows and state after every step ("rows0", "state0_0", …), and what the optimizer saves ("keys").
"""

from __future__ import annotations

import sys

import dgl
import numpy as np
import torch

kind, folder, out = sys.argv[1:]
NODES, WIDTH = 40, 3
random = torch.Generator().manual_seed(3)


def first(shape, dtype):
    return torch.arange(shape[0] * shape[1], dtype=dtype).reshape(shape) / 64


def step_of(number, table, optimizer):
    """Reads rows, twice in every second step; ids repeat. Every third step is without zero_grad, so that the next step
    pushes the gradients again."""
    if number % 3 != 2:
        optimizer.zero_grad()
    loss = torch.zeros(())
    for _ in range(1 + number % 2):
        ids = torch.randint(0, NODES - 5, (12,), generator=random)  # the last five rows are never read
        slopes = torch.randn(12, WIDTH, generator=random) * 10.0 ** (number % 5 - 2)
        slopes[0] = 0
        loss = loss + (table(ids) * slopes).sum()
    loss.backward()
    optimizer.step()


ends = torch.arange(NODES)
dgl.distributed.partition_graph(dgl.graph((ends, ends.roll(1))), "ring", 1, folder, part_method="random")
dgl.distributed.initialize("none")
g = dgl.distributed.DistGraph("ring", part_config=f"{folder}/ring.json")
policy = dgl.distributed.PartitionPolicy("node~_N", g.get_partition_book())
table = dgl.distributed.DistEmbedding(NODES, WIDTH, "table", first, policy)
optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1)
found = {}
every = torch.arange(NODES)
for number in range(20):
    step_of(number, table, optimizer)
    with torch.no_grad():
        found[f"rows{number}"] = table(every).clone().numpy()
    state = optimizer._state["table"]
    for place, one in enumerate(state if isinstance(state, tuple) else (state,)):
        found[f"state{number}_{place}"] = one[every].clone().numpy()
saved = optimizer.local_state_dict()
keys = [str(sorted(saved)), str(sorted(saved["params"].items())), *sorted(saved["emb_states"]["table"]["states"])]
np.savez(out, keys=np.array(keys), **found)
