"""Finds nodes and edges by their original ids, the ids of the input, and original ids of nodes and edges.

ids_of: texts or integers -> arrays as C takes them -> one C operation -> int64 ids of the graph
original_ids: ids of the graph -> the feature "orig_id", or the strings "orig_id"

Graph's methods of the same names call these functions, and document them and their errors.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Ids
from graphwire._base.keys import plain_keys
from graphwire._base.native import NotFoundError, c_name, check, ffi, finish, in_thread, lib
from graphwire._base.opened import Etype, OpenedGraph

OrigIds = Any  # texts or integers: a list, a NumPy array, a torch tensor, a series of pandas or polars, an Arrow array

_DTYPES = {"int32": "GW_INT32", "int64": "GW_INT64", "uint32": "GW_UINT32", "uint64": "GW_UINT64"}


# --- The caller's ids. ---

def _texts(items: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Texts, or bytes, as (offsets, bytes). Texts are encoded as node_texts decodes them."""
    if set(map(type, items)) <= {str}:
        whole = "".join(items)
        if whole.isascii():  # one character is one byte
            data, lengths = whole.encode(), np.fromiter(map(len, items), np.uint64, len(items))
            return _offsets(lengths), np.frombuffer(data, np.uint8)
    encoded = [os.fsencode(one) for one in items]
    lengths = np.fromiter(map(len, encoded), np.uint64, len(items))
    return _offsets(lengths), np.frombuffer(b"".join(encoded), np.uint8)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _arrow_texts(ids: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The texts of an Arrow array or chunked array of strings, without a Python object for each; None for other
    arrays."""
    pyarrow: Any = sys.modules.get("pyarrow")  # the maker of an Arrow array has loaded it
    if pyarrow is None:
        return None
    if isinstance(ids, pyarrow.ChunkedArray):
        ids = ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)
    if not isinstance(ids, pyarrow.Array) or ids.null_count:
        return None
    kind = pyarrow.types
    if not (kind.is_string(ids.type) or kind.is_large_string(ids.type) or kind.is_binary(ids.type)):
        return None
    ids = ids.cast(pyarrow.large_binary())
    _, offsets, data = ids.buffers()
    found = np.frombuffer(offsets, np.int64)[ids.offset:ids.offset + len(ids) + 1]
    data = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return (found - found[0]).astype(np.uint64), data[int(found[0]):int(found[-1])]


def _bad_item(items: list[Any], what: str) -> None:
    """Raises TypeError for the first item that is neither a text nor an integer, or unlike the others."""
    is_text = isinstance(items[0], (str, bytes))
    for place, one in enumerate(items):
        if isinstance(one, (str, bytes)) != is_text or (not is_text and checks.as_integer(one) is None):
            raise TypeError(f"{what} are texts, or integers: number {place} is {one!r:.100}, "
                            f"the first is {items[0]!r:.100}")


def _integers(array: np.ndarray) -> np.ndarray:
    """An integer array in one of the types that C takes."""
    if array.dtype.name not in _DTYPES or not array.dtype.isnative:
        array = array.astype(np.uint64 if array.dtype.name == "uint64" else np.int64)
    return np.ascontiguousarray(array)


def _of_items(items: list[Any], what: str) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    kinds = set(map(type, items))
    if kinds <= {str, bytes} or all(issubclass(kind, (str, bytes)) for kind in kinds):
        return _texts(items)
    if not kinds <= {int}:
        _bad_item(items, what)
        items = [checks.as_integer(one) for one in items]
    low, high = min(items), max(items)
    if low < -2**63 or high >= (2**63 if low < 0 else 2**64):
        raise IndexError(f"{what} are integers of 64 bits: {high if high >= 2**63 else low} is not")
    return np.array(items, np.int64 if high < 2**63 else np.uint64)


def given(ids: OrigIds, what: str = "ids") -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """The caller's original ids: an array of int32, int64, uint32 or uint64, or (offsets, bytes) of texts. Dates and
    timestamps are texts, and whole decimals integers.

    Raises TypeError for other values (floats, bools, None, texts among integers, a single id); ValueError for two
    dimensions; IndexError for integers that do not fit into 64 bits.
    """
    if isinstance(ids, (str, bytes)) or checks.as_integer(ids) is not None:
        raise TypeError(f"{what} are a list or an array; for a single id: [{ids!r:.100}]")
    ids = plain_keys(ids, bools=False)
    texts = _arrow_texts(ids)
    if texts is not None:
        return texts
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    elif hasattr(ids, "to_numpy") and not isinstance(ids, np.ndarray):
        try:
            ids = ids.to_numpy()
        except (TypeError, ValueError):  # an Arrow array with nulls, say
            ids = ids.to_pylist()
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise ValueError(f"{what} have one dimension, not {ids.ndim}")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        return _integers(ids)
    if isinstance(ids, range):
        return np.arange(ids.start, ids.stop, ids.step, dtype=np.int64)
    if not isinstance(ids, np.ndarray) and not hasattr(ids, "__iter__"):
        raise TypeError(f"{what} are a list or an array of texts or integers, not {ids!r:.100}")
    if isinstance(ids, np.ndarray) and ids.dtype.kind not in "OUST" and ids.size:
        raise TypeError(f"{what} are texts, or integers, not {ids.dtype}")
    items = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    return _of_items(items, what) if items else np.empty(0, np.int64)


# --- Nodes. ---

def _start(client: Any, number: int, ids: np.ndarray | tuple[np.ndarray, np.ndarray], out: np.ndarray,
           missing: Any) -> Any:
    """A function that starts gw_node_ids. It keeps everything that the operation reads and writes."""
    given_ids = ffi.new("struct gw_orig_ids *")
    kept: tuple[Any, ...] = ids if isinstance(ids, tuple) else (ids,)
    if isinstance(ids, tuple):
        given_ids.count = len(ids[0]) - 1
        given_ids.offsets, given_ids.bytes = (_arrays.pointer(ids[0], "uint64_t *"), _arrays.pointer(ids[1], "char *"))
    else:
        given_ids.count, given_ids.dtype = len(ids), getattr(lib, _DTYPES[ids.dtype.name])
        given_ids.numbers = _arrays.pointer(ids)
    return partial(_call, client, number, given_ids, out, missing, kept)


def _call(client: Any, number: int, given_ids: Any, out: np.ndarray, missing: Any, _kept: Any, ticket: Any) -> int:
    return lib.gw_node_ids_start(client.pointer, number, given_ids, _arrays.pointer(out, "int64_t *"), missing, ticket)


def nodes_of(graph: OpenedGraph, number: int, ids: OrigIds, missing: str = "raise", what: str = "ids") -> np.ndarray:
    """The nodes of a type with these original ids, int64."""
    marks = checks.choice("missing", missing, ("raise", "mark")) == "mark"
    wanted = given(ids, what)
    out = np.empty(len(wanted[0]) - 1 if isinstance(wanted, tuple) else len(wanted), np.int64)
    finish(_start(graph._opened(), number, wanted, out, ffi.new("uint64_t *") if marks else ffi.NULL))
    return out


def _no_mask(ids: Any, what: str) -> Any:
    """Returns original ids. Raises TypeError for a mask, whose rows are in the order of the graph's ids."""
    if _arrays.is_byte(ids):
        raise TypeError(f"{what}: a mask is in the order of the graph's ids: by=\"graph\", or original ids as int64")
    return ids


def node_array(graph: OpenedGraph, number: int, ids: Any, by: str, what: str = "ids") -> np.ndarray:
    """The caller's ids of nodes as int64: ids of the graph, or original ids."""
    if checks.choice("by", by, ("graph", "orig")) == "orig":
        return nodes_of(graph, number, _no_mask(ids, what), what=what)
    return _arrays.ids_array(ids, graph._node_counts[number], what)


# --- Edges. ---

def _edge_tensor(graph: OpenedGraph, number: int, name: str) -> Any:
    out = ffi.new("const struct gw_tensor **")
    check(lib.gw_edge_tensor(graph._opened().pointer, number, c_name("name", name), out))
    return out[0]


def edges_of(graph: OpenedGraph, number: int, ids: OrigIds, missing: str = "raise") -> np.ndarray:
    """The edges of a type with these original ids, int64."""
    marks = checks.choice("missing", missing, ("raise", "mark")) == "mark"
    wanted, name = given(ids), graph.etypes[number]
    if isinstance(wanted, tuple):
        raise TypeError(f"{name}: original ids of edges are integers, the rows of the input")
    try:
        inverse = _edge_tensor(graph, number, "orig_id.inverse")
    except NotFoundError:
        raise NotFoundError("GW_NOT_FOUND", f"{name}: its edges cannot be found by original ids: the graph has no "
                                            "orig_id.inverse: import it again (graphwire import --edge-ids)") from None
    known = (wanted >= 0) & (wanted < inverse.shape[0])
    if not marks and not known.all():
        bad = wanted[~known]
        raise NotFoundError("GW_NOT_FOUND", f"{len(bad)} of {len(wanted)} original ids belong to no edge of type "
                                            f"{name}: {', '.join(map(str, bad[:3].tolist()))}")
    out = np.full(len(wanted), -1, np.int64)
    out[known] = _arrays.gather(graph._opened(), inverse, wanted[known].astype(np.int64), None)
    return out


def edge_array(graph: OpenedGraph, number: int, ids: Any, by: str) -> np.ndarray:
    """The caller's ids of edges as int64: ids of the graph, or original ids."""
    if checks.choice("by", by, ("graph", "orig")) == "orig":
        return edges_of(graph, number, _no_mask(ids, "ids"))
    return _arrays.ids_array(ids, graph._edge_counts[number])


def ids_of(graph: OpenedGraph, ids: OrigIds, ntype: str | None, etype: Etype | None, missing: str) -> Array:
    if ntype is not None and etype is not None:
        raise ValueError("name a node type or an edge type, not both")
    found = (nodes_of(graph, graph.ntype_number(ntype), ids, missing) if etype is None else
             edges_of(graph, graph.etype_number(etype), ids, missing))
    return _arrays.public(found, graph._torch)


# --- The way back. ---

def values_of(ids: Ids) -> np.ndarray:
    """The values of a feature as int64: those of uint8 and int8 are no mask here."""
    array = np.asarray(ids)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        array = _arrays.ids_array(ids, None, "ids")
    return array.astype(np.int64)


def texts(graph: OpenedGraph, of_edges: bool, number: int, array: np.ndarray, name: str) -> list[str]:
    """The strings of a type. The array must not change during the call."""
    client, word = graph._opened(), c_name("name", name)
    read = lib.gw_edge_texts if of_edges else lib.gw_node_texts

    def call() -> list[str]:
        out = ffi.new("struct gw_texts **")
        try:
            check(read(client.pointer, number, word, _arrays.ids_pointer(array), len(array), out))
            offsets = ffi.unpack(out[0].offsets, len(array) + 1)
            whole = bytes(ffi.buffer(out[0].bytes, offsets[-1])) if offsets[-1] else b""
            return [os.fsdecode(whole[begin:end]) for begin, end in zip(offsets, offsets[1:])]
        finally:
            lib.gw_texts_free(out[0])

    return in_thread(call)


def original_ids(graph: OpenedGraph, ids: Ids, ntype: str | None, etype: Etype | None) -> Array | list[str]:
    if ntype is not None and etype is not None:
        raise ValueError("name a node type or an edge type, not both")
    if etype is not None:
        number = graph.etype_number(etype)
        array = _arrays.own_ids(ids, graph._edge_counts[number])
        rows = _arrays.gather(graph._opened(), _edge_tensor(graph, number, "orig_id"), array, None)
        return _arrays.public(rows.astype(np.int64), graph._torch)
    number = graph.ntype_number(ntype)
    array, out = _arrays.own_ids(ids, graph._node_counts[number]), ffi.new("const struct gw_tensor **")
    status = lib.gw_node_tensor(graph._opened().pointer, number, b"orig_id", out)
    if status == lib.GW_NOT_FOUND:  # then they are texts, or do not exist
        return texts(graph, False, number, array, "orig_id")
    check(status)
    return _arrays.gather(graph._opened(), out[0], array, graph._torch)
