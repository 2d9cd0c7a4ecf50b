"""Finds the columns that the arguments of from_tables name.

    {type: table} or a table ─▶ Table of each type ─▶ columns of ids and ends; Feature of each type

Errors: ValueError for a type or a column that does not exist, which suggests one; TypeError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from graphwire._base.escape import LONGEST, escaped_type
from graphwire._base.keywords import suggestion
from graphwire._files import names as _names
from graphwire._files.graph_arrays import Canonical
from graphwire._files.table_kinds import PATHS, Table, opened

Key = Union[str, Canonical]  # a node type or an edge type
Columns = dict[str, list[str]]  # {feature: columns that are joined}
_IDS = ("id", "nodeid", "nodeids", "ids")


class Feature:
    """One feature of a type: where its rows come from. role: features, labels, masks, text, categories or time.
    missing: a number may be missing, as NaN, and a category, as -1."""

    def __init__(self, role: str, name: str, columns: list[str], missing: bool = False):
        self.role, self.name, self.columns, self.missing = role, name, columns, missing


def label(key: Key) -> str:
    return key if isinstance(key, str) else ":".join(key)


def is_etype(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 3 and all(isinstance(word, str) for word in key)


def _named(given: Any) -> Iterator[str]:
    """All texts in what names columns: names of columns, and some of types and features."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        yield from _named(list(given.values()))
    elif isinstance(given, Sequence):
        for one in given:
            yield from _named(one)


def _of_type(key: Key, given: Any) -> Any:
    return given.get(key) if isinstance(given, Mapping) else given


class TextOptions:
    """What the arguments say about files of text: options of `graphwire import columns`. header: whether the first line
    names the columns; None: the program decides. named: what the arguments name: a first line with one of these names
    is a header."""

    def __init__(self, header: Optional[bool], src: Any, dst: Any, named: Sequence[Any]):
        self._header, self._ends, self._named = header, (("src", src), ("dst", dst)), named

    def words(self, key: Key) -> list[str]:
        words = [] if self._header is None else ["--header" if self._header else "--no-header"]
        words += [f"--named={name}" for name in dict.fromkeys(_named(self._named)) if not name.isdecimal()]
        if isinstance(key, str):
            return [*words, "--node-table"]
        for (end, given), ntype in zip(self._ends, (key[0], key[2])):
            name, stored = _of_type(key, given), escaped_type(ntype)
            if isinstance(name, str) and not name.isdecimal():
                words.append(f"--{end}-column={name}")
            if ":" not in ntype and len(stored) <= LONGEST:
                words.append(f"--{end}-type={stored}")
        return words


def opened_tables(use: str, tables: Any, only: Key, text: TextOptions) -> dict[Any, Table]:
    """{type: table} of {type: table}, or of one table, which has the type `only`."""
    by_type = isinstance(tables, Mapping) and (not tables or not all(isinstance(one, str) for one in tables) or
                                               (use == "nodes" and not any(map(_is_column, tables.values()))))
    given = dict(tables) if by_type else {only: tables}
    for key in given:
        if not (is_etype(key) if use == "edges" else isinstance(key, str)):
            raise TypeError(f"{use}: a type is {'(source, relation, destination)' if use == 'edges' else 'a name'}, "
                            f"not {key!r}")
    if not given and use == "edges":
        raise ValueError("edges: no tables")
    return {key: opened(table, f"{use} of {label(key)}" if by_type else use, text.words(key))
            for key, table in given.items()}


def _is_column(value: Any) -> bool:
    """Whether a value of a dictionary is a column rather than a table."""
    if isinstance(value, (list, tuple, range)):  # a list of files is one table
        return not value or not all(isinstance(one, os.PathLike) or (isinstance(one, str) and one.endswith(PATHS))
                                    for one in value)
    return not isinstance(value, (str, os.PathLike)) and not any(
        hasattr(value, name) for name in ("columns", "column_names", "schema", "keys"))


def _by_type(use: str, given: Any, tables: Mapping[Any, Table]) -> tuple[dict[Any, Any], bool]:
    """({type: what is given for it}, whether the types were named). What has no types is given for every table."""
    if given is None:
        return {}, True
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in tables]
        if not unknown:
            return dict(given), True
        if len(unknown) < len(given) or is_etype(unknown[0]):
            known = {label(key): None for key in tables}
            raise ValueError(f"{use}: no table has the type {label(unknown[0])!r}"
                             + suggestion(label(unknown[0]), known).replace("its arguments", "the types"))
    return dict.fromkeys(tables, given), False


