"""Finds out from a trainer's output why the trainer failed: the exception of the first rank that failed.

    lines ─▶ drop torchrun's lines and warnings ─▶ find faults: exceptions, crashes ─▶ the first of the last group

Lines outside all faults separate groups of faults: a trainer that has logged an exception and continued writes other
lines before it fails. The ranks that torchrun starts on a host write into one stream; their lines interleave. With a
process group, PyTorch writes `[rank1]: ` before each line of an exception. torchrun's report names the rank that failed
first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

_BUFFER = 8192  # bytes of buffered standard output that an ending Python process may write after its exception
_MORE = 3  # further lines of an exception's text to report
_LOOK = 500  # most lines from the beginning of a traceback to its exception
_LAST = 4  # last lines to report if no exception was found
_NEAR = 40  # most lines between a rank's exception and another rank's exception that follows from it
_LINE_MAX = 400

_PREFIX = re.compile(r"\[([A-Za-z_]+)(\d+)\]: ?")
_HEADER = re.compile(r"Traceback \(most recent call last\):$")
_SYNTAX = re.compile(r'  File "[^"]+", line \d+$')  # the first line of a compiler's error, which has no header
_BAR = re.compile(r"^\s*\| ?")  # the bar before each line of an ExceptionGroup
# _EXCEPTION: an exception's name that is qualified by a module, or ends as the built-in ones do. _OWN: any capitalized
# word, which may be the name of the script's own exception.
_EXCEPTION = re.compile(
    r"(?:(?:[A-Za-z_][\w<>]*\.)+\w+|[A-Z]\w*(?:Error|Exception|Exit|Group|Interrupt|Iteration|Warning))(?::\s|:?$)"
)
_OWN = re.compile(r"[A-Z_]\w*(?::\s|:?$)")
_MARKS = re.compile(r"\s+[~^]+$")  # the marks under a line of code
_BODY = re.compile(r'  File "|    \S')  # a traceback's lines between header and exception
_CHAIN = re.compile(
    r"(During handling of the above exception|The above exception was the direct cause|Original exception was:"
    r"|-- Process \d+ terminated with the following error:)"
)
_QUIET = re.compile(r'"""$|Process \S+:$')  # lines around the tracebacks of multiprocessing
_IGNORED = re.compile(r"Exception ignored in")
_THREAD = re.compile(r"(Current thread|Thread) 0x")
_CRASH = re.compile(r"Fatal Python error: |terminate called ")

# Log lines of torchrun and of PyTorch's C++ code, and Python's warnings with their line of code.
_LOG = re.compile(
    r"[EWI]\d{4} .*torch/(distributed|multiprocessing)/|(ERROR|WARNING|INFO):torch\.distributed\."
    r"|\[[-\d]+ [\d:,]+\] torch\.distributed\.|\[[EWIC]\d* ?[^\]]*\.(cpp|cc|cu|hpp):\d+\]|\S+:\d+: \w*Warning: "
)
_OF_TORCHRUN = re.compile(r"torch\.distributed\.elastic\.\S*\.(ChildFailedError|SignalException)\b")
_REPORT = re.compile(r"torch\.distributed\.elastic\.\S*\.ChildFailedError\b")
_RULE = re.compile(r"={5,}$")
_RANK = re.compile(r"\s*rank\s*: (\d+) ")
_EXIT = re.compile(r"\s*exitcode\s*: (-?\d+) ")

# Texts of a rank that lost another rank, or that was being ended.
_FOLLOWS = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Ss]ocket closed|remote process|remote worker|recv, got 0 bytes"
    r"|(recv|send)(Bytes|Value|Vector)|TCPStore|Dist(Network|Store|Backend)Error|NCCL|[Ww]atchdog|got signal: "
    r"|killed by signal: Terminated|^KeyboardInterrupt|^EOFError|^SystemExit"
)

# What TCPStore raises if its port is taken: with PyTorch 2, and before.
_PORT_LOST = re.compile(
    r"(torch\.distributed\.Dist\w+Error|RuntimeError): The server socket has failed to "
    r".*(EADDRINUSE|[Aa]ddress already in use)"
)


@dataclasses.dataclass
class Fault:
    """An uncaught exception, or a crash."""

    text: str
    at: int  # its first line
    end: int  # the line after its last
    rank: int | None  # the rank in the lines' mark; None: no mark
    follows: bool  # a consequence of another rank's end


@dataclasses.dataclass
class Cause:
    """Why one process has failed: a trainer, or torchrun with its trainers."""

    fault: Fault | None
    rank: int | None  # the first trainer that failed, from torchrun's report
    how: str | None  # how this trainer ended, from torchrun's report
    last: list[str]  # the last lines, reported if no fault was found

    @property
    def text(self) -> str:
        """The text to report."""
        return self.fault.text if self.fault else " | ".join(self.last)

    @property
    def follows(self) -> bool:
        """Whether the process failed because another rank had failed."""
        return self.fault is not None and self.fault.follows

    def lost_port(self, port: int) -> bool:
        """Whether torchrun, or rank 0 without torchrun, could not bind the rendezvous port: PyTorch's own exception
        about this port. torchrun's report would name a trainer that failed, whatever the trainer's exception says."""
        if not self.fault or self.rank is not None:
            return False
        return bool(_PORT_LOST.match(self.fault.text) and re.search(rf"(port: |:){port}\b", self.fault.text))


