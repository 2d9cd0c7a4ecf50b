"""Columns of Arrow as NumPy rows: ids, features, labels, masks and times.

A value that is missing (null, or NaN) is an error that names its row. No value is rounded or cut: what does not fit is
an error too (narrow.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphwire._base.keys import moment_texts
from graphwire._files import narrow
from graphwire._files import rows as _rows
from graphwire._files.numbering import Ids, Texts

Where = Callable[[int], str]  # the place of a row, for errors: "papers.csv, row 7"

# What says that a number is missing, in any case.
_MISSING = ("", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a", "\\n", "nat")
_ZONE = ":[0-9.]+ ?(Z|[+-][0-9:]+)$"  # ends a time in a zone
_UNIT_NAMES = {"D": "days", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # of each unit of times

_DTYPES = {**{f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
           "bool": np.dtype(np.bool_), "halffloat": np.dtype(np.float16), "float": np.dtype(np.float32),
           "double": np.dtype(np.float64)}  # {type of Arrow: that of NumPy}
_SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test",
           "": "", "none": ""}


def arrow() -> Any:
    """The module pyarrow. Raises ModuleNotFoundError, which says what to install."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise ModuleNotFoundError('tables need pyarrow, which is not installed: "pip install pyarrow"',
                                  name="pyarrow") from None
    if not hasattr(pyarrow.RecordBatchReader, "from_stream"):
        raise ModuleNotFoundError(f'tables need pyarrow 15, and {pyarrow.__version__} is installed: "pip install '
                                  '--upgrade pyarrow"', name="pyarrow")
    return pyarrow


def is_text(kind: Any) -> bool:
    types = arrow().types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return str(kind) in ("string_view", "binary_view", "extension<arrow.uuid>") or any(
        check(kind) for check in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def plain(column: Any) -> Any:
    """The column without dictionaries, chunks and views."""
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        values = values.cast(pa.large_string()) if str(values.type) == "string_view" else values
        column = pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    if str(column.type) == "extension<arrow.uuid>":
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        column = pa.array(texts, pa.string())
    elif str(column.type) in ("string_view", "binary_view"):
        column = column.cast(pa.large_string() if str(column.type) == "string_view" else pa.large_binary())
    return column


def _bits(buffer: Any, column: Any) -> np.ndarray:
    """The bits of a buffer that belong to the rows of a column, bool [rows]."""
    bits = np.frombuffer(buffer, np.uint8)[column.offset // 8:(column.offset + len(column) + 7) // 8]
    start = column.offset % 8
    return np.unpackbits(bits, bitorder="little")[start:start + len(column)].view(np.bool_)


def in_numpy(column: Any) -> np.ndarray:
    """The values of a column as Arrow's to_numpy() gives them. Numbers need no more than the column's buffers, and
    to_numpy() imports pandas, if it is installed, which takes longer than to read a small table."""
    dtype = _DTYPES.get(str(column.type))
    if dtype is None or not len(column) or (column.null_count and dtype.kind != "f"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    present, values = column.buffers()
    if dtype == np.bool_:
        return _bits(values, column)
    found = np.frombuffer(values, dtype, len(column), column.offset * dtype.itemsize)
    if column.null_count:
        found = np.where(_bits(present, column), found, dtype.type(np.nan))
    return found


def taken(column: Any, rows: np.ndarray) -> Any:
    """These rows of a column, int64 and ascending, each once. Arrow would import pandas to take rows of NumPy."""
    if len(rows) == len(column):
        return column
    pa = arrow()
    return column.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)]))


def refuse_missing(column: Any, name: str, where: Where, advice: str = "fill it in") -> None:
    pa = arrow()
    if not column.null_count and not pa.types.is_floating(column.type):
        return
    missing = column.is_null(nan_is_null=pa.types.is_floating(column.type))
    row = pa.compute.index(missing, True).as_py()
    if row >= 0:
        raise ValueError(f"{where(row)}: column {name} is missing (null or NaN): {advice}, or leave out the row")


def present(column: Any) -> np.ndarray:
    """Whether each value is there, bool [rows]: neither null nor NaN."""
    column = plain(column)
    missing = column.is_null(nan_is_null=arrow().types.is_floating(column.type))
    return ~in_numpy(missing)


