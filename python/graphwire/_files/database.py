"""Graphs of tables with keys: rows become nodes, foreign keys become edges in both directions.

    users = graphwire.Table("users.parquet", "id", time="joined")
    orders = graphwire.Table("orders.parquet", "id", {"user": "users"}, time="at")
    database = graphwire.from_database({"users": users, "orders": orders})
    graphwire.partition_graph(database, "shop", 4, "parts/")

    from_database: columns checked ─▶ partition_graph: types of keys, unit of times, columns with missing values
    ─▶ tables, a batch at a time: keys numbered, rows and times to .npy ─▶ foreign keys looked up
    ─▶ settle(): those of keys that exceed the memory, in files ─▶ `graphwire import` reads the files

descriptions.py has the description, and relational_columns.py the rules for columns. docs/TABLES.md is for users.

Errors: ValueError and TypeError, which name the table or the file, the column and the row; ModuleNotFoundError.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from graphwire._base.keywords import keywords
from graphwire._base.progress import Bar
from graphwire._base.scratch import whole
from graphwire._files import descriptions as _descriptions
from graphwire._files import npy
from graphwire._files import relational_columns as _relational
from graphwire._files.columns import Where, arrow
from graphwire._files.descriptions import MISSING, UNITS, Duckdb, ForeignKey, Table, in_table, one_of
from graphwire._files.graph_arrays import Canonical
from graphwire._files.numbering import Ids, Numbering, numbers
from graphwire._files.numberings import Missing, Numberings
from graphwire._files.relational_columns import END, TIME, Columns, value
from graphwire._files.table_arguments import Feature, TextOptions, features_of, label, selected
from graphwire._files.table_files import BLOCK, Files, Writer, settled
from graphwire._files.table_kinds import Table as Rows
from graphwire._files.table_kinds import opened

_log = logging.getLogger("graphwire")
RECORD = "graphwire-tables-record-1"
_ROLES = ("features", "labels", "masks", "text", "categories")


class Edges:
    """The edges of a foreign key. rows: of its table; null: those without a key; dangling: those whose key no row has,
    known after settle(). times: {table: {feature: of all its rows}}. A time that the table of the foreign key lacks is
    that of the row that is referred to, if this row has an end.
    """

    def __init__(self, files: Files, of: str, key: ForeignKey, missing: str,
                 times: Mapping[str, Mapping[str, np.ndarray]]):
        self.etype: Canonical = (of, key.relation, key.table)
        self.key, self.missing = key, missing
        self.written, self._files = npy.Rows(files.path(".npy")), files
        referred = times[key.table] if END in times[key.table] else {}
        self._all_times = {**{name: (one, 1) for name, one in referred.items()},  # (times, column of `written`)
                           **{name: (one, 0) for name, one in times[of].items()}}
        self.rows = self.null = self.dangling = 0

    def append(self, rows: np.ndarray, found: np.ndarray) -> None:
        """rows: of the foreign key's table. found: those of its target, or places of a spilled numbering."""
        self.written.append(np.stack([rows, found], 1))

    def settle(self, numberings: Numberings) -> Optional[Missing]:
        """Replaces places by rows, and leaves out edges whose key no row has. Returns the first of these, if they are
        an error."""
        edges, kept = self.written.so_far(), -1
        for one in numberings.looked_up(self.etype, self.written, (1,)):
            if self.missing == "error" and one.missing.any():
                return numberings.missing(self.etype, one, int(one.rows[np.argmax(one.missing), 0]))
            good = np.flatnonzero(~one.missing)
            kept = one.first if kept < 0 else kept
            edges[kept:kept + len(good)] = np.stack([one.rows[good, 0], one.found[good]], 1)
            kept += len(good)
            self.dangling += len(one.found) - len(good)
        if kept >= 0:
            self.written.shorten(kept)
        return None

    @property
    def timed(self) -> bool:
        """Whether the edges have times."""
        return TIME in self._all_times

    def close(self) -> None:
        """Ends the files, and adds them to the words of `graphwire import`."""
        files, of, edges = self._files, label(self.etype), self.written.so_far()
        self.written.close(row=(2,))
        files.add("--edges", self.etype, settled(self.written, files), f"edges of {of}")
        if self.key.reverse:
            files.words += ["--reverse-of", files.type_name(*self.etype)]
        for name, (times, column) in self._all_times.items():
            rows = npy.Rows(files.path(".npy"))
            for begin in range(0, len(edges), BLOCK):
                rows.append(times[edges[begin:begin + BLOCK, column]])
            rows.close(times.dtype)
            if name == TIME:
                files.add("--edge-time", self.etype, rows.path, f"times of {of}")
            else:
                files.add("--edge-feature", (*self.etype, name), rows.path, f"edge feature {name} of {of}")

    def record(self) -> dict[str, Any]:
        return {"columns": list(self.key.columns), "table": self.key.table, "rows": self.rows, "null": self.null,
                "dangling": self.dangling, "reverse": self.key.reverse}


