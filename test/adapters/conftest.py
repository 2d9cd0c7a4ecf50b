"""Graphs and servers for the tests of the adapters; fixtures of the package come from test/python. $GRAPHWIRE is the
program. With a dgl on PYTHONPATH the tests use it, else the subset."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOP = Path(__file__).resolve().parents[2]

_spec = importlib.util.spec_from_file_location("graphs", TOP / "test/python/conftest.py")
graphs = importlib.util.module_from_spec(_spec)
sys.modules["graphs"] = graphs
_spec.loader.exec_module(graphs)

from shared import given  # noqa: E402

PROGRAM, Servers, run = graphs.PROGRAM, graphs.Servers, graphs.run
pytest_runtest_logreport = graphs.pytest_runtest_logreport
runtime_folder, hetero, hetero2 = graphs.runtime_folder, graphs.hetero, graphs.hetero2
whole, parts, servers = graphs.whole, graphs.parts, graphs.servers


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: over the subset of dgl alone")


def pytest_collection_modifyitems(items):
    """graphwire.pyg does not use dgl."""
    for item in items:
        if item.path.name.startswith("test_pyg"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module", params=["memory", "three parts"])
def source(request, tmp_path_factory):
    """What a loader of PyG gets as data: the test file's DATA, or its graph in three parts."""
    from graphwire.pyg import from_pyg

    if request.param == "memory":
        yield request.module.DATA
    else:
        with from_pyg(request.module.DATA, tmp_path_factory.mktemp("three") / "parts", num_parts=3) as graph:
            yield graph


NODES, WIDTH, CLASSES = 600, 16, 3


def arrays_of_communities():
    """A graph that can be learnt: classes are communities, and features show them with noise. Names are those of DGL's
    scripts."""
    random = np.random.default_rng(5)
    labels = random.integers(0, CLASSES, NODES)
    src = random.integers(0, NODES, 9000)
    dst = random.integers(0, NODES, 9000)
    stay = (labels[src] == labels[dst]) | (random.random(9000) < 0.1)
    src, dst = src[stay], dst[stay]
    features = (random.standard_normal((NODES, WIDTH)) + 2 * np.eye(WIDTH)[labels]).astype(np.float32)
    part = random.permutation(NODES) % 10
    return {"edges": np.concatenate([np.stack([src, dst], 1), np.stack([dst, src], 1)]), "features": features,
            "labels": labels, "train_mask": part < 5, "val_mask": (part >= 5) & (part < 7), "test_mask": part >= 7}


@pytest.fixture(scope="session")
def communities(tmp_path_factory):
    """The folder of that graph, in one part; ids are unchanged."""
    folder = tmp_path_factory.mktemp("communities")
    arrays = arrays_of_communities()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    words = []
    for name in arrays:
        if name != "edges":
            words += ["--node-mask" if name.endswith("_mask") else "--node-feature", f"{name}={folder}/{name}.npy"]
    np.save(folder / "weight.npy", np.arange(len(arrays["edges"]), dtype=np.float32))
    run("import", "--edges", f"_N:_E:_N={folder}/edges.npy", "--num-nodes", NODES, *words, "--edge-feature",
        f"weight={folder}/weight.npy", "--name", "communities", "--transpose", "--out", folder / "one", "--quiet")
    return folder / "one"


@pytest.fixture(scope="session")
def two_parts(communities):
    """The same in two parts."""
    folder = communities.parent / "two"
    run("partition", communities, "--num-parts", 2, "--method", "random", "--out", folder)
    return folder


def runner(script, *arguments, folder, environment=None, timeout=300):
    """Runs python -m graphwire.dgl SCRIPT …, and returns its output."""
    words = [sys.executable, "-m", "graphwire.dgl", str(script), *map(str, arguments)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DGL_", "GRAPHWIRE_DGL"))}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=timeout,
                          env={**clean, **(environment or {})})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def scripts():
    """DGL's GraphSAGE scripts, unmodified."""
    return given("dgl-scripts")
