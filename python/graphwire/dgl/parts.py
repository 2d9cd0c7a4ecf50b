"""Converts a folder that DGL's own dgl.distributed.partition_graph has written to a graph of Graphwire.

    graphwire.dgl.convert_parts("data/ogb-product.json", "parts/")

    DGL's JSON and parts -> the complete graph as Arrays -> graphwire.partition_graph

DGL's format:

    JSON      graph_name; num_parts; node_map and edge_map: {type: [[begin, end] of each part]}, in ids that number all
              types of part 0 first; before DGL 0.6, a list of the ranges' ends. ntypes, etypes: {name: number}; the
              name of an edge type is a relation before DGL 1.0, and "source:relation:destination" since.
    part-N    graph.dgl: the part's nodes and edges, and nodes of other parts around them, which inner_node and
              inner_edge distinguish. node_feat.dgl and edge_feat.dgl: "type/name" of the part's own rows.

DGL must be installed, because it reads the files; each version reads those of earlier versions. "orig_id" of a node is
its id in DGL's parts, within its type.

Errors: PartsError; MissingError without DGL; those of partition_graph.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphwire
from graphwire._base.keywords import keywords
from graphwire._files.graph_arrays import HOMOGENEOUS, Arrays
from graphwire._files.partition import partition_graph
from graphwire._files.pickles import load_torch
from graphwire._files.reading import reading
from graphwire._files.replicas import Fanouts
from graphwire.dgl import host
from graphwire.dgl.distributed import later_rows
from graphwire.dgl.types import Canonical, Types

Ranges = dict[str, np.ndarray]  # {type: [parts, 2]}


class PartsError(ValueError):
    """The folder does not hold DGL's parts, or cannot be read. The text gives the cause."""

    __module__ = "graphwire.dgl"


def _ranges(config: dict[str, Any], word: str, only: str) -> Ranges:
    """Reads node_map or edge_map. only: the type of a list without types. Raises PartsError."""
    given = config[word]
    if isinstance(given, str):
        raise PartsError(f"{word} is a file: DGL has not renumbered these parts; partition the graph again with "
                         "reshuffle=True")
    if isinstance(given, list):
        given = {only: given}
    found = {}
    for kind, ranges in given.items():
        rows = np.asarray(ranges, np.int64)
        if rows.ndim == 1:  # only the ends of the ranges
            rows = np.stack([np.concatenate([[0], rows[:-1]]), rows], 1)
        if rows.shape != (config["num_parts"], 2) or (rows[:, 0] > rows[:, 1]).any():
            raise PartsError(f"{word}: {kind} has no two ends for each of {config['num_parts']} parts")
        found[kind] = rows
    return found


def _config(path: Path) -> dict[str, Any]:
    with reading(path, PartsError, what="no JSON of DGL's parts"):
        found: dict[str, Any] = json.loads(path.read_text() if path.is_file() else "")  # a pipe might never end
        for word in ("graph_name", "num_parts", "node_map", "edge_map", "part-0"):
            found[word]
        if not isinstance(found["graph_name"], str) or type(found["num_parts"]) is not int or found["num_parts"] < 1:
            raise ValueError("graph_name is a text, and num_parts a number above 0")
        return found


def _named(kind: str) -> Canonical:
    """The canonical edge type for the name of a type that has no edges."""
    if kind.count(":") == 2:
        source, relation, target = kind.split(":")
        return source, relation, target
    return HOMOGENEOUS


class _Numbers:
    """Translates homogeneous ids of DGL's parts to ids within a type."""

    def __init__(self, ranges: Ranges):
        self.ranges = ranges
        self.counts = {kind: int((rows[:, 1] - rows[:, 0]).sum()) for kind, rows in ranges.items()}
        self.begins = {kind: np.cumsum(rows[:, 1] - rows[:, 0]) - (rows[:, 1] - rows[:, 0])
                       for kind, rows in ranges.items()}
        flat = sorted((int(rows[part, 0]), int(rows[part, 1]), kind, part)
                      for kind, rows in ranges.items() for part in range(len(rows)) if rows[part, 0] < rows[part, 1])
        self._starts = np.array([row[0] for row in flat], np.int64)
        self._ends = np.array([row[1] for row in flat], np.int64)
        self._shift = np.array([self.begins[kind][part] - start for start, _, kind, part in flat], np.int64)
        self._kinds = [kind for _, _, kind, _ in flat]

    def of(self, ids: np.ndarray) -> tuple[str, np.ndarray]:
        """(type, ids within the type) of homogeneous ids, which must be of one type. Raises PartsError."""
        slot = np.searchsorted(self._starts, ids, side="right") - 1
        kinds = {self._kinds[number] for number in np.unique(slot)}
        if len(kinds) != 1 or (slot < 0).any() or (ids >= self._ends[slot]).any():
            raise PartsError(f"edges of one type end at nodes of {len(kinds)} types, or at none of the ranges")
        return kinds.pop(), ids + self._shift[slot]


