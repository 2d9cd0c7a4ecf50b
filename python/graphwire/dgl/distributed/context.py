"""The state of this process's job: its graph, ranks, barriers, tensors and random numbers.

initialize() -> Context -> DistGraph opens the graph -> DistTensors -> barrier() -> exit_client(), or the process ends

A process is distributed if a launcher has started it (GRAPHWIRE_IP_CONFIG, or DGL_DIST_MODE=distributed), else
standalone. Two things override this, and are reported on stderr: initialize(standalone=True), and the option
--standalone of a script that `python -m graphwire.dgl` runs.

Errors: TypeError and ValueError for arguments; RuntimeError for a barrier without a group.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from queue import SimpleQueue
from typing import Any, Callable
from weakref import ref

import torch.distributed as dist

import graphwire
from graphwire._base.escape import unescaped_tensor, unescaped_type
from graphwire._base.keywords import keywords
from graphwire._base.native import ffi
from graphwire.dgl.seeding import seeds, watch_torch
from graphwire.optim import _over_gloo

_log = logging.getLogger("graphwire.dgl")
_NET_TYPES = ("socket", "tensorpipe")


def _folder_of(part_config: str | os.PathLike[str]) -> str:
    """The folder of a graph. part_config is this folder, or the JSON in it."""
    path = os.path.realpath(part_config)
    return path if os.path.isdir(path) else os.path.dirname(path)


def _written(folder: str, graph: Any) -> tuple[int, int] | None:
    """What distinguishes the graph in a folder from one that is written there later."""
    try:
        found = os.stat(os.path.join(folder, f"{graph.name}.json"))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _key(name: str) -> str:
    """kvstore_key of a tensor, of its name on the servers."""
    kind, _, rest = name.partition("/")
    kind_of_rows, _, tensor = rest.partition("/")
    return f"{kind}~{unescaped_type(kind_of_rows)}~{unescaped_tensor(tensor)}" if tensor else name


class Client:
    """The object that scripts use as DistGraph._client."""

    def __init__(self, context: Context):
        self._context = context

    def barrier(self) -> None:
        self._context.barrier()

    def data_name_list(self) -> list[str]:
        """The keys of the graph's features and tensors, as kvstore_key has them ("node~TYPE~NAME"), and of the states
        of optimizers."""
        return [*self.gdata_name_list(), *self._context.states()]

    def gdata_name_list(self) -> list[str]:
        """The same without the states of optimizers."""
        self._context.collect()
        graph = self._context.graph
        if graph is None:
            return []
        features = [f"{'edge' if some.of_edges else 'node'}~{some.type}~{some.name}" for some in graph.features]
        return features + [_key(tensor["name"]) for tensor in graph.tensors]

    @property
    def num_servers(self) -> int:
        return 1 if self._context.graph is None else self._context.graph.num_parts


class Use:
    """All objects of one tensor refer to one Use. When the last of them is freed, the Use puts a mark into a queue.
    put() is written in C, so that no signal interrupts it."""

    __slots__ = ("__weakref__", "_mark")

    def __init__(self, gone: SimpleQueue[Any]):
        self._mark = ffi.gc(ffi.new("char *"), gone.put)


class Context:
    """The only Context of a process. graph: the graph, which the first DistGraph opens."""

    def __init__(self) -> None:
        self.initialized = False
        self.standalone = True
        self.transport: str | None = None
        self.graph: Any = None
        self._folder: str | None = None  # the folder of a standalone graph
        self._written: tuple[int, int] | None = None
        self.dist_graph: Any = None
        self._store: Any = None
        self._barriers = 0
        self._tensors: dict[str, tuple[ref[Use], bool]] = {}  # {name: (its Use, whether it is persistent)}
        self._gone: SimpleQueue[Any] = SimpleQueue()  # a mark for each Use that was freed
        self._dropped: set[str] = set()
        self._states: dict[str, ref[Any]] = {}  # {name: an optimizer's state, a State}
        self.client = Client(self)
        self._local = threading.local()
        self._lock = threading.Lock()

    # --- Ranks. ---

    @property
    def world(self) -> int:
        if self.standalone:
            return 1
        if dist.is_available() and dist.is_initialized():
            return dist.get_world_size()
        return int(os.environ.get("WORLD_SIZE", 1))

    @property
    def rank(self) -> int:
        if self.standalone:
            return 0
        if dist.is_available() and dist.is_initialized():
            return dist.get_rank()
        return int(os.environ.get("RANK", 0))

    @property
    def samplers(self) -> int:
        """The number of threads that sample ahead: the launcher's --num_samplers."""
        word = os.environ.get("GRAPHWIRE_SAMPLERS") or os.environ.get("DGL_NUM_SAMPLER") or "0"
        return int(word) if word.isdigit() else 0

    def part_of(self, rank: int, parts: int, world: int | None = None) -> int:
        """The part of a rank among `world` trainers; None: those of the job."""
        return rank * parts // (self.world if world is None else world)

    def barrier(self) -> None:
        """Returns when every trainer has called it. All writes before it have then been acknowledged."""
        self.collect()
        if self.world == 1:
            return
        if dist.is_available() and dist.is_initialized():
            group = None if dist.get_backend() == "gloo" else _over_gloo()  # nccl cannot exchange objects without a GPU
            dist.barrier(group)
            self._delete_dropped(group)
            return
        self._barriers += 1
        store = self._own_store()
        if store.add(f"graphwire/barrier/{self._barriers}", 1) == self.world:
            store.set(f"graphwire/passed/{self._barriers}", "1")
        store.wait([f"graphwire/passed/{self._barriers}"])

    # --- Tensors of DistTensor objects. ---

    def wanted(self, name: str) -> None:
        """Call it before an object refers to the tensor `name`. Removes the tensor from those that the next barrier
        deletes."""
        self.collect()
        self._dropped.discard(name)

    def states(self) -> dict[str, Any]:
        """{name: State} of the optimizers' states that objects refer to."""
        found = {name: state for name, known in list(self._states.items()) if (state := known()) is not None}
        self._states = {name: ref(state) for name, state in found.items()}
        return found

    def made_state(self, name: str, state: Any) -> None:
        """While an object refers to a State, others find it by its name. An earlier one of the name stays."""
        if name not in self.states():
            self._states[name] = ref(state)

    def made(self, name: str, persistent: bool, graph: graphwire.Graph) -> Use:
        """Returns the tensor's Use. The tensor counts as used while an object keeps the Use. A tensor of another graph
        than the job's stays until that graph is freed."""
        if graph is not self.graph:
            return Use(self._gone)
        known, kept = self._tensors.get(name, (None, False))
        use = (known() if known is not None else None) or Use(self._gone)
        self._tensors[name] = (ref(use), kept or persistent)
        self._dropped.discard(name)
        return use

    def collect(self) -> None:
        """Deletes the tensors that are not persistent and have no object any more. Call it when a tensor is made or
        used, and at a barrier. With several trainers, it only marks these tensors, and the next barrier deletes them.

        An object does not delete its tensor when it is freed, because Python drops an interrupt that comes then.
        """
        if self._gone.empty():
            return
        while not self._gone.empty():
            self._gone.get()
        for name, (use, kept) in list(self._tensors.items()):
            if kept or use() is not None:
                continue
            if self.world > 1:
                self._dropped.add(name)
            elif self.graph is not None:
                with contextlib.suppress(graphwire.GraphwireError):  # the server may have ended before
                    self.graph.delete_tensor(name)
            self._tensors.pop(name, None)

    def _delete_dropped(self, group: Any) -> None:
        """Deletes the tensors of which no trainer has an object any more."""
        self.collect()
        every: list[Any] = [None] * self.world
        dist.all_gather_object(every, sorted(self._dropped), group=group)
        everywhere = set.intersection(*map(set, every))
        if not everywhere or self.graph is None:
            return
        if self.rank == 0:
            for name in sorted(everywhere):
                with contextlib.suppress(graphwire.NotFoundError):
                    self.graph.delete_tensor(name)
        self._dropped -= everywhere
        dist.barrier(group)

    def _own_store(self) -> Any:
        """torchrun's store, for barriers before torch.distributed is initialized. Raises RuntimeError without torchrun.
        """
        if self._store is None:
            if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
                raise RuntimeError("barrier: call torch.distributed.init_process_group before it, or start the "
                                   "trainers with torchrun, as deploy/launch.py does")
            address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            self._store = getattr(dist, "TCPStore")(address, port, self.world, False)  # noqa: B009
        return self._store

    # --- Random numbers. ---

    def at(self, stream: int | None) -> None:
        """Sets the stream of this thread's sampling. A loader calls it for each batch, so that a batch's sampling does
        not depend on the thread. None: the process's own streams."""
        self._local.stream, self._local.calls = stream, 0

    def looking(self, rows: Callable[[Any, Any], Any] | None) -> None:
        """Sets the function that reads rows of columns for the batch that this thread makes (ahead.py); None: no
        look-ahead."""
        self._local.rows = rows

    def rows(self, column: Any, ids: Any) -> Any:
        """Rows of a DistTensor for the batch that this thread makes."""
        read = getattr(self._local, "rows", None)
        return column[ids] if read is None else read(column, ids)

    def draw(self) -> tuple[int, int]:
        """(seed, stream) for one call that samples. The seed is derived from the rank and from the seed of
        torch.manual_seed, or of dgl.seed if that call came later."""
        seed = (seeds.seed + 0x9E3779B97F4A7C15 * self.rank) % 2**63
        stream = getattr(self._local, "stream", None)
        if stream is None:
            with self._lock:
                return seed, next(seeds.streams)
        self._local.calls += 1
        return seed, ((stream << 8) + self._local.calls) % 2**62 + 2**62

    # --- The graph. ---

    def open(self, part_config: str | None = None) -> graphwire.Graph:
        """The job's graph, which the first call opens. In a standalone process, the part_config of another graph, or
        of a graph that was written again, opens that graph, and later calls return it. Raises ValueError if a
        standalone process names no graph."""
        if self.graph is None and not self.standalone:
            self.graph = graphwire.open(transport=self.transport)
        elif self.graph is None and part_config is None:
            raise ValueError("DistGraph: a standalone script must name its graph: part_config='…/graph.json'")
        elif part_config is not None and not self._is_open(part_config):
            self.use(graphwire.open(part_config))
        return self.graph

    def _is_open(self, part_config: str) -> bool:
        if self.graph is None or not self.standalone:
            return self.graph is not None
        return self._folder == _folder_of(part_config) and self._written == _written(self._folder, self.graph)

    def use(self, graph: graphwire.Graph | None) -> None:
        """Makes a graph the job's graph. Objects of the graph before keep that graph."""
        self.graph, self.dist_graph, self._folder, self._written = graph, None, None, None
        if graph is not None and graph.standalone:
            self._folder = _folder_of(os.fsdecode(graph._options["part_config"]))
            self._written = _written(self._folder, graph)
        self._tensors.clear()
        self._dropped.clear()
        self._states.clear()

    def close(self) -> None:
        self.use(None)
        self.initialized = False


