"""Random databases, their files and descriptions, and the edges that pandas finds by their keys.

    Database(seed) -> tables of Arrow -> write(folder): a file of each, and db.json -> described(): graphwire.Table
    edges(): {edge type: sorted rows of both ends and the time}, by pandas.merge
"""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import graphwire
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

WORDS = ["", "a", "b", "é", "日本", 'say "x"', "back\\slash", "x,y", "tab\there", "007", "NULL", "1", "[1]", " b"]
OTHERS = ["", "a\0", "a\0\0", "e\u0301", "\u00e9", "\u212b"]  # texts that CSV does not keep, or that look alike
NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


DICTIONARY = pa.dictionary(pa.int16(), pa.string())
TYPES = {  # of keys, in memory and in Parquet
    "int": [pa.int64(), pa.int32(), pa.int8(), pa.uint64(), pa.float64(), pa.float32(), pa.decimal128(12, 2)],
    "big": [pa.int64(), pa.int64(), pa.decimal128(30, 3)],
    "text": [pa.string(), pa.large_string(), DICTIONARY],
    "day": [pa.date32(), pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin")],
    "moment": [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "America/New_York")],
    "bool": [pa.bool_()]}
NULLABLE = {pa.int8(): pd.Int8Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
            pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
CSV_TYPES = {"int": pa.int64(), "big": pa.int64(), "text": pa.string(), "day": pa.date32(),
             "moment": pa.timestamp("us"), "bool": pa.bool_()}


def array_of(values, kind):
    """Values of Python as an array of Arrow; times are UTC."""
    if pa.types.is_timestamp(kind):
        plain = [one if one is None or isinstance(one, datetime) else datetime(one.year, one.month, one.day)
                 for one in values]
        return pa.array(plain, pa.timestamp("us")).cast(pa.timestamp(kind.unit)).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if one is None else Decimal(one) for one in values], kind)
    return pa.array(values, kind.value_type).dictionary_encode().cast(kind) if pa.types.is_dictionary(
        kind) else pa.array(values, kind)


class RandomTable:
    """kinds: {column of the key: int, big, text, day, moment or bool}. refers: [(columns, target, both ways)]. csv: its
    file is text. texts: those that keys begin with."""

    def __init__(self, name, draw, with_csv):
        self.name, self.rows = name, draw.choice([0, 1, 2, 5, 12, 12, 12])
        kinds = draw.choice([[], ["int"], ["int"], ["big"], ["text"], ["text"], ["int", "text"],
                             ["text", "big", "text"], ["day"], ["int", "day"], ["moment"], ["moment", "text"],
                             ["bool", "int"], ["bool"]])
        self.rows = min(self.rows, 2) if kinds == ["bool"] else self.rows
        self.kinds = {f"k{place}": kind for place, kind in enumerate(kinds)}
        self.texts = WORDS[1:] if with_csv else WORDS + OTHERS
        self.csv = with_csv and draw.random() < 0.5
        self.unit = draw.choice([None, None, "us", "ns", "ms", "ms"])  # Parquet has no seconds
        self.has_end = self.unit is not None and draw.random() < 0.5
        self.zone = None if self.csv else draw.choice([None, "Europe/Berlin", "America/New_York"])
        self.refers, self.columns = [], {}

    def key_rows(self, draw):
        """Keys, all different."""
        found = {}
        while self.kinds and len(found) < self.rows:
            found[tuple(self.key_value(kind, draw) for kind in self.kinds.values())] = None
        return list(found)

    def key_value(self, kind, draw):
        if kind == "text" and len(self.texts) > len(WORDS):
            return draw.choice(self.texts) + draw.choice(["", "", "\0", "7"])
        if kind == "text":
            return draw.choice(self.texts) + str(draw.randrange(9)) + draw.choice(["", "", "é"])
        return value_of(kind, draw)


