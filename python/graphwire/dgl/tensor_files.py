"""Files of tensors, in the format of DGL's save_tensors and load_tensors.

    write_tensors(path, {"user/feat": rows}) -> a file, which DGL reads too -> read_tensors(path)

The format is that of DGL's save_tensors, little-endian: a magic number, the number of tensors twice; of each tensor the
name (uint64 length, bytes), a magic number, 8 bytes reserved, device (2 int32), number of dimensions (int32), dtype
(code and bits, uint8 each; lanes, uint16), shape (int64 each), bytes of data (int64), data.

Errors: RowsError for a file that cannot be read; FileNotFoundError.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphwire._files.reading import reading

_MAGIC, _ARRAY_MAGIC = 0xDD5A9FBE3FA2443F, 0xDD5E40F096B4A13F
_KINDS = {0: "i", 1: "u", 2: "f"}  # codes of dtypes; bools are uint8


class RowsError(ValueError):
    """A file of rows cannot be read, or its rows do not fit the graph. The text names the file."""

    __module__ = "graphwire.dgl"


class _Reader:
    """Reads values from a file. Raises RowsError at its end."""

    def __init__(self, file: BinaryIO, path: Path):
        self.path, self._file, self._left = path, file, path.stat().st_size

    def _count(self, count: int) -> int:
        self._left -= count
        if count < 0 or self._left < 0:
            raise RowsError(f"{self.path}: the file ends within a tensor")
        return count

    def take(self, count: int) -> bytes:
        return self._file.read(self._count(count))

    def skip(self, count: int) -> None:
        self._file.seek(self._count(count), os.SEEK_CUR)

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))


def read_tensors(path: str | os.PathLike, *, only_names: bool = False) -> dict[str, np.ndarray]:
    """{name: rows} of a file of DGL's save_tensors. only_names: the rows are empty, and the file's data is not read.
    Raises RowsError; FileNotFoundError."""
    found: dict[str, np.ndarray] = {}
    with reading(path, RowsError, FileNotFoundError), open(path, "rb") as file:
        reader = _Reader(file, Path(path))
        magic, count, _ = reader.numbers("QQQ")
        if magic != _MAGIC:
            raise RowsError(f"{path}: no file of DGL's save_tensors")
        for _ in range(count):
            name = reader.take(*reader.numbers("Q")).decode("utf-8", "replace")
            magic, _, _, _, dims, code, bits, lanes = reader.numbers("QQiiiBBH")
            if magic != _ARRAY_MAGIC or code not in _KINDS or lanes != 1 or bits not in (8, 16, 32, 64) or not (
                    0 <= dims <= 8):
                raise RowsError(f"{path}: {name} is no tensor of numbers")
            shape, (size,) = reader.numbers(f"{dims}q"), reader.numbers("q")
            if size != math.prod(shape) * (bits // 8) or min(shape, default=0) < 0:
                raise RowsError(f"{path}: {name} has {size} bytes, and its shape is {list(shape)}")
            if only_names:
                reader.skip(size)
                found[name] = np.empty(0)
            else:
                found[name] = np.frombuffer(reader.take(size), f"<{_KINDS[code]}{bits // 8}").reshape(shape)
    return found


def write_tensors(path: str | os.PathLike, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes arrays of numbers to a file. Raises TypeError for other arrays."""
    codes = {kind: code for code, kind in _KINDS.items()}
    with open(path, "wb") as file:
        file.write(struct.pack("<QQQ", _MAGIC, len(tensors), len(tensors)))
        for name, rows in tensors.items():
            rows = np.ascontiguousarray(rows.view(np.uint8) if rows.dtype == np.bool_ else rows)
            if rows.dtype.kind not in codes:
                raise TypeError(f"{name}: {rows.dtype} is no type of numbers that the file may have")
            text = name.encode()
            file.write(struct.pack(f"<Q{len(text)}sQQiiiBBH{rows.ndim}qq", len(text), text, _ARRAY_MAGIC, 0, 1, 0,
                                   rows.ndim, codes[rows.dtype.kind], rows.dtype.itemsize * 8, 1, *rows.shape,
                                   rows.nbytes))
            file.write(rows.astype(rows.dtype.newbyteorder("<"), copy=False).tobytes())
