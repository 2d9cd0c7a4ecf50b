"""The package with the oldest supported torch, which is Debian 12's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP
from shared import lacking

sys.path.insert(0, str(TOP / "examples"))

from links import main as links
from test_examples import SAGE, SMALL, end, figures, start

PYTHON = "/usr/bin/python3"


@pytest.fixture
def environment(tmp_path):
    """An environment with that Python, that torch, and this package."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path/graphwire").symlink_to(Path(graphwire.__file__).parent)
    given = {**os.environ, "PYTHONPATH": str(tmp_path / "path"), "OMP_NUM_THREADS": "1"}
    found = subprocess.run([PYTHON, "-c", "from importlib.metadata import version; print(version('torch'))"],
                           capture_output=True, text=True, env=given)
    if not found.stdout.startswith("1."):
        raise lacking(f"{PYTHON} has no torch 1.x, which deploy/packages.sh train installs on Debian 12")
    return given


def test_it_learns_the_same(hetero, tmp_path, environment):
    """The same as with this environment's torch: batches, layers, tables and their optimizer, checkpoints,
    inference."""
    def words(name):
        return [str(word) for word in (
            "--part_config", hetero, "--etype", "cites", *SMALL, "--num_epochs", 2, "--eval_every", 1, "--metrics",
            tmp_path / f"{name}.metrics", "--embeddings", tmp_path / f"{name}.npy", "--checkpoint", tmp_path / name)]

    subprocess.run([PYTHON, TOP / "examples/links.py", *words("old")], env=environment, check=True)
    links(words("new"))
    assert len(figures(tmp_path / "old.metrics")) == 2
    for old, new in zip(figures(tmp_path / "old.metrics"), figures(tmp_path / "new.metrics")):
        assert old["loss"] == pytest.approx(new["loss"], rel=1e-3) and old["ranked"] == new["ranked"]
    for ntype in ("paper", "author"):
        old, new = (np.load(tmp_path / f"{name}_{ntype}.npy") for name in ("old", "new"))
        assert np.allclose(old, new, rtol=1e-3, atol=1e-3) and old.any()
    saved = torch.load(tmp_path / "old")
    assert saved["loader"] == torch.load(tmp_path / "new")["loader"]


def test_two_ranks_learn_the_same(servers, tmp_path, environment):
    """The same as with this environment's torch: averaged gradients, unequal steps, divided evaluation."""
    def words(name):
        return ["--servers", ",".join(servers.addresses), *SMALL, "--num_epochs", "2", "--eval_every", "1", "--metrics",
                str(tmp_path / f"{name}.metrics"), "--init_method", f"file://{tmp_path}/{name}.meet"]

    ranks = [subprocess.Popen([PYTHON, SAGE, *words("old")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**environment, "WORLD_SIZE": "2", "RANK": str(rank)}) for rank in range(2)]
    assert "2 servers" in end(*ranks)
    end(*[start(SAGE, *words("new"), world=2, rank=rank) for rank in range(2)])
    lines = [figures(tmp_path / f"{name}.metrics") for name in ("old", "new")]
    assert len(lines[0]) == len(lines[1]) == 2
    for old, new in zip(*lines):
        assert old["loss"] == pytest.approx(new["loss"], rel=1e-3)
        assert old["test"] == pytest.approx(new["test"], abs=0.01)
