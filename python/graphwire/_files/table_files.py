"""Writes the rows of tables to the files that `graphwire import` reads, a batch at a time.

    Writer(files, type, features) ─▶ take(batch) … ─▶ close(): options of `graphwire import` in Files

Errors: ValueError and TypeError, which name the table, the column and the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._base.escape import escaped_names
from graphwire._files import columns as _columns
from graphwire._files import narrow, npy
from graphwire._files.numbering import Ids, Numbering, Texts, numbers
from graphwire._files.table_arguments import Feature, Key, label

BLOCK = 1 << 20  # rows of a file that are changed at a time


class _Categories:
    """A column of categories as numbers: those of its values in their order."""

    def __init__(self, rows: npy.Rows):
        self._rows, self._numbering = rows, Numbering()
        self._missing: Optional[str] = None  # the place of a word such as NA

    def append(self, values: Ids, column: Any, where: _columns.Where) -> None:
        if isinstance(values, Texts) and self._missing is None:
            row = _columns.missing_number(column)
            self._missing = None if row < 0 else where(row)
        self._rows.append(numbers((self._numbering, values, True))[:, 0])

    def append_present(self, column: Any, name: str, where: _columns.Where) -> None:
        """Appends the values of a column; a missing one is -1."""
        column = _columns.plain(column)
        rows = np.flatnonzero(_columns.present(column))
        codes = np.full(len(column), -1, np.int64)
        values = _columns.ids(_columns.taken(column, rows), name, lambda row: where(int(rows[row])))
        codes[rows] = numbers((self._numbering, values, True))[:, 0]
        self._rows.append(codes)

    def _check(self, values: list[Any], name: str) -> None:
        """Raises ValueError for a number that is missing among numbers: it would make words of the others."""
        if self._missing is None:
            return
        others = [value for value in values if not _columns.is_missing(value)]
        if others and all(map(_columns.is_number, others)):
            raise ValueError(f"{self._missing}: column {name} is missing (NA, NULL or the like, among numbers): fill "
                             "it in, or leave out the row")

    def close(self, stem: Path, name: str) -> Path:
        """Numbers the values by their order, and writes them as texts, to files that begin with `stem`. name: the
        column. Returns the path of the texts. Raises ValueError for a number that is missing."""
        self._rows.close()
        values = self._numbering.values()
        self._check(values, name)
        order = sorted(range(len(values)), key=values.__getitem__)
        places = np.empty(len(values), np.int64)
        places[order] = np.arange(len(values))
        if self._rows.count:
            codes = np.load(self._rows.path, mmap_mode="r+")
            for begin in range(0, len(codes), BLOCK):
                block = codes[begin:begin + BLOCK]
                block[block >= 0] = places[block[block >= 0]]
            codes.flush()
        texts = [values[i] if isinstance(values[i], bytes) else str(values[i]).encode() for i in order]
        written = npy.TextFiles(stem)
        written.append(np.cumsum([0, *map(len, texts)]), np.frombuffer(b"".join(texts), np.uint8))
        written.close()
        return written.path


class Writer:
    """The files of one type in a folder, which grow a batch at a time. files: shared by all types."""

    def __init__(self, files: Files, key: Key, features: Sequence[Feature], types: Mapping[str, Any]):
        self._files, self._key, self._features, self._types = files, key, features, types
        self._rows: dict[str, npy.Rows] = {}
        self._categories: dict[str, _Categories] = {}
        self._texts: dict[str, npy.TextFiles] = {}
        self._whole: dict[str, bool] = {}  # whether all labels so far are integers
        self._masks: dict[str, Feature] = {}  # the column of each mask

    def _append(self, name: str, rows: np.ndarray) -> None:
        if name not in self._rows:
            self._rows[name] = npy.Rows(self._files.path(".npy"))
        self._rows[name].append(rows)

    def _append_category(self, one: Feature, column: Any, where: _columns.Where) -> None:
        if one.name not in self._categories:
            self._categories[one.name] = _Categories(npy.Rows(self._files.path(".npy")))
        if one.missing:
            self._categories[one.name].append_present(column, one.columns[0], where)
        else:
            self._categories[one.name].append(_columns.ids(column, one.columns[0], where), column, where)

    def _append_text(self, name: str, texts: Texts) -> None:
        if name not in self._texts:
            self._texts[name] = npy.TextFiles(self._files.path(""))
        self._texts[name].append(texts.offsets, texts.data)

    def take(self, where: _columns.Where, batch: Any) -> None:
        """Appends the rows of a batch."""
        for one in self._features:
            column, name = batch.column(one.columns[0]), one.columns[0]
            text = _columns.is_text(self._types[name])
            if one.role == "text":
                self._append_text(one.name, _columns.texts(column, name, where))
            elif one.role == "categories" or (one.role == "labels" and text):
                self._append_category(one, column, where)
            elif one.role == "masks":
                masks = _columns.masks(column, name, where)
                for mask, rows in masks.items():
                    mask = one.name if len(masks) == 1 else mask
                    self._claim(mask, one, where)
                    self._append(mask, rows)
            elif one.role == "time":
                self._append(one.name, _columns.times(column, name, where))
            else:
                self._append(one.name, self._numbers(one, where, batch))

    def _claim(self, mask: str, one: Feature, where: _columns.Where) -> None:
        """Raises ValueError for a mask that two columns become: a column of splits makes train_mask and others."""
        other = self._masks.setdefault(mask, one)
        if other is one:
            other = next((feature for feature in self._features if feature.name == mask), one)
        if other is not one:
            raise ValueError(f"{where(0)}: columns {' and '.join(sorted((other.columns[0], one.columns[0])))} both "
                             f"become the feature {mask!r}")

    def _numbers(self, one: Feature, where: _columns.Where, batch: Any) -> np.ndarray:
        if one.role == "labels":
            rows = _columns.labels(batch.column(one.columns[0]), one.columns[0], where)
            self._whole[one.name] = self._whole.get(one.name, True) and bool(narrow.are_exact(rows, np.int64).all())
            return rows
        parts = {name: _columns.rows(batch.column(name), name, where, one.missing) for name in one.columns}
        return parts[one.columns[0]] if len(parts) == 1 else _columns.joined(parts, where)

    def _settled(self, name: str, rows: npy.Rows) -> npy.Rows:
        """The rows of a feature; those of labels that are floats, and all whole, as integers: pandas makes floats of
        integers."""
        if not self._whole.get(name) or rows.kind is None or rows.kind[0].kind != "f":
            return rows
        made, given = npy.Rows(self._files.path(".npy")), np.load(rows.path, mmap_mode="r")
        for begin in range(0, len(given), BLOCK):
            made.append(given[begin:begin + BLOCK].astype(np.int64))
        made.close()
        return made

    def close(self) -> None:
        """Ends the files, and adds them to the words of `graphwire import`."""
        of, node = label(self._key), isinstance(self._key, str)
        key = (self._key,) if isinstance(self._key, str) else self._key
        for name, categories in self._categories.items():
            self._rows[name] = categories._rows
            column = next(one.columns[0] for one in self._features if one.name == name)
            names = categories.close(self._files.path(""), column)
            self._files.add("--node-feature" if node else "--edge-feature", (*key, f"{name}.names"), names,
                            f"names of {name} of {of}")
        for name, rows in self._rows.items():
            if name not in self._categories:
                rows.close()
            self._add(name, self._settled(name, rows), key)
        for name, texts in self._texts.items():
            texts.close()
            self._files.add("--node-feature", (*key, name), texts.path, f"text {name} of {of}")

    def _add(self, name: str, rows: npy.Rows, key: tuple[str, ...]) -> None:
        of = ":".join(key)
        mask = rows.kind is not None and rows.kind[0] == np.bool_ and not rows.kind[1]
        if any(one.role == "time" and one.name == name for one in self._features):
            self._files.add("--edge-time", key, rows.path, f"times of {of}")
        elif len(key) == 1:
            self._files.add("--node-mask" if mask else "--node-feature", (*key, name), rows.path,
                            f"node feature {name} of {of}")
        else:
            self._files.add("--edge-feature", (*key, name), rows.path, f"edge feature {name} of {of}")


class Files:
    """The files in a folder, the words of `graphwire import` about them, and {file: what it holds} for errors."""

    def __init__(self, folder: Path):
        self._folder, self._count = folder, 0
        self.words: list[str] = []
        self.names: dict[str, str] = {}

    def path(self, end: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}{end}"

    def type_name(self, *names: str) -> str:
        """The names of a type, and of a feature of it, as text for the program. Raises ValueError for a name that
        cannot be stored."""
        found = escaped_names(names)
        self.names.update({one: name for one, name in zip(found, names) if one != name})
        return ":".join(found)

    def add(self, option: str, of: tuple[str, ...], path: Path, what: str) -> None:
        """of: the names for type_name."""
        self.words += [option, f"{self.type_name(*of)}={path}"]
        self.names[str(path)] = what


def settled(rows: npy.Rows, files: Files) -> Path:
    """The file of edges. Two edges become two arrays, because [2, 2] could be rows or columns."""
    if rows.count != 2:
        return rows.path
    pairs, path = np.load(rows.path), files.path(".npz")
    np.savez(path, src=pairs[:, 0], dst=pairs[:, 1])
    return path
