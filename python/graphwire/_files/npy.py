"""Writes .npy files, of rows and of texts, in pieces, whose number of rows is known only at the end; reads .npz files.

    Rows(path) -> append(piece) for each batch -> close(): the header gets the number of rows

Errors: OSError; ValueError if a piece has another type or another shape than the first; the caller's error for a file
that is damaged.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._files.reading import reading

_HEADER = 128  # bytes; the dictionary and its padding fill them whatever the number of rows


def _header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': {np.lib.format.dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.ljust(_HEADER - 11).encode() + b"\n"


class Rows:
    """An .npy file that grows. count: its rows so far. kind: (dtype, shape of a row), known from the first rows on."""

    def __init__(self, path: Path):
        self.path, self.count = path, 0
        self._file = open(path, "wb", buffering=0)
        self._file.write(b" " * _HEADER)
        self.kind: Optional[tuple[np.dtype, tuple[int, ...]]] = None

    def append(self, rows: np.ndarray) -> None:
        kind = rows.dtype, rows.shape[1:]
        if self.kind is None:
            self.kind = kind
        elif kind != self.kind:
            raise ValueError(f"rows of {kind[0]} {list(kind[1])} follow rows of {self.kind[0]} {list(self.kind[1])}")
        if rows.size:
            self._write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        self.count += len(rows)

    def _write(self, left: memoryview) -> None:
        """Writes all bytes. A full disk is an OSError with its number, which tofile does not give."""
        try:
            while left:
                left = left[self._file.write(left):]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def so_far(self) -> np.ndarray:
        """The rows so far; mapped, and they may be changed."""
        dtype, row = self.kind or (np.dtype(np.int64), ())
        shape = (self.count, *row)
        return np.memmap(self.path, dtype, "r+", _HEADER, shape) if all(shape) else np.empty(shape, dtype)

    def shorten(self, count: int) -> None:
        """Keeps the first rows."""
        dtype, row = self.kind or (np.dtype(np.int64), ())
        self._file.truncate(_HEADER + count * int(np.prod(row)) * dtype.itemsize)
        self.count = count

    def close(self, dtype: Any = np.int64, row: tuple[int, ...] = ()) -> None:
        """Writes the header. dtype, row: the type, and the shape of a row, of a file without rows."""
        kind = self.kind or (np.dtype(dtype), row)
        self._file.seek(0)
        self._file.write(_header(kind[0], (self.count, *kind[1])))
        self._file.close()


class TextFiles:
    """Texts as `graphwire import` reads them: STEM.offsets.npy, int64 [texts + 1], and STEM.bytes.npy, in which text i
    is [offsets[i], offsets[i + 1]). path: the file of the offsets, which names both; bytes_path: the other. count: the
    texts so far."""

    def __init__(self, stem: Path):
        self.path, self.bytes_path = (stem.with_name(f"{stem.name}.{what}.npy") for what in ("offsets", "bytes"))
        self._offsets, self._bytes = Rows(self.path), Rows(self.bytes_path)
        self._offsets.append(np.zeros(1, np.int64))

    @property
    def count(self) -> int:
        return self._offsets.count - 1

    def append(self, offsets: np.ndarray, data: np.ndarray) -> None:
        """Appends texts: text i of these is data[offsets[i]:offsets[i + 1]]."""
        first, last = int(offsets[0]), int(offsets[-1])
        self._offsets.append(offsets[1:].astype(np.int64) + (self._bytes.count - first))
        self._bytes.append(data[first:last])

    def close(self) -> None:
        self._offsets.close()
        self._bytes.close(np.uint8)


def arrays_of_npz(path: Path, error: type[Exception], *names: str) -> dict[str, np.ndarray]:
    """The arrays of numbers in an .npz file. names: those to read; without names, all. Raises `error`, which names the
    file."""
    with reading(path, error, what="no .npz file of the data set"), zipfile.ZipFile(path) as file:
        members = {name[:-len(".npy")]: name for name in file.namelist() if name.endswith(".npy")}
        arrays = {}
        for name in names or members:
            with file.open(members[name]) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        for name, rows in arrays.items():
            if rows.dtype.kind not in "biuf":
                raise ValueError(f"{name} is of {rows.dtype}")
        return arrays
