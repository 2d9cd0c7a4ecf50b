"""Narrows numbers to another type: exactly, or with an error that names the value. `graphwire import` follows the same
rules for text (tools/import/number.h); the table in docs/PYTHON.md, "Numbers of tables", lists them.

    exactly(rows, np.int64, error) ─▶ rows of that type; raise error(row, value) for the first value that it changes

Integers and floats are exact in an integer type; integers are exact in a floating-point type. Floats are rounded to
nearest in a smaller floating-point type, but none becomes infinite, and only 0 becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Optional

import numpy as np

Error = Callable[[int, Any], Exception]  # of a row, and the value there


def _changed(rows: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Which values the type does not hold, bools of the shape of the rows."""
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        low, high = int(ends.min), int(ends.max)
        if rows.dtype.kind == "f":
            rows = rows if rows.dtype.itemsize > 8 else rows.astype(np.float64)  # float16 lacks the ends
            return ~((rows == np.trunc(rows)) & (rows >= float(low)) & (rows < float(high + 1)))
        return (rows < low) | (rows > high)
    if rows.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            found = rows.astype(kind)
        return (np.isfinite(rows) & ~np.isfinite(found)) | ((rows != 0) & (found == 0))
    size = rows.astype(np.uint64)
    size = np.where(rows < 0, np.uint64(0) - size, size)
    step = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))  # the power of two that divides the number
    ends = np.finfo(kind)
    return (size // step >= np.uint64(2) ** np.uint64(ends.nmant + 1)) | (size > float(ends.max))


def exactly(rows: np.ndarray, kind: Any, error: Error) -> np.ndarray:
    """The rows, [rows, …], as another type. Raises error(row, value) for the first value that the type does not hold.
    """
    kind = np.dtype(kind)
    rounds = rows.dtype.kind in "iu" and kind.kind == "f"  # NumPy counts int64 to float64 as safe
    if rows.dtype.kind == "b" or (np.can_cast(rows.dtype, kind, "safe") and not rounds):
        return rows.astype(kind, copy=False)
    changed = _changed(rows, kind)
    if changed.any():
        place = int(np.argmax(changed.reshape(len(rows), -1).any(axis=1)))
        row = rows[place].reshape(-1)
        raise error(place, row[int(np.argmax(changed[place].reshape(-1)))].item())
    return rows.astype(kind)


def joined(parts: Sequence[np.ndarray], errors: Sequence[Error]) -> np.ndarray:
    """The columns of several arrays side by side, in the type that NumPy joins them in. errors: one of each part."""
    kind = np.result_type(*parts)
    return np.concatenate([exactly(part, kind, error).reshape(len(part), math.prod(part.shape[1:]))
                           for part, error in zip(parts, errors)], axis=1)


def are_exact(rows: np.ndarray, kind: Any) -> np.ndarray:
    """Which values the type holds, bools of the shape of the rows."""
    return np.ones(rows.shape, np.bool_) if rows.dtype.kind == "b" else ~_changed(rows, np.dtype(kind))


def numbers_of(values: Sequence[Any], error: Error) -> np.ndarray:
    """Integers and floats of Python or NumPy as int64, uint64 or float64, whichever holds all of them, [values]. Raises
    error(place, value)."""
    integers = [(place, int(value)) for place, value in enumerate(values)
                if not isinstance(value, (float, np.floating))]
    low, high = min((one for _, one in integers), default=0), max((one for _, one in integers), default=0)
    if len(integers) == len(values) and -2**63 <= low and high < (2**63 if low < 0 else 2**64):
        return np.array([one for _, one in integers], np.int64 if high < 2**63 else np.uint64)
    for place, one in integers:
        if abs(one) > 2**53 and (abs(one) >= 2**1024 or float(one) != one):
            raise error(place, one)
    return np.array([float(value) for value in values], np.float64)


def text_fault(text: str, value: float) -> Optional[str]:
    """Why a number in text is not this float64 that it was read as; None if it is, perhaps rounded."""
    digits = text.lower().partition("e")[0]
    if "inf" in digits or value != value:
        return None
    if value in (float("inf"), float("-inf")):
        return "too large: it would become inf in float64"
    if value == 0 and digits.strip("+-0."):
        return "too small: it would become 0 in float64"
    if abs(value) >= 2**53 and digits == text.lower() and Fraction(text) != Fraction(value):
        return "not exact in float64, which holds all whole numbers up to 2^53 only"
    return None
