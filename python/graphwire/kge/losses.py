"""Losses for scored triples and their negatives, and the regularization of the rows that a step reads.

    loss = Loss("Logsigmoid", adversarial=True, temperature=1.0)
    total, parts = loss(positive, negative, weights)          # [chunks, n], [chunks, n, m], [chunks, n] or None
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

GENRES = ("Hinge", "Logistic", "Logsigmoid", "BCE")


class Loss:
    """The loss of one batch. genre: the loss of one score x with its label y, 1 or -1:

    Hinge       max(0, margin - y · x)
    Logistic    log(1 + e^(-y · x))
    Logsigmoid  the same value, which DGL-KE computes as -log sigma(y · x)
    BCE         the binary cross entropy of sigma(x). (DGL-KE uses x itself as a probability, and stops if x is outside
                0 to 1)

    The loss is (mean over positives + mean over each positive's negatives) / 2. adversarial: the softmax of
    temperature · score weighs the negatives; no gradient flows through the weights (Sun et al., ICLR 2019). pairwise:
    the loss is the mean genre of (positive - negative) with label 1 instead.
    """

    def __init__(self, genre: str = "Logsigmoid", *, margin: float = 1.0, adversarial: bool = False,
                 temperature: float = 1.0, pairwise: bool = False):
        if genre not in GENRES:
            raise ValueError(f"there is no loss {genre}: choose one of {', '.join(GENRES)}")
        if pairwise and genre not in ("Hinge", "Logistic"):
            raise ValueError(f"pairwise goes with Hinge and Logistic, not with {genre}")
        if pairwise and adversarial:
            raise ValueError("a loss is pairwise or adversarial, not both")
        self.genre, self.margin, self.pairwise = genre, margin, pairwise
        self.adversarial, self.temperature = adversarial, temperature

    def _of(self, scores: Tensor, label: int) -> Tensor:
        if self.genre == "Hinge":
            return (self.margin - label * scores).clamp_min(0)
        return functional.softplus(-label * scores)

    def __call__(self, positive: Tensor, negative: Tensor, weights: Optional[Tensor] = None,
                 mask: Optional[Tensor] = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss, and its parts by name.

        weights: one for each triple; the triple's negatives have the same weight.
        mask: bool, one for each negative; False leaves the negative out. (With negatives by degree, a triple's own
        entity is among its candidates.)
        """
        if self.pairwise:
            each = self._of(positive.unsqueeze(-1) - negative, 1)
        else:
            each = self._of(negative, -1)
        if self.adversarial:
            scores = negative.detach() * self.temperature
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            of_negatives = (torch.softmax(scores, -1) * each).sum(-1)
        elif mask is not None:
            of_negatives = (each * mask).sum(-1) / mask.sum(-1)
        else:
            of_negatives = each.mean(-1)
        if weights is not None:
            of_negatives = of_negatives * weights
        if self.pairwise:
            total = of_negatives.mean()
            return total, {"loss": total.detach()}
        of_positives = self._of(positive, 1)
        if weights is not None:
            of_positives = of_positives * weights
        positive_loss, negative_loss = of_positives.mean(), of_negatives.mean()
        total = (positive_loss + negative_loss) / 2
        return total, {"pos_loss": positive_loss.detach(), "neg_loss": negative_loss.detach(), "loss": total.detach()}


class Regularizer:
    """coefficient · Σ |x|^norm over the elements of all rows that a step reads. A row counts once for each gradient
    that the step computes for it. The regularization's gradient is added to the rows' gradients without autograd."""

    def __init__(self, coefficient: float, norm: int):
        if coefficient < 0 or norm < 0:
            raise ValueError("a regularization's coefficient and norm must be 0 or more")
        self.coefficient, self.norm = coefficient, norm

    @property
    def active(self) -> bool:
        return self.coefficient > 0 and self.norm > 0

    def _sign_power(self, some: Tensor) -> Tensor:
        """Returns |x|^(norm-1) with the sign of x, in new memory."""
        if self.norm == 1:
            return some.sign()
        if self.norm == 2:
            return some.clone()
        return (some.abs() if self.norm == 3 else some.abs().pow_(self.norm - 2)).mul_(some)

    @torch.no_grad()
    def __call__(self, rows: list[Tensor]) -> Tensor:
        """Returns the regularization of rows that have gradients, and adds its own gradient to them."""
        total = torch.zeros(())
        for some in rows:
            assert some.grad is not None
            sign_power = self._sign_power(some)
            some.grad.add_(sign_power, alpha=self.coefficient * self.norm)
            total = total.to(some.device) + sign_power.mul_(some).sum()
        return total * self.coefficient
