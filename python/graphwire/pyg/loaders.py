"""PyTorch Geometric's NodeLoader and LinkLoader, for several ranks and several loops at once.

    a loop begins -> it gets workers that no other loop uses -> the ranks exchange their numbers of batches
        -> PyG's batches

The loaders do not divide seeds among ranks. input_nodes and edge_label_index are one rank's share, or a
DistributedSampler divides them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import reprlib
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Callable

import torch
import torch_geometric.loader as pyg

from graphwire._base import checks
from graphwire._base.eager import eager
from graphwire._base.keywords import keywords
from graphwire._base.native import DeadlineError, PeerError
from graphwire._graph.held_out import pair_of
from graphwire._train.loops import END, Loop, keeps
from graphwire._train.ranks import Steps
from graphwire.pyg.attempts import Attempt, Collates
from graphwire.pyg.input_nodes import parts_of as parts_of_nodes
from graphwire.pyg.links import parts_of as parts_of_links
from graphwire.pyg.original_ids import OriginalIds
from graphwire.pyg.sampler import NeighborSampler
from graphwire.pyg.stores import FeatureStore


class Epoch(Loop):
    """The iterator of a loop over a DataLoader: counts its batches, for its state and for the other ranks. batches: the
    iterator of an epoch, which may return Attempts."""

    def __init__(self, loader: Any, batches: Iterator[Any], state: dict[str, Any]):
        super().__init__()
        self._loader, self._batches, self._state = loader, batches, state
        self._before = 0  # batches that are dropped before the first one of the loop
        self._attempt: Attempt | None = None  # of the next batch
        self._error: BaseException | None = None  # of the batch before
        self._watched = self._stuck = False
        try:
            self._count: int | None = len(loader)
        except TypeError:  # the sampler does not know its length
            self._count = None

    def forward(self, step: int) -> None:
        """Drops batches, so that the loop begins at this step. If a server is lost, the first call goes on with it."""
        self._state["step"] = self._before = step
        with contextlib.suppress(PeerError, DeadlineError):
            self._drop()

    def _drop(self) -> None:
        while self._before:
            try:
                if self._next() is END:
                    self._before = 0
                    return
            except Exception as error:
                if keeps(error):
                    raise
            self._before, self._attempt = self._before - 1, None

    def _make(self) -> Any:
        steps = self._loader._steps
        if self._watched:
            steps.look()
        elif self._count is not None:
            kind = f"{type(self._loader).__name__}/{self._loader.batch_size}/{int(self._loader.drop_last)}"
            steps.begin(self._count - self._state["step"], kind)
            self._watched = True
        self._drop()
        try:
            return self._next()
        except Exception as error:
            self._error = error
            raise

    def _next(self) -> Any:
        if self._attempt is None:
            try:
                found = next(self._batches)
            except StopIteration:
                return self._stopped()
            if type(found) is not Attempt:
                return found
            self._attempt = found
        return self._attempt.batch(self._loader)

    def _stopped(self) -> Any:
        """The end; or, if batches are missing after an error, the error: a sampler has raised it, or a worker died."""
        if self._error is None or self._count is None or self._state["step"] >= self._count:
            return END
        self._stuck = True
        raise self._error

    def _skip(self) -> None:
        if not self._stuck:
            self._took()

    def _took(self) -> None:
        self._attempt, self._state["step"] = None, self._state["step"] + 1

    def _end(self) -> None:
        self._batches, self._error = iter(()), None
        if self._loader._state is self._state:
            self._loader._state = None

    def close(self) -> None:
        """Ends the loop, as close() of a generator."""
        self.is_over = True
        self._batches, self._attempt = iter(()), None


@keywords
class Loops:
    """Makes each loop over a DataLoader an epoch of its own, compares the ranks' numbers of batches, and continues from
    a state. options: arguments of PyG's loader and of torch's DataLoader."""

    def __init__(self, data: Any, sampler: Any, options: Mapping[str, Any]):
        super().__init__(data, sampler, **options)  # type: ignore[call-arg]
        self._begin_loops()

    def _begin_loops(self) -> None:
        """Sets the state of loops."""
        self._steps = Steps("graphwire.pyg", "drop_last=True helps if the shares have equally many whole batches; "
                            "docs/PYG.md, Several ranks.")
        self._workers_of: Any = None  # a weak reference to the loop that uses the persistent workers
        self._coming = 0  # the epoch that the next loop begins
        self._start: dict[str, Any] | None = None  # the state that the next loop continues from
        self._state: dict[str, Any] | None = None  # the state of the loop that began last, while it is under way

    def __getstate__(self) -> dict[str, Any]:
        """For a spawned worker: the state of loops belongs to this process and is left out."""
        state = getattr(super(), "__getstate__", lambda: self.__dict__)()
        return {**state, "_workers_of": None, "_iterator": None}

    @eager
    def __iter__(self) -> Iterator[Any]:
        other = None if self._workers_of is None else self._workers_of()
        if other is not None and not other.is_over:
            return self._loop(self._get_iterator)  # type: ignore[attr-defined]
        batches = self._loop(super().__iter__)  # type: ignore[misc]
        self._workers_of = weakref.ref(batches)
        return batches

    def _loop(self, begin: Callable[[], Iterator[Any]]) -> Epoch:
        start, generator = self._start, self._generator()
        if start is not None:
            torch.set_rng_state(start["torch"])
            if generator is not None:
                generator.set_state(start["generator"])
        state = self._position(generator)
        loop = Epoch(self, begin(), state)
        if start is not None:
            loop.forward(start["step"])
        self._coming, self._start, self._state = state["epoch"] + 1, None, state
        return loop

    def _generator(self) -> Any:
        return getattr(self, "generator", None)

    def _position(self, generator: Any) -> dict[str, Any]:
        """The state of a loop that begins now."""
        return {"epoch": self._coming, "step": 0, "torch": torch.get_rng_state(),
                "generator": None if generator is None else generator.get_state()}

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next loop's epoch, and calls set_epoch of the sampler if it has it, as torch's
        DistributedSampler does. Torch's random numbers, and not the epoch, decide the order of other loaders. A
        position of load_state_dict() in this epoch stays."""
        self._coming, self._state = checks.integer("epoch", epoch, 0, checks.U64), None
        if self._start is not None and self._start["epoch"] != epoch:
            self._start = None
        if hasattr(getattr(self, "sampler", None), "set_epoch"):
            self.sampler.set_epoch(epoch)  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch: {"epoch", "step", "torch", "generator"}. The last two are the states of
        torch's random numbers, and of the loader's generator, when the loop began. With several loops under way, the
        position is that of the loop that began last."""
        return dict(self._state or self._start or self._position(self._generator()))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next loop continue from a result of state_dict(): its order is that of the saved loop, and it
        samples and drops the batches before the position. The batches after it are the same too, if workers sample
        them, or if nothing else draws torch's random numbers during a loop. Raises TypeError and ValueError for other
        values."""
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a result of state_dict(), not {type(state).__name__}")
        missing = [name for name in ("epoch", "step", "torch", "generator") if name not in state]
        if missing:
            raise ValueError(f"state must be a result of state_dict(): this one has no {', '.join(missing)}")
        if (state["generator"] is None) != (self._generator() is None):
            raise ValueError("state: the loader that it is of " + (
                "had no generator" if state["generator"] is None else "had a generator"))
        for name in ("epoch", "step"):
            checks.integer(f"state[{name!r}]", state[name], 0, checks.U64)
        self._start = dict(state)
        self.set_epoch(state["epoch"])

    def __repr__(self) -> str:
        """One line. It reads nothing from servers."""
        sampler = getattr(self, "node_sampler", None) or getattr(self, "link_sampler", None)
        seeds, counts = len(self.dataset), getattr(sampler, "num_neighbors", None)  # type: ignore[attr-defined]
        fanouts = "" if counts is None else f", fanouts {reprlib.repr(getattr(counts, 'values', counts))}"
        return (f"<graphwire.pyg.{type(self).__name__}: {seeds} seeds{fanouts}, batches of "
                f"{self.batch_size}, {self.num_workers} workers>")  # type: ignore[attr-defined]


