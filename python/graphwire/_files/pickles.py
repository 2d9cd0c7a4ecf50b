"""Reads pickles of arrays, and makes nothing but plain containers, numbers, bytes and arrays of numbers.

    load(path) -> Python's interpreter of pickles, with the classes of this file in place of NumPy's and SciPy's
               -> each array and matrix is checked as it is made -> plain(): arrays in place of these classes

A pickle can run any code, so every other name is refused. NumPy's own classes are not safe either: a pickle sets the
state of a dtype, and a false state makes NumPy take a file's bytes for pointers. Here a dtype is one of NUMBERS and a
byte order. The interpreter is the one written in Python: the one in C allocates what a damaged position asks for.

load_torch() does the same with torch.load.

Errors: many types for damaged files; callers use reading.py.
"""

from __future__ import annotations

import collections
import contextlib
import io
import math
import os
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

NUMBERS = re.compile(r"[biuf](1|2|4|8)|[?bBhHiIlLqQefd]")
DENSITY = 256  # a dense matrix has at most this many times the bytes of its file; those of Planetoid have up to 60
DEPTH = 50  # of containers within containers


class NumbersDtype:
    """Stands for numpy.dtype: a type of numbers."""

    def __init__(self, word: Any, *_: Any):
        if not isinstance(word, str) or not NUMBERS.fullmatch(word):
            raise pickle.UnpicklingError(f"{word!r} is no dtype of numbers")
        self.dtype = np.dtype(word)

    def __setstate__(self, state: Any) -> None:
        """Sets the byte order. All else in the state must be that of a type of numbers."""
        order, rest = state[1], tuple(state[2:7])
        if order not in ("<", ">", "|", "=") or rest != (None, None, None, -1, -1) or any(state[7:8]):
            raise pickle.UnpicklingError("a dtype is no plain type of numbers")
        self.dtype = self.dtype.newbyteorder(order)


class NumbersArray:
    """Stands for numpy.ndarray: an array of numbers."""

    array: np.ndarray

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        if not isinstance(dtype, NumbersDtype) or isinstance(data, list):
            raise pickle.UnpicklingError("an array is not of numbers")
        data = data.encode("latin1") if isinstance(data, str) else bytes(data)
        shape = tuple(shape)
        if not all(isinstance(size, int) and size >= 0 for size in shape) or (
                math.prod(shape) * dtype.dtype.itemsize != len(data)):
            raise pickle.UnpicklingError(f"an array of shape {shape} has {len(data)} bytes")
        self.array = np.frombuffer(data, dtype.dtype).reshape(shape, order="F" if fortran else "C").copy()


class SparseMatrix:
    """Stands for SciPy's csr_matrix, so that SciPy is not needed."""

    def __setstate__(self, state: Any) -> None:
        shape = tuple(state["_shape"] if "_shape" in state else state["shape"])
        if len(shape) != 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise pickle.UnpicklingError(f"a sparse matrix has the shape {shape}")
        self.shape = shape
        self.data, self.indices, self.indptr = (state[name].array for name in ("data", "indices", "indptr"))
        integers = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (self.indices, self.indptr))
        if not integers or self.data.shape != self.indices.shape or len(self.indptr) != shape[0] + 1:
            raise pickle.UnpicklingError("the arrays of a sparse matrix do not fit each other")
        ends, columns = self.indptr.astype(np.int64), self.indices.astype(np.int64)
        if ends[0] != 0 or ends[-1] != len(columns) or (np.diff(ends) < 0).any() or (
                len(columns) and not 0 <= columns.min() <= columns.max() < shape[1]):
            raise pickle.UnpicklingError("the indices of a sparse matrix are out of range")

    def dense(self, bytes_max: int) -> np.ndarray:
        """The matrix, float32, of at most bytes_max bytes."""
        if 4 * math.prod(self.shape) > bytes_max:
            raise pickle.UnpicklingError(f"a sparse matrix of shape {self.shape} is too large for its file")
        rows = np.zeros(self.shape, np.float32)
        np.add.at(rows, (np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices), self.data)
        return rows


