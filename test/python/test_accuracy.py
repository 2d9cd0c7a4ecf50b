"""bench/accuracy.py for a short while: the first split of Tolokers, a narrow model, few epochs; Cora beside PyG."""

from __future__ import annotations

import sys

import pytest
import torch
from conftest import TOP
from shared import given

sys.path.insert(0, str(TOP / "bench"))


import accuracy


@pytest.mark.parametrize("task, few", [
    ("tolokers", {"splits": 1, "epochs": 8, "hidden": 16, "fan_out": "10,10", "lr": 0.01, "at_least": 0.65}),
    ("cora", {"splits": 1, "epochs": 12, "hidden": 16, "at_least": 0.5})])
def test_scores(monkeypatch, capsys, task, few):
    data = given(f"data/{task}").parent
    words = [f"--{name}={value}" for name, value in {**few, "threads": 1}.items()]
    monkeypatch.setattr(sys, "argv", ["accuracy.py", task, str(data), *words])
    with pytest.raises(SystemExit) as ended:
        accuracy.main()
    out = capsys.readouterr().out
    assert not ended.value.code and f"{task}, graphwire: mean 0." in out
    assert (f"{task}, PyG, whole graph: mean 0." in out) == (task != "tolokers")


def test_roc_auc():
    """Against counting the pairs."""
    random = torch.Generator().manual_seed(1)
    scores, labels = torch.randint(0, 20, (200,), generator=random) / 7, torch.randint(0, 2, (200,), generator=random)
    positive, negative = scores[labels == 1], scores[labels == 0]
    pairs = (positive[:, None] > negative).float() + (positive[:, None] == negative).float() / 2
    assert accuracy.roc_auc(scores, labels) == pytest.approx(float(pairs.mean()))
