"""subgraph_type="induced" of graphwire.pyg, over random data: the nodes of a batch are those that "directional" draws,
and its edges are compared with plain Python over the user's tensors. Data in memory, its graph in one part and in
three, standalone and over servers.
"""

from __future__ import annotations

import graphwire
import numpy as np
import pyg_oracle as oracle
import pytest
import torch
from conftest import Servers
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, NodeLoader, from_pyg, stores
from test_pyg_batches import FORMS, form_of
from test_pyg_times import Given, times_for
from torch_geometric.data import Data, HeteroData

pytestmark = pytest.mark.slow  # once: these tests do not use dgl


def slots_of(batch):
    """{node type: the seed whose tree each node is in} of a disjoint batch with the drawn edges."""
    nodes, edges, slots, seeds = oracle.nodes_of(batch), oracle.edges_of(batch), {}, 0
    for ntype, store in nodes.items():
        count = store.num_sampled_nodes[0]
        slots[ntype] = {row: seeds + row for row in range(count)}
        seeds += count
    done = dict.fromkeys(edges, 0)
    for hop in range(len(next(iter(edges.values())).num_sampled_edges)):
        for kind, store in edges.items():
            begin, done[kind] = done[kind], done[kind] + store.num_sampled_edges[hop]
            for row, end in store.edge_index[:, begin:done[kind]].t().tolist():
                slots[kind[0]].setdefault(row, slots[kind[2]][end])
    return slots


def check_induced(batch, drawn, data, disjoint, held=(), until=None, law=None, late=None):
    """drawn: the batch of the same draws with its drawn edges. held: columns of edges that are held out. until: the
    time of each value of `batch`; law: {edge type: the time of each edge} of the types with times; late: a list that
    gets the edges that are too late. Returns the number of edges."""
    nodes, edges = oracle.nodes_of(batch), oracle.edges_of(batch)
    slots = slots_of(drawn) if disjoint else {ntype: dict.fromkeys(range(len(store.n_id)), 0)
                                              for ntype, store in nodes.items()}
    first = {}
    for ntype, store in nodes.items():
        assert torch.equal(store.n_id, oracle.nodes_of(drawn)[ntype].n_id)
        assert ("batch" in store) == disjoint
        assert not disjoint or torch.equal(store.batch, oracle.nodes_of(drawn)[ntype].batch)
        for row, node in enumerate(store.n_id.tolist()):
            first.setdefault((ntype, node, slots[ntype][row]), row)
        assert store.get("num_sampled_nodes") is None
    found = 0
    for kind, store in edges.items():
        into = {}
        for edge, (src, dst) in enumerate(oracle.edges_of(data)[kind].edge_index.t().tolist()):
            if edge not in held:
                into.setdefault(dst, []).append((src, edge))
        expected = []
        for row, node in enumerate(nodes[kind[2]].n_id.tolist()):
            slot, times = slots[kind[2]][row], (law or {}).get(kind)
            among = [(first[kind[0], src, slot], row, edge) for src, edge in into.get(node, ())
                     if (kind[0], src, slot) in first]
            if times is not None:
                own = until[nodes[kind[2]].batch[row]]
                late += [one for one in among if times[one[2]] > own]
                among = [one for one in among if times[one[2]] <= own]
            expected += among
        rows = [(*ends, edge) for ends, edge in zip(store.edge_index.t().tolist(), store.e_id.tolist())]
        assert sorted(rows) == sorted(expected), kind
        assert store.edge_index[1].tolist() == sorted(store.edge_index[1].tolist())
        assert store.get("num_sampled_edges") is None
        found += len(rows)
    return found


def both(loader, given, *arguments, **options):
    """Batches with the same draws: the induced ones, and those with the edges that were drawn."""
    kinds = []
    for kind in ("induced", "directional"):
        torch.manual_seed(5)
        kinds.append(list(loader(given, *arguments, subgraph_type=kind, shuffle=True, batch_size=7, **options)))
    return zip(*kinds)


def check_loaders(given, data):
    found, hetero = 0, isinstance(data, HeteroData)
    weighted = any("weight" in store and store.num_edges for store in oracle.edges_of(data).values())
    kinds = [kind for kind, store in oracle.edges_of(data).items() if store.edge_index.shape[1]]
    for ntype, store in oracle.nodes_of(data).items():
        seeds = torch.arange(store.num_nodes).repeat(2)  # seeds repeat in a batch
        for disjoint, weight in ((False, None), (True, None), (False, "weight" if weighted else None)):
            for batch, drawn in both(NeighborLoader, given, [2, 1], (ntype, seeds) if hetero else seeds,
                                     disjoint=disjoint, weight_attr=weight):
                found += check_induced(batch, drawn, data, disjoint)
                oracle.check_rows(batch, data, True)
    for kind in kinds[:2]:
        for disjoint in (False, True):
            for batch, drawn in both(LinkNeighborLoader, given, [2, 1], (kind, None) if hetero else None,
                                     disjoint=disjoint, neg_sampling="binary"):
                found += check_induced(batch, drawn, data, disjoint)
                oracle.check_rows(batch, data, True)
                for name in ("edge_label_index", "edge_label"):
                    assert torch.equal(oracle.edges_of(batch)[kind][name], oracle.edges_of(drawn)[kind][name])
    return found


