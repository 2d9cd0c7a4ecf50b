"""The layers compared with dense arithmetic, and with PyTorch Geometric's layers with the same weights, to 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphwire import nn
from graphwire.batch import Block, Edges
from shared import imported

SRC, DST, EDGES, WIDE, OUT = 40, 25, 200, 6, 4


def edges_of(seed=0, src=SRC, dst=DST, count=EDGES, etype="a:r:a"):
    """Random edges; the last destination has none."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, dst - 1, count))
    indptr = torch.from_numpy(np.searchsorted(ends, np.arange(dst + 1)))
    a, _, b = etype.split(":")
    return Edges(etype, (a, b), (src, dst), (indptr, torch.from_numpy(random.integers(0, src, count)),
                                             torch.arange(count)))


@pytest.fixture(params=["int64", "int32"])
def edges(request):
    made = edges_of()
    made.indices = made.indices.to(getattr(torch, request.param))
    return made


@pytest.fixture
def x():
    return torch.randn(SRC, WIDE, generator=torch.Generator().manual_seed(1), requires_grad=True)


def adjacency(edges, weight=None):
    """[num_dst, num_src]: the sum of the weights of the edges between two nodes."""
    dense = torch.zeros(edges.num_dst, edges.num_src)
    for i, (src, dst) in enumerate(zip(edges.indices.tolist(), edges.dst.tolist())):
        dense[dst, src] += 1 if weight is None else weight[i]
    return dense


def same(found, expected, *inputs):
    """Equal values, and equal gradients of a weighted sum."""
    assert torch.allclose(found, expected, atol=1e-5, rtol=1e-5)
    factors = torch.linspace(-1, 1, found.numel()).view(found.shape)
    for a, b in zip(torch.autograd.grad((found * factors).sum(), inputs, retain_graph=True),
                    torch.autograd.grad((expected * factors).sum(), inputs, retain_graph=True)):
        assert torch.allclose(a, b, atol=1e-5, rtol=1e-5)


def geometric():
    return imported("torch_geometric.nn")


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_aggregate(edges, x, how):
    rows = [x[edges.indices[edges.dst == i].long()] for i in range(DST)]
    expected = torch.stack([r.new_zeros(WIDE) + 0 * x.sum() if not len(r) else
                            (r.amax(0) if how == "max" else getattr(r, how)(0)) for r in rows])
    same(nn.aggregate(edges, x, how), expected, x)


def test_aggregate_with_weights(edges, x):
    weight = torch.rand(EDGES, requires_grad=True)
    expected = torch.zeros(DST, WIDE).index_add(0, edges.dst, weight[:, None] * x[edges.indices.long()])
    same(nn.aggregate(edges, x, "sum", weight), expected, x, weight)


def test_no_edges(x):
    empty = Edges("a:r:a", ("a", "a"), (SRC, DST), (torch.zeros(DST + 1, dtype=torch.int64),
                                                    torch.empty(0, dtype=torch.int64), torch.empty(0)))
    layer = nn.SAGEConv(WIDE, OUT)
    out = layer(empty, x)
    assert torch.allclose(out, layer.lin_self(x[:DST]) + layer.lin_neigh.bias)
    out.sum().backward()
    assert layer.lin_neigh.weight.grad is not None  # all ranks get all gradients
    assert nn.GATConv(WIDE, OUT, 2)(empty, x).abs().max() == 0


@pytest.mark.parametrize("wide, out", [(WIDE, OUT), (WIDE, 9)])
@pytest.mark.parametrize("how", ["mean", "sum"])
def test_sage_is_dense_arithmetic(edges, x, wide, out, how):
    layer = nn.SAGEConv(wide, out, how)
    dense = adjacency(edges)
    if how == "mean":
        dense = dense / dense.sum(1, keepdim=True).clamp(min=1)
    expected = dense @ x @ layer.lin_neigh.weight.T + layer.lin_neigh.bias + x[:DST] @ layer.lin_self.weight.T
    same(layer(edges, x), expected, x, layer.lin_neigh.weight, layer.lin_self.weight)


@pytest.mark.parametrize("how", ["mean", "sum", "max"])
def test_sage_is_pygs(edges, x, how):
    ours = nn.SAGEConv(WIDE, OUT, how)
    theirs = geometric().SAGEConv(WIDE, OUT, aggr=how)
    theirs.lin_l.load_state_dict(ours.lin_neigh.state_dict())
    theirs.lin_r.load_state_dict(ours.lin_self.state_dict())
    same(ours(edges, x), theirs((x, x[:DST]), edges.edge_index), x)


