"""Converts rows that users hold, of NumPy, torch, pandas, polars, Arrow or lists, to NumPy arrays for files.

Numbers keep their type. bfloat16, which NumPy lacks, becomes two bytes without a type ("V2"); the program reads these
as bfloat16. Times keep their unit (datetime64 of days, s, ms, us or ns). Text becomes an array of objects (str or
bytes). Missing values and masked rows are errors: an array without them would look complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphwire._base.checks import is_missing
from graphwire._files import narrow

BFLOAT16 = np.dtype("V2")
_STORED = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "ps": "ns", "fs": "ns", "as": "ns"}  # for other units


def _of_torch(values: Any, what: str) -> np.ndarray:
    import torch

    values = values.detach().cpu()
    if values.layout != torch.strided:
        raise TypeError(f"{what}: sparse tensors have no rows: use .to_dense()")
    values = values.resolve_conj().resolve_neg()  # numpy() refuses views of this kind
    if not values.dim():
        raise _no_rows(values, what)
    if values.dtype == torch.bfloat16:
        return values.contiguous().view(torch.int16).numpy().view(BFLOAT16)
    try:
        return _real(values.numpy(), what)
    except TypeError as error:  # a dtype that NumPy lacks
        raise TypeError(f"{what}: rows of {values.dtype} cannot be stored: {error}") from error


def _no_rows(values: Any, what: str) -> TypeError:
    return TypeError(f"{what}: rows are an array or a list, not {values!r:.60}")


def _real(values: np.ndarray, what: str) -> np.ndarray:
    """Raises TypeError for complex numbers."""
    if values.dtype.kind == "c":
        raise TypeError(f"{what}: complex numbers cannot be stored: store their real and imaginary parts, as "
                        "torch.view_as_real gives them")
    return values


def _without_zone(values: Any) -> Any:
    """Times of pandas in a time zone, in UTC."""
    if getattr(getattr(values, "dtype", None), "tz", None) is None:
        return values
    utc = getattr(values, "dt", values).tz_convert("UTC")
    return getattr(utc, "dt", utc).tz_localize(None)


def times(found: np.ndarray, name: Callable[[int], str]) -> np.ndarray:
    """Times of datetime64 in a unit that graphs store: their own, or one that holds them exactly. name: the place of a
    row, for errors. Raises ValueError for NaT and for a time that does not fit; TypeError for times without a unit."""
    unit, step = np.datetime_data(found.dtype)
    if unit == "generic":
        raise TypeError(f"{name(0)}: times of datetime64 without a unit: give one, such as .astype('datetime64[us]')")
    made = found.astype(f"<M8[{_STORED.get(unit, unit)}]")
    back = made.astype(found.dtype)
    wrong = np.isnat(found) | (back != found) if len(found) and (step != 1 or unit in _STORED) else np.isnat(found)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(found), -1).any(axis=1)))
        value = found[row].reshape(-1)[int(np.argmax(wrong[row].reshape(-1)))]
        raise ValueError(f"{name(row)} is {value}: " + (
            "fill in what is missing, or leave out the row" if np.isnat(value) else
            f"datetime64[{_STORED.get(unit, unit)}] does not hold it"))
    return made


def _are_numbers(kinds: set[type]) -> bool:
    return all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds)


def _of_objects(values: np.ndarray, what: str) -> np.ndarray:
    """Objects of one kind as an array of numbers or of text."""
    flat = values.reshape(-1)
    missing = next((row for row, value in enumerate(flat) if is_missing(value)), None)
    if missing is not None and not all(isinstance(value, float) for value in flat):
        raise ValueError(f"{what}: row {missing // max(1, flat.size // max(1, len(values)))} is {flat[missing]!r}: "
                         "fill in what is missing, or leave out the row")
    kinds = {type(value) for value in flat}
    if kinds <= {str, np.str_} or kinds <= {bytes, np.bytes_}:
        return values
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return values.astype(np.bool_)
    if _are_numbers(kinds):
        return narrow.numbers_of(flat.tolist(), lambda place, value: ValueError(
            f"{what}: row {place // max(1, flat.size // max(1, len(values)))} is {value}, which no type holds that "
            "holds the other values")).reshape(values.shape)
    raise TypeError(f"{what}: rows are numbers or text, not {', '.join(sorted(kind.__name__ for kind in kinds))}")


def _unrounded(values: Any, found: np.ndarray, what: str) -> np.ndarray:
    """Numbers of a list or of a frame, which NumPy has made float64 of, and so may have rounded integers. Raises
    ValueError for an integer that float64 does not hold."""
    columns = values.get_columns() if hasattr(values, "get_columns") else [
        column for _, column in values.items()] if hasattr(values, "iloc") else getattr(values, "columns", None)
    if columns is not None and found.ndim == 2:
        def error(row: int, value: Any) -> ValueError:
            return ValueError(f"{what}: row {row} is {value}, which no type holds that holds the other columns")

        return narrow.joined([array(column, what) for column in columns], [error] * len(columns))
    given = np.array(values, object)
    return _of_objects(given, what) if _are_numbers({type(one) for one in given.reshape(-1)}) else found


def is_text(values: np.ndarray) -> bool:
    return values.dtype.kind == "O"


def array(values: Any, what: str) -> np.ndarray:
    """The values as an array, in the byte order of this machine. what: names them in errors. Raises TypeError for what
    is neither numbers nor text, ValueError for missing values."""
    if hasattr(values, "detach"):
        return _of_torch(values, what)
    if hasattr(values, "tocoo"):
        raise TypeError(f"{what}: a sparse matrix has no rows of one length: use .toarray()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{what}: a masked array has rows without a value: use .filled(…)")
    values = _without_zone(values)
    try:
        found = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{what}: {error}") from error
    if not found.ndim:
        raise _no_rows(values, what)
    if str(found.dtype) == "bfloat16":  # of ml_dtypes
        return found.view(BFLOAT16)
    if found.dtype.kind in "UTS":  # of a list, NumPy makes text of numbers too
        found = found.astype(object) if hasattr(values, "dtype") else np.array(values, object)
    if found.dtype == np.float64 and not hasattr(values, "dtype") and np.any(np.abs(found) >= 2**53):
        return _unrounded(values, found, what)
    if found.dtype.kind == "O":
        return _of_objects(found, what) if found.size else found
    if found.dtype.kind == "M":
        return times(found, lambda row: f"{what}: row {row}")
    if found.dtype.kind == "m":
        raise TypeError(f"{what}: durations of dtype {found.dtype}: convert them to integers, such as .astype('int64')")
    return _real(found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("=")), what)


def whole(values: np.ndarray, name: Callable[[int], str], what: str = "ids") -> np.ndarray:
    """Floats that stand for whole numbers as int64; pandas makes floats of integers if a value is missing. name: the
    place of a row, and what: the word for the values, in errors. Raises ValueError for another value, and for large
    ones, whose digits may be lost."""
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    wrong = ~((np.abs(values) < limit) & (np.trunc(values) == values))
    if wrong.any():
        row = int(np.argmax(wrong))
        value = float(values[row])
        why = ("missing (NaN): fill it in, or leave out the row" if value != value else
               f"{value!r}: {what} of {values.dtype} are whole numbers below {limit:.0f}")
        raise ValueError(f"{name(row)} is {why}")
    return values.astype(np.int64)


def ids(values: Any, what: str, floats: bool = False) -> np.ndarray:
    """Ids of one column, int64 or text. floats: whole numbers may be floats, as in tables. Raises TypeError for other
    types; ValueError for a negative id, and for one of 2^63 - 1 or more."""
    found = array(values, what)
    if floats and found.dtype.kind == "f":
        found = whole(found, lambda row: f"{what}: row {row}")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"{what}: ids are one column, not an array of shape {list(found.shape)}")
    if is_text(found) or (found.size and found.dtype.kind not in "iu"):
        if is_text(found):
            return found
        raise TypeError(f"{what}: ids are integers or text, not {found.dtype}")
    if found.size and int(found.min()) < 0:
        raise ValueError(f"{what}: row {int(np.argmin(found))} is {int(found.min())}: ids are not negative")
    if found.size and int(found.max()) >= 2**63 - 1:
        raise ValueError(f"{what}: row {int(np.argmax(found))} is {int(found.max())}: ids are below 2^63 - 1")
    return found.astype(np.int64)


def strings(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Text as the partition format has it: offsets, int64 [rows + 1], and bytes, uint8, in UTF-8."""
    encoded = [value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
               for value in values.tolist()]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(encoded), np.uint8)
