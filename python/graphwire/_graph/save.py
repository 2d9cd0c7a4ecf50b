"""Writes rows of nodes to a file, each with the node's original id.

    graphwire.save(embeddings, "out.parquet", "paper")                    # a Tensor or a Feature: every node
    graphwire.save(scores, "out.csv", "paper", graph=graph, ids=nodes)    # an array, and the nodes of its rows

rows -> this rank's nodes -> blocks of rows and original ids -> this rank's file -> with files="one", rank 0 joins the
files of all ranks

A file appears under its name complete or not at all, and a killed save leaves nothing next to it (_base/scratch.py).
Memory is that of a block, whatever the number of rows.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Ids
from graphwire._base.keywords import keywords
from graphwire._base.native import OutOfRangeError
from graphwire._base.progress import Bar, wanted
from graphwire._base.scratch import Scratch, whole
from graphwire._graph import edges
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.tensor import Tensor

BLOCK_BYTES = 16 << 20  # of rows that are in memory at a time
_KINDS = (".parquet", ".csv", ".npy")

Columns = Mapping[str, np.ndarray]


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ModuleNotFoundError('Parquet needs pyarrow, which is not installed: "pip install pyarrow", or save to '
                                  ".csv or .npy") from None
    return pyarrow


# --- What to write. ---

class _Source:
    """The nodes of this rank, and their rows, a block at a time."""

    def __init__(self, graph: Graph, ntype: str, columns: Mapping[str, Any], nodes: np.ndarray, at_places: bool):
        self.progress = False
        self.graph, self.ntype, self._columns, self._nodes, self._at_places = graph, ntype, columns, nodes, at_places

    def blocks(self) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        """(original ids, {name: rows}) of all nodes, at least once."""
        width = sum(max(1, int(np.prod(column.shape[1:]))) * 8 for column in self._columns.values())
        step = max(1, BLOCK_BYTES // max(1, width))
        with Bar(f"save {self.ntype}", self.progress, total=len(self._nodes), unit=" rows") as bar:
            for begin in range(0, max(1, len(self._nodes)), step):
                nodes = self._nodes[begin:begin + step]
                which = slice(begin, begin + len(nodes)) if self._at_places else nodes
                rows = {name: _arrays.host(column[which]) for name, column in self._columns.items()}
                ids = self.graph.original_ids(nodes, self.ntype)
                yield ids if isinstance(ids, list) else np.asarray(ids), rows
                bar.to(begin + len(nodes))


def _named(rows: Any, name: str | None) -> dict[str, Any]:
    if isinstance(rows, Mapping):
        if not rows or not all(isinstance(one, str) and one and one != "id" for one in rows):
            raise ValueError('rows: a mapping has names of columns, other than "id"')
        return dict(rows)
    if name is None:
        name = rows.name if isinstance(rows, (Feature, Tensor)) else "value"
    return {name: rows}


def _owner(graph: Graph, one: Any) -> tuple[Any, bool]:
    """(type, whether it is an edge type) of a feature's or a tensor's rows; (None, False) for rows without a type."""
    if isinstance(one, Feature):
        return one.type, one.of_edges
    tensor = one._there()[1] if isinstance(one, Tensor) else None
    if tensor is None or tensor.type == checks.U32:
        return None, False
    return (graph.etypes if tensor.of_edges else graph.ntypes)[tensor.type], tensor.of_edges


def _source(rows: Any, ntype: str | None, graph: Graph | None, ids: Ids | None, name: str | None, world: int,
            rank: int) -> _Source:
    columns = _named(rows, name)
    tables = [one for one in columns.values() if isinstance(one, (Feature, Tensor))]
    if tables and len(tables) < len(columns):
        raise TypeError("rows: features and tensors of a graph, or arrays, not both")
    if tables:
        if ids is not None:
            raise TypeError("ids belong to arrays: of a feature or a tensor, every node is written; for some of them, "
                            "save(feature[ids], …, graph=graph, ids=ids)")
        graph = graph or cast(Graph, tables[0]._graph)
    if not isinstance(graph, Graph):
        raise TypeError("rows are arrays: name the graph of their nodes, as graph=…")
    owners = {key: _owner(graph, one) for key, one in columns.items()}
    if ntype is None:
        ntype = next((kind for kind, of_edges in owners.values() if kind is not None and not of_edges), None)
    number = graph.ntype_number(ntype)
    ntype, count = graph.ntypes[number], graph._node_counts[number]
    for key, one in columns.items():
        kind, of_edges = owners[key]
        if kind is not None and (of_edges or kind != ntype):
            raise ValueError(f"{key}: its rows belong to {kind}, not to nodes of type {ntype}")
        if isinstance(one, Tensor) and len(one) != count:
            raise ValueError(f"{key} has {len(one)} rows, but there are {count} nodes of type {ntype}")
    if tables:
        share = edges.split(graph, None, ntype, None, world, rank)
        return _Source(graph, ntype, columns, np.asarray(share), False)
    if ids is None:
        raise TypeError("rows are arrays: name the nodes of their rows, as ids=…")
    nodes = _arrays.ids_array(ids, count).copy()
    wrong = nodes[(nodes < 0) | (nodes >= count)]
    if len(wrong):
        raise OutOfRangeError("GW_RANGE", f"id {wrong[0]} is no node of type {ntype}, which has {count}")
    arrays = {key: one if hasattr(one, "detach") else np.asarray(one) for key, one in columns.items()}
    for key, one in arrays.items():
        if not one.ndim or len(one) != len(nodes):
            raise ValueError(f"{key} has {len(one) if one.ndim else 'no'} rows, and there are {len(nodes)} ids")
    return _Source(graph, ntype, arrays, nodes, True)


# --- Kinds of files. ---

def _flat(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), int(np.prod(rows.shape[1:]))) if rows.ndim > 1 else rows


def _write_csv(source: _Source, path: str, head: bool) -> None:
    with open(path, "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        for ids, rows in source.blocks():
            if head:
                names = ["id"]
                for name, block in rows.items():
                    names += [name] if block.ndim == 1 else [f"{name}_{i}" for i in range(_flat(block).shape[1])]
                writer.writerow(names)
                head = False
            cells = [_flat(block).astype(str) for block in rows.values()]  # the shortest text that gives the number
            columns = [ids if isinstance(ids, list) else ids.tolist()]
            for block in cells:
                columns += [block.tolist()] if block.ndim == 1 else block.T.tolist()
            writer.writerows(zip(*columns))


def _join_csv(pieces: list[str], path: str) -> None:
    with open(path, "wb") as out:
        for piece in pieces:
            with open(piece, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


def _npy_dtype(rows: Columns, id_type: np.dtype) -> np.dtype:
    return np.dtype([("id", id_type), *((name, block.dtype, block.shape[1:]) for name, block in rows.items())])


def _write_npy(source: _Source, path: str, _head: bool) -> None:
    longest, count, first = 1, 0, None
    for ids, rows in source.blocks():  # NumPy's texts have one length, and the header has it
        longest = max([longest, *map(len, ids)]) if isinstance(ids, list) else longest
        count += len(ids)
        first = (ids, rows) if first is None else first
    assert first is not None
    dtype = _npy_dtype(first[1], np.dtype(f"U{longest}" if isinstance(first[0], list) else np.int64))
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {
            "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)})
        for ids, rows in source.blocks():
            table = np.empty(len(ids), dtype)
            table["id"] = ids
            for name, block in rows.items():
                table[name] = block
            file.write(table.tobytes())


def _join_npy(pieces: list[str], path: str) -> None:
    arrays = [np.load(piece, mmap_mode="r") for piece in pieces]
    id_types = [array.dtype["id"] for array in arrays]
    id_type = max(id_types, key=lambda one: one.itemsize)
    dtype = np.dtype([("id", id_type), *((name, arrays[0].dtype[name]) for name in arrays[0].dtype.names[1:])])
    step = max(1, BLOCK_BYTES // dtype.itemsize)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {
            "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (sum(map(len, arrays)),)})
        for array in arrays:
            for begin in range(0, len(array), step):
                file.write(array[begin:begin + step].astype(dtype).tobytes())


def _arrow_column(pa: Any, block: np.ndarray) -> Any:
    flat = _flat(block)
    if flat.ndim == 1:
        return pa.array(flat)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])


def _write_parquet(source: _Source, path: str, _head: bool) -> None:
    pa = _pyarrow()
    writer = None
    try:
        for ids, rows in source.blocks():
            try:
                column = pa.array(ids, pa.large_string() if isinstance(ids, list) else pa.int64())
            except UnicodeEncodeError as error:
                raise ValueError(f"Parquet's texts are UTF-8, and the id {error.object!r} is not: "
                                 "save to .csv") from None
            table = pa.table({"id": column, **{name: _arrow_column(pa, block) for name, block in rows.items()}})
            writer = writer or pa.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _join_parquet(pieces: list[str], path: str) -> None:
    pa = _pyarrow()
    files = [pa.parquet.ParquetFile(piece) for piece in pieces]
    with pa.parquet.ParquetWriter(path, files[0].schema_arrow) as writer:
        for file in files:
            for group in range(file.num_row_groups):
                writer.write_table(file.read_row_group(group))


_WRITE = {".csv": (_write_csv, _join_csv), ".npy": (_write_npy, _join_npy), ".parquet": (_write_parquet, _join_parquet)}


# --- Ranks. ---

def _tell_all(failed: BaseException | None, piece: str = "") -> list[str]:
    """All ranks call this. Returns the path of each rank's piece. Raises RuntimeError in each of them if one has an
    error."""
    dist = _arrays.torch_module().distributed
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, (None if failed is None else f"{type(failed).__name__}: {failed}", piece))
    for rank, (error, _) in enumerate(found):
        if error is not None:
            raise RuntimeError(f"save: rank {rank}: {error}")
    return [piece for _, piece in found]


def _has_group(world: int, rank: int) -> bool:
    torch = _arrays.torch_module()
    return (torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
            and torch.distributed.get_world_size() == world and torch.distributed.get_rank() == rank)


def _join(join: Any, pieces: list[str], path: str) -> None:
    absent = [piece for piece in pieces if not os.path.exists(piece)]
    if absent:
        raise FileNotFoundError(f"{absent[0]}: another rank wrote it, and it is not here: with "
                                'files="one" all ranks need one file system; else files="ranks"')
    with whole(path) as temporary:
        join(pieces, str(temporary))


def _save_one(write: Any, join: Any, make: Any, path: str, world: int, rank: int) -> None:
    """Every rank writes a piece into a temporary folder of its own, next to the file; rank 0 joins the pieces."""
    failed: BaseException | None = None
    with contextlib.ExitStack() as stack:
        piece = ""
        try:
            source = make()
            folder = stack.enter_context(Scratch(os.path.dirname(os.path.abspath(path)), ".graphwire-rank"))
            piece = str(folder / f"{rank}")
            write(source, piece, rank == 0)
        except Exception as error:
            failed = error
        try:
            pieces = _tell_all(failed, piece)
            if rank == 0:
                try:
                    _join(join, pieces, path)
                except Exception as error:
                    failed = error
            _tell_all(failed)
        except RuntimeError:
            if failed is not None:
                raise failed from None
            raise


@keywords
def save(
    rows: Feature | Tensor | Array | Mapping[str, Any],
    path: str | os.PathLike,
    ntype: str | None = None,
    *,
    graph: Graph | None = None,
    ids: Ids | None = None,
    name: str | None = None,
    files: str = "one",
    replace: bool = False,
    world: int | None = None,
    rank: int | None = None,
    progress: bool | None = None,
) -> None:
    """Writes rows of nodes with the nodes' original ids. All ranks call it, with their own rows if these are arrays.

    rows: a Feature or a Tensor of the graph: the row of every node is written, and the ranks divide the nodes as
        Graph.split does. Or an array [len(ids), …], with `graph` and `ids`, the graph's ids of its rows. Or
        several of a kind: {name: rows}.
    path: the suffix is the format. ".csv": a header, then id and numbers; a row of several numbers has columns name_0,
        name_1, …. ".parquet" (needs pyarrow): "id" is int64 or string; a row of several numbers is a list of fixed
        size. ".npy": a structured array, np.load(path)["id"] and [name]; it keeps the rows' shape.
    ntype: the node type; None: that of the feature or the tensor, or the only one.
    name: the column's name; None: the feature's or tensor's, else "value".
    files: "one": rank 0 joins the ranks' files, in the order of ranks, which needs torch.distributed and a file system
        that all ranks share. "ranks": each rank writes its own, "out-00003-of-00008.csv".
    replace: replace existing files.
    world, rank: the number of ranks, and this one's number. None: torch.distributed's, else one.
    progress: on rank 0, a bar of tqdm, if it is installed. None: on a terminal and in a notebook; True: always; False:
        never.

    bfloat16 becomes float32. Rows are in no particular order.

    Raises FileExistsError; ModuleNotFoundError without pyarrow, for ".parquet"; TypeError and ValueError for arguments
    that do not fit; OutOfRangeError for ids that do not exist; NotFoundError if the nodes have no original ids;
    PeerError and DeadlineError if a server does not answer; OSError from the file system. If a rank fails, all ranks
    raise, the others RuntimeError.
    """
    path = os.fspath(path)
    stem, kind = os.path.splitext(path)
    if kind not in _KINDS:
        raise ValueError(f"{path}: the suffix is the format, one of {', '.join(_KINDS)}")
    world, rank = _arrays.world_of(world, rank)
    one = checks.choice("files", files, ("one", "ranks")) == "one"
    replace = checks.flag("replace", replace)
    shown = wanted(progress) and rank == 0
    write, join = _WRITE[kind]
    if not one:
        path = f"{stem}-{rank:05}-of-{world:05}{kind}"
    elif world > 1 and not _has_group(world, rank):
        raise ValueError('files="one" needs the group of torch.distributed, whose ranks write the file together; or '
                         'files="ranks"')

    def make() -> _Source:  # its errors become errors of all ranks
        if kind == ".parquet":
            _pyarrow()
        if not replace and os.path.lexists(path):
            raise FileExistsError(f"{path} exists: replace=True replaces it")
        source = _source(rows, ntype, graph, ids, name, world, rank)
        source.progress = shown
        return source

    if one and world > 1:
        _save_one(write, join, make, path, world, rank)
    else:
        source = make()
        with whole(path) as temporary:
            write(source, str(temporary), True)
