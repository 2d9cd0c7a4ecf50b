"""Converts ids on their way to C, and arrays on their way to the caller: torch tensors, or NumPy arrays without torch.

Feature rows and edges of a mini-batch stay in the library's memory. They are copied only where public_rows must change
their type. The library itself converts rows that are stored narrow (fetched_as). Every array over this memory refers to
the mini-batch's lease. When the last of these arrays is freed, in any thread, the lease ends and the library takes the
mini-batch back.

Labels, ids and row numbers are copies. They are small compared with the rows, and a view of them would keep the whole
mini-batch in memory.

Errors: TypeError, IndexError and ValueError for ids and rows of the wrong kind; ids_array lists them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, Callable

import numpy as np

from graphwire._base import checks
from graphwire._base.native import ffi, finish, lib

Array = Any  # torch.Tensor, or numpy.ndarray
Ids = Any  # a tensor, array, list, range or slice of integers

# The NumPy type of a row's elements in memory. bfloat16 has no NumPy type: its bits are uint16.
_STORED = {
    "GW_UINT8": "u1", "GW_INT8": "i1", "GW_BOOL": "?", "GW_UINT16": "<u2", "GW_FLOAT16": "<f2", "GW_BFLOAT16": "<u2",
    "GW_INT32": "<i4", "GW_UINT32": "<u4", "GW_FLOAT32": "<f4", "GW_INT64": "<i8", "GW_UINT64": "<u8",
    "GW_FLOAT64": "<f8", "GW_INT8_ROW": "i1", "GW_INT16": "<i2"}
# torch 1.13 has no unsigned type except uint8, so these become the next wider signed type. uint64 keeps its 64 bits
# and becomes int64.
_SIGNED = {"GW_UINT16": np.int32, "GW_UINT32": np.int64}
DTYPES = tuple(name[3:].lower() for name in _STORED if name != "GW_INT8_ROW")  # the dtypes that a Tensor can have
REALS = ("float32", "float16", "bfloat16", "float64")  # the dtypes that `dtype` of loaders and features can be
_ADDRESS_MIN = 1 << 12  # no memory is below it
_UNSIGNED = {4: "I", 8: "Q"}  # the struct module's letters, by size
_NOTHING = ffi.new("int64_t *")  # the address of every empty array
MASK_TYPES = ("bool", "uint8", "int8")  # the dtypes of masks: an element is a byte, 0 or 1


def torch_module() -> Any:
    """torch, or None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def world_of(world: int | None, rank: int | None) -> tuple[int, int]:
    """(world, rank) as given; if both are None, those of an initialized torch.distributed, else (1, 0).

    Raises ValueError unless rank < world and both or neither are given.
    """
    if world is None and rank is None:
        torch = torch_module()
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_world_size(), torch.distributed.get_rank()
        return 1, 0
    world = None if world is None else checks.integer("world", world, 1)
    rank = None if rank is None else checks.integer("rank", rank)
    if world is None or rank is None or rank >= world:
        raise ValueError(f"rank {rank} is not one of a world of {world}")
    return world, rank


@cache
def dtype_name(code: int) -> str:
    return ffi.string(ffi.cast("gw_dtype", code))


def dtype_code(name: Any, allowed: Sequence[str] = DTYPES) -> int:
    """The gw_dtype of "float32", np.float32 or torch.float32. Raises ValueError, which lists the types."""
    word = str(name).replace("torch.", "")
    if isinstance(name, type):
        try:
            word = np.dtype(name).name
        except TypeError:
            pass
    if word not in allowed:
        raise ValueError(f"dtype: {name!r} is not one of the types {', '.join(allowed)}")
    return int(getattr(lib, f"GW_{word.upper()}"))


def real_code(dtype: Any, torch: Any) -> int | None:
    """The gw_dtype of the argument `dtype` of loaders and features; None: rows keep their types. Raises ValueError for
    other types, and for bfloat16 where the caller gets NumPy arrays."""
    if dtype is None:
        return None
    code = dtype_code(dtype, REALS)
    if torch is None and code == lib.GW_BFLOAT16:
        raise ValueError("dtype: NumPy has no bfloat16")
    return code


def is_real(tensor: Any) -> bool:
    """Whether the rows of a gw_tensor are real numbers, which `dtype` applies to."""
    return dtype_name(tensor.original)[3:].lower() in REALS or tensor.dtype == lib.GW_INT8_ROW


