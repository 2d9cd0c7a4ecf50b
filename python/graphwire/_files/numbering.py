"""Numbers for the original ids of a node type, in the order of their first appearance (python/numbering.h).

Errors: ResourceError if memory runs out or a limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from graphwire._base.native import ResourceError, ffi, lib, owned
from graphwire._files import npy

_PIECE = 1 << 20  # offsets that are written at a time


class Texts(NamedTuple):
    """A batch of texts: text i is data[offsets[i]:offsets[i + 1]]. offsets: int32 or int64 [rows + 1]; data: uint8."""

    offsets: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1


Ids = Union[np.ndarray, Texts]  # int64 [rows], or texts


class Numbering:
    """Numbers of the ids of one node type. is_text: whether its ids are texts; None before the first batch."""

    def __init__(self) -> None:
        self._held = owned("struct held_numbering *", lib.numbering_end)
        self.is_text: Optional[bool] = None

    def __len__(self) -> int:
        return int(lib.numbering_count(self._held))

    def close(self) -> None:
        """Frees the memory that only further ids need."""
        lib.numbering_close(self._held)

    def _integers(self) -> np.ndarray:
        """The integers in the order of their numbers; a view, valid until further ids."""
        count = len(self)
        return np.frombuffer(ffi.buffer(lib.numbering_integers(self._held), count * 8) if count else b"", np.int64)

    def _bytes(self) -> np.ndarray:
        """The bytes of all texts; a view, valid until further ids."""
        length = ffi.new("uint64_t *")
        held = lib.numbering_bytes(self._held, length)
        return np.frombuffer(ffi.buffer(held, length[0]) if length[0] else b"", np.uint8)

    def values(self) -> list[Any]:
        """The ids in the order of their numbers: ints, or bytes."""
        if not self.is_text:
            return self._integers().tolist()
        data = self._bytes().tobytes()
        return [data[start:end] for offsets in self._offsets() for start, end in zip(offsets, offsets[1:])]

    def write(self, stem: Path) -> Path:
        """Writes the ids in the order of their numbers to files that begin with `stem`. Returns the one that names
        them: .npy of integers, or the offsets of texts."""
        if not self.is_text:
            rows = npy.Rows(stem.with_name(stem.name + ".npy"))
            rows.append(self._integers())
            rows.close()
            return rows.path
        texts, data = npy.TextFiles(stem), self._bytes()
        for offsets in self._offsets():
            texts.append(offsets, data)
        texts.close()
        return texts.path

    def _offsets(self) -> Iterator[np.ndarray]:
        """The places of texts in the bytes of all, in pieces that share their ends."""
        for begin in range(0, len(self), _PIECE):
            piece = np.empty(min(_PIECE, len(self) - begin) + 1, np.int64)
            lib.numbering_offsets(self._held, begin, len(piece), ffi.from_buffer("int64_t[]", piece))
            yield piece


def _fill(column: Any, numbering: Numbering, ids: Ids, add: bool, kept: list[Any]) -> None:
    column.held, column.add = numbering._held, add
    if isinstance(ids, Texts):
        kind = "offsets32" if ids.offsets.dtype == np.int32 else "offsets64"
        data = ids.data if len(ids.data) else np.zeros(1, np.uint8)
        parts = {"bytes": ("uint8_t[]", data), kind: (f"int{kind[-2:]}_t[]", ids.offsets)}
    else:
        parts = {"numbers": ("int64_t[]", np.ascontiguousarray(ids, np.int64) if len(ids) else np.zeros(1, np.int64))}
    for field, (kind, array) in parts.items():
        kept.append(ffi.from_buffer(kind, array))
        setattr(column.batch, field, kept[-1])


def numbers(*columns: tuple[Numbering, Ids, bool]) -> np.ndarray:
    """Numbers the ids of one or two columns, row by row: int64 [rows, columns]. Each column: its numbering, its ids,
    and whether new ids are added; without, a missing id gets -1."""
    rows = len(columns[0][1])
    out = np.empty((rows, len(columns)), np.int64)
    given, kept = ffi.new(f"struct id_column[{len(columns)}]"), list[Any]()
    for place, (numbering, ids, add) in enumerate(columns):
        numbering.is_text = isinstance(ids, Texts)
        _fill(given[place], numbering, ids, add, kept)
    status = lib.numbering_take(given, len(columns), rows, ffi.from_buffer("int64_t[]", out) if rows else ffi.NULL)
    if status == lib.GW_LIMIT:
        raise ResourceError("GW_LIMIT", "more than 2^32 - 2 ids of one node type, or an id of 65,536 bytes or more")
    if status == lib.GW_NO_MEMORY:
        raise ResourceError("GW_NO_MEMORY", f"memory ran out after {len(columns[0][0]):,} ids")
    assert status == lib.GW_OK
    return out
