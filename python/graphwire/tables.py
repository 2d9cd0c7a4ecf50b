"""Graphs of tables: of pandas, polars, Arrow, CSV and Parquet.

    tables = graphwire.from_tables({("user", "rates", "film"): "ratings.parquet"}, {"user": users, "film": "films.csv"},
                                   features={"film": {"feat": ["year", "length"]}}, time="when")
    graphwire.partition_graph(tables, "films", 4, "parts/")

    from_tables: columns checked ─▶ partition_graph: types of ids decided ─▶ node tables, a batch at a time: ids numbered,
    rows to .npy ─▶ edges: ids looked up or numbered ─▶ `graphwire import` reads the files

Memory holds a batch and, for each numbered id, the numbering of python/numbering.h. The files are beside the result.

Errors: ValueError and TypeError, which name the argument, or the table, the column and the row; ModuleNotFoundError
without pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from graphwire import _columns, _names, _npy
from graphwire._columns import arrow
from graphwire._graphs import HOMOGENEOUS, Canonical
from graphwire._keywords import keywords, suggestion
from graphwire._numbering import Ids, Numbering, Texts, numbers
from graphwire._tables import Table, opened

Key = Union[str, Canonical]  # a node type or an edge type
Columns = dict[str, list[str]]  # {feature: columns that are joined}
_BLOCK = 1 << 20
_IDS = ("id", "nodeid", "nodeids", "ids")


# --- Arguments. ---

def _label(key: Key) -> str:
    return key if isinstance(key, str) else ":".join(key)


def _is_etype(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 3 and all(isinstance(word, str) for word in key)


def _opened(use: str, tables: Any, only: Key) -> dict[Any, Table]:
    """{type: table} of {type: table}, or of one table, which has the type `only`."""
    by_type = isinstance(tables, Mapping) and (not tables or not all(isinstance(one, str) for one in tables) or
                                               (use == "nodes" and not any(map(_is_column, tables.values()))))
    given = dict(tables) if by_type else {only: tables}
    for key in given:
        if not (_is_etype(key) if use == "edges" else isinstance(key, str)):
            raise TypeError(f"{use}: a type is {'(source, relation, destination)' if use == 'edges' else 'a name'}, "
                            f"not {key!r}")
    if not given and use == "edges":
        raise ValueError("edges: no tables")
    return {key: opened(table, f"{use} of {_label(key)}" if by_type else use) for key, table in given.items()}


def _is_column(value: Any) -> bool:
    """Whether a value of a dictionary is a column rather than a table."""
    return getattr(value, "ndim", None) == 1 or (isinstance(value, list) and not all(
        isinstance(one, str) and one.endswith((".csv", ".parquet")) for one in value)) or type(
            value).__name__ in ("Array", "ChunkedArray")


def _by_type(use: str, given: Any, tables: Mapping[Any, Table]) -> tuple[dict[Any, Any], bool]:
    """({type: what is given for it}, whether the types were named). What has no types is given for every table."""
    if given is None:
        return {}, True
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in tables]
        if not unknown:
            return dict(given), True
        if len(unknown) < len(given) or _is_etype(unknown[0]):
            known = {_label(key): None for key in tables}
            raise ValueError(f"{use}: no table has the type {_label(unknown[0])!r}"
                             + suggestion(_label(unknown[0]), known).replace("its arguments", "the types"))
    return dict.fromkeys(tables, given), False


def _joined(use: str, given: Any) -> Columns:
    """{feature: its columns} of a column, a list of columns, or {feature: a column, or a list}."""
    if isinstance(given, str):
        return {given: [given]}
    if isinstance(given, Mapping):
        made = {name: [of] if isinstance(of, str) else list(of) for name, of in given.items()}
    elif isinstance(given, Sequence):
        made = {name: [name] for name in given}
    else:
        raise TypeError(f"{use}: columns are a name, a list of names, or {{feature: names}}, not {given!r}")
    for name, columns in made.items():
        if not isinstance(name, str) or not columns or not all(isinstance(one, str) for one in columns):
            raise TypeError(f"{use}: columns are names, not {name!r}: {columns!r}")
    return made


def _selected(use: str, given: Any, tables: Mapping[Any, Table]) -> dict[Any, Columns]:
    """{type: {feature: its columns}}. Without types, a feature belongs to each table that has its columns."""
    by_type, named = _by_type(use, given, tables)
    if named:
        return {key: {name: [tables[key].column(one, use) for one in columns]
                      for name, columns in _joined(use, of).items()} for key, of in by_type.items()}
    found: dict[Any, Columns] = {}
    for name, columns in _joined(use, given).items():
        owners = [key for key, table in tables.items() if set(columns) <= set(table.names)]
        if not owners:
            nearest = max(tables.values(), key=lambda table: sum(one in table.names for one in columns), default=None)
            if nearest is None:
                raise ValueError(f"{use}: there are no tables for column {columns[0]!r}")
            if len(tables) > 1 and not any(one in nearest.names for one in columns):
                known = dict.fromkeys(one for table in tables.values() for one in table.names)
                raise ValueError(f"{use}: no table has a column {columns[0]!r}"
                                 + suggestion(columns[0], known).replace("its arguments", "the columns"))
            for one in columns:
                nearest.column(one, use)
        for key in owners:
            found.setdefault(key, {})[name] = columns
    return found


def _one_column(use: str, given: Any, tables: Mapping[Any, Table]) -> dict[Any, str]:
    """{type: a column} of a name, which every table must have, or of {type: a name}."""
    return {key: tables[key].column(name, use) for key, name in _by_type(use, given, tables)[0].items()}


def _id_column(ntype: str, table: Table) -> str:
    """The column of ids by its name: id, node_id, or the type's name. Raises ValueError."""
    known = [(name, _names._Name(name)) for name in table.names]
    found = [name for name, one in known if one.whole in _IDS or one.is_type(ntype)]
    if len(found) != 1:
        raise ValueError(f"{table.what}: {'no column is' if not found else 'several columns are'} named as ids: pass "
                         f"id=…, one of {', '.join(table.names)}")
    return found[0]