def refuse_bytes(column: Any, name: str, where: Where) -> None:
    """Raises ValueError for the first value of bytes that are no text in UTF-8."""
    pa = arrow()
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return
    for row, value in enumerate(column.to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            raise ValueError(f"{where(row)}: column {name} is {value!r:.60}, which is no text in UTF-8") from None


def _texts(column: Any) -> Texts:
    pa = arrow()
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    kind = np.int64 if wide else np.int32
    found = np.frombuffer(offsets or b"", kind)[column.offset:column.offset + len(column) + 1]
    return Texts(found if len(found) else np.zeros(1, kind),
                 np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8))


def kind_of_ids(kind: Any) -> str:
    """text, integer or time: ids of one kind can be equal. Types that are no ids count as integers."""
    kind = kind.value_type if arrow().types.is_dictionary(kind) else kind
    return "text" if is_text(kind) else "time" if is_time(kind) else "integer"


def plain_ids(column: Any, name: str, where: Where) -> Any:
    """Ids as texts and numbers, by the rules of graphwire/_base/keys.py. Raises ValueError for a missing id, and for a
    decimal that is no integer of 64 bits."""
    pa = arrow()
    column = plain(column)
    refuse_missing(column, name, where)
    if is_time(column.type):
        units, unit = _since_1970(column)
        return pa.array(moment_texts(np.ascontiguousarray(units).view(f"<M8[{unit}]")), pa.large_string())
    if not pa.types.is_decimal(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of decimal256 also for values that fit
        values = column.to_pylist()
    for row, value in enumerate(values):
        if value != int(value) or not -2**63 <= value < 2**63:
            raise ValueError(f"{where(row)}: column {name} is {value}: ids of {column.type} are whole numbers of 64 "
                             "bits: cast the column to text")
    return pa.array(map(int, values), pa.int64())


def _cast_texts(column: Any, kind: Any, unit: str) -> Any:
    """Texts as bools, or as times in UTC of a unit."""
    pa = arrow()
    if pa.types.is_boolean(kind):
        return column.cast(kind)
    zoned, none = pa.compute.match_substring_regex(column, _ZONE), pa.scalar(None, column.type)
    plain_times = pa.compute.if_else(zoned, none, column).cast(pa.timestamp(unit))
    return pa.compute.coalesce(plain_times, pa.compute.if_else(zoned, column, none).cast(
        pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit)))


def of_texts(column: Any, kind: Any, name: str, where: Where) -> Any:
    """Texts as times or as bools, as `kind` is; null stays null. Raises ValueError for another text."""
    row = -1
    for unit in ("us", "ns"):
        try:
            return _cast_texts(column, kind, unit)
        except arrow().ArrowInvalid:
            row = max(row, next(row for row in range(len(column)) if not _has_form(column[row:row + 1], kind, unit)))
    raise ValueError(f"{where(row)}: column {name} is {column[row].as_py()!r}, and the other column of the key is "
                     f"{kind}")


def _has_form(column: Any, kind: Any, unit: str) -> bool:
    try:
        _cast_texts(column, kind, unit)
    except arrow().ArrowInvalid:
        return False
    return True


def ids(column: Any, name: str, where: Where) -> Ids:
    """Ids: int64 [rows], or texts. Floats and decimals that are whole numbers are integers; dates and timestamps are
    texts. Raises TypeError for other types, ValueError for a missing id, for another float and for one of 2^63 or
    more."""
    pa = arrow()
    column = plain_ids(column, name, where)
    if is_text(column.type):
        return _texts(column)
    if pa.types.is_null(column.type):  # without rows; a row would be missing
        return np.zeros(0, np.int64)
    if pa.types.is_floating(column.type):
        return _rows.whole(in_numpy(column), lambda row: f"{where(row)}: column {name}")
    if not pa.types.is_integer(column.type):
        raise TypeError(f"{where(0)}: column {name}: ids are integers or text, not {column.type}: cast the column")
    return narrow.exactly(in_numpy(column), np.int64,
                          _beyond(name, where, "ids", ": cast the column to text"))


def _beyond(name: str, where: Where, what: str, advice: str = "") -> narrow.Error:
    """The error for an integer beyond int64."""
    return lambda row, value: ValueError(f"{where(row)}: column {name} is {value}: {what} are below 2^63{advice}")


