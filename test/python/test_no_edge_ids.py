"""Batches without ids of edges: everything else is that of the same batch with ids, also copied, pickled and in PyTorch
Geometric's form."""

from __future__ import annotations

import pickle

import graphwire
import numpy as np
import pytest

torch = pytest.importorskip("torch")

OPTIONS = {"seed": 3, "features": {"paper": ["feat"]}}


@pytest.fixture(scope="module", params=[False, True], ids=["torch", "numpy"])
def graph(request, hetero):
    with graphwire.open(hetero, numpy=request.param) as opened:
        yield opened


def pairs_of(graph):
    """(batch, the same without ids of edges), of each way to sample."""
    ways = (lambda **on: [graphwire.sample(graph, [5, 9, 5], [4, 2], ntype="paper", **OPTIONS, **on)],
            lambda **on: [graphwire.Sampler(graph, [4, 2], ntype="paper", features=OPTIONS["features"], **on)([5, 9])],
            lambda **on: graphwire.NodeLoader(graph, range(60), [3, 2], ntype="paper", batch_size=25, frontier="new",
                                              **OPTIONS, **on),
            lambda **on: graphwire.EdgeLoader(graph, range(60), [3, 2], etype="cites", negatives=1, batch_size=25,
                                              exclude=["edges"], **OPTIONS, **on))
    for way in ways:
        yield from zip(way(), way(edge_ids=False), strict=True)


def arrays_of(batch):
    """{place: array} of all arrays but the ids of edges."""
    found = {f"nodes {ntype}": ids for ntype, ids in batch.nodes.items()}
    found |= {f"rows {ntype} {name}": rows for ntype, some in batch.features.items() for name, rows in some.items()}
    for hop, block in enumerate(batch.blocks):
        for etype, edges in block.edges.items():
            found |= {f"{hop} {etype} {name}": getattr(edges, name) for name in ("indptr", "indices", "dst")}
    return {place: np.asarray(array) for place, array in found.items()}


def ids_of(batch):
    return [edges.edge_ids for block in batch.blocks for edges in block.edges.values()]


def same(one, other):
    one, other = arrays_of(one), arrays_of(other)
    assert one.keys() == other.keys() and len(one) > 8
    for place, array in one.items():
        np.testing.assert_array_equal(array, other[place], err_msg=place)


def test_all_else_is_the_same(graph):
    for batch, without in pairs_of(graph):
        same(batch, without)
        assert all(ids is not None for ids in ids_of(batch)) and all(ids is None for ids in ids_of(without))
        assert batch.num_edges == without.num_edges > 0
        assert batch.digest() != without.digest()


def test_copies_have_none_either(graph):
    for _, without in pairs_of(graph):
        copy = pickle.loads(pickle.dumps(without))
        same(without, copy)
        assert all(ids is None for ids in ids_of(copy))
        if isinstance(without.nodes["paper"], torch.Tensor):
            moved = without.to("cpu")
            same(without, moved)
            assert all(ids is None for ids in ids_of(moved))


def test_pyg_data_have_no_e_id(graph):
    pytest.importorskip("torch_geometric")
    for batch, without in pairs_of(graph):
        data, other = batch.to_pyg(), without.to_pyg()
        for etype in data.edge_types:
            assert "e_id" in data[etype] and "e_id" not in other[etype]
            assert torch.equal(data[etype].edge_index, other[etype].edge_index)
        for ntype in data.node_types:
            assert torch.equal(data[ntype].n_id, other[ntype].n_id)


def test_rows_of_edges_need_ids(graph):
    for features in ({"cites": "strength"}, {"cites": ["strength"]}):
        with pytest.raises(ValueError, match="edge_ids"):
            graphwire.sample(graph, [5], [2], ntype="paper", edge_features=features, edge_ids=False)
    with pytest.raises(TypeError, match="edge_ids"):
        graphwire.NodeLoader(graph, None, [2], ntype="paper", edge_ids="no")