def _end_columns(etype: Canonical, table: Table, src: Optional[str], dst: Optional[str]) -> tuple[str, str]:
    """The columns of sources and destinations: as given, or by their names. Raises ValueError."""
    if src is None or dst is None:
        places = _names.ends(table.names, etype[0], etype[2]) or ((0, 1) if len(table.names) == 2 else None)
        if places is None:
            raise ValueError(f"{table.what}: no columns have known names of ends, such as src and dst: pass src=… and "
                             f"dst=…, two of {', '.join(table.names)}")
        src, dst = src or table.names[places[0]], dst or table.names[places[1]]
    if src == dst:
        raise ValueError(f"{table.what}: column {src} has both the sources and the destinations: pass src=… and dst=…")
    return src, dst


# --- Rows to files. ---

class _Categories:
    """A column of categories as numbers: those of its values in their order."""

    def __init__(self, rows: _npy.Rows):
        self._rows, self._numbering = rows, Numbering()

    def append(self, values: Ids) -> None:
        self._rows.append(numbers((self._numbering, values, True))[:, 0])

    def close(self, stem: Path) -> Path:
        """Numbers the values by their order, and writes them as texts, to files that begin with `stem`. Returns the path
        of the texts."""
        self._rows.close()
        values = self._numbering.values()
        order = sorted(range(len(values)), key=values.__getitem__)
        places = np.empty(len(values), np.int64)
        places[order] = np.arange(len(values))
        if self._rows.count:
            codes = np.load(self._rows.path, mmap_mode="r+")
            for begin in range(0, len(codes), 1 << 20):
                codes[begin:begin + (1 << 20)] = places[codes[begin:begin + (1 << 20)]]
            codes.flush()
        texts = [values[i] if isinstance(values[i], bytes) else str(values[i]).encode() for i in order]
        written = _npy.TextFiles(stem)
        written.append(np.cumsum([0, *map(len, texts)]), np.frombuffer(b"".join(texts), np.uint8))
        written.close()
        return written.path


