"""Divides a graph in memory into parts on disk.

    graphwire.partition_graph((src, dst), "web", 4, "parts/", node_features={"feat": x})

    arrays -> .npy files in a temporary folder -> `graphwire import` -> `graphwire partition` -> the folder of parts

The graphwire program does the work (_program.py finds it). The temporary folder is made where the result goes, and is
always removed.

Errors: RuntimeError with the program's last line; ValueError and TypeError; FileNotFoundError without the program.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphwire import _checks
from graphwire._program import program
from graphwire._scratch import Scratch, descriptors

Canonical = tuple[str, str, str]
HOMOGENEOUS: Canonical = ("_N", "_E", "_N")
_INTERNAL = ("_ID", "_TYPE")  # columns that DGL adds


def _in_arguments(line: str, names: Mapping[str, str]) -> str:
    """Translates an error line of the program to the caller's terms: arguments instead of options, and the caller's
    data instead of temporary files. names: {file: what it holds}."""
    for path in sorted(names, key=len, reverse=True):
        line = line.replace(path, names[path])
    line = re.sub(r'feature "[^"]*": (?=(node|edge) feature )', "", line)  # the option names the feature again
    line = re.sub(r"--(node-feature|node-mask|edge-feature|edges|num-nodes|name|weight): ", "", line)
    line = line.replace("--edge-feature", "edge_features")
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda option: option.group(1).replace("-", "_"), line)


def _run(words: Sequence[Any], names: Mapping[str, str]) -> None:
    done = subprocess.run([program(), *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                          pass_fds=descriptors())
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(_in_arguments(lines[-1], names) if lines else
                           f"graphwire {words[0]} ended with {done.returncode}")


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    return np.asarray(values)


class Arrays:
    """A graph as arrays.

    counts: {node type: number of nodes}.
    edges: {edge type: (sources, destinations)}, int64 [edges] each.
    node_features: {(node type, name): [nodes, …]}. edge_features: {(edge type, name): [edges, …]}.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.edges: dict[Canonical, tuple[np.ndarray, np.ndarray]] = {}
        self.node_features: dict[tuple[str, str], np.ndarray] = {}
        self.edge_features: dict[tuple[Canonical, str], np.ndarray] = {}

    def add_edges(self, etype: Canonical, src: Any, dst: Any) -> None:
        pair = _array(src).reshape(-1), _array(dst).reshape(-1)
        if len(pair[0]) != len(pair[1]):
            raise ValueError(f"{':'.join(etype)}: {len(pair[0])} sources and {len(pair[1])} destinations")
        for ntype, ids in zip((etype[0], etype[2]), pair):
            if ids.dtype.kind not in "iu":
                raise TypeError(f"{':'.join(etype)}: ids are integers, not {ids.dtype}")
            self.counts[ntype] = max(self.counts.get(ntype, 0), int(ids.max()) + 1 if len(ids) else 0)
        self.edges[etype] = (pair[0].astype(np.int64), pair[1].astype(np.int64))

    def add_columns(self, nodes: Mapping[Any, Mapping[str, Any]], edges: Mapping[Any, Mapping[str, Any]]) -> None:
        for ntype, columns in nodes.items():
            self.node_features.update({(ntype, name): _array(rows) for name, rows in columns.items()})
        for etype, columns in edges.items():
            self.edge_features.update({(etype, name): _array(rows) for name, rows in columns.items()})


def _of_dgl(graph: Any) -> Arrays:
    arrays = Arrays()
    for etype in graph.canonical_etypes:
        arrays.add_edges(etype, *graph.edges(etype=etype, order="eid"))
    arrays.counts = {ntype: int(graph.num_nodes(ntype)) for ntype in graph.ntypes}
    arrays.add_columns(
        {ntype: {name: rows for name, rows in graph.nodes[ntype].data.items() if name not in _INTERNAL}
         for ntype in graph.ntypes},
        {etype: {name: rows for name, rows in graph.edges[etype].data.items() if name not in _INTERNAL}
         for etype in graph.canonical_etypes})
    return arrays


def _of_pyg(data: Any) -> Arrays:
    """Converts Data and HeteroData. Attributes without a row for each node or edge are left out."""
    arrays = Arrays()
    stores = data.edge_stores
    for store in stores:
        etype = getattr(store, "_key", None) or HOMOGENEOUS
        arrays.add_edges(etype, store.edge_index[0], store.edge_index[1])
    for store in data.node_stores:
        ntype = getattr(store, "_key", None) or "_N"
        arrays.counts[ntype] = int(store.num_nodes)
    whole = len(data.node_stores) == 1 and getattr(data.node_stores[0], "_key", None) is None
    for store in data.node_stores:
        ntype = getattr(store, "_key", None) or "_N"
        arrays.add_columns({ntype: {name: store[name] for name in store.keys()
                                    if hasattr(store[name], "detach") and store.is_node_attr(name)}}, {})
    for store in stores:
        etype = getattr(store, "_key", None) or HOMOGENEOUS
        arrays.add_columns({}, {etype: {name: store[name] for name in store.keys() if name != "edge_index" and hasattr(
            store[name], "detach") and store.is_edge_attr(name) and not (whole and store.is_node_attr(name))}})
    return arrays


