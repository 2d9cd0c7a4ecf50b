"""Loaders of several ranks: how seeds are divided, what ranks exchange about it, and unequal numbers of steps. Ranks
are forks that meet over a file. A group runs several cases, since starting one takes longer than the cases."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
import warnings

import graphwire
import numpy as np
import pytest
import torch
import torch.distributed as dist
from graphwire._train import ranks
from rank_forks import in_ranks
from torch.utils.data import DataLoader, DistributedSampler


def refused(loop):
    """The error of a loop without batches."""
    with pytest.raises(ValueError) as caught:
        next(iter(loop))
    return str(caught.value)


def seeds_of(loader):
    return [seed for batch in loader for seed in batch.seeds.tolist()]


# --- Equal shares, compared with torch's. ---


def shares(graph, count, size, world, **options):
    """The batches of each rank."""
    return [list(graphwire.NodeLoader(graph, range(count), [1], batch_size=size, world=world, rank=rank, **options))
            for rank in range(world)]


def test_wrapped_shares_are_those_of_a_distributed_sampler(whole):
    """Every rank has as many seeds and steps as with torch, and the same seeds occur twice, for all numbers. All steps
    but the last equal those of an epoch without repeats."""
    draw = random.Random(5)
    with graphwire.open(whole) as graph:
        cases = [(1, 1, 3), (3, 50, 5), (101, 50, 2), (100, 50, 2), (7, 2, 7), (8, 1, 3)] + [
            (draw.randint(1, 90), draw.randint(1, 12), draw.randint(1, 6)) for _ in range(60)]
        for count, size, world in cases:
            found = shares(graph, count, size, world, last="wrap")
            samplers = [DistributedSampler(range(count), world, rank, shuffle=False) for rank in range(world)]
            torches = [DataLoader(range(count), size, sampler=sampler) for sampler in samplers]
            repeated = sorted(seed for loader in torches for batch in loader for seed in batch.tolist())
            assert sorted(seed for own in found for batch in own for seed in batch.seeds.tolist()) == repeated
            for own, loader in zip(found, torches):
                assert [batch.num_seeds for batch in own] == [len(batch) for batch in loader]
            steps = len(found[0])
            for own, short in zip(found, shares(graph, count, size, world, last="short")):
                for one, two in itertools.islice(zip(own, short), steps - 1):
                    assert two.num_seeds < size or one.digest() == two.digest()


def test_a_shuffled_epoch_wraps_too(whole):
    """The first seeds of the order occur twice: those of the first rank's first batches."""
    with graphwire.open(whole) as graph:
        found = shares(graph, 1001, 100, 3, last="wrap", shuffle=True, seed=4)
        every = torch.cat([batch.seeds for own in found for batch in own])
        ids, counts = every.unique(return_counts=True)
        assert len(ids) == 1001 and (counts == 2).sum() == 1
        assert ids[counts == 2].item() == found[0][0].seeds[0]
        assert len(shares(graph, 1001, 100, 1, last="wrap")[0][-1].seeds) == 1


# --- Where seeds are divided. ---


def test_a_loader_made_before_the_group_divides(whole, tmp_path):
    def work(graph, rank, join):
        made = [graphwire.NodeLoader(graph, range(200), [2], batch_size=50, shuffle=True, device=device)
                for device in (None, "cpu")]
        made.append(graphwire.EdgeLoader(graph, range(300), [2], batch_size=50, shuffle=True))
        begun = graphwire.NodeLoader(graph, range(100), [2], batch_size=10)
        alone = seeds_of(begun)
        within = graphwire.NodeLoader(graph, range(100), [2], batch_size=10)
        next(iter(within))
        state = within.state_dict()
        assert [len(loader) for loader in made] == [4, 4, 6] and (made[0].world, made[0].last) == (1, "short")
        join()
        assert (made[0].world, made[0].rank, made[0].last, len(made[0]), len(made[2])) == (2, rank, "wrap", 2, 3)
        assert made[0].state_dict()["plan"] != state["plan"]
        with pytest.raises(graphwire.InvalidError, match="world"):  # a state of one rank
            within.load_state_dict(state)
        found = [seeds_of(loader) for loader in made]
        batches = list(begun)
        assert alone == list(range(100)) and {batch.epoch for batch in batches} == {1}
        return [*found, [seed for batch in batches for seed in batch.seeds.tolist()]]

    for one, two in zip(*in_ranks(work, whole, tmp_path / "meet")):
        assert sorted(one + two) == list(range(len(one) + len(two))) and len(one) == len(two)


