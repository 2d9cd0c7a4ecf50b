"""Names and order of types: names with spaces and with characters outside ASCII, everywhere that DGL accepts them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphwire._base.escape import escaped_tensor, unescaped_tensor
from graphwire.dgl.install import install

dgl = install()
AUTHOR, FIELD, PAPER = "an author", "mid/フィールド", "paper-x"  # DGL sorts types; edges name "mid" last
WRITES, HAS, CITES = (AUTHOR, "writes+", PAPER), (PAPER, "has", FIELD), (PAPER, "cites é", PAPER)
COUNTS = {AUTHOR: 30, PAPER: 20, FIELD: 10}


@pytest.fixture(scope="module")
def whole():
    random = np.random.default_rng(1)
    made = dgl.heterograph({etype: tuple(torch.from_numpy(random.integers(0, COUNTS[ntype], 60))
                                         for ntype in etype[::2]) for etype in (CITES, WRITES, HAS)}, COUNTS)
    made.nodes[PAPER].data["a b"] = torch.arange(20)
    made.edges[WRITES].data["größe"] = torch.arange(60)
    return made


@pytest.fixture(scope="module", params=[1, 2])
def g(whole, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("names") / "parts"
    dgl.distributed.partition_graph(whole, "g", request.param, str(folder), part_method="random")
    dgl.distributed.initialize("none.txt")
    opened = dgl.distributed.DistGraph("g", part_config=str(folder / "g.json"))
    opened.path = str(folder / "g.json")
    yield opened
    dgl.distributed.exit_client()


def test_types_keep_their_order(g, whole):
    """The types of the graph before its partition: their numbers, and so homogeneous ids, depend on the order."""
    book = g.get_partition_book()
    for some in (g, book, dgl.distributed.load_partition_book(g.path, 0)[0]):
        assert (some.ntypes, some.canonical_etypes) == (whole.ntypes, whole.canonical_etypes)
    assert [g.get_ntype_id(ntype) for ntype in whole.ntypes] == [0, 1, 2]


def test_parts_that_are_read(g, whole):
    """load_partition_book and load_partition have the names, and no original ids among the features."""
    _, _, ntypes, etypes = dgl.distributed.load_partition_book(g.path, 0)
    assert (ntypes, etypes) == ({ntype: number for number, ntype in enumerate(whole.ntypes)},
                                {etype: number for number, etype in enumerate(whole.canonical_etypes)})
    _, nodes, edges, _, _, _, _ = dgl.distributed.load_partition(g.path, 0)
    assert (list(nodes), list(edges)) == ([f"{PAPER}/a b"], [f"{':'.join(WRITES)}/größe"])
    assert list(map(list, dgl.distributed.load_partition_feats(g.path, 0))) == [list(nodes), list(edges)]


def test_tensors_of_such_types(g):
    """Tensors and embeddings by any name: each has rows of its own, and the name that DGL gives it."""
    policies = {ntype: g.get_node_partition_policy(ntype) for ntype in COUNTS}
    names = ["x", "a~b", "a/b", "a b", "a+20b", "schön"]
    tensors = [dgl.distributed.DistTensor((10,), torch.int64, name, part_policy=policies[FIELD]) for name in names]
    for number, tensor in enumerate(tensors):
        tensor[torch.arange(10)] = torch.full((10,), number)
    assert [tensor[3].item() for tensor in tensors] == list(range(len(names)))
    assert [tensor.name for tensor in tensors] == [f"node~{FIELD}~{name}" for name in names]
    assert {tensor.name for tensor in tensors} <= set(g._client.gdata_name_list())
    filled = dgl.distributed.DistTensor((60,), torch.int64, "of edges", lambda shape, dtype: torch.ones(
        shape, dtype=dtype), g.get_edge_partition_policy(WRITES))
    assert filled[:].sum() == 60 and filled.name == f"edge~{':'.join(WRITES)}~of edges"
    table = dgl.distributed.DistEmbedding(30, 2, "rows of authors", part_policy=policies[AUTHOR])
    optimizer = dgl.distributed.optim.SparseAdam([table], lr=1.0)
    table(torch.tensor([4])).sum().backward()
    optimizer.step()
    assert torch.allclose(table.weight[4], torch.full((1, 2), -1.0))


def test_names_of_tensors_stay_apart():
    names = ["a", "a/b", "a~b", "a:b", "a+b", "a+2Bb", "a b", "ü", "+C3+BC"]
    found = [escaped_tensor(name) for name in names]
    assert len(set(found)) == len(names) and found[:2] == names[:2]
    assert [unescaped_tensor(name) for name in found] == names


def test_out_edges_make_no_blocks(g):
    """A block of out-edges would end at no node."""
    for sampler in (dgl.dataloading.NeighborSampler([2], edge_dir="out"),
                    dgl.dataloading.MultiLayerFullNeighborSampler(1, edge_dir="out")):
        with pytest.raises(dgl.DGLError, match=r"edge_dir='out'.*leave it out"):
            sampler.sample(g, {PAPER: torch.tensor([1])})
    assert dgl.distributed.sample_neighbors(g, {PAPER: torch.tensor([1])}, 2, edge_dir="out") is not None
