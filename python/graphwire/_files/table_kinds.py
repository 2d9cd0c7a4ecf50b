"""Opens tables of any kind: their columns' names and types, and their rows in batches of Arrow.

    pandas, polars, Arrow (C stream), {name: column}  ─┐
    a CSV or Parquet file, or a list of these         ─┼─▶ Table ─▶ batches(columns): (where, a batch) …
    a folder of part-*.parquet or part-*.csv          ─┘

A batch has at most BATCH_ROWS rows, and fewer if rows are wide.

A folder's files are read in the order of their names. Names that begin with "_" or "." are ignored, as Spark does. Of
folders in it such as "day=3", which Spark's partitionBy writes, the names are columns (folder_columns.py). The values
of CSV are numbers if all of the column's values are; a first pass over the file finds that out. The program
reads text and decides on its headers and ids (text_files.py).

Errors: FileNotFoundError; ValueError and TypeError, which name the table or the file, the column and the row.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._base.arrays import host
from graphwire._base.keywords import suggestion
from graphwire._base.native import Workers
from graphwire._files import folder_columns, text_files
from graphwire._files.columns import Where, arrow, text_faults

BATCH_ROWS, _BATCH_BYTES = 1 << 17, 4 << 20
_FIRST_ROWS = 256  # of a file of Parquet; their width is a guess of all rows'
_READ_BYTES = 1 << 20  # of a column of Parquet
_CSV_BLOCK = 16 << 20  # a row of texts is not longer
_KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
PATHS = (*_KINDS, ".gz")  # ends of paths


def _line(error: BaseException) -> str:
    """The first line of an error of Arrow."""
    return str(error).partition("\n")[0] or type(error).__name__


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns what Arrow raises for a damaged file into ValueError, which names the file."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, pa.ArrowMemoryError, OSError, EOFError, OverflowError, UnicodeError) as error:
        raise ValueError(f"{what}: {_line(error)}") from None


@contextmanager
def converting(what: str) -> Iterator[None]:
    """Turns what Arrow raises for values in memory that it cannot have into TypeError, which names them."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError) as error:
        raise TypeError(f"{what}: {_line(error)}") from None


def _width(column: Any) -> float:
    """The bytes of a row of a column; those of its values, if they are in a dictionary."""
    if arrow().types.is_dictionary(column.type):
        return _width(column.indices) + _width(column.dictionary)
    return column.nbytes / max(len(column), 1)


def _rows_within(width: float) -> int:
    """The rows of a batch whose rows have so many bytes."""
    return max(1, min(BATCH_ROWS, int(_BATCH_BYTES / max(width, 1))))


def _pieces(batch: Any, names: Iterable[str]) -> Iterator[Any]:
    """The rows of a batch that may be too large, as batches of the right size. names: the columns that count."""
    rows = _rows_within(sum(_width(batch.column(name)) for name in names))
    for begin in range(0, batch.num_rows, rows):
        yield batch.slice(begin, rows)


