"""Score functions of knowledge graph embeddings: for triples, and for entities that replace a head or tail.

    model = make("RotatE", hidden_dim=200, gamma=12.0, double_ent=True)
    model.score(heads, relations, tails)                      # [n]
    model.against("tail", heads, relations, others)           # [chunks, triples of a chunk, others of a chunk]

A triple with a higher score is likelier. A relation's row is a vector, a matrix (RESCAL), or both (TransR). Callers
pass a vector for each triple. A matrix may have 640 KB, so callers pass it once for each relation, with the position of
each triple's matrix. Widths and initial ranges are DGL-KE's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.data import DataError

NAMES = ("TransE", "TransE_l1", "TransE_l2", "TransR", "RESCAL", "DistMult", "ComplEx", "RotatE", "SimplE")
TINY = 1e-30  # the least value under a root: at distance 0 the slope is then 0, not infinite
BLOCK_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 26}  # elements of a block of row pairs; a CPU's fits into its cache


def check_finite(scores: Tensor, what: str, ids: Sequence[Any], why: str) -> None:
    """Raises DataError if a score is NaN or infinite: a sort would put it first.

    what: the error's text, with a {} for each array of `ids`. The arrays broadcast to the shape of the scores.
    """
    if not scores.numel() or all(math.isfinite(bound) for bound in scores.aminmax()):  # any NaN makes both bounds NaN
        return
    at = tuple((~scores.isfinite()).nonzero()[0].tolist())
    numbers = [int(np.broadcast_to(np.asarray(some), scores.shape)[at]) for some in ids]
    raise DataError(f"{what.format(*numbers)} is no finite number: {why}")


def check_scores(scores: Tensor, heads: Any, relations: Any, tails: Any) -> None:
    """check_finite() for the scores of triples."""
    check_finite(scores, "the score of head {}, relation {}, tail {}", (heads, relations, tails),
                 "the model's rows have NaN or infinity, or are too large; train it with a smaller --lr")


class Relations(NamedTuple):
    """The rows of the relations of some triples."""

    vectors: Any  # [triples, width], or None
    matrices: Any  # [relations, rows * columns], or None
    places: Any  # [triples]: the position of each triple's relation in `matrices`, or None

    def to(self, device: str) -> Relations:
        """Returns a copy on a device."""
        return Relations(*(None if some is None else some.to(device) for some in self))


class Model:
    """The base class of the models. double_ent and double_rel are DGL-KE's -de and -dr: they double the width of
    entities and of relations."""

    has_vectors, has_matrices = True, False

    def __init__(self, name: str, hidden_dim: int, gamma: float, double_ent: bool, double_rel: bool):
        self.name, self.hidden_dim, self.gamma = name, hidden_dim, gamma
        self.entity_width = hidden_dim * (2 if double_ent else 1)
        self.relation_width = hidden_dim * (2 if double_rel else 1)
        self.initial = (gamma + 2.0) / hidden_dim  # rows are uniform in ±initial
        self.check()

    def check(self) -> None:
        """Raises ValueError if the model does not allow the two widths."""
        if self.entity_width != self.relation_width:
            raise ValueError(f"{self.name} needs entities and relations of the same width, not {self.entity_width} and "
                             f"{self.relation_width}: give both -de and -dr, or neither")

    @property
    def matrix_width(self) -> int:
        """Elements of a relation's matrix."""
        return self.entity_width * self.relation_width

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        """Returns the scores [n] of n triples."""
        raise NotImplementedError

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        """Combines the known ends and relations of n triples into queries [n, width], which compare() compares with the
        entities at `side`."""
        raise NotImplementedError

    def compare(self, queries: Tensor, others: Tensor) -> Tensor:
        """Returns the scores [chunks, n, m] of queries [chunks, n, width] and entities [chunks, m, width]."""
        raise NotImplementedError

    def against(self, side: str, known: Tensor, relations: Relations, others: Tensor) -> Tensor:
        """Returns the scores [chunks, n, m] of each chunk's entities `others` [chunks, m, width] as the head or tail
        (`side`) of the chunk's n triples. known: [chunks * n, width], the other ends of the triples."""
        queries = self.query(side, known, relations)
        return self.compare(queries.reshape(len(others), -1, queries.shape[-1]), others)

    def bounded(self, scores: Tensor) -> Tensor:
        """Returns scores limited to the range that training and ranking use."""
        return scores


