"""to_pyg() and the samplers copy rows in the calling thread: the results are those of torch's indexing and of a plain
version of the subgraph, bit for bit, and no thread of torch starts."""

from __future__ import annotations

import subprocess
import sys

import graphwire
import numpy as np
import pyg_oracle as oracle
import pytest
import torch
from graphwire.pyg import from_pyg, rows

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64, torch.complex64]
SHAPES = [(0,), (1,), (7,), (7, 1), (7, 3), (7, 0), (5, 2, 3), (0, 4)]


def some_rows(dtype, shape):
    count = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
    return torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8).view(dtype).reshape(shape)


def same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    flat = [one.detach().clone().reshape(-1).view(torch.uint8) for one in (found, expected) if one.numel()]
    assert found.is_contiguous() and (not flat or torch.equal(*flat))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rows(dtype):
    torch.manual_seed(1)
    for shape in SHAPES:
        given = some_rows(dtype, shape)
        index = np.random.default_rng(1).integers(0, max(1, shape[0]), 9 if shape[0] else 0)
        for one in (given, given.t().contiguous().t() if len(shape) == 2 else given):  # and of another order in memory
            same(rows.taken(one, index), one[torch.from_numpy(index)])
            same(rows.taken(one, None), one)
            assert not shape[0] or rows.taken(one, None).data_ptr() != one.data_ptr() or not one.numel()
            same(rows.joined([(one, index), (one, None), (one, index[:0])]),
                 torch.cat([one[torch.from_numpy(index)], one]))
        for places in (torch.from_numpy(index), torch.from_numpy(index) - shape[0], torch.empty(0, dtype=torch.int64)):
            same(rows.selected(given, places), given[places])
        for place in (shape[0], -1 - shape[0]) if given.numel() else ():
            with pytest.raises(IndexError):
                rows.selected(given, torch.tensor([place]))
        for count in (0, 3):
            same(rows.with_zeros(given, count), torch.cat([given, given.new_zeros((count, *shape[1:]))]))
    if dtype.is_floating_point:  # gradients pass
        given = torch.ones(3, 2, dtype=dtype, requires_grad=True)
        rows.taken(given, np.array([2, 2])).sum().backward()
        assert given.grad.sum() == 4


class Plain:
    """The subgraph by its definition, an edge at a time: nodes {type: rows of the batch}, edges {type: [(hop, place in
    the hop's block, source, destination)]}, the ends as places among the nodes."""

    def __init__(self, batch, seeds):
        first = batch.blocks[-1]
        self.nodes = {ntype: seeds.get(ntype, list(range(first.num_dst[ntype]))) for ntype in batch.nodes}
        self.counts = {ntype: [len(some)] for ntype, some in self.nodes.items()}
        hop_of = {ntype: dict.fromkeys(range(first.num_dst[ntype]), 0) for ntype in batch.nodes}
        kept = {}
        for hop, block in enumerate(reversed(batch.blocks)):
            for etype in batch.etypes:
                edges = block.edges.get(etype)
                source, _, target = etype.split(":")
                ends = [] if edges is None else list(zip(*edges.edge_index.tolist()))
                kept[hop, etype] = [(place, src, dst) for place, (src, dst) in enumerate(ends)
                                    if hop_of[target].get(dst) == hop]
                for _, src, _ in kept[hop, etype]:
                    hop_of[source].setdefault(src, hop + 1)
            for ntype, hops in hop_of.items():
                new = sorted(row for row, at in hops.items() if at == hop + 1)
                self.nodes[ntype] = [*self.nodes[ntype], *new]
                self.counts[ntype].append(len(new))
        place = {ntype: {row: at for at, row in reversed(list(enumerate(some)))} for ntype, some in self.nodes.items()}
        self.edges = {etype: [] for etype in batch.etypes}
        for (hop, etype), some in kept.items():
            source, _, target = etype.split(":")
            found = [(hop, at, place[source][src], place[target][dst]) for at, src, dst in some]
            again = [at for at, row in enumerate(seeds.get(target, [])) if place[target][row] != at]
            if hop == 0:
                found += [(0, at, place[source][src], seed) for seed in again for at, src, dst in some
                          if dst == seeds[target][seed]]
            self.edges[etype] += found