@pytest.mark.parametrize("norm", ["both", "right", "none"])
def test_graph_conv_is_dense_arithmetic(edges, x, norm):
    layer = nn.GraphConv(WIDE, OUT, norm)
    weight = torch.rand(EDGES)
    dense, degrees = adjacency(edges, weight), adjacency(edges)
    ins, outs = degrees.sum(1).clamp(min=1), degrees.sum(0).clamp(min=1)
    if norm == "both":
        dense = dense / ins.sqrt()[:, None] / outs.sqrt()
    if norm == "right":
        dense = dense / ins[:, None]
    same(layer(edges, x, weight), dense @ x @ layer.lin.weight.T + layer.bias, x, layer.lin.weight)


def test_graph_conv_is_pygs_gcn():
    """On a whole graph with a self loop at each node and every edge in both directions."""
    random = np.random.default_rng(4)
    a, b = random.integers(0, DST, 80), random.integers(0, DST, 80)
    pairs = sorted({*zip(a, b), *zip(b, a), *zip(range(DST), range(DST))}, key=lambda pair: pair[::-1])
    src, dst = (torch.tensor(ends) for ends in zip(*[(int(s), int(d)) for s, d in pairs]))
    indptr = torch.searchsorted(dst, torch.arange(DST + 1))
    edges = Edges("a:r:a", ("a", "a"), (DST, DST), (indptr, src, torch.arange(len(src))))
    x = torch.randn(DST, WIDE, requires_grad=True)
    ours, theirs = nn.GraphConv(WIDE, OUT), geometric().GCNConv(WIDE, OUT, add_self_loops=False)
    theirs.lin.load_state_dict(ours.lin.state_dict())
    same(ours(edges, x), theirs(x, edges.edge_index), x)


@pytest.mark.parametrize("concat", [True, False])
def test_gat_is_pygs(edges, x, concat):
    ours = nn.GATConv(WIDE, OUT, 3, concat=concat)
    theirs = geometric().GATConv(WIDE, OUT, 3, concat=concat, add_self_loops=False)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.lin.weight)
        theirs.att_src.copy_(ours.att_src)
        theirs.att_dst.copy_(ours.att_dst)
    same(ours(edges, x), theirs((x, x[:DST]), edges.edge_index), x)


def test_gat_is_plain_arithmetic(edges, x):
    layer = nn.GATConv(WIDE, OUT, 2)
    rows = (x @ layer.lin.weight.T).view(SRC, 2, OUT)
    expected = torch.zeros(DST, 2, OUT)
    for dst in range(DST):
        near = rows[edges.indices[edges.dst == dst].long()]
        if len(near):
            own = (rows[dst] * layer.att_dst[0]).sum(-1)
            scores = torch.nn.functional.leaky_relu((near * layer.att_src).sum(-1) + own, 0.2)
            expected[dst] = (torch.softmax(scores, 0)[..., None] * near).sum(0)
    same(layer(edges, x), expected.flatten(1) + layer.bias, x, layer.lin.weight, layer.att_src, layer.att_dst)


def test_another_source_type_needs_a_pair():
    edges = edges_of(etype="b:r:a")
    with pytest.raises(ValueError, match="another type"):
        nn.SAGEConv(3, 2)(edges, torch.ones(SRC, 3))
    layer = nn.SAGEConv((3, 5), 2)
    assert layer(edges, (torch.ones(SRC, 3), torch.ones(DST, 5))).shape == (DST, 2)
    with pytest.raises(ValueError, match="rows"):
        layer(edges, (torch.ones(SRC - 1, 3), torch.ones(DST, 5)))


@pytest.fixture
def block():
    """Two node types, three edge types; only one edge type leads to b."""
    return Block({"a": SRC, "b": 30}, {"a": DST, "b": 10}, {
        "a:r:a": edges_of(1), "b:s:a": edges_of(2, 30, DST, 90, "b:s:a"), "a:t:b": edges_of(3, SRC, 10, 50, "a:t:b")})


@pytest.fixture
def both():
    random = torch.Generator().manual_seed(2)
    return {"a": torch.randn(SRC, WIDE, generator=random), "b": torch.randn(30, WIDE, generator=random)}


