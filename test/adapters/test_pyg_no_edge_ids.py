"""edge_ids=False of graphwire.pyg's loaders: batches without e_id and without rows of edges, otherwise those with ids;
also of seeds that repeat, of every kind of subgraph, and of data in memory."""

from __future__ import annotations

import graphwire
import pytest
import torch
from graphwire.pyg import LinkNeighborLoader, NeighborLoader
from row_sets import read_bytes
from torch_geometric.data import Data, HeteroData

RATES = ("user", "rates", "item")
COUNTS = {"user": 60, "item": 90}


def typed():
    torch.manual_seed(3)
    data = HeteroData()
    for ntype, count in COUNTS.items():
        data[ntype].x = torch.randn(count, 3)
    data[RATES].edge_index = torch.stack([torch.randint(0, count, (500,)) for count in COUNTS.values()])
    data[RATES].edge_attr = torch.rand(500)
    data["item", "rated_by", "user"].edge_index = data[RATES].edge_index.flip(0)
    return data


DATA = typed()
PLAIN = Data(x=torch.randn(80, 2), edge_index=torch.randint(0, 80, (2, 600)), edge_attr=torch.rand(600, 2))


def batches(make, **options):
    torch.manual_seed(5)
    return list(make(**options))


def attributes(batch):
    """{(type, attribute): value}; the types of Data are None."""
    if isinstance(batch, Data):
        return {(None, name): value for name, value in batch.items()}
    kinds = [*batch.node_types, *batch.edge_types]
    return {(kind, name): value for kind in kinds for name, value in batch[kind].items()}


def check(make, missing):
    """missing: the attributes of edges that batches with ids have."""
    pairs = list(zip(batches(make), batches(make, edge_ids=False), strict=True))
    assert pairs
    for batch, without in pairs:
        found, other = attributes(batch), attributes(without)
        assert {name for _, name in found if name in ("e_id", *missing)} == {"e_id", *missing}
        for (kind, name), value in found.items():
            if name in ("e_id", *missing):
                assert (kind, name) not in other
            else:
                assert str(other.pop((kind, name))) == str(value)
        assert not other


@pytest.mark.parametrize("kind", ["directional", "induced"])  # PyG drops ids of types that become bidirectional itself
def test_all_else_is_the_same(source, kind):
    options = {"num_neighbors": [4, 3], "batch_size": 16, "subgraph_type": kind, "shuffle": True}
    check(lambda **more: NeighborLoader(source, input_nodes="user", **options, **more), ["edge_attr"])
    repeated = torch.tensor([5, 9, 5, 7, 9])
    check(lambda **more: NeighborLoader(source, input_nodes=("user", repeated), **options, **more), ["edge_attr"])
    check(lambda **more: LinkNeighborLoader(source, edge_label_index=RATES, neg_sampling="binary", **options, **more),
          ["edge_attr"])
    options["weight_attr"] = {RATES: "edge_attr"}
    check(lambda **more: NeighborLoader(source, input_nodes="user", **options, **more), ["edge_attr"])


@pytest.mark.parametrize("kind", ["directional", "bidirectional", "induced"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_one_type(kind, in_memory):
    with graphwire.pyg.from_pyg(PLAIN, num_parts=2) as graph:
        data = PLAIN if in_memory else graph
        check(lambda **more: NeighborLoader(data, [4, 3], batch_size=20, subgraph_type=kind, **more), ["edge_attr"])


def test_rows_of_edges_are_not_fetched(hetero2):
    with graphwire.open(servers=hetero2.addresses, transport="tcp", neighbours="requests") as graph:
        read = []
        for wanted in (True, False):
            before = read_bytes(graph)
            for batch in NeighborLoader(graph, [4], "paper", batch_size=100, ids="graph", edge_ids=wanted):
                cites = batch["paper", "cites", "paper"]
                assert ("e_id" in cites) == ("strength" in cites) == wanted
            read.append(read_bytes(graph) - before)
        assert read[0] > read[1] > 0


def test_wrong_values():
    for make in (NeighborLoader, LinkNeighborLoader):
        with pytest.raises(TypeError, match="edge_ids"):
            make(PLAIN, [2], edge_ids="no")
