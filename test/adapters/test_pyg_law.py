"""The law of the draws of graphwire.pyg's neighbour loaders: that of PyTorch Geometric's own loaders.

Both draw the same batch many times. A permutation test compares how often each edge, each node and each number of nodes
and edges occurs: if both have the same law, the repetitions can be exchanged. PyG's loaders need pyg-lib or
torch-sparse; `bench/peers/run law` runs the tests with these, and test/slow/soak where they are installed.

torch-sparse 0.6.18 draws without replacement unevenly: the last edges of a node's list too rarely, and with a count of
1 the last edge never. So PyG's loader gets the edges in a new random order for each batch. Then each edge is equally
often at each position, and the draws of a node are uniform.
"""

from __future__ import annotations

import warnings

import pytest
import torch
import torch_geometric.loader as pyg
import torch_geometric.typing
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, from_pyg
from torch_geometric.data import Data, HeteroData

pytestmark = [
    pytest.mark.slow,  # once: these tests do not use dgl
    pytest.mark.skipif(not (torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE),
                       reason="PyTorch Geometric's own loaders need pyg-lib or torch-sparse")]
REPEATS, ORDERS, SEEDS = 300, 500, 8
PAPER, AUTHOR, WRITES, CITES, BY = "paper", "author", ("author", "writes", "paper"), ("paper", "cites", "paper"), (
    "paper", "rev_writes", "author")