class _Feature:
    """One feature of a type: where its rows come from. role: features, labels, masks, text, categories or time."""

    def __init__(self, role: str, name: str, columns: list[str]):
        self.role, self.name, self.columns = role, name, columns


class _Writer:
    """The files of one type in a folder, which grow a batch at a time. files: shared by all types."""

    def __init__(self, files: _Files, key: Key, features: Sequence[_Feature], types: Mapping[str, Any]):
        self._files, self._key, self._features, self._types = files, key, features, types
        self._rows: dict[str, _npy.Rows] = {}
        self._categories: dict[str, _Categories] = {}
        self._texts: dict[str, _npy.TextFiles] = {}

    def _append(self, name: str, rows: np.ndarray) -> None:
        if name not in self._rows:
            self._rows[name] = _npy.Rows(self._files.path(".npy"))
        self._rows[name].append(rows)

    def _append_category(self, name: str, values: Ids) -> None:
        if name not in self._categories:
            self._categories[name] = _Categories(_npy.Rows(self._files.path(".npy")))
        self._categories[name].append(values)

    def _append_text(self, name: str, texts: Texts) -> None:
        if name not in self._texts:
            self._texts[name] = _npy.TextFiles(self._files.path(""))
        self._texts[name].append(texts.offsets, texts.data)

    def take(self, where: _columns.Where, batch: Any) -> None:
        """Appends the rows of a batch."""
        for one in self._features:
            column, name = batch.column(one.columns[0]), one.columns[0]
            text = _columns.is_text(self._types[name])
            if one.role == "text":
                self._append_text(one.name, _columns.texts(column, name, where))
            elif one.role == "categories" or (one.role == "labels" and text):
                self._append_category(one.name, _columns.ids(column, name, where))
            elif one.role == "masks":
                masks = _columns.masks(column, name, where)
                for mask, rows in masks.items():
                    self._append(one.name if len(masks) == 1 else mask, rows)
            elif one.role == "time":
                self._append(one.name, _columns.times(column, name, where))
            else:
                self._append(one.name, self._numbers(one, where, batch))

    def _numbers(self, one: _Feature, where: _columns.Where, batch: Any) -> np.ndarray:
        parts = [_columns.rows(batch.column(name), name, where) for name in one.columns]
        if len(parts) > 1:
            return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
        rows = parts[0]
        return rows.astype(np.int64) if one.role == "labels" and rows.dtype.kind in "iub" else rows

    def close(self) -> None:
        """Ends the files, and adds them to the words of `graphwire import`."""
        of, node = _label(self._key), isinstance(self._key, str)
        for name, categories in self._categories.items():
            self._rows[name] = categories._rows
            if node:
                names = categories.close(self._files.path(""))
                self._files.add("--node-feature", f"{of}:{name}.names", names, f"names of {name} of {of}")
            else:
                categories.close(self._files.path(""))
        for name, rows in self._rows.items():
            if name not in self._categories:
                rows.close()
            self._add(name, rows, of, node)
        for name, texts in self._texts.items():
            texts.close()
            self._files.add("--node-feature", f"{of}:{name}", texts.path, f"text {name} of {of}")

    def _add(self, name: str, rows: _npy.Rows, of: str, node: bool) -> None:
        mask = rows.kind is not None and rows.kind[0] == np.bool_ and not rows.kind[1]
        if any(one.role == "time" and one.name == name for one in self._features):
            self._files.add("--edge-time", of, rows.path, f"times of {of}")
        elif node:
            self._files.add("--node-mask" if mask else "--node-feature", f"{of}:{name}", rows.path,
                            f"node feature {name} of {of}")
        else:
            self._files.add("--edge-feature", f"{of}:{name}", rows.path, f"edge feature {name} of {of}")


