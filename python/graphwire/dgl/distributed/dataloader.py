"""DistDataLoader: divides ids into batches, and calls the script's function for each batch.

ids -> a batch of ids -> collate_fn, in a sampling thread or in the caller's -> the mini-batch, in order

DGL_NUM_SAMPLER threads (launch.py --num_samplers) call the function ahead. Sampling and fetching run without the GIL,
and so proceed while the trainer computes. Without such threads, the loader calls the function when the trainer requests
the batch.

A loader does not divide ids among ranks: its ids are this trainer's share, of node_split or edge_split. The shares may
differ by one id, and so give unequal numbers of steps. The ranks compare these numbers, and warn
(graphwire/_train/ranks.py).

Errors: TypeError and ValueError for arguments; those of the function.
"""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Callable
from weakref import ref

import numpy as np
import torch

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._base.native import Call, Workers
from graphwire._train.lookahead import DEPTH_MAX, checked
from graphwire._train.loops import END, Loop, repeatable
from graphwire._train.ranks import Steps
from graphwire.dgl.distributed.ahead import Rows
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.own_items import OwnItems
from graphwire.dgl.id_arrays import ids_tensor
from graphwire.dgl.seeding import seeds

_EPOCH_MAX = 2**16 - 1  # an epoch has this many numbers in the streams of sampling


class Pairs:
    """The pairs (type, id) of {type: ids}, in the order of types. A pair is made only when a batch needs it."""

    def __init__(self, ids: Mapping[Any, Any]):
        self._kinds = list(ids)
        every = [ids_tensor(some, None, "dataset") for some in ids.values()]
        self._ids = torch.cat([*every, torch.empty(0, dtype=torch.int64)])
        self._ends = torch.tensor([len(some) for some in every], dtype=torch.int64).cumsum(0)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.at(torch.tensor([range(len(self))[number]]))[0]

    def at(self, numbers: torch.Tensor) -> list[tuple[Any, int]]:
        """The pairs at the given places."""
        kinds = torch.searchsorted(self._ends, numbers, right=True).tolist()
        return [(self._kinds[kind], one) for kind, one in zip(kinds, self._ids[numbers].tolist())]


def _ids(dataset: Any) -> torch.Tensor:
    """Ids as int64. Rows of ids, such as pairs of nodes, are items too. A mask raises TypeError, because its type of
    nodes or edges is not known here."""
    if getattr(dataset, "ndim", 1) == 1:
        return ids_tensor(dataset, None, "dataset")
    rows = torch.as_tensor(dataset)
    if rows.dtype not in (torch.int16, torch.int32, torch.int64):
        raise TypeError(f"dataset: ids are integers, not {rows.dtype}")
    return rows.to(torch.int64).cpu()


def _goes_on(epoch: Any) -> Callable[[], bool]:
    """Whether the object of a weak reference exists."""
    return lambda: epoch() is not None


class Epoch(Loop):
    """The iterator of one epoch, from its state on, which moves with it. It has the loader's attributes, and iter() of
    an epoch that has given all its batches begins the next one, because in DGL the iterator is the loader itself."""

    def __init__(self, loader: DistDataLoader, state: dict[str, Any]):
        super().__init__()
        self._loader, self._state = loader, state
        self._order: torch.Tensor | None = None
        self._rows: Rows | None = None
        self._first = 0  # the step of the batch 0 of these rows
        self._calls: dict[int, Call] = {}  # of the sampling threads, by step

    def __iter__(self) -> Any:
        return self if self._state["step"] < self._loader.expected_idxs else iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def _make(self) -> Any:
        loader, step = self._loader, self._state["step"]
        if self._order is None:
            kind = f"{type(loader).__name__}/{loader.batch_size}/{int(loader.shuffle)}/{int(loader.drop_last)}"
            loader._steps.begin(max(0, loader.expected_idxs - step), kind)
            if loader.lookahead > 1:
                self._rows, self._first = Rows(loader._columns(), loader.lookahead, _goes_on(ref(self))), step
            self._order = loader._order(self._state)
        else:
            loader._steps.look()
        if step >= loader.expected_idxs:
            return END
        if not loader.num_workers:
            return repeatable(partial(loader._made, self._state["epoch"], step, self._order, self._rows, self._first))
        return self._from_threads(step, self._order)

    def _from_threads(self, step: int, order: torch.Tensor) -> Any:
        loader, calls, epoch, going = self._loader, self._calls, self._state["epoch"], ref(self)
        rows, first = self._rows, self._first

        def made(number: int) -> Any:
            if going() is not None:
                return loader._made(epoch, number, order, rows, first)
            return None if rows is None else rows.skip(number - first)

        for number in [number for number in calls if number < step]:
            del calls[number]
        for number in range(step, min(step + loader.queue_size, loader.expected_idxs)):
            if number not in calls:
                calls[number] = loader._workers().submit(partial(made, number))
        try:
            return calls[step].wait()
        except BaseException:
            if calls[step].has_failed:
                del calls[step]
            raise

    def _took(self) -> None:
        self._state["step"] += 1

    _skip = _took

    def _end(self) -> None:
        if self._loader._state is self._state:
            self._loader._state = None


