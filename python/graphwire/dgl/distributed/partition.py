"""dgl.distributed.partition_graph, load_partition_book, load_partition: of graphs that lie on disk.

Parts are in Graphwire's format (docs/FORMAT.md), which keeps no halo: num_hops means nothing here. graph_formats says
whether out-edges are kept besides in-edges.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphwire
from graphwire import _checks
from graphwire import partition as of_arrays
from graphwire._native import c_text, check, lib
from graphwire.dgl import host
from graphwire.dgl.distributed.book import GraphPartitionBook
from graphwire.dgl.distributed.user_edges import UserEdges
from graphwire.dgl.types import Canonical, Types, _canonical


def _balances_train(g: Any, balance_ntypes: Any) -> bool:
    """Whether nodes are balanced by the training mask, which is what is there to balance by."""
    if balance_ntypes is None:
        return False
    given = balance_ntypes if isinstance(balance_ntypes, dict) else {g.ntypes[0]: balance_ntypes}
    for ntype, kinds in given.items():
        columns = g.nodes[ntype].data
        if "train_mask" not in columns or not torch.equal(
                torch.as_tensor(kinds).to(torch.int64), columns["train_mask"].to(torch.int64)):
            raise NotImplementedError('partition_graph: balance_ntypes is the nodes\' column "train_mask", or None')
    return True


def _keeps_out_edges(graph_formats: Any) -> bool:
    """Whether out-edges are asked for: by all formats, None, or by csr among those named."""
    if graph_formats is None:
        return True
    return "csr" in ([graph_formats] if isinstance(graph_formats, str) else list(graph_formats))


def _orig(path: Path, types: Types) -> tuple[dict[str, torch.Tensor], dict[Canonical, torch.Tensor]]:
    """Original ids of nodes and edges by the ids that a DistGraph has."""
    with graphwire.open(path) as graph:
        users = UserEdges(graph)
        nodes = {ntype: torch.as_tensor(graph.feature("orig_id", ntype)[:]) for ntype in types.ntypes}
        edges = {etype: torch.arange(graph.num_edges(etype)) if users.keeps(etype) else
                 torch.as_tensor(graph.feature("orig_id", etype=etype)[:]).long() for etype in types.canonical_etypes}
    return nodes, edges


def partition_graph(g: Any, graph_name: str, num_parts: int, out_path: str, num_hops: int = 1,
                    part_method: str = "metis", balance_ntypes: Any = None, balance_edges: bool = False,
                    return_mapping: bool = False, num_trainers_per_machine: int = 1, objtype: str = "cut",
                    graph_formats: Any = None, reshuffle: bool = True) -> Any:
    """dgl.distributed.partition_graph: out_path/graph_name.json. return_mapping: (original node ids, original edge ids)
    by new id, {type: ids} of both where there are several types of either. Nodes and edges have them as the feature
    "orig_id" in any case; in one part they are the ids. graph_formats: without "csr" among those named there are no
    out-edges. reshuffle: of versions before 1.0; ids of a part are always contiguous."""
    if not reshuffle:
        raise host.error_type()("partition_graph(reshuffle=False): ids of a part are contiguous, as in DGL since 1.0; "
                                'the feature "orig_id" has those of before')
    path = of_arrays.partition_graph(
        g, graph_name, num_parts, out_path, method=part_method, balance_train=_balances_train(g, balance_ntypes),
        balance_edges=balance_edges, num_trainers_per_machine=num_trainers_per_machine, objtype=objtype,
        transpose=_keeps_out_edges(graph_formats))
    if not return_mapping:
        return None
    types = Types(g.ntypes, g.canonical_etypes)
    nodes, edges = _orig(path, types)
    return (nodes[g.ntypes[0]], edges[g.canonical_etypes[0]]) if types.is_homogeneous else (nodes, edges)


def load_partition_book(part_config: str, part_id: int) -> tuple[GraphPartitionBook, str, dict[str, int],
                                                                 dict[Canonical, int]]:
    """(book, graph's name, {node type: number}, {edge type: number}), of the JSON alone. Raises GraphwireError where
    that is not what was written, or of a newer major version."""
    path = Path(os.fspath(part_config))
    text = json.loads(path.read_text()) if path.is_file() else {}
    if not str(text.get("format", "")).startswith("graphwire-"):
        raise host.error_type()(f"{path} is no graph of Graphwire's: partition_graph writes one")
    if _checks.as_integer(part_id) is None:
        raise TypeError(f"part_id is an integer, not {part_id!r}")
    check(lib.gw_part_config_check(c_text("part_config", path)))
    if not 0 <= part_id < text["num_parts"]:
        raise AssertionError(f"part {part_id} is out of range (#parts: {text['num_parts']})")
    ntypes = sorted(text["ntypes"], key=text["ntypes"].get)
    etypes = sorted(text["etypes"], key=text["etypes"].get)
    sizes = [np.array([[end - begin for begin, end in text[key][kind]] for kind in kinds], np.int64)
             for key, kinds in (("node_map", ntypes), ("edge_map", etypes))]
    canonical = [_canonical(etype) for etype in etypes]
    book = GraphPartitionBook(text["graph_name"], part_id, ntypes, canonical, *sizes)
    return book, text["graph_name"], dict(text["ntypes"]), {etype: number for number, etype in enumerate(canonical)}


def _ends(graph: graphwire.Graph, book: GraphPartitionBook, part_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources and destinations of a part's edges, type by type; of several types by homogeneous ids."""
    found: list[list[torch.Tensor]] = [[], []]
    users = UserEdges(graph)
    for etype in book.canonical_etypes:
        positions = users.positions(etype, book.partid2eids(part_id, etype))
        for ends, ids, ntype in zip(found, graph.find_edges(positions, etype), etype[::2]):
            ends.append(book.map_to_homo_nid(ids, ntype))
    return torch.cat(found[0]), torch.cat(found[1])


def load_partition(part_config: str, part_id: int, load_feats: bool = True) -> Any:
    """(graph, node features, edge features, book, name, node types, edge types) of one part. The graph has the part's
    nodes and edges, and behind them the nodes of other parts that its edges start at. Of several types it is
    homogeneous, as DGL's: NID and EID are ids that number all types, NTYPE and ETYPE the types' numbers; features stay
    by type."""
    book, name, ntypes, etypes = load_partition_book(part_config, part_id)
    own, edges = book.partid2nids(part_id), book.partid2eids(part_id)
    with graphwire.open(part_config) as graph:
        src, dst = _ends(graph, book, part_id)
        away = torch.unique(src[book.nid2partid(src) != part_id])
        nodes = torch.cat([own, away])
        order = torch.argsort(nodes)
        local = [order[torch.searchsorted(nodes[order], ids)] for ids in (src, dst)]
        made = host.dgl().graph((local[0], local[1]), num_nodes=len(nodes))
        made.ndata[host.NID], made.edata[host.EID] = nodes, edges
        made.ndata["inner_node"] = (torch.arange(len(nodes)) < len(own)).to(torch.uint8)
        made.edata["inner_edge"] = torch.ones(len(edges), dtype=torch.uint8)
        if not book.is_homogeneous:
            made.ndata[host.NTYPE] = book.map_to_per_ntype(nodes)[0].to(torch.int16)
            made.edata[host.ETYPE] = book.map_to_per_etype(edges)[0].to(torch.int32)
        features: list[dict[str, torch.Tensor]] = [{}, {}]
        users = UserEdges(graph)
        for feature in graph.features if load_feats else ():
            ids = book.partid2nids(part_id, feature.type) if not feature.of_edges else users.positions(
                _canonical(feature.type), book.partid2eids(part_id, feature.type))
            features[feature.of_edges][f"{feature.type}/{feature.name}"] = torch.as_tensor(feature[ids])
    return made, features[0], features[1], book, name, list(ntypes), list(etypes)
