"""Builds the one-part graph of a database in steps. What an earlier graph has already is taken over.

    Steps(database) ─▶ for each table and foreign key: a digest of all that its arrays depend on
    ─▶ make(): each type from an earlier graph with this digest, or else a graph of it alone, in the work folder
    ─▶ `graphwire import combine` links the arrays of these graphs in one, and checks their digests

A table's nodes depend on its rows, on their description, on the types of its keys and on the unit of times. A foreign
key's edges depend on the keys and times of both tables. A piece in the work folder is complete, or does not exist; so
the pieces of a build that was interrupted are as good as an earlier graph.

Errors: those of graphwire/_files/database.py and of the program. A graph that turns out to be damaged is left out, with
one line of the log, and its types are built.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

from graphwire._base.native import lib, text
from graphwire._base.program import ProgramError
from graphwire._base.scratch import Scratch
from graphwire._files.columns import arrow
from graphwire._files.database import Database, Edges
from graphwire._files.descriptions import ForeignKey
from graphwire._files.earlier_graph import RECORD, Earlier, Unfit
from graphwire._files.graph_arrays import Canonical
from graphwire._files.numbering import numbers
from graphwire._files.numberings import Numberings
from graphwire._files.relational_columns import TIME, Columns
from graphwire._files.row_digests import Inputs, of_json
from graphwire._files.running import run
from graphwire._files.table_files import Files

_log = logging.getLogger("graphwire")
_STEPS = 1  # grows when the same tables give other bytes
_ALONE = "none"  # the relation of a piece that has a node type alone; a foreign key's begins with f2p_


def _fill(given: Mapping[str, Any], columns: Iterable[str]) -> list[Any]:
    return [[name, type(given[name]).__name__, repr(given[name])] for name in sorted({*columns} & {*given})]


class Steps:
    """The types of a database's graph, and the digest of what each depends on. options: further ones of `graphwire
    import`. Raises what partition_graph raises for columns."""

    def __init__(self, database: Database, options: Sequence[str] = (), others: Sequence[str] = ()):
        """options, others: of `graphwire import`; others change no bytes."""
        self._database, self._options = database, sorted({*options, "--edge-ids"})
        self.limit = [one for one in others if one != "--quiet"]
        self.settled = database.settle()
        self._columns: Mapping[str, Columns] = self.settled.columns
        names = Files(Path())
        self._names = {name: names.type_name(name) for name in database.tables}
        self._inputs = {name: Inputs(one.rows, self._columns[name].types) for name, one in database.tables.items()}
        self.versions = {"graphwire": text(lib.package_version()), "steps": _STEPS, "pyarrow": arrow().__version__,
                         "numpy": np.__version__}
        rows = {name: self._rows(name) for name in database.tables}
        self.nodes = {name: of_json([rows[name], self._of_nodes(name)]) for name in database.tables}
        self.edges = {(name, key.relation, key.table): of_json(
            [rows[name], rows[key.table], self._types(name, key.columns), key.columns, key.reverse,
             _fill(database.tables[name].table.fill, key.columns), database.missing_of(key)])
            for name, one in database.tables.items() for key in one.table.foreign_keys}
        self._known: dict[str, Any] = {"nodes": {}, "edges": {}}  # {type: what the record says}

    def _types(self, name: str, columns: Iterable[str]) -> dict[str, str]:
        """The types of columns, and the kinds of keys that texts are read as, which other tables decide on."""
        of = self._columns[name]
        return {column: f"{of.types[column]}, {of.kind_of_key(column)}" for column in columns}

    def _rows(self, name: str) -> list[Any]:
        """What the keys and times of a table's rows depend on."""
        one = self._database.tables[name]
        used = [*one.table.key, *one.time_columns.values()]
        return [self.versions, self._options, self._inputs[name].digest, one.table.key, one.time_columns,
                self._types(name, used), _fill(one.table.fill, used), self.settled.unit]

    def _of_nodes(self, name: str) -> list[Any]:
        """What the features depend on, besides."""
        one = self._database.tables[name]
        return [[[some.role, some.name, some.columns, some.missing] for some in one.features],
                one.table.features is None, one.key_columns, self._types(name, self._columns[name].types),
                _fill(one.table.fill, one.table.fill), self.settled.timed]

    # --- The record. ---

    def note(self) -> None:
        """Notes what a build of all types by Database.write() has found, for the record."""
        for name, one in self._database.record["tables"].items():
            self._known["nodes"][self._names[name]] = {"key": self.nodes[name], "rows": one["rows"]}
            for key, found in zip(self._database.tables[name].table.foreign_keys, one["foreign_keys"]):
                etype = (name, key.relation, key.table)
                self._known["edges"][self._etype(etype)] = {"key": self.edges[etype], **found}

    def _etype(self, etype: Canonical, turned: bool = False) -> str:
        src, relation, dst = (Files(Path()).type_name(one) for one in etype)
        return f"{dst}:rev_{relation}:{src}" if turned else f"{src}:{relation}:{dst}"

    def record(self, nodes: Iterable[str], edges: Iterable[Canonical]) -> str:
        """The record of a graph with these types, as JSON, with zeros in place of its id."""
        return json.dumps({
            "format": RECORD, "graph_id": "0" * 16, "versions": self.versions, "options": self._options,
            "inputs": {name: one.digest for name, one in self._inputs.items()},
            "nodes": {one: self._known["nodes"][one] for one in (self._names[name] for name in nodes)},
            "edges": {one: self._known["edges"][one] for one in map(self._etype, edges)}},
            ensure_ascii=False, indent=1) + "\n"

    def records(self, folder: Path) -> list[str]:
        """Writes the records of the whole graph to files. Returns the options of `graphwire import`."""
        records = {"tables": self._database.record_text("0" * 16), "build": self.record(self.nodes, self.edges)}
        for kind, record in records.items():
            (folder / f"{kind}.json").write_text(record, "utf-8")
        for one in self._inputs.values():
            one.check()
        return [word for kind in records for word in ("--record", f"{kind}={folder / kind}.json")]

    def unlike(self, graph: Earlier) -> Optional[str]:
        """Why nothing can be taken over from a graph, whatever its tables; None: nothing prevents it."""
        if graph.record.get("versions") != self.versions:
            return "it was made with other versions of Graphwire, pyarrow or numpy"
        return None if graph.record.get("options") == self._options else "it was made with other options"

    def is_in(self, graph: Earlier, name: str) -> bool:
        """Whether a graph is that of this database, under this name."""
        nodes = [(self._names[table], key) for table, key in self.nodes.items()]
        edges = [(self._etype(etype), key) for etype, key in self.edges.items()]
        return graph.graph.stem == name and nodes == [(one, found["key"]) for one, found in graph.nodes.items()] and \
            edges == [(one, found["key"]) for one, found in graph.edges.items()]

    # --- The work. ---

    def make(self, out: Path, words: Sequence[str], work: Path, earlier: Sequence[Earlier], progress: bool,
             held: tuple[int, ...], prints: bool) -> str:
        """Makes the graph. words: of `graphwire import`, without the types. work: a folder for pieces, next to `out`.
        earlier: graphs from which types are taken over. held: descriptors that the program inherits; empty: the pieces
        are of no use to another build. prints: as for run(). Returns the line that says how much was taken over."""
        sources, made = list(earlier), list[Earlier]()
        while True:
            making = _Making(self, self._database, work, [*sources, *made], held)
            try:
                with Scratch(out.absolute().parent, f".{out.name}") as folder:
                    making.pieces(folder, progress, not held)
                    making.combine(folder, words, prints)
                self._database.tell_lost()
                return making.said([*made, *making.made])
            except _Damaged as error:
                _log.warning("%s: nothing is taken over from it: %s", error.graph.folder, error)
                sources, made = ([one for one in some if one is not error.graph] for some in (
                    sources, [*made, *making.made]))
                if error.graph.folder.parent == work:
                    shutil.rmtree(error.graph.folder)


class _Damaged(Exception):
    """A graph that turned out to be damaged."""

    def __init__(self, graph: Earlier, text: str):
        super().__init__(text)
        self.graph = graph


class _Piece:
    """Types of a graph that is made. nodes, edges: those that it is made for. read: the edges, until they are settled.
    counted, timed: the node types that `files` have, and those with times."""

    def __init__(self, folder: Path):
        self.folder, self.files = folder, Files(folder)
        self.nodes: list[str] = []
        self.edges: list[Canonical] = []
        self.read: list[Edges] = []
        self.counted: set[str] = set()
        self.timed: set[str] = set()


class _Making:
    """One attempt to make the graph from these sources."""

    def __init__(self, steps: Steps, database: Database, work: Path, sources: Sequence[Earlier], held: tuple[int, ...]):
        self._steps, self._database, self._work, self._held = steps, database, work, held
        self.made: list[Earlier] = []
        self._known = steps._known
        self._numberings = Numberings(Files(work), steps.limit)
        self._times: dict[str, dict[str, np.ndarray]] = {}
        self._nodes: dict[str, Earlier] = {}
        self._edges: dict[Canonical, Earlier] = {}
        for source in sources:
            self._take(source)

    def _take(self, source: Earlier) -> None:
        """Takes over the types that a graph has."""
        for name, key in self._steps.nodes.items():
            found = source.nodes.get(self._steps._names[name])
            if found and found["key"] == key and name not in self._nodes:
                self._nodes[name], self._known["nodes"][self._steps._names[name]] = source, found
        for etype, key in self._steps.edges.items():
            one = self._steps._etype(etype)
            found = source.edges.get(one)
            if found and found["key"] == key and etype not in self._edges:
                self._edges[etype], self._known["edges"][one] = source, found

    def pieces(self, folder: Path, progress: bool, at_once: bool) -> None:
        """Builds what no source has. folder: for the files that the program reads. at_once: in one piece, which is
        faster; else each table's nodes, and each table's edges, are a piece that an interrupted build keeps."""
        tables = self._database.tables
        nodes = [name for name in tables if name not in self._nodes]
        edges = {name: [key for key in one.table.foreign_keys if (name, key.relation, key.table) not in self._edges]
                 for name, one in tables.items()}
        edges = {name: keys for name, keys in edges.items() if keys}
        with self._database.showing(progress, nodes, edges):
            if at_once and (nodes or edges):
                self._make(folder, nodes, edges)
            for name in nodes if not at_once else ():
                self._make(folder, [name], {})
            for name, keys in edges.items() if not at_once else ():
                self._make(folder, [], {name: keys})
        counts = {name: self._rows(name) for name in tables}
        self._database.note(counts, {name: [
            {word: value for word, value in self._known["edges"][self._steps._etype(
                (name, key.relation, key.table))].items() if word != "key"} for key in one.table.foreign_keys]
            for name, one in tables.items()})

    def said(self, made: Sequence[Earlier]) -> str:
        """The line that says how much is from other graphs than these."""
        ways = {(name, key.relation, key.table): 1 + key.reverse for name, one in self._database.tables.items()
                for key in one.table.foreign_keys}
        nodes = sum(graph not in made for graph in self._nodes.values())
        edges = sum(ways[one] for one, graph in self._edges.items() if graph not in made)
        return f"taken over: {nodes} of {len(self._nodes)} tables, {edges} of {sum(ways.values())} edge types"

    def _rows(self, name: str) -> int:
        return self._known["nodes"][self._steps._names[name]]["rows"]

    def _make(self, folder: Path, nodes: Sequence[str], edges: Mapping[str, Sequence[ForeignKey]]) -> None:
        """Makes the graph of a piece: nodes of tables, and edges of foreign keys. folder: for its files, which go."""
        piece, numberings = _Piece(folder), self._numberings
        numberings.begin(piece.files)
        self._database.expect(numberings, nodes, edges)
        with numberings.checked(lambda: self._database.check(numberings, piece.read)):
            for name in nodes:
                self._add_nodes(piece, name)
            for name, keys in edges.items():
                self._add_edges(piece, name, keys)
        for name in nodes:
            if name in numberings:
                self._database.write_keys(piece.files, name, numberings[name])
        for one in piece.read:
            self._end_edges(piece, one)
        numberings.release()
        self._run(piece)

    def _run(self, piece: _Piece) -> None:
        """Makes the graph of a piece's files, and removes them."""
        files, record = piece.files, piece.folder / "record.json"
        record.write_text(self._steps.record(piece.nodes, piece.edges), "utf-8")
        if not piece.edges:  # a graph has an edge type
            path, stored = files.path(".npy"), self._steps._names[piece.nodes[0]]
            np.save(path, np.empty((0, 2), np.int64))
            files.words += ["--edges", f"{stored}:{_ALONE}:{stored}={path}"]
        if piece.timed:  # edges with times of their own are sorted by them in any case
            files.words += ["--time", TIME]
        out = self._work / f"piece-{secrets.token_hex(8)}"
        words = ["import", *files.words, *self._steps._options, *self._steps.limit, "--record",
                 f"build={record}", "--quiet"]
        run([*words, "--name", "piece", "--out", out], files.names, held=self._held)
        for path in piece.folder.iterdir():
            path.unlink()
        self.made.append(Earlier(out))
        self._take(self.made[-1])

    def _add_nodes(self, piece: _Piece, name: str) -> None:
        columns, stored = self._steps._columns[name], self._steps._names[name]
        columns.settle_features(self._steps.settled.unit, self._steps.settled.timed)
        if self._database.tables[name].table.key:
            self._numberings.add([name])
        piece.files.words += ["--node-type", stored]
        rows, self._times[name] = self._database.write_nodes(piece.files, name, columns, self._numberings)
        self._known["nodes"][stored] = {"key": self._steps.nodes[name], "rows": rows}
        piece.nodes.append(name)
        piece.counted.add(name)
        if TIME in self._times[name]:
            piece.timed.add(name)

    def _checked(self, name: str, read: Any) -> Any:
        """What read() returns of the graph that has a table's rows."""
        graph = self._nodes[name]
        try:
            return read(graph)
        except Unfit as error:
            raise _Damaged(graph, str(error)) from None

    def _load_times(self, name: str) -> None:
        """Has the times of a table's rows in memory."""
        if name not in self._times:
            self._times[name] = {feature: self._checked(name, lambda graph, feature=feature: graph.times(
                self._steps._names[name], feature)) for feature in self._database.tables[name].time_columns}

    def _load_keys(self, name: str) -> None:
        """Has the keys of a table's rows numbered."""
        if name in self._numberings:
            return
        self._numberings.add([name])

        def load(graph: Earlier) -> None:
            for ids in graph.keys(self._steps._names[name]):
                first = len(self._numberings[name])
                numbers((self._numberings[name], ids, True))
                self._numberings.note(name, (name,), first)

        self._numberings.expect(name, self._rows(name))
        self._checked(name, load)
        self._numberings.end_nodes(name)

    def _add_edges(self, piece: _Piece, name: str, keys: Sequence[ForeignKey]) -> None:
        files = piece.files
        for table in dict.fromkeys([name, *(key.table for key in keys)]):
            self._load_times(table)
            if table not in piece.counted:
                stored = self._steps._names[table]
                files.words += ["--node-type", stored, "--num-nodes", f"{stored}={self._rows(table)}"]
                piece.counted.add(table)
        for key in keys:
            self._load_keys(key.table)
        self._database.write_edges(files, name, keys, self._steps._columns, self._numberings, self._times, piece.read)

    def _end_edges(self, piece: _Piece, one: Edges) -> None:
        """Ends the files of edges that are settled."""
        one.close()
        files, table = piece.files, one.key.table
        if one.key.reverse and not one.timed and TIME in self._times[table] and table not in piece.timed:
            path = files.path(".npy")  # the reverse edges have the times of their sources
            np.save(path, self._times[table][TIME])
            files.add("--node-feature", (table, TIME), path, f"node feature {TIME} of {table}")
            piece.timed.add(table)
        piece.edges.append(one.etype)
        self._known["edges"][self._steps._etype(one.etype)] = {"key": self._steps.edges[one.etype], **one.record()}

    def combine(self, folder: Path, options: Sequence[str], prints: bool) -> None:
        """Combines the types of the sources in one graph, with its records, which `folder` receives first."""
        words = ["import", *options]
        for table in self._database.tables:
            words += ["--node-type", f"{self._steps._names[table]}={self._nodes[table].graph}"]
        for table, one in self._database.tables.items():
            for key in one.table.foreign_keys:
                etype = (table, key.relation, key.table)
                for turned in (False, True)[:1 + key.reverse]:
                    words += ["--edge-type", f"{self._steps._etype(etype, turned)}={self._edges[etype].graph}"]
        try:
            run([*words, *self._steps.records(folder)], held=self._held, prints=prints)
        except ProgramError as error:
            graphs = {id(graph): graph for graph in (*self._nodes.values(), *self._edges.values())}
            damaged = next((graph for graph in graphs.values() if f"{graph.folder}/" in error.line), None)
            if damaged is None:
                raise
            raise _Damaged(damaged, error.line.partition(": ")[2]) from None
