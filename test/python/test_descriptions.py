"""The JSON of a description: its published schema agrees with its reader."""

from __future__ import annotations

import json
import random
import re

import graphwire
import pytest
from conftest import TOP

pa = pytest.importorskip("pyarrow")
jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("pyarrow.parquet")

RIGHT = {"format": "graphwire-tables-1", "name": "g", "missing": "drop", "unit": "s", "tables": {
    "a": {"source": "a.parquet", "key": ["k", "j"], "foreign_keys": {"f": "b"}, "time": "t", "end_time": "e",
          "features": ["x", "y"], "masks": "m", "text": ["s"], "fill": {"x": 1}},
    "b": {"source": ["b.parquet"], "key": "k", "foreign_keys": [
        {"columns": ["f", "j"], "table": "a", "reverse": False, "missing": "error"}],
        "categories": {"kind": "s"}, "labels": "y"}}}
WORDS = [None, True, False, 0, 2, 1.5, "", "k", "a", "s", "drop", "D", [], ["k"], ["k", "k"], [[]], [None], [1],
         ["a"], [""], {}, {"k": "b"}, {"": "b"}, {"k": None}, {"k": 3}, {"k": ["x", "y"]}, {"k": ["x", "x"]}, {"k": []},
         {"k": [""]}, {"table": "b"}, {"table": "b", "columns": "f"}, [{"table": "b"}], {"f": {"table": "b"}},
         [{"table": "b", "columns": "f"}], {"f": {"table": "b", "columns": "f"}}, {"duckdb": "x"}, ["b.parquet"]]
KEYS = ["source", "key", "foreign_keys", "time", "end_time", "features", "masks", "text", "categories", "labels",
        "fill", "table", "columns", "reverse", "missing", "unit", "name", "format", "k", "more"]


class Descriptions:
    """Descriptions that a change or two made of a right one. The names in them are those of tables, columns and files,
    so that only their form can be wrong."""

    def __init__(self, seed):
        self.draw = random.Random(f"description {seed}")
        self.made = json.loads(json.dumps(RIGHT))
        for _ in range(self.draw.choice([1, 1, 2])):
            self.change()

    def change(self):
        spots = []

        def walk(node):
            for key in node if isinstance(node, dict) else range(len(node)):
                spots.append((node, key))
                if isinstance(node[key], (dict, list)):
                    walk(node[key])

        walk(self.made)
        node, key = self.draw.choice(spots)
        if isinstance(node, dict) and self.draw.random() < 0.3:
            key = self.draw.choice(KEYS)
        if self.draw.random() < 0.2:
            node.pop(key) if not isinstance(node, dict) or key in node else None
        else:
            node[key] = json.loads(json.dumps(self.draw.choice(WORDS)))


def test_the_schema_agrees_with_the_reader(tmp_path):
    """What the schema refuses, the reader refuses too, and it takes what the schema takes, unless names are wrong."""
    schema = json.loads((TOP / "python/graphwire/tables.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    times = pa.array([1, 2], pa.timestamp("us"))
    columns = {**{name: [1, 2] for name in ("k", "j", "f", "x", "y")}, "t": times, "e": times, "m": [True, False],
               "s": ["u", "v"]}
    for name in ("a", "b"):
        pa.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    named = re.compile("has no column|no table|refers to|no such file|neither .csv|two foreign keys|two features")
    counts = {True: 0, False: 0}
    for seed in range(1200):
        one = Descriptions(seed).made
        (tmp_path / "db.json").write_text(json.dumps(one))
        right, error = validator.is_valid(one), None
        try:
            graphwire.from_database(tmp_path / "db.json")
        except (ValueError, TypeError, FileNotFoundError) as raised:
            error = str(raised)
        counts[right] += 1
        assert error is not None if not right else error is None or named.search(error), (one, error)
    assert min(counts.values()) > 100
