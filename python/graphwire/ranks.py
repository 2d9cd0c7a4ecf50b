"""What the ranks of torch.distributed tell each other about their loaders, through the store that they met over.

    first loop over a loader that divides -> Agreement: all ranks have the same seeds and options, or all have an error
    first loop over one that does not     -> Steps: a warning where ranks have unequal numbers of steps

A store takes no tensors and belongs to no backend. What ranks say is numbered by group and by name: the first loader
that a rank loops over meets the first of each other rank. A group without a store (MPI) compares nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from graphwire import _arrays

WAIT_SECONDS = 25.0  # for the other ranks to begin their loops: every rank knows how it ended within 30
LEAVE_SECONDS = 3.0  # for the others to read what was found out, before an error ends the process that has the store
POLL_SECONDS = (0.001, 0.05)  # the first pause between two looks, the longest one
GAVE_UP = 1 << 32  # in a count of ranks: one that waits no more

WAY_OUT = ("A loader divides its seeds among all ranks, which begin to loop over it together and are given the same "
           "seeds and options. Give it world=1 for seeds that are divided already, and for a loop of one rank alone "
           "(an evaluation); world= and rank= for ranks that begin at different times")

# Of each group {name: the number of the next meeting}, by its id; groups that are gone leave at the next meeting. Not a
# dictionary of weak keys: those call a line of Python when a key goes, where an interrupt would be lost.
_numbers: dict[int, tuple[weakref.ref[Any], dict[str, Iterator[int]]]] = {}
_inherited: Any = None  # a reference to the group of the process that forked this one
_said: set[tuple[str, str]] = set()


def _world_group() -> Any:
    torch = _arrays.torch_module()
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.group.WORLD


def _forked() -> None:
    global _inherited
    dist = sys.modules.get("torch.distributed")  # no import: one may have been under way in a thread that is gone
    if dist is not None and getattr(dist, "is_initialized", bool)():
        _inherited = weakref.ref(dist.group.WORLD)


os.register_at_fork(after_in_child=_forked)


def _in_worker() -> bool:
    """Is this a process of a DataLoader? Its group and store are its parent's."""
    torch = _arrays.torch_module()
    return torch is not None and torch.utils.data.get_worker_info() is not None


class _Meeting:
    """One exchange of all ranks of a group: what each says, and how many have."""

    def __init__(self, store: Any, prefix: str, world: int, rank: int):
        self.store, self._prefix, self.world, self.rank = store, prefix, world, rank

    def add(self, key: str, count: int) -> int:
        return int(self.store.add(self._prefix + key, count))

    def say(self, what: str) -> int:
        """Returns how many ranks are here."""
        self.store.set(f"{self._prefix}says/{self.rank}", what)
        self.add(f"at/{self.rank}", 1)
        return self.add("here", 1)

    def said(self, rank: int) -> str:
        """What a rank that is here has said."""
        return bytes(self.store.get(f"{self._prefix}says/{rank}")).decode()

    def missing(self) -> list[int]:
        return [rank for rank in range(self.world) if not self.add(f"at/{rank}", 0)]

    def wait(self, done: Callable[[], bool], until: float) -> bool:
        """Until it is done, or the time is over. Looks again and again: a wait in the store would keep other threads
        from it, and signals from this one."""
        pause, longest = POLL_SECONDS
        while not done():
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, longest)
        return True

    def forget(self, others: Iterable[str] = ()) -> None:
        """What was said, once nobody reads it any more."""
        keys = [f"{word}/{rank}" for rank in range(self.world) for word in ("says", "at")]
        with contextlib.suppress(RuntimeError):  # some stores cannot
            for key in [*keys, "here", "left", *others]:
                self.store.delete_key(self._prefix + key)


def _meetings_of(group: Any) -> dict[str, Iterator[int]]:
    for key in [key for key, (known, _) in _numbers.items() if known() is None]:
        del _numbers[key]
    return _numbers.setdefault(id(group), (weakref.ref(group), {}))[1]


def _meeting(group: Any, name: str) -> _Meeting | None:
    """The next one of this name; None where there is nobody to meet."""
    import torch.distributed as dist

    if dist.get_world_size() == 1 or _in_worker() or (_inherited is not None and _inherited() is group):
        return None
    try:
        if dist.get_backend() == "fake":
            return None
        store = dist.distributed_c10d._get_default_store()
    except (AttributeError, RuntimeError, ValueError):
        return None
    if store is None:
        return None
    number = next(_meetings_of(group).setdefault(name, itertools.count()))
    return _Meeting(store, f"graphwire/{name}/{number}/", dist.get_world_size(), dist.get_rank())


# --- The same seeds. ---


class Agreement:
    """Of a loader: with which group it has been reached."""

    def __init__(self) -> None:
        self._group: Any = None

    def reach(self, what: Mapping[str, Any]) -> None:
        """Once for a group, in its ranks' first loops: all of them say the same, or all raise ValueError within 30 s,
        those too that come later. what: {option: value}; "plan" stands for all that the others do not tell."""
        group = _world_group()
        if group is None or (self._group is not None and self._group() is group):
            return
        meeting = _meeting(group, "loaders")
        if meeting is not None:
            try:
                _agree(meeting, json.dumps(what))
            except RuntimeError as error:  # the store's: the process that has it is gone
                raise ValueError(f"the ranks' loaders cannot be compared: {error}. {WAY_OUT}") from error
        self._group = weakref.ref(group)


