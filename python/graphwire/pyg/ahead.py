"""Batches that the library's threads sample ahead: the engine of graphwire.pyg's NeighborLoader and LinkNeighborLoader.

    torch's samplers order the seeds -> the ids of a batch's seeds -> gw_sample_lists_start, a few batches ahead
        -> the caller asks for a batch -> wait for it -> SamplerOutput -> Data or HeteroData
    with look-ahead, gw_lookahead_sample_start; with rows to keep, the epoch's batches are counted before the first one

torch's DataLoader decides the order of the seeds, with its samplers and its random numbers, as in PyTorch Geometric. A
loop draws one number from them when it begins, as a loop of torch does. That number determines the draws of neighbours
and of negatives, so that a loop that samples ahead draws nothing else from torch.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch
from torch.utils.data import DataLoader

from graphwire._base.arrays import Lease, ids_array
from graphwire._base.checks import as_integer
from graphwire._base.eager import eager
from graphwire._base.keywords import keywords, names_of_arguments, suggestion
from graphwire._base.native import Call, check, ffi, lib, wait
from graphwire._base.trace import traced
from graphwire._graph import time_ranges
from graphwire._train.lookahead import Batch, Lookahead, Options
from graphwire._train.loops import END, Loop, keeps, repeatable
from graphwire._train.minibatch import Spec
from graphwire._train.seeds import NodeSeeds
from graphwire.pyg import pinned
from graphwire.pyg.draws import Draws
from graphwire.pyg.fetched import Fetched, pointer
from graphwire.pyg.induced import Among, Induced
from graphwire.pyg.names import fill
from graphwire.pyg.options import OF_WORKERS
from graphwire.pyg.orders import check_known, index_batches
from graphwire.pyg.sampled import Output, Sampled, without
from graphwire.pyg.sampler import NeighborSampler
from graphwire.pyg.sources import Source, store_of


class Asked(NamedTuple):
    """The seeds of a batch. seeds: the graph's ids by type; times: theirs, or None. metadata: that of the output.
    slots: the place of the link that each seed belongs to, type after type; None: that of the seed."""

    seeds: dict[str, torch.Tensor]
    metadata: tuple[Any, ...]
    times: dict[str, torch.Tensor] | None = None
    slots: np.ndarray | None = None


def _are_ids(index: Any) -> bool:
    """Whether ids_array would return the same memory."""
    return (type(index) is torch.Tensor and index.dtype == torch.int64 and index.dim() == 1 and index.is_contiguous()
            and index.device.type == "cpu")


class _Started:
    """A batch under way: its rows, what is drawn, and what it was asked for. copied: the call that copies the rows to
    pinned memory. pid: the process that has started it."""

    __slots__ = ("asked", "copied", "draws", "fetched", "pid")

    def __init__(self, fetched: Fetched, draws: Draws, asked: Asked):
        self.fetched, self.draws, self.asked, self.pid = fetched, draws, asked, os.getpid()
        self.copied: Call | None = None

    @traced("wait for batch")
    def wait(self) -> Fetched:
        if self.copied is not None:
            self.copied.wait()
        else:
            wait(self.fetched.lease.ticket)
        return self.fetched


class _NoPlaces:
    """In the place of a batch's seeds: the error of the sampler that should order them."""

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error


