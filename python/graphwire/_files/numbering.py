"""Numbers for the original ids of a node type, in the order of their first appearance (python/numbering.h).

    numbers(batch) …                                  ─▶ numbers
    spill(), numbers(batch) … ─▶ places in a file; settle(): `graphwire import ids` ─▶ numbers[place]

Errors: ResourceError if memory runs out or a limit is exceeded; RuntimeError with the program's last line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from graphwire._base.native import ResourceError, ffi, lib, owned
from graphwire._files import npy
from graphwire._files.running import run

_PIECE = 1 << 20  # offsets that are written at a time
_TEXT_MAX = 65535  # bytes of an id
_LIMIT = "more than 2^32 - 2 ids of one node type, or an id of 65,536 bytes or more"


class Texts(NamedTuple):
    """A batch of texts: text i is data[offsets[i]:offsets[i + 1]]. offsets: int32 or int64 [rows + 1]; data: uint8."""

    offsets: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1


Ids = Union[np.ndarray, Texts]  # int64 [rows], or texts


class Numbering:
    """Numbers of the ids of one node type. is_text: whether its ids are texts; None before the first batch. is_spilled:
    whether further ids get places in a file, because memory is short."""

    def __init__(self) -> None:
        self._held = owned("struct held_numbering *", lib.numbering_end)
        self.is_text: Optional[bool] = None
        self._kept: Optional[Union[npy.Rows, npy.TextFiles]] = None
        self._settled: Optional[tuple[np.ndarray, Path]] = None

    @property
    def is_spilled(self) -> bool:
        return self._kept is not None

    def __len__(self) -> int:
        """The number of ids; of a spilled numbering that is not settled, the number of places."""
        if self._settled is not None:
            return len(np.load(self._settled[1], mmap_mode="r")) - bool(self.is_text)
        return self._kept.count if self._kept is not None else int(lib.numbering_count(self._held))

    def memory(self) -> int:
        """The bytes of memory that the ids take."""
        return int(lib.numbering_memory(self._held))

    def file_bytes(self) -> int:
        """The bytes of files that the ids in memory would take."""
        return len(self) * 8 + (len(self._bytes()) if self.is_text else 0)

    def spill(self, stem: Path) -> None:
        """Moves the ids to files that begin with `stem`. Ids so far keep their numbers, as places."""
        kept = self._copied(stem)
        lib.numbering_end(self._held)
        self._kept = kept

    def keep(self, *batches: Ids) -> np.ndarray:
        """Appends the ids of one or two batches, row by row. Returns their places, int64 [rows, batches]."""
        assert self._kept is not None
        first, rows = self._kept.count, len(batches[0])
        if isinstance(self._kept, npy.Rows):
            self._kept.append(np.stack([np.asarray(batch) for batch in batches], 1).reshape(-1))
        else:
            texts = _row_by_row(*batches)
            if rows and int(np.diff(texts.offsets).max()) > _TEXT_MAX:
                raise ResourceError("GW_LIMIT", _LIMIT)
            self._kept.append(texts.offsets, texts.data)
        return np.arange(first, first + rows * len(batches)).reshape(rows, len(batches))

    def settle(self, stem: Path, words: Sequence[str], count: Optional[int] = None) -> None:
        """Numbers the ids of a spilled numbering, with files that begin with `stem`. words: options of the program.
        count: of the ids to keep; those with higher numbers only have numbers. None: all."""
        assert self._kept is not None
        self._kept.close()
        kept = [] if count is None else ["--count", str(count)]
        run(["import", "ids", "--from", self._kept.path, "--out", stem, *kept, *words])
        self._settled = (np.load(f"{stem}.numbers.npy", mmap_mode="r"),
                         Path(f"{stem}.offsets.npy" if self.is_text else f"{stem}.npy"))

    @property
    def by_place(self) -> np.ndarray:
        """The number of the id at each place of a settled numbering, int64; mapped."""
        assert self._settled is not None
        return self._settled[0]

    def at_place(self, place: int) -> Any:
        """The id at a place of a spilled numbering, for errors."""
        assert self._kept is not None
        kept = np.load(self._kept.path, mmap_mode="r")
        if not isinstance(self._kept, npy.TextFiles):
            return int(kept[place])
        data = np.load(self._kept.bytes_path, mmap_mode="r")
        return data[kept[place]:kept[place + 1]].tobytes().decode("utf-8", "replace")

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
        if self._settled is not None:
            return self._settled[1]
        out = self._copied(stem)
        out.close()
        return out.path

    def _copied(self, stem: Path) -> Union[npy.Rows, npy.TextFiles]:
        """The ids in memory, in the order of their numbers, in files that begin with `stem` and can grow."""
        if not self.is_text:
            rows = npy.Rows(stem.with_name(stem.name + ".npy"))
            rows.append(self._integers())
            return rows
        texts, data = npy.TextFiles(stem), self._bytes()
        for offsets in self._offsets():
            texts.append(offsets, data)
        return texts

    def _offsets(self) -> Iterator[np.ndarray]:
        """The places of texts in the bytes of all, in pieces that share their ends."""
        for begin in range(0, len(self), _PIECE):
            piece = np.empty(min(_PIECE, len(self) - begin) + 1, np.int64)
            lib.numbering_offsets(self._held, begin, len(piece), ffi.from_buffer("int64_t[]", piece))
            yield piece


def _batch(ids: Ids, kept: list[Any]) -> dict[str, Any]:
    """The fields of struct id_batch for a batch. kept: what must live as long as they are used."""
    if isinstance(ids, Texts):
        kind = "offsets32" if ids.offsets.dtype == np.int32 else "offsets64"
        data = ids.data if len(ids.data) else np.zeros(1, np.uint8)
        parts = {"bytes": ("uint8_t[]", data), kind: (f"int{kind[-2:]}_t[]", ids.offsets)}
    else:
        parts = {"numbers": ("int64_t[]", np.ascontiguousarray(ids, np.int64) if len(ids) else np.zeros(1, np.int64))}
    fields = {field: ffi.from_buffer(kind, array) for field, (kind, array) in parts.items()}
    kept.extend(fields.values())
    return fields


def _row_by_row(*batches: Ids) -> Texts:
    """The texts of one batch, or those of two, row by row."""
    first, last = batches[0], batches[-1]
    assert isinstance(first, Texts) and isinstance(last, Texts)
    if len(batches) == 1:
        return first
    kept: list[Any] = []
    both = [ffi.new("struct id_batch *", _batch(batch, kept)) for batch in batches]
    length = sum(int(one.offsets[-1]) - int(one.offsets[0]) for one in (first, last))
    offsets, data = np.empty(2 * len(first) + 1, np.int64), np.empty(max(length, 1), np.uint8)
    lib.numbering_interleave(*both, len(first), ffi.from_buffer("int64_t[]", offsets),
                             ffi.from_buffer("uint8_t[]", data))
    return Texts(offsets, data[:length])


def _numbered(columns: Sequence[tuple[Numbering, Ids, bool]], rows: int) -> np.ndarray:
    """The numbers of ids in memory, int64 [rows, columns]."""
    out = np.empty((rows, len(columns)), np.int64)
    given, kept = ffi.new(f"struct id_column[{len(columns)}]"), list[Any]()
    for place, (numbering, ids, add) in enumerate(columns):
        given[place].held, given[place].add = numbering._held, add
        for field, array in _batch(ids, kept).items():
            setattr(given[place].batch, field, array)
    status = lib.numbering_take(given, len(columns), rows, ffi.from_buffer("int64_t[]", out) if rows else ffi.NULL)
    if status == lib.GW_LIMIT:
        raise ResourceError("GW_LIMIT", _LIMIT)
    if status == lib.GW_NO_MEMORY:
        raise ResourceError("GW_NO_MEMORY", f"memory ran out after {len(columns[0][0]):,} ids")
    assert status == lib.GW_OK
    return out


def numbers(*columns: tuple[Numbering, Ids, bool]) -> np.ndarray:
    """Numbers the ids of one or two columns, row by row: int64 [rows, columns]. Each column: its numbering, its ids,
    and whether new ids are added; without, a missing id gets -1. Ids of a spilled numbering get places, also missing
    ones."""
    for numbering, ids, _ in columns:
        numbering.is_text = isinstance(ids, Texts)
    rows, places = len(columns[0][1]), list(range(len(columns)))
    held = [place for place in places if not columns[place][0].is_spilled]
    if held == places:
        return _numbered(columns, rows)
    out = np.empty((rows, len(columns)), np.int64)
    if held:
        out[:, held] = _numbered([columns[place] for place in held], rows)
    if not held and len(columns) == 2 and columns[0][0] is columns[1][0]:
        return columns[0][0].keep(columns[0][1], columns[1][1])
    for place in set(places).difference(held):
        out[:, [place]] = columns[place][0].keep(columns[place][1])
    return out