def _agree(meeting: _Meeting, text: str) -> None:
    until = time.monotonic() + WAIT_SECONDS
    same = f"same/{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    meeting.add(same, 1)
    if not _all_here(meeting, meeting.say(text), until):
        raise ValueError(f"{_who_is_missing(meeting)}. {WAY_OUT}")
    if meeting.add(same, 0) == meeting.world:
        if _last_to_leave(meeting):
            meeting.forget([same])
        return
    difference = _difference(meeting, text)
    _last_to_leave(meeting)
    raise ValueError(f"{difference}. {WAY_OUT}")


def _last_to_leave(meeting: _Meeting) -> bool:
    """The first rank, in whose process the store may be, waits until the others have read all that they need."""
    if meeting.rank == 0:
        return meeting.wait(lambda: meeting.add("left", 0) == meeting.world - 1, time.monotonic() + LEAVE_SECONDS)
    with contextlib.suppress(RuntimeError):  # its answer may be lost: the first rank has heard it, and may be gone
        meeting.add("left", 1)
    return False


def _all_here(meeting: _Meeting, here: int, until: float) -> bool:
    """Waits for all ranks. One that gives up says so: then all ranks do. Both may be said at once, by two ranks; the
    later one takes it back, and until then the others look again."""
    if here >= GAVE_UP:
        meeting.add("here", -1)
        return False
    found = here

    def decided() -> bool:
        nonlocal found
        found = meeting.add("here", 0)
        return (found >= GAVE_UP) != (found % GAVE_UP == meeting.world)

    if here != meeting.world and not meeting.wait(decided, until):
        if found < GAVE_UP:
            if meeting.add("here", GAVE_UP) % GAVE_UP < meeting.world:
                return False
            meeting.add("here", -GAVE_UP)
            return True
        meeting.wait(decided, until + LEAVE_SECONDS)
    return found == meeting.world


def _who_is_missing(meeting: _Meeting) -> str:
    missing = meeting.missing()
    if not missing:
        return "other ranks have waited in vain for this one to begin its loop over a loader"
    return f"{_ranks_in_words(missing)} began no loop over a loader within {WAIT_SECONDS:.0f} s of another rank's"


def _difference(meeting: _Meeting, text: str) -> str:
    """In what another rank's loader is not like this one's."""
    other, theirs = next((rank, said) for rank in range(meeting.world) if (said := meeting.said(rank)) != text)
    one, two = json.loads(text), json.loads(theirs)
    found = [f"{name} is {one[name]!r} and {two[name]!r}" for name in one if name != "plan" and one[name] != two[name]]
    return (f"the loaders of ranks {meeting.rank} and {other} differ: "
            f"{', '.join(found) or 'their seeds are others, though as many'}")


# --- Unequal steps. ---


def _ranks_in_words(ranks: list[int], most: int = 8) -> str:
    words = ", ".join(map(str, ranks[:most])) + (f" and {len(ranks) - most} more" if len(ranks) > most else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {words}"


def _counts_in_words(counts: list[int]) -> str:
    """Which ranks have how many steps."""
    by_count: dict[int, list[int]] = {}
    for rank, count in enumerate(counts):
        by_count.setdefault(count, []).append(rank)
    return ", ".join(f"{count} step{'' if count == 1 else 's'} on {_ranks_in_words(ranks)}"
                     for count, ranks in sorted(by_count.items(), reverse=True)[:8])


def _level_of_the_loop() -> int:
    """For a warning of the caller's: the frame outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("graphwire."):
        frame, level = frame.f_back, level + 1
    return level


class Steps:
    """Says once that the ranks' loops have unequal numbers of steps: a rank that averages gradients waits for ever for
    one that has ended its loop. Only of loops that record gradients.

    Nobody waits: the rank that begins its loop last knows all of the others' numbers, before its first step; the first
    rank looks before each of its steps until it does. who: whose loader it is; advice: how to get equal steps.
    """

    def __init__(self, who: str, advice: str):
        self._who, self._advice = who, advice
        self._group: Any = None
        self._pending: _Meeting | None = None
        self._readers = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_group": None, "_pending": None}  # of this process alone

    def begin(self, count: int, kind: str) -> None:
        """At the begin of a loop of so many steps; told once for a group. kind: what loaders of other ranks that are
        counterparts of this one have in common with it."""
        group = _world_group()
        if group is None or (self._group is not None and self._group() is group):
            return
        import torch

        if not torch.is_grad_enabled():
            return
        self._group, self._pending = weakref.ref(group), None
        meeting = _meeting(group, f"steps/{self._who}/{kind}")
        if meeting is None:
            return
        try:
            last = meeting.say(str(count)) == meeting.world
        except RuntimeError:  # without the store there is nothing to be said
            return
        if last or meeting.rank == 0:
            self._pending, self._readers = meeting, 1 if last and meeting.rank == 0 else 2
            self.look()

    def look(self) -> None:
        """Before each step."""
        meeting = self._pending
        if meeting is None:
            return
        try:
            if meeting.add("here", 0) < meeting.world:
                return
            self._pending = None
            counts = [int(meeting.said(rank)) for rank in range(meeting.world)]
            if meeting.add("left", 1) == self._readers:
                meeting.forget()
        except RuntimeError:
            self._pending = None
            return
        if min(counts) < max(counts):
            self._say(_counts_in_words(counts))

    def _say(self, counts: str) -> None:
        if (self._who, counts) not in _said:
            _said.add((self._who, counts))
            warnings.warn(f"{self._who}: ranks have unequal numbers of steps in an epoch: {counts}. "
                          "DistributedDataParallel waits for ever for ranks whose loop has ended, unless the loop runs "
                          f"in `with model.join():`. {self._advice}", UserWarning, stacklevel=_level_of_the_loop())

    def watched(self, batches: Iterable[Any], count: int, kind: str) -> Iterator[Any]:
        """A loop's batches."""
        self.begin(count, kind)
        for batch in batches:
            yield batch
            self.look()