class _Distance(torch.autograd.Function):
    """Euclidean distances of all pairs of [chunks, n, width] and [chunks, m, width].

    The gradient is written by hand, because autograd's takes a third more time. The gradient of d = |q - o| is
    (q - o) / d; two matrix products compute its sum.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, others: Tensor) -> Tensor:
        squares = queries.square().sum(-1, keepdim=True) + others.square().sum(-1).unsqueeze(-2)
        distances = torch.baddbmm(squares, queries, others.transpose(-1, -2), alpha=-2).clamp_min_(TINY).sqrt_()
        ctx.save_for_backward(queries, others, distances)
        return distances

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        queries, others, distances = ctx.saved_tensors
        slopes = (gradients[0] / distances).masked_fill_(distances < 2 * math.sqrt(TINY), 0)
        return (torch.baddbmm(slopes.sum(-1, keepdim=True) * queries, slopes, others, alpha=-1),
                torch.baddbmm(slopes.sum(-2).unsqueeze(-1) * others, slopes.transpose(-1, -2), queries, alpha=-1))


class TransE(Model):
    """gamma - ‖h + r - t‖, with the first or second norm. Bordes, Usunier, García-Durán, Weston, Yakhnenko:
    "Translating embeddings for modeling multi-relational data", NIPS 2013."""

    def __init__(self, name: str, hidden_dim: int, gamma: float, double_ent: bool, double_rel: bool):
        super().__init__(name, hidden_dim, gamma, double_ent, double_rel)
        self.power = 1 if name == "TransE_l1" else 2

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        return self.gamma - torch.linalg.vector_norm(heads + relations.vectors - tails, self.power, dim=-1)

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        return known - relations.vectors if side == "head" else known + relations.vectors

    def compare(self, queries: Tensor, others: Tensor) -> Tensor:
        if self.power == 1:
            return self.gamma - torch.cdist(queries, others, p=1.0)
        return self.gamma - cast(Tensor, _Distance.apply(queries, others))


class DistMult(Model):
    """Σ h · r · t. Yang, Yih, He, Gao, Deng: "Embedding entities and relations for learning and inference in knowledge
    bases", ICLR 2015."""

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        return (heads * relations.vectors * tails).sum(-1)

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        return known * relations.vectors

    def compare(self, queries: Tensor, others: Tensor) -> Tensor:
        return queries @ others.transpose(-1, -2)


class Halves(DistMult):
    """Models whose rows consist of two vectors of half the width. The score is the product of a query and a row."""

    def check(self) -> None:
        super().check()
        if self.entity_width % 2:
            raise ValueError(f"{self.name} needs rows of an even width, not {self.entity_width}")

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        return (self.query("tail", heads, relations) * tails).sum(-1)


class ComplEx(Halves):
    """Re Σ h · r · conj(t), in complex numbers: the first half of a row is real, the second imaginary. Trouillon,
    Welbl, Riedel, Gaussier, Bouchard: "Complex embeddings for simple link prediction", ICML 2016."""

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        real, imaginary = known.chunk(2, -1)
        cos, sin = relations.vectors.chunk(2, -1)
        if side == "head":  # t · conj(r); the real part of its product with h is the score
            return torch.cat([real * cos + imaginary * sin, imaginary * cos - real * sin], -1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], -1)


