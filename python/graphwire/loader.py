"""Loaders: streams of mini-batches that the library samples several ahead, in its own threads.

    for batch in loader:      one epoch
        …

A loop that was left early is an epoch that ended: the next one begins the next epoch. state_dict() and
load_state_dict() go on within an epoch, in another process too, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Union
from weakref import ref

from graphwire import _arrays
from graphwire._arrays import Ids, Lease
from graphwire._native import SLICE_MS, OfProcess, Workers, check, error_of, ffi, finish, lib
from graphwire.batch import Batch, make_batch
from graphwire.graph import Etype, Graph
from graphwire.seeds import EdgeSeeds, NodeSeeds, Seeds

Fanout = Union[int, Mapping[Etype, int]]
Names = Union[str, Sequence[str], Mapping[Any, Union[str, Sequence[str]]], None]
_LAST = {"wrap": "GW_LAST_WRAP", "drop": "GW_LAST_DROP", "short": "GW_LAST_SHORT"}


def _names(graph: Graph, given: Names, kinds: list[str], what: str, number: Any) -> list[tuple[str, str]]:
    """(type, feature) for each feature named; without types, of the only type."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [(kinds[number(kind)], name) for kind, names in given.items()
                for name in ([names] if isinstance(names, str) else names)]
    if len(kinds) != 1:
        raise ValueError(f"{what}: there are several types: give {{type: names}} of {', '.join(kinds)}")
    return [(kinds[0], name) for name in ([given] if isinstance(given, str) else given)]


class Spec:
    """What each mini-batch consists of: gw_sample_spec, and what its parts are called."""

    def __init__(self, graph: Graph, fanouts: Sequence[Fanout], *, nodes: NodeSeeds | None, features: Names,
                 labels: Names, edge_features: Names, replace: bool, index_dtype: str, edges: EdgeSeeds | None = None):
        if index_dtype not in ("int32", "int64"):
            raise ValueError(f"index_dtype is int32 or int64, not {index_dtype!r}")
        if not fanouts:
            raise ValueError("fanouts: one number for each hop, from the seeds outwards; -1: all neighbours")
        self.wide = index_dtype == "int64"
        self.edges = edges  # what its pointers point to
        self.several = any(seeds is not None and seeds.several for seeds in (nodes, edges))
        self._client = graph._opened()  # the tensors are its
        self._counts = ffi.new("int32_t[]", [count for hop in fanouts for count in self._hop(graph, hop)])
        named = [(kind, name, lib.GW_AT_INPUTS) for kind, name in _names(
            graph, features, graph.ntypes, "features", graph.ntype_number)]
        named += self._labels(graph, labels, nodes, edges)
        named += [(kind, name, lib.GW_AT_EDGES) for kind, name in _names(
            graph, edge_features, graph.etypes, "edge_features", graph.etype_number)]
        self.fetches = []
        for kind, name, at in named:
            of_edges = at == lib.GW_AT_EDGES or (at == lib.GW_AT_SEEDS and edges is not None)
            feature = graph.feature(name, etype=kind) if of_edges else graph.feature(name, kind)
            self.fetches.append((feature.pointer(), kind, name, at))
        self._fetches = ffi.new("struct gw_fetch[]", [
            {"tensor": tensor, "at": at} for tensor, _, _, at in self.fetches])
        self.pointer = ffi.new("struct gw_sample_spec *", {
            "ntype": nodes.types[0] if nodes is not None else 0, "hops": len(fanouts), "fanouts": self._counts,
            "replace": replace, "wide_indices": self.wide, "fetch_count": len(self.fetches), "fetches": self._fetches,
            "edges": ffi.NULL if edges is None else edges.pointer,
            "edge_type_count": len(edges.types) if edges is not None and edges.several else 0})

    @staticmethod
    def _labels(graph: Graph, labels: Names, nodes: NodeSeeds | None,
                edges: EdgeSeeds | None) -> list[tuple[str, str, Any]]:
        """Features of the seeds, whose types are the only ones that have any."""
        if nodes is not None:
            kinds = [graph.ntypes[one] for one in nodes.types]
        else:
            kinds = [] if edges is None else [graph.etypes[one] for one in edges.types]

        def place(kind: Any) -> int:
            name = graph.ntypes[graph.ntype_number(kind)] if edges is None else graph.etypes[graph.etype_number(kind)]
            if name not in kinds:
                raise ValueError(f"labels: {name} has no seeds; there are seeds of {', '.join(kinds)}")
            return kinds.index(name)

        return [(kind, name, lib.GW_AT_SEEDS) for kind, name in _names(graph, labels, kinds, "labels", place)]

    @staticmethod
    def _hop(graph: Graph, hop: Fanout) -> list[int]:
        """One hop's fanout for each edge type; types that a mapping does not name are left out."""
        if not isinstance(hop, Mapping):
            return [int(hop)] * len(graph.etypes)
        counts = [0] * len(graph.etypes)
        for etype, count in hop.items():
            counts[graph.etype_number(etype)] = int(count)
        return counts