def _reconstruct(kind: Any, _shape: Any, _word: Any) -> NumbersArray:
    if kind is not NumbersArray:
        raise pickle.UnpicklingError("a class of arrays has no place here")
    return NumbersArray()


def _scalar(dtype: Any, data: Any) -> Any:
    text = data.encode("latin1") if isinstance(data, str) else bytes(data)
    if not isinstance(dtype, NumbersDtype) or len(text) != dtype.dtype.itemsize:
        raise pickle.UnpicklingError("a number has another size than its dtype")
    return np.frombuffer(text, dtype.dtype)[0]


def _no_bytes() -> bytes:
    """Stands for bytes, which pickles of Python 3 call for an array without elements."""
    return b""


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes as {encoding!r}")
    return text.encode("latin1")


_ARRAYS: dict[str, Any] = {f"{module}.{name}": made for module in ("numpy.core.multiarray", "numpy._core.multiarray")
           for name, made in (("_reconstruct", _reconstruct), ("scalar", _scalar))}
_ARRAYS |= {"numpy.ndarray": NumbersArray, "numpy.dtype": NumbersDtype}
_NAMES: dict[str, Any] = {
    **_ARRAYS, "_codecs.encode": _encode, "collections.defaultdict": collections.defaultdict,
    "__builtin__.bytes": _no_bytes, "builtins.bytes": _no_bytes,
    **dict.fromkeys(("scipy.sparse.csr.csr_matrix", "scipy.sparse._csr.csr_matrix"), SparseMatrix),
    **{f"{module}.{kind.__name__}": kind for module in ("__builtin__", "builtins") for kind in (list, int, set)}}
_OURS = (NumbersDtype, NumbersArray, SparseMatrix)


class _Reader(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _NAMES:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of arrays")
        return _NAMES[f"{module}.{name}"]

    def load_build(self) -> None:
        """Sets the state of an object of this file. Python's own would also set attributes of a class."""
        state = self.stack.pop()
        if type(self.stack[-1]) not in _OURS:
            raise pickle.UnpicklingError(f"{type(self.stack[-1]).__name__} has no state")
        self.stack[-1].__setstate__(state)

    dispatch[pickle.BUILD[0]] = load_build


def plain(found: Any, bytes_max: int, depth: int = DEPTH) -> Any:
    """The same object with arrays in place of this file's classes. bytes_max: of a dense matrix."""
    if depth < 0:
        raise pickle.UnpicklingError("containers within containers")
    if isinstance(found, SparseMatrix):
        return found.dense(bytes_max)
    if isinstance(found, NumbersArray):
        return found.array
    if isinstance(found, dict):
        return {key: plain(value, bytes_max, depth - 1) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return type(found)(plain(value, bytes_max, depth - 1) for value in found) if any(
            not isinstance(value, (int, float, str, bytes)) for value in found) else found
    if found is None or isinstance(found, (bool, int, float, str, bytes, set, np.generic)) or (
            type(found).__module__ == "torch"):
        return found
    raise pickle.UnpicklingError(f"{type(found).__name__} has no place in a file of arrays")


def load(path: Path) -> Any:
    """Reads a pickle of Python 2 or 3. A sparse matrix becomes a dense one."""
    data = path.read_bytes()
    return plain(_Reader(io.BytesIO(data), encoding="latin1").load(), DENSITY * len(data))


def load_torch(path: str | os.PathLike, *, arrays: bool = False) -> Any:
    """Reads torch.save's file of tensors, numbers and containers. arrays: NumPy's arrays of numbers too."""
    import torch

    made: list[Any] = [*_OURS, *((made, name) for name, made in _ARRAYS.items())] if arrays else []
    try:
        with torch.serialization.safe_globals(made) if made else contextlib.nullcontext():
            found = torch.load(path, weights_only=True)
    except pickle.UnpicklingError as error:  # torch's text has twelve lines, and recommends to run the file's code
        said = re.search(r"WeightsUnpickler error: *([^\n]*?)(?: was not an allowed global|\n|$)", str(error))
        raise ValueError(f"{said.group(1) if said else 'damaged'}: not a file of tensors") from error
    return plain(found, 0) if arrays else found