def joined(parts: Mapping[str, np.ndarray], where: Where) -> np.ndarray:
    """Columns by their names, side by side: [rows, columns], in the type that NumPy joins them in. Raises ValueError
    for a value that this type does not hold, TypeError for times."""
    for name, part in parts.items():
        if part.dtype.kind == "M":
            raise TypeError(f"{where(0)}: column {name} is a time: make it a feature of its own")

    def error(name: str) -> narrow.Error:
        return lambda row, value: ValueError(
            f"{where(row)}: column {name} is {value}, which the type of the joined columns {', '.join(parts)} does not "
            "hold: make it a feature of its own")

    return narrow.joined(list(parts.values()), [error(name) for name in parts])


def _flat(column: Any, name: str, where: Where, missing: bool) -> np.ndarray:
    """Lists of one length as [rows, length]."""
    pa = arrow()
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
    else:
        lengths = in_numpy(column.value_lengths())
        width = int(lengths[0]) if len(lengths) else 0
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            raise ValueError(f"{where(row)}: column {name} is a list of {lengths[row]}, but the first row's has "
                             f"{width}: the lists of a feature have one length")
    values = column.flatten()
    if len(column) and pa.types.is_null(values.type):
        raise TypeError(f"{where(0)}: column {name} is {column.type}: cast it to lists of numbers")
    inner = rows(values, name, lambda row: where(row // max(width, 1)), missing)
    return inner.reshape(len(column), width, *inner.shape[1:])


def is_list(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _numbers(column: Any, name: str, where: Where, missing: bool = False) -> np.ndarray:
    """rows() without times."""
    pa = arrow()
    column = plain(column)
    if not (missing and pa.types.is_floating(column.type)):
        refuse_missing(column, name, where)
    if is_list(column.type):
        return _flat(column, name, where, missing)
    if pa.types.is_null(column.type):  # without rows; a row would be missing
        return np.zeros(0)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        return in_numpy(column)
    advice = ("declare it in text=[…] or categories=[…]" if is_text(column.type) else
              "name it in features=[…] or time=…, or cast it to integers" if pa.types.is_temporal(column.type) else
              "cast it to a number")
    raise TypeError(f"{where(0)}: column {name} is {column.type}: {advice}")


def _since_1970(column: Any) -> tuple[np.ndarray, str]:
    """(int64 [rows], their unit) of timestamps and dates, UTC."""
    pa = arrow()
    days = pa.types.is_date32(column.type)
    units = in_numpy((column.cast(pa.int32()) if days else column).cast(pa.int64()))
    return units, time_unit(column.type)


def is_time(kind: Any) -> bool:
    return bool(arrow().types.is_timestamp(kind) or arrow().types.is_date(kind))


def time_unit(kind: Any) -> str:
    """The unit of a type of timestamps or dates."""
    types = arrow().types
    return "D" if types.is_date32(kind) else "ms" if types.is_date64(kind) else str(kind.unit)


def rows(column: Any, name: str, where: Where, missing: bool = False) -> np.ndarray:
    """Numbers, or lists of numbers of one length: [rows] or [rows, length, …], in the column's own type. Timestamps and
    dates as datetime64 in their own unit. missing: floats may be missing, as NaN. Raises TypeError and ValueError."""
    column = plain(column)
    if not is_time(column.type):
        return _numbers(column, name, where, missing)
    refuse_missing(column, name, where)
    units, unit = _since_1970(column)
    return _rows.times(np.ascontiguousarray(units).view(f"<M8[{unit}]"), lambda row: f"{where(row)}: column {name}")


def labels(column: Any, name: str, where: Where) -> np.ndarray:
    """Labels that are numbers: integers as int64, floats in their own type, [rows] or [rows, length, …]. Raises
    ValueError for an integer beyond int64, and the errors of rows()."""
    found = _numbers(column, name, where)
    return found if found.dtype.kind == "f" else narrow.exactly(found, np.int64, _beyond(name, where, "labels"))


def text_faults(texts: Any, integers: bool, name: str, where: Where) -> dict[str, str]:
    """{column: an error text} for the first number in text that float64 does not hold; {} without one. texts: a column
    of strings, all of which are numbers or null. integers: all are of int64."""
    pa = arrow()
    compute = pa.compute
    values = texts.cast(pa.float64())
    if integers:
        doubtful = ~narrow.are_exact(in_numpy(texts.cast(pa.int64()).fill_null(0)), np.float64)
    else:
        sizes = compute.abs(values)
        small = compute.and_(compute.equal(sizes, 0.0), compute.match_substring_regex(texts, "^[^eE]*[1-9]"))
        either = compute.or_(compute.greater_equal(sizes, 2.0**53), small)
        doubtful = in_numpy(either.fill_null(False))
    for row in np.flatnonzero(doubtful).tolist():
        text = texts[row].as_py()
        fault = narrow.text_fault(text, values[row].as_py())
        if fault is not None:
            return {name: f"{where(row)}: column {name} is {text}, {fault}"}
    return {}


def missing_number(column: Any) -> int:
    """The first row of a column of text that says, among numbers, that a number is missing; -1 without one."""
    pa = arrow()
    texts = plain(column).cast(pa.large_string())
    words = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(texts))
    return int(pa.compute.index(pa.compute.is_in(words, value_set=pa.array(_MISSING, pa.large_string())), True).as_py())


def is_number(text: bytes) -> bool:
    """Whether a text is a number, and not one that is missing."""
    word = text.strip().lower()
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word and word.decode() not in _MISSING


def is_missing(text: bytes) -> bool:
    return text.decode("utf-8", "replace").strip().lower() in _MISSING


def in_unit(column: Any, wanted: str, name: str, where: Where, advice: str) -> np.ndarray:
    """Timestamps and dates, without a missing one, in a unit since 1970-01-01, int64. Raises ValueError, which ends in
    the advice, for one that does not fit."""
    units, unit = _since_1970(column)
    times = max(NANOSECONDS[unit] // NANOSECONDS[wanted], 1)
    divisor = max(NANOSECONDS[wanted] // NANOSECONDS[unit], 1)
    most = (2**63 - 1) // times
    wrong = (units > most) | (units < -most) | (units % divisor != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{where(row)}: column {name} is {units[row]} as {column.type}, which is no number of "
                         f"{_UNIT_NAMES[wanted]} in 64 bits: {advice}")
    return units * times if divisor == 1 else units // divisor


def times(column: Any, name: str, where: Where) -> np.ndarray:
    """Times [rows]: integers as they are, int64; timestamps and dates in microseconds since 1970-01-01, datetime64[us].
    Raises ValueError for one that 64 bits do not hold."""
    pa = arrow()
    column = plain(column)
    refuse_missing(column, name, where)
    if is_time(column.type):
        found = in_unit(column, "us", name, where, "name it in features=[…], which keep their unit, and in time= of "
                        "partition_graph")
        return np.ascontiguousarray(found).view("<M8[us]")
    if not pa.types.is_integer(column.type):
        raise TypeError(f"{where(0)}: column {name}: times are integers, timestamps or dates, not {column.type}: name "
                        "other numbers in features=[…], and in time= of partition_graph")
    return narrow.exactly(in_numpy(column), np.int64, _beyond(name, where, "times"))


def texts(column: Any, name: str, where: Where) -> Texts:
    """Text of a column that is declared as text."""
    column = plain(column)
    refuse_missing(column, name, where)
    if not is_text(column.type):
        raise TypeError(f"{where(0)}: column {name} is {column.type}, not text: name it in features=[…]")
    return _texts(column)


def _split_masks(column: Any, name: str, where: Where) -> dict[str, np.ndarray]:
    coded = column.dictionary_encode()
    codes = in_numpy(coded.indices.fill_null(len(coded.dictionary)))
    words = [str(word).strip().lower() for word in coded.dictionary.to_pylist()] + [""]
    for code, word in enumerate(words):
        if word not in _SPLITS and (codes == code).any():
            raise ValueError(f"{where(int(np.argmax(codes == code)))}: column {name} is {word!r}: a mask is a bool, or "
                             "0 or 1, or train, val, test or none, for each row")
    splits = np.array([_SPLITS[word] if word in _SPLITS else "" for word in words], "U5")[codes]
    return {f"{split}_mask": splits == split for split in ("train", "val", "test")}


def masks(column: Any, name: str, where: Where) -> dict[str, np.ndarray]:
    """Masks, {name: bool [rows]}: one of bools or of 0 and 1, or three of the words train, val (valid, validation) and
    test; a null, an empty word and "none" are in no mask. Raises ValueError for other values."""
    column = plain(column)
    if is_text(column.type):
        return _split_masks(column, name, where)
    values = _numbers(column, name, where)
    if values.ndim != 1:
        raise ValueError(f"{where(0)}: column {name}: a mask is one bool for each row")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{where(row)}: column {name} is {values[row]}: a mask is a bool, or 0 or 1, or train, val or "
                         "test, for each row")
    return {name: values.astype(np.bool_)}