def _relation(kind: str) -> str:
    """The relation of an edge type's name, in the form of DGL 1.0 or an earlier one."""
    return kind.split(":")[1] if kind.count(":") == 2 else kind


class _Parts:
    """Collects the parts into one graph: read() for each part, then whole()."""

    def __init__(self, path: Path):
        self.path, self.config = path, _config(path)
        self.nodes = _Numbers(_ranges(self.config, "node_map", "_N"))
        self.edges = _Numbers(_ranges(self.config, "edge_map", "_E"))
        self.arrays = Arrays()
        self.arrays.counts = dict(self.nodes.counts)
        self._ends: dict[str, tuple[np.ndarray, np.ndarray]] = {
            kind: (np.empty(count, np.int64), np.empty(count, np.int64)) for kind, count in self.edges.counts.items()}
        self._types: dict[str, Canonical] = {}
        self._columns: dict[tuple[bool, str, str], np.ndarray] = {}

    def _file(self, part: int, word: str) -> str:
        return os.path.join(self.path.parent, self.config[f"part-{part}"][word])

    def read(self, dgl: Any, part: int) -> None:
        """Reads one part into the arrays. Raises PartsError."""
        utils = __import__("dgl.data.utils", fromlist=["load_tensors"])
        graph = dgl.load_graphs(self._file(part, "part_graph"))[0][0]
        ids, edge_ids = graph.ndata[dgl.NID].numpy(), graph.edata[dgl.EID].numpy()
        inner = graph.edata["inner_edge"].numpy().astype(bool)
        src, dst = (ends.numpy()[inner] for ends in graph.edges(order="eid"))
        edge_ids = edge_ids[inner]
        for kind, ranges in self.edges.ranges.items():
            begin, end = ranges[part]
            some = (edge_ids >= begin) & (edge_ids < end)
            self._place(kind, part, edge_ids[some] - begin, (ids[src[some]], ids[dst[some]]), int(end - begin))
        for of_edges, word in ((False, "node_feats"), (True, "edge_feats")):
            numbers = self.edges if of_edges else self.nodes
            for name, rows in utils.load_tensors(self._file(part, word)).items():
                self._column(of_edges, numbers, part, name, rows.numpy())

    def _place(self, kind: str, part: int, places: np.ndarray, ends: tuple[np.ndarray, np.ndarray], count: int) -> None:
        if len(places) != count or len(np.unique(places)) != count:
            raise PartsError(f"{self._file(part, 'part_graph')}: {len(places)} edges of {kind}, and not {count}")
        if not count:
            return
        (source, src), (target, dst) = self.nodes.of(ends[0]), self.nodes.of(ends[1])
        etype = (source, _relation(kind), target)
        if self._types.setdefault(kind, etype) != etype:
            raise PartsError(f"{kind} leads from {source} to {target} in part {part}, and elsewhere in others")
        at = self.edges.begins[kind][part] + places
        self._ends[kind][0][at], self._ends[kind][1][at] = src, dst

    def _column(self, of_edges: bool, numbers: _Numbers, part: int, name: str, rows: np.ndarray) -> None:
        kind, _, name = name.rpartition("/")
        kind = kind or next(iter(numbers.ranges))
        if kind not in numbers.ranges:  # an edge type's name may be in the other form
            kind = next((word for word in numbers.ranges if _relation(word) == _relation(kind)), kind)
        if kind not in numbers.ranges:
            raise PartsError(f"part {part}: {name} is of {kind}, which the parts do not have")
        begin, end = numbers.ranges[kind][part]
        if len(rows) != end - begin:
            raise PartsError(f"part {part}: {name} of {kind} has {len(rows)} rows, and not {end - begin}")
        whole = self._columns.setdefault((of_edges, kind, name), np.empty(
            (numbers.counts[kind], *rows.shape[1:]), rows.dtype))
        whole[numbers.begins[kind][part]:][:len(rows)] = rows

    def whole(self) -> Arrays:
        for kind, ends in self._ends.items():
            self.arrays.add_edges(self._types.setdefault(kind, _named(kind)), *ends)
        for (of_edges, kind, name), rows in self._columns.items():
            if name == "orig_id":
                name = "dgl_orig_id"
            if of_edges:
                self.arrays.edge_features[self._types[kind], name] = rows
            else:
                self.arrays.node_features[kind, name] = rows
        return self.arrays


