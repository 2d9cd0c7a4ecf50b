"""Describes tables by their keys: Python objects, a JSON file, or a database of relbench.

    {name: Table}, db.json, relbench.Database ─▶ described() ─▶ {name: Table}: keys, foreign keys and columns as lists

python/graphwire/tables.schema.json is the JSON's schema; paths in it are relative to its folder. docs/TABLES.md
describes both.

Errors: ValueError and TypeError, which name the table and the key of the description; FileNotFoundError.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from graphwire._base.keywords import keywords, suggestion

FORMAT = "graphwire-tables-1"
MISSING = ("drop", "error")
UNITS = ("D", "s", "ms", "us", "ns")
Names = tuple[str, ...]

_ROOT = ("format", "tables", "name", "unit", "missing")
_DUCKDB = ("duckdb", "table", "query")


def _names(what: str, given: Any) -> Names:
    """One name, or a list of names, as a tuple."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else ()
    if not names or not all(isinstance(one, str) and one for one in names):
        raise TypeError(f"{what}: a column, or a list of columns, not {given!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: a column occurs twice in {', '.join(names)}")
    return names


def one_of(what: str, value: Any, choices: Sequence[Any]) -> Any:
    if value not in choices:
        raise ValueError(f"{what}: one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


@keywords
class ForeignKey:
    """A foreign key: columns of a table that hold the primary key of a row of another table, or of the same one.

    table: the name of the table that it refers to.
    columns: its columns, in the order of the primary key's. None: the key under which Table.foreign_keys has it.
    reverse: whether edges also go from the row that it refers to, to the row that holds it.
    missing: "drop": a row whose key is null or refers to no row has no edge, and a line of the log counts such rows;
        "error": such a row is an error. None: as from_database says.

    Raises TypeError and ValueError.
    """

    __module__ = "graphwire"

    def __init__(self, table: str, columns: Any = None, *, reverse: bool = True, missing: Optional[str] = None):
        if not isinstance(table, str):
            raise TypeError(f"foreign key: table is a name, not {table!r}")
        if not isinstance(reverse, bool):
            raise TypeError(f"foreign key to {table}: reverse is True or False, not {reverse!r}")
        self.table, self.reverse = table, reverse
        self.columns = () if columns is None else _names(f"foreign key to {table}", columns)
        self.missing = None if missing is None else one_of(f"foreign key to {table}: missing", missing, MISSING)

    @property
    def relation(self) -> str:
        """The relation of its edges, as RelBench names it."""
        return "f2p_" + "+".join(self.columns)

    def __repr__(self) -> str:
        return f"<graphwire.ForeignKey: {', '.join(self.columns)}{' -> ' if self.columns else ''}{self.table}>"


def _foreign_keys(what: str, given: Any) -> list[ForeignKey]:
    """The foreign keys of {column, or columns: table, or ForeignKey}, or of a list of ForeignKey."""
    pairs = list(given.items()) if isinstance(given, Mapping) else [(None, one) for one in given or ()]
    found = []
    for columns, one in pairs:
        if isinstance(one, str):
            one = ForeignKey(one)
        if not isinstance(one, ForeignKey):
            raise TypeError(f"{what}: foreign_keys are {{column: table}}, not {one!r}")
        names = one.columns if columns is None else _names(f"{what}: foreign_keys", columns)
        if not names or (one.columns and names != one.columns):
            raise ValueError(f"{what}: the foreign key to {one.table}: " + (
                f"its columns are {', '.join(one.columns)}, and {', '.join(names)}" if names else "name its columns"))
        found.append(ForeignKey(one.table, names, reverse=one.reverse, missing=one.missing))
    twice = [one for one in found if [other.columns for other in found].count(one.columns) > 1]
    if twice:
        raise ValueError(f"{what}: two foreign keys have the columns {', '.join(twice[0].columns)}")
    return found


@keywords
class Table:
    """A table of a database, whose rows become the nodes of a type.

    source: what from_tables takes as a table; a folder of Spark with folders such as "day=2024-01-01"; a relation of
        duckdb.
    key: the column of the primary key, or a list of columns. None: the table has none, and no key refers to it.
    foreign_keys: {column: table}, {(column, column): table}, or a ForeignKey in place of the table.
    time: the column of the row's time. end_time: the column of the time from which the row is not valid any more; a
        missing value is no end.
    features, labels, masks, text, categories: as in from_tables, of this table alone. features=None: every column that
        no other argument names becomes a feature, by the rules of docs/TABLES.md.
    fill: {column: value}: the value in place of missing ones.

    Raises TypeError and ValueError for arguments of another form. from_database compares them with the columns.
    """

    __module__ = "graphwire"

    def __init__(self, source: Any, key: Any = None, foreign_keys: Any = None, *, time: Optional[str] = None,
                 end_time: Optional[str] = None, features: Any = None, labels: Optional[str] = None, masks: Any = None,
                 text: Any = None, categories: Any = None, fill: Optional[Mapping[str, Any]] = None):
        for name, column in (("time", time), ("end_time", end_time), ("labels", labels)):
            if column is not None and not isinstance(column, str):
                raise TypeError(f"{name}: a column is a name, not {column!r}")
        if end_time is not None and time is None:
            raise ValueError("end_time: a table with it has a time too")
        if fill is not None and not isinstance(fill, Mapping):
            raise TypeError(f"fill: {{column: value}}, not {fill!r}")
        empty = next((name for name, value in (fill or {}).items() if value is None), None)
        if empty is not None:
            raise ValueError(f"fill: column {empty}: a value, not None")
        self.source, self.key = source, () if key is None else _names("key", key)
        self.foreign_keys = _foreign_keys("table", foreign_keys)
        self.time, self.end_time, self.features, self.labels = time, end_time, features, labels
        self.masks, self.text, self.categories, self.fill = masks, text, categories, dict(fill or {})

    def __repr__(self) -> str:
        keys = "".join(f", {', '.join(one.columns)} -> {one.table}" for one in self.foreign_keys)
        return f"<graphwire.Table: key {', '.join(self.key) or 'none'}{keys}>"


ROLES = ("end_time", "features", "labels", "masks", "text", "categories", "fill")  # of columns


def with_roles(tables: Mapping[str, Table], given: Mapping[str, Any]) -> dict[str, Table]:
    """The tables, with the roles of columns that from_database has: {role: {table: columns} or None}. Raises TypeError,
    and ValueError for a table that does not exist or has the role already."""
    made = dict(tables)
    for role, of_tables in given.items():
        if not isinstance(of_tables or {}, Mapping):
            raise TypeError(f"{role}: {{table: columns}}, not {of_tables!r:.60}")
        for name, columns in (of_tables or {}).items():
            if name not in made:
                raise ValueError(f"{role}: no table {name!r}"
                                 + suggestion(str(name), made).replace("its arguments", "the tables"))
            table = made[name]
            roles = {one: getattr(table, one) for one in ROLES}
            if roles[role]:
                raise ValueError(f"table {name}: {role}: its description has them too")
            made[name] = in_table(name, lambda table=table, roles={**roles, role: columns}: Table(
                table.source, table.key or None, table.foreign_keys, time=table.time, **roles))
    return made


_OF_TABLE = ("source", "key", "foreign_keys", "time", "end_time", "features", "labels", "masks", "text", "categories",
             "fill")
_OF_KEY = ("table", "columns", "reverse", "missing")


# --- JSON. ---

def _known(what: str, given: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"{what}: an object, not {json.dumps(given):.60}")
    for key, value in given.items():
        if key not in keys:
            raise ValueError(f"{what}: no key {key!r}" + suggestion(key, keys).replace("its arguments", "its keys"))
        if value is None:
            raise ValueError(f"{what}: {key} is null: leave it out")
    return given


def _source(what: str, given: Any, folder: Path) -> Any:
    """A path, a list of paths, or {"duckdb": file, "table": name} or with "query"."""
    if isinstance(given, str):
        return folder / given
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        return [folder / one for one in given]
    of = _known(what, given, _DUCKDB)
    if not isinstance(of.get("duckdb"), str) or len(of) != 2 or not all(isinstance(one, str) for one in of.values()):
        raise ValueError(f'{what}: a path, a list of paths, or {{"duckdb": file, "table": name}}, or "query" in place '
                         f"of \"table\", not {json.dumps(given):.80}")
    return Duckdb(folder / of["duckdb"], of.get("table"), of.get("query"))


class Duckdb:
    """A table, or the rows of a query, in a file of duckdb."""

    def __init__(self, path: Path, table: Optional[str], query: Optional[str]):
        self._path, self._table, self._query = path, table, query

    def rows(self, what: str) -> Any:
        """All rows, as a table of Arrow. Raises ModuleNotFoundError, FileNotFoundError, and ValueError with the line of
        duckdb's error."""
        try:
            import duckdb
        except ImportError:
            raise ModuleNotFoundError(f'{what}: a file of duckdb needs duckdb, which is not installed: "pip install '
                                      'duckdb"', name="duckdb") from None
        if not self._path.exists():
            raise FileNotFoundError(f"{self._path}: no such file")
        try:
            with duckdb.connect(str(self._path), read_only=True) as connection:
                found = connection.sql(self._query or "") if self._table is None else connection.table(self._table)
                if found is None:
                    raise ValueError(f"{what}: {self._path}: the query has no result")
                return found.to_arrow_table()
        except duckdb.Error as error:
            raise ValueError(f"{what}: {self._path}: {str(error).partition(chr(10))[0]}") from None


def _key_of_json(what: str, columns: Any, given: Any) -> ForeignKey:
    of = {"table": given} if isinstance(given, str) and columns is not None else dict(_known(what, given, _OF_KEY))
    if "table" not in of:
        raise ValueError(f"{what}: no key 'table'")
    if columns is not None and "columns" in of:
        raise ValueError(f"{what}: its columns are named twice")
    return ForeignKey(of.pop("table"), of.pop("columns", columns), **of)


def _table_of_json(what: str, given: Any, folder: Path) -> Table:
    of = dict(_known(what, given, _OF_TABLE))
    if "source" not in of:
        raise ValueError(f"{what}: no key 'source'")
    of["source"] = _source(f"{what}: source", of["source"], folder)
    keys = of.pop("foreign_keys", {})
    if not isinstance(keys, (dict, list)):
        raise ValueError(f"{what}: foreign_keys: an object or a list, not {json.dumps(keys):.60}")
    pairs = keys.items() if isinstance(keys, dict) else [(None, one) for one in keys]
    return Table(foreign_keys=[_key_of_json(f"{what}: foreign_keys", *pair) for pair in pairs], **of)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return made


def _of_json(path: Path) -> tuple[dict[str, Table], dict[str, Any]]:
    """({name: Table}, the other keys) of a JSON file."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        root = json.loads(path.read_text("utf-8"), object_pairs_hook=_once)
        of = dict(_known("the description", root, _ROOT))
        if of.pop("format", None) != FORMAT:
            raise ValueError(f'"format" is not "{FORMAT}"')
        if not isinstance(of.get("name", ""), str):
            raise ValueError(f'"name" is a text, not {json.dumps(of["name"]):.60}')
        for key, choices in (("missing", MISSING), ("unit", UNITS)):
            if key in of:
                one_of(key, of[key], choices)
        tables = of.pop("tables", None)
        if not isinstance(tables, dict):
            raise ValueError('"tables" is not an object')
        return {name: in_table(name, lambda name=name, one=one:
                               _table_of_json(f"table {name}", one, path.parent)) for name, one in tables.items()}, of
    except RecursionError:
        raise ValueError(f"{path}: too deep") from None
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") if type(error) in (ValueError, TypeError) else \
            ValueError(f"{path}: {error}") from None


def in_table(name: str, make: Any) -> Any:
    """What make() returns, with the table's name in errors."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        text = str(error)
        raise type(error)(text if text.startswith(f"table {name}") else f"table {name}: {text}") from None


# --- All. ---

def _of_relbench(given: Any) -> dict[str, Table]:
    return {name: Table(one.df, one.pkey_col, dict(one.fkey_col_to_pkey_table), time=one.time_col)
            for name, one in given.table_dict.items()}


def described(given: Any) -> tuple[dict[str, Table], dict[str, Any]]:
    """({name: Table}, the further keys of a JSON file) of what from_database takes. Raises ValueError for a foreign key
    whose table does not exist or has another key, and for a database without tables."""
    options: dict[str, Any] = {}
    if isinstance(given, (str, os.PathLike)):
        tables, options = _of_json(Path(given))
    elif isinstance(getattr(given, "table_dict", None), Mapping):
        tables = _of_relbench(given)
    elif isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        tables = dict(given)
    else:
        raise TypeError("a database is {name: graphwire.Table}, the path of a JSON, or a Database of relbench, not "
                        f"{type(given).__name__}")
    for name, table in tables.items():
        if not isinstance(table, Table):
            raise TypeError(f"table {name}: a graphwire.Table, not {type(table).__name__}")
        for key in table.foreign_keys:
            _check_key(f"table {name}: the foreign key {', '.join(key.columns)}", key, tables)
    if not tables:
        raise ValueError("a database has at least one table")
    return tables, options


def _check_key(what: str, key: ForeignKey, tables: Mapping[str, Table]) -> None:
    if key.table not in tables:
        raise ValueError(f"{what}: no table {key.table!r}"
                         + suggestion(key.table, tables).replace("its arguments", "the tables"))
    primary = tables[key.table].key
    if len(primary) != len(key.columns):
        has = f"has the key {', '.join(primary)}" if primary else "has no key"
        raise ValueError(f"{what} refers to {key.table}, which {has}")
