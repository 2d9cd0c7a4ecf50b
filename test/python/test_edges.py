"""Edges by id and by their ends, lists around nodes, shares of ranks, and mini-batches of edges, compared with the
input arrays."""

from __future__ import annotations

import weakref

import graphwire
import numpy as np
import pytest
import torch
from conftest import arrays_of_hetero
from graphwire._graph import edges


@pytest.fixture(scope="module")
def ends(graph):
    """Source and destination of each paper:cites:paper, by the graph's ids."""
    src, dst = arrays_of_hetero()["cites"]
    original = graph.gather("orig_id", slice(None), etype="cites").numpy()
    return src[original], dst[original]


def test_ends_of_edges(graph, ends):
    src, dst = graph.find_edges([5, 1999, 5], "cites")
    assert src.tolist() == ends[0][[5, 1999, 5]].tolist() and dst.tolist() == ends[1][[5, 1999, 5]].tolist()
    with pytest.raises(graphwire.OutOfRangeError, match="2000"):
        graph.find_edges([2000], "cites")


def test_edges_by_their_ends(graph, ends):
    random = np.random.default_rng(0)
    src, dst = ends[0][:50], np.where(random.random(50) < 0.5, ends[1][:50], random.integers(0, 300, 50))
    found, there = graph.edge_ids(src, dst, "cites"), graph.has_edges(src, dst, "cites")
    for i, pair in enumerate(zip(src, dst)):
        expected = np.flatnonzero((ends[0] == pair[0]) & (ends[1] == pair[1]))
        assert found.of(i).edge_ids.tolist() == expected.tolist() and bool(there[i]) == bool(len(expected))
    with pytest.raises(ValueError, match="sources"):
        graph.edge_ids([1], [1, 2], "cites")


def test_neighbours(graph, ends):
    whole = graph.neighbours([7, 3, 7], "cites")
    for i, node in enumerate([7, 3, 7]):
        part = whole.of(i)
        assert sorted(part.edge_ids.tolist()) == np.flatnonzero(ends[1] == node).tolist()
        assert np.array_equal(part.src.numpy(), ends[0][part.edge_ids]) and set(part.dst.tolist()) <= {node}
    batch = graphwire.sample(graph, range(100), [{"cites": 3}], ntype="paper", seed=4, stream=9)
    some = graph.neighbours(range(100), "cites", 3, seed=4, stream=9)
    assert torch.equal(some.edge_ids, batch.blocks[0]["cites"].edge_ids)
    assert len(graph.neighbours([], "cites")) == 0


def test_arrays_outlive_their_list(hetero, ends, monkeypatch):
    """The arrays are views of the list's memory, which is freed after the last of them; the graph may be closed
    earlier."""
    made, owned = [], edges.owned

    def told(*arguments):
        memory = owned(*arguments)
        made.append(weakref.ref(memory))
        return memory

    def freed():
        return sum(memory() is None for memory in made)

    monkeypatch.setattr(edges, "owned", told)
    with graphwire.open(hetero) as graph:
        kept = [graph.neighbours([node], "cites").edge_ids for node in range(300)]
    assert not freed()
    for node, ids in enumerate(kept):
        assert ids.tolist() == np.flatnonzero(ends[1] == node).tolist()
    some = sum(map(bool, map(len, kept)))
    del kept[:150], ids
    assert 0 < freed() < some
    kept.clear()
    assert freed() == 300


def induced(ends, src, dst, groups, held):
    """(row, col, ids) of the edges among lists of nodes, from the edges of the graph in the order of their ids."""
    first = {}
    for row, key in enumerate(zip(src.tolist(), groups[0])):
        first.setdefault(key, row)
    by_dst = {}
    for edge, (a, b) in enumerate(zip(*(some.tolist() for some in ends))):
        by_dst.setdefault(b, []).append((a, edge))
    return [(first[a, group], col, edge) for col, (b, group) in enumerate(zip(dst.tolist(), groups[1]))
            for a, edge in by_dst.get(b, ()) if (a, group) in first and edge not in held]


