"""Keys as texts and integers, which are the original ids of nodes.

Integers and texts are keys as they are. A date or a timestamp is the text of its moment in UTC, a bool the text true or
false, and a decimal that is whole an integer. A key of several columns is one text.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphwire._base import checks
from graphwire._base.times import moment

_WORDS = ("date", "timestamp", "bool", "decimal", "object", "category", "dictionary")  # in names of types
_STORED = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}  # units whose texts would be shorter


def key_text(values: Iterable[Any]) -> str:
    """The text of a key of several columns: a JSON array of texts and integers, without blanks. Two keys have one text
    only if they are equal. Raises TypeError for other values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def _moment_text(text: str) -> str:
    day, _, clock = text.partition("T")
    if not clock.strip("0:."):
        return day
    return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}"


def moment_texts(moments: np.ndarray) -> list[str]:
    """Times of datetime64 as texts: "2024-01-31" at midnight, else "2024-01-31 09:30:00.25", without zeros behind the
    last digit of a fraction. Equal times have one text, whatever their units."""
    unit = np.datetime_data(moments.dtype)[0]
    different, places = np.unique(moments.astype(f"M8[{_STORED.get(unit, unit)}]"), return_inverse=True)
    texts = [_moment_text(one) for one in np.datetime_as_string(different).tolist()]
    return [texts[place] for place in places.tolist()]


def _plain(value: Any, bools: bool) -> Any:
    if checks.is_missing(value):
        return None
    if checks.is_bool(value):
        return ("true" if value else "false") if bools else value
    if isinstance(value, decimal.Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else value
    found = moment(value)
    return value if found is None or found.dtype.kind != "M" else None if np.isnat(found) else moment_texts(
        np.array([found]))[0]


def _plain_items(items: Sequence[Any], bools: bool) -> Sequence[Any]:
    """The items; a new list if one of them is neither a text nor a number."""
    kinds = set(map(type, items))
    if all(issubclass(kind, (str, bytes, float, np.integer)) or kind in (int, type(None)) for kind in kinds):
        return items
    return [_plain(one, bools) for one in items]


def _array(column: Any) -> Any:
    """A column of pandas, polars or Arrow as an array; None where that is not possible."""
    if isinstance(column, np.ndarray):
        return column
    for given in ({"zero_copy_only": False}, {}):
        try:
            return np.asarray(column.to_numpy(**given))
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            continue
    return None


def plain_keys(column: Any, bools: bool = True) -> Any:
    """Keys of one column: a list of texts, integers and None, if the column has dates, timestamps, bools or decimals;
    else the column. Other values stay, for the errors of those that take keys. bools=False: bools stay too."""
    if isinstance(column, (list, tuple)):
        return _plain_items(column, bools)
    kind = str(getattr(column, "type", getattr(column, "dtype", ""))).lower()
    if not any(word in kind for word in _WORDS if bools or word != "bool") or getattr(column, "ndim", 1) != 1:
        return column
    array = None if hasattr(column, "detach") else _array(column)
    if array is not None and array.dtype.kind == "M":
        missing = np.isnat(array)
        texts = iter(moment_texts(array[~missing]))
        return [None if one else next(texts) for one in missing.tolist()]
    items = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist() if hasattr(
        column, "tolist") else list(column)
    found = _plain_items(items, bools)
    return column if found is items else found