def used_code(dtype: Any, torch: Any, tensors: Iterable[Any]) -> int | None:
    """real_code, where the rows are of these gw_tensors. Raises InvalidError if none has real numbers."""
    code = real_code(dtype, torch)
    if not any(map(is_real, tensors)):
        checks.unused("no feature of real numbers is read", dtype=dtype)
    return code


def fetched_as(tensor: Any, torch: Any, real: int | None = None, stored: bool = False) -> int:
    """The gw_dtype in which the library fetches rows of a gw_tensor.

    real: the gw_dtype that the caller chose for rows of real numbers; None: rows that were stored narrow have their
        original type, others their own.
    stored: rows that are not narrow stay as they are stored, and public_rows converts them.
    """
    code = int(tensor.original)
    if real is not None and is_real(tensor):
        return real
    if code == lib.GW_INT8_ROW:
        return int(lib.GW_FLOAT32)
    if stored and code == tensor.dtype:
        return code
    return int(lib.GW_FLOAT32) if torch is None and code == lib.GW_BFLOAT16 else code


def public_dtype(code: int, torch: Any) -> Any:
    """The torch or NumPy dtype in which callers get rows that are fetched as a gw_dtype."""
    name = dtype_name(code)
    if torch is None:
        return np.dtype(np.float32) if name == "GW_BFLOAT16" else np.dtype(_STORED[name])
    if name == "GW_BFLOAT16":
        return torch.bfloat16
    if name in _SIGNED:
        return torch.int32 if name == "GW_UINT16" else torch.int64
    return torch.int64 if name == "GW_UINT64" else torch.from_numpy(np.empty(0, _STORED[name])).dtype


def tensor_dtype(code: int, torch: Any) -> Any:
    """The torch dtype of tensors over rows that are fetched as a gw_dtype; None: the rows are converted to the caller's
    type, or become NumPy arrays."""
    return None if torch is None or dtype_name(code) in _SIGNED else public_dtype(code, torch)


def public_shape(tensor: Any) -> tuple[int, ...]:
    """The shape that callers see: rows of int8_row without their scale, offset and padding."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return (shape[0], int(tensor.numbers)) if tensor.dtype == lib.GW_INT8_ROW else shape


class RowsOf(int):
    """The number of nodes, or of edges, of a type, which knows the type: a mask of another type is refused, also if it
    has as many rows. graph: the graph's graph_id, if it is known. The functions of ids below take it as `count`."""

    graph: int | None
    of_edges: bool
    type: str

    def __new__(cls, count: int, graph: int | None, of_edges: bool, kind: str) -> RowsOf:
        made = super().__new__(cls, count)
        made.graph, made.of_edges, made.type = graph, of_edges, kind
        return made

    def __reduce__(self) -> Any:
        return RowsOf, (int(self), self.graph, self.of_edges, self.type)

    @property
    def words(self) -> str:
        return f"{'edges' if self.of_edges else 'nodes'} of type {self.type}"


class MaskLengthError(IndexError, ValueError):
    """A mask has another length than its type has rows. torch and NumPy raise IndexError for such a mask."""


def is_byte(ids: Ids) -> bool:
    """Whether `ids` has the dtype of a mask. A single value of such a type is neither an id nor a mask."""
    return str(getattr(ids, "dtype", "")).replace("torch.", "") in MASK_TYPES


def _items(items: Any, what: str) -> np.ndarray:
    """Converts a list or tuple to an array. Refuses bools among integers, which NumPy would turn into 1 and 0."""
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
    """Converts anything except a slice to an array of its own type. Raises TypeError for complex tensors, and for
    floating-point tensors that are not empty."""
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu()
        if (ids.is_floating_point() and ids.numel()) or ids.is_complex():
            raise TypeError(f"{what} are integers, not {ids.dtype}")
        if ids.is_floating_point():
            return np.empty(tuple(ids.shape))  # an empty tensor: NumPy lacks some of torch's floating-point types
        return np.asarray(ids.numpy())
    return _items(ids, what) if isinstance(ids, (list, tuple)) else np.asarray(ids)


def _of_mask(array: np.ndarray, count: int | None, what: str) -> np.ndarray:
    """The ids that a mask selects."""
    kind = "a mask" if array.dtype == np.bool_ else f"{array.dtype} is a mask, as in torch, and ids are int64: one"
    if count is None or array.ndim == 0:
        raise TypeError(f"{what} are integers, not {array.dtype}")
    if array.shape != (count,):
        raise MaskLengthError(f"{what}: {kind} of shape {array.shape} does not fit {int(count)} rows")
    if array.dtype != np.bool_ and np.any((array != 0) & (array != 1)):
        raise ValueError(f"{what}: {kind} holds 0 and 1 only, and this one has other values: pass ids.astype(int), or "
                         "ids.long()")
    return np.flatnonzero(array).astype(np.int64)