def _joined(use: str, given: Any) -> Columns:
    """{feature: its columns} of a column, a list of columns, or {feature: a column, or a list}."""
    if isinstance(given, str):
        return {given: [given]}
    if isinstance(given, Mapping):
        made = {name: list(of) if isinstance(of, Sequence) and not isinstance(of, str) else [of]
                for name, of in given.items()}
    elif isinstance(given, Sequence):
        made = {name: [name] for name in given}
    else:
        raise TypeError(f"{use}: columns are a name, a list of names, or {{feature: names}}, not {given!r}")
    for name, columns in made.items():
        if not isinstance(name, str) or not columns or not all(isinstance(one, str) for one in columns):
            raise TypeError(f"{use}: columns are names, not {name!r}: {columns!r}")
    return made


def selected(use: str, given: Any, tables: Mapping[Any, Table]) -> dict[Any, Columns]:
    """{type: {feature: its columns}}. Without types, a feature belongs to each table that has its columns."""
    by_type, named = _by_type(use, given, tables)
    if named:
        return {key: {name: [tables[key].column(one, use) for one in columns]
                      for name, columns in _joined(use, of).items()} for key, of in by_type.items()}
    found: dict[Any, Columns] = {}
    for name, columns in _joined(use, given).items():
        owners = [key for key, table in tables.items() if set(columns) <= set(table.names)]
        if not owners:
            nearest = max(tables.values(), key=lambda table: sum(one in table.names for one in columns), default=None)
            if nearest is None:
                raise ValueError(f"{use}: there are no tables for column {columns[0]!r}")
            if len(tables) > 1 and not any(one in nearest.names for one in columns):
                known = dict.fromkeys(one for table in tables.values() for one in table.names)
                raise ValueError(f"{use}: no table has a column {columns[0]!r}"
                                 + suggestion(columns[0], known).replace("its arguments", "the columns"))
            for one in columns:
                nearest.column(one, use)
        for key in owners:
            found.setdefault(key, {})[name] = columns
    return found


def one_column(use: str, given: Any, tables: Mapping[Any, Table]) -> dict[Any, str]:
    """{type: a column} of a name, which every table must have, or of {type: a name}."""
    return {key: tables[key].column(name, use) for key, name in _by_type(use, given, tables)[0].items()}


def id_column(ntype: str, table: Table) -> str:
    """The column of ids by its name: id, node_id, or the type's name. Raises ValueError."""
    known = [(name, _names._Name(name)) for name in table.names]
    found = [name for name, one in known if one.whole in _IDS or one.is_type(ntype)]
    if len(found) != 1:
        raise ValueError(f"{table.what}: {'no column is' if not found else 'several columns are'} named as ids: pass "
                         f"id=…, one of {', '.join(table.names)}")
    return found[0]


def end_columns(etype: Canonical, table: Table, src: Optional[str], dst: Optional[str]) -> tuple[str, str]:
    """The columns of sources and destinations: as given, as the program chose, or by their names. Raises ValueError."""
    if src is None or dst is None:
        places = None if table.ends else _names.ends(table.names, etype[0], etype[2])
        ends = table.ends or (tuple(table.names[place] for place in places) if places else
                              tuple(table.names) if len(table.names) == 2 else None)
        if ends is None:
            raise ValueError(f"{table.what}: no columns have known names of ends, such as src and dst: pass src=… "
                             f"and dst=…, two of {', '.join(table.names)}")
        src, dst = src or ends[0], dst or ends[1]
    if src == dst:
        raise ValueError(f"{table.what}: column {src} has both the sources and the destinations: pass src=… and "
                         "dst=…")
    return src, dst


def features_of(role: str, columns: Columns) -> list[Feature]:
    """The features of one type and role. Raises ValueError for joined columns that are no numbers, and for several
    labels or times."""
    if role in ("labels", "time") and len(columns) > 1:
        raise ValueError(f"{role}: one column, not {', '.join(columns)}")
    for name, of in columns.items():
        if role != "features" and len(of) > 1:
            raise ValueError(f"{role}: {name}: one column, not {', '.join(of)}")
    fixed = {"labels": "label", "time": "time"}.get(role)
    return [Feature(role, fixed or name, of) for name, of in columns.items()]
