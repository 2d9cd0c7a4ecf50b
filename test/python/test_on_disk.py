"""Features and lists that stay on disk in a standalone process: the bytes of a graph in memory; errors; graphs of four
times the memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import graphwire
import numpy as np
import pytest
from conftest import TOP, run

sys.path.insert(0, str(TOP / "test/support"))

from control_groups import within


def epoch(graph):
    """Everything that one epoch of mini-batches holds."""
    loader = graphwire.NodeLoader(graph, np.arange(0, graph.num_nodes(), 3), [4, 3], batch_size=64, seed=5,
                                  features=["feat"], labels="label")
    ntype = graph.ntypes[0]
    return [(batch.features[ntype]["feat"].tobytes(), batch.labels["label"].tobytes()) for batch in loader]


@pytest.mark.parametrize("names", ["feat", ["feat", "label"], "lists", ["lists", "feat"], "offsets",
                                   ["lists", "offsets"]])
def test_standalone(parts, names):
    with graphwire.open(parts, numpy=True) as whole:
        with graphwire.open(parts, on_disk=names, disk_cache="1Mi", numpy=True) as graph:
            ids = np.random.default_rng(1).integers(0, graph.num_nodes(), 5000)
            assert (graph.gather("feat", ids) == whole.gather("feat", ids)).all()
            assert (graph.gather("feat", ids, dtype="float16") == whole.gather("feat", ids, dtype="float16")).all()
            assert (graph.gather("label", ids) == whole.gather("label", ids)).all()
            other = pickle.loads(pickle.dumps(graph))
            assert (other.gather("feat", ids) == whole.gather("feat", ids)).all()
            assert epoch(graph) == epoch(whole)


@pytest.mark.parametrize("name", ["bé", "my nodes/bé", "my nodes:cite it:my nodes/w w", "w w", "two",
                                  "my nodes:cite it:my nodes/two", "node/my+20nodes/b+C3+A9",
                                  "my+20nodes:cite+20it:my+20nodes/two"])
def test_names(tmp_path, name):
    """Features of nodes and edges, by their names in Python, and by those of the format."""
    rows = np.random.default_rng(4).random((40, 2))
    kind, edges = "my nodes", ("my nodes", "cite it", "my nodes")
    folder = graphwire.partition_graph({edges: (np.arange(40), np.arange(40)[::-1])}, "g", 1, tmp_path / "g",
                                       node_features={kind: {"bé": rows}},
                                       edge_features={edges: {"w w": rows[:, 0].copy(), "two": rows}})
    with graphwire.open(folder, numpy=True) as whole, graphwire.open(folder, on_disk=name, numpy=True) as graph:
        for some, other in zip(graph.features, whole.features):
            assert (some[:] == other[:]).all()


def test_original_ids(parts):
    with graphwire.open(parts, numpy=True) as whole:
        ids = np.arange(whole.num_nodes())
        original = whole.original_ids(ids)
    assert (original != ids).any()
    with graphwire.open(parts, on_disk="orig_id", disk_cache="1Mi", numpy=True) as graph:
        assert (graph.original_ids(ids) == original).all()
        assert (graph.ids_of(original) == ids).all()


def test_long_lists(whole):
    """Edges of hubs, whose lists take several rounds of a search, beside the ends of all edges."""
    with graphwire.open(whole, numpy=True) as graph:
        src, dst = graph.find_edges(np.arange(graph.num_edges()))
    hubs = np.argsort(np.bincount(dst))[-8:]
    assert np.bincount(dst)[hubs].min() > 64
    nodes = np.arange(graph.num_nodes())
    present = {(int(a), int(b)) for a, b in zip(src, dst)}
    for names in "lists", ["lists", "offsets"]:
        with graphwire.open(whole, on_disk=names, disk_cache="1Mi", numpy=True) as graph:
            ends = graph.find_edges(np.arange(graph.num_edges()))
            assert (ends[0] == src).all() and (ends[1] == dst).all()
            many = np.resize(np.arange(graph.num_edges()), 140_000)  # more than one round reads records of
            ends = graph.find_edges(many)
            assert (ends[0] == src[many]).all() and (ends[1] == dst[many]).all()
            assert graph.has_edges(src[many], dst[many]).all()
            for hub in hubs:
                has = graph.has_edges(nodes, np.full(len(nodes), hub))
                assert has.tolist() == [(int(node), int(hub)) in present for node in nodes]


def test_names_in_one_text(parts):
    """A text with commas is a list of names, as for the program; an empty name is refused by both."""
    for text in ("feat,lists", "lists,feat", "feat", "lists"):
        with graphwire.open(parts, on_disk=text) as graph, graphwire.open(parts, on_disk=text.split(",")) as other:
            digests = [graphwire.sample(one, [5, 9], [3, 2], features="feat").digest() for one in (graph, other)]
        assert digests[0] == digests[1]
        run("epoch", "--part-config", parts, "--on-disk", text, "--check", "--steps", 1)
    for text in ("", ",", "feat,", ",lists", "feat,,lists", "feat, lists"):
        with pytest.raises((ValueError, graphwire.NotFoundError), match=r"^on_disk[^\n]*$"):
            graphwire.open(parts, on_disk=text)
        with pytest.raises(AssertionError, match=r"on-disk|on_disk"):
            run("epoch", "--part-config", parts, "--on-disk", text, "--check", "--steps", 1)


def test_errors(parts):
    for names, error, text in [("nix", graphwire.NotFoundError, "on_disk nix"), ([], ValueError, "empty list"),
                               ([3], TypeError, "names"), (3, TypeError, "names")]:
        with pytest.raises(error, match=text):
            graphwire.open(parts, on_disk=names)
    for cache, error in [("1", ValueError), ("many", ValueError), ("2i", ValueError), (1.5, TypeError),
                         (-1, ValueError)]:
        with pytest.raises(error, match=r"^disk_cache"):
            graphwire.open(parts, on_disk="feat", disk_cache=cache)
    with pytest.raises(ValueError, match="without on_disk"):
        graphwire.open(parts, disk_cache="1Gi")


PROGRAM = textwrap.dedent("""
    import hashlib, sys
    sys.modules["torch"] = None  # it takes more memory than the rest
    import graphwire, numpy as np
    folder, on_disk, name = sys.argv[1], sys.argv[2] == "disk", sys.argv[3]
    names = name.split(",")
    kept = {"on_disk": names, "disk_cache": "4Mi"} if on_disk else {}
    graph = graphwire.open(folder, numpy=True, threads=2, **kept)
    digest = hashlib.sha256()
    for weight in (None, "w") if "lists" in names else (None,):
        loader = graphwire.NodeLoader(graph, np.arange(0, graph.num_nodes(), 128), [3, 2], batch_size=64, seed=5,
                                      weight=weight, features=["feat"])
        for batch in loader:
            digest.update(batch.features[graph.ntypes[0]]["feat"])
            digest.update(batch.nodes[graph.ntypes[0]])
    print(digest.hexdigest())
""")


LIMIT = 96  # MiB


@pytest.mark.parametrize("name, words", [
    ("feat", ["--scale", "17", "--edge-factor", "2", "--features", "768"]),  # 384 MiB of rows
    ("lists", ["--scale", "16", "--edge-factor", "176", "--features", "4", "--weight", "w", "--transpose"])])
def test_graph_larger_than_memory(tmp_path, name, words):
    """An epoch of a graph of which a quarter fits in the process's memory, with the digest of an epoch in memory."""
    run("generate", "rmat", *words, "--out", tmp_path / "g", "--quiet")
    files = sum(path.stat().st_size for path in (tmp_path / "g").rglob("*.npy"))
    assert files >= 4 * LIMIT << 20
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "g")]
    with within(LIMIT, "on-disk") as enter:
        if enter is None:
            pytest.skip("this user can make no control group of memory")
        limited = subprocess.run([*program, "disk", name], capture_output=True, text=True, preexec_fn=enter)
        assert limited.returncode == 0, limited.stderr
        refused = subprocess.run([*program, "memory", name], capture_output=True, text=True, preexec_fn=enter)
        assert refused.returncode != 0, "the limit does not bind"
    whole = subprocess.run([*program, "memory", name], capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    assert limited.stdout == whole.stdout