def test_other_seeds_are_refused_on_every_rank(whole, tmp_path):
    """Seeds that the caller has divided; other options; an empty share. The suggested fix works, and a refusal leaves
    nothing behind."""
    def work(graph, rank, join):
        join()
        own = torch.arange(200).split(100)[rank]
        given = [(own, {}), (range(100 + rank), {}), (range(100), {"batch_size": 20 + rank}),
                 (range(100), {"seed": rank}), (range(100), {"shuffle": rank == 1}),
                 (range(100), {"last": ["wrap", "drop"][rank]})]
        texts = []
        for seeds, options in given:
            loader = graphwire.NodeLoader(graph, seeds, [2], **{"batch_size": 10, **options})
            texts.append(refused(loader))
            assert loader.state_dict()["step"] == 0
        links = graphwire.EdgeLoader(graph, range(50 + rank), [2], batch_size=10)
        texts.append(refused(links))
        out = graphwire.NodeLoader(graph, own, [2], batch_size=10, world=1)
        assert (out.world, out.rank) == (1, 0)
        alike = graphwire.NodeLoader(graph, range(100), [2], batch_size=10)
        return texts, seeds_of(out), seeds_of(alike)

    (one, first, half), (two, second, rest) = in_ranks(work, whole, tmp_path / "meet")
    assert sorted(first + second) == list(range(200)) and sorted(half + rest) == list(range(100))
    words = ["different seeds", "number of seeds is", "batch_size is", "seed is", "shuffle is", "last is",
             "number of seeds is"]
    for texts in (one, two):
        assert len(texts) == len(words) and all("world=1" in text for text in texts)
        assert all(word in text for word, text in zip(words, texts)), texts
    assert "100 and 101" in one[1] and "101 and 100" in two[1]


def test_one_rank_alone(whole, tmp_path, monkeypatch):
    """With world=1 a rank loops over all seeds and waits for no other rank. Without it, the rank gets an error, and so
    does a rank that comes later."""
    monkeypatch.setattr(ranks, "WAIT_SECONDS", 0.3)  # forks inherit it

    def work(graph, rank, join):
        join()
        loader = graphwire.NodeLoader(graph, range(100), [2], batch_size=10)
        found = seeds_of(graphwire.NodeLoader(graph, range(100), [2], batch_size=10, world=1, rank=0))
        text = refused(loader) if rank == 0 else None
        dist.barrier()
        if rank:
            text = refused(loader)
        dist.barrier()
        again = seeds_of(loader)  # all start together
        return found, text, again

    (found, one, half), (_, two, rest) = in_ranks(work, whole, tmp_path / "meet")
    assert found == list(range(100)) and sorted(half + rest) == found
    assert "rank 1 began no loop" in one and "in vain" in two and all("world=1" in text for text in (one, two))


@pytest.mark.parametrize("backend", ["gloo", "refusing"])
def test_a_loader_is_compared_once(whole, tmp_path, backend):
    """With any backend; the store keeps no keys of it, and is not used again. A forked child does not use the store:
    the connection is its parent's."""
    def work(graph, rank, join):
        join()
        store = dist.distributed_c10d._get_default_store()
        loaders = [graphwire.NodeLoader(graph, None, [2], batch_size=1000 + number) for number in range(3)]
        seeds = [set(seeds_of(loader)) for loader in loaders]
        kept = [store.add(f"graphwire/loaders/{number}/{key}", 0) for number in range(3)
                for key in ("here", "left", "at/0", "at/1")] if rank == 0 else []  # the first rank leaves last
        dist.distributed_c10d._get_default_store = lambda: pytest.fail("asked again")
        assert [set(seeds_of(loader)) for loader in loaders] == seeds
        child = os.fork()
        if not child:
            status = 1
            try:
                with graphwire.open(whole) as own:
                    status = set(seeds_of(graphwire.NodeLoader(own, None, [2], batch_size=1000))) != seeds[0]
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        return seeds, kept

    (one, kept), (two, _) = in_ranks(work, whole, tmp_path / "meet", backend=backend)
    assert kept == [0] * 12 and all(len(first & second) == 0 for first, second in zip(one, two))


