"""Checks arguments: numbers, flags, and words of a fixed choice. Each error names the argument.

TypeError: the value is not a number (a bool, a text, a fraction where an integer is needed).
InvalidError, a ValueError: a number out of its range, or a word that is not one of the choices.
Numbers of NumPy and torch are accepted. No value is rounded, cut or guessed.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphwire._base.native import InvalidError, c_text, ffi, lib, text

U32 = 2**32 - 1
U64 = 2**64 - 1
BYTES_MAX = 2**63 - 1  # as the program takes
SEEDS_MAX = 1 << 24  # GW_SEEDS_MAX
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_SECONDS_MAX = 1e9  # about thirty years


def invalid(said: str) -> InvalidError:
    """The exception for a value out of its range."""
    return InvalidError("GW_INVALID", said)


def unused(why: str, **given: Any) -> None:
    """Raises InvalidError for the first of these options that is not None: the caller asks for something, and it would
    have no effect. why: a sentence without its period."""
    for name, value in given.items():
        if value is not None:
            raise invalid(f"{name} has no effect: {why}: leave out {name}")


def shown(value: Any) -> str:
    """A value in one line of an error, in at most 100 characters."""
    return f"{' '.join(repr(value).split()):.100}" if not isinstance(value, str) else f"{value!r:.100}"


def _is_array(value: Any) -> bool:
    """Whether the value has dimensions. An array of one element does not count as a number."""
    return bool(getattr(value, "ndim", None))


def is_bool(value: Any) -> bool:
    """Whether a single value is a bool of Python, NumPy or torch. Bools do not count as numbers."""
    return isinstance(value, (bool, np.bool_)) or (
        getattr(value, "ndim", None) == 0 and str(getattr(value, "dtype", "")) in ("bool", "torch.bool"))


def is_missing(value: Any) -> bool:
    """Whether a column has no value here: None, NaN, and NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and value != value)


def as_integer(value: Any) -> int | None:
    """A single integer of Python, NumPy or torch as an int; None for bools, fractions, texts, arrays and all other
    values."""
    if type(value) is int:
        return value
    if is_bool(value) or _is_array(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def integer(name: str, value: Any, low: int = 0, high: int = U32) -> int:
    """Returns an integer from low to high, both included. Raises TypeError and InvalidError."""
    found = as_integer(value)
    if found is None:
        raise TypeError(f"{name} is an integer, not {shown(value)}")
    if found < low:
        raise invalid(f"{name} is {low} or more, not {found}")
    if found > high:
        raise invalid(f"{name} is at most {high}, not {found}")
    return found


def size(name: str, value: Any, low: int = 0) -> int:
    """Returns a number of bytes of at least `low`: an integer, or a text as the program takes it, with a unit of 1000
    or 1024: "512M", "1.5G", "2Gi". Raises TypeError, and InvalidError, a ValueError."""
    if not isinstance(value, str):
        return integer(name, value, low, BYTES_MAX)
    found = ffi.new("uint64_t *")
    if lib.gw_parse_u64(c_text(name, value), low, BYTES_MAX, found) != lib.GW_OK:
        raise invalid(f"{name}: {text(lib.gw_last_error())}")
    return int(found[0])


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False,
           below: bool = False) -> float:
    """Returns a finite number from low to high. above: low itself is refused; below: high itself is refused. Raises
    TypeError and InvalidError."""
    if is_bool(value) or isinstance(value, complex) or not hasattr(type(value), "__float__") or _is_array(
            value):
        raise TypeError(f"{name} is a number, not {shown(value)}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise invalid(f"{name} is a finite number, not {shown(value)}")
    if found < low or (above and found == low):
        raise invalid(f"{name} is {f'above {low:g}' if above else f'{low:g} or more'}, not {shown(value)}")
    if found > high or (below and found == high):
        raise invalid(f"{name} is {'below' if below else 'at most'} {high:g}, not {shown(value)}")
    return found


def milliseconds(name: str, seconds: Any, *, above: bool = False) -> int:
    """Converts seconds to the milliseconds that C takes. None (no limit) becomes -1. Other results are at least 1,
    because 0 selects the library's default. above: 0 seconds are refused."""
    if seconds is None:
        return -1
    return max(1, int(number(name, seconds, 0, _SECONDS_MAX, above=above) * 1000))


def names(name: str, value: Any) -> list[str]:
    """Returns names as a list: a list of names, or one text with commas between them, as the program takes it. Raises
    TypeError and InvalidError."""
    if isinstance(value, str):
        value = value.split(",")
        if not all(value):
            raise invalid(f"{name}: an empty name in the list")
    found = list(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else [value]
    for one in found:
        if not isinstance(one, str) or not one:
            raise TypeError(f'{name} are names, such as "feat", not {shown(one)}')
    return found


def path(name: str, value: Any) -> Path:
    """Returns the path of a file. Raises TypeError, and ValueError for an empty one and for what no path has."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a path, not {shown(value)}")
    found = os.fsdecode(c_text(name, value))
    if not found:
        raise invalid(f"{name} is a path, not {shown(value)}")
    return Path(found)


def flag(name: str, value: Any) -> bool:
    """Returns a bool for True, False, 1 or 0. Raises TypeError for other values."""
    found = bool(value) if is_bool(value) else as_integer(value)
    if found not in (0, 1):
        raise TypeError(f"{name} is True or False, not {shown(value)}")
    return bool(found)


def choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Returns the value, which must be one of the choices. Raises InvalidError, which lists the choices."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        words = " or ".join(known) if len(known) < 3 else f"one of {', '.join(known)}"
        raise invalid(f"{name} is {words}, not {shown(value)}")
    return value


def _single(name: str, value: Any) -> None:
    """Checks a number that is sent as a float32, 0 or more. Raises TypeError and InvalidError."""
    if number(name, value, 0, _FLOAT32_MAX) > 0 and np.float32(value) == 0:
        raise invalid(f"{name} is 0 in float32, not {shown(value)}")


def optimizer(lr: Any, combine: Any, combines: Iterable[str], eps: Any = 1e-8, betas: Any = (0.9, 0.999)) -> None:
    """Checks the arguments that all optimizers share. Raises TypeError and InvalidError."""
    _single("lr", lr)
    choice("combine", combine, combines)
    _single("eps", eps)
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise TypeError(f"betas is a pair of numbers, not {betas!r}")
    for place, beta in enumerate(betas):
        number(f"betas[{place}]", beta, 0, 1, below=True)