@pytest.mark.parametrize("bases", [None, 2])
@pytest.mark.parametrize("how", ["sum", "mean"])
def test_rel_graph_conv_is_dense_arithmetic(block, both, bases, how):
    layer = nn.RelGraphConv(WIDE, OUT, list(block.edges), num_bases=bases, aggregator=how)
    weights = layer.bases if bases is None else torch.stack(
        [sum(c * b for c, b in zip(row, layer.bases)) for row in layer.coeff])
    expected = {ntype: both[ntype][:count] @ layer.loop + layer.bias for ntype, count in block.num_dst.items()}
    for number, edges in enumerate(block.edges.values()):
        dense = adjacency(edges)
        if how == "mean":
            dense = dense / dense.sum(1, keepdim=True).clamp(min=1)
        expected[edges.dst_type] = expected[edges.dst_type] + dense @ both[edges.src_type] @ weights[number]
    found = layer(block, both)
    for ntype in ("a", "b"):
        same(found[ntype], expected[ntype], layer.bases, layer.loop)


def test_rel_graph_conv_is_pygs(x):
    """Three relations over one node type."""
    names = ["a:r:a", "a:s:a", "a:t:a"]
    block = Block({"a": SRC}, {"a": DST}, {name: edges_of(i, etype=name) for i, name in enumerate(names)})
    ours = nn.RelGraphConv(WIDE, OUT, names, num_bases=2, aggregator="mean")
    theirs = geometric().RGCNConv(WIDE, OUT, 3, num_bases=2, aggr="mean")
    with torch.no_grad():
        theirs.weight.copy_(ours.bases)
        theirs.comp.copy_(ours.coeff)
        theirs.root.copy_(ours.loop)
    index = torch.cat([edges.edge_index for edges in block.edges.values()], 1)
    kinds = torch.arange(3).repeat_interleave(EDGES)
    same(ours(block, {"a": x})["a"], theirs((x, x[:DST]), index, kinds), x)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "cat"])
def test_hetero_conv_is_pygs(both, how):
    """Every source is a destination too, because PyTorch Geometric's layer accepts no pairs here."""
    block = Block({"a": SRC, "b": 30}, {"a": SRC, "b": 30}, {
        "a:r:a": edges_of(1, SRC, SRC), "b:s:a": edges_of(2, 30, SRC, 90, "b:s:a"),
        "a:t:b": edges_of(3, SRC, 30, 50, "a:t:b")})
    ours = nn.HeteroConv({name: nn.SAGEConv(WIDE, OUT) for name in block.edges}, how)
    found = ours(block, both)
    gnn = geometric()
    theirs = gnn.HeteroConv({tuple(name.split(":")): gnn.SAGEConv((WIDE, WIDE), OUT) for name in block.edges}, how)
    for name, layer in zip(ours.etypes, ours.layers):
        theirs.convs[tuple(name.split(":"))].lin_l.load_state_dict(layer.lin_neigh.state_dict())
        theirs.convs[tuple(name.split(":"))].lin_r.load_state_dict(layer.lin_self.state_dict())
    expected = theirs(both, {tuple(name.split(":")): edges.edge_index for name, edges in block.edges.items()})
    for ntype in ("a", "b"):
        assert torch.allclose(found[ntype], expected[ntype], atol=1e-5)


def starts():
    """(ours, PyTorch Geometric's, {our parameter: its}) of every layer, in many shapes; created when called."""
    for bias in (True, False):
        for wide in (100, 7, (5, 33)):
            yield (lambda wide=wide, bias=bias: nn.SAGEConv(wide, 32, bias=bias),
                   lambda wide=wide, bias=bias: geometric().SAGEConv(wide, 32, bias=bias),
                   {"lin_neigh.weight": "lin_l.weight", "lin_neigh.bias": "lin_l.bias",
                    "lin_self.weight": "lin_r.weight"})
        yield (lambda bias=bias: nn.GraphConv(100, 32, bias=bias), lambda bias=bias: geometric().GCNConv(
            100, 32, bias=bias), {"lin.weight": "lin.weight", "bias": "bias"})
        for heads, concat in ((1, True), (3, True), (8, False)):
            yield (lambda heads=heads, concat=concat, bias=bias: nn.GATConv(50, 16, heads, concat=concat, bias=bias),
                   lambda heads=heads, concat=concat, bias=bias: geometric().GATConv(
                       50, 16, heads, concat=concat, bias=bias),
                   {name: name for name in ("lin.weight", "att_src", "att_dst", "bias")})
        for bases, loop in ((None, True), (2, True), (30, False)):
            yield (lambda bases=bases, loop=loop, bias=bias: nn.RelGraphConv(
                       20, 12, [str(number) for number in range(40)], num_bases=bases, self_loop=loop, bias=bias),
                   lambda bases=bases, loop=loop, bias=bias: geometric().RGCNConv(
                       20, 12, 40, num_bases=bases, root_weight=loop, bias=bias),
                   {"bases": "weight", "coeff": "comp", "loop": "root", "bias": "bias"})