class _Ahead(Loop):
    """The batches of one epoch. The batches under way are freed, and so cancelled, with it.

    A batch is known by its number. Its seeds stay until the caller has the batch, so that the batch can be started
    again. Transforms may have changed the arrays of a batch that has failed.
    """

    def __init__(self, loader: SamplesAhead):
        super().__init__()
        self._loader = loader
        self._indices = index_batches(loader, loader._ahead.cache_bytes > 0)
        self._seed = loader._random_number()
        self._generator = torch.Generator().manual_seed(self._seed)
        self._at = 0  # the number of the next batch
        self._places: dict[int, Any] = {}  # of seeds, or _NoPlaces
        self._before: dict[int, torch.Tensor] = {}  # the state of the generator that the batch draws from
        self._started: dict[int, _Started] = {}
        self._pins = pinned.PinsAhead() if loader._pins() else None
        self._look: Lookahead | None = None
        self._first = 0  # the batch that has the number 0 in it
        self._looks: dict[int, tuple[Lookahead | None, int]] = {}  # of batches: theirs, and their number in it

    # --- Look-ahead. ---

    def _looking(self, number: int) -> tuple[Lookahead | None, int]:
        """The look-ahead of a batch that starts now, and its number there. The first batch of a loop begins an epoch;
        so does the first one with another spec."""
        loader = self._loader
        if not loader._ahead.asked():
            return None, 0
        spec = loader._there()[2]
        if self._look is None or self._look.spec is not spec:
            look = loader._take_look(self, spec)
            counted = list(self._counted(number)) if loader._ahead.cache_bytes else []
            look.begin([batch for _, batch in counted])
            self._look, self._first = look, number
        found = self._look, number - self._first
        before, place = self._looks.get(number, found)
        self._looks[number] = found
        if before is not None and before is not self._look:
            before.skip(place)
        return found

    def _counted(self, number: int) -> Iterator[tuple[Asked, Batch]]:
        """The batches of the epoch from this one on, as _start will start them; without those that it cannot. A batch
        points into the memory of what it is asked for."""
        most = self._loader._ahead.cache_batches or self._loader._places
        generator = torch.Generator()
        generator.set_state(self._before.get(number, self._generator.get_state()))
        here = [place for at, place in sorted(self._places.items()) if at >= number]
        for stream, place in enumerate([*here, *self._indices.coming(most)][:most], number):  # type: ignore[attr-defined]
            before = generator.get_state()
            try:
                asked, lists = self._loader._ask(place, generator)
                yield asked, (self._seed, stream, lists)
            except Exception as error:
                if keeps(error):
                    raise
                generator.set_state(before)

    # --- Batches. ---

    def _place(self, number: int) -> bool:
        """Whether the epoch has a batch of this number. Asks the sampler for its seeds, once."""
        if number not in self._places:
            try:
                self._places.update(zip((number,), self._indices))  # in C: no signal comes between
            except Exception as error:
                self._places[number] = _NoPlaces(error)
        return number in self._places

    def _start(self, number: int) -> None:
        place = self._places[number]
        if isinstance(place, _NoPlaces):
            if keeps(place.error):
                del self._places[number]
            raise place.error
        if isinstance(place, torch.Tensor):
            place = place.clone()  # a transform may change input_id
        look = self._looking(number)
        if not self._loader._draws_numbers:
            self._started[number] = self._loader._submit(place, self._seed, number, self._generator, look)
            return
        later = self._generator.get_state() if number in self._before else None
        before = self._before.setdefault(number, self._generator.get_state())
        try:
            self._generator.set_state(before)
            self._started[number] = self._loader._submit(place, self._seed, number, self._generator, look)
        except BaseException:
            self._generator.set_state(before if later is None else later)
            if later is None:
                del self._before[number]
            raise
        if later is not None:
            self._generator.set_state(later)

    def _start_ahead(self) -> None:
        """Starts further batches. What fails here is tried again in its turn, and fails in its turn."""
        for number in range(self._at + 1, self._at + self._loader._ahead.depth):
            if not self._place(number):
                break
            if number not in self._started:
                try:
                    self._start(number)
                except Exception:
                    break

    def _make(self) -> Any:
        for number in [number for number in self._places if number < self._at]:
            for known in (self._started, self._before, self._looks, self._places):
                known.pop(number, None)
        if not self._place(self._at):
            return END
        if self._at in self._started and self._started[self._at].pid != os.getpid():
            self._started.clear()  # a fork
        if self._at not in self._started:
            self._start(self._at)
        self._start_ahead()
        started = self._started[self._at]
        if self._pins is not None:
            for one in (started, self._started.get(self._at + 1)):
                if one is not None and one.copied is None:
                    one.copied = self._pins.start(one.fetched)
        try:
            return repeatable(lambda: self._loader._finished(started))
        except BaseException:
            self._started.pop(self._at, None)
            raise

    def _skip(self) -> None:
        look, place = self._looks.get(self._at, (self._look, self._at - self._first))
        if look is not None:
            look.skip(place)
        self._at += 1

    def _took(self) -> None:
        self._at += 1


