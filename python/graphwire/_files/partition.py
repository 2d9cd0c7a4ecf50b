"""Divides a graph in memory into parts on disk.

    graphwire.partition_graph((src, dst), "web", 4, "parts/", node_features={"feat": x})

    arrays -> .npy files in a temporary folder -> `graphwire import` -> `graphwire partition` -> the folder of parts

The graphwire program does the work (_base/program.py finds it). The temporary folder is made where the result goes, and
is always removed.

Errors: RuntimeError with the program's last line, ValueError if that names a file of the graph; ValueError and
TypeError; FileExistsError for files in the way;
FileNotFoundError without the program.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphwire._base import checks
from graphwire._base import progress as _progress
from graphwire._base.escape import escaped, escaped_names, escaped_type
from graphwire._base.keywords import keywords
from graphwire._base.native import c_text
from graphwire._base.program import ProgramError
from graphwire._base.scratch import Scratch
from graphwire._files import rows as _rows
from graphwire._files.chunks import Chunked
from graphwire._files.database import Database
from graphwire._files.database_build import Build
from graphwire._files.graph_arrays import Arrays
from graphwire._files.graphs import arrays_of
from graphwire._files.pyg_data import unplaced
from graphwire._files.replicas import Fanouts, amount, sampling_words
from graphwire._files.running import run
from graphwire._files.tables import Tables

_log = logging.getLogger("graphwire")
_OF_FILES = (Tables, Chunked, Database)
NARROW = ("float16", "bfloat16", "int8_row")  # the types that `store` can name
_CLASSES_MAX = 32  # GW_PLAN_NUMBERS_MAX of tools/partition/plan.h


def _paths(words: Sequence[Any]) -> list[str]:
    """The files that the words of `graphwire import` name, as its errors do."""
    ends = (str(word)[at:] for word in words for at in (0, str(word).rfind("=") + 1))
    return [end for end in dict.fromkeys(ends) if "/" in end or os.path.exists(end)]


class _Files:
    """The files of a graph in a folder: the arguments of `graphwire import`, and {file: what it holds} for error
    texts."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.words: list[str] = []
        self.names: dict[str, str] = {}

    def _path(self, end: str, what: str) -> Path:
        path = self._folder / f"{len(self.words)}{end}"
        self.names[str(path)] = what
        return path

    def type_name(self, *names: str) -> str:
        """Names in the format's alphabet, joined by ":". Error texts have the original names. Raises ValueError for a
        name with ":"."""
        found = escaped_names(names)
        self.names.update({one: name for one, name in zip(found, names) if one != name})
        return ":".join(found)

    def add(self, option: str, of: str, rows: np.ndarray, what: str) -> None:
        """Writes rows of numbers or of text, and passes them with an option."""
        path = self._path(".npz" if _rows.is_text(rows) else ".npy", what)
        if _rows.is_text(rows):
            offsets, text = _rows.strings(rows)
            np.savez(path, offsets=offsets, bytes=text)
        else:
            np.save(path, np.ascontiguousarray(rows))
        self.words += [option, f"{of}={path}"]

    def add_edges(self, of: str, src: np.ndarray, dst: np.ndarray) -> None:
        if len(src) == 2:  # [2, 2] could be rows or columns
            path = self._path(".npz", f"edges of {of}")
            np.savez(path, src=src, dst=dst)
            self.words += ["--edges", f"{of}={path}"]
        else:
            self.add("--edges", of, np.stack([src, dst], 1), f"edges of {of}")


