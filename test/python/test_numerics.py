"""Numbers at the limits of floating point: optimizers in the servers compared with torch's, or with the formulas of DGL
and DGL-KE in NumPy. Gradients are infinite, NaN, huge, tiny or zero, for every dtype of rows."""

from __future__ import annotations

import graphwire
import numpy as np
import pytest
import torch
from graphwire import optim

SPECIAL = [np.nan, np.inf, -np.inf, 1e20, -3e38, 1e-30, 1e-45, 0.0, -0.0, 7e4, 1.0]
ROWS = len(SPECIAL)
RATES = [0.1, 0.0, 1e-30, 1e30, 1e38]
DTYPES = {"float32": 3e-6, "float16": 2.0**-10, "bfloat16": 2.0**-7}  # and the largest difference between two roundings
TORCHS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}


@pytest.fixture(scope="module")
def opened(whole):
    with graphwire.open(whole) as graph:
        yield graph


@pytest.fixture
def graph(opened):
    yield opened
    for tensor in opened.tensors:
        opened.delete_tensor(tensor["name"])


@pytest.fixture
def served(parts, servers):
    with graphwire.open(parts, servers.addresses) as graph:
        yield graph
        for tensor in graph.tensors:
            graph.delete_tensor(tensor["name"])


def gradients_of(call, twice):
    """A gradient for each row, or two. The first call has special values in the last gradient of each row, at both
    ends."""
    ids = np.arange(ROWS)
    rows = np.tile(np.array([1.0, 1.0, -0.5, 2.0], np.float32), (ROWS, 1))
    if call == 0:
        rows[:, 0] = rows[:, 3] = SPECIAL
    if not twice:
        return ids, rows
    return np.concatenate([ids[::-1], ids]), np.concatenate([np.full_like(rows, 0.25), rows])


def combined(ids, gradients, how):
    """Adds gradients of equal rows; in float32, in order."""
    sums = np.zeros((ROWS, gradients.shape[1]), np.float32)
    np.add.at(sums, ids, gradients)
    counts = np.bincount(ids, minlength=ROWS)[:, None].astype(np.float32)
    return np.arange(ROWS), sums / counts if how == "mean" else sums


def in_pieces(ids, gradients, how):
    """Splits a call into pieces that are applied one after another."""
    if how != "each":
        return [combined(ids, gradients, how)]
    return [(ids[first:first + ROWS], gradients[first:first + ROWS]) for first in range(0, len(ids), ROWS)]


class Torchs:
    """torch's optimizer of sparse gradients, over float32. of_call: the step belongs to the call, not to each row."""

    def __init__(self, kind, start, lr, eps, betas=None):
        self.weight, self.kind = torch.nn.Parameter(torch.from_numpy(start.copy())), kind
        options = {"sgd": {}, "adagrad": {"eps": eps}, "adam": {"eps": eps, "betas": betas}}[kind]
        self.optimizer, self.of_call = TORCHS[kind]([self.weight]), kind == "adam"
        self.optimizer.param_groups[0].update(lr=lr, **options)  # also a rate and an eps of 0

    def push(self, ids, gradients, how, step):
        for some, rows in in_pieces(ids, gradients, how):
            self.weight.grad = torch.sparse_coo_tensor(torch.tensor(some)[None], torch.tensor(rows), self.weight.shape,
                                                       check_invariants=False)
            if self.kind == "adam":
                state = self.optimizer.state[self.weight]
                state.setdefault("exp_avg", torch.zeros_like(self.weight))
                state.setdefault("exp_avg_sq", torch.zeros_like(self.weight))
                state["step"] = step - 1
            self.optimizer.step()

    @property
    def rows(self):
        return self.weight.detach()


class Rowwise:
    """DGL-KE's formula: first adds the squares of all gradients, then applies each gradient with the same sum."""

    def __init__(self, start, lr, eps):
        self.rows, self.sums, self.of_call = torch.from_numpy(start.copy()), np.zeros(len(start), np.float32), False
        self.lr, self.eps = np.float32(lr), np.float32(eps)

    def push(self, ids, gradients, how, step):
        if how != "each":
            ids, gradients = combined(ids, gradients, how)
        np.add.at(self.sums, ids, np.mean(gradients * gradients, 1, dtype=np.float32))
        std = (np.sqrt(self.sums[ids]) + self.eps)[:, None]
        np.subtract.at(self.rows.numpy(), ids, self.lr * (gradients / std))


