"""Converts a mini-batch to PyTorch Geometric's Data or HeteroData, and these to a graph.

to_pyg: Batch -> Subgraph -> Data or HeteroData. from_pyg: Data or HeteroData -> partition_graph -> an opened Graph.

Errors: ValueError for names that collide; from_pyg raises those of partition_graph and open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import torch
from torch_geometric.data import Data, HeteroData

from graphwire._base.keywords import keywords
from graphwire._base.scratch import Scratch
from graphwire._base.trace import traced
from graphwire._files.partition import partition_graph
from graphwire._files.replicas import Fanouts
from graphwire._graph.graph import Graph
from graphwire._graph.graph import open as open_graph
from graphwire._train.batch import Batch
from graphwire.pyg.names import Attributes, Names, fill
from graphwire.pyg.rows import stacked
from graphwire.pyg.subgraph import Drawn, Subgraph, triple


@keywords
@traced("to_pyg")
def to_pyg(batch: Batch, attributes: Attributes | None = None) -> Union[Data, HeteroData]:
    """Converts a mini-batch. Batch.to_pyg documents the arguments, the result and the errors."""
    drawn = Drawn.of(batch)
    seed_rows = _seed_rows(batch, drawn)
    found = drawn or Subgraph(batch, seed_rows, batch.etypes)
    hetero = len(found.num_nodes) > 1 or len(found.ends) > 1
    data: Any = HeteroData() if hetero else Data()
    names = Names(attributes, data)
    for ntype, counts in found.num_nodes.items():
        store = data.get_node_store(ntype) if hetero else data
        fill(store, {"num_nodes": sum(counts), "n_id": found.nodes(ntype), "num_sampled_nodes": counts})
        if batch.groups is not None:
            names.own(store, "batch", found.node_rows(ntype, batch.groups[ntype]))
        for name, rows in batch.features.get(ntype, {}).items():
            names.put(store, "features", name, found.node_rows(ntype, rows))
    for etype, ends in found.ends.items():
        store = data.get_edge_store(*etype) if hetero else data
        ids = found.edges(etype)
        fill(store, {"edge_index": ends, **({} if ids is None else {"e_id": ids}),
                     "num_sampled_edges": found.num_edges[etype]})
        for name, rows in found.features_of_edges(etype):
            names.put(store, "edge_features", name, rows)
    _add_seeds(data, batch, seed_rows, hetero, names)
    return data


def _seed_rows(batch: Batch, drawn: Drawn | None) -> dict[str, torch.Tensor]:
    """The rows of seed nodes, {node type: [seeds]}; {} for a batch of edges."""
    if batch.seed_rows is None:
        return {}
    if isinstance(batch.seed_rows, dict):
        return batch.seed_rows
    counts = batch.blocks[-1].num_dst if drawn is None else {ntype: some[0] for ntype, some in drawn.num_nodes.items()}
    ends = [ntype for ntype, count in counts.items() if count]
    return {ends[0]: batch.seed_rows} if ends else {}


def _add_seeds(data: Any, batch: Batch, seed_rows: Mapping[str, Any], hetero: bool, names: Names) -> None:
    if batch.seed_rows is None:
        _add_links(data, batch, hetero, names)
        return
    several = isinstance(batch.seed_rows, dict)
    for ntype, rows in seed_rows.items():
        store = data[ntype] if hetero else data
        store.batch_size = len(rows)
        if batch.seed_times is not None:
            names.own(store, "seed_time", torch.as_tensor(batch.seed_times[ntype] if several else batch.seed_times))
        for name, labels in (batch.labels[ntype] if several else batch.labels).items():
            names.put(store, "labels", name, torch.as_tensor(labels))


def _add_links(data: Any, batch: Batch, hetero: bool, names: Names) -> None:
    """Adds the ends of seed edges under LinkLoader's names. The ends' rows are the same in the batch and in Data."""
    parts: tuple[Any, ...] = (batch.seeds, batch.src_rows, batch.dst_rows, batch.negative_rows, batch.labels,
                              batch.seed_times)
    if batch.edge_type is not None:
        parts = tuple({batch.edge_type: part} for part in parts)
    for etype in parts[0]:
        store = data[triple(etype)] if hetero else data
        ids, src, dst, negatives = (part[etype] for part in parts[:4])
        store.input_id, store.edge_label_index = torch.as_tensor(ids), stacked(src, dst)
        if negatives.shape[1]:
            store.negative_index = torch.as_tensor(negatives)
        if batch.seed_times is not None:
            names.own(store, "edge_label_time", torch.as_tensor(parts[5][etype]))
        for name, labels in parts[4].get(etype, {}).items():
            names.put(store, "labels", name, torch.as_tensor(labels))


@keywords
def from_pyg(data: Union[Data, HeteroData], out: str | os.PathLike | None = None, *, name: str = "graph",
             num_parts: int = 1, method: str = "random", node_features: Mapping[Any, Any] | None = None,
             edge_features: Mapping[Any, Any] | None = None, num_nodes: int | Mapping[str, int] | None = None,
             balance_train: bool = False, balance_nodes: Any = None, balance_edges: bool = False,
             num_trainers_per_machine: int = 1,
             objtype: str = "cut", reverse: bool = False, undirected: bool = False, transpose: bool = False,
             seed: int = 0, weight: str | Sequence[str] = (), time: str | Sequence[str] = (),
             assignment: Any = None, memory: int | str | None = None,
             store: Mapping[str, Any] | None = None, replicate: int | str | None = None,
             replicate_by: str = "vip", fanouts: Fanouts | None = None, batch_size: int = 1000,
             progress: bool | None = None) -> Graph:
    """Makes a graph from PyG's data in memory: divides it into parts, writes them to a folder, and opens the graph.

    data: Data or HeteroData.
    out: the folder of the parts. None: a temporary folder, which is removed with the graph, and at the latest when this
        process ends, however it ends. Forked children keep the folder until they end.
    The other arguments are those of graphwire.partition_graph.

    Every attribute with a row for each node or edge becomes a feature, with its dtype, along the axis that PyG
    concatenates; each column of a TensorFrame becomes the feature "tf.COLUMN". Lists of texts of nodes become texts.
    One UserWarning names all other attributes, and why they are no features.

    In one part, nodes keep their ids, and PyG's loaders return the edges' original ids. In several parts, the features
    "orig_id" hold the original ids.

    Raises ValueError for data without edge types, and for a node type whose attributes leave the number of nodes open;
    and the errors of graphwire.partition_graph and graphwire.open.
    """

    def parts(folder: str | os.PathLike) -> Path:
        return partition_graph(
            data, name, num_parts, folder, method=method, node_features=node_features, edge_features=edge_features,
            num_nodes=num_nodes, balance_train=balance_train, balance_nodes=balance_nodes, balance_edges=balance_edges,
            num_trainers_per_machine=num_trainers_per_machine, objtype=objtype, reverse=reverse, undirected=undirected,
            transpose=transpose, seed=seed, weight=weight, time=time, assignment=assignment, memory=memory, store=store,
            replicate=replicate, replicate_by=replicate_by, fanouts=fanouts, batch_size=batch_size, progress=progress)

    if out is not None:
        return open_graph(parts(out))
    scratch = Scratch()
    try:
        graph = open_graph(parts(scratch.path / "parts"))
        graph._scratch = scratch
    except BaseException:
        scratch.close()
        raise
    return graph
