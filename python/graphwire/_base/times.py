"""Converts times, and the windows before them, to the int64 or float64 that C compares.

    numbers, datetime64, Timestamps -> plain (of one type, no value missing) -> in the column's unit -> int64 or float64
    times, window -> the first time of each window

Numbers are the column's: they are taken as they are. Dates and durations are converted to the column's unit, exactly or
not at all. Nothing is rounded, cut or guessed.

Errors begin with the argument's name. TypeError: values of another type. ValueError (InvalidError): a value that is
missing, too large or not exact, and a wrong length.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from graphwire._base import checks
from graphwire._base.arrays import host

Times = Any  # a number or a date, or an array, series, tensor or list of them
UNITS = ("D", "h", "m", "s", "ms", "us", "ns")  # of NumPy's datetime64

_FIRST, _LAST = -2**63, 2**63 - 1
_SECONDS = {"W": Fraction(7 * 86400), "D": Fraction(86400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
            **{f"{letter}s": Fraction(1, 1000**power) for power, letter in enumerate("munpfa", 1)}}


def _place(array: np.ndarray, at: int) -> str:
    return f" at position {at}" if array.ndim else ""


def _first(wrong: np.ndarray) -> int | None:
    """The position of the first True."""
    found = np.flatnonzero(wrong)
    return int(found[0]) if len(found) else None


def moment(value: Any) -> Any:
    """A date or duration of Python or pandas as NumPy's; None for other values. In a zone, a date is that of UTC."""
    for name in ("to_datetime64", "to_timedelta64"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, datetime.datetime):
        utc = value if value.tzinfo is None else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return np.datetime64(utc, "us")
    if isinstance(value, datetime.date):
        return np.datetime64(value, "D")
    if isinstance(value, datetime.timedelta):
        return np.timedelta64(value, "us")
    return value if isinstance(value, (np.datetime64, np.timedelta64)) else None


class _Argument:
    """Values as the caller gave them. what: the argument's name; form: what its values are."""

    def __init__(self, what: str, form: str):
        self.what, self.form = what, form

    def no(self, value: str) -> TypeError:
        return TypeError(f"{self.what}: {self.form}, not {value}")

    def _moment(self, value: Any, at: int) -> Any:
        found = moment(value)
        if found is not None:
            return found
        if type(value).__name__ in ("NAType", "NoneType"):
            raise checks.invalid(f"{self.what}: the value at position {at} is missing")
        raise self.no(f"{value!r:.60} at position {at}")

    def _moments(self, items: Sequence[Any]) -> np.ndarray:
        moments = [self._moment(one, at) for at, one in enumerate(items)]
        if len({one.dtype.kind for one in moments}) > 1:
            raise TypeError(f"{self.what}: dates or durations, not both")
        array = np.array(moments)
        at = _first(np.array([not (np.isnat(one) or found.astype(one.dtype) == one)
                              for one, found in zip(moments, array)]))
        if at is not None:
            raise checks.invalid(f"{self.what}: {moments[at]} at position {at} is too large for the unit of the others")
        return array

    def _items(self, items: Sequence[Any]) -> np.ndarray:
        """A list's elements as an array of one type, which holds them exactly."""
        items = [one.item() if hasattr(one, "detach") or (isinstance(one, np.ndarray) and not one.ndim) else one
                 for one in items]
        kinds = set(map(type, items))
        if not kinds <= {int, float}:
            for at, one in enumerate(items):
                if checks.is_bool(one) or isinstance(one, (str, bytes, complex)):
                    raise self.no(f"{one!r:.60} at position {at}")
            if not all(isinstance(one, (int, float, np.integer, np.floating)) for one in items):
                return self._moments(items)
        whole = [issubclass(kind, (int, np.integer)) for kind in kinds]
        if all(whole):
            for at, one in enumerate(items):
                if not _FIRST <= one <= _LAST:
                    raise checks.invalid(f"{self.what}: {one} at position {at} is no int64")
            return np.array(items, np.int64)
        array = np.array(items, np.float64)
        for at, one in enumerate(items if any(whole) else ()):
            if isinstance(one, (int, np.integer)) and int(array[at]) != int(one):
                raise checks.invalid(f"{self.what}: {one} at position {at} is not exact as a float64")
        return array

    def array(self, given: Times) -> np.ndarray:
        """An array of integers, floats, dates or durations, of one dimension or none, without a missing value."""
        if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
            raise checks.invalid(f"{self.what}: a masked array has places without a value")
        array = self._items(given) if isinstance(given, (list, tuple)) else host(given)
        if array.dtype.kind == "O":
            array = self._items(array.ravel().tolist()).reshape(array.shape)
        if array.dtype.kind not in "iufmM" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
            raise self.no("texts" if array.dtype.kind in "US" else array.dtype.name)
        if array.ndim > 1:
            raise checks.invalid(f"{self.what}: one dimension, not {array.ndim}")
        wrong, word = np.zeros(array.shape, np.bool_), "NaN"
        if array.dtype.kind == "f":
            wrong = np.isnan(array)
        elif array.dtype.kind in "mM":
            wrong, word = np.isnat(array), "NaT"
        elif array.dtype.kind == "u":
            wrong, word = array > np.uint64(_LAST), "above int64"
        at = _first(wrong)
        if at is not None:
            raise checks.invalid(f"{self.what}: the value{_place(array, at)} is {word}")
        return array


