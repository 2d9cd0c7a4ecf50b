"""Why a trainer failed, from what it wrote: the exception of the first rank that failed, whatever stands behind it.

    lines ─▶ without torchrun's own, and without warnings ─▶ faults: exceptions, crashes ─▶ the first of the last ones

Ranks that torchrun starts on a host write into one stream, line by line among each other. PyTorch writes `[rank1]: ` in
front of the lines of an exception, once there is a process group; torchrun's report tells which rank failed first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

_BUFFER = 8192  # bytes of standard output that a Python process may write when it ends, behind its exception
_MORE = 3  # lines of an exception's text, behind the first
_LOOK = 500  # lines from the beginning of a traceback to its exception
_LAST = 4  # lines that are told where there is no exception
_NEAR = 40  # lines between an exception of another rank and its consequence in ours
_LINE_MAX = 400

_PREFIX = re.compile(r"\[([A-Za-z_]+)(\d+)\]: ?")
_HEADER = re.compile(r"Traceback \(most recent call last\):$")
_SYNTAX = re.compile(r'  File "[^"]+", line \d+$')  # of an error that the compiler found, which has no header
_BAR = re.compile(r"^\s*\| ?")  # in front of the lines of an ExceptionGroup
# An exception: of a module, or of a built-in's name; or of the script's own, such as any word with a capital letter.
_EXCEPTION = re.compile(
    r"(?:(?:[A-Za-z_][\w<>]*\.)+\w+|[A-Z]\w*(?:Error|Exception|Exit|Group|Interrupt|Iteration|Warning))(?::\s|:?$)"
)
_OWN = re.compile(r"[A-Z_]\w*(?::\s|:?$)")
_MARKS = re.compile(r"\s+[~^]+$")  # under a line of code
_BODY = re.compile(r'  File "|    \S')  # of a traceback
_CHAIN = re.compile(
    r"(During handling of the above exception|The above exception was the direct cause|Original exception was:"
    r"|-- Process \d+ terminated with the following error:)"
)
_QUIET = re.compile(r'"""$|Process \S+:$')  # around tracebacks of multiprocessing
_IGNORED = re.compile(r"Exception ignored in")
_THREAD = re.compile(r"(Current thread|Thread) 0x")
_CRASH = re.compile(r"Fatal Python error: |terminate called ")

# What torchrun and PyTorch's C++ log of their own, and Python's warnings with their line of code.
_LOG = re.compile(
    r"[EWI]\d{4} .*torch/(distributed|multiprocessing)/|(ERROR|WARNING|INFO):torch\.distributed\."
    r"|\[[-\d]+ [\d:,]+\] torch\.distributed\.|\[[EWIC]\d* ?[^\]]*\.(cpp|cc|cu|hpp):\d+\]|\S+:\d+: \w*Warning: "
)
_OF_TORCHRUN = re.compile(r"torch\.distributed\.elastic\.\S*\.(ChildFailedError|SignalException)\b")
_REPORT = re.compile(r"torch\.distributed\.elastic\.\S*\.ChildFailedError\b")
_RULE = re.compile(r"={5,}$")
_RANK = re.compile(r"\s*rank\s*: (\d+) ")
_EXIT = re.compile(r"\s*exitcode\s*: (-?\d+) ")

# What a rank says when another one has gone, or when it is being ended.
_FOLLOWS = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Ss]ocket closed|remote process|remote worker|recv, got 0 bytes"
    r"|(recv|send)(Bytes|Value|Vector)|TCPStore|Dist(Network|Store|Backend)Error|NCCL|[Ww]atchdog|got signal: "
    r"|killed by signal: Terminated|^KeyboardInterrupt|^EOFError|^SystemExit"
)


@dataclasses.dataclass
class Fault:
    """An exception that nobody caught, or a crash."""

    text: str
    at: int  # the line that it begins with
    end: int  # the line behind it
    rank: int | None  # where the lines tell
    follows: bool  # from another rank's end


@dataclasses.dataclass
class Cause:
    """Why one process, torchrun with its trainers or a trainer, has failed."""

    fault: Fault | None
    rank: int | None  # of the first trainer that failed, as torchrun reports
    how: str | None  # it ended, likewise
    last: list[str]  # the last lines, for want of a fault

    @property
    def text(self) -> str:
        """What is told."""
        return self.fault.text if self.fault else " | ".join(self.last)

    @property
    def follows(self) -> bool:
        """Whether it is told to have failed because another rank has."""
        return self.fault is not None and self.fault.follows