class _Stream:
    """A gw_loader, which ends when nobody refers to it any more. memory: what it reads until then, of EdgeSeeds."""

    def __init__(self, client: Any, options: Any, memory: Any):
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


class Batches(OfProcess):
    """A loop over a loader."""

    __slots__ = ("_each",)

    def __init__(self, each: Iterator[Batch]):
        self._each = each

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        return next(self._each)


class Loader(OfProcess):
    """What NodeLoader and EdgeLoader share: epochs, states, the end."""

    def __init__(self, graph: Graph, spec: Spec, seeds: NodeSeeds | EdgeSeeds, *, batch_size: int = 1000,
                 shuffle: bool = False, seed: int = 0, world: int | None = None, rank: int | None = None,
                 last: str | None = None, depth: int = 4, device: Any = None):
        given = world is not None or rank is not None
        self.world, self.rank = _arrays.world_of(world, rank)
        if seeds.of_rank and self.world > 1 and not given:
            raise ValueError("the seeds are one rank's share already, of Graph.split, and the loader would divide them "
                             f"among {self.world} ranks again: give it world=1, rank=0, or the seeds of all ranks")
        self.last = last or ("short" if self.world == 1 else "wrap")
        if self.last not in _LAST:
            raise ValueError(f"last is one of {', '.join(_LAST)}, not {self.last!r}")
        self.graph, self.batch_size, self.device = graph, int(batch_size), device
        self._client, self._spec, self._seeds = graph._opened(), spec, seeds
        self._options = ffi.new("struct gw_loader_options *", {
            "spec": spec.pointer[0], "batch_size": self.batch_size, "shuffle": shuffle, "seed": seed,
            "world": self.world, "rank": self.rank, "last": getattr(lib, _LAST[self.last]), "depth": depth})
        if seeds.several:
            self._options.lists, self._options.list_count = seeds.lists, len(seeds.types)
        else:
            self._options.ids, self._options.id_count = seeds.lists[0].ids, seeds.lists[0].count
        self._within = False  # an epoch has begun and not ended
        self._given: dict[str, int] | None = None  # the state after the last batch given, where one ahead was taken
        self._stream: _Stream | None = self._opened({"epoch": 0, "step": 0, "plan": 0})

    def _opened(self, state: Mapping[str, int]) -> _Stream:
        self._options.start = dict(state)
        return _Stream(self._client, self._options, self._seeds.memory)

    def _there(self) -> _Stream:
        if self._stream is None:
            raise ValueError("the loader is closed")
        return self._stream

    def __len__(self) -> int:
        return int(lib.gw_loader_steps(self._there().pointer))

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

    def _still(self, stream: _Stream) -> None:
        if stream is not self._stream:
            raise RuntimeError("the loader has been closed, or started again, since this loop began")

    def _epoch(self, stream: _Stream) -> Iterator[Batch]:
        while True:
            self._still(stream)
            self._within = True
            batch = self._next(stream)
            if batch is None:
                self._within = False
                return
            yield batch

    def _moved(self, stream: _Stream) -> Iterator[Batch]:
        """The batches on the device. To a GPU they are copied on a stream of their own, one ahead, by a thread beside:
        the copy into pinned memory that comes before takes a processor as long as the rows are, while the trainer has
        the batch before."""
        torch = _arrays.torch_module()
        if torch is None:
            raise ValueError("device= needs torch")
        device = torch.device(self.device)
        if device.type != "cuda":
            for batch in self._epoch(stream):
                yield batch.to(device)
            return
        loop = Workers(1)  # this frame's alone: it goes with the loop, however that ends
        side, going = torch.cuda.Stream(device), ref(loop)

        def start() -> tuple[Batch | None, dict[str, int]]:
            """The next batch, on its way, and where the loader is behind it."""
            batch = self._next(stream, going)
            if batch is not None:
                with torch.cuda.stream(side):
                    batch = batch.pinned().to(device, non_blocking=True)
            return batch, stream.state()

        self._still(stream)
        self._within = True
        ahead = loop.submit(start)
        while True:
            ready, state = ahead.wait()
            self._still(stream)
            if ready is None:
                break
            torch.cuda.current_stream(device).wait_stream(side)  # for this one alone: the next comes after
            ahead = loop.submit(start)
            ready.record_stream(torch.cuda.current_stream(device))
            self._given = state
            yield ready
            self._still(stream)
        self._within, self._given = False, None

    def __iter__(self) -> Iterator[Batch]:
        """One epoch; the rest of one, after load_state_dict. A batch that fails raises, and the loop may be begun
        again: with the next epoch."""
        stream = self._there()
        if self._within:
            stream = self._stream = self._opened({"epoch": self.state_dict()["epoch"] + 1, "step": 0, "plan": 0})
            self._within = False
        self._given = None
        return Batches(self._epoch(stream) if self.device is None else self._moved(stream))

    def state_dict(self) -> dict[str, int]:
        """Where the loader is: {"epoch", "step", "plan"}, after the last batch that it gave."""
        state = self._there().state()
        return state if self._given is None else dict(self._given)

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes on from there. Raises InvalidError where the state is that of a loader with another plan: other seeds,
        batch size, world, shuffle seed, graph."""
        self._stream = self._opened({name: int(state[name]) for name in ("epoch", "step", "plan")})
        self._within, self._given = False, None

    def close(self) -> None:
        """Ends the sampling ahead; batches that are held stay."""
        self._stream = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NodeLoader(Loader):
    """Mini-batches around seed nodes.

    seeds: ids of the seeds of an epoch (integers, or a mask of all nodes); None: every node of `ntype`. Of several node
        types {node type: ids, or None}: a batch has of each type what falls to it.
    fanouts: neighbours for each hop, from the seeds outwards: a count, -1 for all, or {edge type: count}.
    ntype: of the seeds; may be left out where there is one.
    features: names of features to fetch for every node of a batch, or {node type: names}; labels: the same for the
        seeds; edge_features: {edge type: names}, for every edge.
    batch_size: seeds of one rank's batch. shuffle: a new order in each epoch. seed: of shuffle and sampling.
    world, rank: the trainers that share an epoch, and which of them this is; None: torch.distributed's, else one. The
        loader divides the seeds among them: for seeds that are one rank's share (Graph.split) world=1, rank=0.
    last: the last step of an epoch: "wrap" (filled from the start of the order: equal steps for all ranks), "drop", or
        "short": the last batch may be, and with several ranks some may have a step less than others (DDP: join); None:
        "short" for one trainer, "wrap" for several.
    replace: sample with replacement. index_dtype: "int64" or "int32", of the blocks' indices.
    depth: batches sampled ahead. device: where the batches go (torch); to a GPU through pinned memory, copied while the
        batch before is used.

    len(loader): this rank's batches in an epoch. The same seed gives the same batches over every transport and in every
    language.

    Raises OutOfRangeError for a seed that is no node, InvalidError for fanouts that make no sense, or seeds that are
    too few for one step, NotFoundError for a type or a feature, ValueError for other options, and for a share of
    Graph.split that would be divided again. A batch raises PeerError
    or DeadlineError where a server cannot be asked.
    """

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Sequence[Fanout] = (10, 10), *,
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
        same of this type; with reverse_ids, [edges of etype], of these edges of it. What one type's edges exclude is
        excluded for all.
    labels: names of features of the seed edges, or {edge type: names}. The other arguments are NodeLoader's.

    A batch's edge i leads from row src_rows[i] of its source type to row dst_rows[i] of its destination type.

    Raises what NodeLoader does, of edges; GraphwireError (GW_UNSUPPORTED) for "reverse" where the graph names none.
    """

    def __init__(self, graph: Graph, seeds: Seeds = None, fanouts: Sequence[Fanout] = (10, 10), *,
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


def sample(graph: Graph, seeds: Seeds, fanouts: Sequence[Fanout], *, seed: int = 0, stream: int = 0,
           ntype: str | None = None, features: Names = None, labels: Names = None, edge_features: Names = None,
           replace: bool = False, index_dtype: str = "int64") -> Batch:
    """One mini-batch around `seeds`, which may be none; the arguments are NodeLoader's. (seed, stream, seeds) decide
    what is drawn.

    Raises OutOfRangeError for a seed that is no node, InvalidError for fanouts that make no sense, NotFoundError for a
    type or a feature, ValueError for other arguments, PeerError or DeadlineError where a server cannot be asked.
    """
    client = graph._opened()
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
