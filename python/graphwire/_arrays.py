"""Ids that go in, and arrays that come out: torch tensors where torch is there, else NumPy arrays.

Rows of features and edges of a mini-batch lie in the library's memory, without a copy where the type stays
(public_rows tells); each array holds a reference to its lease, and the batch goes back to the library when the last
array over it is gone, in whichever thread that is. Labels, ids and row numbers are copies: they are small beside the
rows, and whoever kept them would keep it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from graphwire import _checks
from graphwire._native import ffi, finish, lib

Array = Any  # torch.Tensor, or numpy.ndarray
Ids = Any  # a tensor, array, list, range or slice of integers

# What a row's elements lie in memory as.
_STORED = {
    "GW_UINT8": "u1", "GW_INT8": "i1", "GW_BOOL": "?", "GW_UINT16": "<u2", "GW_FLOAT16": "<f2", "GW_BFLOAT16": "<u2",
    "GW_INT32": "<i4", "GW_UINT32": "<u4", "GW_FLOAT32": "<f4", "GW_INT64": "<i8", "GW_UINT64": "<u8",
    "GW_FLOAT64": "<f8", "GW_INT8_ROW": "i1", "GW_INT16": "<i2"}
# torch 1.13 has no unsigned types but uint8: the next wider signed one. 64 bits are kept as they are.
_SIGNED = {"GW_UINT16": np.int32, "GW_UINT32": np.int64}
DTYPES = tuple(name[3:].lower() for name in _STORED if name != "GW_INT8_ROW")  # of tensors that change
_NOTHING = ffi.new("int64_t *")  # where an empty array lies
MASK_TYPES = ("bool", "uint8", "int8")  # an element is a byte: 0 or 1


def torch_module() -> Any:
    """torch, or None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def world_of(world: int | None, rank: int | None) -> tuple[int, int]:
    """As given, else torch.distributed's where that is initialized, else one trainer."""
    if world is None and rank is None:
        torch = torch_module()
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_world_size(), torch.distributed.get_rank()
        return 1, 0
    world = None if world is None else _checks.integer("world", world, 1)
    rank = None if rank is None else _checks.integer("rank", rank)
    if world is None or rank is None or rank >= world:
        raise ValueError(f"rank {rank} is not one of a world of {world}")
    return world, rank


def dtype_name(code: int) -> str:
    return ffi.string(ffi.cast("gw_dtype", code))


def public_dtype(code: int, torch: Any) -> Any:
    """The type that rows of a C type come out as."""
    name = dtype_name(code)
    if torch is None:
        return np.dtype(np.float32) if name in ("GW_BFLOAT16", "GW_INT8_ROW") else np.dtype(_STORED[name])
    if name == "GW_BFLOAT16":
        return torch.bfloat16
    if name == "GW_INT8_ROW":
        return torch.float32
    if name in _SIGNED:
        return torch.int32 if name == "GW_UINT16" else torch.int64
    return torch.int64 if name == "GW_UINT64" else torch.from_numpy(np.empty(0, _STORED[name])).dtype