class _Files:
    """The files in a folder, the words of `graphwire import` about them, and {file: what it holds} for errors."""

    def __init__(self, folder: Path):
        self._folder, self._count = folder, 0
        self.words: list[str] = []
        self.names: dict[str, str] = {}

    def path(self, end: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}{end}"

    def add(self, option: str, of: str, path: Path, what: str) -> None:
        self.words += [option, f"{of}={path}"]
        self.names[str(path)] = what


def _is_odd(ids: Ids) -> bool:
    """Whether one of the integer ids is none that `graphwire import` takes."""
    assert not isinstance(ids, Texts)
    return len(ids) > 0 and (int(ids.min()) < 0 or int(ids.max()) == 2**63 - 1)


def _value(ids: Ids, row: int) -> Any:
    """One id, for errors."""
    if isinstance(ids, Texts):
        return ids.data[ids.offsets[row]:ids.offsets[row + 1]].tobytes().decode("utf-8", "replace")
    return int(ids[row])


class Tables:
    """Tables of a graph, which partition_graph reads: the result of from_tables."""

    def __init__(self, edges: dict[Canonical, Table], nodes: dict[str, Table], ends: dict[Canonical, tuple[str, str]],
                 ids: dict[str, str], features: dict[Key, list[_Feature]]):
        self._edges, self._nodes, self._ends, self._ids, self._features = edges, nodes, ends, ids, features

    def __repr__(self) -> str:
        return (f"<graphwire.Tables: edges {', '.join(map(_label, self._edges))}"
                f"{'; nodes ' if self._nodes else ''}{', '.join(self._nodes)}>")

    def _id_columns(self, key: Key) -> list[tuple[str, str]]:
        """(node type, column) of the ids in a table."""
        if isinstance(key, str):
            return [(key, self._ids[key])]
        return [(key[0], self._ends[key][0]), (key[2], self._ends[key][1])]

    def _types(self) -> tuple[dict[Key, dict[str, Any]], dict[str, bool]]:
        """({type: {column: its type of Arrow}}, {node type: whether its ids are text}). In CSV, ids that are numbers
        count as text if other ids of the type are text. Raises TypeError for other tables."""
        pa = arrow()
        tables: dict[Key, Table] = {**self._nodes, **self._edges}
        types: dict[Key, dict[str, Any]] = {}
        texts: dict[str, bool] = {}
        for key, table in tables.items():
            ids = [column for _, column in self._id_columns(key)]
            wanted = dict.fromkeys([*ids, *(name for one in self._features.get(key, []) for name in one.columns)])
            types[key] = table.types(list(wanted), ids)
            for ntype, column in self._id_columns(key):
                texts[ntype] = texts.get(ntype, False) or _columns.is_text(types[key][column])
        for key, table in tables.items():
            for ntype, column in self._id_columns(key):
                if texts[ntype] and not _columns.is_text(types[key][column]):
                    if not table.has_texts:
                        raise TypeError(f"{table.what}: column {column}: ids of {ntype} are {types[key][column]} here and "
                                        "text elsewhere")
                    types[key][column] = pa.string()
        return types, texts

    def write(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Writes the graph to files in the folder. Returns the arguments of `graphwire import`, and {file: what it
        holds} for errors."""
        files, (types, texts) = _Files(folder), self._types()
        numberings = {ntype: Numbering() for ntype, text in texts.items() if text or ntype in self._nodes}
        for ntype in self._nodes:
            self._write_nodes(files, ntype, types[ntype], numberings[ntype])
        odd: dict[str, None] = {}
        written = {etype: self._write_edges(files, etype, types[etype], numberings, odd) for etype in self._edges}
        self._renumber(written, numberings, odd)
        for etype, rows in written.items():
            files.add("--edges", _label(etype), _settled(rows, files), f"edges of {_label(etype)}")
        for ntype, numbering in numberings.items():
            numbering.close()
            path = numbering.write(files.path(""))
            files.add("--node-feature", f"{ntype}:orig_id", path, f"ids of {ntype}")
            files.words += ["--num-nodes", f"{ntype}={len(numbering)}"]
        arrow().default_memory_pool().release_unused()
        return files.words, files.names

    def _write_nodes(self, files: _Files, ntype: str, types: Mapping[str, Any], numbering: Numbering) -> None:
        column, table = self._ids[ntype], self._nodes[ntype]
        writer = _Writer(files, ntype, self._features.get(ntype, []), types)
        for where, batch in table.batches(types):
            ids, first = _columns.ids(batch.column(column), column, where), len(numbering)
            wrong = numbers((numbering, ids, True))[:, 0] != np.arange(first, first + len(ids))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"{where(row)}: column {column}: {_value(ids, row)!r} is the id of an earlier row too")
            writer.take(where, batch)
        writer.close()

    def _write_edges(self, files: _Files, etype: Canonical, types: Mapping[str, Any],
                     numberings: Mapping[str, Numbering], odd: dict[str, None]) -> _npy.Rows:
        """Writes edges, int64 [edges, 2]: numbers, and integers of types without a numbering. odd: gets those of these
        types that have an id which `graphwire import` does not take, a negative one."""
        columns, ntypes = self._ends[etype], (etype[0], etype[2])
        writer, rows = _Writer(files, etype, self._features.get(etype, []), types), _npy.Rows(files.path(".npy"))
        for where, batch in self._edges[etype].batches(types):
            pair = [_columns.ids(batch.column(column), column, where) for column in columns]
            places = [end for end in (0, 1) if ntypes[end] in numberings]
            found = numbers(*((numberings[ntypes[end]], pair[end], ntypes[end] not in self._nodes)
                              for end in places)) if places else None
            for end in places:
                assert found is not None
                missing = found[:, places.index(end)] < 0
                if missing.any():
                    row = int(np.argmax(missing))
                    raise ValueError(f"{where(row)}: column {columns[end]} is {_value(pair[end], row)!r}, which no row "
                                     f"of {self._nodes[ntypes[end]].what} has as its id")
            if len(places) < 2:
                ends = [found[:, 0] if end in places and found is not None else pair[end] for end in (0, 1)]
                odd.update({ntypes[end]: None for end in (0, 1) if end not in places and _is_odd(pair[end])})
                found = np.stack(ends, 1)
            rows.append(found)
            writer.take(where, batch)
        rows.close()
        writer.close()
        return rows

    def _renumber(self, written: Mapping[Canonical, _npy.Rows], numberings: dict[str, Numbering],
                  odd: Iterable[str]) -> None:
        """Numbers the integer ids of the types `odd`, one of whose ids `graphwire import` does not take."""
        numberings.update({ntype: Numbering() for ntype in odd})
        for etype, rows in written.items():
            places = [end for end in (0, 1) if etype[2 * end] in odd]
            edges = np.load(rows.path, mmap_mode="r+") if places and rows.count else np.empty((0, 2), np.int64)
            for begin in range(0, len(edges), _BLOCK):
                block = edges[begin:begin + _BLOCK]
                block[:, places] = numbers(*((numberings[etype[2 * end]], block[:, end], True) for end in places))


def _settled(rows: _npy.Rows, files: _Files) -> Path:
    """The file of edges. Two edges become two arrays, because [2, 2] could be rows or columns."""
    if rows.count != 2:
        return rows.path
    pairs, path = np.load(rows.path), files.path(".npz")
    np.savez(path, src=pairs[:, 0], dst=pairs[:, 1])
    return path


@keywords
def from_tables(edges: Any, nodes: Any = None, *, id: Any = None, src: Any = None, dst: Any = None, features: Any = None,
                labels: Any = None, masks: Any = None, time: Any = None, text: Any = None,
                categories: Any = None) -> Tables:
    """A graph of tables, which partition_graph takes.

    edges: {(source type, relation, destination type): table}, or one table.
    nodes: {node type: table}, or one table. A type may lack a table; its nodes are then the ends of its edges.

    A table is a frame of pandas or polars, a table or stream of Arrow, {name: column}, or a path: of CSV with a header
    (.csv, .tsv, .csv.gz), of Parquet, or of a folder of such files as Spark writes them. A list of paths is one table.

    id: the column of ids of the node tables, a name or {node type: name}; default: a column named id, node_id or as its
        type. src, dst: the columns of the ends of edges, a name or {edge type: name}; default: known names such as src
        and dst, or the only two columns.
    features: columns of numbers, or of lists of numbers of one length, in their own type: [column, …] or {feature:
        column, or columns that are joined}. labels: a column, which becomes the feature "label": integers become int64,
        text becomes categories. masks: columns of bools, 0 and 1; or of the words train, val, test, which become
        train_mask, val_mask and test_mask. text: columns of text, for nodes. categories: columns of text or integers,
        which become numbers in the order of the sorted values. Each is for all tables that have the columns, or {type: …}.
    time: a column of the edges, a name or {edge type: name}, which becomes the feature "time", int64; the edges of a node
        are sorted by it. Timestamps become microseconds since 1970.

    Ids are integers or text. Those of a node table are numbered in the order of its rows; text ids of a type without a
    table in the order of their first appearance. Both are kept as orig_id: graph.ids_of finds nodes by them. Other
    integers keep their value, unless most numbers are unused, as in partition_graph.

    The tables are read by partition_graph, a batch at a time; this call only checks the columns. A stream of Arrow can be
    read once. Missing values (null, NaN), an id of two rows and an edge whose end is no row of the node table are
    ValueErrors that name the table and the row, from 0.

    Raises ValueError for a column that does not exist, and suggests one; TypeError; FileNotFoundError;
    ModuleNotFoundError without pyarrow.
    """
    arrow()
    edge_tables: dict[Canonical, Table] = _opened("edges", edges, HOMOGENEOUS)
    node_tables: dict[str, Table] = {} if nodes is None else _opened("nodes", nodes, "_N")
    ends = dict.fromkeys(ntype for etype in edge_tables for ntype in (etype[0], etype[2]))
    for ntype in node_tables:
        if ntype not in ends:
            raise ValueError(f"nodes: no edges have the node type {ntype!r}"
                             + suggestion(ntype, ends).replace("its arguments", "their types"))
    ids = _one_column("id", id, node_tables)
    sources, destinations = _one_column("src", src, edge_tables), _one_column("dst", dst, edge_tables)
    both: dict[Key, Table] = {**node_tables, **edge_tables}
    found: dict[Key, list[_Feature]] = {}
    for role, given, tables in (("features", features, both), ("labels", labels, both), ("masks", masks, both),
                                ("text", text, node_tables), ("categories", categories, both),
                                ("time", time, edge_tables)):
        for key, columns in _selected(role, given, tables).items():
            found.setdefault(key, []).extend(_features(role, columns))
    for key, chosen in found.items():
        names = [one.name for one in chosen]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"{both[key].what}: two features have the name {repeated!r}")
    return Tables(edge_tables, node_tables,
                  {etype: _end_columns(etype, table, sources.get(etype), destinations.get(etype))
                   for etype, table in edge_tables.items()},
                  {ntype: ids.get(ntype) or _id_column(ntype, table) for ntype, table in node_tables.items()}, found)


def _features(role: str, columns: Columns) -> list[_Feature]:
    """The features of one type and role. Raises ValueError for joined columns that are no numbers, and for several
    labels or times."""
    if role in ("labels", "time") and len(columns) > 1:
        raise ValueError(f"{role}: one column, not {', '.join(columns)}")
    for name, of in columns.items():
        if role != "features" and len(of) > 1:
            raise ValueError(f"{role}: {name}: one column, not {', '.join(of)}")
    fixed = {"labels": "label", "time": "time"}.get(role)
    return [_Feature(role, fixed or name, of) for name, of in columns.items()]
