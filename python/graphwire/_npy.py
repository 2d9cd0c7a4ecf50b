"""Writes .npy files and .npz archives of texts in pieces, whose number of rows is known only at the end.

    Rows(path) -> append(piece) for each batch -> close(): the header gets the number of rows

Errors: OSError; ValueError if a piece has another type or another shape than the first.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

import numpy as np

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
        np.ascontiguousarray(rows).tofile(self._file)
        self.count += len(rows)

    def close(self, dtype: Any = np.int64) -> None:
        """Writes the header. dtype: that of a file without rows."""
        kind = self.kind or (np.dtype(dtype), ())
        self._file.seek(0)
        self._file.write(_header(kind[0], (self.count, *kind[1])))
        self._file.close()


def write_texts(path: Path, count: int, offsets: Iterable[np.ndarray], texts: Any) -> None:
    """Writes an archive of texts as `graphwire import` reads it: offsets, int64 [count + 1], in pieces, and their bytes,
    a buffer of uint8."""
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        with archive.open("offsets.npy", "w", force_zip64=True) as member:
            member.write(_header(np.dtype(np.int64), (count + 1,)))
            for piece in offsets:
                member.write(memoryview(np.ascontiguousarray(piece)).cast("B"))
        with archive.open("bytes.npy", "w", force_zip64=True) as member:
            view = memoryview(texts).cast("B")
            member.write(_header(np.dtype(np.uint8), (len(view),)))
            for begin in range(0, len(view), 1 << 26):
                member.write(view[begin:begin + (1 << 26)])