def ends(sources, targets, count):
    """Uneven degrees, edges that repeat, self loops, and nodes without edges."""
    src = (torch.rand(count) ** 2 * sources * 0.9).long()
    dst = (torch.rand(count) ** 2 * targets * 0.9).long()
    return torch.cat([torch.stack([src, dst]), torch.stack([src, dst])[:, :count // 10]], 1)


def some_data():
    torch.manual_seed(1)
    return Data(edge_index=ends(50, 50, 400), num_nodes=50)


def some_types():
    torch.manual_seed(2)
    data = HeteroData()
    data[PAPER].num_nodes, data[AUTHOR].num_nodes = 40, 25
    data[WRITES].edge_index, data[CITES].edge_index = ends(25, 40, 200), ends(40, 40, 250)
    data[BY].edge_index = data[WRITES].edge_index.flip(0)
    return data


DATA, TYPES = some_data(), some_types()


@pytest.fixture(scope="module", params=["memory", "three parts"])
def given(request, tmp_path_factory):
    """{id() of data in memory: what our loader gets}."""
    if request.param == "memory":
        yield {id(DATA): DATA, id(TYPES): TYPES}
        return
    folder = tmp_path_factory.mktemp("parts")
    with from_pyg(DATA, folder / "data", num_parts=3) as graph, from_pyg(TYPES, folder / "types", num_parts=3) as types:
        yield {id(DATA): graph, id(TYPES): types}


def features(batch, data):
    """{what: vector}: how often each edge, node and end of a link occurs, and the numbers of nodes and edges as one-hot
    vectors."""
    found = {}
    typed = isinstance(data, HeteroData)
    for kind in data.node_types if typed else (None,):
        store = batch[kind] if typed else batch
        count = data[kind].num_nodes if typed else data.num_nodes
        found["nodes", kind] = torch.bincount(store.n_id, minlength=count)
        found["number of nodes", kind] = torch.bincount(torch.tensor([len(store.n_id)]), minlength=4 * count)
        for name in ("src_index", "dst_pos_index", "dst_neg_index"):
            if name in store:
                found[name, kind] = torch.bincount(store.n_id[store[name].flatten()], minlength=count)
    for kind in data.edge_types if typed else (None,):
        store, own = (batch[kind], data[kind]) if typed else (batch, data)
        src, dst = ((batch[end], data[end].num_nodes) for end in kind[::2]) if typed else ((batch, data.num_nodes),) * 2
        pairs = src[0].n_id[store.edge_index[0]] * dst[1] + dst[0].n_id[store.edge_index[1]]
        found["pairs", kind] = torch.bincount(pairs, minlength=src[1] * dst[1])
        if "e_id" in store:
            found["edges", kind] = torch.bincount(store.e_id, minlength=own.edge_index.shape[1])
        found["number of edges", kind] = torch.bincount(torch.tensor([store.edge_index.shape[1]]), minlength=4096)
        if "edge_label_index" in store:
            some = store.edge_label_index if "edge_label" not in store else store.edge_label_index[
                :, store.edge_label == store.edge_label.min()]
            for side, (end, count) in enumerate((src, dst)):
                found["ends", kind, side] = torch.bincount(end.n_id[some[side]], minlength=count)
            if "edge_label" in store:
                found["labels", kind] = torch.bincount(store.edge_label.long(), minlength=3)
    return found


def in_another_order(data):
    """(data with its edges in a random order, {edge type: the edges})."""
    typed, found = isinstance(data, HeteroData), data.clone()
    orders = {kind: torch.randperm(data[kind].num_edges) for kind in data.edge_types} if typed else {
        None: torch.randperm(data.num_edges)}
    for kind, order in orders.items():
        store, own = (found, data) if kind is None else (found[kind], data[kind])
        store.edge_index = own.edge_index[:, order]
    return found, orders


def batch_of_pyg(loader, data, seeds, more):
    """A batch of PyG's own loader, whose e_id are edges of `data`."""
    another, orders = in_another_order(data)
    batch = next(iter(loader(another, *seeds, batch_size=SEEDS, **more)))
    for kind, order in orders.items():
        store = batch if kind is None else batch[kind]
        if "e_id" in store:
            store.e_id = order[store.e_id]
    return batch


def drawn(batch, data):
    """{what: [REPEATS, …]} of batches. batch: draws one."""
    with warnings.catch_warnings(record=True):  # PyG's, of types without one reverse
        every = [features(batch(), data) for _ in range(REPEATS)]
    return {what: torch.stack([one[what] for one in every]).double() for what in every[0]}


def chance(one, other, orders):
    """The share of orders of the repetitions whose difference is as large as that of the two samples. The difference:
    squares of differences of counts, each divided by its expectation."""
    both = torch.cat([one, other])
    both = both[:, both.sum(0) > 0]
    squares = ((orders @ both) ** 2 / both.sum(0)).sum(1)
    return float((squares >= squares[0] - 1e-9).double().mean())


def chances(ours, theirs):
    assert ours.keys() == theirs.keys()
    signs = torch.cat([torch.ones(REPEATS), -torch.ones(REPEATS)]).double()
    orders = torch.stack([signs, *(signs[torch.randperm(2 * REPEATS)] for _ in range(ORDERS))])
    return {what: chance(ours[what], theirs[what], orders) for what in ours}


def differences(given, data, loaders, *seeds, other=None, **more):
    """The vectors of two loaders that differ. With some 10 vectors for each of 80 cases, rare chances occur. So a
    difference has to show in three independent samples. other: arguments of PyG's loader, if they are not ours."""
    ours, theirs = loaders
    loader = ours(given[id(data)], *seeds, batch_size=SEEDS, **more)
    differ = None
    for number in range(3):
        torch.manual_seed(number)
        one = drawn(lambda: next(iter(loader)), data)
        two = drawn(lambda: batch_of_pyg(theirs, data, seeds, more if other is None else other), data)
        low = {what for what, p in chances(one, two).items() if p < 0.01}
        differ = low if differ is None else differ & low
        if not differ:
            break
    return differ


OF_NODES, OF_LINKS = (NeighborLoader, pyg.NeighborLoader), (LinkNeighborLoader, pyg.LinkNeighborLoader)
COUNTS = {
    "one hop": [3], "two hops": [3, 2], "all, then two": [-1, 2], "two, then all": [2, -1], "none, then two": [0, 2],
    "two, then none": [2, 0], "three hops": [2, 2, 2]}
NODES = ((DATA, torch.arange(0, 50, 7)), (TYPES, (PAPER, torch.arange(0, 40, 6))))


@pytest.mark.parametrize("replace", [False, True], ids=["", "replace"])
@pytest.mark.parametrize("counts", COUNTS)
def test_nodes(given, counts, replace):
    for data, seeds in NODES:
        assert not differences(given, data, OF_NODES, COUNTS[counts], seeds, replace=replace)


@pytest.mark.parametrize("replace", [False, True], ids=["", "replace"])
def test_counts_by_type(given, replace):
    counts = {WRITES: [2, 0], CITES: [-1, 1], BY: [1, 3]}
    assert not differences(given, TYPES, OF_NODES, counts, NODES[1][1], replace=replace)


def test_bidirectional(given):
    for data, seeds in NODES:
        assert not differences(given, data, OF_NODES, [2, 2], seeds, subgraph_type="bidirectional")


@pytest.mark.parametrize("negatives", [None, ("binary", 1), ("binary", 0.5), ("binary", 3), ("triplet", 1),
                                       ("triplet", 2)], ids=str)
def test_links(given, negatives):
    for data, links in ((DATA, DATA.edge_index[:, ::60]), (TYPES, (WRITES, TYPES[WRITES].edge_index[:, ::40])),
                        (TYPES, (CITES, TYPES[CITES].edge_index[:, ::40]))):
        assert not differences(given, data, OF_LINKS, [2, 2], links, neg_sampling=negatives)


def test_other_laws_are_found(given):
    """The tests above see small differences."""
    seeds = NODES[0][1]
    for one, other in (({"replace": True}, {"replace": False}), ({"subgraph_type": "bidirectional"}, {})):
        assert differences(given, DATA, OF_NODES, [3, 2], seeds, **one, other=other)
    with_loop = some_data()
    with_loop.edge_index = torch.cat([with_loop.edge_index, torch.tensor([[3], [7]])], 1)
    assert differences({id(with_loop): DATA}, with_loop, OF_NODES, [3, 2], seeds)