@pytest.mark.parametrize("groups", [0, 1, 6])
def test_subgraphs(graph, hetero2, groups):
    random = np.random.default_rng(groups)
    counts = {"paper": 300, "author": 100}
    with graphwire.open(servers=hetero2.addresses) as two, graphwire.open(
            servers=hetero2.addresses, neighbours="requests") as asked:
        for where in (graph, two, asked):
            nodes = {ntype: random.integers(0, count, count // 2) for ntype, count in counts.items()}
            numbers = {ntype: random.integers(0, max(groups, 1), len(ids)) * 7 for ntype, ids in nodes.items()}
            held = {etype: random.integers(0, where.num_edges(etype), 200) for etype in where.etypes}
            found = where.subgraph(nodes, groups=numbers if groups else None,
                                   held_out=graphwire.HeldOut(where, held) if groups else None)
            assert list(found) == where.etypes
            for etype, some in found.items():
                src, dst = where.ends(etype)
                expected = induced([ids.numpy() for ids in where.find_edges(slice(None), etype)], nodes[src],
                                   nodes[dst], (numbers[src].tolist(), numbers[dst].tolist()),
                                   set(held[etype].tolist()) if groups else ())
                assert len(expected) > 5
                rows = list(zip(some.src.tolist(), some.dst.tolist(), some.edge_ids.tolist()))
                assert rows == expected
                assert some.offsets.tolist() == np.searchsorted([col for _, col, _ in rows],
                                                                np.arange(len(nodes[dst]) + 1)).tolist()


def test_nodes_of_subgraphs(graph, whole):
    assert list(graph.subgraph({"paper": [1, 2]})) == ["paper:cites:paper", "paper:rev_cites:paper"]
    assert len(graph.subgraph({"paper": []})["paper:cites:paper"]) == 0
    every = graph.subgraph({"paper": slice(None), "author": range(100)}, ["writes"])["author:writes:paper"]
    assert every.edge_ids.tolist() == list(range(900))
    with graphwire.open(whole) as one:
        assert len(next(iter(one.subgraph(slice(None)).values()))) == one.num_edges()
    for error, text, nodes, more in (
            (TypeError, "node type", [1], {}), (ValueError, "needs those of author", {"paper": [1]},
                                                {"etypes": ["writes"]}),
            (graphwire.OutOfRangeError, "300", {"paper": [1, 300]}, {}),
            (graphwire.NotFoundError, "editor", {"editor": [1]}, {}),
            (ValueError, "1 values for 2 nodes of paper", {"paper": [1, 2]}, {"groups": {"paper": [1]}}),
            (ValueError, "2\\^32", {"paper": [1, 2]}, {"groups": {"paper": [1, -1]}}),
            (TypeError, "held_out is a graphwire.HeldOut, not 3", {"paper": [1]}, {"held_out": 3}),
            (TypeError, "etypes is a list of edge types, not 'cites'", {"paper": [1]}, {"etypes": "cites"}),
            (TypeError, "etypes is a list of edge types, not 0", {"paper": [1]}, {"etypes": 0}),
            (TypeError, "etype is .*, not 0", {"paper": [1]}, {"etypes": [0]})):
        with pytest.raises(error, match=text):
            graph.subgraph(nodes, **more)


def test_edges_that_start_at_nodes(graph, hetero2):
    with graphwire.open(servers=hetero2.addresses) as served:
        for where in (graph, served):
            src, dst = (ids.numpy() for ids in where.find_edges(slice(None), "writes"))
            degrees = where.out_degrees(range(100), "writes").numpy()
            assert np.array_equal(degrees, np.bincount(src, minlength=100))
            whole = where.neighbours([7, 3, 7], "writes", out_edges=True)
            some = where.neighbours([7, 3, 7], "writes", 2, out_edges=True, seed=4)
            for i, node in enumerate([7, 3, 7]):
                for found, count in ((whole.of(i), degrees[node]), (some.of(i), 2)):
                    ids = found.edge_ids.tolist()
                    assert len(set(ids)) == len(ids) == count and set(src[ids]) == {node} == set(found.src.tolist())
                    assert np.array_equal(found.dst.numpy(), dst[ids])


def test_out_edges_need_a_transpose(whole):
    with graphwire.open(whole) as graph:
        with pytest.raises(graphwire.GraphwireError, match="--transpose"):
            graph.out_degrees([1])
        with pytest.raises(graphwire.GraphwireError, match="--transpose"):
            graph.neighbours([1], out_edges=True)


@pytest.mark.parametrize("world", [1, 3])
def test_ranks_share(graph, world):
    mask = arrays_of_hetero()["train_mask"]
    for what in ("train_mask", mask, np.flatnonzero(mask), torch.from_numpy(mask)):
        shares = [graph.split(what, "paper", world=world, rank=rank) for rank in range(world)]
        assert sorted(torch.cat(shares).tolist()) == np.flatnonzero(mask).tolist()
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert sorted(graph.split(etype="cites").tolist()) == list(range(2000))
    assert len(graph.split([], "paper")) == 0


def test_a_share_lies_on_the_ranks_part(parts):
    with graphwire.open(parts) as graph:
        for rank in range(2):
            own = graph.part_range(rank)
            assert set(graph.split(world=2, rank=rank).tolist()) == set(own)


def test_a_share_is_not_divided_again(graph, first_of_two):
    """A loader also takes world and rank from torch.distributed, and would use only half of a rank's share."""
    papers, cites = graph.split("train_mask", "paper"), graph.split(etype="cites")
    assert (len(papers), len(cites)) == (50, 1000)
    for kind, share, of in ((graphwire.NodeLoader, papers, {"ntype": "paper"}),
                            (graphwire.NodeLoader, {"paper": papers}, {}),
                            (graphwire.EdgeLoader, cites, {"etype": "cites"})):
        with pytest.raises(ValueError, match="world=1, rank=0"):
            kind(graph, share, [2], batch_size=10, **of)
        loader = kind(graph, share, [2], batch_size=10, world=1, rank=0, **of)
        assert sum(batch.num_seeds for batch in loader) == len(share if kind is graphwire.EdgeLoader else papers)
    assert len(graphwire.NodeLoader(graph, graph.feature("train_mask", "paper")[:], [2], ntype="paper",
                                    batch_size=10)) == 5  # of ten


@pytest.mark.parametrize("end", ["src", "dst"])
def test_batches_of_edges(graph, ends, end):
    loader = graphwire.EdgeLoader(graph, range(100, 500), [4, 3], etype="cites", negatives=5, negative_end=end,
                                  features={"paper": "feat"}, labels="strength", batch_size=64, shuffle=True)
    seen = []
    for batch in loader:
        papers = batch.nodes["paper"].numpy()
        ids = batch.seeds.numpy()
        seen += ids.tolist()
        assert np.array_equal(papers[batch.src_rows], ends[0][ids])
        assert np.array_equal(papers[batch.dst_rows], ends[1][ids])
        assert batch.negative_rows.shape == (len(ids), 5)
        assert int(batch.negative_rows.max()) < batch.blocks[-1].num_dst["paper"]  # the model has outputs for these
        original = graph.gather("orig_id", ids, etype="cites").numpy()
        assert np.array_equal(batch.y.numpy(), arrays_of_hetero()["strength"][original])
        assert torch.equal(batch.to("cpu").negative_rows, batch.negative_rows) and batch.seed_rows is None
    assert sorted(seen) == list(range(100, 500)) and len(loader) == 7


def test_negatives_of_a_list(graph):
    loader = graphwire.EdgeLoader(graph, None, [2], etype="writes", negatives=3, negative_ids=[1, 2, 3], batch_size=100)
    for batch in loader:
        assert set(batch.nodes["paper"][batch.negative_rows].flatten().tolist()) <= {1, 2, 3}


def test_no_true_edges(graph, ends):
    there = set(zip(*map(np.ndarray.tolist, ends)))
    loader = graphwire.EdgeLoader(graph, None, [2], etype="cites", negatives=20, no_true_edges=True, batch_size=2000)
    for batch in loader:
        papers = batch.nodes["paper"]
        src = papers[batch.src_rows].repeat_interleave(20).tolist()
        true = sum(pair in there for pair in zip(src, papers[batch.negative_rows.flatten()].tolist()))
        assert true == batch.true_edges < 5  # at random it would be one in 45


@pytest.mark.parametrize("exclude, options", [
    (["edges"], {}), (["ends"], {}), (["edges", "reverse"], {}),
    (["edges"], {"reverse_etype": "paper:rev_cites:paper"})])
def test_what_is_excluded(graph, ends, exclude, options):
    loader = graphwire.EdgeLoader(graph, None, [-1], etype="cites", exclude=exclude, batch_size=200, **options)
    for batch in loader:
        seeds, papers = set(batch.seeds.tolist()), batch.nodes["paper"]
        block = batch.blocks[0]
        assert not seeds & set(block["cites"].edge_ids.tolist())
        pairs = set(zip(papers[batch.src_rows].tolist(), papers[batch.dst_rows].tolist()))

        def sampled(etype, block=block, papers=papers):
            edges = block[etype]
            return set(zip(papers[edges.indices].tolist(), papers[edges.dst].tolist()))

        turned = {pair[::-1] for pair in pairs}
        assert exclude != ["ends"] or not sampled("cites") & pairs
        if len(exclude) > 1 or options:
            assert not sampled("rev_cites") & turned
        else:
            assert sampled("rev_cites") & turned


def test_reverses_by_id(graph, ends):
    """The reverse of every edge, by the reverse's id."""
    src, dst = graph.find_edges(slice(None), "rev_cites")
    place = {}
    for i, pair in enumerate(zip(src.tolist(), dst.tolist())):
        place.setdefault(pair, []).append(i)
    reverse = [place[pair[::-1]].pop() for pair in zip(*map(np.ndarray.tolist, ends))]
    loader = graphwire.EdgeLoader(graph, None, [-1], etype="cites", reverse_etype="rev_cites", reverse_ids=reverse,
                                  batch_size=200)
    for batch in loader:
        gone = {reverse[edge] for edge in batch.seeds.tolist()}
        assert not gone & set(batch.blocks[0]["rev_cites"].edge_ids.tolist())


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """30 edges, then the same edges reversed."""
    src, dst = np.random.default_rng(2).integers(0, 12, (2, 30))
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    with graphwire.open(graphwire.partition_graph(both, "doubled", 2, tmp_path_factory.mktemp("doubled"))) as opened:
        yield opened


def test_reverses_are_held_against_the_ends(doubled):
    """Any id of an edge with the reversed ends is accepted. A batch with another id is refused, and the error names it.
    Without reverse_etype the only type is meant."""
    src, dst = (ends.tolist() for ends in doubled.find_edges(slice(None)))
    right = [next(j for j in range(60) if (src[j], dst[j]) == (dst[i], src[i])) for i in range(60)]
    batches = list(graphwire.EdgeLoader(doubled, None, [-1], reverse_ids=right, batch_size=7))
    for batch in batches:
        there = set(batch.blocks[0]["_E"].edge_ids.tolist())
        assert not {right[edge] for edge in batch.seeds.tolist()} & there
    assert len(batches) == 9
    random = np.random.default_rng(3)
    for _ in range(40):
        edge, other = (int(number) for number in random.integers(0, 60, 2))
        loader = graphwire.EdgeLoader(doubled, [edge], [-1], batch_size=1,
                                      reverse_ids=[*right[:edge], other, *right[edge + 1:]])
        if (src[other], dst[other]) == (dst[edge], src[edge]):
            assert other not in next(iter(loader)).blocks[0]["_E"].edge_ids.tolist()
            continue
        ends = f"{src[edge]} to {dst[edge]}"
        with pytest.raises(graphwire.InvalidError, match=f"edge {edge} of .* from {ends}, and edge {other} of "):
            next(iter(loader))


@pytest.mark.parametrize("options, text", [
    ({"negative_end": "left"}, "negative_end"), ({"exclude": ["nodes"]}, "exclude has nodes"),
    ({"reverse_etype": "writes"}, "reverse"), ({"reverse_ids": range(2000)}, "which edge type"),
    ({"labels": "absent"}, "absent")])
def test_errors(graph, options, text):
    with pytest.raises((ValueError, graphwire.GraphwireError), match=text):
        graphwire.EdgeLoader(graph, None, [2], etype="cites", negatives=1, **options)


@pytest.mark.parametrize("call, kind, text", [
    (lambda g: g.part_range(9, "paper"), graphwire.OutOfRangeError, "part 9"),
    (lambda g: g.part_edge_range(9, "cites"), graphwire.OutOfRangeError, "part 9"),
    (lambda g: g.part_range(0, "nix"), graphwire.NotFoundError, "nix"),
    (lambda g: g.find_edges([1], "nix"), graphwire.NotFoundError, "nix"),
    (lambda g: g.in_degrees([300], "cites"), graphwire.OutOfRangeError, "300"),
    (lambda g: g.out_degrees([100], "writes"), graphwire.OutOfRangeError, "100"),
    (lambda g: g.edge_ids([300], [0], "cites"), graphwire.OutOfRangeError, "source 300"),
    (lambda g: g.has_edges([0], [300], "cites"), graphwire.OutOfRangeError, "destination 300"),
    (lambda g: g.neighbours([300], "cites"), graphwire.OutOfRangeError, "300"),
    (lambda g: g.neighbours([0], "cites", -5), graphwire.InvalidError, "fanout -5"),
    (lambda g: g.split(None, "paper", world=2, rank=2), ValueError, "rank 2"),
    (lambda g: g.split("nix", "paper"), graphwire.NotFoundError, "nix"),
    (lambda g: g.split("year", "paper"), graphwire.InvalidError, "a mask is bool"),
    (lambda g: g.split(np.ones(3, bool), "paper"), IndexError, "mask"),
    (lambda g: g.split([300], "paper"), graphwire.OutOfRangeError, "300"),
    (lambda g: graphwire.EdgeLoader(g, [2000], [2], etype="cites"), graphwire.OutOfRangeError, "2000"),
    (lambda g: graphwire.EdgeLoader(g, None, [-5], etype="cites"), graphwire.InvalidError, "fanout -5"),
    (lambda g: graphwire.NodeLoader(g, None, [2], ntype="paper", labels="nix"), graphwire.NotFoundError, "nix"),
])
def test_errors_are_those_in_the_docstrings(graph, call, kind, text):
    with pytest.raises(kind, match=text):
        call(graph)


def test_a_reverse_that_the_graph_does_not_name(whole):
    with graphwire.open(whole) as graph, pytest.raises(graphwire.GraphwireError, match="names no reverse") as error:
        graphwire.EdgeLoader(graph, None, [2], exclude=["reverse"])
    assert error.value.status == "GW_UNSUPPORTED"


def test_states_and_short_batches(graph):
    def opened(rank=0, world=1):
        return graphwire.EdgeLoader(graph, range(950), [2], etype="cites", negatives=2, batch_size=100, shuffle=True,
                                    seed=3, world=world, rank=rank, last="short")

    whole = [batch.digest() for batch in opened()]
    loader = opened()
    batches = iter(loader)
    begun = [next(batches).digest() for _ in range(4)]
    other = opened()
    other.load_state_dict(loader.state_dict())
    assert begun + [batch.digest() for batch in other] == whole
    shares = [[batch.seeds for batch in opened(rank, 3)] for rank in range(3)]
    assert [len(share) for share in shares] == [4, 3, 3] == [len(opened(rank, 3)) for rank in range(3)]
    assert sorted(torch.cat([seeds for share in shares for seeds in share]).tolist()) == list(range(950))


def of_two_types(graph, **options):
    """Citations 100 to 299 and all edges of writes, each type with its own negatives."""
    return graphwire.EdgeLoader(graph, {"cites": range(100, 300), "writes": None}, [{"cites": 4, "writes": 3}],
                                negatives={"cites": 2, "writes": 3}, negative_end={"cites": "src"},
                                labels={"cites": "strength"}, batch_size=64, shuffle=True, seed=5, **options)


def test_several_edge_types(graph, ends):
    seen = {"paper:cites:paper": [], "author:writes:paper": []}
    loader = of_two_types(graph, negative_ids={"writes": [1, 2, 3]}, exclude={"cites": ["edges"]})
    ends_of = {etype: tuple(map(torch.as_tensor, graph.find_edges(slice(None), etype))) for etype in seen}
    for batch in loader:
        assert batch.num_seeds == sum(map(len, batch.seeds.values())) <= 64 and batch.seed_rows is None
        for etype, ids in batch.seeds.items():
            src, _, dst = etype.split(":")
            assert torch.equal(batch.nodes[src][batch.src_rows[etype]], ends_of[etype][0][ids])
            assert torch.equal(batch.nodes[dst][batch.dst_rows[etype]], ends_of[etype][1][ids])
            seen[etype] += ids.tolist()
        cites, writes = batch.negative_rows["paper:cites:paper"], batch.negative_rows["author:writes:paper"]
        assert (cites.shape[1], writes.shape[1]) == (2, 3)
        assert set(batch.nodes["paper"][writes.flatten()].tolist()) <= {1, 2, 3}
        cited = batch.seeds["paper:cites:paper"]
        assert not set(cited.tolist()) & set(batch.blocks[0]["cites"].edge_ids.tolist())
        original = graph.gather("orig_id", cited, etype="cites").numpy()
        assert np.array_equal(batch.y["paper:cites:paper"].numpy(), arrays_of_hetero()["strength"][original])
        assert torch.equal(batch.to("cpu").negative_rows["author:writes:paper"], writes)
    assert sorted(seen["paper:cites:paper"]) == list(range(100, 300))
    assert sorted(seen["author:writes:paper"]) == list(range(900))
    assert len(loader) == -(-1100 // 64)


def test_several_edge_types_over_servers_in_ranks_and_later(graph, hetero2):
    def digests(where, **options):
        return [batch.digest() for batch in of_two_types(where, **options)]

    with graphwire.open(hetero2.folder) as alone, graphwire.open(servers=hetero2.addresses, transport="tcp") as served:
        whole = digests(alone)
        assert digests(served) == whole == digests(alone)
        shares = [digests(alone, world=2, rank=rank, last="short") for rank in range(2)]
        assert [digest for pair in zip(*shares) for digest in pair] == whole
        loader, later = of_two_types(alone), of_two_types(served)
        batches = iter(loader)
        begun = [next(batches).digest() for _ in range(3)]
        later.load_state_dict(loader.state_dict())
        assert begun + [batch.digest() for batch in later] == whole


@pytest.mark.parametrize("seeds, options, text", [
    ({"cites": [2000], "writes": None}, {}, "2000"),
    ({"cites": None}, {"negatives": {"writes": 1}}, "author:writes:paper has no seeds"),
    ({"cites": None}, {"labels": {"writes": "strength"}}, "author:writes:paper has no seeds"),
    ({"cites": None, "writes": None}, {"exclude": {"writes": ["nodes"]}}, "exclude has nodes"),
    ({"cites": None, "nix": None}, {}, "nix"),
    ({"cites": None}, {"etype": "cites"}, "names the types"),
])
def test_several_edge_types_that_do_not_fit(graph, seeds, options, text):
    with pytest.raises((ValueError, graphwire.GraphwireError, LookupError), match=text):
        graphwire.EdgeLoader(graph, seeds, [2], **options)
