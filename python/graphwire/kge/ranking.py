"""Ranks each triple among the triples with another head or tail, and reports MR, MRR and Hits@1/3/10.

    known = Known(dataset)                                    # the triples to filter out
    ranks = Ranking(model, rows, known, …).ranks(triples)     # [n, 2]: the rank of the head, and of the tail
    report(ranks)

A triple's rank is 1 + the number of candidates that score as high or higher. So ties count against the triple, as in
DGL-KE; with mean_ties the triple is in the middle of its ties. Candidates that make a known triple are left out, except
with no_eval_filter.

The list of triples is cut into the same batches for any number of clients, so the figures do not depend on that number.
A NaN or infinite score is a DataError: nothing compares as higher than NaN, so every rank would be 1.
"""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.data import Dataset, Triples
from graphwire.kge.models import Model, Relations, check_scores

BLOCK_ELEMENTS = 1 << 24  # elements of the intermediate tensors of scores: bounds memory


class Known:
    """The known tails of each (head, relation) and heads of each (tail, relation), in all splits."""

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
        """Returns the entities at `side` that make a known triple."""
        keys, others = self._lists[side]
        key = known * self.relations + relation
        return others[np.searchsorted(keys, key, "left"):np.searchsorted(keys, key, "right")]


class Ranking:
    """Ranks triples.

    entity_rows(ids), relations_of(ids)  return rows of the model on any device; Ranking copies them to `device`
    known                                the triples to filter out, or None
    batch_size                           triples ranked at once; each batch reads all candidates again
    candidates                           ids of the candidates; None for all entities
    degree_candidates                    the batch's heads or tails are candidates too, each as often as it occurs;
                                         only without `known`
    """

    def __init__(self, model: Model, entity_rows: Callable[[np.ndarray], Tensor],
                 relations_of: Callable[[np.ndarray], Relations], num_entities: int, known: Optional[Known], *,
                 batch_size: int = 8, candidates: Optional[np.ndarray] = None, degree_candidates: bool = False,
                 mean_ties: bool = False, device: str = "cpu"):
        self.model, self.entity_rows, self.relations_of = model, entity_rows, relations_of
        self.known, self.batch_size, self.mean_ties, self.device = known, batch_size, mean_ties, device
        self.degree_candidates = degree_candidates
        self.candidates = np.arange(num_entities) if candidates is None else np.unique(candidates)
        if known is None and candidates is not None:
            self.candidates = candidates  # drawn with replacement: a repeated candidate counts repeatedly

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

        batch_scores = scores_of(answers, answer_rows)
        own = batch_scores.diagonal().unsqueeze(1)
        above, equal = np.zeros(len(answers), np.int64), np.zeros(len(answers), np.int64)

        def count(ids: np.ndarray, scores: Tensor) -> None:
            more, same = (scores > own).cpu(), (scores == own).cpu()
            triples, places = self._left_out(side, known_ids, relations, answers, ids)
            more[triples, places] = False
            same[triples, places] = False
            above[:] += more.sum(1).numpy()
            equal[:] += same.sum(1).numpy()

        if self.degree_candidates:
            count(answers, batch_scores)
        size = max(1, BLOCK_ELEMENTS // (len(answers) * model.entity_width))
        for first in range(0, len(self.candidates), size):
            ids = self.candidates[first:first + size]
            rows = self.entity_rows(ids).to(self.device)
            count(ids, scores_of(ids, rows))
        return above + 1 + (equal / 2 if self.mean_ties else equal)

    def _left_out(self, side: str, known_ids: np.ndarray, relations: np.ndarray, answers: np.ndarray,
                  ids: np.ndarray) -> tuple[Tensor, Tensor]:
        """Returns pairs (triple, candidate) to leave out, as positions in `answers` and in `ids`. A pair is left out if
        the candidate is the triple's own answer, or if it makes a known triple."""
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
        """Returns the ranks of heads and tails, float64 [n, 2]. The rows of other clients' batches are 0."""
        out = np.zeros((len(triples), 2))
        for first in range(rank * self.batch_size, len(triples), self.batch_size * world):
            at = slice(first, first + self.batch_size)
            head, relation, tail = triples.head[at], triples.relation[at], triples.tail[at]
            out[at, 0] = self._one_side("head", tail, relation, head)
            out[at, 1] = self._one_side("tail", head, relation, tail)
        return out


def report(ranks: np.ndarray) -> dict[str, float]:
    """Returns MRR, MR and HITS of ranks, by DGL-KE's names."""
    flat = ranks.reshape(-1)
    return {"MRR": float((1 / flat).mean()), "MR": float(flat.mean()),
            **{f"HITS@{k}": float((flat <= k).mean()) for k in (1, 3, 10)}}
