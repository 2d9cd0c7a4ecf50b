"""Loaders: epochs of mini-batches, which the library's threads sample ahead.

    for batch in loader:      one epoch
        …

Each loop is one epoch. A loop takes its batches from a stream, which samples ahead. Loops at the same time have
separate streams: zip(loader, loader) runs two epochs. A loop that the caller leaves early ends its epoch. With
state_dict() and load_state_dict(), an epoch continues at the same place, with the same bytes, also in another process.

    a new loader opens a stream, which divides the seeds among the current ranks and samples ahead
    loop -> opens a new stream if the ranks have changed -> the ranks compare their seeds, once -> takes the stream
         -> at its end, returns the stream for the next loop

Errors: NodeLoader and EdgeLoader list them.
"""

from __future__ import annotations

import reprlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable
from weakref import ref

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Ids, Lease
from graphwire._base.keywords import keywords
from graphwire._base.log import deliver
from graphwire._base.native import SLICE_MS, Call, ClosedError, OfProcess, Workers, check, error_of, ffi, lib
from graphwire._base.opened import Etype
from graphwire._base.times import Times
from graphwire._graph.fanouts import Fanouts
from graphwire._graph.graph import Graph
from graphwire._graph.held_out import HeldOut
from graphwire._graph.rules import Time, Weight
from graphwire._train.batch import Batch
from graphwire._train.lookahead import checked
from graphwire._train.loops import END, Loop
from graphwire._train.minibatch import Names, Spec, make_batch
from graphwire._train.ranks import Agreement, Steps
from graphwire._train.seeds import EdgeSeeds, NodeSeeds, Seeds

_LAST = {"wrap": "GW_LAST_WRAP", "drop": "GW_LAST_DROP", "short": "GW_LAST_SHORT"}


class _Stream:
    """Owns a gw_loader, which closes when this object is freed. place: its (world, rank). memory: the copies of
    EdgeSeeds that the gw_loader reads until it closes, or None."""

    def __init__(self, client: Any, options: Any, memory: Any):
        self.place = int(options.world), int(options.rank)
        self._held = client.lend("struct held_loader *", lib.loader_end)
        if memory is not None:
            lib.share_acquire(memory.share, ffi.addressof(self._held, "memory"))
        check(lib.gw_loader_open(client.pointer, options, ffi.addressof(self._held, "loader")))

    @property
    def pointer(self) -> Any:
        return self._held.loader

    def state(self) -> dict[str, int]:
        state = ffi.new("struct gw_loader_state *")
        lib.gw_loader_get_state(self.pointer, state)
        return {"epoch": int(state.epoch), "step": int(state.step), "plan": int(state.plan)}


class _Loop:
    """A loop over a loader: its stream, which is None after the loop's end, and the state after its last batch. era:
    the loader's _era when the loop began."""

    __slots__ = ("era", "state", "stream")

    def __init__(self, stream: _Stream, era: int):
        self.stream: _Stream | None = stream
        self.state, self.era = stream.state(), era


class Batches(Loop):
    """The iterator of a loop over a loader. The library moves the stream's position on, with the rule of Loop. Here the
    batch that the library has returned stays until the caller gets it, so that an interrupt does not lose it."""

    def __init__(self, loader: Loader, device: Any = None):
        super().__init__()
        self._loader, self._device = loader, device
        self._loop: _Loop | None = None
        self._stream: Any = None  # the loop's
        self._lease: Lease | None = None  # of the next batch

    def _make(self) -> Any:
        stream = self._begun()
        if self._lease is None:
            self._lease = Lease(self._loader._client)
        if not _filled(stream, self._lease):
            return END
        batch = make_batch(self._loader.graph, self._lease, self._loader._spec)
        return batch if self._device is None else batch.to(self._device)

    def _begun(self) -> Any:
        """The loop's stream. The loop begins when its first batch is requested."""
        loader = self._loader
        if self._loop is None:
            loader._begin(self)
        else:
            loader._steps.look()
        assert self._loop is not None
        loader._still(self._loop)
        return self._stream

    def _skip(self) -> None:
        self._lease = None

    def _took(self) -> None:
        assert self._loop is not None
        self._lease, self._loop.state = None, self._stream.state()

    def _end(self) -> None:
        assert self._loop is not None
        self._loader._ended(self._loop, self._stream)
        self._stream = None


