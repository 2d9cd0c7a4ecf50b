"""Which trainer failed first, of all hosts, and what is told of it.

Each line that a trainer writes gets a number as it comes. The first exception counts that does not follow from another
rank's end; a rank that lost its peers may well be told of before the rank that they lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from . import cause
from .process import Process, how_it_ended, log_of


@dataclasses.dataclass
class Failure:
    """A process that failed, or is about to."""

    process: Process
    cause: cause.Cause
    at: int  # the number of the line that it begins with, or of its end

    @property
    def text(self) -> str:
        """Host, rank, how it ended, why, and where the log is."""
        process, why = self.process, self.cause
        rank = why.rank if why.rank is not None else why.fault.rank if why.fault else None
        title = f"trainer {rank}" if process.several and rank is not None else process.title
        if process.ended:
            how = f"ended with {(process.several and why.how) or how_it_ended(process.ended)}"
        else:
            how = "failed"
        said = f": {why.text}" if why.text else " without a word"
        return f"{process.host}: {title} {how}{said}{log_of(process)}"


def _of(process: Process, trainers: int) -> Failure | None:
    numbers, lines = [number for number, _ in process.lines], [text for _, text in process.lines]
    how = how_it_ended(process.ended) if process.ended else "status 1"
    why = cause.find(lines, how, trainers if process.several else 1)
    if process.ended:
        at = numbers[why.fault.at] if why.fault and numbers else process.end_number
        return Failure(process, why, at) if process.failed else None
    behind = why.fault is not None and not why.fault.follows and why.fault.end >= len(lines)
    return Failure(process, why, numbers[why.fault.at]) if why.fault and behind else None


def first(processes: Iterable[Process], trainers: int) -> Failure:
    """The first failure of processes, of which one has failed. trainers: of a process that starts several."""
    found = [failure for failure in (_of(process, trainers) for process in processes) if failure]
    return min(found, key=lambda failure: (failure.cause.follows, failure.at))