def check(batch, found, seeds):
    plain, hetero = Plain(batch, seeds), len(batch.nodes) > 1 or len(batch.etypes) > 1
    for ntype, some in plain.nodes.items():
        store = found[ntype] if hetero else found
        assert store.num_sampled_nodes == plain.counts[ntype]
        same(store.n_id, batch.nodes[ntype][some] if some else torch.empty(0, dtype=torch.int64))
        for name, given in batch.features[ntype].items():
            same(store[name], given[some] if some else given[:0])
    for etype, some in plain.edges.items():
        store, blocks = found[tuple(etype.split(":"))] if hetero else found, batch.blocks[::-1]
        same(store.edge_index, torch.tensor([[src for *_, src, _ in some], [dst for *_, dst in some]],
                                            dtype=torch.int64))
        assert store.e_id.tolist() == [int(blocks[hop].edges[etype].edge_ids[at]) for hop, at, *_ in some]
        assert store.num_sampled_edges == [sum(hop == at for at, *_ in some) for hop in range(len(blocks))]
        if some and "edge_attr" in blocks[some[0][0]].edges[etype].data:
            same(store.edge_attr, torch.stack([blocks[hop].edges[etype].data["edge_attr"][at] for hop, at, *_ in some]))


@pytest.mark.parametrize("seed", range(16))
def test_subgraphs(seed, tmp_path):
    """Random graphs and counts, seeds that repeat, both frontiers, both index types."""
    random = np.random.default_rng(seed)
    data = oracle.random_data(seed)
    with from_pyg(data, tmp_path / "g", num_parts=1 + seed % 3) as graph:
        edges = [etype for etype in graph.etypes if graph.num_edges(etype)]
        for number in range(6):
            counts = random.choice([-1, 0, 1, 3], 1 + number % 3).tolist()
            more = {"features": {ntype: ["x", "half", "y"] for ntype in graph.ntypes},
                    "edge_features": {etype: "edge_attr" for etype in graph.etypes},
                    "frontier": ("all", "new")[number % 2]}
            names = {"edge_features": {"edge_attr": "edge_attr"}}
            kinds = random.permutation(graph.ntypes)[:1 + number % 2].tolist()
            seeds = {ntype: random.integers(0, graph.num_nodes(ntype), 9).tolist() for ntype in kinds}
            batch = graphwire.sample(graph, seeds, counts, seed=number, **more)
            check(batch, batch.to_pyg(names), {ntype: some.tolist() for ntype, some in batch.seed_rows.items()})
            if edges:
                links = {edges[0]: random.integers(0, graph.num_edges(edges[0]), 5)}
                loader = graphwire.EdgeLoader(graph, links, counts, negatives=number % 3, batch_size=5,
                                              index_dtype=("int32", "int64")[number % 2], **more)
                for batch in loader:
                    check(batch, batch.to_pyg(names), {})


NO_THREADS = """
import os, torch, graphwire
torch.set_num_threads(4)
graph = graphwire.open("%s")
batches = [list(graphwire.NodeLoader(graph, None, [-1, 5], features="x", edge_features="w", frontier=frontier,
                                     batch_size=2000)) for frontier in ("all", "new")]
links = list(graphwire.EdgeLoader(graph, None, [-1], negatives=1, batch_size=50000))
ends = torch.randint(0, 2000, (2, 16000))
loaders = [graphwire.pyg.NeighborLoader(graph, [-1, 5], torch.cat([torch.arange(2000)] * 2), batch_size=4000),
           *(graphwire.pyg.LinkNeighborLoader(graph, [-1], ends, neg_sampling=asked, batch_size=16000)
             for asked in (None, ("binary", 3), ("triplet", 3)))]
begun = len(os.listdir("/proc/self/task"))
for batch in (*batches[0], *batches[1], *links):
    found = batch.to_pyg()
    assert found.edge_index.numel() > 100000
for loader in loaders:
    assert all(batch.edge_index.numel() > 100000 for batch in loader)
assert len(os.listdir("/proc/self/task")) == begun, "torch has started threads"
torch.ones(1000, 1000).add(1)
assert len(os.listdir("/proc/self/task")) > begun, "torch starts none here"
"""


@pytest.mark.skipif(not torch.backends.openmp.is_available(), reason="torch has no threads of its own")
def test_no_threads(tmp_path):
    """Arrays of this length are above the length from which torch uses several threads."""
    torch.manual_seed(1)
    data = oracle.Data(edge_index=torch.randint(0, 2000, (2, 100000)), x=torch.randn(2000, 64), w=torch.rand(100000))
    graphwire.partition_graph(data, "g", 1, tmp_path / "g")
    done = subprocess.run([sys.executable, "-c", NO_THREADS % (tmp_path / "g")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
