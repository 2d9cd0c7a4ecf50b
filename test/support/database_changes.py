"""Random changes of a random database, of its files and of its description.

    changed(database, folder, draw) -> what was done; databases.py wrote the files and db.json
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def write_table(rows, path):
    if path.suffix == ".csv":
        pa.csv.write_csv(rows, path, pa.csv.WriteOptions(quoting_style="needed"))
    else:
        pa.parquet.write_table(rows, path)


def _new_key(kind, draw):
    types, number = pa.types, draw.randrange(10**9)
    if types.is_boolean(kind):
        return bool(number % 2)
    if types.is_date(kind) or types.is_timestamp(kind):
        return datetime(2030, 1, 1 + number % 28)
    if types.is_decimal(kind):
        return Decimal(10**9 + number)
    if types.is_floating(kind):
        return float(10**6 + number % 10**6)
    return min(10**12 + number, 2**(kind.bit_width - 1) - 1) if types.is_integer(kind) else f"new{number}"


def _with_rows(arrow, rows):
    return pa.Table.from_pylist(rows, arrow.schema)


def _row_added(arrow, table, draw):
    rows = arrow.to_pylist()
    row = dict(rows[-1]) if rows else dict.fromkeys(arrow.column_names)
    row.update({name: _new_key(arrow.schema.field(name).type, draw) for name in table.get("key", [])})
    for name in ("at", "until"):
        if name in row and row[name] is None:
            row[name] = datetime(2024, 2, 1)
    return _with_rows(arrow, [*rows, row])


def _row_removed(arrow, table, draw):
    rows = arrow.to_pylist()
    if rows:
        rows.pop(draw.randrange(len(rows)))
    return _with_rows(arrow, rows)


def _edited(arrow, table, draw):
    rows = arrow.to_pylist()
    if rows:
        draw.choice(rows).update(n=7)
    return _with_rows(arrow, rows)


def _category(arrow, table, draw):
    rows = arrow.to_pylist()
    if rows:
        draw.choice(rows).update(word="another")
    return _with_rows(arrow, rows)


def _referring(arrow, table, draw):
    """A foreign key becomes null."""
    rows, names = arrow.to_pylist(), [name for key in table["foreign_keys"] for name in key["columns"]]
    if rows and names:
        draw.choice(rows)[draw.choice(names)] = None
    return _with_rows(arrow, rows)


def _column_added(arrow, table, draw):
    if "more" in arrow.column_names:
        return arrow
    table["features"] = [*table["features"], "more"]
    return arrow.append_column("more", pa.array(range(arrow.num_rows), pa.int64()))


def _column_renamed(arrow, table, draw):
    names = [f"{name}_" if name == "word" else name for name in arrow.column_names]
    table["categories"] = [name for name in names if name.startswith("word")]
    return arrow.rename_columns(names)


def _key_renamed(arrow, table, draw):
    if not table["foreign_keys"]:
        return arrow
    key = draw.choice(table["foreign_keys"])
    old = key["columns"][0]
    key["columns"][0] = f"{old}x"
    return arrow.rename_columns([f"{old}x" if name == old else name for name in arrow.column_names])


def _option(arrow, table, draw):
    table["features"], table["text"], table["categories"] = [], table["categories"], []
    return arrow


def _every_column(arrow, table, draw):
    for name in ("features", "categories", "text"):
        table.pop(name, None)
    return arrow


def _fill(arrow, table, draw):
    table["fill"] = {"n": draw.randrange(9)}
    return arrow


def _direction(arrow, table, draw):
    for key in table["foreign_keys"][:1]:
        key["reverse"] = not key["reverse"]
    return arrow


def _key_dropped(arrow, table, draw):
    table["foreign_keys"] = table["foreign_keys"][1:]
    return arrow


def _without_time(arrow, table, draw):
    table.pop("time", None)
    table.pop("end_time", None)
    return arrow


def _touched(arrow, table, draw):
    return arrow


_OF_TABLES = (_row_added, _row_added, _row_removed, _edited, _category, _referring, _column_added, _column_renamed,
              _key_renamed, _option, _every_column, _fill, _direction, _key_dropped, _without_time, _touched)


def _order(described, draw):
    names = list(described["tables"])
    draw.shuffle(names)
    described["tables"] = {name: dict(reversed(described["tables"][name].items())) for name in names}


def _unit(described, draw):
    described["unit"] = draw.choice(["us", "ns"])


def _missing(described, draw):
    described["missing"] = draw.choice(["drop", "error"])


def _table_removed(described, draw):
    name = draw.choice(list(described["tables"]))
    del described["tables"][name]
    for table in described["tables"].values():
        table["foreign_keys"] = [key for key in table["foreign_keys"] if key["table"] != name]


def changed(database, folder, draw):
    """Makes a change, and returns its name."""
    path = folder / "db.json"
    described = json.loads(path.read_text("utf-8"))
    if not any(name in database.arrow for name in described["tables"]):
        return "nothing"
    if draw.random() < 0.25:
        change = draw.choice([_order, _unit, _missing, _table_removed])
        change(described, draw)
    elif draw.random() < 0.08:
        change = "a table added"
        target = draw.choice([name for name in described["tables"] if name in database.arrow])
        rows = database.arrow[target].select(described["tables"][target].get("key", []))
        described["tables"]["added"] = {"source": "added.parquet", "features": [], "foreign_keys": [
            {"columns": rows.column_names, "table": target}] if rows.num_columns else []}
        write_table(rows if rows.num_columns else pa.table({"x": [1]}), folder / "added.parquet")
    else:
        name = draw.choice([name for name in described["tables"] if name in database.arrow])
        change, table = draw.choice(_OF_TABLES), described["tables"][name]
        source = folder / table["source"]
        try:
            database.arrow[name] = change(database.arrow[name], table, draw)
        except (KeyError, AttributeError):  # an earlier change took the column
            return "nothing"
        write_table(database.arrow[name], source)
        os.utime(source)
    path.write_text(json.dumps(described, ensure_ascii=False), "utf-8")
    return getattr(change, "__name__", change)
