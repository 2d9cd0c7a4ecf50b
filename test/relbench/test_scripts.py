"""RelBench's scripts, unedited, without pyg-lib: over data in memory and over two servers. What they learn shows that
batches have the past, and only the past."""

from __future__ import annotations

import contextlib
import functools
import importlib

import graphwire
import pandas as pd
import pytest
import torch
from conftest import in_two_parts

SMALL = ("--channels", 32, "--epochs", 1)
ENTITY = ("--task", "taste", "--channels", 32, "--epochs", 3, "--num_layers", 1, "--num_neighbors", 64, "--batch_size",
          32, "--lr", 0.01)


@pytest.fixture
def made(scripts):
    return importlib.import_module("made")


@pytest.fixture(params=["memory", "two hosts"])
def run(request, scripts, made, monkeypatch, tmp_path):
    """A function: runs a script over a data set, returns its names."""
    bed = importlib.import_module("bed")
    with contextlib.ExitStack() as stack:

        def of_a_graph(data):
            return stack.enter_context(in_two_parts(data, tmp_path, "time"))[request.param]

        where = None if request.param == "memory" else of_a_graph
        yield lambda script, *words, planted=False: bed.Bed(
            monkeypatch, scripts, tmp_path, made.Made(planted), where).run(script, *words)


def of_the_table(task):
    """The area under the ROC curve of a model of the entity's own columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    users = task.dataset.get_db().table_dict["user"].df
    columns = pd.DataFrame({"age": users.age, "city": users.city.astype("category").cat.codes}).to_numpy()
    split = {name: task.get_table(name).df for name in ("train", "val")}
    model = HistGradientBoostingClassifier(random_state=0).fit(columns[split["train"].user], split["train"].label)
    return task.evaluate(model.predict_proba(columns[split["val"].user])[:, 1], task.get_table("val"))["roc_auc"]


def at_most(task):
    """The area that the law of the labels allows: that of the labels before some are turned."""
    table = task.get_table("val")
    _, _, before = task.dataset.rows_at(table.df.time.iloc[0])
    return task.evaluate(before, table)["roc_auc"]


def learnt(found):
    return found["task"].evaluate(found["test"](found["loader_dict"]["val"]), found["task"].get_table("val"))["roc_auc"]


def test_an_entity_is_learnt_from_its_past_alone(run, made):
    """The label itself is an event of the graph, a day after the time of its row."""
    found = run("gnn_entity", *ENTITY, planted=True)
    assert of_the_table(found["task"]) + 0.1 < learnt(found) < at_most(found["task"]) + 0.03
    for batch in found["loader_dict"]["train"]:
        for ntype, times in batch.time_dict.items():
            assert (times <= batch["user"].seed_time[batch[ntype].batch]).all()


@pytest.mark.parametrize("run", ["memory"], indirect=True)
def test_the_bound_shows_a_label_in_the_batch(run, made, monkeypatch):
    """The check above can fail: with all seeds a period later, each batch has its labels."""
    late = functools.partialmethod(_later, graphwire.pyg.NeighborLoader.__init__, int(made.PERIOD.total_seconds()))
    monkeypatch.setattr(graphwire.pyg.NeighborLoader, "__init__", late)
    found = run("gnn_entity", *ENTITY, planted=True)
    assert learnt(found) > at_most(found["task"]) + 0.03


def _later(loader, begin, seconds, *arguments, input_time=None, **options):
    begin(loader, *arguments, input_time=None if input_time is None else input_time + seconds, **options)


def test_a_column_is_completed(run):
    found = run("gnn_autocomplete", "--task", "amounts", *SMALL, "--num_neighbors", 4, "--max_steps_per_epoch", 8)
    assert found["val_metrics"]["r2"] > 0.2


@pytest.mark.parametrize("script, least", [("gnn_recommendation", 0.02), ("idgnn_recommendation", 0.3)])
def test_items_are_recommended(run, script, least):
    found = run(script, "--task", "bought", *SMALL, "--num_neighbors", 8, "--batch_size", 128, "--max_steps_per_epoch",
                12)
    assert torch.isfinite(torch.tensor(found["train_loss"]))
    assert found["val_metrics"]["link_prediction_map"] > least