@keywords
class DistDataLoader(OwnItems):
    """dgl.distributed.DistDataLoader.

    dataset: ids, or a list of (type, id), of this trainer only. They are not divided among the ranks. A class that
        overrides _next_data() may pass anything with a length (own_items.py).
    batch_size: the number of ids in a batch.
    shuffle: use a new order in each epoch.
    collate_fn: gets a list of ids or pairs, with the ids as ints, and returns the batch; None: the batch is the list.
    drop_last: drop a last batch that is smaller.
    queue_size: the number of batches to make ahead.
    num_workers, pin_memory, use_uva, persistent_workers: ignored; the launcher's --num_samplers sets the workers.

    iter(loader) begins a new epoch, independent of other loops; the iterator has the loader's attributes, and iter() of
    an iterator that has given all batches begins a new epoch too. After torch.manual_seed or dgl.seed, epochs are
    counted from 0 again, so that the same seed repeats a loop. next(loader) continues the epoch that began last. In
    the first loop that records gradients, a UserWarning reports once if ranks of torch.distributed have unequal numbers
    of steps: DistributedDataParallel would wait for ever.

    Raises TypeError for another dataset, also for a mask and for {type: ids}; TypeError and ValueError for other
    arguments.
    """

    lookahead = 1  # of DistNodeDataLoader and DistEdgeDataLoader
    _columns: Callable[[], list[Any]]

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False,
                 collate_fn: Callable[[list[Any]], Any] | None = None, drop_last: bool = False,
                 queue_size: int | None = None, num_workers: Any = None, pin_memory: Any = None, use_uva: Any = None,
                 persistent_workers: Any = None):
        self.dataset, self.batch_size = dataset, checks.integer("batch_size", batch_size, 1)
        self.shuffle, self.drop_last = checks.flag("shuffle", shuffle), checks.flag("drop_last", drop_last)
        self.collate_fn = collate_fn or (lambda items: items)
        self.num_workers = context.samplers
        ahead = 0 if queue_size is None else checks.integer("queue_size", queue_size)
        self.queue_size = ahead or max(4, 4 * self.num_workers)
        self._number, self._seeded = next(seeds.loaders), seeds.number
        self._coming = 0  # the epoch that the next loop begins
        self._start: dict[str, Any] | None = None  # the state that the next loop continues from
        self._state: dict[str, Any] | None = None  # the state of the loop that began last, while it is under way
        self._steps = Steps("graphwire.dgl", "drop_last=True helps if the shares have equally many whole batches; "
                            "docs/DGL.md, Unequal steps.")
        self._pool: Workers | None = None
        self._batches: Epoch | None = None
        super().__init__(dataset)
        self._typed = dataset if isinstance(dataset, Pairs) else None
        self._pairs, self._ids = None, None
        if self.is_own:
            return
        if isinstance(dataset, Mapping):
            raise TypeError("dataset: ids, or a list of (type, id); DistNodeDataLoader and DistEdgeDataLoader take "
                            "{type: ids}, and so does a class that overrides _next_data()")
        pairs = len(dataset) and not isinstance(dataset, (torch.Tensor, np.ndarray, Pairs)) and isinstance(
            dataset[0], tuple)
        if pairs:
            self._pairs = [(kind, checks.integer("dataset", item, 0, 2**63 - 1)) for kind, item in dataset]
        elif self._typed is None:
            self._ids = _ids(dataset)

    def _look(self, lookahead: Any, columns: Callable[[], list[Any]]) -> None:
        """Takes the option lookahead. columns(): those whose rows the sampler fetches."""
        options = checked(min(self.queue_size, DEPTH_MAX), lookahead, 0, 0)
        if options.asked() and not columns():
            raise checks.invalid("lookahead: the sampler fetches no rows: name features of nodes, "
                                 "graphwire.dgl's NeighborSampler(…, prefetch_node_feats=[\"feat\"])")
        self.lookahead, self._columns = options.lookahead, columns

    def __len__(self) -> int:
        return self.expected_idxs

    def _items(self, chosen: torch.Tensor) -> list[Any]:
        """The items at places of the dataset."""
        if self._typed is not None:
            return self._typed.at(chosen)
        if self._pairs is not None:
            return [self._pairs[i] for i in chosen.tolist()]
        if self._ids is not None:
            found: list[int] = self._ids[chosen].tolist()
            return found
        return [self.dataset[i] for i in chosen.tolist()]

    def _collate(self, epoch: int, step: int, items: list[Any]) -> Any:
        """Makes one batch. Its sampling depends on the loader, epoch and step, and not on the thread."""
        context.at(((self._number << 16) + epoch << 24) + step)
        try:
            return self.collate_fn(items)
        finally:
            context.at(None)

    def _made(self, epoch: int, step: int, order: torch.Tensor, rows: Rows | None, first: int) -> Any:
        """rows: of the epoch's look-ahead, whose batch 0 has the step `first`."""
        places = order[step * self.batch_size:(step + 1) * self.batch_size]
        with contextlib.nullcontext() if rows is None else rows.batch(step - first):
            return self._collate(epoch, step, self._items(places))

    def _order(self, state: dict[str, Any]) -> torch.Tensor:
        """The order of an epoch: of the state's random numbers if it has them, else of torch's, which it notes."""
        if not self.shuffle:
            return torch.arange(len(self.dataset))
        if state["order"] is None:
            state["order"] = torch.get_rng_state()
            return torch.randperm(len(self.dataset))
        generator = torch.Generator()
        generator.set_state(state["order"])
        return torch.randperm(len(self.dataset), generator=generator)

    def _workers(self) -> Workers:
        """The sampling threads, which the first batch starts."""
        if self._pool is None:
            self._pool = Workers(self.num_workers)
        return self._pool

    def __iter__(self) -> Iterator[Any]:
        if self.is_own:
            self.begin()
            return self
        if self._seeded != seeds.number:  # the seed was set again since the last loop
            self._coming, self._seeded = 0, seeds.number
        state = self._start or {"epoch": self._coming, "step": 0, "order": None}
        self._start, self._state, self._coming = None, state, state["epoch"] + 1
        self._batches = Epoch(self, state)
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next loop's epoch, which decides what it samples. Torch's random numbers decide the
        order. A position of load_state_dict() in this epoch stays. Raises TypeError and InvalidError."""
        self._coming, self._state = checks.integer("epoch", epoch, 0, _EPOCH_MAX), None
        self._seeded = seeds.number
        if self._start is not None and self._start["epoch"] != epoch:
            self._start = None

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch: {"epoch", "step", "order"}. order: the state of torch's random numbers
        from which the epoch's order was made; None without shuffle, and before the loop. With several loops under way,
        the position is that of the loop that began last."""
        return dict(self._state or self._start or {"epoch": self._coming, "step": 0, "order": None})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next loop continue from a result of state_dict(). It has the same batches as the saved loop, if
        torch.manual_seed is the same and the script has made its loaders in the same order. Raises TypeError and
        ValueError for other values."""
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a result of state_dict(), not {type(state).__name__}")
        missing = [name for name in ("epoch", "step", "order") if name not in state]
        if missing:
            raise ValueError(f"state must be a result of state_dict(): this one has no {', '.join(missing)}")
        checks.integer("state['epoch']", state["epoch"], 0, _EPOCH_MAX)
        checks.integer("state['step']", state["step"], 0, checks.U32)
        self._start = dict(state)
        self.set_epoch(state["epoch"])

    def __repr__(self) -> str:
        """One line. It reads nothing from servers."""
        fanouts = getattr(self, "fanouts", None)
        return (f"<graphwire.dgl.{type(self).__name__}: {len(self.dataset)} ids"
                f"{'' if fanouts is None else f', fanouts {reprlib.repr(fanouts)}'}, batches of {self.batch_size}>")

    def __getstate__(self) -> dict[str, Any]:
        """Loops and threads belong to this process, and are not pickled."""
        return {**self.__dict__, "_batches": None, "_pool": None, "_state": None, **self.pickled()}

    def __next__(self) -> Any:
        if self.is_own:
            return self.next_own()
        if self._batches is None:
            iter(self)
        assert self._batches is not None
        return next(self._batches)