def _of_matrix(matrix: Any) -> Arrays:
    """Converts a SciPy matrix: an element in row i and column j is the edge from i to j. If not all values are 1, they
    become the edge feature "weight"."""
    arrays, coo = Arrays(), matrix.tocoo()
    arrays.add_edges(HOMOGENEOUS, coo.row, coo.col)
    arrays.counts["_N"] = int(max(matrix.shape))
    if not np.all(coo.data == 1):
        arrays.add_columns({}, {HOMOGENEOUS: {"weight": np.asarray(coo.data, np.float32)}})
    return arrays


def _of_numpy(graph: Any) -> Arrays:
    """Converts (src, dst), an array of pairs, or {(source type, relation, destination type): either of these}."""
    arrays = Arrays()
    given = graph if isinstance(graph, Mapping) else {HOMOGENEOUS: graph}
    for etype, edges in given.items():
        if isinstance(edges, (tuple, list)) and len(edges) == 2:
            arrays.add_edges(etype, *edges)
            continue
        pairs = _array(edges)
        if pairs.ndim != 2 or 2 not in pairs.shape:
            raise ValueError(f"edges are (src, dst), [edges, 2] or [2, edges], not {list(pairs.shape)}")
        arrays.add_edges(etype, *(pairs if pairs.shape[0] == 2 else pairs.T))
    return arrays


def _copied(arrays: Arrays) -> Arrays:
    """Copies the dictionaries of a dataset's Arrays, so that names can be added. The rows are shared."""
    made = Arrays()
    for name, value in vars(arrays).items():
        setattr(made, name, dict(value))
    return made


def arrays_of(graph: Any) -> Arrays:
    """The Arrays of a graph of DGL or of Graphwire's subset of it, PyTorch Geometric's Data or HeteroData, a dataset, a
    SciPy matrix, or NumPy arrays. Raises ValueError and TypeError."""
    if isinstance(getattr(graph, "arrays", None), Arrays):
        return _copied(graph.arrays)
    if hasattr(graph, "canonical_etypes"):
        return _of_dgl(graph)
    if hasattr(graph, "edge_stores"):
        return _of_pyg(graph)
    if hasattr(graph, "tocoo"):
        return _of_matrix(graph)
    return _of_numpy(graph)


