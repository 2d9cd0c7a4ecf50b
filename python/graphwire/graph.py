"""The graph: opened from its folder or over its servers; its types, its features, one call at a time.

open -> Graph -> Feature (rows by id), NodeLoader (mini-batches)

A graph may be used by any number of threads. A process that was forked, or that unpickles a graph, opens its own
connections when it first uses it. Memory and connections go when the graph is closed and the last loader and the last
array over a mini-batch of it are gone.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from graphwire import _arrays, _checks, edges, tensor
from graphwire._arrays import Array, Ids
from graphwire._index import RowIndex
from graphwire._native import aside, c_text, check, ffi, lib, text
from graphwire._opened import Etype, OpenedGraph
from graphwire.edges import EdgeList
from graphwire.tensor import Initial, Tensor


def _text(name: str, value: Any) -> str | bytes | None:
    """A text, a path too, or None."""
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return None if value is None else os.fspath(value)
    raise TypeError(f"{name} is a text, not {value!r}")


def _addresses(servers: Sequence[str] | str | None) -> list[str]:
    """Of the servers; none where they are not given. Servers that are given are not none."""
    if servers is None:
        return []
    if isinstance(servers, str):
        servers = [server.strip() for server in servers.split(",") if server.strip()]
    if isinstance(servers, Mapping) or not isinstance(servers, Iterable):
        raise TypeError(f'servers is a list of "host:port", not {servers!r}')
    found = [str(server) for server in servers]
    if not found:
        raise ValueError('servers: an empty list: name one server for each part, as "host:port", or leave servers out')
    return found


def open(
    part_config: str | os.PathLike | None = None,
    servers: Sequence[str] | str | None = None,
    *,
    key_file: str | os.PathLike | None = None,
    transport: str | None = None,
    neighbours: str | None = None,
    threads: int = 0,
    timeout: float | None = 30.0,
    reconnect: float | None = 300.0,
    insecure: bool = False,
    verify: bool = True,
    numpy: bool = False,
    job: str | None = None,
) -> Graph:
    """Opens a graph. Without part_config and servers: as this program was launched (deploy/launch.py).

    part_config: its JSON, or the folder that holds it. Without `servers` the parts are loaded from there into this
        process (standalone); with them it is compared with what they serve, and may be left out.
    servers: "host:port" or "[v6]:port" of one server per part, in any order; a list, or one string with commas.
    key_file: the servers' key; on this host it is found without.
    transport: "auto" (mapped memory, RDMA, TCP: the best there is), "tcp", "shm" or "verbs".
    neighbours: how remote neighbours are sampled: "auto", "reads", "requests".
    threads: that sample and do input and output; 0: one per processor.
    timeout: seconds that one operation may take; None: no limit.
    reconnect: seconds to try to reach a server that went away; None: no limit.
    insecure: believe servers on loopback that prove no key.
    verify: standalone: compare digests while loading.
    job: whose tensors are seen and created. None: GRAPHWIRE_JOB, which deploy/launch.py sets, else a name that is made
        up here, and shared with children and with who unpickles the graph: ranks that torchrun alone has started do not
        have it in common, and are refused tensors (Graph.create_tensor).
    numpy: arrays come as NumPy's even where torch is installed.

    Raises NotFoundError, PeerError (no server, another graph, another key), DeadlineError, GraphwireError; TypeError
    and ValueError for arguments that make no sense.
    """
    named = _text("job", job) or os.environ.get("GRAPHWIRE_JOB")
    return Graph({
        "part_config": _text("part_config", part_config), "servers": _addresses(servers),
        "key_file": _text("key_file", key_file), "transport": _text("transport", transport),
        "neighbours": _text("neighbours", neighbours), "threads": _checks.integer("threads", threads),
        "timeout_ms": _checks.milliseconds("timeout", timeout, above=True),
        "reconnect_ms": _checks.milliseconds("reconnect", reconnect), "insecure": _checks.flag("insecure", insecure),
        "no_verify": not _checks.flag("verify", verify), "job": named or f"python-{uuid.uuid4().hex}"},
        _checks.flag("numpy", numpy), None if named else os.getpid())


class Graph(OpenedGraph):
    """An opened graph; see `open`. A context manager: leaving it closes it.

    name, graph_id, num_parts; ntypes, etypes: names of the node types, and "src:rel:dst" of the edge types; standalone:
    this process reads the parts itself.
    """

    # --- Lifetime. ---

    def close(self) -> None:
        """Ends the graph's use. Loaders and arrays that are still there keep what they need until they are gone."""
        self._client = None

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return Graph, (self._options, self._torch is None, self._job_of)

    def __repr__(self) -> str:
        return (f"<graphwire.Graph {self.name}: {sum(self._node_counts)} nodes of {len(self.ntypes)} types, "
                f"{sum(self._edge_counts)} edges of {len(self.etypes)} types, {self._where}>")

    # --- Features. ---

    @property
    def features(self) -> list[Feature]:
        """All features of nodes and edges."""
        found: list[Feature] = []
        while (found_one := lib.gw_tensor_at(self._opened().pointer, len(found))) != ffi.NULL:
            names = self.etypes if found_one.of_edges else self.ntypes
            found.append(Feature(self, found_one.of_edges, names[found_one.type], text(found_one.name)))
        return found

    def feature(self, name: str, ntype: str | None = None, *, etype: Etype | None = None) -> Feature:
        """The feature `name` of a node type, or of `etype`. Raises NotFoundError, which lists those there are."""
        if etype is not None:
            return Feature(self, True, self.etypes[self.etype_number(etype)], name)
        return Feature(self, False, self.ntypes[self.ntype_number(ntype)], name)

    def gather(self, name: str, ids: Ids, ntype: str | None = None, *, etype: Etype | None = None) -> Array:
        """Rows of a feature: [len(ids), …]. As `feature(name, …)[ids]`."""
        return self.feature(name, ntype, etype=etype)[list(ids) if isinstance(ids, tuple) else ids]

    def node_texts(self, ids: Ids, ntype: str | None = None, name: str = "orig_id") -> list[str]:
        """Strings of nodes, one for each of ids: "orig_id" for the ids that they had in the input, where these were
        text.

        Raises NotFoundError for a type, and where it has no such strings (ids that were numbers are the feature
        "orig_id"); OutOfRangeError, which names the first id that there is not; ResourceError for 4 GiB of text or
        more; PeerError and DeadlineError where a server cannot be asked.
        """
        number = self.ntype_number(ntype)
        client = self._opened()
        array, word = _arrays.own_ids(ids, self._node_counts[number]), c_text("name", name)

        def call() -> list[str]:
            out = ffi.new("struct gw_texts **")
            try:
                check(lib.gw_node_texts(client.pointer, number, word, _arrays.ids_pointer(array), len(array), out))
                offsets = ffi.unpack(out[0].offsets, len(array) + 1)
                whole = bytes(ffi.buffer(out[0].bytes, offsets[-1])) if offsets[-1] else b""
                return [os.fsdecode(whole[begin:end]) for begin, end in zip(offsets, offsets[1:])]
            finally:
                lib.gw_texts_free(out[0])

        return aside(call)

    # --- Edges. ---

    def in_degrees(self, ids: Ids, etype: Etype | None = None) -> Array:
        """[len(ids)] int64: edges that end at nodes of the type that `etype` leads to. Errors as find_edges'."""
        return edges.degrees(self, ids, etype, False)

    def out_degrees(self, ids: Ids, etype: Etype | None = None) -> Array:
        """[len(ids)] int64: edges that start at nodes of the type that `etype` leads from. Raises GraphwireError
        (GW_UNSUPPORTED) where the edge type is not stored by source (graphwire import --transpose); else errors as
        find_edges'."""
        return edges.degrees(self, ids, etype, True)

    def find_edges(self, ids: Ids, etype: Etype | None = None) -> tuple[Array, Array]:
        """Sources and destinations of edges, [len(ids)] int64 each.

        Raises OutOfRangeError, which names the first id that there is not; NotFoundError for an edge type; PeerError
        and DeadlineError where a server cannot be asked; ResourceError for 2^32 ids or more, or as many edges.
        """
        return edges.find_edges(self, ids, etype)

    def edge_ids(self, src: Ids, dst: Ids, etype: Etype | None = None) -> EdgeList:
        """All edges from src[i] to dst[i], parallel ones too: those of question i, by ascending id. Raises ValueError
        where src and dst differ in length; else errors as find_edges', of ids of nodes."""
        return edges.edge_ids(self, src, dst, etype)

    def has_edges(self, src: Ids, dst: Ids, etype: Etype | None = None) -> Array:
        """[len(src)] bool: is there an edge from src[i] to dst[i]? Errors as edge_ids'."""
        return edges.has_edges(self, src, dst, etype)

    def neighbours(self, ids: Ids, etype: Etype | None = None, fanout: int = -1, *, out_edges: bool = False,
                   replace: bool = False, seed: int = 0, stream: int = 0) -> EdgeList:
        """The edges that end at ids[i] (out_edges: start there): all of them, or a sample of `fanout`, which is the one
        that the first hop of a mini-batch with the same seed and stream takes.

        Raises InvalidError and TypeError for a number that makes no sense; GraphwireError (GW_UNSUPPORTED) for
        out_edges where the edge type is not stored by source; else errors as find_edges', of ids of nodes.
        """
        return edges.neighbours(self, ids, etype, fanout, out_edges, replace, seed, stream)

    def split(self, what: Any = None, ntype: str | None = None, *, etype: Etype | None = None, world: int | None = None,
              rank: int | None = None) -> Array:
        """This rank's share, int64 ids; no two ranks differ by more than one. Each takes what lies on its own part
        first: rank r is taken to be at part r * parts / world.

        what: the name of a mask, a mask, or ids: bools, uint8 and int8 are a mask, wider integers are ids; None: all of
        the type. world, rank: None: torch.distributed's, else one trainer. The calculation is the same on all ranks,
        which say nothing to each other.

        A loader divides its seeds among the ranks as well: give it these with world=1, rank=0, or else the seeds of all
        ranks, and no split. One that would divide a share again refuses the array that this returns; of what is made
        of that (a part of it, a list, a copy) it cannot know.

        Raises ValueError for a rank that is none of the world; NotFoundError for a type or a mask's name; InvalidError
        for a feature that is no mask; IndexError for a mask of another length; OutOfRangeError for an id that there is
        not; PeerError and DeadlineError where a mask cannot be read.
        """
        world, rank = _arrays.world_of(world, rank)
        if isinstance(what, str):
            what = self.feature(what, ntype, etype=etype).pointer()
        share = edges.split(self, what, ntype, etype, world, rank)
        if world > 1:
            for key in [key for key, gone in list(self._shares.items()) if gone() is None]:
                self._shares.pop(key, None)
            self._shares[id(share)] = ref(share)
        return share

    # --- Tensors that change. ---

    def create_tensor(self, name: str, shape: Any, dtype: Any = "float32", *, ntype: str | None = None,
                      etype: Etype | None = None, place: str = "even", initial: Initial = "zeros", seed: int = 0,
                      kept: bool = False) -> Tensor:
        """Creates a tensor, or opens the one of this name: every trainer may call it at once.

        shape: (rows, …); rows: 0 for as many as ntype or etype has. ntype, etype: row i lies with node or edge i;
            without them place: "even" (equal shares of neighbouring rows) or "striped".
        dtype: "float32", "float16", "bfloat16", "float64", "bool" or an integer type. initial: "zeros", a number,
            ("uniform", low, high), ("normal", mean, deviation), all of them within what the dtype holds; random ones
            depend on seed and original id alone (of edges that have none, on the id, which depends on the partition).
        kept: stays when the job has ended, until it is deleted.

        Raises GraphwireError (GW_EXISTS) where there is another one of this name, and says in what it differs;
        ValueError for a shape, dtype, place or initial that makes no sense, and where torch.distributed has several
        ranks that would have one each: of a graph that is read standalone, or whose job has no name that they share.
        """
        return tensor.create_tensor(self, name, shape, dtype, ntype=ntype, etype=etype, place=place, initial=initial,
                             seed=seed, kept=kept)

    def open_tensor(self, name: str, *, kept: bool = False) -> Tensor:
        """Opens a tensor that some trainer has created. Raises NotFoundError."""
        return tensor.open_tensor(self, name, kept)

    def delete_tensor(self, name: str, *, kept: bool = False) -> None:
        """Deletes a tensor and frees its memory. Raises NotFoundError."""
        tensor.delete_tensor(self, name, kept)

    def checkpoint(self, folder: str | os.PathLike, names: Sequence[str] | None = None, *, replace: bool = False,
                   bytes_per_second: int = 0) -> None:
        """Writes tensors, and what their optimizers remember, into a folder of this machine, whole or not at all.

        names: None: all of the job, and the kept ones. bytes_per_second: at most; 0: no limit. replace: the files of a
        checkpoint that has this name already; other files in its folder stay. Ctrl-C ends the wait; what writes goes
        on until the program ends.

        Raises GraphwireError: GW_EXISTS where the folder is there, without replace, or is no checkpoint, or where a
        file in it that is not the checkpoint's cannot stay; GW_NO_SPACE and GW_IO; NotFoundError for a name, and for a
        tensor that is deleted meanwhile; PeerError and DeadlineError where a server cannot be asked.
        """
        tensor.checkpoint(self, os.fspath(folder), names, replace, bytes_per_second)

    def restore(self, folder: str | os.PathLike, names: Sequence[str] | None = None) -> None:
        """Creates the tensors of a checkpoint, or overwrites those that are there; optimizers go on where they were.
        Not beside trainers. The graph may be in other parts than it was.

        names: None: all that it has.

        Raises NotFoundError where there is no checkpoint, where it has no tensor of a name, and where a server has
        ended and took rows of a tensor along (delete it before); GraphwireError: GW_EXISTS where there is another
        tensor of the name, or one that another optimizer trains, GW_DIGEST and GW_FORMAT for files that are not what
        was written, or not of one save, GW_VERSION for those of a newer major version, GW_UNSUPPORTED for other parts
        where nodes have no original ids; PeerError and DeadlineError where a server cannot be asked.
        """
        tensor.restore(self, os.fspath(folder), names)

    @property
    def tensors(self) -> list[Mapping[str, Any]]:
        """The tensors of this job and the kept ones: name, kept, dtype, shape, bytes. Raises PeerError and
        DeadlineError where a server cannot be asked."""
        return tensor.list_tensors(self)


