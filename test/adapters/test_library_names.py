"""What libraries over DGL's distributed stack import, derive from and call: constants, requests, roles, collators."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from graphwire.dgl.install import install

dgl = install()
ETYPES = [("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a")]


@pytest.fixture(scope="module")
def g(tmp_path_factory):
    random = np.random.default_rng(1)
    whole = dgl.heterograph({etype: tuple(torch.from_numpy(random.integers(0, 30, 200)) for _ in range(2))
                             for etype in ETYPES}, {"a": 30, "b": 30})
    whole.edges["r"].data["x"] = torch.arange(200)
    whole.nodes["a"].data["y"] = torch.rand(30, 2)
    folder = tmp_path_factory.mktemp("names")
    dgl.distributed.partition_graph(whole, "g", 2, str(folder / "parts"), part_method="random")
    dgl.distributed.exit_client()
    dgl.distributed.initialize("none.txt")
    opened = dgl.distributed.DistGraph("g", part_config=str(folder / "parts" / "g.json"))
    opened.path = str(folder / "parts" / "g.json")
    yield opened
    dgl.distributed.kvstore.close_kvstore()
    assert not dgl.distributed.is_initialized()


def test_copies_of_a_model(g):
    """A copy of a model refers to the graph that is open: the folder may be gone, and no part is loaded again."""
    rows = dgl.distributed.DistEmbedding(30, 2, "copied", init_func=lambda shape, dtype: torch.rand(shape),
                                         part_policy=g.get_node_partition_policy("a"))
    folder = Path(g.path).parent
    folder.rename(folder.with_name("gone"))
    try:
        for copied in (copy.copy(g), *copy.deepcopy([g, (g,)])[1]):
            assert copied.graph is g.graph
        model = copy.deepcopy({"graph": g, "feature": g.nodes["a"].data["y"], "rows": rows})
        ids = torch.arange(30)
        assert torch.equal(model["feature"][ids], g.nodes["a"].data["y"][ids])
        assert torch.equal(model["rows"].weight[ids], rows.weight[ids])
        assert model["graph"].num_edges("r") == 200
    finally:
        folder.with_name("gone").rename(folder)


def test_constants():
    from dgl.distributed.constants import DEFAULT_ETYPE, DEFAULT_NTYPE
    from dgl.distributed.graph_partition_book import _etype_str_to_tuple, _etype_tuple_to_str

    assert DEFAULT_NTYPE == "_N" and DEFAULT_ETYPE == ("_N", "_E", "_N")
    assert _etype_tuple_to_str(DEFAULT_ETYPE) == "_N:_E:_N" and _etype_str_to_tuple("_N:_E:_N") == DEFAULT_ETYPE
    for call, value in ((_etype_tuple_to_str, "_N:_E:_N"), (_etype_tuple_to_str, ("a", "b")),
                        (_etype_str_to_tuple, "a:b")):
        with pytest.raises(AssertionError, match="a canonical edge type is"):
            call(value)


def test_requests():
    """A library that asks every server after its writes sends nothing. What would send is an error with a remedy."""
    from dgl.distributed import rpc

    class Ask(rpc.Request):
        def __getstate__(self):
            return None

        def __setstate__(self, state):
            pass

    with pytest.raises(dgl.DGLError, match="has not been registered"):
        Ask().service_id  # noqa: B018
    rpc.register_service(77, Ask, rpc.Response)
    assert Ask().service_id == rpc.Response.__new__(rpc.Response).service_id == 77
    for server in range(rpc.get_num_server()):
        rpc.send_request(server, Ask())
    for call in (lambda: rpc.send_request(0, Ask()), rpc.recv_response, lambda: rpc.remote_call([]),
                 lambda: rpc.send_request_to_machine(0, Ask()), lambda: rpc.remote_call_to_machine([])):
        with pytest.raises(NotImplementedError, match="accept no requests of programs: use DistTensor"):
            call()
    for line in ("from dgl.distributed.rpc import fast_pull", "from dgl.distributed.role import init_role"):
        with pytest.raises(ImportError, match="is not in Graphwire"):
            exec(line)


def test_roles(g):
    from dgl.distributed import role, rpc

    assert role.get_num_trainers() == rpc.get_num_client() == 1
    assert role.get_trainer_rank() == role.get_global_rank() == role.get_rank("default") == rpc.get_rank() == 0
    assert role.get_role() == "default" and role.get_rank("sampler") == -1
    assert (role.CUR_ROLE, role.PER_ROLE_RANK["default"], role.GLOBAL_RANK[0]) == ("default", {0: 0}, 0)
    assert rpc.get_num_machines() == 2 and rpc.get_machine_id() == 0 and rpc.get_group_id() == 0
    rpc.client_barrier()
    assert dgl.distributed.kvstore.get_kvstore() is g._client


@pytest.mark.parametrize("even", [True, False])
def test_imitated_trainers(g, even, monkeypatch):
    """A program assigns the ranks of a role. Ids are divided among as many trainers; two trainers share each part."""
    from dgl.distributed import role

    monkeypatch.setitem(role.PER_ROLE_RANK, "default", {client: client for client in range(4)})
    book, mask = g.get_partition_book(), torch.arange(30) % 2 == 0
    shares = [dgl.distributed.node_split(mask, book, "a", rank, even) for rank in range(4)]
    assert sorted(torch.cat(shares).tolist()) == list(range(0, 30, 2))
    if not even:
        assert [book.nid2partid(share, "a").unique().tolist() for share in shares] == [[0], [0], [1], [1]]
    assert len(dgl.distributed.edge_split(torch.ones(200, dtype=torch.bool), book, "r", 3, even)) in range(40, 61)
    with pytest.raises(AssertionError, match="#Trainers: 4"):
        dgl.distributed.node_split(mask, book, "a", 4)


def test_collators(g):
    """A library sorts its arguments by the collator's. A loader's collator has the ids that the loader was given."""
    from dgl.distributed.dist_dataloader import EdgeCollator, NodeCollator, _remove_kwargs_dist

    assert inspect.getfullargspec(EdgeCollator).args == [
        "self", "g", "eids", "graph_sampler", "g_sampling", "exclude", "reverse_eids", "reverse_etypes",
        "negative_sampler"]
    assert inspect.getfullargspec(NodeCollator).args == ["self", "g", "nids", "graph_sampler"]
    some = {"num_workers": 3, "pin_memory": True, "shuffle": True}
    assert _remove_kwargs_dist(some) is some and some == {"shuffle": True}
    sampler = dgl.dataloading.MultiLayerNeighborSampler([2])
    mask = torch.zeros(200, dtype=torch.bool)
    mask[5:9] = True
    loader = dgl.dataloading.DistEdgeDataLoader(g, {"r": mask, ETYPES[1]: [3, 4]}, sampler, batch_size=3)
    assert {kind: ids.tolist() for kind, ids in loader.collator.eids.items()} == {"r": [5, 6, 7, 8], ETYPES[1]: [3, 4]}
    assert len(loader.collator.dataset) == 6 and loader.collator.dataset[4] == (ETYPES[1], 3)
    nodes = dgl.dataloading.DistNodeDataLoader(g, {"a": torch.arange(7)}, sampler, batch_size=3)
    assert torch.equal(nodes.collator.nids["a"], torch.arange(7))
    for kind, count in (("nids", NodeCollator), ("eids", EdgeCollator)):
        with pytest.raises(AssertionError, match=f"{kind} should be a dict"):
            count(g, torch.arange(3), sampler)
    _, pair, blocks = EdgeCollator(g, {"r": torch.arange(9)}, sampler, exclude="self").collate(
        [("r", 4), ("r", torch.tensor(2))])
    assert pair.etypes == ["r"] and pair.edges["r"].data[dgl.EID].tolist() == [4, 2] and len(blocks) == 1
    _, pair, negatives, blocks = EdgeCollator(
        g, {"r": torch.arange(9)}, sampler, g, "self", negative_sampler=dgl.dataloading.negative_sampler.Uniform(3)
    ).collate([("r", 4), ("r", 2)])
    assert negatives.num_edges("r") == 6 and sorted(pair.ntypes) == sorted(negatives.ntypes) == ["a", "b"]
    assert pickle.loads(pickle.dumps(loader.collator.dataset))[0] == ("r", 5)


@pytest.mark.parametrize("etypes", [ETYPES[:1], ETYPES[1:]])
def test_subgraphs_have_the_types_of_the_edges_alone(g, etypes):
    ids = {etype: torch.tensor([7, 3, 7]) for etype in etypes}
    for relabel in (False, True):
        found = g.edge_subgraph(ids, relabel_nodes=relabel)
        assert sorted(found.canonical_etypes) == sorted(etypes) and sorted(found.ntypes) == ["a", "b"]
        for etype in etypes:
            assert torch.equal(found.edges[etype].data[dgl.EID], ids[etype])
    labels = {etype: ["x"] if etype == ETYPES[0] else [] for etype in ETYPES}
    sampler = dgl.dataloading.as_edge_prediction_sampler(dgl.dataloading.NeighborSampler([2]), prefetch_labels=labels)
    for _, pair, _ in dgl.dataloading.DistEdgeDataLoader(g, ids, sampler, batch_size=1):
        assert len(pair.canonical_etypes) == 1 and pair.num_edges() == 1 and sorted(pair.ntypes) == ["a", "b"]


def test_features_of_a_part(g):
    """As load_partition has them; None for what is not loaded."""
    for part in range(2):
        _, nodes, edges, *_ = dgl.distributed.load_partition(g.path, part)
        found = dgl.distributed.load_partition_feats(g.path, part)
        assert [{name: rows.tolist() for name, rows in some.items()} for some in found] == [
            {name: rows.tolist() for name, rows in some.items()} for some in (nodes, edges)]
        assert "a/y" in nodes and "a:r:b/x" in edges
        assert dgl.distributed.load_partition_feats(g.path, part, False)[0] is None
        assert dgl.distributed.load_partition_feats(g.path, part, load_edges=False)[1] is None


@pytest.mark.parametrize("of_types", [False, True])
@pytest.mark.parametrize("norm_by", ["dst", "src"])
def test_edge_softmax(norm_by, of_types):
    """The shares of each node's edges, beside a loop in plain Python."""
    from dgl.nn.functional import edge_softmax

    torch.manual_seed(3)
    ends = {etype: torch.randint(0, 6, (2, 20)) for etype in (ETYPES if of_types else ETYPES[:1])}
    graph = dgl.heterograph({etype: tuple(some) for etype, some in ends.items()}, {"a": 6, "b": 6})
    logits = {etype: torch.randn(20, 2, 1) * 30 for etype in ends}
    found = edge_softmax(graph, logits if of_types else logits[ETYPES[0]], norm_by=norm_by)
    at = norm_by == "dst"
    sums = {}
    for etype in ends:
        for edge, node in enumerate(ends[etype][int(at)].tolist()):
            sums.setdefault((etype[2 * at], node), []).append(logits[etype][edge].double())
    for etype, rows in (found if of_types else {ETYPES[0]: found}).items():
        for edge, node in enumerate(ends[etype][int(at)].tolist()):
            every = torch.logsumexp(torch.stack(sums[etype[2 * at], node]), 0)
            assert torch.allclose(rows[edge].double(), (logits[etype][edge].double() - every).exp(), atol=1e-6)
    some = torch.tensor([4, 1, 9])
    part = dgl.heterograph({ETYPES[0]: tuple(ends[ETYPES[0]])}, {"a": 6, "b": 6})
    few = edge_softmax(part, logits[ETYPES[0]][some], some, norm_by)
    alone = dgl.heterograph({ETYPES[0]: tuple(ends[ETYPES[0]][:, some])}, {"a": 6, "b": 6})
    assert torch.allclose(few, edge_softmax(alone, logits[ETYPES[0]][some], norm_by=norm_by))