@keywords
class SamplesAhead(DataLoader):
    """A DataLoader whose batches the library's threads sample.

    A subclass sets _source, _sampler, _typed, _times, _ahead, _edge_ids, transform and transform_sampler_output,
    defines _asked and _add_seeds, and calls _begin. _sampler: what is drawn; its num_neighbors can be set at any time.
    _times: of all seeds, int64 or float64; None: draws need none. _times_argument: that gives them; None: their nodes
    do. _edge_ids: whether batches have ids of edges, and their rows.
    """

    _source: Source
    _sampler: NeighborSampler
    _typed: bool
    _times: torch.Tensor | None
    _ahead: Options
    _edge_ids: bool
    _times_argument: str | None = None
    _called = ""  # what the user calls, if it is not the class
    _draws_numbers = False  # whether _asked draws from the generator
    filter_per_worker: Any
    data: Any
    transform: Any
    transform_sampler_output: Any

    @classmethod
    def _arguments(cls) -> list[str]:
        """The names of the arguments besides those of DataLoader."""
        return [word for one in cls.__mro__ if issubclass(one, SamplesAhead) for word in names_of_arguments(one)]

    def _begin(self, count: int, seed_types: list[str], options: Mapping[str, Any]) -> None:
        """Makes the DataLoader of `count` seeds, whose nodes have these types."""
        known = [*inspect.signature(DataLoader.__init__).parameters][1:]
        for name in options:
            if name not in known and name not in OF_WORKERS:
                raise TypeError(f"{self._called or type(self).__name__}() has no argument {name!r}"
                                f"{suggestion(name, dict.fromkeys([*self._arguments(), *known]))}")
        self._seed_types, self._places = seed_types, count
        self._numbers = {ntype: number for number, ntype in enumerate(self._source.graph.ntypes)}
        self._spec: tuple[Any, Draws, Spec] | None = None
        self._looked: tuple[Lookahead, Any] | None = None  # with a weak reference to the loop that has it
        left = {name: value for name, value in options.items() if name not in ("share_memory", "dataset",
                                                                                "collate_fn")}
        if (size := as_integer(left.get("batch_size"))) is not None:
            left["batch_size"] = size  # torch takes no integers of NumPy
        DataLoader.__init__(self, range(count), collate_fn=self.collate_fn, **left)  # type: ignore[arg-type]
        if self._ahead.cache_bytes:
            check_known(self, "cache_bytes")
        self._there()

    def _asked(self, index: torch.Tensor, generator: torch.Generator) -> Asked:
        raise NotImplementedError

    def _add_seeds(self, data: Any, metadata: tuple[Any, ...]) -> None:
        raise NotImplementedError

    # --- One batch. ---

    def _there(self) -> tuple[Any, Draws, Spec]:
        """The client of this process, what is drawn, and the description of a batch to the client. A fork, an unpickled
        loader and new counts of the sampler make new ones."""
        graph, draws = self._source.graph, self._sampler._draws
        if self._spec is None or self._spec[0].pid != graph._opened().pid or self._spec[1] is not draws:
            nodes = NodeSeeds(graph, {ntype: [] for ntype in self._seed_types}, None, one=True)
            rows, edge_ids = self._source.rows, self._edge_ids and not draws.induced
            self._spec = graph._opened(), draws, Spec(
                graph, draws.hops, nodes=nodes, features=rows.node_features(), labels=None,
                edge_features=rows.edge_features() if edge_ids else {}, replace=draws.replace,
                index_dtype="int64", dtype=rows.dtype, weight=draws.weight, time=draws.rules, pick=draws.pick,
                disjoint=draws.disjoint, frontier="new", held_out=self._sampler.held_out,
                edge_ids=edge_ids, for_pyg=True)
            if self._times is not None:
                self._spec[2].pointer.real_times = self._times.is_floating_point()
                if self._times_argument is not None:
                    time_ranges.compare(graph, self._spec[2].rules, [self._times.numpy()], self._times_argument)
        return self._spec

    def _take_look(self, loop: _Ahead, spec: Spec) -> Lookahead:
        """The look-ahead of a loop that begins: that of the loop before, with the rows that it keeps, or a new one."""
        before, self._looked = self._looked, None
        if before is not None:
            other = before[1]()
            if (other is None or other.is_over or other is loop) and before[0].spec is spec and before[0].is_idle:
                self._looked = before[0], ref(loop)
                return before[0]
        look = Lookahead.of_spec(self._there()[0], spec, self._ahead)
        self._looked = (look, ref(loop)) if before is None or other is None or other.is_over else before
        return look

    def _ask(self, index: Any, generator: torch.Generator) -> tuple[Asked, Any]:
        """What a batch is asked for, and the same as struct gw_seeds[]. index: the places of its seeds."""
        if not _are_ids(index):
            index = torch.from_numpy(ids_array(index, self._places, "index")).view(-1)
        asked = self._asked(index, generator)
        lists = ffi.new("struct gw_seeds[]", len(asked.seeds))
        for one, (ntype, ids) in zip(lists, asked.seeds.items()):
            one.type, one.ids, one.count = self._numbers[ntype], pointer(ids), ids.numel()
            if asked.times is not None:
                one.times = pointer(asked.times[ntype])
        return asked, lists

    def _submit(self, index: Any, seed: int, number: int, generator: torch.Generator,
                look: tuple[Lookahead | None, int] = (None, 0)) -> _Started:
        """Starts the sampling of a batch. index: the places of its seeds. seed, number: determine the draws. look: the
        loop's look-ahead, and the batch's number in it."""
        client, draws, spec = self._there()
        asked, lists = self._ask(index, generator)
        if client.landing is not None and self._pins():
            client.landing.ask()
        lease = Lease(client)
        if look[0] is not None:
            look[0].start(look[1], seed, number, lists, lease)
        else:
            check(lib.gw_sample_lists_start(client.pointer, spec.pointer, seed, number, lists, len(lists), lease.cell,
                                            lease.ticket))
        return _Started(Fetched(lease, spec), draws, asked)

    def _sampled(self, started: _Started) -> Output:
        """Waits for a batch. Returns its SamplerOutput, which has the Sampled as `_sampled`."""
        fetched, ids = started.wait(), self._source.ids
        rows = self._source.rows
        found = Induced(fetched, ids, rows.edge_features() if self._edge_ids else None, rows.dtype, Among(
            ids.graph, self._sampler.held_out, started.draws.rules, started.asked.times)) if (
                started.draws.induced) else Sampled(fetched, ids)
        out = started.draws.counted(found.output(self._typed, started.asked.slots))
        out.metadata, out._sampled = started.asked.metadata, found
        return self._sampler._directed(without(out, self._source.hidden))

    def _finished(self, started: _Started) -> Any:
        data = self._filtered(self._sampled(started))
        return pinned.pinned_batch(data, self.pin_memory_device or None) if self._pins() else data

    def _pins(self) -> bool:
        return bool(self.pin_memory) and pinned.available()

    @eager
    def filter_fn(self, out: Output) -> Any:
        """The batch of a SamplerOutput of collate_fn: Data or HeteroData, with its rows, after both transforms."""
        return self._filtered(out)

    @traced("pyg batch")
    def _filtered(self, out: Output) -> Any:
        found = getattr(out, "_sampled", None)
        if self.transform_sampler_output is not None:
            out = self.transform_sampler_output(out)
        data = self._source.filled(self.data, out, found)
        self._add_sampled(data, out)
        self._add_seeds(data, out.metadata)
        return data if self.transform is None else self.transform(data)

    def _add_sampled(self, data: Any, out: Output) -> None:
        """Adds what PyG adds to every batch. Attributes that the user's data has already stay."""
        typed = isinstance(out.node, dict)
        stores: dict[Any, dict[str, Any]] = {}  # the attributes of Data are in PyG's order
        for of, own in (("node", "n_id"), ("edge", "e_id")):
            given = getattr(out, of)
            for kind, ids in (given if typed else {None: given}).items():
                values = stores.setdefault(kind, {})
                if ids is not None and own not in store_of(data, kind):  # to_bidirectional drops ids of types
                    values[own] = ids
        if out.batch is not None:
            for kind, batch in (out.batch if typed else {None: out.batch}).items():
                stores.setdefault(kind, {})["batch"] = batch
        elif self._source.is_of_pyg and not typed:
            data.batch = None  # removes that of the data, as in PyG
        for called in ("num_sampled_nodes", "num_sampled_edges"):
            counts = getattr(out, called)
            for kind, some in ((counts or {}) if typed else {None: counts}).items():
                if some is None:
                    store_of(data, kind)[called] = None
                else:
                    stores.setdefault(kind, {})[called] = some
        for kind, values in stores.items():
            fill(store_of(data, kind), values)
        if out.orig_row is not None and out.orig_col is not None:
            for kind in out.orig_row if typed else (None,):
                row, col = (out.orig_row[kind], out.orig_col[kind]) if typed else (out.orig_row, out.orig_col)
                (data[kind] if typed else data)._orig_edge_index = torch.stack([row, col])

    # --- Loops. ---

    def _random_number(self) -> int:
        """A number from the loader's generator, or torch's. torch's own loops draw the same number when they begin."""
        return int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())

    @eager
    def _get_iterator(self) -> Any:
        return _Ahead(self)

    def __iter__(self) -> Any:
        return self._get_iterator()

    def _submit_alone(self, index: Any) -> _Started:
        seed = self._random_number()
        return self._submit(index, seed, 0, torch.Generator().manual_seed(seed))

    @eager
    def __call__(self, index: Any) -> Any:
        """The batch of the seeds at these places, as PyG's loaders return it."""
        return self._finished(self._submit_alone(index))

    @eager
    def collate_fn(self, index: Any) -> Any:
        """The SamplerOutput of the seeds at these places. filter_fn makes a batch from it. With filter_per_worker, the
        batch itself. PyG's ZipLoader calls both."""
        out = self._sampled(self._submit_alone(index))
        return self.filter_fn(out) if self.filter_per_worker else out

    def __repr__(self) -> str:
        """PyG's text."""
        return f"{type(self).__name__}()"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spec": None, "_looked": None}