def _filled(stream: _Stream, lease: Lease, going: Callable[[], Any] | None = None) -> bool:
    """Puts the next batch into the lease, unless it is there. Returns whether there is one: False at the end of the
    epoch. going: a function that returns None once the loop has ended; then the wait ends with False too."""
    if lease.minibatch != ffi.NULL:
        return True
    status = lib.GW_AGAIN
    while status == lib.GW_AGAIN:
        if going is not None and going() is None:
            return False
        status = lib.gw_loader_next(stream.pointer, lease.cell, SLICE_MS)
        deliver()
    if status not in (lib.GW_OK, lib.GW_END):
        raise error_of(status)
    return bool(status == lib.GW_OK)


class MovedBatches(Batches):
    """The iterator of a loop whose batches go to a GPU. A second thread copies one batch ahead, on a CUDA stream of its
    own. The copy to pinned memory takes processor time in proportion to the rows. So the thread makes the copy while
    the trainer uses the batch before."""

    def __init__(self, loader: Loader, device: Any):
        super().__init__(loader, device)
        self._ahead: Any = Workers(1)  # nothing else refers to it: the thread ends with the loop
        self._side: Any = None  # the CUDA stream of the copies
        if loader._client.landing is not None:
            loader._client.landing.ask()
        self._coming: Call | None = None
        self._state: dict[str, int] = {}  # after the batch that the caller gets now

    def _make(self) -> Any:
        torch, stream = _arrays.torch_module(), self._begun()
        if self._side is None:
            self._side = torch.cuda.Stream(self._device)
        if self._coming is None:
            self._coming = self._ahead.submit(self._start(torch, stream))
        coming = self._coming
        try:
            ready, self._state = coming.wait()
        except BaseException:
            if coming.has_failed:
                self._coming = None
            raise
        assert self._loop is not None
        self._loader._still(self._loop)
        if ready is None:
            return END
        torch.cuda.current_stream(self._device).wait_stream(self._side)  # for this batch: the next copy begins below
        self._coming = self._ahead.submit(self._start(torch, stream))
        ready.record_stream(torch.cuda.current_stream(self._device))
        return ready

    def _start(self, torch: Any, stream: Any) -> Callable[[], Any]:
        """A function that returns the next batch, whose copy to the device is under way, and the state after it. It
        does not refer to this object, which would not be freed while the thread waits for a batch."""
        loader, device, side, going = self._loader, self._device, self._side, ref(self._ahead)

        def start() -> tuple[Batch | None, dict[str, int]]:
            lease = Lease(loader._client)
            if not _filled(stream, lease, going):
                return None, stream.state()
            with torch.cuda.stream(side):
                batch = make_batch(loader.graph, lease, loader._spec).pinned().to(device, non_blocking=True)
            return batch, stream.state()

        return start

    def _took(self) -> None:
        assert self._loop is not None
        self._loop.state = self._state

    def _end(self) -> None:
        super()._end()
        self._ahead = self._coming = None


