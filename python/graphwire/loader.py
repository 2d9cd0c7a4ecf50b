"""Loaders: streams of mini-batches that the library samples several ahead, in its own threads.

    for batch in loader:      one epoch
        …

Each loop is an epoch, with a stream of its own while others are under way: zip(loader, loader) is two epochs side by
side, and a loop that was left early is an epoch that ended. state_dict() and load_state_dict() go on within an epoch,
in another process too, byte for byte.

    made -> a stream is open, which samples ahead; divided among the ranks that there are
    loop -> divided anew if the ranks are others by now -> the ranks compare their seeds, once -> takes the stream
         -> its end: the stream is the next loop's
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable
from weakref import ref

from graphwire import _arrays, _checks
from graphwire._arrays import Ids, Lease
from graphwire._minibatch import Names, Spec, make_batch
from graphwire._native import SLICE_MS, OfProcess, Workers, check, error_of, ffi, finish, lib
from graphwire._opened import Etype
from graphwire.batch import Batch
from graphwire.fanouts import Fanouts
from graphwire.graph import Graph
from graphwire.ranks import Agreement, Steps
from graphwire.seeds import EdgeSeeds, NodeSeeds, Seeds

_DEPTH_MAX = 256
_LAST = {"wrap": "GW_LAST_WRAP", "drop": "GW_LAST_DROP", "short": "GW_LAST_SHORT"}


class _Stream:
    """A gw_loader, which ends when nobody refers to it any more. place: its (world, rank). memory: what it reads until
    it ends, of EdgeSeeds."""

    def __init__(self, client: Any, options: Any, memory: Any):
        self.place = int(options.world), int(options.rank)
        self._held = client.lend("struct held_loader *", lib.loader_end)
        if memory is not None:
            lib.share_take(memory.share, ffi.addressof(self._held, "memory"))
        check(lib.gw_loader_open(client.pointer, options, ffi.addressof(self._held, "loader")))

    @property
    def pointer(self) -> Any:
        return self._held.loader

    def state(self) -> dict[str, int]:
        state = ffi.new("struct gw_loader_state *")
        lib.gw_loader_get_state(self.pointer, state)
        return {"epoch": int(state.epoch), "step": int(state.step), "plan": int(state.plan)}


class _Loop:
    """A loop over a loader: its stream, until it has ended, and the state after the last batch that it gave."""

    __slots__ = ("era", "state", "stream")

    def __init__(self, stream: _Stream, era: int):
        self.stream: _Stream | None = stream
        self.state, self.era = stream.state(), era


class Batches(OfProcess):
    """A loop over a loader, as its user holds it."""

    __slots__ = ("_each",)

    def __init__(self, each: Iterator[Batch]):
        self._each = each

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        return next(self._each)


class Loader(OfProcess):
    """What NodeLoader and EdgeLoader share: epochs, ranks, states, the end."""

    def __init__(self, graph: Graph, spec: Spec, seeds: NodeSeeds | EdgeSeeds, *, batch_size: int = 1000,
                 shuffle: bool = False, seed: int = 0, world: int | None = None, rank: int | None = None,
                 last: str | None = None, depth: int = 4, device: Any = None):
        self._asked = (world, 0 if world == 1 and rank is None else rank)
        self._last = last if last is None else _checks.choice("last", last, _LAST)
        self.graph, self.device = graph, device
        self.batch_size = _checks.integer("batch_size", batch_size, 1, _checks.SEEDS_MAX)
        self._client, self._spec, self._seeds = graph._opened(), spec, seeds
        self._options = ffi.new("struct gw_loader_options *", {
            "spec": spec.pointer[0], "batch_size": self.batch_size,
            "shuffle": _checks.flag("shuffle", shuffle), "seed": _checks.integer("seed", seed, 0, _checks.U64),
            "world": self.world, "rank": self.rank, "last": getattr(lib, _LAST[self.last]),
            "depth": _checks.integer("depth", depth, 1, _DEPTH_MAX)})
        if seeds.several:
            self._options.lists, self._options.list_count = seeds.lists, len(seeds.types)
        else:
            self._options.ids, self._options.id_count = seeds.lists[0].ids, seeds.lists[0].count
        self._lock = threading.Lock()  # of what follows; nothing that ends with an object takes it
        self._closed = False
        self._era = 0  # of close() and load_state_dict(), which end the loops that are under way
        self._coming = 0  # the epoch that the next loop begins
        self._loop: _Loop | None = None  # that was begun last
        self._stream: _Stream | None = None  # of the next loop, where it is there already
        self._agreement = Agreement()
        self._steps = Steps("graphwire", 'A loader that divides the seeds of all ranks with last="wrap" or "drop" has '
                            "equal steps; docs/PYTHON.md, Several trainers.")
        self._there()

    @property
    def world(self) -> int:
        """How many trainers share an epoch; torch.distributed's as it is now, unless it was given."""
        return _arrays.world_of(*self._asked)[0]

    @property
    def rank(self) -> int:
        return _arrays.world_of(*self._asked)[1]

    @property
    def last(self) -> str:
        return self._last if self._last is not None else "short" if self.world == 1 else "wrap"

    def _opened(self, state: Mapping[str, int]) -> _Stream:
        """A stream, divided among the ranks that there are now."""
        world, rank = _arrays.world_of(*self._asked)
        if self._seeds.of_rank and world > 1 and self._asked == (None, None):
            raise ValueError("the seeds are one rank's share already, of Graph.split, and the loader would divide them "
                             f"among {world} ranks again: give it world=1, rank=0, or the seeds of all ranks")
        options = self._options
        options.world, options.rank, options.last = world, rank, getattr(lib, _LAST[self.last])
        options.start = dict(state)
        stream = _Stream(self._client, options, self._seeds.memory)
        self._place, self._count = stream.place, int(lib.gw_loader_steps(stream.pointer))
        return stream

    def _there(self) -> _Stream:
        """The stream that the next loop takes."""
        if self._closed:
            raise ValueError("the loader is closed")
        if self._stream is None:
            self._stream = self._opened({"epoch": self._coming, "step": 0, "plan": 0})
        elif self._stream.place != _arrays.world_of(*self._asked):
            state = self._stream.state()
            self._stream = self._opened(state if state["step"] else {**state, "plan": 0})
        return self._stream

    def _compare(self, stream: _Stream) -> None:
        """Ranks that divide seeds have the same. What is told of this loader is what its plan is a digest of."""
        counts = self.graph._edge_counts if isinstance(self._seeds, EdgeSeeds) else self.graph._node_counts
        count = sum(counts[kind] if ids is None else len(ids) for kind, ids in zip(self._seeds.types, self._seeds.ids))
        options = self._options
        self._agreement.reach({
            "the graph": self.graph.name, "the number of seeds": int(count), "batch_size": int(options.batch_size),
            "shuffle": bool(options.shuffle), "seed": int(options.seed), "last": self.last,
            "plan": stream.state()["plan"]})

    def _begun(self) -> _Loop:
        """A loop takes the stream that is there, or opens one."""
        with self._lock:
            stream = self._there()
            if self._asked == (None, None):
                self._compare(stream)
            if self.last == "short" or self._asked != (None, None):
                self._steps.begin(self._count, f"{type(self).__name__}/{self.batch_size}/{self.last}")
            self._stream, self._loop = None, _Loop(stream, self._era)
            self._coming = self._loop.state["epoch"] + 1
            return self._loop

    def _ended(self, loop: _Loop, stream: _Stream) -> None:
        """A loop's end: the next loop has its stream, unless others have begun later epochs."""
        with self._lock:
            loop.stream, loop.state = None, stream.state()
            fits = loop.era == self._era and stream.place == self._place and loop.state["epoch"] == self._coming
            if fits and self._stream is None:
                self._stream = stream

    def __len__(self) -> int:
        with self._lock:
            if self._closed or self._place != _arrays.world_of(*self._asked):
                self._there()
            return self._count

    def _next(self, stream: _Stream, going: Callable[[], Any] | None = None) -> Batch | None:
        """The next batch; None at the end of an epoch, and when the loop that it would be for is not going any more."""
        lease = Lease(self._client)
        status = lib.GW_AGAIN
        while status == lib.GW_AGAIN:
            if going is not None and going() is None:
                return None
            status = lib.gw_loader_next(stream.pointer, lease.cell, SLICE_MS)
        if status == lib.GW_END:
            return None
        if status != lib.GW_OK:
            raise error_of(status)
        return make_batch(self.graph, lease, self._spec)

    def _still(self, loop: _Loop) -> None:
        if loop.era != self._era:
            raise RuntimeError("the loader has been closed, or started again, since this loop began")

    def _epoch(self) -> Iterator[Batch]:
        loop = self._begun()
        stream = loop.stream
        assert stream is not None
        while True:
            self._still(loop)
            batch = self._next(stream)
            if batch is None:
                break
            loop.state = stream.state()
            yield batch
            self._steps.look()
        self._ended(loop, stream)

    def _moved(self) -> Iterator[Batch]:
        """The batches on the device. To a GPU they are copied on a stream of their own, one ahead, by a thread beside:
        the copy into pinned memory that comes before takes a processor as long as the rows are, while the trainer has
        the batch before."""
        torch = _arrays.torch_module()
        if torch is None:
            raise ValueError("device= needs torch")
        device = torch.device(self.device)
        if device.type != "cuda":
            for batch in self._epoch():
                yield batch.to(device)
            return
        ahead = Workers(1)  # this frame's alone: it goes with the loop, however that ends
        side, going = torch.cuda.Stream(device), ref(ahead)
        loop = self._begun()
        stream = loop.stream
        assert stream is not None

        def start() -> tuple[Batch | None, dict[str, int]]:
            """The next batch, on its way, and where the loop is behind it."""
            batch = self._next(stream, going)
            if batch is not None:
                with torch.cuda.stream(side):
                    batch = batch.pinned().to(device, non_blocking=True)
            return batch, stream.state()

        self._still(loop)
        coming = ahead.submit(start)
        while True:
            ready, state = coming.wait()
            self._still(loop)
            if ready is None:
                break
            torch.cuda.current_stream(device).wait_stream(side)  # for this one alone: the next comes after
            coming = ahead.submit(start)
            ready.record_stream(torch.cuda.current_stream(device))
            loop.state = state
            yield ready
            self._still(loop)
            self._steps.look()
        self._ended(loop, stream)

    def __iter__(self) -> Iterator[Batch]:
        """A loop: one epoch; the rest of one, after load_state_dict. It begins with its first batch, in the thread that
        asks for it, and is independent of other loops under way, in any threads: each begins the epoch after the one
        that was begun last, and ends it. A batch that fails raises, and ends the loop.

        The first loop raises ValueError where torch.distributed's ranks divide seeds that are not the same on each, or
        do not all begin to loop; within 30 s, on every rank."""
        if self._closed:
            raise ValueError("the loader is closed")
        return Batches(self._epoch() if self.device is None else self._moved())

    def state_dict(self) -> dict[str, int]:
        """Where the loader is: {"epoch", "step", "plan"}, after the last batch that it gave; of several loops under
        way, the one that was begun last."""
        with self._lock:
            if not self._closed and self._loop is not None and self._loop.stream is not None:
                return dict(self._loop.state)
            return self._there().state()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes on from there: the next loop does; those under way raise RuntimeError. Raises InvalidError where the
        state is that of a loader with another plan: other seeds, batch size, world, shuffle seed, graph; ValueError and
        TypeError where it is no state. World and rank are torch.distributed's as they are now, unless they were
        given."""
        names = ("epoch", "step", "plan")
        if not isinstance(state, Mapping):
            raise TypeError(f"state is what state_dict() gave, not {type(state).__name__}")
        missing = [name for name in names if name not in state]
        if missing:
            raise ValueError(f"state is what state_dict() gave: this one has no {', '.join(missing)}")
        start = {name: _checks.integer(f"state[{name!r}]", state[name], 0, _checks.U64) for name in names}
        with self._lock:
            self._stream, self._closed = self._opened(start), False
            self._loop, self._coming = None, start["epoch"]
            self._era += 1

    def close(self) -> None:
        """Ends the sampling ahead; batches that are held stay."""
        with self._lock:
            self._stream, self._loop, self._closed = None, None, True
            self._era += 1

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NodeLoader(Loader):
    """Mini-batches around seed nodes.

    seeds: ids of the seeds of an epoch (integers, or a mask of all nodes); None: every node of `ntype`. Of several node
        types {node type: ids, or None}: a batch has of each type what falls to it. Where there are none, [], there are
        no batches.
    fanouts: neighbours for each hop, from the seeds outwards: a count, -1 for all, or {edge type: count}; or, as
        PyTorch Geometric has them, {edge type: [count of each hop]} of all edge types.
    ntype: of the seeds; may be left out where there is one.
    features: names of features to fetch for every node of a batch, or {node type: names}; labels: the same for the
        seeds; edge_features: {edge type: names}, for every edge.
    batch_size: seeds of one rank's batch. shuffle: a new order in each epoch. seed: of shuffle and sampling.
    world, rank: the trainers that share an epoch, and which of them this is; None: torch.distributed's, as they are
        when a loop begins, else one. The loader divides the seeds among them (graphwire.pyg's never do), and they are
        the same on each: the ranks compare them in their first loops, which they begin together. world=1: nothing is
        divided or compared, for seeds that are one rank's share (Graph.split) and for a loop of one rank alone. Both
        given: divided, and not compared.
    last: the last step of an epoch: "wrap" (equal steps and ceil(seeds / world) seeds for each rank, less than `world`
        of all repeated from the start of the order), "drop", or "short": the last batch may be, and with several ranks
        some may have a step less than others (DDP: join); None: "short" for one trainer, "wrap" for several.
    replace: sample with replacement. index_dtype: "int64" or "int32", of the blocks' indices.
    depth: batches sampled ahead. device: where the batches go (torch); to a GPU through pinned memory, copied while the
        batch before is used.

    len(loader): this rank's batches in an epoch. The same seed gives the same batches over every transport and in every
    language.

    Raises OutOfRangeError for a seed that is no node, InvalidError for fanouts and numbers that make no sense, or seeds
    that are too few for one step, NotFoundError for a type or a feature, TypeError for seeds, fanouts and numbers that
    are something else, ValueError for other options, and for a share of Graph.split that would be divided again. A loop
    raises ValueError where ranks divide seeds that are not the same on each, or do not all begin it, within 30 s on
    every rank; a batch PeerError or DeadlineError where a server cannot be asked. UserWarning: ranks have unequal
    numbers of steps.
    """

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Fanouts = (10, 10), *,
                 ntype: str | None = None, features: Names = None, labels: Names = None, edge_features: Names = None,
                 replace: bool = False, index_dtype: str = "int64", **options: Any):
        nodes = NodeSeeds(graph, seeds, ntype)
        spec = Spec(graph, fanouts, nodes=nodes, features=features, labels=labels, edge_features=edge_features,
                    replace=replace, index_dtype=index_dtype)
        super().__init__(graph, spec, nodes, **options)


class EdgeLoader(Loader):
    """Mini-batches around seed edges, with negatives: to learn links.

    seeds: ids of edges (integers, or a mask of all edges of etype); None: every edge. etype: of the seeds. Of several
        edge types {edge type: ids, or None}: a batch has of each type what falls to it. The options below are for all
        types then, or {edge type: its own}.
    negatives: so many for each edge, with its "dst" (or "src": negative_end) drawn again, uniformly over its type, or
        over negative_ids. no_true_edges: what is an edge of the type is drawn again, up to 16 times.
    exclude: what is not sampled, so that it does not tell what is to be predicted: "edges" (the batch's own), "ends"
        (all between the same ends), "reverse" (of the type that the graph names as their reverse). reverse_etype: the
        same of this type; with reverse_ids, [edges of etype], of these edges of it, each of which leads from its edge's
        destination to its source (reverse_etype may be left out where the graph has one edge type). What one type's
        edges exclude is excluded for all.
    labels: names of features of the seed edges, or {edge type: names}. The other arguments are NodeLoader's.

    A batch's edge i leads from row src_rows[i] of its source type to row dst_rows[i] of its destination type.

    Raises what NodeLoader does, of edges; GraphwireError (GW_UNSUPPORTED) for "reverse" where the graph names none. A
    batch raises InvalidError where reverse_ids names an edge that is no reverse, OutOfRangeError where it names none.
    """

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Fanouts = (10, 10), *,
                 etype: Etype | None = None, negatives: int | Mapping[Etype, int] = 0,
                 negative_end: str | Mapping[Etype, str] = "dst",
                 negative_ids: Ids | Mapping[Etype, Ids] | None = None,
                 no_true_edges: bool | Mapping[Etype, bool] = False,
                 exclude: Sequence[str] | Mapping[Etype, Sequence[str]] = (),
                 reverse_etype: Etype | Mapping[Etype, Etype] | None = None,
                 reverse_ids: Ids | Mapping[Etype, Ids] | None = None, features: Names = None, labels: Names = None,
                 edge_features: Names = None, replace: bool = False, index_dtype: str = "int64", **options: Any):
        edges = EdgeSeeds(graph, seeds, etype, negatives=negatives, negative_end=negative_end,
                          negative_ids=negative_ids, no_true_edges=no_true_edges, exclude=exclude,
                          reverse_etype=reverse_etype, reverse_ids=reverse_ids)
        spec = Spec(graph, fanouts, nodes=None, features=features, labels=labels, edge_features=edge_features,
                    replace=replace, index_dtype=index_dtype, edges=edges)
        super().__init__(graph, spec, edges, **options)


def sample(graph: Graph, seeds: Seeds, fanouts: Fanouts, *, seed: int = 0, stream: int = 0,
           ntype: str | None = None, features: Names = None, labels: Names = None, edge_features: Names = None,
           replace: bool = False, index_dtype: str = "int64") -> Batch:
    """One mini-batch around `seeds`, which may be none; the arguments are NodeLoader's. (seed, stream, seeds) decide
    what is drawn.

    Raises OutOfRangeError for a seed that is no node, InvalidError for fanouts that make no sense, NotFoundError for a
    type or a feature, ValueError and TypeError for other arguments, PeerError or DeadlineError where a server cannot be
    asked.
    """
    client = graph._opened()
    seed, stream = _checks.integer("seed", seed, 0, _checks.U64), _checks.integer("stream", stream, 0, _checks.U64)
    nodes = NodeSeeds(graph, seeds, ntype, one=True)
    spec = Spec(graph, fanouts, nodes=nodes, features=features, labels=labels, edge_features=edge_features,
                replace=replace, index_dtype=index_dtype)
    lease = Lease(client)

    def start(ticket: Any) -> int:
        if nodes.several:
            return lib.gw_sample_lists_start(client.pointer, spec.pointer, seed, stream, nodes.lists, len(nodes.ids),
                                             lease.cell, ticket)
        return lib.gw_sample_start(client.pointer, spec.pointer, seed, stream, nodes.lists[0].ids,
                                   nodes.lists[0].count, lease.cell, ticket)

    finish(start)
    return make_batch(graph, lease, spec)