@pytest.mark.parametrize("ours, theirs, names", list(starts()))
def test_layers_start_as_pygs(ours, theirs, names):
    """The same seed gives the same weights in every bit, and the same draws afterwards, so whole models are equal."""
    geometric()
    for seed in range(3):
        torch.manual_seed(seed)
        expected, after = dict(theirs().named_parameters()), torch.get_rng_state()
        torch.manual_seed(seed)
        layer = ours()
        assert torch.equal(torch.get_rng_state(), after)
        found = dict(layer.named_parameters())
        assert {names[name] for name in found} == expected.keys()
        for name, weight in found.items():
            assert torch.equal(weight, expected[names[name]]), name
    before = {name: weight.clone() for name, weight in found.items()}
    layer.reset_parameters()
    assert all(torch.equal(found[name], rows) == (not rows.any()) for name, rows in before.items())


@pytest.mark.parametrize("make, bounds", [
    (lambda: nn.SAGEConv((100, 25), 32), {"lin_neigh.weight": 0.1, "lin_neigh.bias": 0.1, "lin_self.weight": 0.2}),
    (lambda: nn.GraphConv(118, 32), {"lin.weight": 0.2, "bias": 0}),
    (lambda: nn.GATConv(102, 46, 8), {"lin.weight": (6 / 470) ** 0.5, "att_src": 1 / 3, "att_dst": 1 / 3, "bias": 0}),
    (lambda: nn.RelGraphConv(30, 24, ["r", "s"]), {"bases": 1 / 3, "loop": 1 / 3, "bias": 0}),
    (lambda: nn.RelGraphConv(30, 24, [str(i) for i in range(52)], num_bases=2), {
        "bases": 1 / 3, "coeff": 1 / 3, "loop": 1 / 3, "bias": 0})])
def test_layers_start_as_documented(make, bounds):
    """Uniform in ±bound over many seeds: no value beyond, the ends are reached, mean and deviation are right."""
    found = [dict(make().named_parameters()) for seed in range(200) if torch.manual_seed(seed)]
    assert found[0].keys() == bounds.keys()
    for name, bound in bounds.items():
        every = torch.cat([parameters[name].detach().flatten() for parameters in found]).double()
        assert every.abs().max() <= bound * (1 + 1e-6), name
        if bound:
            error = bound / len(every) ** 0.5
            assert every.abs().max() > 0.99 * bound and abs(every.mean()) < 4 * error, name
            assert abs(every.std() - bound / 3**0.5) < 4 * error, name


def test_models_start_as_pygs():
    """Several layers in sequence."""
    names, gnn = ["a:r:a", "b:s:a", "a:t:b"], geometric()
    torch.manual_seed(4)
    theirs = [{name: gnn.SAGEConv((8, 8), 6) for name in names} for _ in range(2)]
    torch.manual_seed(4)
    ours = [nn.HeteroConv({name: nn.SAGEConv((8, 8), 6) for name in names}) for _ in range(2)]
    for layer, other in zip(ours, theirs):
        for name, one in zip(layer.etypes, layer.layers):
            assert torch.equal(one.lin_neigh.weight, other[name].lin_l.weight)
            assert torch.equal(one.lin_self.weight, other[name].lin_r.weight)


@pytest.mark.parametrize("make", [lambda: nn.SAGEConv(4, 2, "median"), lambda: nn.GraphConv(4, 2, "left"),
                                  lambda: nn.HeteroConv({}, "product")])
def test_unknown_words(make):
    with pytest.raises(ValueError):
        layer = make()
        layer(edges_of(), torch.ones(SRC, 4))
