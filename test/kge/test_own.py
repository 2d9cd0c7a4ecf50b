"""A user's own data with the commands: partition, train, eval of udd_XYZ and raw_udd_XYZ; importance from the file to
the trainer's weights."""

from __future__ import annotations

import graphwire
import numpy as np
import pytest
from conftest import MOVES, grid
from graphwire.kge.commands import main
from graphwire.kge.losses import Loss
from graphwire.kge.partition import parts_folder

TRAIN = "--hidden_dim 8 --batch_size 40 --neg_sample_size 20 --max_step 4 --log_interval 2 -adv".split()


def weight(line):
    """The importance of a triple, different for each relation."""
    return 1 + list(MOVES).index(line[1])


@pytest.fixture(params=["udd_hrt", "raw_udd_htr"])
def own(request, tmp_path):
    """The grid in the user's own files, with importance in the fourth column; and the flags for these files."""
    lines = grid()
    names = [sorted({line[at] for line in lines for at in (0, 2)}), list(MOVES)]
    for split, some in (("train", lines[60:]), ("valid", lines[:30]), ("test", lines[30:60])):
        rows = [(h, t, r, str(weight((h, r, t)))) if request.param == "raw_udd_htr" else
                (str(names[0].index(h)), str(names[1].index(r)), str(names[0].index(t)), str(weight((h, r, t))))
                for h, r, t in some]
        (tmp_path / f"{split}.txt").write_text("".join(",".join(row) + "\n" for row in rows))
    files = [f"{split}.txt" for split in ("train", "valid", "test")]
    if request.param == "udd_hrt":
        for name, some in zip(("e.txt", "r.txt"), names):
            (tmp_path / name).write_text("".join(f"{i},{word}\n" for i, word in enumerate(some)))
        files = ["e.txt", "r.txt", *files]
    return ["--data_path", str(tmp_path), "--dataset", "grid", "--format", request.param, "--delimiter", ",",
            "--data_files", *files]


@pytest.fixture
def cluster(own, monkeypatch):
    """A client of dist_train finds the parts in this process instead of on servers."""
    opened, top = graphwire.open, own[1]
    monkeypatch.setattr(graphwire, "open", lambda *where: opened(*where or [parts_folder(top, "grid")]))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    return ["client", "dist_train", "-", "--ip_config", "none"]


def figures_of(text):
    return [line for line in text.splitlines() if line.startswith("Test average")]


def test_own_data_is_trained_and_evaluated(own, cluster, tmp_path, capfd):
    assert main(["partition", "-k", "2", *own]) == 0, capfd.readouterr().err
    for number, command in enumerate((["train"], cluster)):
        assert main([*command, *own, *TRAIN, "--test", "--valid", "--save_path", str(tmp_path / "ckpts")]) == 0
        trained = figures_of(capfd.readouterr().out)
        assert len(trained) == 5
        assert main(["eval", *own, "--model_path", str(tmp_path / f"ckpts/TransE_grid_{number}")]) == 0
        assert figures_of(capfd.readouterr().out) == trained


def test_importance_reaches_the_trainer(own, cluster, tmp_path, monkeypatch, capfd):
    """Only with the flag, whatever the parts have. If the parts have no importance, an error says so."""
    seen = []
    call = Loss.__call__
    monkeypatch.setattr(Loss, "__call__", lambda loss, positive, negative, weights=None, mask=None: (
        seen.append(weights), call(loss, positive, negative, weights, mask))[1])
    train = [*cluster, *own, *TRAIN, "--save_path", str(tmp_path / "ckpts")]
    assert main(["partition", "-k", "2", *own]) == 0
    assert main([*train, "--has_edge_importance"]) == 1
    assert "--has_edge_importance: the graph has no importance" in capfd.readouterr().err
    assert main(["partition", "-k", "2", "--has_edge_importance", *own]) == 0
    assert not seen and main(train) == 0
    assert seen == [None] * 4
    for command in (train, ["train", *train[len(cluster):]]):
        seen.clear()
        assert main([*command, *"--has_edge_importance --batch_size 71 --neg_sample_size 71 --max_step 8".split()]) == 0
        weights = np.concatenate([some.numpy().reshape(-1) for some in seen])
        assert sorted(weights) == sorted(2 * [weight(line) for line in grid()[60:]])  # of two epochs
