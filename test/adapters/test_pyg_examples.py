"""The examples for PyTorch Geometric: they learn; and where PyG's own loaders run, the same script with PyG's import
has the same figure within the spread of the seeds."""

from __future__ import annotations

import importlib
import statistics
import sys
from pathlib import Path

import graphwire
import pytest
import torch

pytest.importorskip("torch_geometric")
from torch_geometric import typing

if not hasattr(graphwire.pyg, "NeighborLoader"):
    pytest.skip("graphwire.pyg has no NeighborLoader", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# The figure of a guess is 0.2, 0.5 and 0.2.
SCRIPTS = {"pyg_node": 0.7, "pyg_link": 0.65, "pyg_hetero": 0.4}


@pytest.fixture(autouse=True)
def found(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in ("pyg_common", *SCRIPTS):
        sys.modules.pop(name, None)


def figures(script, *words):
    return importlib.import_module(script).main(["--num_nodes", "800", "--num_epochs", "4", *words])


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_learns(script, capsys):
    (found,) = figures(script)
    assert found > SCRIPTS[script]
    assert f"{found:.4f}" in capsys.readouterr().out


@pytest.mark.skipif(not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE), reason="PyG's own loaders cannot run")
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_other_import_gives_the_same(script):
    ours, theirs = (figures(script, "--seeds", "5", *words) for words in ((), ("--pyg",)))
    spread = (statistics.variance(ours) / 5 + statistics.variance(theirs) / 5) ** 0.5
    assert abs(statistics.mean(ours) - statistics.mean(theirs)) < 4 * spread + 0.01, (ours, theirs)


def test_a_graph_on_disk(tmp_path):
    """pyg_node over a graph's folder, in two parts."""
    torch.manual_seed(0)
    data = importlib.import_module("pyg_common").communities(600)
    path = graphwire.partition_graph(data, "g", 2, tmp_path / "parts", method="random")
    (found,) = figures("pyg_node", "--part_config", str(path))
    assert found > SCRIPTS["pyg_node"]
