"""Opens a graph in this process: its client, its types and its parts.

OpenedGraph(options) -> a client; graph.Graph derives from it and adds features, edges and tensors

_graph/edges.py, tensor.py and fanouts.py take an OpenedGraph, so that they need not import graph.py, which imports
them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any
from weakref import ref

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.escape import is_plain, unescaped, unescaped_type
from graphwire._base.keywords import keywords
from graphwire._base.landing import Landing
from graphwire._base.log import follow_level
from graphwire._base.native import (
    ClosedError,
    NotFoundError,
    OfProcess,
    OutOfRangeError,
    c_name,
    c_text,
    check,
    ffi,
    in_thread,
    lib,
    owned,
    text,
)

Etype = Any  # "src:rel:dst", a unique "rel", or ("src", "rel", "dst")


class _Client(OfProcess):
    """Owns a gw_client. The client closes when this object, its last loader and its last mini-batch are freed. Each of
    them has a share of the client, because Python frees the objects of a cycle in any order.

    landing: where rows of mini-batches land; None: they become NumPy arrays, and land in the library's memory."""

    def __init__(self, options: Mapping[str, Any], of_tensors: bool):
        self.pid = os.getpid()
        self._held = held = owned("struct held_client *", lib.client_end)
        self.landing = landing = Landing() if of_tensors else None
        follow_level()
        in_thread(lambda: _open(options, landing, held))

    @property
    def pointer(self) -> Any:
        return self._held.client

    def lend(self, kind: str, end: Any) -> Any:
        """Returns owned(kind, end), whose field `client` has a share of the client."""
        held = owned(kind, end)
        lib.share_acquire(self._held.share, ffi.addressof(held, "client"))
        return held


def _on_disk_word(what: str, word: str) -> bytes:
    """A word of on_disk for C. Names within the format's alphabet stay: they may be those of an array's key."""
    return b"/".join((c_text if is_plain(one) else c_name)(what, one) for one in word.split("/"))


def _open(options: Mapping[str, Any], landing: Landing | None, out: Any) -> None:
    """Calls gw_client_open, which writes into a held_client. The strings are freed after the call."""
    given = ffi.new("struct gw_client_options *")
    kept: list[Any] = []
    for name, value in options.items():
        if name in ("servers", "on_disk"):
            texts = [ffi.new("char[]", (_on_disk_word if name == "on_disk" else c_text)(name, one)) for one in value]
            kept += [texts, ffi.new("char *[]", texts)]
            setattr(given, name, kept[-1])
            setattr(given, {"servers": "server_count"}.get(name, "on_disk_count"), len(value))
        elif isinstance(value, (str, bytes)):
            kept.append(ffi.new("char[]", c_text(name, value)))
            setattr(given, name, kept[-1])
        elif value is not None:
            setattr(given, name, value)
    check(lib.client_open(given, ffi.NULL if landing is None else landing.held, out))


