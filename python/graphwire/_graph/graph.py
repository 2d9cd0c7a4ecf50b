"""The graph, opened from its folder or over its servers: its types, features, edges and tensors.

open -> Graph -> Feature (rows by id), NodeLoader (mini-batches), Tensor (rows that change)

Any number of threads may use a graph. A forked process, and a process that unpickles a graph, opens its own connections
when it first uses the graph. Memory and connections are released when the graph is closed and its last loader and the
last array over one of its mini-batches are freed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Ids
from graphwire._base.escape import unescaped
from graphwire._base.keywords import keywords
from graphwire._base.native import c_name, check, ffi, lib, text
from graphwire._base.opened import Etype, OpenedGraph
from graphwire._base.times import Times
from graphwire._graph import edges, table_seeds, tensor
from graphwire._graph import ids as ids_module
from graphwire._graph.edges import EdgeList
from graphwire._graph.ids import OrigIds
from graphwire._graph.index import RowIndex
from graphwire._graph.rules import Time, Weight
from graphwire._graph.table_seeds import Seeds
from graphwire._graph.tensor import Initial, Tensor


def _text(name: str, value: Any) -> str | bytes | None:
    """Returns a str, bytes or path as str or bytes; None stays None. Raises TypeError for other values."""
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return None if value is None else os.fspath(value)
    raise TypeError(f"{name} is a text, not {value!r}")


def _addresses(servers: Sequence[str] | str | None) -> list[str]:
    """The servers' addresses as a list; [] if `servers` is None. Raises ValueError for an empty list: the caller meant
    to use servers, and [] would open the graph standalone."""
    if servers is None:
        return []
    if isinstance(servers, str):
        servers = [server.strip() for server in servers.split(",") if server.strip()]
    if isinstance(servers, Mapping) or not isinstance(servers, Iterable):
        raise TypeError(f'servers is a list of "host:port", not {servers!r}')
    found = list(servers)
    if not all(isinstance(server, str) for server in found):
        raise TypeError(f'servers is a list of "host:port", not {checks.shown(servers)}')
    if not found:
        raise ValueError('servers: an empty list: name one server for each part, as "host:port", or leave servers out')
    return found


@keywords
def open(
    part_config: str | os.PathLike | None = None,
    servers: Sequence[str] | str | None = None,
    *,
    key_file: str | os.PathLike | None = None,
    transport: str | None = None,
    neighbours: str | None = None,
    threads: int = 0,
    spin_us: int = 0,
    timeout: float | None = 30.0,
    reconnect: float | None = 300.0,
    idle: float | None = None,
    insecure: bool = False,
    verify: bool = True,
    numpy: bool = False,
    job: str | None = None,
    on_disk: Sequence[str] | str | None = None,
    disk_cache: int | str | None = None,
) -> Graph:
    """Opens a graph. Without part_config and servers, deploy/launch.py must have launched the program; launch.py then
    provides both.

    part_config: the graph's JSON, or the folder that holds it. Without `servers`, this process loads the parts from
        there (standalone). With `servers`, part_config may be left out; if given, its graph is compared with the
        servers' graph.
    servers: "host:port" or "[v6]:port" of one server for each part, in any order; a list, or one string with commas.
    key_file: the file with the servers' key. For servers on loopback the key is found without it.
    transport: "auto" (the best available of mapped memory, RDMA and TCP), "tcp", "shm" or "verbs".
    neighbours: how remote neighbours are sampled: "auto", "reads" or "requests".
    threads: the number of threads that sample and do input and output; 0: one for each processor.
    spin_us: microseconds that a thread which waits for servers polls before it sleeps, at most 1,000,000. Polling takes
        up a processor. 0: it sleeps at once, or the value of deploy/launch.py --spin.
    timeout: seconds that one operation may take; None: no limit.
    reconnect: seconds to try to reach a server after its connection is lost; None: no limit.
    idle: seconds after which a connection that carries nothing is closed; the next use opens it again. Connections to
        mapped memory stay open. None: connections stay open.
    insecure: accept servers on loopback that do not prove a key.
    verify: in a standalone process, compare digests while loading.
    job: the job whose tensors this process sees and creates. None: the name in GRAPHWIRE_JOB, which deploy/launch.py
        sets. Without GRAPHWIRE_JOB, a random name, which child processes and unpickled graphs share. Ranks that
        torchrun alone has started do not share a random name, and Graph.create_tensor refuses them.
    numpy: return NumPy arrays even if torch is installed.
    on_disk: in a standalone process, the features whose rows stay in their files: "feat" of any type, "paper/feat", or
        "author:writes:paper/feat"; a list, or one text with commas. "lists" means the neighbours, the ids and the
        columns of one number of all edges, and "offsets" where each node's list begins. What stays is read when it is
        used, through a cache, so that a graph may be larger than memory. Everything else is loaded. Servers do the same
        with `graphwire serve --on-disk`.
    disk_cache: memory for this cache: bytes, or a text such as "2Gi"; at least 1 MiB; None: 256 MiB.

    Raises NotFoundError; PeerError (no server, another graph, another key); DeadlineError; other GraphwireErrors;
    TypeError and ValueError for invalid arguments.
    """
    named = _text("job", job) or os.environ.get("GRAPHWIRE_JOB")
    options = {
        "part_config": _text("part_config", part_config), "servers": _addresses(servers),
        "key_file": _text("key_file", key_file), "transport": _text("transport", transport),
        "neighbours": _text("neighbours", neighbours), "threads": checks.integer("threads", threads),
        "spin_us": checks.integer("spin_us", spin_us),
        "timeout_ms": checks.milliseconds("timeout", timeout, above=True),
        "reconnect_ms": checks.milliseconds("reconnect", reconnect),
        "idle_ms": checks.milliseconds("idle", idle, above=True), "insecure": checks.flag("insecure", insecure),
        "no_verify": not checks.flag("verify", verify), "job": named or f"python-{uuid.uuid4().hex}",
        "on_disk": [] if on_disk is None else checks.names("on_disk", on_disk),
        "disk_cache": 0 if disk_cache is None else checks.size("disk_cache", disk_cache, 1)}
    if on_disk is not None and not options["on_disk"]:
        raise checks.invalid("on_disk: an empty list: name features, or leave on_disk out")
    if part_config is not None and servers is None:
        checks.unused("this process loads the parts itself: name servers", key_file=key_file,
                      transport=None if transport == "auto" else transport,
                      neighbours=None if neighbours == "auto" else neighbours, insecure=insecure or None,
                      reconnect=None if reconnect == 300 else "no limit" if reconnect is None else reconnect,
                      idle=idle, spin_us=spin_us or None)
    return Graph(options, checks.flag("numpy", numpy), None if named else os.getpid())


@keywords
class Graph(OpenedGraph):
    """An opened graph; `open` makes it. As a context manager, it closes when the context is left.

    name: the graph's name.
    graph_id: a digest over all arrays; graphs with equal content and equal parts have equal ids.
    num_parts: the number of parts.
    ntypes: the names of the node types.
    etypes: the edge types, as "src:rel:dst".
    standalone: True if this process has loaded the parts itself.
    """

    __module__ = "graphwire.graph"

    # --- Lifetime. ---

    def close(self) -> None:
        """Ends the use of the graph. Existing loaders and arrays stay usable, and keep the memory that they need until
        they are freed."""
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
        """All features of nodes and of edges."""
        found: list[Feature] = []
        while (found_one := lib.gw_tensor_at(self._opened().pointer, len(found))) != ffi.NULL:
            names = self.etypes if found_one.of_edges else self.ntypes
            found.append(Feature(self, found_one.of_edges, names[found_one.type], unescaped(text(found_one.name))))
        return found

    def feature(self, name: str, ntype: str | None = None, *, etype: Etype | None = None,
                dtype: Any = None) -> Feature:
        """The feature `name` of a node type, or of the edge type `etype`.

        dtype: the type of the rows: float32, float16, bfloat16 or float64 of torch or NumPy, or its name. The library
            converts the rows as it reads them. None: their own type; of rows that were stored narrow, the original.

        Raises NotFoundError, which lists what exists; ValueError for another dtype; TypeError for a dtype of rows that
        are not real numbers."""
        if etype is not None:
            return Feature(self, True, self.etypes[self.etype_number(etype)], name, dtype)
        return Feature(self, False, self.ntypes[self.ntype_number(ntype)], name, dtype)

    def gather(self, name: str, ids: Ids, ntype: str | None = None, *, etype: Etype | None = None,
               by: str = "graph", dtype: Any = None) -> Array:
        """Rows of a feature, [len(ids), …]. The same as `feature(name, …, dtype=dtype)[ids]`. by: "orig": ids are
        original ids; see ids_of, also for its errors."""
        if checks.choice("by", by, ("graph", "orig")) == "orig":
            ids = (ids_module.node_array(self, self.ntype_number(ntype), ids, by) if etype is None else
                   ids_module.edge_array(self, self.etype_number(etype), ids, by))
        return self.feature(name, ntype, etype=etype, dtype=dtype)[list(ids) if isinstance(ids, tuple) else ids]

    def node_texts(self, ids: Ids, ntype: str | None = None, name: str = "orig_id", *, by: str = "graph") -> list[str]:
        """The strings of nodes, as a list with one string for each id. "orig_id" names the original ids, if the input's
        ids were text. by: "orig": ids are original ids; see ids_of.

        "NAME.names": the names of values of the feature NAME, such as the categories of from_tables. `ids` are then
        values, integers of any type, and `by` has no effect.

        Raises NotFoundError if the node type or the strings do not exist (original ids that were numbers are the
        feature "orig_id"); OutOfRangeError, which names the first id that does not exist; ResourceError for 4 GiB of
        text or more; PeerError and DeadlineError if a server does not answer.
        """
        number = self.ntype_number(ntype)
        values = isinstance(name, str) and name.endswith(".names")
        array = ids_module.values_of(ids) if values else ids_module.node_array(self, number, ids, by).copy()
        return ids_module.texts(self, False, number, array, name)

    def edge_texts(self, values: Ids, etype: Etype | None = None, *, name: str = "rel.names") -> list[str]:
        """The names of values of a feature of edges, as a list with one string for each value.

        name: "NAME.names" for the feature NAME, such as the categories of from_tables; "rel.names" for the relations of
            a knowledge graph, the values of the feature "rel".

        Raises NotFoundError if the edge type or the names do not exist; OutOfRangeError, which names the first value
        that has no name; ResourceError for 4 GiB of text or more; PeerError and DeadlineError if a server does not
        answer.
        """
        number = self.etype_number(etype)
        return ids_module.texts(self, True, number, ids_module.values_of(values), name)

    # --- Original ids. ---

    def ids_of(self, ids: OrigIds, ntype: str | None = None, *, etype: Etype | None = None,
               missing: str = "raise") -> Array:
        """The graph's ids of nodes by their original ids, the ids of the input: [len(ids)] int64, in the order of
        `ids`, which may repeat. With etype, the graph's ids of edges by their rows in the input.

        ids: texts (str or bytes) or integers: a list, an array of NumPy or Arrow, a torch tensor, a series of pandas or
            polars. They are compared as they are: "007" is not "7", and no text is a number.
        missing: "raise": an id without a node is an error, which names the first ones; "mark": its result is -1.

        Each id costs a part of one request to the server that has its entry of the index (docs/FORMAT.md), so one call
        with many ids is much faster than many calls.

        Raises NotFoundError, for ids that belong to no node, and for edges without original ids; InvalidError, if an
        id belongs to several nodes, or if the graph's ids are texts and the call's are integers, or the other way
        round; TypeError, ValueError and IndexError for values that are no ids; GraphwireError (GW_UNSUPPORTED) for a
        graph that an older version made, which has no index; PeerError and DeadlineError if a server does not answer.
        """
        return ids_module.ids_of(self, ids, ntype, etype, missing)

    def original_ids(self, ids: Ids, ntype: str | None = None, *, etype: Etype | None = None) -> Array | list[str]:
        """The original ids of nodes, or of edges of `etype`: the way back of ids_of. An int64 array, or a list of texts
        if the input's ids of the nodes were texts.

        Raises NotFoundError if the type does not exist or has no original ids; OutOfRangeError, which names the first
        id that does not exist; PeerError and DeadlineError if a server does not answer.
        """
        return ids_module.original_ids(self, ids, ntype, etype)

    def seeds_of(self, table: str, keys: Any, times: Times = None, *, time: str = "time",
                 missing: str = "raise") -> Seeds:
        """Seeds of a loader by the primary keys of a table, such as the rows of a task: Seeds(ids, times, rows).

            seeds = graph.seeds_of("users", task["user_id"], task["timestamp"])
            loader = NodeLoader(graph, seeds.ids, [16, 8], time="time", times=seeds.times)

        table: the node type. keys: as ids of ids_of, in any order, and they may repeat. Keys of several columns: a
            frame or {column: values} in the order of the primary key's columns, or a list of tuples. Whole floats are
            integers: pandas makes them of integers if a value is missing.
        times: the time of each seed, or one for all: numbers in the unit of the graph's times, or dates of any unit,
            which are converted exactly or refused. None: the result has no times.
        time: the name of the times that these are compared with, as for NodeLoader.
        missing: "raise": a key without a node, or a missing key, is an error; "drop": it is left out. The result's
            `rows` are the places of the others: target[seeds.rows] are their targets.

        Raises the errors of ids_of; ValueError and TypeError for keys of another form; InvalidError for times that do
        not fit; NotFoundError if the graph has no times of this name.
        """
        return table_seeds.seeds_of(self, table, keys, times, time, missing)

    # --- Edges. ---

    # by="orig" means in all these methods that the given ids are original ids. Results are the graph's ids, which
    # original_ids translates.

    def in_degrees(self, ids: Ids, etype: Etype | None = None, *, by: str = "graph") -> Array:
        """[len(ids)] int64: the number of edges that end at each node. ids: nodes of etype's destination type; with
        by="orig", their original ids. Raises the errors of find_edges."""
        return edges.degrees(self, ids, etype, False, by)

    def out_degrees(self, ids: Ids, etype: Etype | None = None, *, by: str = "graph") -> Array:
        """[len(ids)] int64: the number of edges that start at each node. ids: nodes of etype's source type; with
        by="orig", their original ids.

        Raises GraphwireError (GW_UNSUPPORTED) if the edge type is not stored by source (graphwire import --transpose),
        and the errors of find_edges.
        """
        return edges.degrees(self, ids, etype, True, by)

    def find_edges(self, ids: Ids, etype: Etype | None = None, *, by: str = "graph") -> tuple[Array, Array]:
        """(sources, destinations) of edges, [len(ids)] int64 each.

        by: "orig": ids are the edges' original ids, their rows in the input, with the errors of ids_of.

        Raises OutOfRangeError, which names the first id that does not exist; NotFoundError if the edge type does not
        exist; PeerError and DeadlineError if a server does not answer; ResourceError for 2^32 or more ids, or edges in
        the result.
        """
        return edges.find_edges(self, ids, etype, by)

    def edge_ids(self, src: Ids, dst: Ids, etype: Etype | None = None, *, by: str = "graph") -> EdgeList:
        """All edges from src[i] to dst[i], including parallel edges: an EdgeList whose entry i has the edges from
        src[i] to dst[i], in the order of their ids.

        by: "orig": src and dst are original ids of nodes, with the errors of ids_of.

        Raises ValueError if src and dst differ in length, and the errors of find_edges, for ids of nodes.
        """
        return edges.edge_ids(self, src, dst, etype, by)

    def has_edges(self, src: Ids, dst: Ids, etype: Etype | None = None, *, by: str = "graph") -> Array:
        """[len(src)] bool: whether an edge from src[i] to dst[i] exists. by: as for edge_ids. Raises the errors of
        edge_ids."""
        return edges.has_edges(self, src, dst, etype, by)

    def neighbours(self, ids: Ids, etype: Etype | None = None, fanout: int = -1, *, out_edges: bool = False,
                   replace: bool = False, weight: Weight = None, time: Time = None, times: Times = None,
                   window: Times = None, pick: str = "uniform", strict: bool = False, end: Time = None, seed: int = 0,
                   stream: int = 0, by: str = "graph") -> EdgeList:
        """The edges at nodes: an EdgeList with one entry for each id.

        ids: nodes at which the edges end; with out_edges=True, nodes at which they start.
        fanout: -1: all edges of each node; else the size of a sample for each node.
        replace: sample with replacement.
        weight: a feature of the edge type, or {edge type: feature}: sample the edges in proportion to it, as
            NodeLoader does. Edges of weight 0 are never in the result, also with fanout -1. None: all edges are equally
            likely.
        time, times, window, pick, strict, end: sample edges by their times, as NodeLoader does. times: one for each id;
            equal ids may have different times.
        seed, stream: decide what is sampled. The first hop of a mini-batch with the same seed and stream samples the
            same edges.
        by: "orig": ids are original ids of nodes, with the errors of ids_of.

        Raises InvalidError and TypeError for invalid numbers and times; NotFoundError if the edge type has no such
        feature; GraphwireError (GW_UNSUPPORTED) for out_edges if the edge type is not stored by source, for out_edges
        with a weight or a time, for a weight with a time, and for a feature that is not one number for each edge; and
        the errors of find_edges, for ids of nodes.
        """
        return edges.neighbours(self, ids, etype, fanout, out_edges, replace, seed, stream, by, times, window, strict,
                                weight=weight, time=time, end=end, pick=pick)

    def subgraph(self, nodes: Any, etypes: Iterable[Etype] | None = None, *, groups: Any = None, held_out: Any = None,
                 by: str = "graph") -> dict[str, EdgeList]:
        """All edges among nodes, the induced subgraph: {edge type: EdgeList}. Here src and dst are rows of `nodes`: an
        edge goes from nodes[source type][src] to nodes[destination type][dst]. Entry i has the edges that end at
        nodes[destination type][i], in their stored order. Parallel edges and loops are all found.

        nodes: ids; of a graph with several node types {node type: ids}. If an id repeats, each of its rows has the
            edges that end at it, and the edges that start at it start at its first row.
        etypes: edge types; None: all types between node types of `nodes`.
        groups: a number of each node, 0 to 2^32 - 1, in the form of `nodes`: only edges between nodes of the same group
            are found. An id in two groups does not repeat.
        held_out: a HeldOut, whose edges are left out.
        by: as for neighbours.

        The owners of the destinations look up the edges. Their answers take at most 16 bytes for each edge, usually 4
        to 8. Raises ValueError if nodes of an edge type are missing, or if groups differ from nodes in length;
        TypeError for nodes without a type; and the errors of find_edges, for ids of nodes.
        """
        return edges.subgraph(self, nodes, etypes, groups, held_out, by)

    def split(self, what: Any = None, ntype: str | None = None, *, etype: Etype | None = None, world: int | None = None,
              rank: int | None = None) -> Array:
        """This rank's share of nodes, or of edges of `etype`, as int64 ids. The sizes of two ranks' shares differ by at
        most one. A rank gets the ids of its own part first. The own part of rank r is part r * parts / world.

        what: the name of a mask, a mask, or ids. bools, uint8 and int8 are a mask, wider integers are ids. None: all
            ids of the type.
        world, rank: the number of ranks, and this one's number. None: torch.distributed's, else one trainer.

        All ranks make the same calculation, and do not communicate.

        A loader divides its seeds among the ranks too. So give a loader the result with world=1, rank=0; or do not
        split, and give it the seeds of all ranks. A loader that would divide a share again recognizes the array that
        this method returned, and refuses it. A slice, list or copy of the array is not recognized.

        Raises ValueError unless 0 <= rank < world; NotFoundError if a type or a mask's name does not exist;
        InvalidError for a feature that is not a mask; IndexError for a mask of another length; OutOfRangeError for an
        id that does not exist; PeerError and DeadlineError if a mask cannot be read.
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
        """Creates a tensor, or opens the existing tensor of this name. All trainers may call it at the same time.

        shape: (rows, …). With ntype or etype, rows may be 0, which stands for the type's number of nodes or edges.
        ntype, etype: row i is stored on the server of node or edge i.
        place: without ntype and etype, where rows are stored: "even" gives each server an equal range of consecutive
            rows; "striped" stores row i on part i % num_parts.
        dtype: "float32", "float16", "bfloat16", "float64", "bool" or an integer type.
        initial: "zeros", a number, ("uniform", low, high) or ("normal", mean, deviation). The dtype must hold all
            values. Random values depend only on seed and original id. Edges without original ids use the graph's id,
            which depends on the partition.
        kept: the tensor stays after the end of the job, until it is deleted.

        Raises GraphwireError (GW_EXISTS) if a different tensor of this name exists, and the text names the difference;
        ValueError for an invalid shape, dtype, place or initial. Also raises ValueError if torch.distributed has
        several ranks and each would get a tensor of its own: the graph is standalone, or the ranks have no job name in
        common.
        """
        return tensor.create_tensor(self, name, shape, dtype, ntype=ntype, etype=etype, place=place, initial=initial,
                             seed=seed, kept=kept)

    def open_tensor(self, name: str, *, kept: bool = False) -> Tensor:
        """Opens a tensor that a trainer of this job has created; with kept=True, a kept tensor. Raises NotFoundError.
        """
        return tensor.open_tensor(self, name, kept)

    def delete_tensor(self, name: str, *, kept: bool = False) -> None:
        """Deletes a tensor and frees its memory on all servers. Raises NotFoundError."""
        tensor.delete_tensor(self, name, kept)

    def checkpoint(self, folder: str | os.PathLike, names: Sequence[str] | None = None, *, replace: bool = False,
                   bytes_per_second: int | str = 0) -> None:
        """Writes tensors and their optimizers' state to a folder of this machine, completely or not at all.

        names: the tensors; None: all tensors of the job, and the kept ones.
        replace: replace the files of an existing checkpoint; other files in its folder stay.
        bytes_per_second: a limit, a number or a text such as "200M"; 0: no limit.

        Ctrl-C ends only the wait. The library continues to write until the checkpoint is complete or the program ends.

        Raises GraphwireError: GW_EXISTS if the folder exists and replace is False, if the folder is not a checkpoint,
            or if a file in it that Graphwire did not write has the name of a new file; GW_NO_SPACE and GW_IO. Raises
            NotFoundError for a name that does not exist, and for a tensor that is deleted meanwhile; PeerError and
            DeadlineError if a server does not answer.
        """
        tensor.checkpoint(self, os.fspath(folder), names, replace, bytes_per_second)

    def restore(self, folder: str | os.PathLike, names: Sequence[str] | None = None) -> None:
        """Creates the tensors of a checkpoint, or overwrites existing ones. Optimizers continue from their saved state.
        No trainer may use the tensors meanwhile. The graph's partition may differ from that of the checkpoint.

        names: the tensors to restore; None: all tensors of the checkpoint.

        Raises NotFoundError if the folder has no checkpoint, if the checkpoint lacks a name, or if rows of an existing
        tensor were lost with a server that has ended (delete the tensor first). Raises PeerError and DeadlineError if a
        server does not answer. Raises GraphwireError:

            GW_EXISTS        a different tensor of the name exists, or another kind of optimizer trains it
            GW_DIGEST        a file was changed or damaged
            GW_FORMAT        a key, shape or row is missing or invalid, or the files are not of one save
            GW_VERSION       the files are of a newer major version
            GW_UNSUPPORTED   the partition differs, and the nodes have no original ids
        """
        tensor.restore(self, os.fspath(folder), names)

    @property
    def tensors(self) -> list[Mapping[str, Any]]:
        """The tensors of this job and the kept ones, each a dictionary with name, kept, dtype, shape and bytes. Raises
        PeerError and DeadlineError if a server does not answer."""
        return tensor.list_tensors(self)

    # --- What was done. ---

    def stats(self) -> dict[str, Any]:
        """What this process has done with the graph since it opened it:

        client: the id that servers show for it (`graphwire top`).
        batches: mini-batches that its loaders returned. batch_wait_s: seconds that they were waited for.
        copied_bytes: bytes of rows that were copied from parts in this process's memory, mapped or its own.
        replica_rows, replica_bytes: of these, the rows of other parts that were copied from replicas in a mapped part
            (`replicate`), and their bytes, which no server had to send.
        held_hops: hops that drew from lists of other parts in memory of this host (`graphwire serve --lists all`).
        ahead_bytes, cached_bytes: bytes of rows that loaders copied instead of fetching them: from earlier batches
            (`lookahead`), and from the rows that they keep for an epoch (`cache_bytes`). cache_count_s: seconds that
            counting took. kept_rows, kept_bytes: rows that they fetched in order to keep them, and their bytes.
        parts: a list of dictionaries, one for each part and transport that was used, at least one for each part: part,
            server ("" if this process has opened the part), transport ("" if none was used yet), reads, read_bytes,
            requests, sent_bytes, received_bytes, errors, and wait_s: seconds from the begin of each read or request to
            its end, added up, also where several ran at a time.

        Counts of a forked or unpickled graph begin at its own opening. Any thread may call it at any time."""
        client = self._opened().pointer
        total = ffi.new("struct gw_client_stats *")
        rows = lib.gw_client_get_stats(client, total, ffi.NULL, 0)
        links = ffi.new("struct gw_link_stats[]", rows + self.num_parts)  # more, for transports that begin meanwhile
        rows = min(lib.gw_client_get_stats(client, total, links, len(links)), len(links))
        return {"client": text(total.id), "batches": total.batches, "batch_wait_s": total.batch_wait_s,
                "copied_bytes": total.copied_bytes, "replica_rows": total.replica_rows,
                "replica_bytes": total.replica_bytes, "ahead_bytes": total.ahead_bytes,
                "cached_bytes": total.cached_bytes, "cache_count_s": total.cache_count_s, "kept_rows": total.kept_rows,
                "kept_bytes": total.kept_bytes, "held_hops": total.held_hops,
                "parts": [{"part": link.part, "server": text(link.server), "transport": text(link.transport),
                           "reads": link.reads, "read_bytes": link.read_bytes, "requests": link.requests,
                           "sent_bytes": link.sent_bytes, "received_bytes": link.received_bytes,
                           "errors": link.errors, "wait_s": link.wait_s} for link in links[0:rows]]}


