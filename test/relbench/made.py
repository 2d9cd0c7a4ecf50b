"""A small database of RelBench's classes, whose label is a function of past events, and tasks over it.

    user <- event -> item          events of 30-day periods; user <- note -> item has no columns and no time
    user <- outcome                the label itself, a day after the time of its row (Made(planted=True))

The label of a user at a time is whether more of the user's events until then are of items of the kind "a" than of the
kind "b", with 15 of 100 labels turned. A user's own columns do not show it. Each user has one row in the task, so that
no other row's outcome shows it either.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import torch
from relbench.base import AutoCompleteTask, Database, Dataset, EntityTask, RecommendationTask, Table, TaskType
from relbench.metrics import (
    accuracy,
    link_prediction_map,
    link_prediction_precision,
    link_prediction_recall,
    roc_auc,
)

PERIOD, PERIODS = pd.Timedelta(30, unit="D"), 8
BEGIN = pd.Timestamp("2021-01-01")
USERS, ITEMS, LIKED, EVENTS = 960, 60, 3, 2


class Made(Dataset):
    val_timestamp = BEGIN + PERIOD * (PERIODS - 2)
    test_timestamp = BEGIN + PERIOD * (PERIODS - 1)

    def __init__(self, planted=False):
        super().__init__()
        random = np.random.default_rng(7)
        kinds = np.array(["a", "b", "c"])[np.arange(ITEMS) % 3]
        liked = random.integers(0, ITEMS // 3, (USERS, LIKED))  # of each kind, so that they say nothing of the label
        user, period, _ = map(np.ravel, np.indices((USERS, PERIODS, EVENTS)))
        taste = random.choice([0.2, 0.8], USERS)
        kind = (random.random(len(user)) > taste[user]) * 1
        item = 3 * liked[user, random.integers(0, LIKED, len(user))] + kind
        day = random.integers(1, 31, len(user)) / 30  # the last one is that of the label itself
        self._tables = {
            "user": pd.DataFrame({"id": np.arange(USERS), "age": random.normal(40, 10, USERS),
                                  "city": random.choice(["Ulm", "Bonn", "Kiel"], USERS)}),
            "item": pd.DataFrame({"id": np.arange(ITEMS), "kind": kinds, "price": random.random(ITEMS) * 10,
                                  "title": [f"item {kinds[i]} of size {i // 7}" for i in range(ITEMS)],
                                  "tags": [["red", "big", "new"][:i % 4] for i in range(ITEMS)]}),
            "event": pd.DataFrame({"user": user, "item": item, "time": BEGIN + PERIOD * (period + day),
                                   "amount": item % 3 * 2 + random.normal(0, 0.5, len(user))}),
            "note": pd.DataFrame({"user": random.integers(0, USERS, 300), "item": random.integers(0, ITEMS, 300)}),
        }
        more = np.zeros((USERS, PERIODS), int)
        np.add.at(more, (user, period), 1 - 2 * kind)
        self._before = more.cumsum(1) > 0
        self._labels = self._before ^ (random.random((USERS, PERIODS)) < 0.15)
        if planted:
            own = np.arange(USERS), np.arange(USERS) % PERIODS
            self._tables["outcome"] = pd.DataFrame({
                "user": own[0], "time": BEGIN + PERIOD * (own[1] + 1) + pd.Timedelta(1, unit="D"),
                "value": self._labels[own] * 2.0 - 1})

    def make_db(self):
        keys = {"user": ["id", None, {}], "item": ["id", None, {}],
                "event": ["id", "time", {"user": "user", "item": "item"}],
                "note": [None, None, {"user": "user", "item": "item"}], "outcome": [None, "time", {"user": "user"}]}
        made = {}
        for name, rows in self._tables.items():
            key, time, others = keys[name]
            rows = rows.copy() if time is None else rows.sort_values(time, ignore_index=True)
            if key is not None:
                rows[key] = np.arange(len(rows))
            made[name] = Table(rows, dict(others), key, time)
        return Database(made)

    def rows_at(self, time):
        """The users whose rows have this time, their labels, and these before some were turned."""
        period = (time - BEGIN) // PERIOD - 1
        users = np.arange(USERS)[np.arange(USERS) % PERIODS == period]
        return users, self._labels[users, period] * 1.0, self._before[users, period] * 1.0


class Taste(EntityTask):
    """The label, from a user's past alone."""

    entity_col, entity_table, time_col, target_col = "user", "user", "time", "label"
    task_type, timedelta, metrics = TaskType.BINARY_CLASSIFICATION, PERIOD, [roc_auc, accuracy]

    def make_table(self, db, timestamps):
        rows = [pd.DataFrame({"user": users, "time": time, "label": labels})
                for time in timestamps for users, labels, _ in [self.dataset.rows_at(time)]]
        return Table(pd.concat(rows, ignore_index=True), {"user": "user"}, None, "time")


class Bought(RecommendationTask):
    """The items of a user's events of the next period."""

    src_entity_col, src_entity_table, dst_entity_col, dst_entity_table = "user", "user", "item", "item"
    time_col, task_type, timedelta, eval_k = "time", TaskType.LINK_PREDICTION, PERIOD, 5
    metrics = (link_prediction_map, link_prediction_precision, link_prediction_recall)

    def make_table(self, db, timestamps):
        events, rows = db.table_dict["event"].df.astype({"user": int, "item": int}), []
        for time in timestamps:
            coming = events[(events.time > time) & (events.time <= time + PERIOD)]
            found = coming.groupby("user")["item"].agg(lambda some: sorted(set(some))).reset_index()
            rows.append(found.assign(time=time))
        return Table(pd.concat(rows, ignore_index=True), {"user": "user", "item": "item"}, None, "time")


def amounts(dataset):
    """The amount of each event, from the event's item."""
    return AutoCompleteTask(dataset, TaskType.REGRESSION, "event", "amount")


TASKS = {"taste": Taste, "bought": Bought, "amounts": amounts}


class Hashed:
    """In the place of a model of texts: numbers that each text alone determines."""

    def __init__(self, device=None):
        pass

    def __call__(self, texts):
        return torch.tensor([list(hashlib.sha256(str(text).encode()).digest()[:8]) for text in texts]) / 256 - 0.5