def _in_unit(what: str, array: np.ndarray, unit: str | None) -> np.ndarray:
    """Dates or durations as int64 numbers of a unit."""
    if unit is None:
        raise checks.invalid(f"{what}: not all times of the graph have a unit: give plain numbers")
    name, count = np.datetime_data(array.dtype)
    if name in ("Y", "M"):  # as dates only, which are exact days
        if array.dtype.kind == "m":
            raise checks.invalid(f"{what}: a duration of months has no fixed number of {unit}")
        at = _first(np.abs(array.view(np.int64)) > 2**53 // count)
        if at is not None:
            raise checks.invalid(f"{what}: {array.ravel()[at]}{_place(array, at)} is too large for int64 in {unit}")
        array = array.astype("datetime64[D]")
        name, count = "D", 1
    elif name == "generic":
        raise checks.invalid(f"{what}: a duration without a unit")
    whole = array.view(np.int64)
    factor = _SECONDS[name] * count / _SECONDS[unit]
    parts = min(factor.denominator, _LAST)
    at = _first(whole % parts != 0)
    if at is not None:
        raise checks.invalid(f"{what}: {array.ravel()[at]}{_place(array, at)} is no whole number of {unit}, "
                             "the unit of the graph's times")
    whole = whole // parts
    most = _LAST // factor.numerator
    at = _first((whole > most) | (whole < -most))
    if at is not None:
        raise checks.invalid(f"{what}: {array.ravel()[at]}{_place(array, at)} is too large for int64 in {unit}")
    return whole * np.int64(factor.numerator) if factor.numerator <= _LAST else whole


def numbers(what: str, given: Times, count: int | None, unit: str | None = None) -> np.ndarray:
    """Times as int64 or float64, [count].

    given: one number or date for all, or one for each. count: how many; None: as many as given, and at least one
        dimension.
    unit: of UNITS, the unit of the column that they are compared with; None: it has none, and dates are refused.
    """
    argument = _Argument(what, "numbers or dates")
    array = argument.array(given)
    if array.dtype.kind == "m":
        raise argument.no("durations")
    return _of_length(what, _in_unit(what, array, unit) if array.dtype.kind == "M" else array, count)


def _of_length(what: str, array: np.ndarray, count: int | None) -> np.ndarray:
    array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    if array.ndim == 0:
        return np.full(1 if count is None else count, array)
    if count is not None and len(array) != count:
        raise checks.invalid(f"{what}: {len(array)} for {count} seeds: give one for each, or one for all")
    return np.ascontiguousarray(array)


def as_real(what: str, array: np.ndarray) -> np.ndarray:
    """Whole numbers as float64, exactly. Raises ValueError for a number that float64 does not hold."""
    if array.dtype.kind == "f":
        return array
    real = array.astype(np.float64)
    at = _first((real >= 2.0**63) | (np.where(real >= 2.0**63, 0, real).astype(np.int64) != array))
    if at is not None:
        raise checks.invalid(f"{what}: {array[at]} at position {at} is not exact as a float64")
    return real


def begins(what: str, given: Times, until: np.ndarray, unit: str | None = None) -> np.ndarray:
    """The first time of each window: `until` minus the window, both ends included; of the type of `until`. A window
    that begins before every int64 begins at the first.

    given: a number or duration, 0 or more, for all or for each. Beside whole times it is a whole number, or infinite.
    """
    argument = _Argument(what, "a number or a duration")
    array = argument.array(given)
    if array.dtype.kind == "M":
        raise argument.no("a date")
    width = _of_length(what, _in_unit(what, array, unit) if array.dtype.kind == "m" else array, len(until))
    at = _first(width < 0)
    if at is not None:
        raise checks.invalid(f"{what} is 0 or more, not {width[at]}")
    if until.dtype.kind == "f":
        wide = as_real(what, width)
        return np.where(np.isinf(wide), -np.inf, until - np.where(np.isinf(wide), 0, wide))
    if width.dtype.kind == "f":
        at = _first((width != np.trunc(width)) & ~np.isinf(width))
        if at is not None:
            raise checks.invalid(f"{what}: the times are whole numbers, and {width[at]} is not")
        return np.array([max(_FIRST, time - int(one)) if np.isfinite(one) else _FIRST
                         for time, one in zip(until.tolist(), width.tolist())], np.int64)
    found = until - width
    return np.where(found > until, _FIRST, found)


def _bound(until: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """(the greatest whole, or real, number that is at most each of `until`; whether no such number exists). Whole and
    real numbers are so compared exactly."""
    none = np.isnan(until) if until.dtype.kind == "f" else np.zeros(until.shape, bool)
    if whole and until.dtype.kind == "f":
        none, above = ~(until >= _FIRST), until >= 2.0**63
        floor = np.floor(np.where(none | above, 0, until)).astype(np.int64)
        return np.where(above, _LAST, floor), none
    if not whole and until.dtype.kind != "f":
        real = until.astype(np.float64)
        above = (real >= 2.0**63) | (np.where(real >= 2.0**63, 0, real).astype(np.int64) > until)
        return np.where(above, np.nextafter(real, -np.inf), real), none
    return until, none


def counts_until(ascending: np.ndarray, until: np.ndarray) -> np.ndarray:
    """How many times are not later than each of `until`, [len(until)] int64. Both are integers or floats, which are
    compared exactly. ascending: without NaN, or with NaN at its end."""
    bound, none = _bound(until, ascending.dtype.kind != "f")
    return np.where(none, 0, np.searchsorted(ascending, bound, side="right"))


def not_later(times: np.ndarray, until: np.ndarray) -> np.ndarray:
    """Whether each time is at most its `until`, bools. Both are integers or floats, which are compared exactly; NaN is
    later than all."""
    bound, none = _bound(until, times.dtype.kind != "f")
    return np.asarray(~none & (times <= bound))
