"""Ranks of triples among all that could stand in their place, and what is reported of them: MR, MRR, Hits@1/3/10.

    known = Known(dataset)                                    # what is filtered out
    ranks = Ranking(model, rows, known, …).ranks(triples)     # [n, 2]: of the head, of the tail
    report(ranks)

A triple's rank is 1 + those candidates that score as high or higher: ties count against it, as DGL-KE counts them;
mean_ties puts it in the middle of them. Candidates that make a known triple are left out (no_eval_filter: they stay).
The batches are those of the whole list whoever ranks them, so that any number of clients find the same figures. A score
that is NaN or infinite is a DataError: nothing is above NaN, and every rank would be the first.
"""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.data import Dataset, Triples
from graphwire.kge.models import Model, Relations, check_scores

BLOCK_ELEMENTS = 1 << 24  # of scores' intermediates: bounds memory


class Known:
    """Tails of (head, relation) and heads of (tail, relation), over all splits."""

    def __init__(self, dataset: Dataset):
        splits = [split for split in (dataset.train, dataset.valid, dataset.test) if split is not None]
        head, relation, tail = (np.concatenate([getattr(split, name) for split in splits])
                                for name in ("head", "relation", "tail"))
        self.relations = dataset.num_relations
        self._lists = {side: self._sorted(known, relation, other) for side, known, other in (
            ("tail", head, tail), ("head", tail, head))}

    def _sorted(self, known: np.ndarray, relation: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = known * self.relations + relation
        order = np.argsort(keys, kind="stable")
        return keys[order], other[order]

    def of(self, side: str, known: int, relation: int) -> np.ndarray:
        """Entities that make a known triple at `side`."""
        keys, others = self._lists[side]
        key = known * self.relations + relation
        return others[np.searchsorted(keys, key, "left"):np.searchsorted(keys, key, "right")]


class Ranking:
    """entity_rows(ids), relations_of(ids): rows of the model, wherever they are: what computes with them takes them to
    `device`. candidates: ids to be ranked among, None: all entities. Blocks of them are read again for each batch of
    triples, so batch_size decides how often. degree_candidates: the heads or tails of the batch are candidates too,
    each as often as it is there; where nothing is known."""

    def __init__(self, model: Model, entity_rows: Callable[[np.ndarray], Tensor],
                 relations_of: Callable[[np.ndarray], Relations], num_entities: int, known: Optional[Known], *,
                 batch_size: int = 8, candidates: Optional[np.ndarray] = None, degree_candidates: bool = False,
                 mean_ties: bool = False, device: str = "cpu"):
        self.model, self.entity_rows, self.relations_of = model, entity_rows, relations_of
        self.known, self.batch_size, self.mean_ties, self.device = known, batch_size, mean_ties, device
        self.degree_candidates = degree_candidates
        self.candidates = np.arange(num_entities) if candidates is None else np.unique(candidates)
        if known is None and candidates is not None:
            self.candidates = candidates  # drawn with replacement; each counts

    @torch.no_grad()
    def _one_side(self, side: str, known_ids: np.ndarray, relations: np.ndarray, answers: np.ndarray) -> np.ndarray:
        model = self.model
        known = self.entity_rows(known_ids).to(self.device)
        of_relations = self.relations_of(relations).to(self.device)
        answer_rows = self.entity_rows(answers).to(self.device)

        def scores_of(ids: np.ndarray, rows: Tensor) -> Tensor:
            scores = model.against(side, known, of_relations, rows.unsqueeze(0))[0]
            ends = (ids, known_ids[:, None]) if side == "head" else (known_ids[:, None], ids)
            check_scores(scores, ends[0], relations[:, None], ends[1])
            return model.bounded(scores)

        among = scores_of(answers, answer_rows)
        own = among.diagonal().unsqueeze(1)
        above, equal = np.zeros(len(answers), np.int64), np.zeros(len(answers), np.int64)

        def count(ids: np.ndarray, scores: Tensor) -> None:
            more, same = (scores > own).cpu(), (scores == own).cpu()
            triples, places = self._left_out(side, known_ids, relations, answers, ids)
            more[triples, places] = False
            same[triples, places] = False
            above[:] += more.sum(1).numpy()
            equal[:] += same.sum(1).numpy()

        if self.degree_candidates:
            count(answers, among)
        size = max(1, BLOCK_ELEMENTS // (len(answers) * model.entity_width))
        for first in range(0, len(self.candidates), size):
            ids = self.candidates[first:first + size]
            rows = self.entity_rows(ids).to(self.device)
            count(ids, scores_of(ids, rows))
        return above + 1 + (equal / 2 if self.mean_ties else equal)

    def _left_out(self, side: str, known_ids: np.ndarray, relations: np.ndarray, answers: np.ndarray,
                  ids: np.ndarray) -> tuple[Tensor, Tensor]:
        """Which triple is not held against which of the candidates `ids`: its own answer's, and what makes a known
        one."""
        if self.known is None:
            triples, places = np.nonzero(ids[None, :] == answers[:, None])
            return torch.from_numpy(triples), torch.from_numpy(places)
        found: list[np.ndarray] = []
        for i, answer in enumerate(answers):
            true = np.append(self.known.of(side, int(known_ids[i]), int(relations[i])), answer)
            at = np.searchsorted(ids, true)
            at = at[(at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == true)]
            found.append(np.stack([np.full(len(at), i), at]))
        triples, places = np.concatenate(found, axis=1)
        return torch.from_numpy(triples), torch.from_numpy(places)

    def ranks(self, triples: Triples, rank: int = 0, world: int = 1) -> np.ndarray:
        """float64 [n, 2]: of heads and tails; rows of other clients' batches are 0."""
        out = np.zeros((len(triples), 2))
        for first in range(rank * self.batch_size, len(triples), self.batch_size * world):
            at = slice(first, first + self.batch_size)
            head, relation, tail = triples.head[at], triples.relation[at], triples.tail[at]
            out[at, 0] = self._one_side("head", tail, relation, head)
            out[at, 1] = self._one_side("tail", head, relation, tail)
        return out


def report(ranks: np.ndarray) -> dict[str, float]:
    """MRR, MR and HITS of ranks, by DGL-KE's names."""
    flat = ranks.reshape(-1)
    return {"MRR": float((1 / flat).mean()), "MR": float(flat.mean()),
            **{f"HITS@{k}": float((flat <= k).mean()) for k in (1, 3, 10)}}
