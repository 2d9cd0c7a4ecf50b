"""Losses compared with their formulas, number by number; the regularizer compared with autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from graphwire.kge.losses import Loss, Regularizer


def of(genre, score, label, margin):
    if genre == "Hinge":
        return max(0.0, margin - label * score)
    if genre == "BCE":
        probability = 1 / (1 + math.exp(-score))
        return -math.log(probability if label == 1 else 1 - probability)
    return math.log(1 + math.exp(-label * score))


def expected(genre, positive, negative, weights, *, margin=1.0, adversarial=False, temperature=1.0, pairwise=False,
             mask=None):
    sums = [0.0, 0.0]
    for i, scores in enumerate(negative):
        mine = [j for j in range(len(scores)) if mask is None or mask[i][j]]
        if adversarial:
            parts = [math.exp(temperature * scores[j]) for j in mine]
            shares = [part / sum(parts) for part in parts]
        else:
            shares = [1 / len(mine)] * len(mine)
        each = [of(genre, positive[i] - scores[j], 1, margin) if pairwise else of(genre, scores[j], -1, margin)
                for j in mine]
        sums[1] += weights[i] * sum(a * b for a, b in zip(shares, each)) / len(negative)
        sums[0] += weights[i] * of(genre, positive[i], 1, margin) / len(negative)
    return sums[1] if pairwise else sum(sums) / 2


@pytest.mark.parametrize("options", [
    {}, {"adversarial": True}, {"adversarial": True, "temperature": 0.5}, {"pairwise": True}, {"masked": True},
    {"adversarial": True, "masked": True}, {"weighted": True}, {"weighted": True, "adversarial": True},
    {"margin": 2.5}])
@pytest.mark.parametrize("genre", ["Hinge", "Logistic", "Logsigmoid", "BCE"])
def test_losses_are_those_of_the_formulas(genre, options):
    options = dict(options)
    if options.get("pairwise") and genre in ("Logsigmoid", "BCE"):
        with pytest.raises(ValueError, match="pairwise"):
            Loss(genre, pairwise=True)
        return
    random = np.random.default_rng(5)
    positive, negative = random.normal(size=4), random.normal(size=(4, 3))
    weights = random.random(4) + 0.5 if options.pop("weighted", False) else np.ones(4)
    mask = np.array([[True, False, True]] * 4) if options.pop("masked", False) else None
    loss, parts = Loss(genre, **options)(
        torch.from_numpy(positive).reshape(2, 2), torch.from_numpy(negative).reshape(2, 2, 3),
        torch.from_numpy(weights).reshape(2, 2) if weights is not None else None,
        None if mask is None else torch.from_numpy(mask).reshape(2, 2, 3))
    assert float(loss) == pytest.approx(expected(genre, positive, negative, weights, mask=mask, **options), rel=1e-9)
    assert float(parts["loss"]) == float(loss)


def test_no_gradient_flows_through_adversarial_weights():
    scores = torch.tensor([[[1.0, 2.0]]], requires_grad=True)
    Loss(adversarial=True)(torch.zeros(1, 1), scores)[0].backward()
    shares = torch.softmax(torch.tensor([1.0, 2.0]), 0)
    assert torch.allclose(scores.grad[0, 0], shares * torch.sigmoid(torch.tensor([1.0, 2.0])) / 2)
    with pytest.raises(ValueError, match="not both"):
        Loss("Hinge", adversarial=True, pairwise=True)


@pytest.mark.parametrize("norm", [1, 2, 3, 4])
def test_the_regularizer_is_the_norm_and_its_gradient(norm):
    values = [torch.randn(3, 4, generator=torch.Generator().manual_seed(norm + i)) for i in range(2)]
    own, other = ([value.clone().requires_grad_() for value in values] for _ in range(2))
    for rows in (own, other):
        sum(some.sum() for some in rows).backward()
    found = Regularizer(0.01, norm)(own)
    wanted = 0.01 * sum(some.norm(p=norm) ** norm for some in other)
    wanted.backward()
    assert float(found) == pytest.approx(wanted.item(), rel=1e-5)
    for one, two in zip(own, other):
        assert torch.allclose(one.grad, two.grad, rtol=1e-5)
    assert not Regularizer(0.0, 3).active and not Regularizer(1.0, 0).active
