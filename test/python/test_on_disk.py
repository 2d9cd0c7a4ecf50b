"""Features whose rows stay on disk in a standalone process: the bytes of a graph in memory; errors; a graph of four
times the memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import graphwire
import numpy as np
import pytest
from conftest import run
from control_group import control_group


def epoch(graph):
    """Everything that one epoch of mini-batches holds."""
    loader = graphwire.NodeLoader(graph, np.arange(0, graph.num_nodes(), 3), [4, 3], batch_size=64, seed=5,
                                  features=["feat"], labels="label")
    ntype = graph.ntypes[0]
    return [(batch.features[ntype]["feat"].tobytes(), batch.labels["label"].tobytes()) for batch in loader]


@pytest.mark.parametrize("names", ["feat", ["feat", "label"]])
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


def test_errors(parts):
    for names, error, text in [("nix", graphwire.NotFoundError, "on_disk nix"), ([], ValueError, "empty list"),
                               ([3], TypeError, "names features"),
                               (3, TypeError, "names features"), ("lists", graphwire.GraphwireError, "lists")]:
        with pytest.raises(error, match=text):
            graphwire.open(parts, on_disk=names)
    for cache, error in [("1", ValueError), ("many", ValueError), ("2i", ValueError), (1.5, TypeError),
                         (-1, ValueError)]:
        with pytest.raises(error, match=r"disk_cache|cache of"):
            graphwire.open(parts, on_disk="feat", disk_cache=cache)
    with pytest.raises(ValueError, match="without on_disk"):
        graphwire.open(parts, disk_cache="1Gi")


PROGRAM = textwrap.dedent("""
    import hashlib, sys
    sys.modules["torch"] = None  # it takes more memory than the rest
    import graphwire, numpy as np
    folder, on_disk = sys.argv[1], sys.argv[2] == "disk"
    graph = graphwire.open(folder, numpy=True, threads=2,
                           **({"on_disk": "feat", "disk_cache": "4Mi"} if on_disk else {}))
    loader = graphwire.NodeLoader(graph, np.arange(0, graph.num_nodes(), 128), [3, 2], batch_size=64, seed=5,
                                  features=["feat"])
    digest = hashlib.sha256()
    for batch in loader:
        digest.update(batch.features[graph.ntypes[0]]["feat"])
    print(digest.hexdigest())
""")


def test_graph_larger_than_memory(tmp_path):
    """An epoch of a graph of which a quarter fits in the process's memory, with the digest of an epoch in memory."""
    run("generate", "rmat", "--scale", "17", "--edge-factor", "2", "--features", "768", "--out", tmp_path / "g",
        "--quiet")  # 384 MiB of rows
    with control_group(96) as within:
        limited = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "g"), "disk"], capture_output=True,
                                 text=True, preexec_fn=within)
        assert limited.returncode == 0, limited.stderr
        refused = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "g"), "memory"], capture_output=True,
                                 text=True, preexec_fn=within)
        assert refused.returncode != 0, "the limit does not bind"
    whole = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "g"), "memory"], capture_output=True,
                           text=True)
    assert whole.returncode == 0, whole.stderr
    assert limited.stdout == whole.stdout
