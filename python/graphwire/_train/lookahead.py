"""Look-ahead of loaders whose batches Python orders: a row that was fetched from a server serves several batches.

    checked(depth, lookahead, cache_bytes, cache_batches) -> Options, of every loader
    Lookahead(client, fetches, options) -> begin(…): an epoch, whose batches are 0, 1, …
        -> start(number, …), or gather(number, …), for each of them, or skip(number)

A loop has a Lookahead of its own while it is under way: the numbers are those of its batches. When it is over, the next
loop takes it, with the rows that it keeps.

Errors: TypeError and InvalidError for options; those of gw_lookahead_begin and of gw_lookahead_sample_start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, NamedTuple, Union

import numpy as np

from graphwire._base import checks
from graphwire._base.arrays import Lease, ids_pointer, pointer
from graphwire._base.native import check, ffi, finish, lib
from graphwire._train.minibatch import Spec

DEPTH_MAX = 256
Batch = tuple[int, int, Any]  # the seed and the stream of its draws; its seeds, struct gw_seeds[]


class Options(NamedTuple):
    """What NodeLoader documents, checked."""

    depth: int
    lookahead: int
    cache_bytes: int
    cache_batches: int

    def asked(self) -> list[str]:
        """The names of the options that ask for something."""
        return [name for name, usual in (("lookahead", 1), ("cache_bytes", 0)) if getattr(self, name) != usual]


def checked(depth: Any, lookahead: Any, cache_bytes: Union[int, str], cache_batches: Any) -> Options:
    depth = checks.integer("depth", depth, 1, DEPTH_MAX)
    options = Options(depth, checks.integer("lookahead", lookahead, 1, DEPTH_MAX),
                      checks.size("cache_bytes", cache_bytes),
                      checks.integer("cache_batches", cache_batches, 0, checks.U64))
    if options.lookahead > depth:
        raise checks.invalid(f"lookahead={options.lookahead} needs as many batches ahead: depth is {depth}")
    if not options.cache_bytes:
        checks.unused("cache_bytes is 0", cache_batches=options.cache_batches or None)
    return options


class Lookahead:
    """Owns a gw_lookahead. fetches: those of all batches, struct gw_fetch[]. spec: the description of the batches that
    start() starts, which has these fetches; None: batches are gathers."""

    def __init__(self, client: Any, fetches: Any, count: int, options: Options, spec: Spec | None = None):
        self.spec = spec
        self._held = client.lend("struct held_lookahead *", lib.lookahead_end)
        given = ffi.new("struct gw_lookahead_options *", {
            "fetches": fetches, "fetch_count": count, "lookahead": options.lookahead,
            "cache_bytes": options.cache_bytes})
        check(lib.gw_lookahead_open(client.pointer, given, ffi.addressof(self._held, "lookahead")))

    @classmethod
    def of_spec(cls, client: Any, spec: Spec, options: Options) -> Lookahead:
        return cls(client, spec.pointer.fetches, spec.pointer.fetch_count, options, spec)

    @property
    def is_idle(self) -> bool:
        """Whether no batch is under way."""
        return bool(lib.gw_lookahead_is_idle(self._held.lookahead))

    def begin(self, batches: Sequence[Batch] = ()) -> None:
        """Begins an epoch. batches: those that are counted, for the rows to keep. A signal's exception ends the call,
        which can be repeated."""
        given = ffi.new("struct gw_ordered_batch[]", len(batches))
        for one, (seed, stream, lists) in zip(given, batches):
            one.seed, one.stream, one.lists, one.list_count = seed, stream, lists, len(lists)
        spec = ffi.NULL if self.spec is None else self.spec.pointer
        finish(lambda ticket: lib.gw_lookahead_begin(self._held.lookahead, spec, given, len(given), ticket))

    def start(self, number: int, seed: int, stream: int, lists: Any, lease: Lease) -> None:
        """Starts the sampling of a batch into the lease."""
        assert self.spec is not None
        one = ffi.new("struct gw_ordered_batch *",
                      {"seed": seed, "stream": stream, "lists": lists, "list_count": len(lists)})
        check(lib.gw_lookahead_sample_start(self._held.lookahead, number, self.spec.pointer, one, lease.cell,
                                            lease.ticket))

    def gather(self, number: int, fetch: int, ids: np.ndarray, out: np.ndarray, goes_on: Callable[[], bool]) -> None:
        """Reads the rows of a fetch into memory. ids: int64. goes_on: whether the batch is still wanted; else the call
        raises ClosedError, as also when the process ends: the batches before it may never come then."""
        finish(partial(lib.gw_lookahead_gather_start, self._held.lookahead, number, fetch, ids_pointer(ids), len(ids),
                       pointer(out)), goes_on=goes_on)

    def skip(self, number: int) -> None:
        """The batch of this number needs no more rows. In the child of a fork, whose batches are others: nothing."""
        lib.gw_lookahead_pass(self._held.lookahead, number)
