"""Compares the loaders of torch.distributed's ranks, through the store that the ranks use to form their group.

    first loop over a loader that divides seeds -> Agreement: all ranks have the same seeds and options, or all get an
                                                   error
    first loop over a loader that does not      -> Steps: a warning if ranks have unequal numbers of steps

The store is used instead of a collective operation, because it needs no backend and no device. Comparisons are
numbered by group and by name: the first loader that a rank loops over is compared with the first of each other rank. In
a group without a store (MPI), nothing is compared.

Errors: Agreement.reach raises ValueError; Steps only warns.
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

from graphwire._base import arrays as _arrays
from graphwire._base.caller import level_of_the_caller

WAIT_SECONDS = 25.0  # how long the other ranks have to begin their loops; then every rank knows the result within 30 s
LEAVE_SECONDS = 3.0  # how long they have to read the result, before an error ends the process that has the store
POLL_SECONDS = (0.001, 0.05)  # the first pause between two reads of the store, and the longest pause
GAVE_UP = 1 << 32  # added to a count of ranks by a rank that has stopped waiting

WAY_OUT = ("A loader divides its seeds among all ranks. All ranks must give it the same seeds and options, and begin "
           "to loop over it together. Give it world=1 for seeds that are divided already, and for a loop of one rank "
           "only (an evaluation); give it world= and rank= for ranks that begin at different times")

# {id of a group: (the group, {name: the number of the next meeting})}. The next meeting removes groups that were freed.
# Not a WeakKeyDictionary: it runs Python code when a key is freed, and an interrupt during that code would be lost.
_numbers: dict[int, tuple[weakref.ref[Any], dict[str, Iterator[int]]]] = {}
_inherited: Any = None  # a weak reference to the group of the process that forked this one
_warned: set[tuple[str, str]] = set()


def _world_group() -> Any:
    torch = _arrays.torch_module()
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.group.WORLD


def _forked() -> None:
    global _inherited
    dist = sys.modules.get("torch.distributed")  # no import: the fork may have interrupted one in another thread
    if dist is not None and getattr(dist, "is_initialized", bool)():
        _inherited = weakref.ref(dist.group.WORLD)


os.register_at_fork(after_in_child=_forked)


def _in_worker() -> bool:
    """Whether this process is a worker of a DataLoader, whose group and store belong to its parent."""
    torch = _arrays.torch_module()
    return torch is not None and torch.utils.data.get_worker_info() is not None


class _Meeting:
    """One exchange between all ranks of a group: the text that each rank has sent, and the number of ranks that have.
    """

    def __init__(self, store: Any, prefix: str, world: int, rank: int):
        self.store, self._prefix, self.world, self.rank = store, prefix, world, rank

    def add(self, key: str, count: int) -> int:
        return int(self.store.add(self._prefix + key, count))

    def send(self, what: str) -> int:
        """Writes this rank's text. Returns the number of ranks that have written theirs."""
        self.store.set(f"{self._prefix}says/{self.rank}", what)
        self.add(f"at/{self.rank}", 1)
        return self.add("here", 1)

    def text_of(self, rank: int) -> str:
        """The text of a rank that has written it."""
        return bytes(self.store.get(f"{self._prefix}says/{rank}")).decode()

    def missing(self) -> list[int]:
        return [rank for rank in range(self.world) if not self.add(f"at/{rank}", 0)]

    def wait(self, done: Callable[[], bool], until: float) -> bool:
        """Waits until done() is true, and then returns True. At the time `until` it gives up and returns False. It
        polls, because a wait within the store would block other threads' use of it, and signals in this thread."""
        pause, longest = POLL_SECONDS
        while not done():
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, longest)
        return True

    def forget(self, others: Iterable[str] = ()) -> None:
        """Deletes the meeting's keys. Called when no rank reads them any more."""
        keys = [f"{word}/{rank}" for rank in range(self.world) for word in ("says", "at")]
        with contextlib.suppress(RuntimeError):  # some stores cannot delete
            for key in [*keys, "here", "left", *others]:
                self.store.delete_key(self._prefix + key)


def _meetings_of(group: Any) -> dict[str, Iterator[int]]:
    for key in [key for key, (known, _) in _numbers.items() if known() is None]:
        del _numbers[key]
    return _numbers.setdefault(id(group), (weakref.ref(group), {}))[1]


def _meeting(group: Any, name: str) -> _Meeting | None:
    """The next meeting of this name; None if the group has one rank or no usable store, or belongs to the parent
    process."""
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
    """Remembers, for one loader, the group whose ranks have the same seeds and options."""

    def __init__(self) -> None:
        self._group: Any = None

    def reach(self, what: Mapping[str, Any]) -> None:
        """Compares `what` between all ranks, once for a group, in the ranks' first loops. If `what` differs, or a rank
        does not arrive, all ranks raise ValueError within 30 s. A rank that arrives later raises it too.

        what: {option: value}; "plan" is a digest, which covers what the other options do not.
        """
        group = _world_group()
        if group is None or (self._group is not None and self._group() is group):
            return
        meeting = _meeting(group, "loaders")
        if meeting is not None:
            try:
                _agree(meeting, json.dumps(what))
            except RuntimeError as error:  # raised by the store, if the process that has the store has ended
                raise ValueError(f"the ranks' loaders cannot be compared: {error}. {WAY_OUT}") from error
        self._group = weakref.ref(group)


