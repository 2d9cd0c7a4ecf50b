"""All means that spare bytes or memory, alone and together: the batches are those without them."""

from __future__ import annotations

import itertools
import random

import graphwire
import pytest
from conftest import Servers, run

STORES = ["", "float16", "int8_row"]
MEANS = ["replicate", "lists", "on_disk", "disk_lists", "lookahead", "cache"]


@pytest.fixture(scope="module")
def graphs(whole, tmp_path_factory):
    """The graph in 1 and 3 parts, its rows in each form, with and without replicas."""
    folder = tmp_path_factory.mktemp("stored")
    made = {}
    for store, count in itertools.product(STORES, (1, 3)):
        words = ["--store", f"feat={store}"] if store else []
        for replicate in (False, True) if count > 1 else (False,):
            out = folder / f"{store or 'own'}-{count}-{replicate}"
            run("partition", whole, "--num-parts", count, "--method", "random", "--out", out, *words,
                *(["--replicate", "10%", "--by", "degree", "--fanouts", "4,4"] if replicate else []))
            made[store, count, replicate] = out
    return made


def batches(graph, **options):
    """The bytes of two epochs' first batches, each of which is overwritten after it was read."""
    read = []
    loader = graphwire.NodeLoader(graph, fanouts=[4, 4], batch_size=64, shuffle=True, seed=5, features="feat",
                                  labels="label", **options)
    for _ in range(2):
        for batch in itertools.islice(loader, 20):
            rows = batch.features["_N"]["feat"]
            read.append((batch.nodes["_N"].tobytes(), rows.tobytes(), batch.labels["label"].tobytes()))
            if rows.flags.writeable:
                rows[:] = -1
    return read


def left_on_disk(means, *besides):
    names = ("on_disk", "feat"), ("disk_lists", "lists"), ("disk_lists", "offsets")
    return [name for mean, name in names if mean in means - {*besides}]


def started(folder, count, means, tmp_path):
    """Servers of which only part 0's memory is mapped. A server that holds all lists leaves none on disk."""
    def words(names):
        return ("--on-disk", ",".join(names), "--disk-cache", "1Mi") if names else ()

    holds = ("--lists", "all") if "lists" in means else ()
    servers = Servers(folder, count, tmp_path, *words(left_on_disk(means, *(["disk_lists"] if holds else []))), *holds)
    for part in range(1, count):
        servers.end(part)
        servers.words = (*words(left_on_disk(means)), "--transport", "tcp")
        servers.start(part)
    return servers


def chosen():
    """Each means alone, all of them, and some sets of several."""
    rng = random.Random(3)
    sets = [{mean} for mean in MEANS] + [set(MEANS)] + [set(rng.sample(MEANS, rng.randint(2, 4))) for _ in range(4)]
    cases = [(STORES[number % 3], 3, means) for number, means in enumerate(sets)]
    return cases + [(STORES[(number + 1) % 3], 1, means) for number, means in enumerate(sets) if number % 3 == 0]


@pytest.mark.parametrize("store, count, means", chosen())
def test_batches_are_those_without(graphs, tmp_path, store, count, means):
    plain = graphs[store, 1 if count == 1 else 3, False]
    folder = graphs[store, count, "replicate" in means and count > 1]
    ahead = {}
    if "lookahead" in means:
        ahead["lookahead"] = 4
    if "cache" in means:
        ahead["cache_bytes"] = "64Ki"
    with graphwire.open(plain, numpy=True) as graph:
        expected = batches(graph)
    servers = started(folder, count, means, tmp_path)
    try:
        for transport in ("auto", "tcp"):
            with graphwire.open(servers=servers.addresses, transport=transport, numpy=True) as graph:
                assert batches(graph, **ahead) == expected
                stats = graph.stats()
            if transport == "auto" and count > 1:
                # each means did something, unless another one left it nothing to do
                assert (stats["replica_rows"] > 0) == ("replicate" in means)
                assert (stats["held_hops"] > 0) == ("lists" in means)
                assert (stats["ahead_bytes"] > 0) == ("lookahead" in means)
    finally:
        servers.close()
    names = left_on_disk(means)
    words = {"on_disk": names, "disk_cache": "1Mi"} if names else {}
    with graphwire.open(folder, numpy=True, **words) as graph:
        assert batches(graph, **ahead) == expected
