"""graphwire.nn and the sparse optimizers compared with DGL's own, with the same weights (bench/peers/dgl_layers.py);
and RelGraphConv of the subset of dgl compared with both."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import torch
from conftest import TOP
from graphwire import nn
from graphwire.batch import Block, Edges
from graphwire.dgl import host

sys.path.insert(0, str(TOP / "bench/peers"))
of_dgl = pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="beside DGL's own layers")
subset = importlib.import_module("graphwire.dgl.subset")
layers = importlib.import_module("graphwire.dgl.subset.nn")
SRC, DST, EDGES, RELATIONS = 50, 30, 240, 4


@of_dgl
def test_layers_are_dgls(communities):
    from dgl_layers import compare

    assert compare(communities) == []


def edges_of_relations():
    """Sources, destinations and relations; one relation has no edges."""
    random = np.random.default_rng(6)
    src, dst = torch.from_numpy(random.integers(0, SRC, EDGES)), torch.from_numpy(random.integers(0, DST, EDGES))
    kinds = torch.from_numpy(random.integers(0, RELATIONS, EDGES))
    return src, dst, torch.where(kinds == 2, 3, kinds)


def apart(ours, theirs, x):
    """The differences of values, and of gradients of rows and of weights with equal names."""
    parameters = dict(theirs[1].named_parameters())
    assert {name: one.shape for name, one in ours[1].named_parameters()} == {
        name: one.shape for name, one in parameters.items()}
    factors = torch.linspace(-1, 1, ours[0].numel()).view_as(ours[0])
    gradients = [dict(zip(["x", *parameters], torch.autograd.grad((out * factors).sum(), [
        x, *[dict(layer.named_parameters())[name] for name in parameters]]))) for out, layer in (ours, theirs)]
    return max((ours[0] - theirs[0]).abs().max().item(), *[
        (one - gradients[1][name]).abs().max().item() / max(1.0, one.abs().max().item())
        for name, one in gradients[0].items()])


@of_dgl
@pytest.mark.parametrize("options", [
    {}, {"regularizer": "basis", "num_bases": 2}, {"regularizer": "bdd", "num_bases": 2}, {"regularizer": "basis"},
    {"bias": False, "self_loop": False}, {"layer_norm": True, "activation": torch.relu, "dropout": 0.5}])
def test_rel_graph_conv_is_dgls(options):
    """Loads a state_dict of DGL's. Values and gradients equal DGL's, over a block and over a graph."""
    import dgl

    src, dst, kinds = edges_of_relations()
    x, norm = torch.randn(SRC, 8, requires_grad=True), torch.rand(EDGES, 1)
    theirs, ours = (module.RelGraphConv(8, 6, RELATIONS, **options) for module in (dgl.nn, layers))
    ours.load_state_dict(theirs.state_dict())
    theirs.eval(), ours.eval()
    for make, sizes in (("create_block", (SRC, DST)), ("graph", ())):
        both = [getattr(module, make)((src, dst), *sizes, **({} if sizes else {"num_nodes": SRC}))
                for module in (subset, dgl)]
        for arguments in ((kinds,), (kinds, norm)):
            found = [(layer(graph, x, *arguments), layer) for layer, graph in zip((ours, theirs), both)]
            assert apart(*found, x) < 1e-5, (make, options)
    order = torch.argsort(kinds)
    both = [module.graph((src[order], dst[order]), num_nodes=SRC) for module in (subset, dgl)]
    found = [layer(graph, x, kinds[order], presorted=True) for layer, graph in zip((ours, theirs), both)]
    assert torch.allclose(*found, atol=1e-5)


LAYERS = [("SAGEConv", (24, 12, how), {"bias": bias}) for how in ("mean", "gcn", "pool") for bias in (True, False)]
LAYERS += [("SAGEConv", ((24, 9), 12, "mean"), {})]
LAYERS += [("GraphConv", (24, 12), options) for options in ({}, {"bias": False}, {"weight": False, "norm": "none"})]
LAYERS += [("GATConv", (widths, 4, 3), {"bias": bias, "residual": residual}) for widths in (24, 12, (24, 9))
           for bias in (True, False) for residual in (True, False)]
LAYERS += [("RelGraphConv", (24, 12, 5), options) for options in (
    {}, {"regularizer": "basis", "num_bases": 2}, {"regularizer": "bdd", "num_bases": 3}, {"layer_norm": True},
    {"bias": False, "self_loop": False})]
LAYERS += [("WeightBasis", ((6, 4), 2, 5), {}), ("WeightBasis", ((6,), 3, 4), {})]


@of_dgl
@pytest.mark.parametrize("name, arguments, options", LAYERS)
def test_layers_of_the_subset_start_as_dgls(name, arguments, options):
    """The same seed gives the same parameters, by name and in every bit, and the same draws afterwards."""
    import dgl

    for seed in range(3):
        torch.manual_seed(seed)
        expected, after = getattr(dgl.nn, name)(*arguments, **options).state_dict(), torch.get_rng_state()
        torch.manual_seed(seed)
        found = getattr(layers, name)(*arguments, **options).state_dict()
        assert torch.equal(torch.get_rng_state(), after) and found.keys() == expected.keys()
        for one, weight in found.items():
            assert torch.equal(weight, expected[one]), one


def test_weight_basis():
    """Each output is a combination of the bases, with DGL's numbers if DGL is installed."""
    ours = layers.WeightBasis((6, 4), 2, 5)
    expected = torch.stack([sum(ours.w_comp[out, base] * ours.weight[base] for base in range(2)) for out in range(5)])
    assert torch.allclose(ours(), expected, atol=1e-6)
    if not getattr(host.dgl(), "is_graphwire_subset", False):
        theirs = host.dgl().nn.WeightBasis((6, 4), 2, 5)
        theirs.load_state_dict(ours.state_dict())
        assert torch.equal(theirs(), ours())
    with pytest.warns(UserWarning, match="3 bases for 3 outputs"):
        layers.WeightBasis((2, 2), 3, 3)