@keywords
class Loader(OfProcess):
    """The common part of NodeLoader and EdgeLoader: epochs, ranks, states and closing. Any threads may use a loader."""

    __module__ = "graphwire.loader"

    def __init__(self, graph: Graph, spec: Spec, seeds: NodeSeeds | EdgeSeeds, fanouts: Fanouts, *, batch_size: int,
                 shuffle: bool, seed: int, world: int | None, rank: int | None, last: str | None, depth: int,
                 lookahead: int, cache_bytes: int | str, cache_batches: int, device: Any):
        self._asked = (world, 0 if world == 1 and rank is None else rank)
        self._last = last if last is None else checks.choice("last", last, _LAST)
        self.graph, self.device = graph, device
        self.batch_size = checks.integer("batch_size", batch_size, 1, checks.SEEDS_MAX)
        self._client, self._spec, self._seeds = graph._opened(), spec, seeds
        self._fanouts = reprlib.repr(fanouts)
        self._options = ffi.new("struct gw_loader_options *", {
            "spec": spec.pointer[0], "batch_size": self.batch_size,
            "shuffle": checks.flag("shuffle", shuffle), "seed": checks.integer("seed", seed, 0, checks.U64),
            "world": self.world, "rank": self.rank, "last": getattr(lib, _LAST[self.last]),
            **checked(depth, lookahead, cache_bytes, cache_batches)._asdict()})
        if seeds.several or seeds.times.until:
            self._options.lists, self._options.list_count = seeds.lists, len(seeds.types)
        else:
            self._options.ids, self._options.id_count = seeds.lists[0].ids, seeds.lists[0].count
        self._lock = threading.Lock()  # protects the attributes below; no finalizer takes it
        self._closed = False
        self._era = 0  # counts close() and load_state_dict(), which end the loops under way
        self._coming = 0  # the epoch that the next loop begins
        self._loop: _Loop | None = None  # the loop that began last
        self._stream: _Stream | None = None  # the next loop's stream, if it is open already
        self._agreement = Agreement()
        self._steps = Steps("graphwire", 'A loader that divides the seeds of all ranks with last="wrap" or "drop" has '
                            "equal steps; docs/PYTHON.md, Several trainers.")
        self._there()

    @property
    def world(self) -> int:
        """The number of trainers that share an epoch: the argument, else the current world of torch.distributed."""
        return _arrays.world_of(*self._asked)[0]

    @property
    def rank(self) -> int:
        """This trainer's number: the argument, else the current rank of torch.distributed."""
        return _arrays.world_of(*self._asked)[1]

    @property
    def last(self) -> str:
        """How the last step of an epoch is made: "wrap", "drop" or "short"."""
        return self._last if self._last is not None else "short" if self.world == 1 else "wrap"

    def _opened(self, state: Mapping[str, int]) -> _Stream:
        """Opens a stream from `state`, with the seeds divided among the current ranks."""
        world, rank = _arrays.world_of(*self._asked)
        if self._seeds.of_rank and world > 1 and self._asked == (None, None):
            raise ValueError("the seeds are one rank's share already, by Graph.split, and the loader would divide them "
                             f"among {world} ranks again: give it world=1, rank=0, or the seeds of all ranks")
        options = self._options
        options.world, options.rank, options.last = world, rank, getattr(lib, _LAST[self.last])
        options.start = dict(state)
        stream = _Stream(self._client, options, self._seeds.memory)
        self._place, self._count = stream.place, int(lib.gw_loader_steps(stream.pointer))
        return stream

    def _there(self) -> _Stream:
        """The stream of the next loop. Opens it if it does not exist, or if the ranks have changed since it was opened.
        """
        if self._closed:
            raise ClosedError("the loader is closed")
        if self._stream is None:
            self._stream = self._opened({"epoch": self._coming, "step": 0, "plan": 0})
        elif self._stream.place != _arrays.world_of(*self._asked):
            state = self._stream.state()
            self._stream = self._opened(state if state["step"] else {**state, "plan": 0})
        return self._stream

    def _seed_count(self) -> int:
        """The number of seeds of all ranks."""
        counts = self.graph._edge_counts if isinstance(self._seeds, EdgeSeeds) else self.graph._node_counts
        return sum(counts[kind] if ids is None else len(ids) for kind, ids in zip(self._seeds.types, self._seeds.ids))

    def _compare(self, stream: _Stream) -> None:
        """Checks that all ranks divide the same seeds. Sends the other ranks the plan's digest, and the options that
        determine the plan, so that an error can name the option that differs. Raises ValueError."""
        options = self._options
        self._agreement.reach({
            "the graph": self.graph.name, "the number of seeds": self._seed_count(),
            "batch_size": int(options.batch_size), "shuffle": bool(options.shuffle), "seed": int(options.seed),
            "last": self.last, "plan": stream.state()["plan"]})

    def _begin(self, batches: Batches) -> None:
        """Begins a loop, which takes the stream of the next loop."""
        with self._lock:
            stream = self._there()
            if self._asked == (None, None):
                self._compare(stream)
            if self.last == "short" or self._asked != (None, None):
                self._steps.begin(self._count, f"{type(self).__name__}/{self.batch_size}/{self.last}")
            loop = _Loop(stream, self._era)
            coming = loop.state["epoch"] + 1
            # The line calls nothing, so no interrupt comes in its middle and lets the next call skip an epoch.
            batches._loop, batches._stream, self._stream, self._loop, self._coming = loop, stream, None, loop, coming

    def _ended(self, loop: _Loop, stream: _Stream) -> None:
        """Ends a loop. The next loop gets the ended loop's stream, unless another loop has begun a later epoch
        meanwhile."""
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

    def _still(self, loop: _Loop) -> None:
        if loop.era != self._era:
            raise RuntimeError("the loader has been closed, or started again, since this loop began")

    def __iter__(self) -> Iterator[Batch]:
        """A loop over one epoch; after load_state_dict, over the remaining batches of an epoch.

        The loop begins when its first batch is requested. Several loops may run at once, in any threads, and do not
        affect each other. Each loop takes the epoch after the one that began last.

        After an error the loop goes on. If a server was lost, or a deadline has passed, the next call tries the same
        batch again; so it does after an interrupt. After another error the batch is skipped, as in torch's DataLoader.

        The first loop raises ValueError if torch.distributed's ranks divide different seeds, or if some ranks do not
        begin a loop. Every rank gets the error within 30 s.
        """
        if self._closed:
            raise ClosedError("the loader is closed")
        if self.device is None:
            return Batches(self)
        torch = _arrays.torch_module()
        if torch is None:
            raise ValueError("device= needs torch")
        device = torch.device(self.device)
        return MovedBatches(self, device) if device.type == "cuda" else Batches(self, device)

    def state_dict(self) -> dict[str, int]:
        """The loader's position after the last batch that it returned, as {"epoch", "step", "plan"}: three ints. plan
        is a digest of the options and the seeds. With several loops under way, the position is that of the loop that
        began last.
        """
        with self._lock:
            if not self._closed and self._loop is not None and self._loop.stream is not None:
                return dict(self._loop.state)
            return self._there().state()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Sets the position of the next loop to a result of state_dict(). Loops under way raise RuntimeError. A closed
        loader opens again. World and rank are the loader's arguments, else torch.distributed's current ones.

        Raises InvalidError if the state is of a loader with another plan: other seeds, batch size, world, shuffle seed
        or graph. Raises ValueError and TypeError if it is not a state.
        """
        names = ("epoch", "step", "plan")
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a result of state_dict(), not {type(state).__name__}")
        missing = [name for name in names if name not in state]
        if missing:
            raise ValueError(f"state must be a result of state_dict(): this one has no {', '.join(missing)}")
        start = {name: checks.integer(f"state[{name!r}]", state[name], 0, checks.U64) for name in names}
        with self._lock:
            self._stream, self._closed = self._opened(start), False
            self._loop, self._coming = None, start["epoch"]
            self._era += 1

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop run this epoch, from its beginning; loops under way continue. Without it, each loop runs
        the epoch after the one that began last. If the next loop runs this epoch already, nothing changes: a position
        of load_state_dict() within the epoch stays. Raises ValueError if the loader is closed; TypeError and
        InvalidError for a number that is no epoch."""
        epoch = checks.integer("epoch", epoch, 0, checks.U64)
        with self._lock:
            self._there()
            if epoch != self._coming:
                self._stream, self._coming = self._opened({"epoch": epoch, "step": 0, "plan": 0}), epoch
            self._loop = None

    def close(self) -> None:
        """Stops the sampling ahead, and ends the loops under way. Existing batches stay valid."""
        with self._lock:
            self._stream, self._loop, self._closed = None, None, True
            self._era += 1

    def __repr__(self) -> str:
        """One line. It reads nothing from servers."""
        kind = "edges" if isinstance(self._seeds, EdgeSeeds) else "nodes"
        device = "" if self.device is None else f" on {self.device}"
        return (f"<graphwire.{type(self).__name__} {self.graph.name}: {self._seed_count()} seed {kind}, fanouts "
                f"{self._fanouts}, batches of {self.batch_size}{device}>")

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@keywords
class NodeLoader(Loader):
    """Mini-batches around seed nodes.

    seeds: the seeds of an epoch: ids (integers, or a mask of all nodes); None: every node of `ntype`. For several node
        types, {node type: ids, or None}: all types are ordered together, so a batch may have no seeds of some types.
        Empty seeds, [], give no batches.
    fanouts: how many neighbours to sample in each hop, from the seeds outwards: a count, -1 for all, or {edge type:
        count}. Or PyTorch Geometric's form, {edge type: [count of each hop]}, which names all edge types.
    ntype: the seeds' node type; may be left out if the graph has only one.
    features: names of features to fetch for every node of a batch, or {node type: names}.
    labels: names of features to fetch for the seeds, or {node type: names}.
    edge_features: {edge type: names} of features to fetch for every edge, or names if the graph has one edge type.
    dtype: the type of all features of real numbers, of nodes and of edges: float32, float16, bfloat16 or float64 of
        torch or NumPy, or its name. The library's threads convert the rows. None: their own types; of features that
        were stored narrow (`partition --store`), the original. Labels and other features keep their types.
    batch_size: the number of seeds in one rank's batch.
    shuffle: use a new order of the seeds in each epoch.
    seed: determines the order and the sampling.
    world, rank: the number of trainers that share an epoch, and this one's number. The loader divides the seeds among
        the trainers; the loaders of graphwire.pyg do not.
        None: torch.distributed's, as they are when a loop begins, else one trainer. All ranks must pass the same seeds.
        The ranks compare them in their first loops, which they must begin together.
        world=1: the seeds are neither divided nor compared. Use it for seeds that are one rank's share (Graph.split),
        and for a loop on one rank only.
        Both given: the seeds are divided, and not compared.
    last: how the last step of an epoch is made. "wrap": all ranks have equal steps, and each has ceil(seeds / world)
        seeds. To make the shares equal, the first few seeds of the order (fewer than `world`) are used twice.
        "drop": incomplete steps are dropped.
        "short": the last batch may be smaller, and with several ranks some may have one step less (DDP: use join).
        None: "short" for one trainer, "wrap" for several.
    replace: sample with replacement.
    weight: the name of an edge feature, for all edge types that have it, or {edge type: name}. An edge is drawn in
        proportion to the feature, which is one number for each edge, 0 or more. An edge of weight 0 is never drawn, and
        a node whose edges all have weight 0 gets none. Without replacement, the draws of a node follow each other: each
        is in proportion to the weights of the edges that remain. Fanout -1 gives all edges of positive weight. Other
        edge types, and None: all edges are equally likely.
    time: draw edges by their times. The name of a feature, or {edge type: name}. It means the type's edge feature of
        this name, else that of the edges' sources, if the parts store it (`partition --time NAME`). A seed sees the
        edges up to its own time, at every hop. Types without the feature: all edges are equally likely.
    times: the times of the seeds: [seeds], in their order; {type: …}, if the seeds are given by type; or one for all.
        Integers or floats, in the unit of the edges' times, or dates (datetime64, Timestamp), which are converted
        exactly or refused. None: the seeds have the feature `time` themselves.
    window: a seed sees only the edges from its time - window on, both ends included: a number or a duration, 0 or more,
        for all seeds or for each. Times of floats are subtracted as float64.
    pick: "uniform", or "last": the edges with the latest times, as many as the fanout. Of equal times, those that are
        later in the list (docs/FORMAT.md) come first.
    strict: a seed sees the edges before its time; else those at its time too.
    end: the name of a feature as for `time`: from that time on, an edge is not valid any more.
    disjoint: every seed has a tree of its own, which shares no node with those of other seeds, and equal seeds get
        independent draws (Batch.groups). Batches by time are always disjoint.
    frontier: the nodes for which a hop samples neighbours. "all": all nodes of the batch so far, as the layers of a
        model over blocks need them. "new": the nodes that the hop before has added, as PyTorch Geometric does. Each
        node then has its neighbours sampled once, and the batch is one subgraph (Batch.to_pyg) instead of blocks for
        layers.
    held_out: edges that are not sampled, a graphwire.HeldOut; None: none.
    edge_ids: False: the batches have no ids of edges, Edges.edge_ids is None, and to_pyg() sets no e_id. Sampling then
        takes less time, and servers send half the bytes for each edge. Not with edge_features.
    index_dtype: the type of the blocks' indices, "int64" or "int32".
    depth: the number of batches to sample ahead.
    lookahead: how many batches a row serves that was fetched from a server: its own and the next lookahead - 1, at most
        `depth` in all. They copy the row from this process's memory. 1: each batch fetches all of its rows.
    cache_bytes: memory for rows of servers that are kept for an epoch, a number of bytes or a text such as "4Gi": the
        rows that save most, by exact counts. For these, each epoch is sampled twice (docs/FEATURES.md).
    cache_batches: count only so many batches of each epoch, the first ones; 0: all.
    device: the torch device of the batches. For a GPU, a batch is copied through pinned memory while the trainer uses
        the batch before.

    len(loader) is the number of this rank's batches in an epoch. The same seed gives the same batches over every
    transport and in every language.

    Raises OutOfRangeError for a seed that is not a node; InvalidError for invalid fanouts and numbers, and for too few
    seeds for one step; NotFoundError if a type or a feature does not exist; GraphwireError (GW_UNSUPPORTED) for a
    weight or a time that is not one number for each edge, and for both of one edge type; TypeError for seeds, fanouts,
    times and numbers of a wrong type; ValueError for times that are missing (NaN, NaT), too large, not exact or too
    many, for other options, and for a share of Graph.split that would be divided again.

    A loop raises ValueError if the ranks divide different seeds, or do not all begin it; every rank gets the error
    within 30 s. A batch raises PeerError or DeadlineError if a server does not answer. A UserWarning reports that ranks
    have unequal numbers of steps.
    """

    __module__ = "graphwire.loader"

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Fanouts = (10, 10), *,
                 ntype: str | None = None, features: Names = None, labels: Names = None, edge_features: Names = None,
                 dtype: Any = None, replace: bool = False, weight: Weight = None, time: Time = None,
                 times: Times = None, window: Times = None, pick: str = "uniform", strict: bool = False,
                 end: Time = None,
                 disjoint: bool = False, frontier: str = "all", held_out: HeldOut | None = None,
                 edge_ids: bool = True, index_dtype: str = "int64", batch_size: int = 1000, shuffle: bool = False,
                 seed: int = 0, world: int | None = None, rank: int | None = None, last: str | None = None,
                 depth: int = 4, lookahead: int = 1, cache_bytes: int | str = 0, cache_batches: int = 0,
                 device: Any = None):
        nodes = NodeSeeds(graph, seeds, ntype)
        spec = Spec(graph, fanouts, nodes=nodes, features=features, labels=labels, edge_features=edge_features,
                    dtype=dtype, replace=replace, weight=weight, time=time, end=end, pick=pick, disjoint=disjoint,
                    frontier=frontier, index_dtype=index_dtype, held_out=held_out, edge_ids=edge_ids)
        spec.take_times(graph, nodes, times, window, strict)
        super().__init__(graph, spec, nodes, fanouts, batch_size=batch_size, shuffle=shuffle, seed=seed,
                         world=world, rank=rank, last=last, depth=depth, lookahead=lookahead, cache_bytes=cache_bytes,
                         cache_batches=cache_batches, device=device)