context = Context()
watch_torch()


def _launched() -> bool:
    return "GRAPHWIRE_IP_CONFIG" in os.environ or os.environ.get("DGL_DIST_MODE", "standalone") == "distributed"


@keywords
def initialize(ip_config: str | None = None, *arguments: Any, standalone: bool | None = None,
               net_type: str | None = None, num_servers: Any = None, num_workers: Any = None,
               max_queue_size: Any = None, num_worker_threads: Any = None, use_graphbolt: Any = None) -> None:
    """dgl.distributed.initialize, in the forms of all versions of DGL.

    ip_config: ignored. The launcher has set the servers' addresses, and a standalone script has no servers.
    arguments: (num_servers, num_workers, max_queue_size, net_type, …) of old versions, or (max_queue_size, net_type,
        num_worker_threads) of DGL 1. Numbers are ignored; a string is net_type.
    net_type: "socket" and "tensorpipe" select TCP, and a line on stderr reports this, unless the launcher's
        --transport was given, which decides. None: the best available transport.
    standalone: True ignores the launcher.

    num_servers, num_workers, max_queue_size, num_worker_threads and use_graphbolt have no effect.

    Raises TypeError for an unknown argument; ValueError for another net_type.
    """
    words = [word for word in arguments if isinstance(word, str)]
    if net_type is None and words:
        net_type = words[0]
    if net_type is not None and net_type not in _NET_TYPES:
        raise ValueError(f"initialize: net_type is {' or '.join(_NET_TYPES)}, not {net_type!r}")
    forced = standalone or os.environ.get("GRAPHWIRE_DGL_STANDALONE") == "1"
    if forced and _launched():
        _log.warning("graphwire.dgl: the script asks for standalone: the launcher's servers are not used")
    context.standalone, context.transport = bool(forced) or not _launched(), None
    if net_type is not None and not context.standalone and "GRAPHWIRE_TRANSPORT" not in os.environ:
        context.transport = "tcp"
        if context.rank == 0:
            _log.warning("graphwire.dgl: net_type=%r is TCP here; leave it out for mapped memory and RDMA", net_type)
    context.initialized = True


def is_initialized() -> bool:
    return context.initialized


def exit_client() -> None:
    """Ends this process's use of the graph. DGL's scripts may call it; the end of the process does the same."""
    context.close()


atexit.register(context.close)
