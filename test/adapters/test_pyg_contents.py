"""Loaders over data in memory: a new loader samples the edges and weights that the data has, however they were written,
and loaders over equal edges share a graph."""

from __future__ import annotations

import gc
from weakref import ref

import numpy as np
import pytest
import torch
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, contents
from torch_geometric.data import Data, HeteroData

NODES, EDGES = 40, 120


def through_numpy(tensor, new):
    tensor.numpy()[...] = new.numpy()


def through_memory(tensor, new):
    """As a library in C writes, which knows the address alone."""
    source = np.ascontiguousarray(new.numpy())
    view = torch.as_strided(tensor.detach(), tensor.shape, tensor.stride()).numpy()
    np.copyto(view, source)


WRITES = {"copy_": lambda tensor, new: tensor.copy_(new), ".data": lambda tensor, new: tensor.data.copy_(new),
          "numpy": through_numpy, "detach": lambda tensor, new: through_numpy(tensor.detach(), new),
          "[...] =": lambda tensor, new: tensor.__setitem__(..., new), "memory": through_memory}


def ends():
    return torch.randint(0, NODES, (2, EDGES))


def edges_of(batch, kind=None):
    """(sources, destinations) of a batch's edges in the ids of the data, sorted."""
    if kind is None:
        pairs = batch.n_id[batch.edge_index]
    else:
        row, col = batch[kind].edge_index
        pairs = torch.stack([batch[kind[0]].n_id[row], batch[kind[2]].n_id[col]])
    return sorted(map(tuple, pairs.t().tolist()))


def pairs_of(edge_index):
    return sorted(map(tuple, edge_index.t().tolist()))


def plain(edges):
    return Data(edge_index=edges, num_nodes=NODES), None, lambda data: NeighborLoader(data, [-1], batch_size=NODES)


def of_links(edges):
    return Data(edge_index=edges, num_nodes=NODES), None, lambda data: LinkNeighborLoader(
        data, [-1], torch.arange(NODES).repeat(2, 1), batch_size=NODES)


def typed(edges):
    data = HeteroData()
    data["a"].num_nodes = data["b"].num_nodes = NODES
    data["a", "to", "b"].edge_index = edges
    data["b", "by", "a"].edge_index = ends()
    return data, ("a", "to", "b"), lambda data: NeighborLoader(data, [-1], "b", batch_size=NODES)


# Tensors of edges in other layouts, which are written in place too.
LAYOUTS = {"contiguous": torch.Tensor.clone, "[edges, 2]": lambda edges: edges.t().contiguous().t(),
           "every second": lambda edges: edges.repeat_interleave(2, 1)[:, ::2], "int32": torch.Tensor.int,
           "of NumPy": lambda edges: torch.from_numpy(edges.numpy().copy())}


@pytest.mark.parametrize("make, layout", [
    *((plain, layout) for layout in LAYOUTS), (of_links, "[edges, 2]"), (typed, "contiguous")])
def test_a_new_loader_samples_the_edges_of_now(make, layout):
    torch.manual_seed(3)
    old, kept = ends(), []
    data, kind, loader = make(LAYOUTS[layout](old))
    tensor = (data if kind is None else data[kind]).edge_index
    for write in [None, *WRITES.values()]:
        if write is not None:
            old = ends()
            write(tensor, old.to(tensor.dtype))
        kept.append(loader(data))  # so that all of the graphs before live
        assert edges_of(next(iter(kept[-1])), kind) == pairs_of(old)
        again = loader(data)
        assert again._source.graph is kept[-1]._source.graph
    assert len({loader._source.graph for loader in kept}) == len(kept)
    one = edges_of(next(iter(kept[0])), kind)
    assert one != pairs_of(old)  # an old loader keeps its edges


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_a_new_loader_draws_by_the_weights_of_now(dtype):
    torch.manual_seed(4)
    data, kept = Data(edge_index=ends(), num_nodes=NODES, w=torch.ones(EDGES, dtype=dtype)), []
    for write in [None, *WRITES.values()]:
        few = torch.rand(EDGES) < 0.3
        if dtype == torch.bfloat16 and write is not None:
            write = WRITES["copy_"] if write in (through_numpy, WRITES["detach"], through_memory) else write
        (write or WRITES["copy_"])(data.w, few.to(dtype))
        kept.append(NeighborLoader(data, [-1], weight_attr="w", batch_size=NODES))
        assert sorted(next(iter(kept[-1])).e_id.tolist()) == few.nonzero().view(-1).tolist()
        again = NeighborLoader(data, [-1], weight_attr={("_N", "_E", "_N"): "w"}, batch_size=NODES)
        assert again._source.graph is kept[-1]._source.graph
        assert NeighborLoader(data, [-1], batch_size=NODES)._source.graph is not kept[-1]._source.graph