@dataclasses.dataclass
class _Line:
    number: int
    group: str  # its prefix
    rank: int | None
    text: str


def _split(number: int, text: str) -> _Line:
    group, rank, at = "", None, 0
    while True:
        match = _PREFIX.match(text, at)
        if not match:
            return _Line(number, group, rank, text[at : at + _LINE_MAX].rstrip())
        rank = int(match.group(2)) if match.group(1) == "rank" else rank
        group, at = group + match.group(0), match.end()


def _without_report(lines: list[_Line]) -> tuple[list[_Line], int | None, str | None]:
    """The lines without torchrun's report, the rank that it names as the first, and how that ended."""
    kept: list[_Line] = []
    rank: int | None = None
    how: str | None = None
    rules, root = 2, False  # lines of "=====" of the report: it is over after the second
    for line in lines:
        if _REPORT.match(line.text):
            rules, root = 0, False
            kept.append(line)  # the end of a traceback
            continue
        if rules == 2:
            kept.append(line)
            continue
        rules += bool(_RULE.match(line.text))
        root = root or line.text.startswith("Root Cause")
        if root and (found := _RANK.match(line.text)):
            rank = int(found.group(1))
        if root and (found := _EXIT.match(line.text)):
            status = int(found.group(1))
            how = f"signal {-status}" if status < 0 else f"status {status}"
    return kept, rank, how


def _without_logs(lines: list[_Line]) -> list[_Line]:
    kept: list[_Line] = []
    code = False  # the line of code behind a warning
    for line in lines:
        log = _LOG.match(line.text)
        if not log and not (code and line.text[:2] == "  " and not _SYNTAX.match(line.text)):
            kept.append(line)
        code = bool(log) and "Warning: " in line.text
    return kept


# --- Faults. ---


def _is_header(text: str) -> bool:
    return bool(_HEADER.search(text))


def _begins(text: str) -> bool:
    """Whether something else begins, of which the exception before it is no part."""
    begins = (_CHAIN, _QUIET, _CRASH, _MARKS, _IGNORED, _OF_TORCHRUN)
    return _is_header(text) or text.startswith('  File "') or any(one.match(text) for one in begins)


def _more(lines: list[_Line], at: int, first: str) -> tuple[list[str], int]:
    """The further lines of an exception's text, and the line behind those that are surely its own (indented ones)."""
    found: list[str] = []
    sure = at
    while at < len(lines) and len(found) < _MORE and not _begins(lines[at].text):
        text = lines[at].text.strip()
        if not text and (found or not first.endswith(":")):
            break
        if text and text != first:  # another rank's, of the same
            found.append(text)
        at += 1
        if not text or lines[at - 1].text[0] in " \t" or text == first:
            sure = at
    return found, sure


def _exception(lines: list[_Line], at: int) -> tuple[str, int] | None:
    """The exception of the traceback that begins there, and the line behind it; None: it is cut."""
    grouped = "Exception Group" in lines[at].text
    compiled = not _is_header(lines[at].text)
    for i in range(at + 1, min(len(lines), at + _LOOK)):
        text = _BAR.sub("", lines[i].text) if grouped else lines[i].text
        if _CRASH.match(text):
            return None
        if not text or text[0] in ' \t"' or _is_header(text):
            continue
        goes_on = i + 1 < len(lines) and _BODY.match(lines[i + 1].text)  # so that it is another rank's line
        if not _EXCEPTION.match(text) and (goes_on or not _OWN.match(text)):
            continue
        if compiled and not re.match(r"\w*(Syntax|Indentation|Tab)Error", text):
            return None
        first = text.strip()
        if grouped:
            inner = [_BAR.sub("", line.text) for line in lines[i + 1 : i + _LOOK] if _BAR.match(line.text)]
            more = [one for one in inner if one[:1].strip() and _EXCEPTION.match(one) and one != first][:_MORE]
            end = next((k for k in range(i + 1, len(lines)) if re.match(r"\s*\+-+$", lines[k].text)), i) + 1
        else:
            more, end = _more(lines, i + 1, first)
        return " | ".join([first, *more]), end
    return None


