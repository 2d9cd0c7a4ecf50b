"""bench/accuracy.py for a short while: the first split of Tolokers, a narrow model, few epochs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from conftest import TOP
from shared import given

sys.path.insert(0, str(TOP / "bench"))


def test_tolokers():
    few = {"splits": 1, "epochs": 8, "hidden": 16, "fan_out": "10,10", "lr": 0.01, "threads": 1, "at_least": 0.65}
    data = given("data/tolokers").parent
    words = [f"--{name}={value}" for name, value in few.items()]
    done = subprocess.run([sys.executable, TOP / "bench/accuracy.py", "tolokers", data, *words], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_roc_auc():
    """Against counting the pairs."""
    from accuracy import roc_auc

    random = torch.Generator().manual_seed(1)
    scores, labels = torch.randint(0, 20, (200,), generator=random) / 7, torch.randint(0, 2, (200,), generator=random)
    positive, negative = scores[labels == 1], scores[labels == 0]
    pairs = (positive[:, None] > negative).float() + (positive[:, None] == negative).float() / 2
    assert roc_auc(scores, labels) == pytest.approx(float(pairs.mean()))