class Counted:
    """Adam in float32, with t of each row (DGL's, whose eps follows the correction of v) or of the call (torch's). An
    infinite square makes the next step NaN, as in torch's sparse Adam."""

    def __init__(self, start, lr, eps, betas, of_call=False):
        self.rows, self.steps, self.of_call = torch.from_numpy(start.copy()), np.zeros(len(start)), of_call
        self.m, self.v = np.zeros_like(start), np.zeros_like(start)
        self.lr, self.eps, self.betas = float(np.float32(lr)), float(np.float32(eps)), [np.float32(b) for b in betas]

    def push(self, ids, gradients, how, step):
        for some, g in in_pieces(ids, gradients, how):
            self.steps[some] += 1
            old, (b1, b2) = self.v[some], self.betas
            self.m[some] = b1 * self.m[some] + (1 - b1) * g
            self.v[some] = b2 * old + (1 - b2) * (g * g) + (old - old)
            t = np.full((len(some), 1), float(step)) if self.of_call else self.steps[some][:, None]
            c1, root2 = 1 - float(b1) ** t, np.sqrt(1 - float(b2) ** t)
            eps = self.eps * (1 if self.of_call else root2)
            share = self.m[some].astype(np.float64) / (np.sqrt(self.v[some]) + eps)
            self.rows.numpy()[some] -= (self.lr * root2 / c1 * share).astype(np.float32)


def compare(graph, peer, kind, dtype, how, **options):
    """Three calls: NaN and infinities in the same places, all other values equal within rounding."""
    tensor = graph.create_tensor("t", (ROWS, 4), dtype, initial=0.5)
    with np.errstate(all="ignore"):
        for call in range(3):
            ids, gradients = gradients_of(call, how != "sum" or call == 2)
            tensor.push(ids, gradients, kind=kind, combine=how, step=(call + 1) * peer.of_call, **options)
            peer.push(ids, gradients, how, call + 1)
            peer.rows.copy_(peer.rows.to(tensor.dtype))
            np.testing.assert_allclose(
                tensor[:].float().numpy(), peer.rows.numpy(), rtol=DTYPES[dtype], atol=DTYPES[dtype], equal_nan=True,
                err_msg=f"{kind}, {dtype}, {how}, {options}, call {call}")
    found = tensor[:].float()
    graph.delete_tensor("t")
    return found


def start():
    return np.full((ROWS, 4), 0.5, np.float32)