def meet_in_threads(draw, world):
    """The results of ranks that start at random times, give up at about the same time, and have equal or different
    plans."""
    store, ends = dist.HashStore(), [None] * world
    other = draw.random() < 0.3
    delays = [draw.random() * 0.01 for _ in range(world)]

    def work(rank):
        time.sleep(delays[rank])
        try:
            text = '{"seed": 2}' if other and rank == 0 else '{"seed": 1}'
            ranks._agree(ranks._Meeting(store, "m/", world, rank), text)
            ends[rank] = "agreed"
        except ValueError as error:
            ends[rank] = "differ" if "the loaders of ranks" in str(error) else "late"

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return other, ends


def test_all_ranks_end_alike(monkeypatch):
    """All agree, all differ, or all give up, whatever the timing."""
    monkeypatch.setattr(ranks, "WAIT_SECONDS", 0.006)
    draw, seen = random.Random(3), set()
    for _ in range(150):
        other, ends = meet_in_threads(draw, draw.randint(2, 5))
        assert len(set(ends)) == 1 and ends[0] in ("late", "differ" if other else "agreed"), ends
        seen.add(ends[0])
    assert "late" in seen and len(seen) > 1


# --- Unequal steps. ---


def test_unequal_steps_are_reported_once(whole, tmp_path):
    """For loaders that do not divide, and for short epochs. Not if gradients are off, nor for equal steps, nor a second
    time. A rank without batches counts too."""
    def work(graph, rank, join):
        join()
        said = []

        def heard(seeds, size, **options):
            loader = graphwire.NodeLoader(graph, seeds, [2], batch_size=size, **options)
            dist.barrier()
            if rank == 1:
                dist.barrier()  # after the first rank's first batch, which checks again in its next step
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                batches = iter(loader)
                next(batches, None)
                if rank == 0:
                    dist.barrier()
                dist.barrier()
                list(batches)
            said.append([str(one.message) for one in found])

        share = graph.split(range(101))
        heard(share, 50, world=1)
        heard(share, 50, world=1)
        heard(graph.split(range(100)), 50, world=1)
        with torch.no_grad():
            heard(share, 25, world=1)
        heard(share[:40 - 30 * rank], 10, world=1, rank=0)
        return said

    for found in in_ranks(work, whole, tmp_path / "meet"):
        assert [len(texts) for texts in found] == [1, 0, 0, 0, 1]
        assert "2 steps on rank 0, 1 step on rank 1" in found[0][0] and "model.join()" in found[0][0]
        assert "4 steps on rank 0, 1 step on rank 1" in found[4][0]


def test_steps_of_a_short_epoch_are_reported(whole, tmp_path):
    def work(graph, rank, join):
        join()
        loader = graphwire.NodeLoader(graph, range(150), [2], batch_size=50, last="short")
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert len(list(loader)) == 2 - rank
            dist.barrier()
            list(loader)
        return [str(one.message) for one in found]

    said = in_ranks(work, whole, tmp_path / "meet")
    assert any(said) and all(len(texts) <= 1 and all("graphwire:" in text for text in texts) for texts in said)


def test_ranks_in_words():
    assert ranks._counts_in_words([3, 2, 3]) == "3 steps on ranks 0, 2, 2 steps on rank 1"
    assert ranks._ranks_in_words(list(np.arange(11))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more"