@dataclasses.dataclass
class _Line:
    number: int
    group: str  # the line's prefix
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
    """Returns the lines without torchrun's report, the rank that the report names as the first, and how the rank
    ended."""
    kept: list[_Line] = []
    rank: int | None = None
    how: str | None = None
    rules, root = 2, False  # lines of "=====" seen in the report; the second ends the report
    for line in lines:
        if _REPORT.match(line.text):
            rules, root = 0, False
            kept.append(line)  # this line also ends a traceback
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
    code = False  # the next line is the line of code of a warning
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
    """Whether the line begins something new, so that the exception before it has ended."""
    begins = (_CHAIN, _QUIET, _CRASH, _MARKS, _IGNORED, _OF_TORCHRUN)
    return _is_header(text) or text.startswith('  File "') or any(one.match(text) for one in begins)


def _more(lines: list[_Line], at: int, first: str) -> tuple[list[str], int]:
    """Returns the further lines of an exception's text, and the index after the lines that surely belong to it: the
    indented ones."""
    found: list[str] = []
    sure = at
    while at < len(lines) and len(found) < _MORE and not _begins(lines[at].text):
        text = lines[at].text.strip()
        if not text and (found or not first.endswith(":")):
            break
        if text and text != first:  # an equal line is the same exception of another rank
            found.append(text)
        at += 1
        if not text or lines[at - 1].text[0] in " \t" or text == first:
            sure = at
    return found, sure


def _exception(lines: list[_Line], at: int) -> tuple[str, int] | None:
    """Returns the exception of the traceback that begins at a line, and the index after it; None if the traceback is
    incomplete."""
    grouped = "Exception Group" in lines[at].text
    compiled = not _is_header(lines[at].text)
    for i in range(at + 1, min(len(lines), at + _LOOK)):
        text = _BAR.sub("", lines[i].text) if grouped else lines[i].text
        if _CRASH.match(text):
            return None
        if not text or text[0] in ' \t"' or _is_header(text):
            continue
        goes_on = i + 1 < len(lines) and _BODY.match(lines[i + 1].text)  # if so, this line belongs to another rank
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
    """Returns a crash's text, with its place if the lines name it, and the index after the crash."""
    end, where, current = at + 1, "", False
    while end < len(lines) and (not lines[end].text or lines[end].text[0] == " " or _THREAD.match(lines[end].text)):
        text = lines[end].text.strip()
        current = current or text.startswith("Current")
        if not where and (text.startswith("what():") or (current and text.startswith("File "))):
            where = text
        end += 1
    return " | ".join(text for text in (lines[at].text, where) if text), end


def _of_group(lines: list[_Line]) -> list[Fault]:
    """Returns the faults in the lines of one prefix. A chain of exceptions that were raised from one another is one
    fault, with the text of the last exception."""
    found: list[Fault] = []
    at, begun = 0, None  # begun: the first line of a chain
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
    """Chooses the first fault of the last group of faults. A fault that follows from another rank's end is chosen only
    if no other exists.

    plain: the lines outside all faults. They separate groups: after a caught and logged exception, a trainer writes
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
    """Returns the signal that ended a process (a shell's status is 128 + signal). Returns 0 if no signal ended it, and
    for Ctrl-C, which raises an exception."""
    kind, number = how.split()
    signal = int(number) if kind == "signal" else int(number) - 128
    return signal if 0 < signal < 65 and signal != 2 else 0


def _may_end_so(fault: Fault, signal: int, behind: int) -> bool:
    """Whether a fault can be the reason why the process ended. signal: the result of _signal_of(); behind: bytes of
    other lines after the fault.

    No exception leads to SIGKILL or SIGTERM, but an exception may make a process crash while it ends.
    """
    if signal and not _CRASH.match(fault.text):
        return signal not in (9, 15) and behind == 0
    return behind <= _BUFFER


def find(lines: Sequence[str], how: str, trainers: int = 1) -> Cause:
    """Finds out why a process failed. lines: its last lines; how: its end, such as "status 1"; trainers: how many
    trainers wrote the lines."""
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
    """Returns the lines without the last traceback of torchrun itself."""
    for i in range(len(lines) - 1, -1, -1):
        if _OF_TORCHRUN.match(lines[i]):
            headers = [k for k in range(i) if _is_header(lines[k])]
            return lines[: headers[-1]] + lines[i + 1 :] if headers else lines[i + 1 :]
    return lines