class Feature:
    """Rows of a node or edge type, read by id: `feature[ids]`.

    name, type: "feat", and its node or edge type; of_edges: which of the two.
    shape: shape[0] rows over all parts; dtype: of what comes out. bfloat16 is float32 in NumPy; int8_row is scaled to
    float32 (up to 3 values of padding at the end of a row); torch gets uint16 as int32 and uint32 as int64.

    One of bools, uint8 or int8 stands for its mask wherever ids are asked for.
    """

    rows_by_id = True

    def __init__(self, graph: Graph, of_edges: bool, kind: str, name: str):
        self._graph = graph
        self.name, self.type, self.of_edges = name, kind, of_edges
        tensor = self.pointer()
        self.shape = _arrays.public_shape(tensor)
        self.dtype = _arrays.public_dtype(tensor.dtype, graph._torch)

    def pointer(self) -> Any:
        """The gw_tensor, of this process's client."""
        client = self._graph._opened()
        out = ffi.new("const struct gw_tensor **")
        word = c_text("name", self.name)
        if self.of_edges:
            check(lib.gw_edge_tensor(client.pointer, self._graph.etype_number(self.type), word, out))
        else:
            check(lib.gw_node_tensor(client.pointer, self._graph.ntype_number(self.type), word, out))
        return out[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids) -> Array:
        """Rows, [len(ids), …]. ids: integers in any order, a slice, or a mask of all rows (bools; uint8 or int8 of 0
        and 1); of one integer, its row, and -1 is the last. What follows, x[ids, 0], is torch's, on the rows that came.

        Raises OutOfRangeError, which names the first id that is no row (in a list -1 is none: it stands for "nothing"
        in too many programs); IndexError, TypeError and ValueError for what is no index of rows; PeerError and
        DeadlineError where a server cannot be asked. The result is the caller's own memory.
        """
        index = RowIndex(ids, self.shape)
        return index.of(_arrays.gather(self._graph._opened(), self.pointer(), index.ids, self._graph._torch))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All rows. Raises TypeError for bfloat16 beside torch, which NumPy has no type for; else as feature[:]."""
        if str(self.dtype) == "torch.bfloat16":
            raise TypeError(f"{self!r}: NumPy has no bfloat16; take feature[:].float(), or open(…, numpy=True)")
        rows = np.asarray(self[:])
        return rows if dtype is None else rows.astype(dtype)

    def __repr__(self) -> str:
        return f"<graphwire.Feature {self.type}/{self.name}: {list(self.shape)} {self.dtype}>"
