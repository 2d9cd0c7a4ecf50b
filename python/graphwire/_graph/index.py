"""Evaluates x[index] with torch's meaning, where the rows of x are remote.

    index -> RowIndex.ids, the rows to fetch -> the caller fetches them, [len(ids), …] -> RowIndex.of(rows)

The part of the index for the first dimension selects the rows to fetch. The rest of the index is applied to the fetched
rows. Raises IndexError for an index that would need more than this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks


def _is_plain(one: Any) -> bool:
    """Whether the index of a further dimension is a slice, an integer, None or an ellipsis. Arrays and masks are not
    plain: torch combines them with the array of row ids."""
    return one is None or one is Ellipsis or isinstance(one, slice) or (
        isinstance(one, (int, np.integer)) and not checks.is_bool(one))


def _is_all(one: Any) -> bool:
    return one is Ellipsis or (isinstance(one, slice) and one == slice(None))


class RowIndex:
    """One index. count: a RowsOf of the rows, so that a mask must be of their type; None: any mask of shape[0] rows.
    ids: the rows to fetch, int64; whole: the index selects whole rows; alone: the index selects one row by an integer,
    so the result lacks the first dimension."""

    __slots__ = ("_first", "_rest", "alone", "ids", "whole")

    def __init__(self, index: Any, shape: tuple[int, ...], count: int | None = None):
        first, self._rest = _split(index, shape)
        row = None if _arrays.is_byte(first) else checks.as_integer(first)
        self.alone = row is not None
        if row is not None:
            row += shape[0] if -shape[0] <= row < 0 else 0
            if not -2**63 <= row < 2**63:
                raise IndexError(f"row {row}: there are {shape[0]}")
            self.ids = np.array([row], np.int64)
        elif first is None or isinstance(first, bool):
            raise IndexError(f"{first} is not an index of rows, which is ids, a slice, or a mask of all {shape[0]}")
        else:
            self.ids = _arrays.ids_array(first, shape[0] if count is None else count, "rows")
        self.whole = all(map(_is_all, self._rest))
        self._first = first

    def at(self, ids: Any) -> Any:
        """This index with other rows: ids[i] instead of row i of `ids`."""
        return (int(ids[0]) if self.alone else ids, *self._rest)

    def of(self, rows: Any) -> Any:
        """Applies the rest of the index to the rows that were fetched by `ids`, [len(ids), …]."""
        if self.whole and not self.alone:
            return rows
        first: Any = 0
        if not self.alone:
            separate = isinstance(self._first, slice) or all(map(_is_plain, self._rest))
            first = slice(None) if separate else np.arange(len(self.ids))  # torch pairs the ids with the other arrays
        where = (first, *self._rest)
        return rows[where]


def _split(index: Any, shape: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Splits an index into the index of the first dimension, and the rest."""
    parts = index if isinstance(index, tuple) else (index,)
    named = sum(one is not None and one is not Ellipsis and not isinstance(one, bool) for one in parts)
    if sum(one is Ellipsis for one in parts) > 1:
        raise IndexError("an index of rows has at most one ellipsis")
    if named > len(shape):
        raise IndexError(f"{named} indices for rows of shape {list(shape)}: several rows are a list, x[[3, 2]]")
    if not parts:
        return slice(None), ()
    if parts[0] is not Ellipsis:
        return parts[0], parts[1:]
    if named < len(shape):
        return slice(None), parts  # the rest keeps the ellipsis, for the further dimensions that it covers
    return _split(parts[1:], shape)
