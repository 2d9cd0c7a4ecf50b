"""The package under the oldest torch that it takes, which is Debian 12's."""

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

sys.path.insert(0, str(TOP / "examples"))

from links import main as links
from test_examples import SMALL, figures


def test_it_learns_the_same(hetero, tmp_path):
    """As this environment's does: batches, layers, tables and their optimizer, checkpoints, inference."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path/graphwire").symlink_to(Path(graphwire.__file__).parent)
    python = "/usr/bin/python3"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path"), "OMP_NUM_THREADS": "1"}
    found = subprocess.run([python, "-c", "from importlib.metadata import version; print(version('torch'))"],
                           capture_output=True, text=True)
    if not found.stdout.startswith("1."):
        pytest.skip(f"{python} has no torch 1.x, which deploy/packages.sh train installs on Debian 12")

    def words(name):
        return [str(word) for word in (
            "--part_config", hetero, "--etype", "cites", *SMALL, "--num_epochs", 2, "--eval_every", 1, "--metrics",
            tmp_path / f"{name}.metrics", "--embeddings", tmp_path / f"{name}.npy", "--checkpoint", tmp_path / name)]

    subprocess.run([python, TOP / "examples/links.py", *words("old")], env=environment, check=True)
    links(words("new"))
    assert len(figures(tmp_path / "old.metrics")) == 2
    for old, new in zip(figures(tmp_path / "old.metrics"), figures(tmp_path / "new.metrics")):
        assert old["loss"] == pytest.approx(new["loss"], rel=1e-3) and old["ranked"] == new["ranked"]
    for ntype in ("paper", "author"):
        old, new = (np.load(tmp_path / f"{name}_{ntype}.npy") for name in ("old", "new"))
        assert np.allclose(old, new, rtol=1e-3, atol=1e-3) and old.any()
    saved = torch.load(tmp_path / "old")
    assert saved["loader"] == torch.load(tmp_path / "new")["loader"]
