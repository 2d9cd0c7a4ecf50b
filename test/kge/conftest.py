"""A small knowledge graph for the tests of graphwire.kge, and the report. $GRAPHWIRE is the program
(build/release/graphwire). Each test prints a line "ok - …" or "not ok - …"."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

TOP = Path(__file__).resolve().parents[2]
os.environ.setdefault("GRAPHWIRE", str(TOP / "build/release/graphwire"))
os.environ.pop("GRAPHWIRE_JOB", None)

sys.path.insert(0, str(TOP / "test/support"))

from forks import limit_forks  # noqa: E402
from graphwire.kge import data, dictionaries, outputs, store  # noqa: E402
from report import tell  # noqa: E402

limit_forks()


def pytest_runtest_logreport(report):
    tell(report, "kge")


@pytest.fixture(scope="session", autouse=True)
def runtime_folder(tmp_path_factory):
    """Uses a runtime folder with the keys and locks of these servers only."""
    folder = tmp_path_factory.mktemp("runtime")
    folder.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(folder)


def sealed_again(folder, *without, **changes):
    """Writes config.json with the digests of the rows that the folder has now. without: keys to leave out."""
    config = dictionaries.read_config(folder) | changes
    config["arrays"] = {path.name: outputs._entry(np.load(path)) for path in folder.glob("*.npy")}
    dictionaries.write_sealed(folder / "config.json", {
        key: value for key, value in config.items() if key not in without})


SIDE = 9  # of the grid
MOVES = {"right": (1, 0), "left": (-1, 0), "up": (0, 1), "down": (0, -1), "leap": (2, 1)}


def grid():
    """Triples of a grid: the neighbour to the right, above … of each place. A model needs to learn only
    translations."""
    lines = []
    for x in range(SIDE):
        for y in range(SIDE):
            for name, (dx, dy) in MOVES.items():
                if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE:
                    lines.append((f"p{x}{y}", name, f"p{x + dx}{y + dy}"))
    return lines


@pytest.fixture(scope="session")
def data_path(tmp_path_factory):
    """Writes the grid to <data_path>/wn18/, the name of a built-in dataset; validation and test have 30 triples
    each."""
    top = tmp_path_factory.mktemp("data")
    folder = top / "wn18"
    folder.mkdir()
    lines = grid()
    order = np.random.default_rng(1).permutation(len(lines))
    for split, at in (("test", order[:30]), ("valid", order[30:60]), ("train", order[60:])):
        (folder / f"{split}.txt").write_text("".join("\t".join(lines[i]) + "\n" for i in sorted(at)))
    names = sorted({line[i] for line in lines for i in (0, 2)}, key=lambda name: name[::-1])
    data.write_dictionary(folder / "entities.dict", {name: i for i, name in enumerate(names)})
    data.write_dictionary(folder / "relations.dict", {name: i for i, name in enumerate(MOVES)})
    return top


@pytest.fixture(scope="session")
def dataset(data_path):
    return data.load(data_path, "wn18")


@pytest.fixture(scope="session")
def graph_folder(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "whole"
    store.build(dataset, folder)
    return folder


@pytest.fixture
def pinned_rows(monkeypatch):
    """Records the tensors made in pinned memory. Without a GPU the fixture replaces pinned memory by ordinary
    memory."""
    found, empty = [], torch.empty

    def recorded(*shape, pin_memory=False, **more):
        rows = empty(*shape, **more)
        if pin_memory:
            found.append(rows)
        return rows

    monkeypatch.setattr(torch, "empty", recorded)
    return found
