"""The columns of a table with keys: their types, their times, and which of them become features.

    Columns(table) ─▶ types of keys settled ─▶ common_unit() of all times ─▶ settle_features(): the features, and which
    of their columns have missing values ─▶ read(): batches with missing values filled in ─▶ keys(), times_of(),
    as_features()

A feature with missing numbers is float64, or float32 if it is, and has NaN there; a missing category is -1; a missing
text is empty. A key of several columns is the text of a JSON array.

Errors: ValueError and TypeError, which name the table or the file, the column and the row.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from graphwire._base.escape import is_storable
from graphwire._base.times import moment
from graphwire._files import columns as _columns
from graphwire._files import narrow
from graphwire._files import rows as _rows
from graphwire._files.columns import Where, arrow
from graphwire._files.descriptions import Table
from graphwire._files.numbering import Ids, Texts
from graphwire._files.table_arguments import Feature
from graphwire._files.table_kinds import Table as Rows

TIME, END = "time", "end_time"  # the features of times
ORIGINAL = "orig_id"  # the feature of primary keys
_LAST = 2**63 - 1

_log = logging.getLogger("graphwire")


def value(ids: Ids, row: int) -> Any:
    """One id, for errors."""
    if isinstance(ids, Texts):
        return ids.data[ids.offsets[row]:ids.offsets[row + 1]].tobytes().decode("utf-8", "replace")
    return int(ids[row])


# --- Keys of several columns. ---

def _joined(*parts: Any) -> Any:
    """Arrays and texts, row by row one behind the other."""
    pa = arrow()
    texts = [pa.scalar(one, pa.large_string()) if isinstance(one, str) else one for one in (*parts, "")]
    return pa.compute.binary_join_element_wise(*texts)


def _json_texts(column: Any) -> Any:
    """Texts as graphwire/_base/keys.py writes them."""
    pa = arrow()
    compute = pa.compute
    if compute.any(compute.match_substring_regex(column, "[\\x00-\\x1f]")).as_py():
        return pa.array([json.dumps(one, ensure_ascii=False) for one in column.to_pylist()], pa.large_string())
    for one in ("\\", '"'):
        column = compute.replace_substring(column, one, "\\" + one)
    return _joined('"', column, '"')


def _joined_ids(parts: Sequence[Ids], columns: Sequence[Any]) -> Texts:
    """The text of each key, as key_text of graphwire/_base/keys.py makes it."""
    pa = arrow()
    texts: list[Any] = []
    for ids, column in zip(parts, columns):
        text = _json_texts(column.cast(pa.large_string())) if isinstance(ids, Texts) else \
            pa.array(ids).cast(pa.large_string())
        texts += [text, ","] if len(texts) < 2 * len(parts) - 2 else [text]
    found = _columns.ids(_joined("[", *texts, "]"), "", lambda row: "")
    assert isinstance(found, Texts)
    return found


# --- One table. ---

class Columns:
    """The columns of a table that are used. types: {column: its type of Arrow}. times: {feature: its column}.
    features: those of the nodes; known after settle_features(). of_nodes: the columns that the nodes need."""

    def __init__(self, name: str, rows: Rows, table: Table, features: Sequence[Feature], keys: Sequence[str],
                 times: Mapping[str, str]):
        self.name, self.times, self.features = name, times, list(features)
        self._rows, self._table = rows, table
        named = dict.fromkeys([*keys, *times.values(), *(name for one in features for name in one.columns)])
        self._every = table.features is None  # columns without a use become features
        self._others = [one for one in rows.names if one not in named] if self._every else []
        self._odd: dict[str, str] = {}  # {column that becomes no feature: why}
        rows.allow_missing([name for one in table.foreign_keys for name in one.columns])
        rows.read_times(list(times.values()))
        self._likes: dict[str, Any] = {}  # {column of a key that is text: the type of which its values are}
        self.types = self._types_of(list(named), keys)
        for feature in features:
            for column in feature.columns if feature.role in ("features", "masks") else ():
                odd = rows.odd(column)
                if odd and _columns.is_text(self.types[column]):
                    raise ValueError(f"{odd}, which has another type than the rows before: correct it, or declare the "
                                     "column in categories=[…]")
        self.of_nodes = list(dict.fromkeys([*table.key, *times.values()]))
        self._nulls: set[str] = set()
        self._unit: Optional[str] = None

    def _types_of(self, named: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
        if self._rows.has_texts:
            return self._rows.used([*named, *self._others], keys)
        found = self._rows.used(named, keys)
        for column in self._others:
            try:
                found.update(self._rows.used([column], []))
            except TypeError as error:  # objects of several types
                self._odd[column] = str(error).rpartition(": ")[2]
        return found

    def kind_of_key(self, column: str) -> str:
        """integer, text, time or bool."""
        kind = self.type_of_key(column)
        return "bool" if arrow().types.is_boolean(kind) else _columns.kind_of_ids(kind)

    def has_type(self, column: str) -> bool:
        """False for a column without values, which may be of any type."""
        types, kind = arrow().types, self.types[column]
        kind = kind.value_type if types.is_dictionary(kind) else kind  # of nulls: empty categories of pandas
        return not types.is_null(kind) and self._rows.has_values(column)

    def make_like(self, column: str, other: Columns, like: str) -> None:
        """Reads a column of a key, whose type is a guess, as the kind of the column `like` of another table. Raises
        TypeError for a column that has a type."""
        kind, found = other.kind_of_key(like), self._likes.get(column, self.types[column])
        if column in self._likes or not self._rows.is_untyped(column):
            wanted = "text" if kind == "text" else other.type_of_key(like)
            raise TypeError(f"{self._rows.what}: column {column} is {found}, and {other.name} {like} is {wanted}: a "
                            "key and what it refers to have one type")
        self.types[column] = arrow().string()
        if kind != "text":
            self._likes[column] = other.type_of_key(like)

    def type_of_key(self, column: str) -> Any:
        return self._likes.get(column, self.types[column])

    # --- Rows. ---

    def read(self, columns: Sequence[str]) -> Iterator[tuple[Where, Any]]:
        """Batches of these columns, filled in. Without columns, those of one, whose number of rows counts."""
        if not self._rows.names:
            raise ValueError(f"{self._rows.what}: it has no columns")
        used = list(columns) or [next((one for one in self._rows.names if one in self.types), self._rows.names[0])]
        types = {name: self.types[name] if name in self.types else arrow().string() if self._rows.has_texts else
                 self._rows.used([name], [])[name] for name in used}
        filled = [name for name in used if name in self._table.fill]
        for where, batch in self._rows.read(types):
            for name in filled:
                batch = _replaced(batch, name, self._filled(name, batch.column(name)))
            yield where, batch

    def _filled(self, name: str, column: Any) -> Any:
        pa = arrow()
        column, given = _columns.plain(column), self._table.fill[name]
        try:
            fill = _filler(given, column.type)
            if pa.types.is_floating(column.type):
                column = pa.compute.if_else(pa.compute.is_nan(column), pa.scalar(None, column.type), column)
            return pa.compute.fill_null(column, fill)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError,
                OverflowError):
            raise ValueError(f"{self._rows.what}: fill: column {name} is {column.type}, which {given!r} is "
                             "not") from None

    def rows_with(self, batch: Any, key: Sequence[str]) -> np.ndarray:
        """The rows of a batch that have a value in each of these columns."""
        there = np.ones(batch.num_rows, np.bool_)
        for name in key:
            there &= _columns.present(batch.column(name))
        return np.flatnonzero(there)

    def keys(self, batch: Any, key: Sequence[str], where: Where, rows: Optional[np.ndarray] = None) -> Ids:
        """The ids of the keys of these rows, none of which is missing. rows: None: all."""
        columns = [self._key(batch.column(name), name, where) for name in key]
        if rows is not None and len(rows) < batch.num_rows:
            columns = [_columns.taken(column, rows) for column in columns]
            return self._ids(columns, key, lambda row: where(int(rows[row])))
        return self._ids(columns, key, where)

    def _key(self, column: Any, name: str, where: Where) -> Any:
        """A column of a key; texts as the times or bools that the other column of the key has."""
        column, kind = _columns.plain(column), self._likes.get(name)
        return column if kind is None else _columns.of_texts(column, kind, name, where)

    def _ids(self, columns: Sequence[Any], key: Sequence[str], where: Where) -> Ids:
        pa = arrow()
        columns = [column.cast(pa.string()) if pa.types.is_boolean(column.type) else column for column in columns]
        columns = [_columns.plain_ids(column, name, where) for name, column in zip(key, columns)]
        parts = [_columns.ids(column, name, where) for name, column in zip(key, columns)]
        if len(parts) == 1:
            return parts[0]
        for column, name in zip(columns, key):
            _columns.refuse_bytes(column, name, where)
        return _joined_ids(parts, columns)

    # --- Times. ---

    def unit_of(self, feature: str) -> Optional[str]:
        """The unit of a column of times; None: plain numbers. Raises TypeError for a column of another type."""
        column, types = self.times[feature], arrow().types
        kind = self.types[column]
        if _columns.is_time(kind):
            return _columns.time_unit(kind)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind):  # pandas: integers, some missing
            return None
        raise TypeError(f"{self._rows.what}: column {column}: times are integers, timestamps or dates, not {kind}")

    def times_of(self, feature: str, batch: Any, where: Where) -> np.ndarray:
        """The times of a batch in the common unit. A missing end is the last time."""
        name = self.times[feature]
        column = _columns.plain(batch.column(name))
        if feature != END:
            _columns.refuse_missing(column, name, where, "pass fill={…}")
        rows = np.flatnonzero(_columns.present(column))
        found = np.full(len(column), _LAST, np.int64)
        if len(rows):
            found[rows] = self._numbers(_columns.taken(column, rows), name, lambda row: where(int(rows[row])))
        return found if self._unit is None else found.view(f"<M8[{self._unit}]")

    def _numbers(self, column: Any, name: str, where: Where) -> np.ndarray:
        if _columns.is_time(column.type):
            assert self._unit is not None
            return _columns.in_unit(column, self._unit, name, where, "pass another unit=…")
        values = _columns.in_numpy(column)
        if values.dtype.kind == "f":
            return _rows.whole(values, lambda row: f"{where(row)}: column {name}", "times")
        return narrow.exactly(values, np.int64, lambda row, one: ValueError(
            f"{where(row)}: column {name} is {one}: times are below 2^63"))

    # --- Features. ---

    def settle_features(self, unit: Optional[str], timed: bool) -> None:
        """Decides on the features. unit: of all times. timed: a table of the database has times."""
        self._unit = unit
        if self._every:
            self.features += self._made_of_others()
        taken = [*self.times, *(one.name for one in self.features),
                 *(f"{one.name}.names" for one in self.features if one.role == "categories")]
        twice = next((name for name in taken if taken.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{self._rows.what}: two features have the name {twice!r}")
        reserved = next((one.name for one in self.features if one.name in (TIME, END)), None) if timed else None
        if self._table.key and any(one.name == ORIGINAL for one in self.features):
            raise ValueError(f"{self._rows.what}: the feature {ORIGINAL!r} has the primary keys: name the column's "
                             "otherwise: features={…}")
        if reserved is not None:
            raise ValueError(f"{self._rows.what}: the feature {reserved!r} would count as times of the rows: name the "
                             f"column in {reserved}=…, or the feature otherwise: features={{…}}")
        doubtful = dict.fromkeys(name for one in self.features if one.missing for name in one.columns
                                 if self._may_hide_nulls(name))
        self._nulls |= self._with_nulls(list(doubtful))
        used = [name for one in self.features for name in one.columns]
        self.of_nodes = list(dict.fromkeys([*self.of_nodes, *used]))
        if self._odd:
            _log.warning("%s: columns that become no features: %s", self._rows.what,
                         ", ".join(f"{name} ({why})" for name, why in self._odd.items()))

    def _may_hide_nulls(self, name: str) -> bool:
        """Whether nulls in the column change its type."""
        types, kind = arrow().types, self.types[name]
        return name not in self._table.fill and bool(types.is_integer(kind) or types.is_boolean(kind))

    def _with_nulls(self, names: Sequence[str]) -> set[str]:
        names = [name for name in names if not self._rows.has_no_nulls(name)]
        found: set[str] = set()
        for _, batch in self.read(names) if names else ():
            found.update(name for name in names if batch.column(name).null_count)
        return found

    def _made_of_others(self) -> list[Feature]:
        """Features of the columns that no argument names."""
        roles = {name: self._role(self.types[name]) for name in self._others if name not in self._odd}
        nulls = self._with_nulls([name for name, role in roles.items() if role == "time"
                                  and name not in self._table.fill])
        lists = self._uneven([name for name, role in roles.items() if role == "list"])
        made = []
        for name, role in roles.items():
            if role is None:
                self._odd[name] = f"{self.types[name]}"
            elif not is_storable(f"{name}.names" if role == "categories" else name) or (
                    name == ORIGINAL and self._table.key):
                self._odd[name] = "features cannot have this name: give one with features={…}"
            elif name in nulls:
                self._odd[name] = "times, some of which are missing: fill them in with fill={…}"
            elif name in lists:
                self._odd[name] = lists[name]
            else:
                role = {"time": "features", "list": "features"}.get(role, role)
                made.append(Feature(role, name, [name], missing=True))
        return made

    @staticmethod
    def _role(kind: Any) -> Optional[str]:
        """How a column without a use becomes a feature; None: not."""
        types = arrow().types
        if types.is_dictionary(kind):
            inner = kind.value_type
            return "categories" if _columns.is_text(inner) or types.is_integer(inner) else None
        if _columns.is_text(kind):
            return "text"
        if _columns.is_list(kind):
            inner = kind.value_type
            return "list" if types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner) else None
        if _columns.is_time(kind):
            return "time"
        return "features" if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) else None

    def _uneven(self, names: Sequence[str]) -> dict[str, str]:
        """{column of lists that are no rows: why}."""
        found: dict[str, str] = {}
        widths: dict[str, int] = {}
        for _, batch in self.read(names) if names else ():
            for name in names:
                column = _columns.plain(batch.column(name))
                lengths = _columns.in_numpy(arrow().compute.list_value_length(column).drop_null())
                if column.null_count or (len(lengths) and column.flatten().null_count):
                    found.setdefault(name, "lists, in which values are missing")
                elif len(lengths) and (lengths != widths.setdefault(name, int(lengths[0]))).any():
                    found.setdefault(name, "lists of several lengths")
        empty = {name: "lists without values" for name in names
                 if not widths.get(name, getattr(self.types[name], "list_size", 0))}
        return {**empty, **found}

    def as_features(self, batch: Any) -> Any:
        """The batch, with columns of the types that the features have."""
        pa = arrow()
        for one in self.features:
            for name in one.columns if one.missing else ():
                column = batch.column(name)
                if name in self._nulls and one.role == "features":
                    batch = _replaced(batch, name, self._as_floats(name, column))
                elif one.role == "text" and column.null_count:
                    column = _columns.plain(column)
                    batch = _replaced(batch, name, pa.compute.fill_null(column, pa.scalar("", column.type)))
        return batch

    def _as_floats(self, name: str, column: Any) -> Any:
        pa = arrow()
        column = _columns.plain(column)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if pa.types.is_integer(column.type) and not narrow.are_exact(
                _columns.in_numpy(column.drop_null()), np.float64).all():
            raise ValueError(f"{self._rows.what}: column {name} has missing values, and integers that float64 does not "
                             "hold: pass fill={…}")
        return column.cast(pa.float64(), safe=False)


def _filler(given: Any, kind: Any) -> Any:
    """A value of Python, or the text of a time, as one of a column of a type. Raises what Arrow raises."""
    pa, made = arrow(), moment(given)
    if not _columns.is_time(kind) or isinstance(given, int):
        return pa.scalar(given, kind)
    if made is None and not isinstance(given, str):
        raise TypeError(f"{given!r} is no time")
    times = pa.array(np.array([made])) if made is not None else _columns.of_texts(
        pa.array([given]), kind, "", lambda row: "fill")
    times = times.cast(pa.timestamp(getattr(times.type, "unit", "s")))  # in UTC, as all times
    found = times.cast(kind)
    if not found.cast(times.type).equals(times):
        raise pa.ArrowInvalid(f"{given} is not exact as {kind}")
    return found[0]


def _replaced(batch: Any, name: str, column: Any) -> Any:
    place = batch.schema.get_field_index(name)
    arrays = [column if at == place else batch.column(at) for at in range(batch.num_columns)]
    return arrow().RecordBatch.from_arrays(arrays, names=batch.schema.names)


def common_unit(tables: Iterable[Columns], wanted: Optional[str]) -> Optional[str]:
    """The unit of all times: the wanted one, else the finest; None: they are plain numbers. Raises ValueError if some
    are plain numbers."""
    found: dict[Optional[str], str] = {}
    for table in tables:
        for feature, column in table.times.items():
            if table.has_type(column):
                found.setdefault(table.unit_of(feature), f"{column} of table {table.name}")
    if None in found and (wanted is not None or len(found) > 1):
        other = next((said for unit, said in found.items() if unit is not None), f"unit={wanted!r}")
        raise ValueError(f"times: {found[None]} is plain numbers, which have no unit, and {other} has one: the "
                         "times of a graph have one unit")
    units = [unit for unit in found if unit is not None]
    if not units:
        return None
    return wanted or min(units, key=lambda unit: _columns.NANOSECONDS[unit])
