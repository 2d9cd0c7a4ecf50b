"""Progress of long work: a bar of tqdm on a terminal and in a notebook, if tqdm is installed.

    with Bar("ogb.zip", progress, total=size, unit="B") as bar:
        bar.to(received)

progress, the argument of the public functions: None shows a bar where a person can see it; True shows it also in a file
or a pipe; False shows none. Without tqdm there is no bar.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from graphwire._base import checks

_USUAL_SIZE = {"ncols": 80, "nrows": 24}


def _tqdm() -> Any:
    """tqdm's class of bars for this terminal or notebook; None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _is_seen(bars: Any) -> bool:
    """Whether a person sees the bars: in a notebook, or on a terminal."""
    return "notebook" in getattr(bars, "__module__", "") or (sys.stderr is not None and sys.stderr.isatty())


def _size() -> dict[str, int]:
    """The usual size, for a terminal that reports none, where tqdm would write nothing. Else tqdm finds it out."""
    try:
        found = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal
        return {}
    return {} if all(found) else _USUAL_SIZE


def wanted(progress: Any) -> bool:
    """Whether bars are shown. Raises TypeError unless progress is None or a bool."""
    if progress is not None and not checks.flag("progress", progress):
        return False
    bars = _tqdm()
    return bars is not None and (progress is not None or _is_seen(bars))


class Bar:
    """One bar, which ends with its context. what: the work. total: its amount in units; None: unknown."""

    def __init__(self, what: str, progress: Any, *, total: int | None = None, unit: str = "it", done: int = 0):
        self._bar: Any = None
        if wanted(progress):
            self._bar = _tqdm()(desc=what, total=total, unit=unit, initial=done, leave=False, unit_scale=unit == "B",
                                unit_divisor=1024, disable=False, **_size())

    def to(self, done: int) -> None:
        """Shows that `done` units of the work are done."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def say(self, what: str) -> None:
        """Names the step that is under way."""
        if self._bar is not None:
            self._bar.set_description_str(what)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