def tell_lost(table: str, record: Mapping[str, Any]) -> None:
    """One line for a foreign key, some of whose rows have no edge. record: that of Edges."""
    lost = record["null"] + record["dangling"]
    if lost:
        _log.warning("%s.%s -> %s: %s of %s rows have no edge: the key is missing in %s, and refers to no row in %s",
                     table, "+".join(record["columns"]), record["table"], f"{lost:,}", f"{record['rows']:,}",
                     f"{record['null']:,}", f"{record['dangling']:,}")


class Described:
    """A table of a database: its description, and its rows."""

    def __init__(self, name: str, table: Table):
        self.name, self.table = name, table
        self.rows = _opened(name, table.source)
        self.features: list[Feature] = []
        of = f"table {name}"
        for use, columns in (("key", table.key), ("time", [table.time]), ("end_time", [table.end_time]),
                             ("fill", table.fill), *(("foreign_keys", one.columns) for one in table.foreign_keys)):
            for column in columns:
                if column is not None:
                    self.rows.column(column, f"{of}: {use}")
        for role in _ROLES:
            given = getattr(table, role)
            if given is not None:
                columns = in_table(name, lambda role=role, given=given: selected(
                    role, {name: given}, {name: self.rows}))[name]
                self.features += features_of(role, columns)
        for feature in self.features:
            feature.missing = feature.role in ("features", "categories", "text")

    @property
    def key_columns(self) -> list[str]:
        """The columns of the keys, each once."""
        table = self.table
        return list(dict.fromkeys([*table.key, *(name for one in table.foreign_keys for name in one.columns)]))

    @property
    def time_columns(self) -> dict[str, str]:
        """{feature: column} of the times."""
        given = {TIME: self.table.time, END: self.table.end_time}
        return {name: column for name, column in given.items() if column is not None}


def _opened(name: str, source: Any) -> Rows:
    """The rows of a table, which are read more than once."""
    what, pa = f"table {name}", arrow()
    if isinstance(source, Duckdb):
        source = source.rows(what)
    elif type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        source = source.to_arrow_table()  # a second run of the query may have another order
    elif isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    return opened(source, what, TextOptions(None, None, None, ()).words(name))


class Settled(NamedTuple):
    """What the tables decide on together. columns: of each table, with its types. unit: of all times."""

    columns: dict[str, Columns]
    unit: Optional[str]
    timed: bool  # whether a table has times


