"""Finds the trainer that failed first on all hosts, and makes the text that reports it.

Each line of a trainer gets a number when it arrives. The first exception that does not follow from another rank's end
is the first failure. The order of events alone is not enough: a rank that lost its peer may be reported before the
peer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from . import cause
from .process import Process, how_it_ended, log_of


@dataclasses.dataclass
class Failure:
    """A process that has failed, or has written an exception and is about to end."""

    process: Process
    cause: cause.Cause
    at: int  # the number of the failure's first line, or of the process' end

    @property
    def text(self) -> str:
        """The text to report: host, rank, how the process ended, why, and the path of its log."""
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
    """Returns the first failure. At least one of the processes must have failed. trainers: the number of trainers in a
    process that runs several."""
    found = [failure for failure in (_of(process, trainers) for process in processes) if failure]
    return min(found, key=lambda failure: (failure.cause.follows, failure.at))


def lost_port(processes: Iterable[Process], port: int, trainers: int) -> str | None:
    """Returns the text of a failure whose cause is that another program had taken the rendezvous port; None if none has
    failed so."""
    failed = (_of(process, trainers) for process in processes if process.failed)
    return next((one.text for one in failed if one and one.cause.lost_port(port)), None)