def public_shape(tensor: Any) -> tuple[int, ...]:
    """A tensor's shape as it comes out: rows of int8_row without what scales them."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if dtype_name(tensor.dtype) == "GW_INT8_ROW":
        return shape[:-1] + (shape[-1] - 8,)
    return shape


def is_byte(ids: Ids) -> bool:
    """Whether ids are of a type that masks have; a lone one of these is nothing."""
    return str(getattr(ids, "dtype", "")).replace("torch.", "") in MASK_TYPES


def _items(items: Any, what: str) -> np.ndarray:
    """A list or tuple as an array. Bools among integers are refused: NumPy would make ones and zeros of them."""
    kinds = set(map(type, items))
    if kinds <= {int} or kinds <= {bool}:
        array = np.asarray(items)
    else:
        each = [np.asarray(one.detach().cpu() if hasattr(one, "detach") else one) for one in items]
        if any(one.ndim for one in each):
            raise ValueError(f"{what} have one dimension, not {1 + max(one.ndim for one in each)}")
        found = {one.dtype.kind for one in each}
        if not found <= set("iu") and found != {"b"}:
            names = ", ".join(sorted({one.dtype.name for one in each}))
            raise TypeError(f"{what} are integers, or a mask of bools, not a list of {names}")
        array = np.asarray(each)
    if array.dtype.kind == "O" or (array.dtype == np.uint64 and len(array) and int(array.max()) >= 2**63):
        raise IndexError(f"{what} are integers below 2^63: {max(items)} is not")
    return array


def _plain(ids: Ids, what: str) -> np.ndarray:
    """What is no slice, as an array of whatever it holds."""
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu()
        if (ids.is_floating_point() and ids.numel()) or ids.is_complex():
            raise TypeError(f"{what} are integers, not {ids.dtype}")
        if ids.is_floating_point():
            return np.empty(tuple(ids.shape))  # NumPy lacks some of these types
        return np.asarray(ids.numpy())
    return _items(ids, what) if isinstance(ids, (list, tuple)) else np.asarray(ids)


def _of_mask(array: np.ndarray, count: int | None, what: str) -> np.ndarray:
    """The ids that a mask sets."""
    kind = "a mask" if array.dtype == np.bool_ else f"{array.dtype} is a mask, as in torch, and ids are int64: one"
    if count is None or array.ndim == 0:
        raise TypeError(f"{what} are integers, not {array.dtype}")
    if array.shape != (count,):
        raise IndexError(f"{what}: {kind} of shape {array.shape} does not fit {count} rows")
    if array.dtype != np.bool_ and np.any((array != 0) & (array != 1)):
        raise ValueError(f"{what}: {kind} of 0 and 1, which this has others than: ids.astype(int), or ids.long()")
    return np.flatnonzero(array).astype(np.int64)


def ids_array(ids: Ids, count: int | None, what: str = "ids") -> np.ndarray:
    """Ids as contiguous int64, whatever they are given as: the one place that says what ids are.

    ids: integers: an array of one dimension, a list, tuple or range, or a lone one; or a slice, or a mask, of `count`,
        which stand for the ids that they select. What is a mask is told by its type, never by its values: bools, and
        arrays of one byte an element, uint8 as in torch and int8; or a feature of such rows. count: None: there is
        nothing that a mask or a slice could be of.
    what: the argument's name, for errors.

    Raises TypeError for anything else (fractions, bools among integers, texts, objects); IndexError for a mask of
    another length; ValueError for two dimensions, and for a mask of uint8 or int8 with other values than 0 and 1. An
    empty array may be of any number type, as NumPy and torch make them of []. Whether there are such ids is for others
    to say.
    """
    if isinstance(ids, slice) and count is not None:
        return np.arange(*ids.indices(count), dtype=np.int64)
    if getattr(type(ids), "rows_by_id", False):
        if not is_byte(ids):
            raise TypeError(f"{what}: {ids!r} is no mask: [:] reads rows that are ids")
        ids = ids[:]
    array = _plain(ids, what)
    if array.dtype.name in MASK_TYPES:
        return _of_mask(array, count, what)
    if array.dtype.kind not in "iu" and (array.size or array.dtype.kind != "f"):
        raise TypeError(f"{what} are integers, not {type(ids).__name__ if array.ndim == 0 else array.dtype}")
    if array.ndim > 1:
        raise ValueError(f"{what} have one dimension, not {array.ndim}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        raise IndexError(f"{what} are integers below 2^63: {int(array.max())} is not")
    return np.ascontiguousarray(array, dtype=np.int64)


def own_ids(ids: Ids, count: int | None, what: str = "ids") -> np.ndarray:
    """The same in memory of its own, for what is read after the call: what the caller changes then changes nothing."""
    return ids_array(ids, count, what).copy()


def ids_pointer(ids: np.ndarray) -> Any:
    """The same as const int64_t *, which keeps the array."""
    return ffi.from_buffer("int64_t[]", ids)


class Lease:
    """A mini-batch, which a call writes into `cell`, and which goes back to the library when the last array over it is
    gone."""

    __slots__ = ("__weakref__", "_held")

    def __init__(self, client: Any):
        self._held = client.lend("struct held_minibatch *", lib.minibatch_end)

    @property
    def cell(self) -> Any:
        return ffi.addressof(self._held, "minibatch")

    @property
    def minibatch(self) -> Any:
        return self._held.minibatch


class _Window:
    """Memory under a lease, for NumPy, which keeps a reference to this object."""

    __slots__ = ("__array_interface__", "lease")

    def __init__(self, lease: Any, address: int, shape: tuple[int, ...], dtype: np.dtype):
        self.lease = lease
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": dtype.str}


def window(lease: Any, pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array over memory that is somebody's, a Lease's or of owned(), for as long as there is an array."""
    kind = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    return np.asarray(_Window(lease, int(ffi.cast("uintptr_t", pointer)), shape, kind))


