"""dgl.distributed's partition books, and the shares of ranks: node_split and edge_split."""

from __future__ import annotations

import sys

import graphwire
import numpy as np
import pytest
import torch
from conftest import NODES, arrays_of_communities, run
from graphwire.dgl.distributed.book import book_of
from graphwire.dgl.distributed.context import context
from graphwire.dgl.install import install

dgl = install()
EDGES = len(arrays_of_communities()["edges"])


@pytest.fixture(scope="module")
def g(two_parts):
    """In two parts."""
    dgl.distributed.initialize("there_is_no_ip_config.txt")
    graph = dgl.distributed.DistGraph("communities", part_config=str(two_parts / "communities.json"))
    yield graph
    dgl.distributed.exit_client()


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_shares_by_the_book_alone(two_parts, world, monkeypatch):
    """Without a DistGraph. force_even gives consecutive ranges, the longer ones first, as DGL divides."""
    monkeypatch.setattr(context, "graph", None)
    monkeypatch.setattr(type(context), "world", world)
    book = dgl.distributed.load_partition_book(str(two_parts / "communities.json"), 0)[0]
    for split, count, seed in ((dgl.distributed.node_split, NODES, 1), (dgl.distributed.edge_split, EDGES, 2)):
        mask = torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.3
        expected = torch.nonzero(mask).flatten()
        shares = [split(mask, book, rank=rank) for rank in range(world)]
        assert torch.equal(torch.cat(shares), expected)
        assert list(map(len, shares)) == list(map(len, np.array_split(expected.numpy(), world)))
        parts = [split(mask, book, rank=rank, force_even=False) for rank in range(world)]
        assert torch.equal(torch.sort(torch.cat(parts))[0], expected)
    assert context.graph is None


def test_the_book(g):
    book = g.get_partition_book()
    assert book.num_partitions() == 2 and book.partid == 0
    nodes = torch.cat([book.partid2nids(part) for part in range(2)])
    edges = torch.cat([book.partid2eids(part) for part in range(2)])
    assert nodes.tolist() == list(range(NODES)) and edges.tolist() == list(range(EDGES))
    for part in range(2):
        assert (book.nid2partid(book.partid2nids(part)) == part).all()
        assert (book.eid2partid(book.partid2eids(part)) == part).all()
        assert book.metadata()[part]["num_nodes"] == len(book.partid2nids(part))
    _, dst = g.find_edges(edges)
    assert torch.equal(book.nid2partid(dst), book.eid2partid(edges))  # an edge is in the part of its destination
    assert book.nid2localnid(torch.tensor([4]), 0).tolist() == [4]
    with pytest.raises(RuntimeError, match="part 1"):
        book.nid2localnid(torch.tensor([4]), 1)


def test_a_book_from_ranges(g, two_parts):
    """DGL's constructor of a RangePartitionBook gives the book of the graph."""
    from dgl.distributed.graph_partition_book import HeteroDataName, RangePartitionBook

    own = g.get_partition_book()
    ranges = [[[int(ids[0]), int(ids[-1]) + 1] for ids in map(call, range(2))] for call in (
        own.partid2nids, own.partid2eids)]
    etype = ("_N", "_E", "_N")
    made = RangePartitionBook(1, 2, {"_N": torch.tensor(ranges[0])}, {etype: np.array(ranges[1])}, {"_N": 0},
                              {etype: 0})
    loaded = dgl.distributed.load_partition_book(str(two_parts / "communities.json"), 1)[0]
    assert all(isinstance(book, RangePartitionBook) for book in (own, made, loaded))
    assert made.metadata() == own.metadata() == loaded.metadata() and made.partid == 1
    ids = torch.arange(0, NODES, 7)
    assert torch.equal(made.nid2partid(ids), own.nid2partid(ids))
    typed = RangePartitionBook(0, 2, {"a": [[0, 3], [5, 9]], "b": [[3, 5], [9, 10]]},
                               {("a", "r", "b"): [[0, 4], [4, 6]]}, {"b": 1, "a": 0}, {("a", "r", "b"): 0})
    assert typed.ntypes == ["a", "b"] and typed.map_to_homo_nid(torch.tensor([0, 3, 6]), "a").tolist() == [0, 5, 8]
    assert typed.map_to_per_ntype(torch.tensor([4, 9]))[1].tolist() == [1, 2]
    name = dgl.distributed.EdgePartitionPolicy(typed, ("a", "r", "b")).get_data_name("x")
    assert name == "edge~a:r:b~x" and isinstance(name, HeteroDataName)
    assert (name.get_name(), name.get_type(), name.is_edge(), name.is_node()) == ("x", ("a", "r", "b"), True, False)
    for wrong in (lambda: RangePartitionBook(0, 1, {"a": [[0, 1]]}, {"r": [[0, 1]]}, {"a": 0}, {"r": 0}),
                  lambda: RangePartitionBook(2, 2, {}, {}, {}, {}),
                  lambda: RangePartitionBook(0, 2, {"a": [[0, 1]]}, {}, {"a": 0}, {}),
                  lambda: dgl.distributed.EdgePartitionPolicy(typed, "s"),
                  lambda: HeteroDataName(False, "r", "x")):
        with pytest.raises(AssertionError):
            wrong()