def _written(arrays: Arrays, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Writes the arrays to files in `folder`. Returns the arguments of `graphwire import`, and {file: what it holds}
    for error texts."""
    files = _Files(folder)
    featured = {ntype for ntype, _ in arrays.node_features}
    for ntype, count in arrays.counts.items():
        name = files.type_name(ntype)
        files.words += ["--node-type", name]  # of all types, so that they keep the caller's order
        if ntype in arrays.ids:
            files.add("--nodes", name, arrays.ids[ntype], f"ids of {ntype}")
        elif ntype not in arrays.guessed or ntype in featured:
            files.words += ["--num-nodes", f"{name}={count}"]
    for etype, ends in arrays.edges.items():
        # A list of integers has the values of ids, a list of text is referred to by place.
        src, dst = (arrays.ids[ntype][ids] if ntype in arrays.ids and not _rows.is_text(arrays.ids[ntype]) else ids
                    for ntype, ids in zip((etype[0], etype[2]), ends))
        files.add_edges(files.type_name(*etype), src, dst)
    for (ntype, name), rows in arrays.node_features.items():
        if len(rows) != arrays.counts[ntype]:
            raise ValueError(f"{name}: {len(rows)} rows for {arrays.counts[ntype]} nodes of {ntype}")
        mask = rows.dtype == np.bool_ and rows.ndim == 1
        option = "--node-mask" if mask else "--node-feature"
        files.add(option, files.type_name(ntype, name), rows, f"node feature {name} of {ntype}")
    for (etype, name), rows in arrays.edge_features.items():
        of = ":".join(etype)
        if len(rows) != len(arrays.edges[etype][0]):
            raise ValueError(f"{name}: {len(rows)} rows for {len(arrays.edges[etype][0])} edges of {of}")
        if _rows.is_text(rows):
            raise TypeError(f"{name} of {of} is text, which edges do not store: number it")
        files.add("--edge-feature", files.type_name(*etype, name), rows, f"edge feature {name} of {of}")
    return files.words, files.names


def _typed(features: Mapping[Any, Any] | None, only: Any) -> dict[Any, Mapping[str, Any]]:
    """Features as {type: {name: rows}}; {name: rows} belongs to the type `only`."""
    if not features:
        return {}
    if all(isinstance(rows, Mapping) for rows in features.values()):
        return dict(features)
    return {only: features}


def _named(what: str, given: str | Sequence[str], of: str = "an edge feature") -> list[str]:
    """The options for the names of features that the argument `what` gives. Raises TypeError and ValueError."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f'{what} is a name of {of}, "NAME" or "SRC:REL:DST:NAME", or a list, not {given!r}')
    if not all(names):
        raise ValueError(f"{what}: a name has at least one character")
    return [f"--{what}={escaped_type(name)}" for name in names]


def _stored(given: Mapping[str, Any] | None) -> list[str]:
    """The options for the argument `store`. Raises TypeError and ValueError."""
    if given is None:
        return []
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise TypeError(f'store is {{"NAME", "TYPE:NAME" or "SRC:REL:DST:NAME": type}}, not {given!r}')
    found = []
    for name, dtype in given.items():
        word = next((kind for kind in NARROW if kind in (dtype, getattr(dtype, "__name__", None), str(dtype).replace(
            "torch.", ""))), None)
        if word is None:
            raise ValueError(f"store: {name}: {dtype!r} is not one of the types {', '.join(NARROW)}")
        found.append(f"--store={escaped_type(name)}={word}")
    return found


def _completed(graph: Any, node_features: Mapping[Any, Any] | None, edge_features: Mapping[Any, Any] | None,
               num_nodes: int | Mapping[str, int] | None) -> Arrays:
    """The graph's arrays, with the given features and numbers of nodes added."""
    arrays = arrays_of(graph, num_nodes)
    if num_nodes is not None:
        given = num_nodes if isinstance(num_nodes, Mapping) else {next(iter(arrays.counts)): num_nodes}
        for ntype, count in given.items():
            if ntype in arrays.ids:
                raise ValueError(f"num_nodes: the graph names its {arrays.counts[ntype]} nodes of {ntype} by ids of "
                                 "their own")
            arrays.counts[ntype] = checks.integer("num_nodes", count, 0, 2**63 - 1)
            arrays.guessed.discard(ntype)
    nodes = _typed(node_features, next(iter(arrays.counts)))
    for ntype in arrays.numbered.intersection(nodes):
        raise ValueError(f"node_features: ids of {ntype} are text, so its nodes have no order for rows: number the "
                         "nodes, or pass a graph of NetworkX")
    edges = {tuple(etype.split(":")) if isinstance(etype, str) else etype: columns
             for etype, columns in _typed(edge_features, next(iter(arrays.edges))).items()}
    _check_types("node_features", nodes, arrays.counts, "node type")
    _check_types("edge_features", edges, arrays.edges, "edge type")
    arrays.add_columns(nodes, edges)
    arrays.unplaced.difference_update(*nodes.values(), *edges.values())
    return arrays


def _check_times(named: Sequence[str], arrays: Arrays) -> None:
    """Raises ValueError for a time of which the graph does not say whether it is of nodes or of edges."""
    for name in (one.rpartition(":")[2] for one in named):
        if name in arrays.unplaced:
            raise ValueError(f"time: {unplaced(name)}")


def _check_types(what: str, given: Iterable[Any], known: Iterable[Any], kind: str) -> None:
    """Raises ValueError for a type that the graph does not have."""
    names = [one if isinstance(one, str) else ":".join(one) for one in known]
    for one in given:
        if one not in known:
            name = ":".join(one) if isinstance(one, tuple) and all(isinstance(part, str) for part in one) else one
            raise ValueError(f"{what}: the graph has no {kind} {name}; it has {', '.join(names)}")


def _by_type(what: str, given: Any, arrays: Arrays) -> dict[str, np.ndarray]:
    """{node type: an integer or a bool of each node}. Raises TypeError and ValueError, which begin with `what`."""
    found = {}
    for ntype, numbers in (given if isinstance(given, Mapping) else {next(iter(arrays.counts)): given}).items():
        rows = _rows.array(numbers, f"{what} of {ntype}")
        if rows.dtype.kind not in "biu" or rows.ndim != 1:
            raise TypeError(f"{what} of {ntype}: one integer or bool for each node, not {rows.dtype} "
                            f"{list(rows.shape)}")
        _check_types(what, [ntype], arrays.counts, "node type")
        if len(rows) != arrays.counts[ntype]:
            raise ValueError(f"{what}: {len(rows)} rows for {arrays.counts[ntype]} nodes of {ntype}")
        found[ntype] = rows
    return found


def _classes(given: Any, arrays: Arrays | None) -> dict[str, np.ndarray]:
    """Class numbers as {node type: uint8 [nodes]}, numbered from 0 in ascending order. Raises TypeError and
    ValueError."""
    if given is None:
        return {}
    if arrays is None:
        raise ValueError("balance_nodes: the graph is in files: graphwire partition --balance-nodes takes its classes")
    found = {}
    for ntype, rows in _by_type("balance_nodes", given, arrays).items():
        kinds, places = np.unique(rows, return_inverse=True)
        if len(kinds) > _CLASSES_MAX:
            raise ValueError(f"balance_nodes of {ntype}: {len(kinds)} classes, and at most {_CLASSES_MAX} are balanced")
        found[ntype] = places.astype(np.uint8)
    return found


def _assigned(given: Any, arrays: Arrays | None) -> dict[str, Any]:
    """{node type: the parts of its nodes, int64 [nodes], or a path}; the path of all types has the key "". Raises
    TypeError and ValueError."""
    if given is None:
        return {}
    if isinstance(given, (str, os.PathLike)):
        return {"": os.fspath(given)}
    if isinstance(given, Mapping) and given and all(isinstance(one, (str, os.PathLike)) for one in given.values()):
        return {ntype: os.fspath(path) for ntype, path in given.items()}
    if arrays is None:
        raise ValueError("assignment: the graph is in files: give the path of a file with the parts of its nodes")
    found = _by_type("assignment", given, arrays)
    lacking = [ntype for ntype in arrays.counts if ntype not in found]
    if lacking:
        raise ValueError(f"assignment: nodes of {', '.join(lacking)} have no part: give {{node type: parts}}")
    return {ntype: rows.astype(np.int64) for ntype, rows in found.items()}


def _build_whole(database: Database, out: Path, name: str, flags: Sequence[str], limit: Sequence[str], resume: bool,
                 progress: bool) -> None:
    """Builds the graph of a database in one part, or as much of it as has changed."""
    build = Build(database, out, name, flags, rebuild=True, resume=resume, progress=progress, others=limit)
    build.run()
    if build.said:
        _log.info("%s: %s", out, build.said)


def _holds_graph(folder: Path) -> bool:
    """Whether a folder has the JSON of a graph, which `graphwire partition --replace` then replaces."""
    return any(re.search(rb'"format":\s*"graphwire-\d', path.read_bytes()) for path in folder.glob("[!.]*.json")
               if path.is_file())


def _move_into(folder: Path, made: Path) -> None:
    """Moves a new graph's files into a folder that has other files, the JSON last. Raises FileExistsError, and moves
    nothing, if the folder has a file of the same name."""
    entries = sorted(made.iterdir(), key=lambda path: path.suffix == ".json")
    for path in entries:
        if (folder / path.name).exists() or (folder / path.name).is_symlink():
            raise FileExistsError(f"{folder / path.name} exists already, and is not a graph's: name another folder")
    for path in entries:
        path.rename(folder / path.name)


@keywords
def partition_graph(graph: Any, name: str, num_parts: int, out: str | os.PathLike, *, method: str | None = None,
                    node_features: Mapping[Any, Any] | None = None, edge_features: Mapping[Any, Any] | None = None,
                    num_nodes: int | Mapping[str, int] | None = None, balance_train: bool = False,
                    balance_nodes: Any = None, balance_edges: bool = False, num_trainers_per_machine: int = 1,
                    objtype: str = "cut", reverse: bool = False, undirected: bool = False, transpose: bool = False,
                    seed: int = 0, weight: str | Sequence[str] = (), time: str | Sequence[str] = (),
                    assignment: Any = None, memory: int | str | None = None, store: Mapping[str, Any] | None = None,
                    replicate: int | str | None = None, replicate_by: str = "vip", fanouts: Fanouts | None = None,
                    batch_size: int = 1000, progress: bool | None = None, whole: str | os.PathLike | None = None,
                    resume: bool = False) -> Path:
    """Divides a graph into parts, writes them to a folder, and returns the path of their JSON, out/name.json.

    graph: a graph of DGL, PyTorch Geometric (Data, HeteroData), NetworkX, SciPy or graphwire.datasets; the result of
        from_tables or from_database; or (src, dst),
        an array of pairs, a table with known names of ends such as src and dst (of pandas, polars or Arrow), or
        {(source type, relation, destination type): one of these or a SciPy matrix}. A SciPy matrix that is not square
        has the node types "row" and "column".
        Names of types and features are texts without ":". One UserWarning names the attributes of the graph that do
        not become features, and why.
    name: the graph's name.
    num_parts: the number of parts.
    out: the folder, which is created. An existing graph in it is replaced; other files in the folder stay.
    method: None or "metis"; "lp", label propagation, which cuts about as few edges in less memory and time, for graphs
        of any size; "kaminpar", the package kaminpar of PyPI, in a process of this Python; "random"; or "auto": metis
        if its memory suffices, else lp if its memory does, else random.
    node_features, edge_features: features to add to those of the graph, {name: rows} or {type: {name: rows}}. An edge
        type is a tuple or "SRC:REL:DST".
        A feature is numbers or, for nodes, text, which Graph.node_texts returns.
    num_nodes: the number of nodes, or {node type: number}, if it exceeds the greatest id plus 1. Without it and without
        node features, ids in arrays and tables that leave out more than half of the numbers up to the greatest one, if
        that is 1,024 or more, are renumbered, as in `graphwire import`.
    balance_train: give each part about as many nodes of the feature train_mask.
    balance_nodes: a class number of each node, [nodes] integers or bools, or {node type: numbers}: give each part about
        as many nodes of each class, and of each type. At most 32 classes of a type. It excludes balance_train.
    balance_edges: give each part about as many edges; with "random" they balance by chance.
    num_trainers_per_machine: the number of pieces that each part is divided into, one for each trainer.
    objtype: what METIS minimizes, "cut" or "vol".
    reverse, undirected, transpose: as the options of `graphwire import`.
    seed: of the partition.
    weight: names of edge features of non-negative numbers, [edges] or [edges, 1]: each gets an alias table of 8 bytes
        an edge, which draws by weight read. "NAME" means every edge type that has it, "SRC:REL:DST:NAME" one. For a
        graph of files, a name may be a column, as for `graphwire import --weight`.
    time: names of times, which are features of numbers (int64, int32, float64 or float32), [edges] or [nodes]. The
        lists of each edge type that has the edge feature NAME are sorted by it; those of the others by the feature NAME
        of the source type's nodes, whose times parts then store for each edge, 4 or 8 bytes an edge ("NAME.source":
        in any case). Nodes with the feature get an index of it. "SRC:REL:DST:NAME" means one edge type. Edges of equal
        time stay in the order of their sources.
    assignment: the part of each node from another partitioner, instead of `method` and of the balances: [nodes]
        integers from 0 to num_parts - 1, or {node type: integers}; or the path of a file or a folder, or {node type:
        path}, as `graphwire partition --assignment` reads them (METIS, ParMETIS, DGL's and GraphStorm's pipelines).
        Row i is node i of the given graph.
    memory: bytes, or a text such as "20Gi", for edges, ids and arrays while the graph is made, besides 8 bytes for
        each node, and for the methods other than "metis" and for `assignment`; what exceeds it is in temporary files in
        the folder of `out`. None: 7 tenths of the free memory. The graph does not depend on it; the method that "auto"
        takes does, and where the memory is too small for its clusters, "lp" makes other parts, which may cut more
        edges.
    store: features of real numbers that are stored narrow, {name: "float16", "bfloat16" or "int8_row"}: readers fetch
        fewer bytes, and get the rows in their original type, or in the dtype that they choose. Rows are rounded to
        nearest, ties to even; "int8_row" has 8 bits for each number, and a scale and an offset for each row. "NAME"
        means every type that has it, "TYPE:NAME" a node type, "SRC:REL:DST:NAME" an edge type. Labels, times and
        weights stay as they are.
    replicate: copy rows of other parts that a part's trainers will want most into the part: a share of the rows of each
        node type, such as "5%", or the bytes of a part's replicas, such as "20Gi". replicate_by, fanouts, batch_size:
        which rows, as of graphwire.replicate, which has more arguments. fanouts are needed.
    progress: a bar of tqdm, if it is installed. None: on a terminal and in a notebook; True: always; False: never.
    whole: for the result of from_database: a folder that keeps the graph in one part. The next call with this folder
        takes over what depends on no changed table, and the result has the same bytes as without. It excludes weight,
        time, reverse and undirected. None: the graph in one part is not kept.
    resume: with `whole`: if the call is interrupted, steps that are complete stay in a folder next to it, and the next
        call with resume=True goes on from them.

    What the program reports besides goes to logging.getLogger("graphwire"): its log as warnings, and the steps and the
    balance of the parts at INFO.

    The feature "orig_id" holds the original ids: a node's id, and an edge's row or column, in the given graph. Of text
    ids, Graph.node_texts returns them.

    Raises RuntimeError with the program's error line, which names features and types as the caller does; ValueError if
    rows do not fit, and for a graph of files with the name of a file that is damaged or has a wrong value;
    FileExistsError if `out` has a file of another kind under the name of a file of the graph; FileNotFoundError without
    the program. Raises TypeError and ValueError for other invalid arguments, before it writes anything.
    """
    num_parts, out = checks.integer("num_parts", num_parts, 1), checks.path("out", out)
    whole = None if whole is None else checks.path("whole", whole)
    if not isinstance(name, str):
        raise TypeError(f"name is a text, not {name!r:.100}")
    c_text("name", name)
    trainers = checks.integer("num_trainers_per_machine", num_trainers_per_machine, 1)
    seed = checks.integer("seed", seed, 0, checks.U64)
    for word, value in (("method", method or "metis"), ("objtype", objtype)):
        if not isinstance(value, str):
            raise TypeError(f"{word} is a string, not {value!r}")
    if assignment is not None:
        checks.unused("assignment says where each node goes", method=method,
                      objtype=None if objtype == "cut" else objtype)
    method = method or "metis"
    if replicate is None:
        checks.unused("replicate says how many rows, and is missing",
                      replicate_by=None if replicate_by == "vip" else replicate_by, fanouts=fanouts,
                      batch_size=None if batch_size == 1000 else batch_size)
    given_flags = {name: checks.flag(name, value) for name, value in (
        ("reverse", reverse), ("undirected", undirected), ("transpose", transpose), ("balance_train", balance_train),
        ("balance_edges", balance_edges))}
    named, narrow = [*_named("weight", weight), *_named("time", time, "a feature")], _stored(store)
    near = [] if replicate is None else [
        "--replicate", amount("replicate", replicate), *sampling_words(replicate_by, fanouts, batch_size)]
    limit = [] if memory is None else ["--memory", str(checks.size("memory", memory, 1))]
    shown = _progress.wanted(progress)
    resume = checks.flag("resume", resume)
    if whole is None and resume:
        raise ValueError("resume: pass whole=, next to which complete steps are kept")
    if whole is not None and not isinstance(graph, Database):
        raise TypeError("whole: for the result of from_database")
    made_at_once = [word for word in ("reverse", "undirected") if given_flags[word]] + \
        [word for word, given in (("weight", weight), ("time", time)) if given]
    if whole is not None and made_at_once:
        raise ValueError(f"{made_at_once[0]}: with whole=, types are made one at a time: leave out {made_at_once[0]}")
    arrays, is_files = None, isinstance(graph, _OF_FILES) or getattr(graph, "import_words", None) is not None
    if is_files and (node_features or edge_features or num_nodes is not None):
        raise TypeError("node_features, edge_features and num_nodes belong to arrays, and this graph is in files")
    if not is_files:
        arrays = _completed(graph, node_features, edge_features, num_nodes)
        _check_times([time] if isinstance(time, str) else time, arrays)
    classes, assigned = _classes(balance_nodes, arrays), _assigned(assignment, arrays)
    balances = [name for name in ("balance_train", "balance_edges") if given_flags[name]]
    excluded = [*balances, *(["balance_nodes"] if classes else []),
                *(["num_trainers_per_machine"] if trainers > 1 else [])]
    if assigned and excluded:
        raise ValueError(f"assignment has the part of each node: leave out {excluded[0]}")
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with Scratch(out.absolute().parent, f".{out.name}") as folder:
        flags = [f"--{word}" for word in ("reverse", "undirected", "transpose") if given_flags[word]]
        source, names = folder / "whole", dict[str, str]()
        if whole is not None:
            source = whole
            _build_whole(graph, source, name, flags, limit, resume, shown)
        elif isinstance(graph, Database):
            words, names = graph.write(folder, shown, limit=limit)
        elif isinstance(graph, Tables):
            words, names = graph.write(folder, limit)
        elif isinstance(graph, Chunked):
            words, names = graph.write(folder)
        else:
            words, names = (graph.import_words, {}) if arrays is None else _written(arrays, folder)
        names[str(source)] = f"graph {name}"
        if whole is None:
            words = [*words, *named, *narrow, *limit]
            inputs = [*_paths(words), *(path for path in names if "/" in path)] if is_files else []
            try:
                run(["import", *words, "--edge-ids", *flags, "--name", name, "--out", source], names, shown)
            except ProgramError as error:
                if any(path in error.line for path in inputs):
                    raise ValueError(str(error)) from None
                raise
        flags = [f"--{word.replace('_', '-')}" for word in balances] + (narrow if whole is not None else [])
        for ntype, parts in assigned.items():
            file = parts
            if not isinstance(parts, str):
                file = folder / f"assignment-{len(flags)}.npy"
                np.save(file, parts)
                names[str(file)] = f"assignment of {ntype}"
            flags.append(f"--assignment={escaped(ntype) + '=' if ntype else ''}{file}")
        for ntype, numbers in classes.items():
            file = folder / f"classes-{len(flags)}.npy"
            np.save(file, numbers)
            flags.append(f"--balance-nodes={escaped(ntype)}={file}")
            names[str(file)] = f"balance_nodes of {ntype}"
        if method == "kaminpar":
            flags += ["--python", sys.executable]
        if assigned or method != "metis":
            flags += limit
        if trainers > 1:
            flags += ["--num-trainers-per-machine", str(trainers)]
        beside = out.is_dir() and not _holds_graph(out)
        made = folder / "parts" if beside else out
        if out.exists() and not beside:
            flags.append("--replace")
        names[str(made)] = str(out)
        run(["partition", source / f"{name}.json", "--num-parts", num_parts,
             *([] if assigned else ["--method", method, "--objtype", objtype]), "--seed", seed, *flags, *near, "--out",
             made],
            names, shown)
        if beside:
            _move_into(out, made)
    if isinstance(graph, Database):
        graph.write_record(out / f"{name}.json")
    return out / f"{name}.json"