def _agree(meeting: _Meeting, text: str) -> None:
    until = time.monotonic() + WAIT_SECONDS
    same = f"same/{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    meeting.add(same, 1)
    if not _all_here(meeting, meeting.send(text), until):
        raise ValueError(f"{_who_is_missing(meeting)}. {WAY_OUT}")
    if meeting.add(same, 0) == meeting.world:
        if _last_to_leave(meeting):
            meeting.forget([same])
        return
    difference = _difference(meeting, text)
    _last_to_leave(meeting)
    raise ValueError(f"{difference}. {WAY_OUT}")


def _last_to_leave(meeting: _Meeting) -> bool:
    """Rank 0, whose process may have the store, waits until the others have read all that they need. Returns whether
    this rank is rank 0 and all others have finished reading."""
    if meeting.rank == 0:
        return meeting.wait(lambda: meeting.add("left", 0) == meeting.world - 1, time.monotonic() + LEAVE_SECONDS)
    with contextlib.suppress(RuntimeError):  # no answer comes if rank 0 has read the count and ended
        meeting.add("left", 1)
    return False


def _all_here(meeting: _Meeting, here: int, until: float) -> bool:
    """Waits for all ranks. Returns whether all have arrived.

    A rank whose wait times out adds GAVE_UP to the count, and then all ranks give up. The last rank may arrive at the
    same moment. Then the second of these two ranks to change the count undoes its change. While the count has both
    changes, the other ranks read it again.
    """
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
    """Describes the first difference between this rank's loader and another rank's."""
    other, theirs = next((rank, sent) for rank in range(meeting.world) if (sent := meeting.text_of(rank)) != text)
    one, two = json.loads(text), json.loads(theirs)
    found = [f"{name} is {one[name]!r} and {two[name]!r}" for name in one if name != "plan" and one[name] != two[name]]
    return (f"the loaders of ranks {meeting.rank} and {other} differ: "
            f"{', '.join(found) or 'they have different seeds, in equal number'}")


# --- Unequal steps. ---


def _ranks_in_words(ranks: list[int], most: int = 8) -> str:
    words = ", ".join(map(str, ranks[:most])) + (f" and {len(ranks) - most} more" if len(ranks) > most else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {words}"


def _counts_in_words(counts: list[int]) -> str:
    """Lists the numbers of steps, and the ranks that have each number."""
    by_count: dict[int, list[int]] = {}
    for rank, count in enumerate(counts):
        by_count.setdefault(count, []).append(rank)
    return ", ".join(f"{count} step{'' if count == 1 else 's'} on {_ranks_in_words(ranks)}"
                     for count, ranks in sorted(by_count.items(), reverse=True)[:8])


class Steps:
    """Warns once if the ranks' loops have unequal numbers of steps. A rank that averages gradients would wait for ever
    for a rank whose loop has ended. Loops that record no gradients are not compared.

    No rank waits. The rank that begins its loop last knows all numbers before its first step. Rank 0 reads the store
    before each of its steps, until it knows them too.

    who: the package that the loader belongs to, for the warning. advice: how to get equal steps.
    """

    def __init__(self, who: str, advice: str):
        self._who, self._advice = who, advice
        self._group: Any = None
        self._pending: _Meeting | None = None
        self._readers = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_group": None, "_pending": None}  # these belong to this process

    def begin(self, count: int, kind: str) -> None:
        """Call it when a loop of `count` steps begins. Sends the number once for each group. kind: a text that is equal
        for the corresponding loaders of all ranks."""
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
            last = meeting.send(str(count)) == meeting.world
        except RuntimeError:  # the store is gone, and no comparison is possible
            return
        if last or meeting.rank == 0:
            self._pending, self._readers = meeting, 1 if last and meeting.rank == 0 else 2
            self.look()

    def look(self) -> None:
        """Call it before each further step. Warns as soon as the numbers of all ranks are known and unequal."""
        meeting = self._pending
        if meeting is None:
            return
        try:
            if meeting.add("here", 0) < meeting.world:
                return
            self._pending = None
            counts = [int(meeting.text_of(rank)) for rank in range(meeting.world)]
            if meeting.add("left", 1) == self._readers:
                meeting.forget()
        except RuntimeError:
            self._pending = None
            return
        if min(counts) < max(counts):
            self._warn(_counts_in_words(counts))

    def _warn(self, counts: str) -> None:
        if (self._who, counts) not in _warned:
            _warned.add((self._who, counts))
            warnings.warn(f"{self._who}: ranks have unequal numbers of steps in an epoch: {counts}. "
                          "DistributedDataParallel waits for ever for ranks whose loop has ended, unless the loop runs "
                          f"in `with model.join():`. {self._advice}", UserWarning, stacklevel=level_of_the_caller())