class Table:
    """A table. what: names it in errors. names: its columns. has_texts: whether numbers in it are written as texts.
    ends: the columns of sources and destinations that the program chose. Subclasses read the rows."""

    has_texts = False
    ends: Optional[tuple[str, str]] = None

    def __init__(self, what: str, names: Sequence[Any]):
        self.what = what
        self.names = [str(name) for name in names]
        self._all_names: list[tuple[Any, Sequence[str]]] = [(what, self.names)]  # of each file

    def column(self, name: str, use: str) -> str:
        """The name of an existing column. use: the argument that names it. Raises ValueError, which suggests one."""
        if not isinstance(name, str):
            raise TypeError(f"{use}: a column is a name, not {name!r}")
        if name not in self.names:
            raise ValueError(f"{use}: {self.what} has no column {name!r}"
                             + suggestion(name, self.names).replace("its arguments", "its columns"))
        return name

    def allow_negative(self, name: str) -> None:
        """Ids of a column may be negative, because a table of nodes has them."""

    def allow_missing(self, names: Sequence[str]) -> None:
        """Ids of these columns may be missing; called before used()."""

    def read_times(self, names: Sequence[str]) -> None:
        """These columns are times, where the table does not say so; called before used()."""

    def is_untyped(self, name: str) -> bool:
        """Whether a column's type is a guess, because its values are written as texts."""
        return self.has_texts

    def used(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        """The types of Arrow of the columns that are used. ids: those that are ids. Raises ValueError if another column
        has the name of one of them."""
        for what, names in self._all_names:
            for name in columns:
                if names.count(name) > 1:
                    raise ValueError(f"{what}: two columns have the name {name!r}")
        return self.types(columns, ids)

    def types(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        """What used() returns."""
        raise NotImplementedError

    def count(self) -> Optional[int]:
        """The number of rows, if it is known without a pass over them."""
        return None

    def has_no_nulls(self, name: str) -> bool:
        """Whether a column is known to have no nulls, without a pass over its rows."""
        return False

    def has_values(self, name: str) -> bool:
        """False for a column of text without any value, whose type is a guess. Known after used()."""
        return True

    def odd(self, name: str) -> Optional[str]:
        """The place and the text of the first value that made a column text, for errors: the values before it have
        another type. Known after used()."""
        return None

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        """The rows of the columns in `types`, which used() returned: (place of a row, batch)."""
        raise NotImplementedError

    def read(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        """The batches; one without rows, if the table has no rows."""
        pa, any_rows = arrow(), False
        for where, batch in self.batches(types):
            any_rows = True
            yield where, batch
        if not any_rows:
            arrays = [pa.nulls(0, kind) for kind in types.values()]  # pa.array() lacks some types
            yield self._at(self.what, 0), pa.RecordBatch.from_arrays(arrays, names=list(types))

    def _at(self, what: str, first: int) -> Where:
        return lambda row: f"{what}, row {first + row}"


class _Arrow(Table):
    """A table in memory, or a stream of batches. make: makes a reader of all rows; once only, if the source is one."""

    def __init__(self, what: str, schema: Any, make: Callable[[], Any], once: bool = False,
                 count: Optional[int] = None):
        super().__init__(what, schema.names)
        self._schema, self._make, self._once, self._read, self._count = schema, make, once, False, count

    def count(self) -> Optional[int]:
        return self._count

    def types(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        return {name: self._schema.field(name).type for name in columns}

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        if self._once and self._read:
            raise ValueError(f"{self.what}: the stream has been read: pass a table, or a new stream")
        self._read, first = True, 0
        for whole in self._make():
            for batch in _pieces(whole, types):
                yield self._at(self.what, first), batch
                first += batch.num_rows


class _Pandas(Table):
    """A frame of pandas, converted a batch at a time. A missing value and NaN are the same there."""

    def __init__(self, what: str, frame: Any):
        super().__init__(what, frame.columns)
        self._frame = frame if self.names == list(frame.columns) else frame.set_axis(self.names, axis="columns")

    def _converted(self, frame: Any, columns: Sequence[str], kinds: Optional[Mapping[str, Any]] = None) -> Any:
        pa = arrow()
        arrays = []
        for name in columns:
            with converting(f"{self.what}: column {name}"):
                arrays.append(pa.Array.from_pandas(frame[name], type=kinds[name] if kinds else None))
        plain = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in arrays]
        return pa.RecordBatch.from_arrays(plain, names=list(columns))

    def count(self) -> Optional[int]:
        return len(self._frame)

    def types(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        pa, pandas = arrow(), sys.modules["pandas"]
        found = {}
        for name in columns:
            objects = self._frame[name].dtype == object
            if objects and pandas.api.types.infer_dtype(self._frame[name]) == "string":
                found[name] = pa.string()
            else:
                piece = self._frame if objects else self._frame[:1]
                found[name] = self._converted(piece, [name]).schema.field(name).type
                if objects:
                    _refuse_cut(found[name], self._frame[name], f"{self.what}: column {name}")
        return found

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        objects = {name for name in types if self._frame[name].dtype == object}
        for first in range(0, len(self._frame), BATCH_ROWS):
            piece = self._frame.iloc[first:first + BATCH_ROWS]
            kinds = {name: kind if name in objects else None for name, kind in types.items()}
            for batch in _pieces(self._converted(piece, list(types), kinds), types):
                yield self._at(self.what, first), batch
                first += batch.num_rows


class _Files(Table):
    """Files of one kind, one after the other. The columns are those of the first; the others must have them too."""

    def __init__(self, what: str, paths: Sequence[Path], folders: folder_columns.Folders):
        self.paths, self.folders = paths, folders
        columns = [folders.with_names(path, self._columns(path)) for path in paths]
        super().__init__(what, columns[0])
        self._all_names = list(zip(paths, columns))
        for path, names in zip(paths[1:], columns[1:]):
            missing = set(self.names) - set(names)
            if missing:
                raise ValueError(f"{path}: no column {min(missing)!r}, which {paths[0].name} has")

    def _columns(self, path: Path) -> list[str]:
        """The columns in a file."""
        raise NotImplementedError

    def read_times(self, names: Sequence[str]) -> None:
        self.folders.read_times(names)

    def is_untyped(self, name: str) -> bool:
        return self.has_texts or name in self.folders.types

    def _in_files(self, columns: Iterable[str]) -> list[str]:
        return [name for name in columns if name not in self.folders.types]

    def _read_columns(self, columns: Iterable[str]) -> list[str]:
        """Those of the files that are read: at least one, which says how many rows there are."""
        return self._in_files(columns) or self._in_files(self.names)[:1]


def _ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches, each of which is decoded while the caller works on the one before."""
    thread, decode = Workers(1), partial(next, batches, None)
    coming = thread.submit(decode)
    try:
        while (batch := coming.wait()) is not None:
            coming = thread.submit(decode)
            yield batch
    finally:
        coming.join()


class _Parquet(_Files):
    def _file(self, path: Path) -> Any:
        import pyarrow.parquet

        with reading(str(path)):
            return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_BYTES,  # no whole row groups
                                               page_checksum_verification=True)

    def _columns(self, path: Path) -> list[str]:
        with reading(str(path)):
            return list(self._file(path).schema_arrow.names)

    def types(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        with reading(str(self.paths[0])):
            schema = self._file(self.paths[0]).schema_arrow
            return {name: self.folders.types[name] if name in self.folders.types else schema.field(name).type
                    for name in columns}

    def count(self) -> Optional[int]:
        with reading(self.what):
            return sum(self._file(path).metadata.num_rows for path in self.paths)

    def has_no_nulls(self, name: str) -> bool:
        return name not in self.folders.types and all(self._counts_no_nulls(path, name) for path in self.paths)

    def _counts_no_nulls(self, path: Path, name: str) -> bool:
        """Whether the statistics of all row groups of a file say that a column has no nulls."""
        with reading(str(path)):
            whole = self._file(path).metadata
            place = next((at for at in range(whole.num_columns) if whole.schema.column(at).path == name), None)
            if place is None:  # a nested column
                return False
            groups = (whole.row_group(group).column(place).statistics for group in range(whole.num_row_groups))
            return all(one is not None and one.has_null_count and one.null_count == 0 for one in groups)

    def _checked(self, path: Path, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches. A damaged page may decode to texts that are no UTF-8, or to places outside of the data."""
        while True:
            with reading(str(path)):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
            yield batch

    def _batch_rows(self, path: Path, names: Sequence[str]) -> int:
        """The rows of a batch of these columns. The first rows have the width of values that the file has once, in
        dictionaries; the sizes in the file count later values, which may be wider."""
        with reading(str(path)):
            file = self._file(path)
            schema, whole = file.schema_arrow, file.metadata
            paths = [whole.schema.column(at).path for at in range(whole.num_columns)]
            places = [at for at, one in enumerate(paths) if one in names or one.partition(".")[0] in names]
            groups = [whole.row_group(at) for at in range(whole.num_row_groups)]
            stored = max((sum(group.column(at).total_uncompressed_size for at in places) / group.num_rows
                          for group in groups if group.num_rows), default=0)
            if all(arrow().types.is_primitive(schema.field(name).type) for name in names):
                return _rows_within(max(stored, sum(schema.field(name).type.bit_width for name in names) / 8))
            first = next(self._checked(path, file.iter_batches(_FIRST_ROWS, columns=names)), None)
            return _rows_within(max(stored, 0 if first is None else sum(map(_width, first.columns))))

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        for path in self.paths:
            first, file, names = 0, self._file(path), self._read_columns(types)
            for name in self._in_files(types):
                found = file.schema_arrow.field(name).type
                if found != types[name]:
                    raise TypeError(f"{path}: column {name} is {found}, but {types[name]} in {self.paths[0].name}")
            rows = self._batch_rows(path, names)
            for batch in _ahead(self._checked(path, file.iter_batches(rows, columns=names))):
                yield self._at(str(path), first), self.folders.add(path, batch, types)
                first += batch.num_rows


class _Csv(_Files):
    """Text. Its columns have the names of the header, or the numbers 1, 2, … A file without a header, among others with
    one, has their columns by their places. words: options of the program."""

    has_texts = True

    def __init__(self, what: str, paths: Sequence[Path], words: Sequence[str], folders: folder_columns.Folders):
        texts = [text for text in text_files.examined(paths, words) if text.names]  # one without rows has none
        paths = [text.path for text in texts]
        if not texts:
            raise ValueError(f"{what}: no rows")
        named = next((text for text in texts if text.header), texts[0])
        for place, text in enumerate(texts):
            if not text.header and named.header:
                if len(text.names) != len(named.names):
                    raise ValueError(f"{text.path}: {len(text.names)} columns without a header, and {named.path.name} "
                                     f"has {len(named.names)}")
                texts[place] = text._replace(names=named.names)
        self._texts = dict(zip(paths, texts))
        self._uses: dict[str, str] = {}  # {column of ids: how the program reads it}
        self._may_miss: set[str] = set()  # columns of ids
        self._odd: dict[str, str] = {}
        self._valued: set[str] = set()  # columns of values that have some
        self._count: Optional[int] = None  # of rows, after a pass over them
        super().__init__(what, paths, folders)
        places = list(texts[0].texts)
        if len(places) == 2 and max(places) < len(self.names):
            self.ends = self.names[places[0]], self.names[places[1]]

    def _columns(self, path: Path) -> list[str]:
        return self._texts[path].names

    def _kind_of_ids(self, name: str) -> str:
        """number, signed or text. Ends of edges are text if a word is among their first rows, as in import; the program
        refuses a later word."""
        kinds = set()
        for text in self._texts.values():
            place = text.names.index(name)
            kinds.add({True: "text", False: "number"}[text.texts[place]] if place in text.texts
                      else text_files.kind_of_ids(text, place))
        return next(kind for kind in ("text", "signed", "number") if kind in kinds)

    def _batches(self, kinds: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        pa = arrow()
        from pyarrow import csv

        names = self._read_columns(kinds)
        kinds = {**dict.fromkeys(names, pa.string()), **kinds}
        numbered = {f"c{place}": name for place, name in enumerate(names)}
        convert = csv.ConvertOptions(column_types={column: kinds[name] for column, name in numbered.items()},
                                     strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False)
        any_length = any(kinds[name] == pa.string() and name not in self._uses for name in names)
        block = _CSV_BLOCK if any_length else _BATCH_BYTES
        for path in self.paths:
            text, first = self._texts[path], 0
            columns = [(self._use(name, kinds[name]), text.names.index(name)) for name in names]
            with text_files.rows(text, columns) as stream:
                with reading(str(path)):
                    reader = csv.open_csv(stream, csv.ReadOptions(block_size=block), csv.ParseOptions(
                        newlines_in_values=True, ignore_empty_lines=False), convert)
                while True:
                    with reading(f"{path}, after row {first}"):
                        batch = next(reader, None)
                    if batch is None:
                        break
                    batch = pa.RecordBatch.from_arrays(batch.columns, names=names)
                    yield self._at(str(path), first), self.folders.add(path, batch, kinds)
                    first += batch.num_rows

    def _use(self, name: str, kind: Any) -> str:
        """How the program reads a column: an option of it."""
        if name not in self._uses:
            return "column"
        use = "text" if kind == arrow().string() else self._uses[name]
        return f"{use}-{'key' if name in self._may_miss else 'id'}"

    def types(self, columns: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
        pa = arrow()
        found = {name: self._kind_of_ids(name) for name in self._in_files(ids)}
        self._uses = dict(found)
        kinds_of_values = [pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us")]
        possible = {name: kinds_of_values for name in self._in_files(columns) if name not in ids}
        faults: dict[str, str] = {}
        count = 0
        for where, batch in self._batches(dict.fromkeys(possible, pa.string())) if possible else ():
            count += batch.num_rows
            for name, kinds in possible.items():
                values = batch.column(name)
                possible[name] = [kind for kind in kinds if _casts(values, kind)]
                if values.null_count < len(values):
                    self._valued.add(name)
                if kinds and not possible[name]:
                    row = _first_odd(values, kinds)
                    if kinds != kinds_of_values or values[:row].null_count < row:
                        self._odd[name] = f"{where(row)}: column {name} is {values[row].as_py()!r}"
                if name not in faults and pa.float64() in possible[name]:
                    faults.update(text_faults(batch.column(name), pa.int64() in possible[name], name, where))
        self._count = count if possible else None
        for name, fault in faults.items():
            if possible[name] and possible[name][0] == pa.float64():
                raise ValueError(fault)
        types = {name: kinds[0] if kinds else pa.string() for name, kinds in possible.items()}
        types.update({name: pa.string() if kind == "text" else pa.int64() for name, kind in found.items()})
        types.update(self.folders.types)
        return {name: types[name] for name in columns}

    def count(self) -> Optional[int]:
        return self._count

    def has_values(self, name: str) -> bool:
        return name in self._valued or name in self._uses or name in self.folders.types

    def odd(self, name: str) -> Optional[str]:
        return self._odd.get(name)

    def allow_negative(self, name: str) -> None:
        if self._uses.get(name) == "number":
            self._uses[name] = "signed"

    def allow_missing(self, names: Sequence[str]) -> None:
        self._may_miss.update(names)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Where, Any]]:
        return self._batches(types)


def _casts(values: Any, kind: Any) -> bool:
    """Whether all values are of the kind. Arrow reads 0x10 as an integer, which is a word to the program."""
    pa = arrow()
    try:
        values.cast(kind)
    except pa.ArrowInvalid:
        return False
    return kind != pa.int64() or not pa.compute.any(pa.compute.match_substring(values, "x", ignore_case=True)).as_py()


def _first_odd(values: Any, kinds: Sequence[Any]) -> int:
    """The row whose value has none of the kinds that all values before it have. One exists."""
    begin, end = 0, len(values)  # values[:begin] have a kind, values[:end] have not
    while end - begin > 1:
        middle = (begin + end) // 2
        if any(_casts(values[:middle], kind) for kind in kinds):
            begin = middle
        else:
            end = middle
    return begin


def _kind(path: Path) -> str:
    ends = [end for end in path.suffixes[-2:] if end != ".gz"]
    kind = _KINDS.get(ends[-1].lower()) if ends else None
    if kind is None or (kind == "parquet" and path.suffix == ".gz"):
        raise ValueError(f"{path}: neither .csv, .tsv, .csv.gz nor .parquet")
    return kind


def _files(paths: Sequence[Path], what: str, words: Sequence[str]) -> Table:
    folders = folder_columns.Folders()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        folders.take(path)
    folders.settle(what)
    found = list(folders.files)
    kinds = {_kind(path) for path in found}
    if len(kinds) != 1:
        raise ValueError(f"{what}: files of several kinds: {', '.join(sorted(kinds))}")
    what = what if len(found) > 1 else str(found[0])
    return _Csv(what, found, words, folders) if kinds == {"csv"} else _Parquet(what, found, folders)


def _refuse_cut(kind: Any, values: Any, what: str) -> None:
    """Raises TypeError for timestamps among objects that Arrow takes for dates, because it would cut them."""
    if arrow().types.is_date32(kind) and any(isinstance(one, datetime.datetime) for one in values):
        raise TypeError(f"{what}: dates, and timestamps among them: give all values one type")


def source_files(table: Table) -> Mapping[Path, folder_columns.Values]:
    """{file: the columns of its folders} of a table of files; empty for one in memory."""
    return table.folders.files if isinstance(table, _Files) else {}


def _is_path(table: Any) -> bool:
    return isinstance(table, (str, os.PathLike))


def _column(values: Any) -> Any:
    """A column of a dictionary as Arrow takes it: tensors as arrays, and arrays of two dimensions as lists of one
    length."""
    values = host(values) if hasattr(values, "detach") else values
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return arrow().FixedSizeListArray.from_arrays(np.ascontiguousarray(values).reshape(-1), values.shape[1])
    return values


def opened(table: Any, what: str, words: Sequence[str] = ()) -> Table:
    """The table. what: names it in errors. words: for files of text, the options of `graphwire import columns`. Raises
    TypeError for what is no table."""
    pa = arrow()
    if _is_path(table):
        return _files([Path(table)], what, words)
    if isinstance(table, (list, tuple)) and table and all(map(_is_path, table)):
        return _files([Path(one) for one in table], what, words)
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        return _Pandas(what, table)
    if isinstance(table, pa.RecordBatchReader):
        return _Arrow(what, table.schema, lambda: table, once=True)
    if isinstance(table, Mapping) and table and all(isinstance(name, str) for name in table):
        columns = {}
        for name, values in table.items():
            with converting(f"{what}: column {name}"):
                columns[name] = pa.table({name: _column(values)}).column(0)
                if isinstance(values, (list, tuple)):
                    _refuse_cut(columns[name].type, values, f"{what}: column {name}")
        with converting(what):
            table = pa.table(columns)
    if hasattr(table, "__arrow_c_array__") and not hasattr(table, "__arrow_c_stream__"):
        table = pa.table(pa.record_batch(table))
    if isinstance(table, pa.Table):
        return _Arrow(what, table.schema, lambda: table.to_batches(BATCH_ROWS), count=table.num_rows)
    if hasattr(table, "__arrow_c_stream__"):
        with converting(what):
            schema = pa.RecordBatchReader.from_stream(table).schema
        return _Arrow(what, schema, lambda: pa.RecordBatchReader.from_stream(table))
    raise TypeError(f"{what}: a table is one of pandas, polars or Arrow, a dictionary of columns, or a path of CSV or "
                    f"Parquet, not {type(table).__name__}")