def _of_table(table: Any, count: int | None, what: str) -> Array:
    """The rows of a feature or a tensor that is a mask of `count`. Raises TypeError for rows that are no mask, and
    ValueError for a mask of another type or graph."""
    if not is_byte(table):
        raise TypeError(f"{what}: {table!r} is no mask, which is of bool, uint8 or int8: [:] reads rows that are ids")
    of = table.rows_of
    if isinstance(of, RowsOf) and isinstance(count, RowsOf):
        if (of.of_edges, of.type) != (count.of_edges, count.type):
            raise ValueError(f"{what}: {table!r} is a mask of the {of.words}, and not of the {count.words}")
        if None not in (of.graph, count.graph) and of.graph != count.graph:
            raise ValueError(f"{what}: {table!r} is a mask of another graph, whose ids may differ: [:] reads its rows")
    return table[:]


def chosen(ids: Ids, count: int | None, what: str = "ids") -> tuple[np.ndarray, bool]:
    """(ids, whether the argument is a mask or a slice, which stands for the ids that it selects). ids_array documents
    the arguments and the errors."""
    if isinstance(ids, slice) and count is not None:
        return np.arange(*ids.indices(count), dtype=np.int64), True
    ids = getattr(ids, "of_graph", ids)  # rows of graphwire.pyg, in the order of the user's data: those of the graph
    if getattr(type(ids), "rows_by_id", False):
        ids = _of_table(ids, count, what)
    array = _plain(ids, what)
    if array.dtype.name in MASK_TYPES:
        return _of_mask(array, count, what), True
    if array.dtype.kind not in "iu" and (array.size or array.dtype.kind != "f"):
        raise TypeError(f"{what} are integers, not {type(ids).__name__ if array.ndim == 0 else array.dtype}")
    if array.ndim > 1:
        raise ValueError(f"{what} have one dimension, not {array.ndim}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        raise IndexError(f"{what} are integers below 2^63: {int(array.max())} is not")
    return np.ascontiguousarray(array, dtype=np.int64), False


def ids_array(ids: Ids, count: int | None, what: str = "ids") -> np.ndarray:
    """Converts ids in any accepted form to contiguous int64. All functions that take ids use this definition.

    ids: integers (an array of one dimension, a list, tuple or range, or a single integer), or a slice or a mask of
        `count` rows. A slice or a mask stands for the ids that it selects. The type of `ids` alone decides whether it
        is a mask, never the values: bools, arrays of uint8 (as in torch) or int8, and features of such rows are masks.
    count: the number of rows that a mask or a slice selects from. A RowsOf also decides whose mask a feature or a
        tensor may be. None: masks and slices are refused.
    what: the argument's name, for errors.

    Raises TypeError for anything else (fractions, bools among integers, texts, objects); MaskLengthError for a mask of
    another length; IndexError for integers of 2^63 or more; ValueError for two dimensions, for a mask of uint8 or int8
    with other values than 0 and 1, and for a mask of another type. An empty array may be of any number type, because
    NumPy and torch make [] a floating-point array. The function does not check that the ids exist.
    """
    return chosen(ids, count, what)[0]


def own_ids(ids: Ids, count: int | None, what: str = "ids") -> np.ndarray:
    """As ids_array, but the result is always a copy. It is for ids that are read after the call, when the caller may
    change its array."""
    return ids_array(ids, count, what).copy()


def ids_pointer(ids: np.ndarray) -> Any:
    """The ids as const int64_t *. The pointer keeps the array alive."""
    return ffi.from_buffer("int64_t[]", ids)


class Lease:
    """Owns one mini-batch. A call writes the mini-batch into `cell`. When the last array over its memory is freed, the
    lease ends and the library takes the mini-batch back. An operation under way whose ticket is in `ticket` is then
    cancelled. landing: the client's, or None."""

    __slots__ = ("__weakref__", "_held", "landing")

    def __init__(self, client: Any):
        self._held = client.lend("struct held_minibatch *", lib.minibatch_end)
        self.landing = client.landing
        if self.landing is not None:
            self.landing.tend()

    @property
    def cell(self) -> Any:
        return ffi.addressof(self._held, "minibatch")

    @property
    def ticket(self) -> Any:
        """Where an operation that writes into `cell` puts its ticket."""
        return ffi.addressof(self._held, "ticket")

    @property
    def minibatch(self) -> Any:
        return self._held.minibatch


class _Window:
    """Memory under a lease, in NumPy's array interface. The array keeps a reference to this object, and so keeps the
    lease.
    """

    __slots__ = ("__array_interface__", "lease")

    def __init__(self, lease: Any, address: int, shape: tuple[int, ...], dtype: np.dtype):
        self.lease = lease
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": dtype.str}


def window(lease: Any, pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array over memory that `lease` owns: a Lease, or memory of owned(). The array keeps its owner alive."""
    kind = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    return np.asarray(_Window(lease, int(ffi.cast("uintptr_t", pointer)), shape, kind))


def windows(lease: Any) -> Callable[[int, Any, Any], np.ndarray]:
    """A function (address, shape, dtype) that makes arrays as window() does, in a fifth of the time. They share one
    window, over all addresses. An array, and a tensor of it, has only its own part. Address 0: an empty array."""
    whole: Any = np.asarray(_Window(lease, _ADDRESS_MIN, (1 << 62,), np.dtype(np.uint8)))
    memory, array, empty, first = memoryview(whole), np.ndarray, np.empty, _ADDRESS_MIN

    def one(address: int, shape: Any, dtype: Any) -> np.ndarray:
        return array(shape, dtype, memory, address - first) if address > first else empty(shape, dtype)

    return one


class Records:
    """Reads an array of C structures: a tuple of the named fields, numbers and addresses, for each structure. It reads
    them in one step, because cffi takes as long for each field of each structure. names: in the order of the fields."""

    def __init__(self, kind: str, *names: str):
        self._size, form, at = ffi.sizeof(kind), "=", 0
        for name, field in ffi.typeof(kind).fields:
            if name in names:
                size = ffi.sizeof(field.type)
                form += f"{field.offset - at}x{_UNSIGNED[size]}"
                at = field.offset + size
        self._struct = struct.Struct(f"{form}{self._size - at}x")

    def read(self, pointer: Any, count: int) -> list[tuple[int, ...]]:
        return list(self._struct.iter_unpack(ffi.buffer(pointer, count * self._size))) if count else []


def addresses(pointers: Any, count: int) -> list[int]:
    """The addresses in an array of pointers."""
    return ffi.unpack(ffi.cast("uintptr_t *", pointers), count)


def copied(pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A new array with a copy of the memory at `pointer`."""
    array = np.empty(shape, dtype)
    if array.size:
        ffi.memmove(ffi.from_buffer(array), pointer, array.nbytes)
    return array


def fetched_rows(tensor: Any, code: int, rows: int) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and NumPy type in memory of `rows` rows of a gw_tensor that are fetched as a gw_dtype."""
    return (rows,) + public_shape(tensor)[1:], np.dtype(_STORED[dtype_name(code)])


def public_rows(rows: np.ndarray, code: int, torch: Any) -> Array:
    """Converts rows that were fetched as a gw_dtype to the caller's type. The result is a copy only for bfloat16 in
    NumPy, and for uint16 and uint32 in torch."""
    name = dtype_name(code)
    if name == "GW_BFLOAT16":
        if torch is not None:
            return torch.from_numpy(rows.view(np.int16)).view(torch.bfloat16)
        rows = (rows.astype(np.uint32) << 16).view(np.float32)
    elif torch is not None and name in _SIGNED:
        rows = rows.astype(_SIGNED[name], copy=False)
    elif torch is not None and name == "GW_UINT64":
        rows = rows.view(np.int64)
    return rows if torch is None else torch.from_numpy(rows)


def pointer(array: np.ndarray, kind: str = "void *") -> Any:
    """The address of an array's memory; the caller keeps the array alive. An empty array has an address too, because C
    may read NULL as "all"."""
    return ffi.cast(kind, ffi.from_buffer(array) if array.size else _NOTHING)


def host(rows: Any) -> np.ndarray:
    """Rows of the caller as a NumPy array. NumPy has no bfloat16, which becomes float32."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
        rows = (rows.float() if str(rows.dtype) == "torch.bfloat16" else rows).numpy()
    return np.asarray(rows)


def _check_held(rows: np.ndarray, dtype: np.dtype) -> None:
    """Raises ValueError for numbers that the integer type `dtype` cannot hold. If `dtype` is uint64, int64 rows are
    accepted and keep their bits.
    """
    kept = rows.dtype == dtype or (rows.dtype == np.int64 and dtype == np.uint64)
    if kept or not rows.size or rows.dtype.kind not in "iuf":
        return
    ends, whole = np.iinfo(dtype), rows.dtype.kind != "f" or bool((rows == np.trunc(rows)).all())
    if whole and ends.min <= rows.min().item() and rows.max().item() <= ends.max:  # Python compares them exactly
        return
    bad = next(one for one in rows.ravel().tolist() if not (one == one // 1 and ends.min <= one <= ends.max))
    raise ValueError(f"rows are of {dtype.name}, which does not hold {bad}")


def _numbers(rows: Any, dtype: np.dtype | None = None) -> np.ndarray:
    """Rows of the caller as numbers of this type; None: of theirs. Raises TypeError for what is no number."""
    try:
        found = host(rows)
        absent = found.dtype.kind == "O" and any(one is None for one in found.ravel().tolist())
        if found.dtype.kind == "O" and not absent:  # numbers of Python
            found = np.array(found.tolist())
        if not absent and found.dtype.kind not in "cSUmM":
            return np.asarray(found, dtype)
    except OverflowError:  # an integer of more than 64 bits
        raise ValueError(f"rows are of {dtype}, which does not hold a number of {checks.shown(rows)}") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"rows are real numbers in a dense array or a list, not {checks.shown(rows)}")


def to_stored(rows: Any, code: int, dtype: np.dtype) -> np.ndarray:
    """Converts the caller's rows to the stored type. Raises TypeError for what is no number.

    For bfloat16, torch converts torch tensors; NumPy arrays are rounded to nearest, ties to even. Other floating-point
    types round too, and a number that is too large for the type becomes infinite. Raises ValueError for a number that
    an integer type cannot hold: NaN, a fraction, a number out of range.
    """
    if dtype_name(code) == "GW_BFLOAT16":
        if hasattr(rows, "detach"):
            import torch

            if rows.is_complex() or rows.layout != torch.strided:
                _numbers(rows)  # raises
            return rows.detach().cpu().to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)
        with np.errstate(over="ignore"):
            bits = np.ascontiguousarray(_numbers(rows, np.dtype(np.float32))).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(bits.view(np.float32)), np.uint16(0x7FC0), rounded)
    if dtype.kind in "iu":
        rows = _numbers(rows)
        _check_held(rows, dtype)
    with np.errstate(over="ignore"):
        return _numbers(rows, dtype)


def gather_all(client: Any, asked: Sequence[tuple[Any, Ids]], torch: Any,
               reals: Sequence[int | None] | None = None) -> list[Array]:
    """Reads rows of several gw_tensors into new arrays. All reads run at the same time. reals: for each, as in
    fetched_as."""
    arrays = [ids_array(ids, tensor.shape[0]) for tensor, ids in asked]
    codes = [fetched_as(tensor, torch, real) for (tensor, _), real in zip(asked, reals or [None] * len(asked))]
    found = [np.empty(*fetched_rows(tensor, code, len(array))) for (tensor, _), code, array in zip(
        asked, codes, arrays)]
    finish(*[partial(lib.gw_gather_as_start, client.pointer, tensor, code, ids_pointer(array), len(array),
                     pointer(rows)) for (tensor, _), code, array, rows in zip(asked, codes, arrays, found)])
    return [public_rows(rows, code, torch) for code, rows in zip(codes, found)]


def gather(client: Any, tensor: Any, ids: Ids, torch: Any, real: int | None = None) -> Array:
    """Reads rows of one gw_tensor into a new array. real: as in fetched_as."""
    return gather_all(client, [(tensor, ids)], torch, [real])[0]


def gather_into(client: Any, tensor: Any, ids: Ids, out: Array, torch: Any) -> None:
    """Reads rows of one gw_tensor into the caller's memory; Tensor.gather lists the errors."""
    array = ids_array(ids, tensor.shape[0])
    code = fetched_as(tensor, torch)
    name, dtype = dtype_name(code), public_dtype(code, torch)
    if torch is not None and name in _SIGNED:
        raise TypeError(f"rows of {name[3:].lower()} come out converted to {dtype}, and cannot be read into existing "
                        "memory: read them by [ids]")
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
        raise ValueError("out must be contiguous memory of the host that can be written")
    finish(partial(lib.gw_gather_as_start, client.pointer, tensor, code, ids_pointer(array), len(array),
                   ffi.cast("void *", address)))


def public(array: np.ndarray, torch: Any) -> Array:
    return array if torch is None else torch.from_numpy(array)
