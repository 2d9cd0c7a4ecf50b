"""bench/accuracy.py, shortened: the first split of Tolokers, a narrow model, few epochs. Cora is compared with PyG,
without dropout, so that equal weights at the start give equal scores at the end."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from conftest import TOP
from shared import given

sys.path.insert(0, str(TOP / "bench"))


import accuracy


@pytest.mark.parametrize("task, few", [
    ("tolokers", {"splits": 1, "epochs": 8, "hidden": 16, "fan_out": "10,10", "lr": 0.01, "at_least": 0.65}),
    ("cora", {"splits": 4, "epochs": 12, "hidden": 16, "dropout": 0.0, "at_least": 0.45})])
def test_scores(monkeypatch, capsys, task, few):
    data = given(f"data/{task}").parent
    words = [f"--{name}={value}" for name, value in {**few, "threads": 1}.items()]
    monkeypatch.setattr(sys, "argv", ["accuracy.py", task, str(data), *words])
    with pytest.raises(SystemExit) as ended:
        accuracy.main()
    out = capsys.readouterr().out
    assert not ended.value.code and f"{task}, graphwire: mean 0." in out
    assert (f"{task}, PyG, whole graph: mean 0." in out) == (task != "tolokers")
    if task == "cora":
        apart = [abs(float(ours) - float(other)) for ours, other in zip(
            re.findall(r"cora \d, graphwire: (\S+)", out), re.findall(r"cora \d, PyG, whole graph: (\S+)", out))]
        assert len(apart) == 4 and max(apart) < 0.01, out


def test_features_that_are_stored_narrow(monkeypatch, capsys):
    """The scores are those of float32, almost."""
    data = given("data/cora").parent
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "cora", str(data), "--stored=float32,int8_row", "--splits=1",
                                      "--epochs=12", "--dropout=0", "--threads=1", "--at_least=0.45"])
    with pytest.raises(SystemExit) as ended:
        accuracy.main()
    out = capsys.readouterr().out
    assert not ended.value.code
    wide, narrow = (float(one) for one in re.findall(r"cora 0, \S+: (\S+)", out))
    assert abs(wide - narrow) < 0.05, out


def test_means_that_are_apart(capsys):
    one, other = [0.70, 0.72, 0.74], [0.71, 0.73, 0.75]
    for found, fits in (((one, other), True), ((other, one), True), (([0.66, 0.68, 0.70], one), False),
                        ((one, [0.66, 0.68, 0.70]), False), (([0.1], [0.9]), True)):
        assert accuracy.alike("task", dict(zip(("graphwire", "PyG"), found))) == fits
    assert "task: -0.0100 against PyG, by seeds +- 0.0000; the seeds' deviation 0.0200" in capsys.readouterr().out


def test_roc_auc():
    """Compared with a count of all pairs."""
    random = torch.Generator().manual_seed(1)
    scores, labels = torch.randint(0, 20, (200,), generator=random) / 7, torch.randint(0, 2, (200,), generator=random)
    positive, negative = scores[labels == 1], scores[labels == 0]
    pairs = (positive[:, None] > negative).float() + (positive[:, None] == negative).float() / 2
    assert accuracy.roc_auc(scores, labels) == pytest.approx(float(pairs.mean()))
