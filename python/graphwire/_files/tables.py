"""Graphs of tables: of pandas, polars, Arrow, CSV and Parquet.

    tables = graphwire.from_tables({("user", "rates", "film"): "ratings.parquet"}, {"user": users, "film": "films.csv"},
                                   features={"film": {"feat": ["year", "length"]}}, time="when")
    graphwire.partition_graph(tables, "films", 4, "parts/")

    from_tables: columns checked ─▶ partition_graph: types of ids decided ─▶ node tables, a batch at a time: ids
    numbered, rows to .npy ─▶ edges: ids looked up or numbered ─▶ `graphwire import` reads the files

Memory holds a batch and, for each numbered id, the numbering of python/numbering.h. The temporary files are made where
the result goes.

Errors: ValueError and TypeError, which name the argument, or the table, the column and the row; ModuleNotFoundError
without pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphwire._base import checks
from graphwire._base.keywords import keywords, suggestion
from graphwire._files import columns as _columns
from graphwire._files import npy
from graphwire._files.columns import arrow
from graphwire._files.graph_arrays import HOMOGENEOUS, Canonical
from graphwire._files.numbering import Ids, Texts, numbers
from graphwire._files.numberings import Numberings
from graphwire._files.table_arguments import (
    Feature,
    Key,
    TextOptions,
    end_columns,
    features_of,
    id_column,
    label,
    one_column,
    opened_tables,
    selected,
)
from graphwire._files.table_files import BLOCK, Files, Writer, settled
from graphwire._files.table_kinds import Table

_DENSE = 1024  # integers below it keep their values
_TYPED = ("features", "masks", "time")  # roles of columns of numbers or times; text among them is an error


class _Integers:
    """What is known of the integer ids of a type without a table: the least, the greatest, and how many there are."""

    def __init__(self) -> None:
        self.least, self.greatest, self.count = 0, -1, 0

    def take(self, ids: Ids) -> None:
        assert not isinstance(ids, Texts)
        if len(ids):
            self.least, self.greatest = min(self.least, int(ids.min())), max(self.greatest, int(ids.max()))
            self.count += len(ids)

    def are_numbered(self) -> bool:
        """Whether they cannot keep their values: one is negative, or they are sparse by the rule of `graphwire import`
        (tools/import/node_ids.c), which takes more memory for the same numbers."""
        return self.least < 0 or self.greatest == 2**63 - 1 or (
            self.greatest >= _DENSE and self.greatest // 2 > self.count)


def _value(ids: Ids, row: int) -> Any:
    """One id, for errors."""
    if isinstance(ids, Texts):
        return ids.data[ids.offsets[row]:ids.offsets[row + 1]].tobytes().decode("utf-8", "replace")
    return int(ids[row])


def _refuse_odd(table: Table, types: Mapping[str, Any], features: Sequence[Feature]) -> None:
    """Raises ValueError for a value that is text in a column of numbers or times."""
    for one in features:
        for name in one.columns if one.role in _TYPED else ():
            odd = table.odd(name)
            if odd and _columns.is_text(types[name]):
                advice = ": correct it, or declare the column in categories=[…]" if one.role == "features" else ""
                raise ValueError(f"{odd}, which has another type than the rows before{advice}")


@keywords
class Tables:
    """Tables of a graph, which partition_graph reads: the result of from_tables."""

    __module__ = "graphwire"

    def __init__(self, edges: dict[Canonical, Table], nodes: dict[str, Table], ends: dict[Canonical, tuple[str, str]],
                 ids: dict[str, str], features: dict[Key, list[Feature]]):
        self._edges, self._nodes, self._ends, self._ids, self._features = edges, nodes, ends, ids, features

    def __repr__(self) -> str:
        return (f"<graphwire.Tables: edges {', '.join(map(label, self._edges))}"
                f"{'; nodes ' if self._nodes else ''}{', '.join(self._nodes)}>")

    def _id_columns(self, key: Key) -> list[tuple[str, str]]:
        """(node type, column) of the ids in a table."""
        if isinstance(key, str):
            return [(key, self._ids[key])]
        return [(key[0], self._ends[key][0]), (key[2], self._ends[key][1])]

    def _tables(self) -> Iterator[tuple[Key, Table]]:
        yield from self._nodes.items()
        yield from self._edges.items()

    def _types(self) -> tuple[dict[Key, dict[str, Any]], dict[str, bool]]:
        """({type: {column: its type of Arrow}}, {node type: whether its ids are kept as text}). In CSV, ids that are
        numbers count as text if other ids of the type are text. Raises TypeError for ids of several kinds."""
        pa = arrow()
        tables: dict[Key, Table] = dict(self._tables())
        types: dict[Key, dict[str, Any]] = {}
        kinds: dict[str, str] = {}  # {node type: the kind of its ids}
        for key, table in tables.items():
            ids = [column for _, column in self._id_columns(key)]
            wanted = dict.fromkeys([*ids, *(name for one in self._features.get(key, []) for name in one.columns)])
            table.read_times([one.columns[0] for one in self._features.get(key, []) if one.role == "time"])
            types[key] = table.used(list(wanted), ids)
            _refuse_odd(table, types[key], self._features.get(key, []))
            for ntype, column in self._id_columns(key):
                kind = _columns.kind_of_ids(types[key][column])
                kinds[ntype] = kind if kinds.get(ntype, "integer") == "integer" else kinds[ntype]
        for key, table in tables.items():
            for ntype, column in self._id_columns(key):
                kind = _columns.kind_of_ids(types[key][column])
                if kind != kinds[ntype]:
                    if kinds[ntype] != "text" or not table.is_untyped(column):
                        raise TypeError(f"{table.what}: column {column}: ids of {ntype} are {types[key][column]} here "
                                        f"and {'times' if kinds[ntype] == 'time' else kinds[ntype]} elsewhere")
                    types[key][column] = pa.string()
                elif ntype in self._nodes:
                    table.allow_negative(column)
        return types, {ntype: kind != "integer" for ntype, kind in kinds.items()}

    def write(self, folder: Path, limit: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
        """Writes the graph to files in the folder. limit: the option of the program that limits memory. Returns the
        arguments of `graphwire import`, and {file: what it holds} for errors."""
        files, (types, texts) = Files(folder), self._types()
        numberings = Numberings(files, limit)
        numberings.add(ntype for ntype, text in texts.items() if text or ntype in self._nodes)
        for key, table in self._tables():
            for ntype, _ in self._id_columns(key):
                numberings.expect(ntype, table.count())
        integers = {ntype: _Integers() for ntype in texts if ntype not in numberings}
        written: dict[Canonical, npy.Rows] = {}
        with numberings.checked(lambda: self._settle(written, numberings)):
            for ntype in self._nodes:
                self._write_nodes(files, ntype, types[ntype], numberings)
            for etype in self._edges:
                written[etype] = npy.Rows(files.path(".npy"))
                self._write_edges(files, etype, types[etype], numberings, integers, written[etype])
            self._renumber(written, numberings, [ntype for ntype, ids in integers.items() if ids.are_numbered()])
        for etype, rows in written.items():
            rows.close(row=(2,))
            files.add("--edges", etype, settled(rows, files), f"edges of {label(etype)}")
        for ntype, numbering in numberings.items():
            numbering.close()
            path = numbering.write(files.path(""))
            files.add("--node-feature", (ntype, "orig_id"), path, f"ids of {ntype}")
            files.words += ["--num-nodes", f"{files.type_name(ntype)}={len(numbering)}"]
        arrow().default_memory_pool().release_unused()
        return files.words, files.names

    def _write_nodes(self, files: Files, ntype: str, types: Mapping[str, Any], numberings: Numberings) -> None:
        column, table, numbering = self._ids[ntype], self._nodes[ntype], numberings[ntype]
        writer = Writer(files, ntype, self._features.get(ntype, []), types)
        for where, batch in table.read(types):
            ids, first = _columns.ids(batch.column(column), column, where), len(numbering)
            wrong = numbers((numbering, ids, True))[:, 0] != np.arange(first, first + len(ids))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise self._repeated(ntype, where(row), _value(ids, row))
            numberings.note(ntype, (ntype,), first, where)
            writer.take(where, batch)
        numberings.end_nodes(ntype)
        writer.close()

    def _write_edges(self, files: Files, etype: Canonical, types: Mapping[str, Any],
                     numberings: Numberings, integers: Mapping[str, _Integers], rows: npy.Rows) -> None:
        """Writes edges, int64 [edges, 2], to `rows`: numbers, or the integers of a type without a numbering, which
        `integers` has."""
        columns, ntypes = self._ends[etype], (etype[0], etype[2])
        writer = Writer(files, etype, self._features.get(etype, []), types)
        for where, batch in self._edges[etype].read(types):
            pair = [_columns.ids(batch.column(column), column, where) for column in columns]
            places = [end for end in (0, 1) if ntypes[end] in numberings]
            found = numbers(*((numberings[ntypes[end]], pair[end], ntypes[end] not in self._nodes)
                              for end in places)) if places else None
            for end in places:
                assert found is not None
                missing = found[:, places.index(end)] < 0
                if missing.any():
                    row = int(np.argmax(missing))
                    raise self._missing(etype, end, where(row), _value(pair[end], row))
            if len(places) < 2:
                ends = [found[:, 0] if end in places and found is not None else pair[end] for end in (0, 1)]
                for end in {0, 1}.difference(places):
                    integers[ntypes[end]].take(pair[end])
                found = np.stack(ends, 1)
            assert found is not None
            rows.append(found)
            numberings.note(etype, [ntypes[end] for end in places], rows.count - len(found), where)
            writer.take(where, batch)
        writer.close()

    def _repeated(self, ntype: str, where: str, value: Any) -> ValueError:
        return ValueError(f"{where}: column {self._ids[ntype]}: {value!r} is the id of an earlier row too")

    def _missing(self, etype: Canonical, end: int, where: str, value: Any) -> ValueError:
        return ValueError(f"{where}: column {self._ends[etype][end]} is {value!r}, which no row of "
                          f"{self._nodes[etype[2 * end]].what} has as its id")

    def _renumber(self, written: Mapping[Canonical, npy.Rows], numberings: Numberings, ntypes: Sequence[str]) -> None:
        """Numbers the integer ids of these types, in the order of their first appearance."""
        numberings.add(ntypes)
        for etype, rows in written.items():
            places = [end for end in (0, 1) if etype[2 * end] in ntypes]
            edges = rows.so_far() if places else np.empty((0, 2), np.int64)
            for begin in range(0, len(edges), BLOCK):
                block = edges[begin:begin + BLOCK]
                block[:, places] = numbers(*((numberings[etype[2 * end]], block[:, end], True) for end in places))
                numberings.note(etype, [etype[2 * end] for end in places], begin)

    def _settle(self, written: Mapping[Canonical, npy.Rows], numberings: Numberings) -> None:
        """Replaces the places of spilled ids by numbers, and checks them as those in memory were checked."""
        for ntype, where, value in numberings.settle():
            raise self._repeated(ntype, where, value)
        for etype, rows in written.items():
            missing = numberings.fill(etype, rows)
            if missing is not None:
                raise self._missing(etype, missing.end, missing.where, missing.value)


@keywords
def from_tables(edges: Any, nodes: Any = None, *, id: Any = None, src: Any = None, dst: Any = None,
                features: Any = None, labels: Any = None, masks: Any = None, time: Any = None, text: Any = None,
                categories: Any = None, header: bool | None = None) -> Tables:
    """A graph of tables, which partition_graph takes.

    edges: {(source type, relation, destination type): table}, or one table.
    nodes: {node type: table}, or one table. A type may lack a table; its nodes are then the ends of its edges.

    A table is a frame of pandas or polars, a table or stream of Arrow, {name: column}, whose columns are arrays, lists,
    series or tensors, or a path: of text (.csv, .tsv, .txt, .csv.gz), of Parquet, or of a folder of such files as Spark
    writes them. A list of paths is one table. The program reads text, by the rules of `graphwire import`
    (docs/PYTHON.md, "How tables are read").

    id: the column of ids of the node tables, a name or {node type: name}; default: a column named id, node_id or as its
        type. src, dst: the columns of the ends of edges, a name or {edge type: name}; default: known names such as src
        and dst, or the only two columns.
    features: columns of numbers, of times, or of lists of numbers of one length, in their own type: [column, …] or
        {feature: column, or columns that are joined}. labels: a column, which becomes the feature "label": integers
        become int64, also those that are written as floats; text becomes categories. masks: columns of bools, 0 and 1;
        or of the words train, val, test, which become train_mask, val_mask and test_mask. text: columns of text, for
        nodes. categories: columns of text or integers, which become numbers in the order of the sorted values. Each is
        for all tables that have the columns, or {type: …}.
    header: whether the first line of each file of text names the columns. None: the first line of nodes does, and that
        of edges if it has known names of ends or a name that these arguments give, or if it has no numbers and the
        lines below have; a line that may be either is an error. Columns without a header are named "1", "2", ….
    time: a column of the edges, a name or {edge type: name}, which becomes the feature "time", int64; the edges of a
        node are sorted by it. Timestamps become microseconds since 1970, exactly. Times among the features keep their
        unit; time= of partition_graph names those that lists are sorted by.

    Ids are integers or text. Those of a node table are numbered in the order of its rows; text ids of a type without a
    table in the order of their first appearance. Both are kept as orig_id: graph.ids_of finds nodes by them. Other
    integers keep their value, unless most numbers are unused, as in partition_graph.

    partition_graph reads the tables, a batch at a time; this call only checks the columns. A stream of Arrow can be
    read once. Missing values (null, NaN), numbers that their type does not hold, an id of two rows and an edge whose
    end is in no row of the node table are ValueErrors that name the table and the row, from 0, or the line of a text.
    So are damaged files.

    Raises ValueError for a column that does not exist, and suggests one; TypeError; FileNotFoundError, also without the
    program, for text; ModuleNotFoundError without pyarrow.
    """
    arrow()
    words = TextOptions(None if header is None else checks.flag("header", header), src, dst,
                        (id, src, dst, features, labels, masks, time, text, categories))
    edge_tables: dict[Canonical, Table] = opened_tables("edges", edges, HOMOGENEOUS, words)
    node_tables: dict[str, Table] = {} if nodes is None else opened_tables("nodes", nodes, "_N", words)
    ends = dict.fromkeys(ntype for etype in edge_tables for ntype in (etype[0], etype[2]))
    for ntype in node_tables:
        if ntype not in ends:
            raise ValueError(f"nodes: no edges have the node type {ntype!r}"
                             + suggestion(ntype, ends).replace("its arguments", "their types"))
    ids = one_column("id", id, node_tables)
    sources, destinations = one_column("src", src, edge_tables), one_column("dst", dst, edge_tables)
    both: dict[Any, Table] = {**node_tables, **edge_tables}
    found: dict[Key, list[Feature]] = {}
    for role, given, tables in (("features", features, both), ("labels", labels, both), ("masks", masks, both),
                                ("text", text, node_tables), ("categories", categories, both),
                                ("time", time, edge_tables)):
        for key, columns in selected(role, given, tables).items():
            found.setdefault(key, []).extend(features_of(role, columns))
    for key, chosen in found.items():
        names = [one.name for one in chosen]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"{both[key].what}: two features have the name {repeated!r}")
    return Tables(edge_tables, node_tables,
                  {etype: end_columns(etype, table, sources.get(etype), destinations.get(etype))
                   for etype, table in edge_tables.items()},
                  {ntype: ids.get(ntype) or id_column(ntype, table) for ntype, table in node_tables.items()}, found)