class TorchLoops(Loops):
    """Loops whose batches torch's own iterators make, with or without workers."""

    collate_fn: Any

    def _get_iterator(self) -> Any:
        """PyG's iterator, of Attempts."""
        asks = object.__new__(type(self))  # a copy, because other threads may begin loops too
        asks.__dict__.update(self.__dict__, collate_fn=Collates(self.collate_fn), filter_fn=lambda attempt: attempt)
        found = super(TorchLoops, asks)._get_iterator()  # type: ignore[misc]
        _keep_queues(getattr(found, "iterator", found))
        return found


_queues: dict[object, tuple[Any, Any]] = {}  # of iterators that are alive, with the reference that removes them


def _keep_queues(iterator: Any) -> None:
    """Keeps the queues of torch's iterator to its workers as long as the iterator. Loaders of PyG refer to themselves,
    and so do torch's errors of workers. Garbage collection, which deletes them, would close the queues before the
    iterator writes the workers' end to them, and the iterator would wait 5 s for each worker."""
    key = object()
    _queues[key] = (getattr(iterator, "_index_queues", ()),
                    weakref.ref(iterator, functools.partial(_queues.pop, key)))  # no Python, which an interrupt may end


def _not_default(call: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a call that have other values than by default. PyG's and torch's defaults are the same, and older
    versions of both lack some of the options."""
    options = inspect.signature(call).parameters.values()
    return {one.name: given[one.name] for one in options
            if one.default is not one.empty and given[one.name] is not one.default}


def _ids_of(data: Any, sampler: Any) -> OriginalIds | None:
    """The ids of the graph that a loader samples; None if it has a sampler and stores of another package."""
    store = data[0] if isinstance(data, (list, tuple)) and len(data) == 2 else None
    return next((one._ids for one in (sampler, store) if isinstance(one, (NeighborSampler, FeatureStore))), None)


def _nodes(ids: OriginalIds | None, input_nodes: Any, input_id: Any) -> tuple[Any, Any]:
    """(input_nodes, input_id) as PyG takes them: ids for masks and features of the graph, which PyG would misread."""
    named, kind, given = parts_of_nodes(input_nodes)
    if ids is None or given is None:
        return input_nodes, input_id
    found, _, masked = ids.named(ids.graph.ntypes[ids.graph.ntype_number(kind)], given, "input_nodes")
    input_id = None if input_id is None else torch.as_tensor(input_id)
    if input_id is not None and len(input_id) != len(found):
        raise ValueError(f"input_id: {len(input_id)} values for {len(found)} input_nodes")
    return (kind, found) if named else found, found if masked and input_id is None else input_id


def _links(ids: OriginalIds | None, edge_label_index: Any) -> Any:
    """edge_label_index as PyG takes it, with ends of int64."""
    _, kind, given = parts_of_links(edge_label_index)
    if ids is None or given is None:
        return edge_label_index
    words = tuple(kind.split(":")) if isinstance(kind, str) else () if kind is None else tuple(kind)
    ntypes = ids.graph.ntypes
    ends = (words[0], words[-1]) if len(words) > 1 else (ntypes[0], ntypes[0])
    ends = ends if set(ends) <= set(ntypes) else (ntypes[0], ntypes[0])  # PyG refuses the type
    pair = [ids.named(ntype, some, "edge_label_index")[0] for ntype, some in zip(
        ends, pair_of(given, "edge_label_index"))]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(f"edge_label_index: {len(pair[0])} sources and {len(pair[1])} destinations")
    return torch.stack(pair) if given is edge_label_index else (kind, torch.stack(pair))


@keywords
class NodeLoader(TorchLoops, pyg.NodeLoader):  # type: ignore[misc]
    """torch_geometric.loader.NodeLoader, with its arguments and batches, and those of torch's DataLoader.

    It does not divide input_nodes among ranks, as graphwire.NodeLoader does. Give each rank its own nodes, of
    graph.split(…), or pass sampler=DistributedSampler.

    If ranks have unequal numbers of batches, a UserWarning reports it once, when the first loop that records gradients
    begins: DistributedDataParallel would wait for ever.

    Each loop is an epoch of its own, also while other loops run and with persistent_workers. PyG's own loops would
    share an epoch then.
    """

    def __init__(self, data: Any, node_sampler: Any, input_nodes: Any = None, input_time: Any = None,
                 transform: Any = None, transform_sampler_output: Any = None, filter_per_worker: bool | None = None,
                 custom_cls: Any = None, input_id: Any = None, *, batch_size: int | None = 1,
                 shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
                 multiprocessing_context: Any = None, generator: Any = None, prefetch_factor: int | None = None,
                 persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True):
        input_nodes, input_id = _nodes(_ids_of(data, node_sampler), input_nodes, input_id)
        super().__init__(data, node_sampler, _not_default(NodeLoader.__init__, locals()))


@keywords
class LinkLoader(TorchLoops, pyg.LinkLoader):  # type: ignore[misc]
    """torch_geometric.loader.LinkLoader, with its arguments and batches, and those of torch's DataLoader. Ranks,
    warnings and loops are as NodeLoader's, for edge_label_index."""

    def __init__(self, data: Any, link_sampler: Any, edge_label_index: Any = None, edge_label: Any = None,
                 edge_label_time: Any = None, neg_sampling: Any = None, neg_sampling_ratio: Any = None,
                 transform: Any = None, transform_sampler_output: Any = None, filter_per_worker: bool | None = None,
                 custom_cls: Any = None, input_id: Any = None, *, batch_size: int | None = 1,
                 shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
                 multiprocessing_context: Any = None, generator: Any = None, prefetch_factor: int | None = None,
                 persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True):
        edge_label_index = _links(_ids_of(data, link_sampler), edge_label_index)
        super().__init__(data, link_sampler, _not_default(LinkLoader.__init__, locals()))