def test_numbers_of_nodes_and_types_are_part_of_the_content():
    torch.manual_seed(5)
    edges, made = ends(), []
    for count in (NODES, NODES + 1):
        made.append(NeighborLoader(Data(edge_index=edges, num_nodes=count), [-1], batch_size=NODES))
    for names in (("a", "to", "a"), ("a", "by", "a"), ("b", "to", "b"), ("b", "to", "a")):
        data = HeteroData()
        for ntype in dict.fromkeys((names[0], names[2])):
            data[ntype].num_nodes = NODES
        data[names].edge_index = edges
        made.append(NeighborLoader(data, [-1], names[2], batch_size=NODES))
    halves = HeteroData()
    halves["a"].num_nodes = NODES
    halves["a", "to", "a"].edge_index, halves["a", "by", "a"].edge_index = edges[:, :50], edges[:, 50:]
    made.append(NeighborLoader(halves, [-1], "a", batch_size=NODES))
    assert len({one._source.graph for one in made}) == len(made)
    same = NeighborLoader(Data(edge_index=edges.clone(), num_nodes=NODES), [-1], batch_size=NODES)
    assert same._source.graph is made[0]._source.graph  # other tensors of equal content


@pytest.mark.parametrize("moment", ["copied", "graph"])
def test_a_write_while_the_graph_is_made(moment, monkeypatch):
    """What the digest is of is what the graph has, at whatever moment the edges are written."""
    torch.manual_seed(6)
    old, new = ends(), ends()
    data = Data(edge_index=old.clone(), num_nodes=NODES)
    original = getattr(contents._Contents, moment)

    def written(self):
        data.edge_index.numpy()[...] = new.numpy()
        return original(self)

    monkeypatch.setattr(contents._Contents, moment, written)
    first = NeighborLoader(data, [-1], batch_size=NODES)
    monkeypatch.undo()
    assert edges_of(next(iter(first))) == pairs_of(old if moment == "graph" else new)
    for edges in (old, new):
        later = NeighborLoader(Data(edge_index=edges.clone(), num_nodes=NODES), [-1], batch_size=NODES)
        assert edges_of(next(iter(later))) == pairs_of(edges)


def test_tensors_of_inference_mode():
    torch.manual_seed(7)
    with torch.inference_mode():
        data = Data(edge_index=ends(), x=torch.rand(NODES, 3), w=torch.rand(EDGES))
    for options in ({}, {"weight_attr": "w"}):
        batch = next(iter(NeighborLoader(data, [-1], batch_size=NODES, **options)))
        assert edges_of(batch) == pairs_of(data.edge_index) and torch.equal(batch.x, data.x[batch.n_id])


def test_graphs_end_with_their_loaders():
    data = Data(edge_index=ends(), num_nodes=NODES)
    loader = NeighborLoader(data, [-1], batch_size=NODES)
    graph = ref(loader._source.graph)
    del loader
    gc.collect()
    assert graph() is None and contents._known(b"") is None
    assert all(known() is not None for known in contents._graphs.values())
