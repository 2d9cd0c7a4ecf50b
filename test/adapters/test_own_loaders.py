"""Loaders of a program that derive from DistDataLoader and choose the items of each batch in _next_data()."""

from __future__ import annotations

import pickle

import pytest
import torch
from graphwire.dgl.distributed.dataloader import DistDataLoader

SAMPLERS = pytest.mark.parametrize("samplers", ["0", "2"])


def items_of(items):
    return list(items)


class ByType(DistDataLoader):
    """A batch has two ids of each type while there are any; it begins an epoch in DGL's way."""

    def __init__(self, ids, expected=3, **options):
        super().__init__(ids, 4, collate_fn=items_of, **options)
        self.expected_idxs = expected
        self.current_pos = 0

    def __iter__(self):
        self.current_pos = self.recv_idxs = self.num_pending = 0
        return self

    def _next_data(self):
        found = [(kind, int(one)) for kind, some in self.dataset.items()
                 for one in some[self.current_pos:self.current_pos + 2]]
        self.current_pos += 2
        return found or None


class Doubled(DistDataLoader):
    """Changes the items of the base class's batches."""

    def _next_data(self):
        items = super()._next_data()
        return None if items is None else [2 * item for item in items]


IDS = {("a", "r", "b"): torch.arange(5), "s": torch.arange(10, 13)}
R = ("a", "r", "b")
BATCHES = [[(R, 0), (R, 1), ("s", 10), ("s", 11)], [(R, 2), (R, 3), ("s", 12)], [(R, 4)]]


@pytest.fixture(autouse=True)
def some_samplers(request, monkeypatch):
    monkeypatch.setenv("DGL_NUM_SAMPLER", request.getfixturevalue("samplers"))


@SAMPLERS
def test_a_dict_of_ids(samplers):
    """Several epochs; fewer batches than the items give, and more; an epoch that is left, and begun again."""
    loader = ByType(IDS)
    assert loader.num_workers == int(samplers)
    assert list(loader) == BATCHES and list(loader) == BATCHES and len(loader) == 3
    assert list(ByType(IDS, 2)) == BATCHES[:2] and list(ByType(IDS, 9)) == BATCHES
    assert next(iter(loader)) == BATCHES[0] and next(loader) == BATCHES[1]
    assert list(loader) == BATCHES
    again = pickle.loads(pickle.dumps(loader))
    assert list(again) == BATCHES


@SAMPLERS
def test_the_base_class_chooses_in_its_order(samplers):
    """As the plain loader, whose items it doubles; shuffled, an epoch has each item once."""
    ids = torch.arange(3, 14)
    for drop_last in (False, True):
        plain = list(DistDataLoader(ids, 4, drop_last=drop_last))
        assert list(Doubled(ids, 4, drop_last=drop_last)) == [[2 * one for one in batch] for batch in plain]
    pairs = Doubled([("a", 1), ("b", 2)], 2)
    assert list(pairs) == [[("a", 1) * 2, ("b", 2) * 2]]
    shuffled = Doubled(ids, 4, shuffle=True)
    epochs = [[one for batch in shuffled for one in batch] for _ in range(3)]
    assert all(sorted(epoch) == (2 * ids).tolist() for epoch in epochs) and epochs[0] != epochs[1]


@SAMPLERS
def test_a_wrapper_that_keeps_the_iterator(samplers):
    """It asks the iterator for the loader's attributes, and begins the next epoch with it, as DGL's loader allows."""
    loader = DistDataLoader(torch.arange(5), 2, shuffle=True)
    kept = iter(loader)
    assert (len(kept), kept.expected_idxs, kept.batch_size, kept.dataset is loader.dataset) == (3, 3, 2, True)
    epochs = []
    for _ in range(3):
        kept = iter(kept)
        epochs.append([one for batch in kept for one in batch])
        with pytest.raises(StopIteration):
            next(kept)
    assert all(sorted(epoch) == list(range(5)) for epoch in epochs)
    for _ in range(2):  # a program that counts sees no StopIteration
        kept = iter(kept)
        assert sorted(one for _ in range(3) for one in next(kept)) == list(range(5))
    half = iter(loader)
    first = next(half)
    assert sorted(first + [one for batch in half for one in batch]) == list(range(5))
    with pytest.raises(AttributeError):
        kept.nothing  # noqa: B018


@SAMPLERS
def test_errors(samplers):
    with pytest.raises(TypeError, match=r"dataset: ids, or a list of .*a class that overrides _next_data"):
        DistDataLoader(IDS, 4)

    class Fails(ByType):
        def _next_data(self):
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        next(iter(Fails(IDS)))
    loader = ByType(IDS)
    loader.collate_fn = lambda items: 1 / 0
    with pytest.raises(ZeroDivisionError):
        next(iter(loader))