@keywords
class Database:
    """Tables with keys, which partition_graph reads: the result of from_database."""

    __module__ = "graphwire"

    def __init__(self, tables: Mapping[str, Table], missing: str, unit: Optional[str]):
        self.tables = {name: Described(name, table) for name, table in tables.items()}
        self._missing, self._unit = missing, unit
        self._bar: Optional[Bar] = None
        self.name: Optional[str] = None
        self.record: dict[str, Any] = {}  # known after write(): what `graphwire inspect` shows

    def __repr__(self) -> str:
        return f"<graphwire.Database: tables {', '.join(self.tables)}>"

    def write(self, folder: Path, progress: Optional[bool] = False, settled: Optional[Settled] = None,
              limit: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
        """Writes the graph to files in the folder. Returns the arguments of `graphwire import`, and {file: what it
        holds} for errors. progress: a bar, as for partition_graph. settled: what settle() returned. limit: options of
        the program, as for Numberings."""
        settled = settled or self.settle()
        with self.showing(progress, self.tables, {name: one.table.foreign_keys for name, one in self.tables.items()}):
            return self._write(Files(folder), settled, limit)

    @contextlib.contextmanager
    def showing(self, progress: Optional[bool], nodes: Iterable[str], edges: Mapping[str, Any]) -> Iterator[None]:
        """Shows a bar while the rows of some tables are read: once for their nodes, and once for their edges."""
        passes = [*nodes, *(name for name, keys in edges.items() if keys)]
        counts = [self.tables[name].rows.count() for name in passes]
        total = None if None in counts else sum(count for count in counts if count is not None)
        with Bar("tables", progress, total=total, unit=" rows") as self._bar:
            self._done = 0
            yield

    def settle(self) -> Settled:
        """Decides on the types of keys, and on the unit of times."""
        columns = {name: Columns(one.name, one.rows, one.table, one.features, one.key_columns, one.time_columns)
                   for name, one in self.tables.items()}
        self._settle_keys(columns)
        unit = _relational.common_unit(columns.values(), self._unit)
        return Settled(columns, unit, any(one.time_columns for one in self.tables.values()))

    def _write(self, files: Files, settled: Settled, limit: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        columns = settled.columns
        for one in columns.values():
            one.settle_features(settled.unit, settled.timed)
        numberings, edges = Numberings(files, limit), list[Edges]()
        numberings.add(name for name, one in self.tables.items() if one.table.key)
        self.expect(numberings, self.tables, {name: one.table.foreign_keys for name, one in self.tables.items()})
        counts, times = {}, {}
        with numberings.checked(lambda: self.check(numberings, edges)):
            for name in self.tables:
                files.words += ["--node-type", files.type_name(name)]
                counts[name], times[name] = self.write_nodes(files, name, columns[name], numberings)
            for name, table in self.tables.items():
                self.write_edges(files, name, table.table.foreign_keys, columns, numberings, times, edges)
        for ended in edges:
            ended.close()
        for name, numbering in numberings.items():
            numbering.close()
            self.write_keys(files, name, numbering)
        if any(times.values()):
            files.words += ["--time", TIME]
        self.note(counts, {name: [one.record() for one in edges if one.etype[0] == name] for name in self.tables})
        self.tell_lost()
        arrow().default_memory_pool().release_unused()
        return files.words, files.names

    def expect(self, numberings: Numberings, nodes: Iterable[str], edges: Mapping[str, Sequence[ForeignKey]]) -> None:
        """Tells how many keys the nodes and the edges of these tables will number."""
        for name in nodes:
            numberings.expect(name, self.tables[name].rows.count())
        for name, keys in edges.items():
            for key in keys:
                numberings.expect(key.table, self.tables[name].rows.count())

    @staticmethod
    def write_keys(files: Files, name: str, numbering: Numbering) -> None:
        """Writes the keys of a table's rows."""
        files.add("--node-feature", (name, "orig_id"), numbering.write(files.path("")), f"ids of {name}")

    def _advance(self, rows: int) -> None:
        """Counts rows that are done."""
        self._done += rows
        if self._bar is not None:
            self._bar.to(self._done)

    def _settle_keys(self, columns: Mapping[str, Columns]) -> None:
        """Gives the columns of a key, and those that refer to it, one kind: integers, texts, times or bools."""
        pairs = [((one.name, column), (key.table, target)) for one in self.tables.values()
                 for key in one.table.foreign_keys
                 for column, target in zip(key.columns, self.tables[key.table].table.key)
                 if columns[one.name].has_type(column) and columns[key.table].has_type(target)]
        ranks = {"integer": 0, "text": 1, "time": 2, "bool": 2}  # of two kinds, the column of the lower one changes
        while True:  # until nothing changes: a key may refer to a key that refers on
            kinds = {end: columns[end[0]].kind_of_key(end[1]) for pair in pairs for end in pair}
            unlike = next((pair for pair in pairs if kinds[pair[0]] != kinds[pair[1]]), None)
            if unlike is None:
                return
            (table, column), like = sorted(unlike, key=lambda end: ranks[kinds[end]])
            columns[table].make_like(column, columns[like[0]], like[1])

    def write_nodes(self, files: Files, name: str, columns: Columns,
                    numberings: Numberings) -> tuple[int, dict[str, np.ndarray]]:
        """Writes the rows of a table. Returns their number and their times, {feature: times}."""
        writer, count = Writer(files, name, columns.features, columns.types), 0
        times = {one: npy.Rows(files.path(".npy")) for one in columns.times}
        key = self.tables[name].table.key
        for where, batch in columns.read(columns.of_nodes):
            if key:
                self._number(numberings, name, columns.keys(batch, key, where), where)
            for one, rows in times.items():
                rows.append(columns.times_of(one, batch, where))
            writer.take(where, columns.as_features(batch))
            count += batch.num_rows
            self._advance(batch.num_rows)
        if key:
            numberings.end_nodes(name)
        writer.close()
        loaded = {}
        for one, rows in times.items():
            rows.close()
            files.add("--node-feature", (name, one), rows.path, f"node feature {one} of {name}")
            loaded[one] = np.load(rows.path, mmap_mode="r") if count else np.load(rows.path)
        files.words += ["--num-nodes", f"{files.type_name(name)}={count}"]
        return count, loaded

    def _number(self, numberings: Numberings, name: str, ids: Ids, where: Where) -> None:
        first = len(numberings[name])
        wrong = numbers((numberings[name], ids, True))[:, 0] != np.arange(first, first + len(ids))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._repeated(name, where(row), value(ids, row))
        numberings.note(name, (name,), first, where)

    def _repeated(self, name: str, where: str, key: Any) -> ValueError:
        return ValueError(f"{where}: column {', '.join(self.tables[name].table.key)}: {key!r} is the key of an earlier "
                          "row too")

    @staticmethod
    def _dangling(key: ForeignKey, where: str, found: Any) -> ValueError:
        return ValueError(f"{where}: the foreign key {', '.join(key.columns)} is {found!r}, which no row of "
                          f"{key.table} has as its key")

    def check(self, numberings: Numberings, edges: Sequence[Edges]) -> None:
        """Numbers the keys that exceed the memory, and checks them as those in memory were checked."""
        for name, where, key in numberings.settle():
            raise self._repeated(name, where, key)
        for _, some in itertools.groupby(edges, lambda one: one.etype[0]):
            wrong = [(missing, one.key) for one in some for missing in [one.settle(numberings)] if missing is not None]
            if wrong:
                missing, referring = min(wrong, key=lambda one: one[0].batch)
                raise self._dangling(referring, missing.where, missing.value)

    def missing_of(self, key: ForeignKey) -> str:
        """"drop" or "error"."""
        return key.missing or self._missing

    def write_edges(self, files: Files, name: str, keys: Sequence[ForeignKey], columns: Mapping[str, Columns],
                    numberings: Numberings, times: Mapping[str, Mapping[str, np.ndarray]],
                    edges: list[Edges]) -> None:
        """Appends the edges of foreign keys of a table to `edges`. check() settles them."""
        first = 0
        made = [Edges(files, name, key, self.missing_of(key), times) for key in keys]
        edges += made
        wanted = dict.fromkeys(column for one in made for column in one.key.columns)
        for where, batch in columns[name].read(list(wanted)) if made else ():
            for one in made:
                one.rows += batch.num_rows
                self._look_up(one, columns[name], batch, where, numberings, first)
            first += batch.num_rows
            self._advance(batch.num_rows)

    def _look_up(self, edges: Edges, columns: Columns, batch: Any, where: Where, numberings: Numberings,
                 first: int) -> None:
        """Adds the edges of a batch, whose first row has the number `first`."""
        key, strict, numbering = edges.key, edges.missing == "error", numberings[edges.key.table]
        rows = columns.rows_with(batch, key.columns)
        if strict and len(rows) < batch.num_rows:
            row = int(np.setdiff1d(np.arange(batch.num_rows), rows)[0])
            raise ValueError(f"{where(row)}: the foreign key {', '.join(key.columns)} is missing")
        edges.null += batch.num_rows - len(rows)
        if not len(rows):
            return
        ids = columns.keys(batch, key.columns, where, rows)
        found = numbers((numbering, ids, False))[:, 0] if len(numbering) else np.full(len(ids), -1)
        there = found >= 0
        if strict and not there.all():
            row = int(np.argmin(there))
            raise self._dangling(key, where(int(rows[row])), value(ids, row))
        edges.dangling += len(rows) - int(there.sum())
        begun = edges.written.count
        edges.append(first + rows[there], found[there])
        numberings.note(edges.etype, (key.table,), begun, where, first)

    def write_record(self, config: Path) -> None:
        """Writes what `graphwire inspect` shows of the tables, into the folder of the graph's JSON."""
        with whole(config.with_suffix(".tables.json")) as path:
            path.write_text(self.record_text(json.loads(config.read_text("utf-8"))["graph_id"]), "utf-8")

    def record_text(self, graph_id: str) -> str:
        """The record of the tables, as JSON."""
        return json.dumps({"format": RECORD, "graph_id": graph_id, **self.record}, ensure_ascii=False, indent=1) + "\n"

    def note(self, counts: Mapping[str, int], keys: Mapping[str, list[dict[str, Any]]]) -> None:
        """Makes the record. counts: {table: rows}; keys: {table: records of Edges}."""
        self.record = {"tables": {name: {
            "rows": counts[name], "key": list(one.table.key), "time": one.table.time, "end_time": one.table.end_time,
            "foreign_keys": keys[name]} for name, one in self.tables.items()}}

    def tell_lost(self) -> None:
        """One line for each foreign key, some of whose rows have no edge. Known after note()."""
        for name, table in self.record["tables"].items():
            for record in table["foreign_keys"]:
                tell_lost(name, record)


@keywords
def from_database(tables: Any, *, missing: Optional[str] = None, unit: Optional[str] = None, end_time: Any = None,
                  features: Any = None, labels: Any = None, masks: Any = None, text: Any = None, categories: Any = None,
                  fill: Any = None) -> Database:
    """A graph of tables with keys, which partition_graph takes. docs/TABLES.md describes it.

    tables: {name: Table}; the path of a JSON file that describes them; or a Database of relbench.
    missing: "drop": a row whose foreign key is null, or refers to no row, has no edge of this key; one line of the log
        for each key counts such rows. "error": such a row is an error. None: as the JSON says, else "drop".
    unit: the unit of all times, one of "D", "s", "ms", "us", "ns". None: as the JSON says, else the finest one of the
        columns of times.
    end_time, features, labels, masks, text, categories, fill: {table: as Table takes them}, for tables whose
        description has none of them, such as those of relbench.

    Each table is a node type. Node i, before the graph is divided, is its row i; graph.ids_of finds nodes by their
    primary keys. A key of several columns is found as the text of a JSON array, which graph.seeds_of makes.

    Each foreign key makes two edge types, (table, "f2p_COLUMN", target) and (target, "rev_f2p_COLUMN", table), as
    RelBench names them. Their edges have the time and the end time of the row that holds the key, as the features
    "time" and "end_time", and lists are sorted by time. The nodes of a table with times have these features too.

    Raises ValueError for a column or a table that does not exist, and suggests one; TypeError; FileNotFoundError;
    ModuleNotFoundError without pyarrow, or without duckdb for its files. partition_graph raises ValueError for a
    primary key that is missing or occurs twice, for a row without a time, and the errors of from_tables.
    """
    arrow()
    found, options = _descriptions.described(tables)
    found = _descriptions.with_roles(found, {"end_time": end_time, "features": features, "labels": labels,
                                             "masks": masks, "text": text, "categories": categories, "fill": fill})
    missing = missing if missing is not None else options.get("missing", "drop")
    unit = unit if unit is not None else options.get("unit")
    one_of("missing", missing, MISSING)
    if unit is not None:
        one_of("unit", unit, UNITS)
    made = Database(found, missing, unit)
    made.name = options.get("name")
    return made