@pytest.mark.parametrize("seed", [1, 3, 14, 17])
def test_batches(seed, tmp_path):
    data, found = oracle.random_data(seed), []
    for form in FORMS:
        given, servers = form_of(data, form, tmp_path, seed >= 14)
        try:
            found.append(check_loaders(given, data))
        finally:
            if servers:
                given.close()
                servers.close()
    assert min(found) > 0


def some_data():
    torch.manual_seed(3)
    return Data(edge_index=torch.randint(0, 60, (2, 900)), x=torch.randn(60, 3), edge_attr=torch.arange(900))


DATA = some_data()


def test_samplers(tmp_path):
    """NeighborSampler in PyG's own NodeLoader; held-out edges; stores."""
    with from_pyg(DATA, tmp_path / "parts", num_parts=2) as graph:
        held = torch.arange(0, 900, 3)
        out = graphwire.HeldOut(graph, held, by="orig")
        options = {"held_out": out}
        batches = []
        for kind in ("induced", "directional"):
            torch.manual_seed(5)
            sampler = NeighborSampler(graph, [3, 2], subgraph_type=kind, **options)
            batches.append([list(NodeLoader(stores(graph, {"x": "x"}), sampler, torch.arange(60), batch_size=20)),
                            list(NeighborLoader(graph, [3, 2], torch.arange(60), batch_size=20,
                                                neighbor_sampler=sampler))])
        for induced, drawn in zip(*batches):
            for batch, other in zip(induced, drawn):
                assert check_induced(batch, other, DATA, False, set(held.tolist())) > 100
                assert torch.equal(batch.x, DATA.x[batch.n_id])


def test_the_older_word():
    makers = (NeighborSampler, LinkNeighborLoader,
              lambda *given, **more: NeighborLoader(*given, torch.arange(60), batch_size=60, **more))
    for make in makers:
        with pytest.warns(UserWarning, match="subgraph_type='induced'") as said:
            loader = make(DATA, [2], directed=False)
        assert len(said) == 1
    batch = next(iter(loader))
    assert batch.edge_index.shape[1] == 900 and torch.equal(batch.edge_attr, batch.e_id)
    transformed = NeighborLoader(DATA, [2], torch.arange(60), batch_size=60, subgraph_type="induced",
                                 transform_sampler_output=lambda out: out)
    assert torch.equal(next(iter(transformed)).edge_index, batch.edge_index)


@pytest.mark.filterwarnings("ignore:.*compare their units")
@pytest.mark.parametrize("name", ["time", "edge_time"])
@pytest.mark.parametrize("form", ["memory", "three parts", "stores", "servers"])
def test_times(form, name, tmp_path):
    """An edge that is later than the seed is no edge, also if its ends are nodes of the seed."""
    found, late = 0, []
    for seed in (11, 14, 17):
        data, random = oracle.random_data(seed), np.random.default_rng(seed)
        oracle.add_times(data, seed)
        given, hetero = Given(data, form, tmp_path / str(seed), name), isinstance(data, HeteroData)
        law = {kind: some.tolist() for kind, some in oracle.times_of(data, name).items()}
        kind = next(kind for kind, store in oracle.edges_of(data).items() if store.edge_index.shape[1])
        links = oracle.edges_of(data)[kind].edge_index[:, :12]
        seeds, times = links[1], times_for(links.shape[1], random)
        try:
            for loader, asked, argument in ((NeighborLoader, (kind[2], seeds), "input_time"),
                                            (LinkNeighborLoader, (kind, links), "edge_label_time")):
                for batch, drawn in both(loader, given.data, [3, 2], asked if hetero else asked[1], time_attr=name,
                                         **{argument: times}):
                    of = oracle.nodes_of(batch)[kind[2]] if loader is NeighborLoader else oracle.edges_of(batch)[kind]
                    own = times[of.input_id].tolist()
                    found += check_induced(batch, drawn, data, True, until=own, law=law, late=late)
                    oracle.check_rows(batch, data, given.edge_rows)
        finally:
            given.close()
    assert found > 100 and len(late) > 20


def test_a_lost_server(tmp_path):
    """The owner of a batch's nodes is lost: the batch fails, and the next one is complete when the server is back."""
    from_pyg(DATA, tmp_path / "parts", num_parts=2).close()
    servers = Servers(tmp_path / "parts", 2, tmp_path)
    try:
        with graphwire.open(servers=servers.addresses, reconnect=0.1, neighbours="requests") as graph:
            loader = NeighborLoader(graph, [2], torch.arange(60), batch_size=60, subgraph_type="induced")
            assert next(iter(loader)).num_edges == 900
            servers.end(1)
            with pytest.raises(graphwire.PeerError):
                next(iter(loader))
            servers.start(1)
            assert next(iter(loader)).num_edges == 900
    finally:
        servers.close()