@keywords
class OpenedGraph:
    """The client, types and parts of an opened graph. Graph documents the attributes."""

    def __init__(self, options: Mapping[str, Any], numpy: bool = False, job_of: int | None = None):
        self._options, self._job_of = dict(options), job_of  # _job_of: the process that made the job's name
        self._shares: dict[int, ref[Any]] = {}  # {id(): array} of results of split() for several ranks
        self._scratch: Any = None  # owns the temporary folder of the graph's parts
        self._edge_ids_told = False  # whether graphwire.pyg has warned about edge ids: it warns once for each graph
        self._renumbered: frozenset[str] | None = None  # the node types whose ids graphwire.pyg translates, once known
        self._time_ranges: dict[tuple[int, str], Any] = {}  # of columns of times, for a warning of time_ranges.py
        self._times_told: set[Any] = set()  # the times that it has warned about
        self._torch = None if numpy else _arrays.torch_module()
        self._opening: dict[int, threading.Lock] = {}
        self._client: _Client | None = _Client(self._options, self._torch is not None)
        graph = lib.gw_client_graph(self._client.pointer)
        self.name = text(graph.name)
        self.graph_id = int(graph.graph_id)
        self.num_parts = int(graph.num_parts)
        self.ntypes = [unescaped(text(graph.ntypes[i].name)) for i in range(graph.num_ntypes)]
        self.etypes = [unescaped_type(text(graph.etypes[i].name)) for i in range(graph.num_etypes)]
        self._node_counts = [_arrays.RowsOf(graph.ntypes[i].count, self.graph_id, False, self.ntypes[i])
                             for i in range(graph.num_ntypes)]
        self._edge_counts = [_arrays.RowsOf(graph.etypes[i].count, self.graph_id, True, self.etypes[i])
                             for i in range(graph.num_etypes)]
        transports = sorted({self.transport(part) for part in range(self.num_parts)})
        self.standalone = transports == ["memory"]
        self._where = "standalone" if self.standalone else f"{self.num_parts} servers by {', '.join(transports)}"
        self._ends = [(int(graph.etypes[i].src), int(graph.etypes[i].dst)) for i in range(graph.num_etypes)]
        self._reverses = [int(graph.etypes[i].reverse) for i in range(graph.num_etypes)]

    def _opened(self) -> _Client:
        """The client of this process; a child process opens its own. Raises ValueError if the graph is closed."""
        if self._client is None:
            raise ClosedError(f"the graph {self.name} is closed")
        if self._client.pid != os.getpid():  # inherited by fork: the client's threads are in the parent only
            # One lock for each process, because a fork may copy a lock that another thread of the parent has locked.
            with self._opening.setdefault(os.getpid(), threading.Lock()):
                if self._client is not None and self._client.pid != os.getpid():
                    self._client = _Client(self._options, self._torch is not None)
            return self._opened()
        return self._client

    def ntype_number(self, ntype: str | None = None) -> int:
        """A node type's number; None: the only one. Raises NotFoundError, which lists the types."""
        if ntype is None:
            if len(self.ntypes) == 1:
                return 0
            raise NotFoundError("GW_NOT_FOUND", f"which node type? name one of {', '.join(self.ntypes)}")
        number = ffi.new("uint32_t *")
        check(lib.gw_node_type(self._opened().pointer, c_name("ntype", ntype), number))
        return int(number[0])

    def etype_number(self, etype: Etype | None = None) -> int:
        """An edge type's number; None: the only one. Raises NotFoundError, which lists the types."""
        if etype is None:
            if len(self.etypes) == 1:
                return 0
            raise NotFoundError("GW_NOT_FOUND", f"which edge type? name one of {', '.join(self.etypes)}")
        number = ffi.new("uint32_t *")
        words = [etype] if isinstance(etype, str) else list(etype) if isinstance(etype, (tuple, list)) else []
        if not words or not all(isinstance(word, str) for word in words):
            raise TypeError('etype is "relation", "source:relation:destination" or the triple, not '
                            f"{checks.shown(etype)}")
        name = ":".join(words)
        check(lib.gw_edge_type(self._opened().pointer, c_name("etype", name), number))
        return int(number[0])

    def ends(self, etype: Etype | None = None) -> tuple[str, str]:
        """(source, destination): the node types of an edge type's ends. Raises NotFoundError, which lists the types."""
        src, dst = self._ends[self.etype_number(etype)]
        return self.ntypes[src], self.ntypes[dst]

    def reverse(self, etype: Etype | None = None) -> str | None:
        """The edge type that the graph records as the reverse of `etype`: it has the same edges, with source and
        destination exchanged. An edge type that has each edge in both directions is its own reverse. None: the graph
        records no reverse. Raises NotFoundError, which lists the types."""
        number = self._reverses[self.etype_number(etype)]
        return self.etypes[number] if number < len(self.etypes) else None

    def num_nodes(self, ntype: str | None = None) -> int:
        """The number of nodes of a type, over all parts; without a type, of all types. Raises NotFoundError, which
        lists the types."""
        return sum(self._node_counts) if ntype is None else int(self._node_counts[self.ntype_number(ntype)])

    def num_edges(self, etype: Etype | None = None) -> int:
        """The number of edges of a type, over all parts; without a type, of all types. Raises NotFoundError, which
        lists the types."""
        return sum(self._edge_counts) if etype is None else int(self._edge_counts[self.etype_number(etype)])

    def rows_of(self, tensor: Any) -> int:
        """The number of rows of a gw_tensor; a RowsOf if they are those of a type."""
        counts = self._edge_counts if tensor.of_edges else self._node_counts
        of_type = tensor.type < len(counts) and tensor.shape[0] == counts[tensor.type]
        return counts[tensor.type] if of_type else int(tensor.shape[0])

    def part_range(self, part: int, ntype: str | None = None) -> range:
        """The range of ids of a node type that a part owns. Raises OutOfRangeError for a part that does not exist, and
        NotFoundError for a type."""
        begin, end = ffi.new("int64_t *"), ffi.new("int64_t *")
        check(lib.gw_part_range(self._opened().pointer, self.ntype_number(ntype), self._part(part), begin, end))
        return range(begin[0], end[0])

    def part_edge_range(self, part: int, etype: Etype | None = None) -> range:
        """The range of ids of an edge type that a part owns: a part owns the edges that end at its nodes. Raises the
        errors of part_range."""
        begin, end = ffi.new("int64_t *"), ffi.new("int64_t *")
        check(lib.gw_part_edge_range(self._opened().pointer, self.etype_number(etype), self._part(part), begin, end))
        return range(begin[0], end[0])

    def transport(self, part: int) -> str:
        """The transport to a part: "memory" (this process has loaded the part), "shm", "verbs" or "tcp". Raises
        OutOfRangeError, an IndexError, for a part that does not exist."""
        return text(lib.gw_part_transport(self._opened().pointer, self._part(part)))

    def _part(self, part: int) -> int:
        found = checks.as_integer(part)
        if found is None:
            raise TypeError(f"part is an integer, not {part!r}")
        if not 0 <= found < self.num_parts:
            raise OutOfRangeError("GW_RANGE", f"the graph has {self.num_parts} parts, and no part {found}")
        return found
