"""Rows that are stored narrow, in DGL's interface: features, and embeddings that are trained."""

import pickle

import graphwire
import numpy as np
import pytest
import torch
from conftest import NODES, arrays_of_communities
from graphwire.dgl.install import install

dgl = install()


def test_narrow_rows_come_wide(tmp_path):
    """Features that are stored narrow come in the user's type, or in the one that the graph is opened with. Rows of a
    narrow DistEmbedding are read and trained as float32."""
    x = torch.randn(NODES, 5)
    path = graphwire.partition_graph(tuple(np.array(arrays_of_communities()["edges"]).T), "narrow", 2, tmp_path / "g",
                                     method="random", num_nodes=NODES, store={"x": "bfloat16"},
                                     node_features={"x": x, "number": torch.arange(NODES)})
    dgl.distributed.initialize("there_is_no_ip_config.txt")
    try:
        ids = torch.tensor([5, 0, 5])
        for dtype in (None, torch.bfloat16, torch.float16):
            graph = dgl.distributed.DistGraph("narrow", part_config=str(path), dtype=dtype)
            stored = x.bfloat16()[graph.ndata["orig_id"][ids]]
            found, again = graph.ndata["x"], pickle.loads(pickle.dumps(graph.ndata["x"]))
            assert found.dtype == (dtype or torch.float32) and graph.ndata["number"].dtype == torch.int64
            assert torch.equal(found[ids], stored.float().to(found.dtype)) and torch.equal(again[ids], found[ids])
        policy = graph.get_node_partition_policy("_N")
        table = dgl.distributed.DistEmbedding(NODES, 4, "narrow", lambda shape, dtype: torch.ones(shape, dtype=dtype),
                                              policy, dtype=torch.bfloat16)
        rows = table(ids)
        assert table.weight.dtype == torch.bfloat16 and rows.dtype == torch.float32
        (rows * torch.arange(4)).sum().backward()
        dgl.distributed.optim.SparseAdagrad([table], lr=0.1).step()
        assert torch.equal(table.weight[[5]], torch.tensor([[1, 0.9, 0.9, 0.9]]).bfloat16())
        with pytest.raises(ValueError, match="float32, bfloat16, float16"):
            dgl.distributed.DistEmbedding(NODES, 4, "other", None, policy, dtype=torch.int64)
    finally:
        dgl.distributed.exit_client()