class _Whole:
    """A graph in the form of a dataset, which partition_graph accepts."""

    def __init__(self, arrays: Arrays):
        self.arrays = arrays


@keywords
def convert_parts(part_config: str | os.PathLike, out: str | os.PathLike, *, name: str | None = None,
                  num_parts: int | None = None, method: str | None = None,
                  node_features: Mapping[Any, Any] | None = None,
                  edge_features: Mapping[Any, Any] | None = None, num_nodes: int | Mapping[str, int] | None = None,
                  balance_train: bool = False, balance_nodes: Any = None, balance_edges: bool = False,
                  num_trainers_per_machine: int = 1,
                  objtype: str = "cut", reverse: bool = False, undirected: bool = False, transpose: bool = True,
                  seed: int = 0, weight: str | Sequence[str] = (), time: str | Sequence[str] = (),
                  assignment: Any = None, memory: int | str | None = None,
                  store: Mapping[str, Any] | None = None, replicate: int | str | None = None,
                  replicate_by: str = "vip", fanouts: Fanouts | None = None, batch_size: int = 1000,
                  progress: bool | None = None) -> Path:
    """Converts parts that DGL wrote to a graph of Graphwire. Returns the path of its JSON.

    part_config: DGL's JSON; or the JSON of Graphwire's parts, with node_feat.dgl and edge_feat.dgl that a program wrote
        into them (later_rows.py), which needs no dgl.
    out: the folder of the new parts. If node_mapping.pt or edge_mapping.pt is in the folder of part_config, as
        GraphStorm writes them, OUT gets the mappings of the new ids.
    name, num_parts: None: as in part_config.
    transpose: also store edges by source, as DGL does.

    The other arguments are those of graphwire.partition_graph.

    Raises PartsError; MissingError if dgl is not installed; and the errors of graphwire.partition_graph.
    """
    config = _config(Path(part_config))
    arrays = later_rows.whole(part_config) if "format" in config else _read(Path(part_config))
    path = partition_graph(
        _Whole(arrays), name or config["graph_name"], num_parts or config["num_parts"], out,
        method=method, node_features=node_features, edge_features=edge_features, num_nodes=num_nodes,
        balance_train=balance_train, balance_nodes=balance_nodes, balance_edges=balance_edges,
        num_trainers_per_machine=num_trainers_per_machine, objtype=objtype, reverse=reverse, undirected=undirected,
        transpose=transpose, seed=seed, weight=weight, time=time, assignment=assignment, memory=memory, store=store,
        replicate=replicate, replicate_by=replicate_by, fanouts=fanouts, batch_size=batch_size, progress=progress)
    _write_mappings(Path(part_config).parent, path)
    return path


def _read(path: Path) -> Arrays:
    """Reads DGL's parts. Raises PartsError, and MissingError without dgl."""
    with reading(path, PartsError):
        parts = _Parts(path)
    dgl = host.dgl()
    if getattr(dgl, "is_graphwire_subset", False):
        raise host.missing(f"the format of {parts.config['part-0'].get('part_graph')}")
    for part in range(parts.config["num_parts"]):
        with reading(path.parent / f"part{part}", PartsError):
            parts.read(dgl, part)
    return parts.whole()


def _write_mappings(before: Path, path: Path) -> None:
    """Writes node_mapping.pt and edge_mapping.pt for the ids of a DistGraph: for each new id, the entry that the
    mapping in the folder `before` has for the old one. Edge types that the new graph has in addition get no entry."""
    kinds = [kind for kind in ("node", "edge") if (before / f"{kind}_mapping.pt").is_file()]
    if not kinds:
        return
    from graphwire.dgl.distributed.partition import original_ids

    with graphwire.open(path) as graph:
        types = Types.of(graph)
    every: dict[str, dict[Any, torch.Tensor]] = dict(zip(("node", "edge"), original_ids(path, types)))
    for kind in kinds:
        ids = every[kind]
        with reading(before / f"{kind}_mapping.pt", PartsError, what="no mapping of the parts' ids"):
            given = load_torch(before / f"{kind}_mapping.pt")
            if isinstance(given, Mapping):
                found: Any = {name: rows[ids[_kind(types, kind, name)]] for name, rows in given.items()}
            else:
                found = given[next(iter(ids.values()))]
        torch.save(found, path.parent / f"{kind}_mapping.pt")


def _kind(types: Types, kind: str, name: Any) -> Any:
    return types.ntypes[types.get_ntype_id(name)] if kind == "node" else types.to_canonical_etype(name)