def copied(pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of its own of what lies at a pointer."""
    array = np.empty(shape, dtype)
    if array.size:
        ffi.memmove(ffi.from_buffer(array), pointer, array.nbytes)
    return array


def stored_rows(tensor: Any, rows: int) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of `rows` rows of a C tensor as they lie in memory."""
    return (rows,) + tuple(tensor.shape[i] for i in range(1, tensor.ndim)), np.dtype(_STORED[dtype_name(tensor.dtype)])


def public_rows(rows: np.ndarray, code: int, torch: Any) -> Array:
    """Stored rows as they come out: without a copy, but for bfloat16 in NumPy, int8_row, uint16 and uint32 in torch."""
    name = dtype_name(code)
    if name == "GW_INT8_ROW":
        width = rows.shape[-1]
        head = np.ascontiguousarray(rows[..., :8]).view(np.float32).reshape(rows.shape[:-1] + (2,))
        rows = head[..., :1] * rows[..., 8:width].astype(np.float32) + head[..., 1:]
    elif name == "GW_BFLOAT16":
        if torch is not None:
            return torch.from_numpy(rows.view(np.int16)).view(torch.bfloat16)
        rows = (rows.astype(np.uint32) << 16).view(np.float32)
    elif torch is not None and name in _SIGNED:
        rows = rows.astype(_SIGNED[name])
    elif torch is not None and name == "GW_UINT64":
        rows = rows.view(np.int64)
    return rows if torch is None else torch.from_numpy(rows)


def pointer(array: np.ndarray, kind: str = "void *") -> Any:
    """An array's memory; the caller keeps the array. Of an empty one as well: to C, NULL may stand for all."""
    return ffi.cast(kind, ffi.from_buffer(array) if array.size else _NOTHING)


def _check_held(rows: np.ndarray, dtype: np.dtype) -> None:
    """Refuses numbers that an integer type does not hold. What is int64 where uint64 is stored keeps its bits."""
    kept = rows.dtype == dtype or (rows.dtype == np.int64 and dtype == np.uint64)
    if kept or not rows.size or rows.dtype.kind not in "iuf":
        return
    ends, whole = np.iinfo(dtype), rows.dtype.kind != "f" or bool((rows == np.trunc(rows)).all())
    if whole and ends.min <= rows.min().item() and rows.max().item() <= ends.max:  # Python compares them exactly
        return
    bad = next(one for one in rows.ravel().tolist() if not (one == one // 1 and ends.min <= one <= ends.max))
    raise ValueError(f"rows are of {dtype.name}, which does not hold {bad}")


def to_stored(rows: Any, code: int, dtype: np.dtype) -> np.ndarray:
    """Rows that go in, as they are stored. bfloat16: of torch as it is, of NumPy rounded to nearest, ties to even.
    Floating-point types round, and what is too large for one becomes infinite. Raises ValueError for a number that an
    integer type does not hold: NaN, a fraction, one out of its range."""
    if dtype_name(code) == "GW_BFLOAT16":
        if hasattr(rows, "detach"):
            import torch

            return rows.detach().cpu().to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)
        with np.errstate(over="ignore"):
            bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(bits.view(np.float32)), np.uint16(0x7FC0), rounded)
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
        rows = (rows.float() if str(rows.dtype) == "torch.bfloat16" else rows).numpy()
    if dtype.kind in "iu":
        _check_held(np.asarray(rows), dtype)
    with np.errstate(over="ignore"):
        return np.asarray(rows, dtype=dtype)


def gather_all(client: Any, asked: Sequence[tuple[Any, Ids]], torch: Any) -> list[Array]:
    """Rows of several C tensors, in memory of their own; all of them are under way at once."""
    arrays = [ids_array(ids, tensor.shape[0]) for tensor, ids in asked]
    found = [np.empty(*stored_rows(tensor, len(array))) for (tensor, _), array in zip(asked, arrays)]
    finish(*[partial(lib.gw_gather_start, client.pointer, tensor, ids_pointer(array), len(array), pointer(rows))
             for (tensor, _), array, rows in zip(asked, arrays, found)])
    return [public_rows(rows, tensor.dtype, torch) for (tensor, _), rows in zip(asked, found)]


def gather(client: Any, tensor: Any, ids: Ids, torch: Any) -> Array:
    """Rows of a C tensor, in memory of their own."""
    return gather_all(client, [(tensor, ids)], torch)[0]


def gather_into(client: Any, tensor: Any, ids: Ids, out: Array, torch: Any) -> None:
    """Rows of a C tensor, in memory of the caller's."""
    array = ids_array(ids, tensor.shape[0])
    name, dtype = dtype_name(tensor.dtype), public_dtype(tensor.dtype, torch)
    if name == "GW_INT8_ROW" or (name == "GW_BFLOAT16" if torch is None else name in _SIGNED):
        raise TypeError(f"rows of {name[3:].lower()} come out converted to {dtype}: not into memory that is there")
    if out.dtype != dtype:
        raise TypeError(f"out is of {out.dtype}, and the rows are of {dtype}")
    shape = (len(array), *public_shape(tensor)[1:])
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}, not {shape}")
    if torch is None:
        fit, address = out.flags.c_contiguous and out.flags.writeable, out.ctypes.data
    else:
        fit, address = out.is_contiguous() and out.device.type == "cpu", out.data_ptr()
    if not fit:
        raise ValueError("out is contiguous memory of the host that can be written")
    finish(partial(lib.gw_gather_start, client.pointer, tensor, ids_pointer(array), len(array),
                   ffi.cast("void *", address)))


def public(array: np.ndarray, torch: Any) -> Array:
    return array if torch is None else torch.from_numpy(array)
