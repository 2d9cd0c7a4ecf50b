"""Ranks compared with brute force over every entity and known triple; ties; the same figures with any number of
clients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphwire.kge.data import DataError, Triples
from graphwire.kge.models import Relations, make
from graphwire.kge.ranking import Known, Ranking, report

WIDTH = 4


@pytest.fixture(scope="module")
def rows(dataset):
    """Small integers, so that scores are exact and many are equal."""
    random = np.random.default_rng(2)
    return (random.integers(-1, 2, (dataset.num_entities, WIDTH)).astype(np.float32),
            random.integers(-1, 2, (dataset.num_relations, WIDTH)).astype(np.float32))


def ranking_of(dataset, rows, **options):
    model = make("DistMult", WIDTH, 1.0)
    known = Known(dataset) if options.pop("filtered", True) else None
    return Ranking(model, lambda ids: torch.from_numpy(rows[0][ids]),
                   lambda ids: Relations(torch.from_numpy(rows[1][ids]), None, None), dataset.num_entities, known,
                   **options)


def brute(dataset, rows, head, relation, tail, side, *, filtered=True, candidates=None, mean=False):
    true = {(int(h), int(r), int(t)) for split in (dataset.train, dataset.valid, dataset.test)
            for h, r, t in zip(split.head, split.relation, split.tail)}
    entities, relations = rows

    def score(h, t):
        return float((entities[h] * relations[relation] * entities[t]).sum())

    own, above, equal = score(head, tail), 0, 0
    for other in range(dataset.num_entities) if candidates is None else candidates:
        triple = (other, relation, tail) if side == 0 else (head, relation, other)
        if other == (head, tail)[side] or (filtered and triple in true):
            continue
        value = score(triple[0], triple[2])
        above, equal = above + (value > own), equal + (value == own)
    return above + 1 + (equal / 2 if mean else equal)


@pytest.mark.parametrize("options", [{}, {"filtered": False}, {"mean_ties": True}])
def test_ranks_are_those_of_brute_force(dataset, rows, options):
    test = dataset.test
    found = ranking_of(dataset, rows, batch_size=7, **options).ranks(test)
    brute_options = {"mean": options.get("mean_ties", False), "filtered": options.get("filtered", True)}
    expected = [[brute(dataset, rows, int(h), int(r), int(t), side, **brute_options) for side in (0, 1)]
                for h, r, t in zip(test.head, test.relation, test.tail)]
    assert found.tolist() == expected
    assert len({rank for pair in expected for rank in pair}) > 10


@pytest.mark.parametrize("filtered", [True, False])
def test_some_candidates(dataset, rows, filtered):
    random = np.random.default_rng(8)
    candidates = random.integers(0, dataset.num_entities, 40)
    test = dataset.test
    found = ranking_of(dataset, rows, filtered=filtered, candidates=candidates).ranks(test)
    counted = np.unique(candidates) if filtered else candidates
    for i, (h, r, t) in enumerate(zip(test.head, test.relation, test.tail)):
        assert found[i].tolist() == [brute(dataset, rows, int(h), int(r), int(t), side, filtered=filtered,
                                           candidates=counted.tolist()) for side in (0, 1)]


def test_heads_and_tails_of_the_batch_as_candidates(dataset, rows):
    """--neg_deg_sample_eval: entities with many triples are frequent candidates."""
    test, size = dataset.test, 7
    found = ranking_of(dataset, rows, filtered=False, degree_candidates=True, batch_size=size).ranks(test)
    for i, (h, r, t) in enumerate(zip(test.head, test.relation, test.tail)):
        batch = slice(i // size * size, i // size * size + size)
        for side, ends in ((0, test.head[batch]), (1, test.tail[batch])):
            among = [*range(dataset.num_entities), *ends.tolist()]
            assert found[i, side] == brute(dataset, rows, int(h), int(r), int(t), side, filtered=False,
                                           candidates=among)
    assert (found != ranking_of(dataset, rows, filtered=False, batch_size=size).ranks(test)).any()


def test_any_number_of_clients_and_blocks_find_the_same(dataset, monkeypatch):
    random = np.random.default_rng(3)
    rows = (random.normal(size=(dataset.num_entities, WIDTH)).astype(np.float32),
            random.normal(size=(dataset.num_relations, WIDTH)).astype(np.float32))
    whole = ranking_of(dataset, rows, batch_size=4).ranks(dataset.test)
    for world in (2, 3, 7):
        parts = [ranking_of(dataset, rows, batch_size=4).ranks(dataset.test, rank, world) for rank in range(world)]
        assert np.array_equal(sum(parts), whole)
        assert all(((part > 0).sum() > 0) for part in parts)
        assert (sum((part > 0).astype(int) for part in parts) == 1).all()
    monkeypatch.setattr("graphwire.kge.ranking.BLOCK_ELEMENTS", 4 * WIDTH * 5)  # five candidates at a time
    assert np.array_equal(ranking_of(dataset, rows, batch_size=4).ranks(dataset.test), whole)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["DistMult", "TransE_l2", "SimplE"])
@pytest.mark.parametrize("whose", ["entity", "candidate", "relation"])
def test_scores_that_are_no_numbers_have_no_rank(dataset, name, bad, whose):
    """No score is above NaN, so every rank would be the first. SimplE's bounds must not hide a NaN."""
    random = np.random.default_rng(3)
    rows = [random.normal(size=(count, WIDTH)).astype(np.float32)
            for count in (dataset.num_entities, dataset.num_relations)]
    test = Triples(dataset.test.head[:1], dataset.test.relation[:1], dataset.test.tail[:1])
    h, r, t = (int(some[0]) for some in (test.head, test.relation, test.tail))
    other = next(i for i in range(dataset.num_entities) if i not in (h, t))
    place, at, triple = {"entity": (0, h, f"head {h}, relation {r}, tail {t}"),
                         "candidate": (0, other, f"head {other}, relation {r}, tail {t}"),
                         "relation": (1, r, f"head {h}, relation {r}, tail {t}")}[whose]
    rows[place][at, 1] = bad
    model = make(name, WIDTH, 1.0)
    ranking = Ranking(model, lambda ids: torch.from_numpy(rows[0][ids]),
                      lambda ids: Relations(torch.from_numpy(rows[1][ids]), None, None), dataset.num_entities, None)
    with pytest.raises(DataError, match=f"^the score of {triple} is no finite number: "):
        ranking.ranks(test)


def test_figures():
    found = report(np.array([[1.0, 2.0], [4.0, 20.0]]))
    assert found == {"MRR": (1 + 0.5 + 0.25 + 0.05) / 4, "MR": 6.75, "HITS@1": 0.25, "HITS@3": 0.5, "HITS@10": 0.75}


def test_what_is_known_is_of_all_splits(dataset):
    known = Known(dataset)
    for split in (dataset.train, dataset.valid, dataset.test):
        assert isinstance(split, Triples)
        assert int(split.tail[0]) in known.of("tail", int(split.head[0]), int(split.relation[0]))
        assert int(split.head[0]) in known.of("head", int(split.tail[0]), int(split.relation[0]))
    assert len(known.of("tail", 0, 4)) <= 1