@keywords
class Feature:
    """The rows of one feature of a node or edge type, read by id: `feature[ids]`.

    name: the feature's name, such as "feat".
    type: its node or edge type.
    of_edges: True if `type` is an edge type.
    shape: shape[0] is the number of rows over all parts.
    dtype: the torch or NumPy dtype of the rows that are returned.

    Rows that were stored narrow (`partition --store`) have their original type, or the dtype that Graph.feature was
    given. Some other stored types are converted. NumPy gets bfloat16 as float32. torch gets uint16 as int32, uint32 as
    int64, and the bits of uint64 as int64.

    A feature of bools, uint8 or int8 can be passed as a mask to every function that takes ids.
    """

    __module__ = "graphwire.graph"

    rows_by_id = True

    def __init__(self, graph: Graph, of_edges: bool, kind: str, name: str, dtype: Any = None):
        self._graph = graph
        self.name, self.type, self.of_edges = name, kind, of_edges
        tensor = self.pointer()
        self.rows_of = graph.rows_of(tensor)
        self.shape = _arrays.public_shape(tensor)
        self._real = _arrays.real_code(dtype, graph._torch)
        self.dtype = _arrays.public_dtype(_arrays.fetched_as(tensor, graph._torch, self._real), graph._torch)
        if dtype is not None and not _arrays.is_real(tensor):
            raise TypeError(f"{self!r}: only rows of real numbers are read as {dtype}")

    def _as(self, dtype: Any) -> Feature:
        """The feature with rows of a dtype, if they are real numbers; None, and others: as it is."""
        if dtype is None or not _arrays.is_real(self.pointer()):
            return self
        return Feature(self._graph, self.of_edges, self.type, self.name, dtype)

    def pointer(self) -> Any:
        """The gw_tensor of this process's client. The client owns it."""
        client = self._graph._opened()
        out = ffi.new("const struct gw_tensor **")
        word = c_name("name", self.name)
        if self.of_edges:
            check(lib.gw_edge_tensor(client.pointer, self._graph.etype_number(self.type), word, out))
        else:
            check(lib.gw_node_tensor(client.pointer, self._graph.ntype_number(self.type), word, out))
        return out[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids) -> Array:
        """Reads rows, [len(ids), …]. The result owns its memory.

        ids: integers in any order, a slice, or a mask of all rows (bools; uint8 or int8 of 0 and 1). A single integer
            gives its row without the first dimension; -1 is the last row. Indices of further dimensions, as in
            x[ids, 0], have torch's meaning, and apply to the rows that were read.

        Raises OutOfRangeError, which names the first id that is not a row. In a list, -1 is not a row, because many
        programs use -1 for "no id". Raises IndexError, TypeError and ValueError for an invalid index; PeerError and
        DeadlineError if a server does not answer.
        """
        index = RowIndex(ids, self.shape, self.rows_of)
        return index.of(_arrays.gather(self._graph._opened(), self.pointer(), index.ids, self._graph._torch,
                                       self._real))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All rows as a NumPy array. Raises TypeError for torch's bfloat16, because NumPy has no such type; else as
        feature[:]."""
        if str(self.dtype) == "torch.bfloat16":
            raise TypeError(f"{self!r}: NumPy has no bfloat16; take feature[:].float(), or open(…, numpy=True)")
        rows = np.asarray(self[:])
        return rows if dtype is None else rows.astype(dtype)

    def __repr__(self) -> str:
        return f"<graphwire.Feature {self.type}/{self.name}: {list(self.shape)} {self.dtype}>"