class _Lengths(torch.autograd.Function):
    """Σ |q - o| of all pairs of complex [chunks, n, width] and [chunks, m, width], the real halves first.

    Both passes work block by block: n · m · width elements fit into no cache, and autograd would keep several times as
    many.
    """

    @staticmethod
    def _blocks(queries: Tensor, others: Tensor) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
        """Yields (chunk, slice of its queries, their real and imaginary differences [slice, m, width / 2]). The next
        block overwrites the differences."""
        half = others.shape[-1] // 2
        elements = max(1, others.shape[1] * half)
        size = min(max(1, BLOCK_ELEMENTS[queries.device.type] // elements), max(1, queries.shape[1]))
        real, imaginary = queries.new_empty(2, size, others.shape[1], half)
        for chunk, entities in enumerate(others):
            for first in range(0, queries.shape[1], size):
                some = slice(first, min(first + size, queries.shape[1]))
                rows, count = queries[chunk, some].unsqueeze(1), some.stop - first
                yield (chunk, some, torch.sub(rows[..., :half], entities[:, :half], out=real[:count]),
                       torch.sub(rows[..., half:], entities[:, half:], out=imaginary[:count]))

    @staticmethod
    def forward(ctx: Any, queries: Tensor, others: Tensor) -> Tensor:
        ctx.save_for_backward(queries, others)
        lengths = queries.new_empty(*queries.shape[:2], others.shape[1])
        for chunk, some, real, imaginary in _Lengths._blocks(queries, others):
            torch.sum(real.square_().addcmul_(imaginary, imaginary).sqrt_(), -1, out=lengths[chunk, some])
        return lengths

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        queries, others = ctx.saved_tensors
        of_queries, of_others = torch.empty_like(queries), torch.zeros_like(others)
        half = others.shape[-1] // 2
        for chunk, some, real, imaginary in _Lengths._blocks(queries, others):
            slopes = (real * real).addcmul_(imaginary, imaginary).clamp_min_(TINY).rsqrt_()
            slopes.mul_(gradients[0][chunk, some].unsqueeze(-1))
            for at, part in ((slice(0, half), real.mul_(slopes)), (slice(half, None), imaginary.mul_(slopes))):
                of_queries[chunk, some, at] = part.sum(1)
                of_others[chunk, :, at] -= part.sum(0)
        return of_queries, of_others


class RotatE(Model):
    """gamma - Σ |h · e^(iφ) - t|, in complex numbers, φ = r · π / initial. Sun, Deng, Nie, Tang: "RotatE: Knowledge
    graph embedding by relational rotation in complex space", ICLR 2019. Entities have twice the width (-de)."""

    def check(self) -> None:
        if self.entity_width != 2 * self.relation_width:
            raise ValueError(f"{self.name} needs entities of twice the width of relations, not {self.entity_width} and "
                             f"{self.relation_width}: give -de, but not -dr")

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        phase = relations.vectors * (math.pi / self.initial)
        cos, sin = phase.cos(), phase.sin()
        if side == "head":
            sin = -sin
        real, imaginary = known.chunk(2, -1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], -1)

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        real, imaginary = (self.query("tail", heads, relations) - tails).chunk(2, -1)
        return self.gamma - (real.square() + imaginary.square()).clamp_min(TINY).sqrt().sum(-1)

    def compare(self, queries: Tensor, others: Tensor) -> Tensor:
        return self.gamma - cast(Tensor, _Lengths.apply(queries, others))


class SimplE(Halves):
    """½ Σ (h₁ · r₁ · t₂ + t₁ · r₂ · h₂), where 1 and 2 are the halves of a row; bounded by ±20. Kazemi, Poole: "SimplE
    embedding for link prediction in knowledge graphs", NeurIPS 2018."""

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        first, second = known.chunk(2, -1)
        forward, backward = relations.vectors.chunk(2, -1)
        if side == "head":  # the product with (h₁, h₂) is the score
            return torch.cat([forward * second, backward * first], -1) / 2
        return torch.cat([backward * second, forward * first], -1) / 2  # the product with (t₁, t₂) is the score

    def bounded(self, scores: Tensor) -> Tensor:
        return scores.clamp(-20, 20)


def _by_relation(places: Tensor, call: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Calls `call` with each relation and the indices of its triples. Returns the results in the order of the
    triples."""
    order = torch.argsort(places, stable=True)
    found, counts = torch.unique_consecutive(places[order], return_counts=True)
    pieces = [call(int(relation), some) for relation, some in zip(found, order.split(counts.tolist()))]
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order), device=order.device)
    return torch.cat(pieces)[back]


class RESCAL(DistMult):
    """hᵀ · M · t. Nickel, Tresp, Kriegel: "A three-way model for collective learning on multi-relational data", ICML
    2011. (DGL-KE compares negative tails with M · h, the transposed product. Here both sides give the triple's
    score.)"""

    has_vectors, has_matrices = False, True

    def query(self, side: str, known: Tensor, relations: Relations) -> Tensor:
        matrices = relations.matrices.view(-1, self.relation_width, self.entity_width)
        return _by_relation(relations.places, lambda relation, some: known[some] @ (
            matrices[relation].T if side == "head" else matrices[relation]))

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        return (self.query("tail", heads, relations) * tails).sum(-1)


class TransR(Model):
    """gamma - ‖h · M + r - t · M‖₁, with a matrix M for each relation. Lin, Liu, Sun, Liu, Zhu: "Learning entity and
    relation embeddings for knowledge graph completion", AAAI 2015. (For negative tails DGL-KE subtracts r from the
    head, and its distributed mode never pushes M. Graphwire adds r, and pushes M like all rows.)"""

    has_matrices = True

    def check(self) -> None:
        pass

    def _project(self, entities: Tensor, relations: Relations) -> Tensor:
        matrices = relations.matrices.view(-1, self.entity_width, self.relation_width)
        return _by_relation(relations.places, lambda relation, some: entities[some] @ matrices[relation])

    def score(self, heads: Tensor, relations: Relations, tails: Tensor) -> Tensor:
        difference = self._project(heads, relations) + relations.vectors - self._project(tails, relations)
        return self.gamma - difference.abs().sum(-1)

    def against(self, side: str, known: Tensor, relations: Relations, others: Tensor) -> Tensor:
        matrices = relations.matrices.view(-1, self.entity_width, self.relation_width)
        projected = self._project(known, relations)
        queries = projected - relations.vectors if side == "head" else projected + relations.vectors
        size = len(known) // len(others)
        chunks = []
        for i, entities in enumerate(others):
            own = queries[i * size:(i + 1) * size]
            chunks.append(_by_relation(
                relations.places[i * size:(i + 1) * size],
                lambda relation, some, own=own, entities=entities: torch.cdist(  # type: ignore[misc]
                    own[some], entities @ matrices[relation], p=1.0)))
        return self.gamma - torch.stack(chunks)


_CLASSES: dict[str, type[Model]] = {
    "TransE": TransE, "TransE_l1": TransE, "TransE_l2": TransE, "TransR": TransR, "RESCAL": RESCAL,
    "DistMult": DistMult, "ComplEx": ComplEx, "RotatE": RotatE, "SimplE": SimplE}


def make(name: str, hidden_dim: int, gamma: float, double_ent: bool = False, double_rel: bool = False) -> Model:
    """Makes a model by its DGL-KE name. Raises ValueError for an unknown name, and for widths that the model does not
    allow."""
    if name not in _CLASSES:
        raise ValueError(f"there is no model {name}: choose one of {', '.join(NAMES)}")
    return _CLASSES[name](name, hidden_dim, gamma, double_ent, double_rel)