def _written(arrays: Arrays, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Writes the arrays to files in `folder`. Returns the arguments of `graphwire import`, and {file: what it holds}
    for error texts."""
    words: list[str] = []
    names: dict[str, str] = {}

    def save(array: np.ndarray, what: str) -> str:
        path = folder / f"{len(words)}.npy"
        np.save(path, np.ascontiguousarray(array))
        names[str(path)] = what
        return str(path)

    for ntype, count in arrays.counts.items():
        words += ["--num-nodes", f"{ntype}={count}"]
    for etype, (src, dst) in arrays.edges.items():
        of = ":".join(etype)
        words += ["--edges", f"{of}={save(np.stack([src, dst], 1), f'edges of {of}')}"]
    for (ntype, name), rows in arrays.node_features.items():
        if len(rows) != arrays.counts[ntype]:
            raise ValueError(f"{name}: {len(rows)} rows for {arrays.counts[ntype]} nodes of {ntype}")
        mask = rows.dtype == np.bool_ and rows.ndim == 1
        words += ["--node-mask" if mask else "--node-feature",
                  f"{ntype}:{name}={save(rows, f'node feature {name} of {ntype}')}"]
    for (etype, name), rows in arrays.edge_features.items():
        of = ":".join(etype)
        if len(rows) != len(arrays.edges[etype][0]):
            raise ValueError(f"{name}: {len(rows)} rows for {len(arrays.edges[etype][0])} edges of {of}")
        rows = rows.astype(np.uint8) if rows.dtype == np.bool_ else rows
        words += ["--edge-feature", f"{of}:{name}={save(rows, f'edge feature {name} of {of}')}"]
    return words, names


def _typed(features: Mapping[Any, Any] | None, only: Any) -> dict[Any, Mapping[str, Any]]:
    """Features as {type: {name: rows}}; {name: rows} belongs to the type `only`."""
    if not features:
        return {}
    if all(isinstance(rows, Mapping) for rows in features.values()):
        return dict(features)
    return {only: features}


def _weights(weight: str | Sequence[str]) -> list[str]:
    """The names of weights. Raises TypeError and ValueError."""
    names = [weight] if isinstance(weight, str) else weight
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f'weight is a name of an edge feature, "NAME" or "SRC:REL:DST:NAME", or a list, not {weight!r}')
    if not all(names):
        raise ValueError("weight: a name has at least one character")
    return list(names)


def _check_bools(arrays: Arrays, names: Sequence[str]) -> None:
    """Raises ValueError if a weight is bool. The program would not see it, because bools are passed as uint8."""
    for (etype, name), rows in arrays.edge_features.items():
        of = ":".join(etype)
        if rows.dtype == np.bool_ and (name in names or f"{of}:{name}" in names):
            raise ValueError(f"weight: edge feature {name} of {of} is bool: a weight is one number for each edge")


def _completed(graph: Any, node_features: Mapping[Any, Any] | None, edge_features: Mapping[Any, Any] | None,
               num_nodes: int | Mapping[str, int] | None) -> Arrays:
    """The graph's arrays, with the given features and numbers of nodes added."""
    arrays = arrays_of(graph)
    if num_nodes is not None:
        given = num_nodes if isinstance(num_nodes, Mapping) else {next(iter(arrays.counts)): num_nodes}
        for ntype, count in given.items():
            arrays.counts[ntype] = _checks.integer("num_nodes", count, 0, 2**63 - 1)
    arrays.add_columns(_typed(node_features, next(iter(arrays.counts))),
                       _typed(edge_features, next(iter(arrays.edges))))
    return arrays


def partition_graph(graph: Any, name: str, num_parts: int, out: str | os.PathLike, *, method: str = "metis",
                    node_features: Mapping[Any, Any] | None = None, edge_features: Mapping[Any, Any] | None = None,
                    num_nodes: int | Mapping[str, int] | None = None, balance_train: bool = False,
                    balance_edges: bool = False, num_trainers_per_machine: int = 1, objtype: str = "cut",
                    reverse: bool = False, undirected: bool = False, transpose: bool = False, seed: int = 0,
                    weight: str | Sequence[str] = ()) -> Path:
    """Divides a graph into parts, writes them to a folder, and returns the path of their JSON, out/name.json.

    graph: a graph of DGL, PyTorch Geometric (Data, HeteroData), SciPy or graphwire.datasets; or (src, dst), an array of
        pairs, or {(source type, relation, destination type): either of these}.
    name: the graph's name.
    num_parts: the number of parts.
    out: the folder, which is created. An existing graph in it is replaced; other files in the folder stay.
    method: "metis" or "random".
    node_features, edge_features: features to add to those of the graph, {name: rows} or {type: {name: rows}}.
    num_nodes: the number of nodes, or {node type: number}, if it exceeds the greatest id plus 1.
    balance_train: give each part about as many nodes of the feature train_mask.
    balance_edges: give each part about as many edges.
    num_trainers_per_machine: the number of pieces that each part is divided into, one for each trainer.
    objtype: what METIS minimizes, "cut" or "vol".
    reverse, undirected, transpose: as the options of `graphwire import`.
    seed: of the partition.
    weight: names of edge features of non-negative numbers, [edges] or [edges, 1]: each gets an alias table of 8 bytes
        an edge, which draws by weight read. "NAME" means every edge type that has it, "SRC:REL:DST:NAME" one. For a
        graph of files, a name may be a column, as for `graphwire import --weight`.

    The feature "orig_id" holds the original ids: a node's id, and an edge's row or column, in the given graph.

    Raises RuntimeError with the program's error line, which names features and types as the caller does; ValueError if
    rows do not fit; FileNotFoundError without the program. Raises TypeError and ValueError for other invalid arguments,
    before it writes anything.
    """
    num_parts = _checks.integer("num_parts", num_parts, 1)
    trainers = _checks.integer("num_trainers_per_machine", num_trainers_per_machine, 1)
    seed = _checks.integer("seed", seed, 0, _checks.U64)
    for word, value in (("method", method), ("objtype", objtype)):
        if not isinstance(value, str):
            raise TypeError(f"{word} is a string, not {value!r}")
    given_flags = {name: _checks.flag(name, value) for name, value in (
        ("reverse", reverse), ("undirected", undirected), ("transpose", transpose), ("balance_train", balance_train),
        ("balance_edges", balance_edges))}
    weights = _weights(weight)
    arrays = None
    if getattr(graph, "import_words", None) is None:
        arrays = _completed(graph, node_features, edge_features, num_nodes)
        _check_bools(arrays, weights)
    out = Path(out)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with Scratch(out.absolute().parent, f".{out.name}") as folder:
        flags = [f"--{word}" for word in ("reverse", "undirected", "transpose") if given_flags[word]]
        words, names = (graph.import_words, {}) if arrays is None else _written(arrays, folder)
        names[str(folder / "whole")] = f"graph {name}"
        words = [*words, *(f"--weight={of_edges}" for of_edges in weights)]
        _run(["import", *words, "--edge-ids", *flags, "--name", name, "--out", folder / "whole", "--quiet"], names)
        flags = [f"--{word.replace('_', '-')}" for word in ("balance_train", "balance_edges") if given_flags[word]]
        if trainers > 1:
            flags += ["--num-trainers-per-machine", str(trainers)]
        if out.exists():
            flags.append("--replace")
        _run(["partition", folder / "whole", "--num-parts", num_parts, "--method", method, "--objtype", objtype,
              "--seed", seed, *flags, "--out", out], names)
    return out / f"{name}.json"