def _crash(lines: list[_Line], at: int) -> tuple[str, int]:
    """A crash: what it is and, if that is told, where."""
    end, where, current = at + 1, "", False
    while end < len(lines) and (not lines[end].text or lines[end].text[0] == " " or _THREAD.match(lines[end].text)):
        text = lines[end].text.strip()
        current = current or text.startswith("Current")
        if not where and (text.startswith("what():") or (current and text.startswith("File "))):
            where = text
        end += 1
    return " | ".join(text for text in (lines[at].text, where) if text), end


def _of_group(lines: list[_Line]) -> list[Fault]:
    """The faults in the lines of one prefix. Of exceptions that were raised for one another: the last."""
    found: list[Fault] = []
    at, begun = 0, None  # the beginning of a chain
    while at < len(lines):
        line = lines[at]
        if _CRASH.match(line.text):
            text, end = _crash(lines, at)
        elif _is_header(line.text) or _SYNTAX.match(line.text):
            exception = _exception(lines, at)
            if not exception:
                at += 1
                continue
            text, end = exception
        else:
            at += 1
            continue
        begin = line.number if begun is None else begun
        ignored = at > 0 and _IGNORED.match(lines[at - 1].text)
        behind = next((one.text for one in lines[end:] if one.text and not _QUIET.match(one.text)), "")
        at = end
        if _CHAIN.match(behind) or re.match("Original Traceback", behind):
            begun = begin
            continue
        begun = None
        if not ignored and not _OF_TORCHRUN.match(text):
            found.append(Fault(text, begin, lines[end - 1].number + 1, line.rank, bool(_FOLLOWS.search(text))))
    return found


def _faults(lines: list[_Line]) -> list[Fault]:
    groups: dict[str, list[_Line]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return sorted((fault for group in groups.values() for fault in _of_group(group)), key=lambda fault: fault.at)


def _choose(faults: list[Fault], plain: list[_Line]) -> Fault | None:
    """The first of those that stand together at the end; what follows from another rank's end only for want of others.

    plain: lines that belong to none of them. What was logged of an exception that the trainer has caught stands before
    other lines.
    """
    chosen: Fault | None = None
    for before, fault in zip([None, *faults], faults):
        between = [line for line in plain if before and before.end <= line.number < fault.at]
        together = before is not None and not between
        if chosen is None or chosen.follows > fault.follows:
            chosen = fault
        elif not together and not (fault.follows and not chosen.follows and len(between) <= _NEAR):
            chosen = fault
    return chosen


def _signal_of(how: str) -> int:
    """The signal that ended a process so (128 and more: in a shell); 0: none, or Ctrl-C, which is an exception."""
    kind, number = how.split()
    signal = int(number) if kind == "signal" else int(number) - 128
    return signal if 0 < signal < 65 and signal != 2 else 0


def _may_end_so(fault: Fault, signal: int, behind: int) -> bool:
    """Whether a process that has such a fault may end so. behind: bytes of other lines behind it.

    No exception leads to SIGKILL or SIGTERM; but a process may well crash when an exception ends it.
    """
    if signal and not _CRASH.match(fault.text):
        return signal not in (9, 15) and behind == 0
    return behind <= _BUFFER


def find(lines: Sequence[str], how: str, trainers: int = 1) -> Cause:
    """Why a process failed that wrote the lines last, and ended so: "status 1". trainers: how many wrote into them."""
    split, rank, reported = _without_report([_split(number, text) for number, text in enumerate(lines)])
    split = _without_logs(split)
    mine = [line for line in split if rank is None or line.rank is None or line.rank == rank]
    faults = _faults(mine)
    inside = [range(fault.at, fault.end) for fault in faults]
    plain = [line for line in mine if line.text and not any(line.number in fault for fault in inside)]
    plain = [line for line in plain if not _QUIET.match(line.text)]
    signal = _signal_of(reported or how)
    behind = [sum(len(line.text) + 1 for line in plain if line.number >= fault.end) for fault in faults]
    faults = [one for one, count in zip(faults, behind) if _may_end_so(one, signal, count // max(1, trainers))]
    last = _without_tracebacks([line.text.strip() for line in mine if line.text.strip()])[-_LAST:]
    return Cause(_choose(faults, plain), rank, reported, last)


def _without_tracebacks(lines: list[str]) -> list[str]:
    """The lines without the traceback that torchrun ends with."""
    for i in range(len(lines) - 1, -1, -1):
        if _OF_TORCHRUN.match(lines[i]):
            headers = [k for k in range(i) if _is_header(lines[k])]
            return lines[: headers[-1]] + lines[i + 1 :] if headers else lines[i + 1 :]
    return lines