@keywords
class EdgeLoader(Loader):
    """Mini-batches around seed edges, with negatives, for link prediction.

    seeds: ids of edges (integers, or a mask of all edges of etype); None: every edge. For several edge types,
        {edge type: ids, or None}: all types are ordered together, so a batch may have no seeds of some types. Each
        option from `negatives` to `exist_end` is then one value for all types, or {edge type: value}.
    etype: the seeds' edge type; may be left out if the graph has only one.
    negatives: the number of negatives for each edge. A negative is the edge with one end drawn again, uniformly from
        the nodes of the end's type.
    negative_end: the end that is drawn again, "dst" or "src".
    negative_ids: the nodes to draw from, instead of all nodes of the type.
    no_true_edges: if a negative is an existing edge of the type, draw again, up to 16 times.
    exclude: edges that are not sampled, so that the batch does not leak its targets. "edges": the batch's own edges;
        "ends": all edges between the same ends; "reverse": the reverses of the batch's edges, in the edge type that the
        graph records as the reverse. Edges that one type's seeds exclude are excluded for all types.
    reverse_etype: exclude reverses in this edge type.
    reverse_ids: [edges of etype], ids of edges of reverse_etype. These edges are excluded as the reverses, instead of
        all edges between the swapped ends. Edge reverse_ids[i] must lead from edge i's destination to its source.
        reverse_etype may be left out if the graph has one edge type.
    exist_time: a node feature of the drawn end's type: the negatives of an edge are drawn uniformly from the nodes that
        exist at its time, those whose feature is not later, also with `strict`. None: with `time`, the node feature of
        that name, which the type must have; without `time`, and with negative_ids, all nodes. False: all nodes. The
        graph needs an index (`partition --time NAME`).
    exist_end: a node feature, from which time on a node does not exist any more.
    ends: seeds by their ends: (sources, destinations), or an array [2, n], of the graph's ids of nodes; or {edge type:
        such}. The seeds need not be edges of the graph, as validation links are not. `seeds`, and those of a batch, are
        then places in `ends`, 0 to n - 1. Such seeds have no labels, and only "ends", "reverse" and reverse_etype can
        exclude edges. Graph.ids_of gives the graph's ids of original ids.
    labels: names of features of the seed edges, or {edge type: names}.
    times: one for each edge, the time of its ends and of its negatives. None: the edges have the feature `time`
        themselves. With `ends`, times are needed. With exist_time, seeds may have times without `time`.

    The other arguments are NodeLoader's. Edge i of a batch leads from row src_rows[i] of its source type to row
    dst_rows[i] of its destination type.

    Raises the errors of NodeLoader, for edges; and GraphwireError (GW_UNSUPPORTED) for "reverse" if the graph records
    no reverse type. A batch raises InvalidError if an edge of reverse_ids is not the reverse, and OutOfRangeError if it
    does not exist.
    """

    __module__ = "graphwire.loader"

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Fanouts = (10, 10), *,
                 etype: Etype | None = None, negatives: int | Mapping[Etype, int] = 0,
                 negative_end: str | Mapping[Etype, str] = "dst",
                 negative_ids: Ids | Mapping[Etype, Ids] | None = None,
                 no_true_edges: bool | Mapping[Etype, bool] = False,
                 exclude: Sequence[str] | Mapping[Etype, Sequence[str]] = (),
                 reverse_etype: Etype | Mapping[Etype, Etype] | None = None,
                 reverse_ids: Ids | Mapping[Etype, Ids] | None = None,
                 exist_time: str | bool | Mapping[Etype, Any] | None = None,
                 exist_end: str | Mapping[Etype, Any] | None = None, ends: Any = None, features: Names = None,
                 labels: Names = None, edge_features: Names = None, dtype: Any = None, replace: bool = False,
                 weight: Weight = None, time: Time = None, times: Times = None, window: Times = None,
                 pick: str = "uniform",
                 strict: bool = False, end: Time = None, disjoint: bool = False, frontier: str = "all",
                 held_out: HeldOut | None = None, edge_ids: bool = True, index_dtype: str = "int64",
                 batch_size: int = 1000,
                 shuffle: bool = False, seed: int = 0, world: int | None = None, rank: int | None = None,
                 last: str | None = None, depth: int = 4, lookahead: int = 1, cache_bytes: int | str = 0,
                 cache_batches: int = 0, device: Any = None):
        edges = EdgeSeeds(graph, seeds, etype, negatives=negatives, negative_end=negative_end,
                          negative_ids=negative_ids, no_true_edges=no_true_edges, exclude=exclude,
                          reverse_etype=reverse_etype, reverse_ids=reverse_ids, exist_time=exist_time,
                          exist_end=exist_end, ends=ends)
        spec = Spec(graph, fanouts, nodes=None, features=features, labels=labels, edge_features=edge_features,
                    dtype=dtype, replace=replace, weight=weight, time=time, end=end, pick=pick, disjoint=disjoint,
                    frontier=frontier, index_dtype=index_dtype, edges=edges, held_out=held_out,
                    edge_ids=edge_ids)
        spec.take_times(graph, edges, times, window, strict)
        super().__init__(graph, spec, edges, fanouts, batch_size=batch_size, shuffle=shuffle, seed=seed,
                         world=world, rank=rank, last=last, depth=depth, lookahead=lookahead, cache_bytes=cache_bytes,
                         cache_batches=cache_batches, device=device)