@pytest.mark.parametrize("how", ["sum", "mean", "each"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", TORCHS)
def test_not_finite_and_huge_as_torch(graph, kind, dtype, how):
    for lr in RATES:
        for eps in (1e-8, 1e30):
            options = {"sgd": {}, "adagrad": {"eps": eps}, "adam": {"eps": eps, "betas": (0.875, 0.984375)}}[kind]
            found = compare(graph, Torchs(kind, start(), lr, eps, options.get("betas")), kind, dtype, how, lr=lr,
                            **options)
            assert not found[0, 0].isfinite() and not found[1, 0].isfinite(), "a gradient that is not finite is seen"


@pytest.mark.parametrize("how", ["sum", "mean", "each"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_not_finite_and_huge_as_dgl_and_dgl_ke(graph, dtype, how):
    for lr in RATES:
        found = compare(graph, Rowwise(start(), lr, 1e-10), "adagrad_rows", dtype, how, lr=lr, eps=1e-10)
        assert found[0].isnan().all(), "a NaN is seen in all of the row, whose elements share their sum"
        compare(graph, Counted(start(), lr, 1e-8, (0.9, 0.999)), "adam", dtype, how, lr=lr, eps=1e-8,
                betas=(0.9, 0.999))


@pytest.mark.parametrize("of_call", [False, True])
@pytest.mark.parametrize("betas", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.999), (1 - 2.0**-24, 1 - 2.0**-24)])
def test_betas_at_their_ends(graph, betas, of_call):
    for how in ("sum", "each"):
        compare(graph, Counted(start(), 0.1, 1e-8, betas, of_call), "adam", "float32", how, lr=0.1, betas=betas)


@pytest.mark.parametrize("step", [1, 10**6, 2**40, 2**63])
def test_adams_step_may_be_huge(graph, step):
    tensor, peer = graph.create_tensor("t", (ROWS, 4), initial=0.5), Torchs("adam", start(), 0.1, 1e-8, (0.9, 0.999))
    ids, gradients = gradients_of(0, False)
    tensor.push(ids, gradients, kind="adam", lr=0.1, step=step)
    peer.push(ids, gradients, "sum", step)
    np.testing.assert_allclose(tensor[:].numpy(), peer.rows.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", ["adagrad", "adam"])
def test_an_eps_of_zero(graph, kind):
    """As torch's, except where torch gives NaN (0 / 0): an element without a gradient so far, or, with Adam, one whose
    mean is too small for a float."""
    options = {"eps": 0.0, **({"betas": (0.9, 0.999), "step": 1} if kind == "adam" else {})}
    tensor, peer = graph.create_tensor("t", (ROWS, 4), initial=0.5), Torchs(kind, start(), 0.1, 0.0, (0.9, 0.999))
    ids, gradients = gradients_of(0, False)
    tensor.push(ids, gradients, kind=kind, lr=0.1, **options)
    peer.push(ids, gradients, "sum", 1)
    expected, none = peer.rows.numpy(), np.abs(gradients) < (1e-44 if kind == "adam" else 1e-45)
    assert none.any() and np.isnan(expected[none]).all()
    found = tensor[:].numpy()
    assert (found[none] == 0.5).all()
    np.testing.assert_allclose(found[~none], expected[~none], rtol=2e-5, atol=2e-5)


def test_embeddings_show_a_nan(served):
    """Through servers, an embedding and its optimizers: after a NaN loss every later loss is NaN."""
    for number, kind in enumerate((optim.SparseSGD, optim.SparseAdagrad, optim.SparseAdam)):
        table = graphwire.Embedding(served, f"nan{number}", 3, rows=10)
        optimizer = kind([table], lr=0.1)
        for factor in (float("nan"), 1.0):
            (table([2, 7]) * torch.tensor([[1.0, 1.0, factor], [1.0, 1.0, 1.0]])).sum().backward()
            optimizer.step()
        assert torch.equal(table.weight.isnan().nonzero(), torch.tensor([[2, 2]]))
        assert table.tensor.count_nonzero() == 30


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "int16", "uint8", "bool"])
def test_rows_that_are_not_trained_say_so(graph, dtype):
    tensor = graph.create_tensor("t", (2, 2), dtype)
    with pytest.raises(graphwire.GraphwireError, match=f"rows of {dtype} are not trained"):
        tensor.push([0], [[1.0, 1.0]], kind="sgd", lr=1.0)


@pytest.mark.parametrize("options, text", [
    ({"lr": float("nan")}, "^lr .* not nan"), ({"lr": 1e39}, "^lr .* not 1e[+]39"),
    ({"lr": -float("inf")}, "^lr .* not -inf"),
    ({"eps": -1e-8}, "^eps .* not -1e-08"), ({"eps": float("nan")}, "^eps .* not nan"),
    ({"eps": 1e39}, "^eps .* not 1e[+]39"),
    ({"betas": (1.0, 0.999)}, r"^betas\[0\] .* not 1.0"), ({"betas": (0.9, 1 - 1e-9)}, "a beta2 of 1"),
    ({"betas": (float("nan"), 0.999)}, r"^betas\[0\] .* not nan"),
    ({"betas": (0.9, -0.1)}, r"^betas\[1\] .* not -0.1")])
def test_parameters_that_make_no_sense_say_so(graph, options, text):
    tensor = graph.create_tensor("t", (2, 2), initial=0.5)
    with pytest.raises(graphwire.InvalidError, match=text):
        tensor.push([0], [[1.0, 1.0]], **{"kind": "adam", "lr": 1.0, **options})
    assert (tensor[:] == 0.5).all()