@of_dgl
@pytest.mark.parametrize("wide", [8, 12, (8, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_gat_conv_with_residuals_is_dgls(wide, bias):
    import dgl

    src, dst, _ = edges_of_relations()
    pair = isinstance(wide, tuple)
    x = (torch.randn(SRC, wide[0]), torch.randn(DST, wide[1])) if pair else torch.randn(SRC, wide)
    theirs, ours = (module.GATConv(wide, 4, 3, residual=True, bias=bias, allow_zero_in_degree=True)
                    for module in (dgl.nn, layers))
    ours.load_state_dict({name: rows + 0.25 for name, rows in theirs.state_dict().items()})
    theirs.load_state_dict(ours.state_dict())
    out = [layer(module.create_block((src, dst), SRC, DST), x) for layer, module in ((ours, subset), (theirs, dgl))]
    assert torch.allclose(*out, atol=1e-5)


@pytest.mark.parametrize("make, gains", [
    (lambda: layers.SAGEConv(24, 12, "pool"), {"fc_pool": 48, "fc_neigh": 36, "fc_self": 36}),
    (lambda: layers.GATConv(24, 4, 3, residual=True), {"fc": 36, "res_fc": 36})])
def test_layers_of_the_subset_start_with_relus_gain(make, gains):
    """Without DGL: the deviation of Xavier's initial values, with twice the variance for ReLU."""
    for name, widths in gains.items():
        every = torch.cat([getattr(make(), name).weight.detach().flatten() for seed in range(60)
                           if torch.manual_seed(seed)])
        assert every.std().item() == pytest.approx(2 / widths**0.5, rel=0.03), name


@pytest.mark.parametrize("num_bases", [None, 2])
def test_rel_graph_conv_is_graphwires(num_bases):
    """The subset's layer compared with graphwire.nn's, which takes edges of each type separately."""
    src, dst, kinds = edges_of_relations()
    names = [f"a:r{number}:a" for number in range(RELATIONS)]
    found = {}
    for number, name in enumerate(names):
        some = torch.nonzero(kinds == number).flatten()
        some = some[torch.argsort(dst[some], stable=True)]
        indptr = torch.searchsorted(dst[some], torch.arange(DST + 1))
        found[name] = Edges(name, ("a", "a"), (SRC, DST), (indptr, src[some], some))
    x = torch.randn(SRC, 8, requires_grad=True)
    theirs = nn.RelGraphConv(8, 6, names, num_bases=num_bases)
    ours = layers.RelGraphConv(8, 6, RELATIONS, "basis" if num_bases else None, num_bases)
    ours.load_state_dict({"linear_r.W": theirs.bases, "loop_weight": theirs.loop, "h_bias": theirs.bias,
                          **({"linear_r.coeff": theirs.coeff} if num_bases else {})})
    out = ours(subset.create_block((src, dst), SRC, DST), x, kinds)
    expected = theirs(Block({"a": SRC}, {"a": DST}, found), {"a": x})["a"]
    assert torch.allclose(out, expected, atol=1e-5)
    factors = torch.linspace(-1, 1, out.numel()).view_as(out)
    for one, other in ((x, x), (ours.linear_r.W, theirs.bases), (ours.loop_weight, theirs.loop),
                       (ours.h_bias, theirs.bias)):
        gradients = [torch.autograd.grad((rows * factors).sum(), of, retain_graph=True)[0]
                     for rows, of in ((out, one), (expected, other))]
        assert torch.allclose(*gradients, atol=1e-4)


def test_rel_graph_conv_refuses_invalid_arguments():
    with pytest.raises(ValueError, match="divisible"):
        layers.RelGraphConv(8, 6, 4, "bdd", 4)
    with pytest.raises(ValueError, match="Supported regularizer"):
        layers.RelGraphConv(8, 6, 4, "magic")
    with pytest.raises(ValueError, match="num_bases"):
        layers.TypedLinear(8, 6, 4, "basis")
    g = subset.graph((torch.tensor([0]), torch.tensor([1])))
    with pytest.raises(subset.DGLError, match="type is 4, and there are 4"):
        layers.RelGraphConv(8, 6, 4)(g, torch.ones(2, 8), torch.tensor([4]))
    none = subset.graph((torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)), num_nodes=2)
    assert layers.RelGraphConv(8, 6, 4)(none, torch.ones(2, 8), torch.empty(0, dtype=torch.int64)).shape == (2, 6)
