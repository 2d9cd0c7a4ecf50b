"""The law of alias tables on disk: every edge of every in-list has its share of the weight, to within 2^-32.

Reads the parts' files and shares no code with the construction of the tables."""

import json
from pathlib import Path

import numpy as np


def tables(config):
    """{(edge type, feature)} of all alias tables that part 0 has."""
    text = json.loads(Path(config).read_text())
    folders = {etype.replace(":", "__"): etype for etype in text["etypes"]}
    return {(folders[path.parent.name], path.name[:-len(".alias.npy")])
            for path in (Path(config).parent / "part0" / "edge").glob("*/*.alias.npy")}


def check_list(weights, table):
    chance = np.zeros(len(weights))
    np.add.at(chance, np.arange(len(weights)), table[:, 0] / 2**32)
    if weights.sum() == 0:
        assert (table == [0, 2**32 - 1]).all()
        return
    np.add.at(chance, table[:, 1], 1 - table[:, 0] / 2**32)
    np.testing.assert_allclose(chance / len(weights), weights / weights.sum(), rtol=0, atol=2.0**-31)
    assert (chance[weights == 0] == 0).all()


def check_table(config, etype, name):
    """Checks the table beside the feature in every part. Returns the number of edges with a positive weight."""
    text = json.loads(Path(config).read_text())
    ends_at, positive = etype.split(":")[2], 0
    for part in range(text["num_parts"]):
        folder = Path(config).parent / f"part{part}"
        edges = folder / "edge" / etype.replace(":", "__")
        weights = np.load(edges / f"{name}.npy").astype(np.float64).reshape(-1)
        table = np.load(edges / f"{name}.alias.npy").astype(np.int64)
        column = text["indptr_columns"][ends_at].index(etype)
        offsets = np.load(folder / "node" / ends_at / "indptr.npy")[:, column].astype(np.int64)
        assert table.shape == (len(weights), 2) and offsets[-1] == len(weights)
        for begin, end in zip(offsets[:-1], offsets[1:]):
            check_list(weights[begin:end], table[begin:end])
        positive += int((weights > 0).sum())
    return positive
