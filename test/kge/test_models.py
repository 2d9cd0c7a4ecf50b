"""Scores and gradients of every model, compared with formulas in NumPy for single triples, whose gradients are finite
differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from graphwire.kge import models
from graphwire.kge.models import NAMES, Relations, make

WIDTH, GAMMA, RELATIONS = 6, 12.0, 3
DOUBLED = {"RotatE": (True, False)}


def formula(name, h, r, m, t):
    """One triple's score. m: the relation's matrix, flat."""
    if name in ("TransE", "TransE_l2"):
        return GAMMA - math.sqrt(sum((a + b - c) ** 2 for a, b, c in zip(h, r, t)))
    if name == "TransE_l1":
        return GAMMA - sum(abs(a + b - c) for a, b, c in zip(h, r, t))
    if name == "DistMult":
        return sum(a * b * c for a, b, c in zip(h, r, t))
    half = len(h) // 2
    if name == "ComplEx":
        return sum((complex(h[i], h[i + half]) * complex(r[i], r[i + half])
                    * complex(t[i], t[i + half]).conjugate()).real for i in range(half))
    if name == "RotatE":
        turn = math.pi / ((GAMMA + 2.0) / WIDTH)
        return GAMMA - sum(abs(complex(h[i], h[i + half]) * complex(math.cos(r[i] * turn), math.sin(r[i] * turn))
                               - complex(t[i], t[i + half])) for i in range(half))
    if name == "SimplE":
        return sum(h[i] * r[i] * t[i + half] + t[i] * r[i + half] * h[i + half] for i in range(half)) / 2
    if name == "RESCAL":
        return float(h @ m.reshape(len(h), len(t)) @ t)
    matrix = m.reshape(len(h), len(r))  # TransR
    return GAMMA - sum(abs(a + b - c) for a, b, c in zip(h @ matrix, r, t @ matrix))


def arrays(model, seed, count):
    random = np.random.default_rng(seed)
    return (random.normal(size=(count, model.entity_width)), random.normal(size=(count, model.relation_width)),
            random.normal(size=(RELATIONS, model.matrix_width)), random.integers(0, RELATIONS, count),
            random.normal(size=(count, model.entity_width)))


def relations_of(model, vectors, matrices, places):
    return Relations(vectors if model.has_vectors else None, matrices if model.has_matrices else None,
                     torch.as_tensor(places))


def leaves(*some, dtype=torch.float64):
    return [torch.tensor(one, dtype=dtype, requires_grad=True) for one in some]


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_gradients_are_those_of_the_formula(name):
    model = make(name, WIDTH, GAMMA, *DOUBLED.get(name, (False, False)))
    h, r, m, places, t = arrays(model, 1, 5)
    expected = [formula(name, h[i], r[i], m[places[i]], t[i]) for i in range(5)]
    single = leaves(h, r, m, t, dtype=torch.float32)
    scores = model.score(single[0], relations_of(model, single[1], single[2], places), single[3])
    assert np.allclose(scores.detach().numpy(), expected, rtol=1e-5, atol=1e-5)

    ends = leaves(h, r, m, t)
    weights = np.arange(1, 6) / 3.0
    scores = model.score(ends[0], relations_of(model, ends[1], ends[2], places), ends[3])
    (scores * torch.from_numpy(weights)).sum().backward()

    def total():
        return sum(weights[i] * formula(name, h[i], r[i], m[places[i]], t[i]) for i in range(5))

    for leaf, array in zip(ends, (h, r, m, t)):
        found = np.zeros_like(array) if leaf.grad is None else leaf.grad.numpy()
        for at in np.ndindex(*array.shape):
            kept, step = array[at], 1e-6
            array[at] = kept + step
            above = total()
            array[at] = kept - step
            slope = (above - total()) / (2 * step)
            array[at] = kept
            assert found[at] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("name", NAMES)
def test_entities_in_the_place_of_others_score_as_their_triples(name, side):
    model = make(name, WIDTH, GAMMA, *DOUBLED.get(name, (False, False)))
    chunks, size, count = 2, 3, 4
    known, r, m, places, _ = arrays(model, 2, chunks * size)
    others = np.random.default_rng(3).normal(size=(chunks, count, model.entity_width))
    parts = leaves(known, r, m, others)
    scores = model.against(side, parts[0], relations_of(model, parts[1], parts[2], places), parts[3])
    assert scores.shape == (chunks, size, count)
    # The same for single triples.
    again = leaves(known, r, m, others)
    at = torch.arange(chunks * size).repeat_interleave(count)
    replaced = again[3].repeat_interleave(size, 0).reshape(-1, model.entity_width)
    ends = (replaced, again[0][at]) if side == "head" else (again[0][at], replaced)
    single = model.score(ends[0], relations_of(model, again[1][at], again[2], places[at.numpy()]), ends[1])
    assert torch.allclose(scores.reshape(-1), single, rtol=1e-5, atol=1e-5)
    weights = torch.from_numpy(np.random.default_rng(4).normal(size=chunks * size * count))
    (scores.reshape(-1) * weights).sum().backward()
    (single * weights).sum().backward()
    for one, other in zip(parts, again):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            assert torch.allclose(one.grad, other.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("elements", [1, 2 * 4 * 3, 1 << 18])  # the only block of a query; the last of two; all
def test_blocks_of_pairs_are_no_other_pairs(elements, monkeypatch):
    monkeypatch.setitem(models.BLOCK_ELEMENTS, "cpu", elements)
    model = make("RotatE", WIDTH, GAMMA, double_ent=True)
    random = np.random.default_rng(5)
    queries, others = leaves(random.normal(size=(2, 3, 2 * WIDTH)), random.normal(size=(2, 4, 2 * WIDTH)))
    again = leaves(queries.detach().numpy(), others.detach().numpy())
    weights = torch.from_numpy(random.normal(size=(2, 3, 4)))
    scores = model.compare(queries, others)
    real, imaginary = (again[0].unsqueeze(2) - again[1].unsqueeze(1)).chunk(2, -1)
    expected = GAMMA - torch.hypot(real, imaginary).sum(-1)
    assert torch.allclose(scores, expected)
    (scores * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.allclose(queries.grad, again[0].grad) and torch.allclose(others.grad, again[1].grad)


@pytest.mark.parametrize("name", ["TransE_l2", "DistMult", "ComplEx", "SimplE", "RotatE"])
def test_no_row_is_kept_for_each_pair(name):
    model = make(name, 64, GAMMA, *DOUBLED.get(name, (False, False)))
    queries, others = torch.rand(1, 30, model.entity_width), torch.rand(1, 40, model.entity_width)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda some: kept.append(some.numel()) or some, lambda some: some):
        model.compare(queries.requires_grad_(), others.requires_grad_())
    assert max(kept) <= 40 * model.entity_width  # not 30 * 40 * width


@pytest.mark.parametrize("name", ["TransE_l2", "TransE_l1", "RotatE", "TransR"])
def test_a_distance_of_nothing_has_no_slope(name):
    model = make(name, WIDTH, GAMMA, *DOUBLED.get(name, (False, False)))
    h, r, m = (torch.zeros(2, width, requires_grad=True) for width in (
        model.entity_width, model.relation_width, model.matrix_width))
    relations = relations_of(model, r, m, [0, 1])
    for scores in (model.score(h, relations, h), model.against("head", h, relations, h.unsqueeze(0))):
        assert torch.equal(scores, torch.full_like(scores, GAMMA))
        scores.sum().backward()
    assert all(leaf.grad is None or torch.isfinite(leaf.grad).all() for leaf in (h, r, m))


def test_widths_that_do_not_fit_are_refused():
    for name, double_ent, double_rel in (("TransE", True, False), ("RotatE", False, False), ("RotatE", True, True),
                                         ("DistMult", False, True)):
        with pytest.raises(ValueError, match=r"-de|both|neither"):
            make(name, 6, GAMMA, double_ent, double_rel)
    with pytest.raises(ValueError, match="even"):
        make("ComplEx", 5, GAMMA)
    with pytest.raises(ValueError, match="there is no model"):
        make("TransX", 5, GAMMA)
    assert make("TransE", 100, 12.0).initial == pytest.approx(0.14)
    assert make("SimplE", 4, 1.0).bounded(torch.tensor([-30.0, 3.0, 30.0])).tolist() == [-20, 3, 20]