def value_of(kind, draw):
    if kind == "bool":
        return draw.random() < 0.5
    if kind in ("day", "moment"):  # UTC
        day = datetime(1969, 12, 25) + timedelta(days=draw.randrange(20))
        return day.date() if kind == "day" else day + timedelta(seconds=draw.choice([0, 0, 1.5, 34200.000001]))
    return draw.randrange(40) if kind == "int" else draw.choice([-1, 1]) * (2**53 + draw.randrange(2**53)) + 1


class Database:
    def __init__(self, seed):
        self.draw = draw = random.Random(f"database {seed}")
        names, with_csv = ["users", "orders", "linés", "log-1"][:draw.randint(1, 4)], draw.random() < 0.6
        self.tables = {name: RandomTable(name, draw, with_csv) for name in names}
        if not any(table.kinds for table in self.tables.values()):
            draw.choice(list(self.tables.values())).kinds = {"k0": "int"}
        for table in self.tables.values():
            for name, values in zip(table.kinds, zip(*table.key_rows(draw)) if table.rows else [()] * len(table.kinds)):
                table.columns[name] = list(values)
        targets = [table for table in self.tables.values() if table.kinds]
        for table in self.tables.values():
            for place in range(draw.choice([0, 1, 1, 2])):
                self.refer(table, draw.choice(targets), place)
        if not any(table.refers for table in self.tables.values()) and draw.random() < 0.5:
            self.refer(draw.choice(list(self.tables.values())), draw.choice(targets), 0)
        for table in self.tables.values():
            self.add_values(table)
        self.arrow = {name: self.table_of(table) for name, table in self.tables.items()}

    def refer(self, table, target, place):
        """A foreign key, a part of whose values is null, or in no row of the target."""
        draw, names = self.draw, [f"f{place}_{key}" for key in target.kinds]
        known = list(zip(*(target.columns[key] for key in target.kinds)))
        rows = []
        for _ in range(table.rows):
            what = draw.random()
            row = list(draw.choice(known)) if known and what < 0.7 else [
                target.key_value(kind, draw) for kind in target.kinds.values()]
            if what > 0.85:
                row[draw.randrange(len(row))] = None
            rows.append(row)
        for at, name in enumerate(names):
            table.columns[name] = [row[at] for row in rows]
            table.refers_kinds = {**getattr(table, "refers_kinds", {}), name: list(target.kinds.values())[at]}
        table.refers.append((names, target.name, draw.random() < 0.8))

    def add_values(self, table):
        draw, rows = self.draw, range(table.rows)
        if table.unit:
            times = [NOW + timedelta(seconds=draw.randrange(10**6)) for _ in rows]
            table.columns["at"] = times
            if table.has_end:
                table.columns["until"] = [draw.choice([None, one + timedelta(days=1)]) for one in times]
        table.columns["n"] = [draw.choice([None, 1, 2, 3]) for _ in rows]
        table.columns["word"] = [draw.choice([None, "x", "é"]) for _ in rows]

    def table_of(self, table):
        arrays = {}
        kinds = {**table.kinds, **getattr(table, "refers_kinds", {})}
        for name, values in table.columns.items():
            if name in ("at", "until"):
                unit = "us" if table.csv else table.unit
                zone = None if table.csv else table.zone
                plain = [None if one is None else one.replace(tzinfo=None) if zone is None else one for one in values]
                arrays[name] = pa.array(plain, pa.timestamp(unit, zone))
            elif name in ("n", "word"):
                arrays[name] = pa.array(values, pa.int32() if name == "n" else pa.string())
            else:
                kind = CSV_TYPES[kinds[name]] if table.csv else self.draw.choice(TYPES[kinds[name]])
                arrays[name] = array_of(values, kind)
        return pa.table(arrays)

    def in_memory(self, name):
        """A table of Arrow, whole or in pieces, of pandas with types of Arrow or of its own, or of polars."""
        made = self.arrow[name]
        form = self.draw.choice(["arrow", "pieces", "pandas", "nullable", "polars"])
        form = "arrow" if form == "nullable" and not made.num_rows else form  # empty columns of pandas lose types
        if form == "pieces":
            return pa.concat_tables([made[begin:begin + 2] for begin in range(0, max(made.num_rows, 1), 2)])
        if form == "pandas":
            return made.to_pandas(types_mapper=pd.ArrowDtype)
        if form == "nullable":
            return made.to_pandas(types_mapper=NULLABLE.get)
        return made if form == "arrow" else pl.from_arrow(made.select(made.column_names))

    # --- Descriptions. ---

    def described(self, sources):
        """The tables as Python objects. sources: {name: source}."""
        return {name: graphwire.Table(
            sources[name], list(table.kinds) or None,
            {tuple(names): graphwire.ForeignKey(target, reverse=both) for names, target, both in table.refers},
            time="at" if table.unit else None, end_time="until" if table.has_end else None,
            features=["n"], categories=["word"]) for name, table in self.tables.items()}

    def write(self, folder):
        """Writes the tables and db.json. Returns {name: source}."""
        sources, described = {}, {}
        for name, table in self.tables.items():
            path = folder / f"{name}.{'csv' if table.csv else 'parquet'}"
            if table.csv:
                options = pa.csv.WriteOptions(quoting_style="needed")
                pa.csv.write_csv(self.arrow[name], path, options)
            else:
                pa.parquet.write_table(self.arrow[name], path)
            sources[name] = path
            described[name] = {"source": path.name, "features": ["n"], "categories": ["word"], "foreign_keys": [
                {"columns": names, "table": target, "reverse": both} for names, target, both in table.refers]}
            if table.kinds:
                described[name]["key"] = list(table.kinds)
            if table.unit:
                described[name]["time"] = "at"
            if table.has_end:
                described[name]["end_time"] = "until"
        text = json.dumps({"format": "graphwire-tables-1", "name": "db", "tables": described}, ensure_ascii=False)
        (folder / "db.json").write_text(text, "utf-8")
        return sources

    # --- The oracle. ---

    def frame(self, name):
        """A table as objects, so that pandas makes no floats of integers."""
        made = {column: pd.Series(values, dtype=object) for column, values in self.tables[name].columns.items()}
        return pd.DataFrame(made).assign(row=range(self.tables[name].rows))

    def unit(self):
        """The finest unit of all times. A column of text without values has none."""
        units = ["us" if table.csv else table.unit for table in self.tables.values()
                 if table.unit and (table.rows or not table.csv)]
        return max(units, key=UNITS.get) if units else None

    def in_unit(self, time):
        """A time as a number; a missing end is the last one."""
        if pd.isna(time):
            return 2**63 - 1
        return round((pd.Timestamp(time) - pd.Timestamp(0, tz="UTC")).total_seconds()) * UNITS[self.unit()]

    def edges(self):
        """({edge type: [(source row, destination row, time, end)]}, sorted; {(table, columns): (null, dangling)})."""
        found, lost = {}, {}
        for name, table in self.tables.items():
            for names, target, both in table.refers:
                keys = list(self.tables[target].kinds)
                whole = self.frame(name)
                some = whole[whole[names].notna().all(axis=1)]
                times_of_target = ["at", "until"] if self.tables[target].has_end else []
                joined = some.merge(self.frame(target)[[*keys, "row", *times_of_target]].rename(columns={
                    **{key: f"key {key}" for key in keys}, "row": "target",
                    **{column: f"target's {column}" for column in times_of_target}}), left_on=names,
                    right_on=[f"key {key}" for key in keys])
                columns = [next((one for one in (column, f"target's {column}") if one in joined), None)
                           for column in ("at", "until")]
                times = [tuple(None if column is None else self.in_unit(row[column]) for column in columns)
                         for row in joined.to_dict("records")]
                pairs = list(zip(joined["row"], joined["target"], times))
                etype = f"f2p_{'+'.join(names)}"
                found[name, etype, target] = sorted((a, b, *times) for a, b, times in pairs)
                if both:
                    found[target, f"rev_{etype}", name] = sorted((b, a, *times) for a, b, times in pairs)
                lost[name, tuple(names)] = (len(whole) - len(some), len(some) - len(joined))
        return found, lost
