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
    if world is None or rank is None or not 0 <= rank < world:
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


def ids_array(ids: Ids, count: int) -> np.ndarray:
    """Ids as contiguous int64; a slice, and a boolean mask of `count`, stand for the ids that they select."""
    if isinstance(ids, slice):
        return np.arange(*ids.indices(count), dtype=np.int64)
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    array = np.asarray(ids)
    if array.dtype == np.bool_:
        if array.shape != (count,):
            raise IndexError(f"a mask of shape {array.shape} does not fit {count} rows")
        return np.flatnonzero(array).astype(np.int64)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"ids are integers, not {array.dtype}")
    if array.ndim > 1:
        raise ValueError(f"ids have one dimension, not {array.ndim}")
    return np.ascontiguousarray(array, dtype=np.int64)


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
    """An array's memory; the caller keeps the array."""
    return ffi.cast(kind, ffi.from_buffer(array)) if array.size else ffi.NULL


def to_stored(rows: Any, code: int, dtype: np.dtype) -> np.ndarray:
    """Rows that go in, as they are stored. bfloat16: of torch as it is, of NumPy rounded to nearest, ties to even."""
    if dtype_name(code) == "GW_BFLOAT16":
        if hasattr(rows, "detach"):
            import torch

            return rows.detach().cpu().to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)
        bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(bits.view(np.float32)), np.uint16(0x7FC0), rounded)
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
        rows = (rows.float() if str(rows.dtype) == "torch.bfloat16" else rows).numpy()
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