def test_node_split_takes_masks_and_all(g, caplog, monkeypatch):
    monkeypatch.setattr(sys.modules["graphwire.dgl.distributed.split"], "_noted", False)
    book, split = g.get_partition_book(), dgl.distributed.node_split
    mask = g.ndata["train_mask"]
    expected = torch.nonzero(mask[:]).flatten()
    for given in (mask, mask[:], mask[:].numpy(), mask[:].to(torch.uint8)):
        assert torch.equal(split(given, book, force_even=True), expected)
    assert torch.equal(split(mask), expected)  # a DistTensor has its own book
    assert torch.equal(split(np.arange(NODES), book), torch.arange(NODES))  # DGL drops node 0
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("graphwire.dgl", "WARNING") and "np.arange" in record.message
    assert torch.equal(split(mask, book, force_even=False), expected)
    assert len(dgl.distributed.edge_split(torch.ones(EDGES, dtype=torch.bool), book, force_even=True)) == EDGES
    with pytest.raises(AssertionError, match="length of boolean mask"):
        split(torch.ones(5, dtype=torch.bool), book)
    with pytest.raises(AssertionError, match="partition book"):
        split(torch.ones(NODES, dtype=torch.bool))


@pytest.mark.parametrize("force_even", [True, False])
@pytest.mark.parametrize("world", [2, 3, 5])
def test_shares_of_any_number_of_trainers(g, world, force_even, monkeypatch):
    """DGL requires a multiple of the number of parts."""
    monkeypatch.setattr(type(context), "world", world)
    mask = g.ndata["train_mask"]
    shares = [dgl.distributed.node_split(mask, rank=rank, force_even=force_even) for rank in range(world)]
    assert torch.equal(torch.sort(torch.cat(shares))[0], torch.nonzero(mask[:]).flatten())
    if force_even:
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with pytest.raises(AssertionError, match="rank"):
        dgl.distributed.node_split(mask, rank=world)


@pytest.mark.parametrize("parts", [3, 4, 5, 6])
def test_shares_of_fewer_trainers_than_parts(communities, parts, tmp_path, monkeypatch):
    """force_even=False: each id belongs to one trainer, which gets the whole part if it is the part's only trainer."""
    run("partition", communities, "--num-parts", parts, "--method", "random", "--out", tmp_path / "p")
    with graphwire.open(tmp_path / "p") as graph:
        monkeypatch.setattr(context, "graph", graph)
        book = book_of(graph, 0)
        for world in range(1, 6):
            monkeypatch.setattr(type(context), "world", world)
            shares = [dgl.distributed.node_split(torch.ones(NODES, dtype=torch.bool), book, rank=rank, force_even=False)
                      for rank in range(world)]
            assert torch.equal(torch.sort(torch.cat(shares))[0], torch.arange(NODES)), (parts, world)
            if world > parts:
                continue
            for rank, share in enumerate(shares):
                has = [part for part in range(parts) if torch.isin(book.partid2nids(part), share).all()]
                assert context.part_of(rank, parts) in has and len(share) == sum(
                    len(book.partid2nids(part)) for part in has), (parts, world, rank)
