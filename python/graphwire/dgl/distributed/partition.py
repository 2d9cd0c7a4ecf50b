"""dgl.distributed.partition_graph, load_partition_book and load_partition, for parts on disk.

The parts are in Graphwire's format (docs/FORMAT.md). It stores no halo, so num_hops has no effect. graph_formats
decides whether edges are stored by source, in addition to by destination.

Errors: DGLError, AssertionError and NotImplementedError for arguments; those of graphwire.partition_graph.
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
from graphwire._base import checks
from graphwire._base.escape import unescaped, unescaped_type
from graphwire._base.keywords import keywords
from graphwire._base.native import c_text, check, lib
from graphwire._files import partition as of_arrays
from graphwire._files.reading import reading
from graphwire.dgl import host
from graphwire.dgl.distributed.book import GraphPartitionBook, RangePartitionBook, book_of_sizes
from graphwire.dgl.distributed.user_edges import UserEdges
from graphwire.dgl.types import Canonical, Types, _canonical


def _classes(g: Any, balance_ntypes: Any) -> dict[str, Any] | None:
    """balance_ntypes as {node type: class numbers}. As in DGL, numbers without a type are of a graph of one type; DGL
    then balances the types of other graphs."""
    if balance_ntypes is None:
        return None
    if isinstance(balance_ntypes, dict):
        return {g.ntypes[Types(g.ntypes, g.canonical_etypes).get_ntype_id(ntype)]: numbers
                for ntype, numbers in balance_ntypes.items()}
    if len(g.ntypes) > 1:
        raise host.error_type()("balance_ntypes: {node type: class numbers} in a graph of several node types")
    return {g.ntypes[0]: balance_ntypes}


# The columns of a part's graph that load_partition sets, and their types: names that DGL's own programs import.
RESERVED_FIELD_DTYPE = {
    "inner_node": torch.uint8, "inner_edge": torch.uint8, host.NID: torch.int64, host.EID: torch.int64,
    host.NTYPE: torch.int32}  # ETYPE is the same name


@keywords
def _get_inner_node_mask(graph: Any, ntype_id: int) -> torch.Tensor:
    """Which nodes of a part's graph are the part's own and of a type, by the type's number: bools, [nodes]."""
    inner = graph.ndata["inner_node"].bool()
    return inner & (graph.ndata[host.NTYPE] == ntype_id) if host.NTYPE in graph.ndata else inner


@keywords
def _get_inner_edge_mask(graph: Any, etype_id: int) -> torch.Tensor:
    """As _get_inner_node_mask, for edges."""
    inner = graph.edata["inner_edge"].bool()
    return inner & (graph.edata[host.ETYPE] == etype_id) if host.ETYPE in graph.edata else inner


def _keeps_out_edges(graph_formats: Any) -> bool:
    """Whether to store edges by source: for all formats, None, and for formats with "csr"."""
    if graph_formats is None:
        return True
    return "csr" in ([graph_formats] if isinstance(graph_formats, str) else list(graph_formats))


def original_ids(path: Path, types: Types) -> tuple[dict[str, torch.Tensor], dict[Canonical, torch.Tensor]]:
    """The original ids of nodes and of edges, in the order of a DistGraph's ids."""
    with graphwire.open(path) as graph:
        users = UserEdges(graph)
        nodes = {ntype: torch.as_tensor(graph.feature("orig_id", ntype)[:]) for ntype in types.ntypes}
        edges = {etype: torch.arange(graph.num_edges(etype)) if users.keeps(etype) else
                 torch.as_tensor(graph.feature("orig_id", etype=etype)[:]).long() for etype in types.canonical_etypes}
    return nodes, edges


@keywords
def partition_graph(g: Any, graph_name: str, num_parts: int, out_path: str, num_hops: int = 1,
                    part_method: str | None = "metis", balance_ntypes: Any = None, balance_edges: bool = False,
                    return_mapping: bool = False, num_trainers_per_machine: int = 1, objtype: str = "cut",
                    graph_formats: Any = None, reshuffle: bool = True, *, weight: str | Sequence[str] = (),
                    time: str | Sequence[str] = (), store: Mapping[str, Any] | None = None) -> Any:
    """dgl.distributed.partition_graph. Writes out_path/graph_name.json and the parts.

    num_hops: ignored.
    part_method: "metis" or "random", or another method of graphwire.partition_graph; None, and "None", for one part.
    balance_ntypes: None, or a class number of each node, or {node type: numbers}: the nodes of each class are balanced,
        and those of each type.
    return_mapping: return (original node ids, original edge ids) in the order of new ids; {type: ids} of both if the
        graph has several types. The feature "orig_id" of nodes and edges always holds the original ids. In one part,
        new ids and original ids are equal.
    graph_formats: None, or formats. Edges are stored by source if it is None or has "csr".
    reshuffle: an argument of DGL before 1.0, which must be True: the ids of a part are always contiguous.
    weight, time, store: not arguments of DGL: edge features that get alias tables; features that lists are sorted by;
        features that are stored narrow.

    The other arguments are those of graphwire.partition_graph. Raises DGLError for reshuffle=False
    and for numbers without types in a graph of several node types; and the errors of graphwire.partition_graph.
    """
    if not reshuffle:
        raise host.error_type()("partition_graph(reshuffle=False): the ids of a part are contiguous, as in DGL since "
                                '1.0; the feature "orig_id" has the original ids')
    if part_method in (None, "None") and num_parts == 1:
        part_method = "random"  # one part needs no method
    path = of_arrays.partition_graph(
        g, graph_name, num_parts, out_path, method=part_method or "None", balance_nodes=_classes(g, balance_ntypes),
        balance_edges=balance_edges, num_trainers_per_machine=num_trainers_per_machine, objtype=objtype,
        transpose=_keeps_out_edges(graph_formats), weight=weight, time=time, store=store)
    if not return_mapping:
        return None
    types = Types(g.ntypes, g.canonical_etypes)
    nodes, edges = original_ids(path, types)
    return (nodes[g.ntypes[0]], edges[g.canonical_etypes[0]]) if types.is_homogeneous else (nodes, edges)


def _book_of_dgl(text: dict[str, Any], part_id: int) -> Any:
    """load_partition_book of a JSON that DGL 1 has written. Raises TypeError and AssertionError."""
    for word in ("node_map", "edge_map"):
        if not isinstance(text[word], dict) or not all(isinstance(ranges, list) for ranges in text[word].values()):
            raise TypeError(f"{word}: {{type: [[begin, end] of each part]}}; partition the graph by DGL 1, or newer")
    ntypes = text.get("ntypes", {"_N": 0})
    etypes = {_canonical(etype): number for etype, number in text.get("etypes", {"_N:_E:_N": 0}).items()}
    ranges = {_canonical(etype): rows for etype, rows in text["edge_map"].items()}
    name = text.get("graph_name", "")
    book = RangePartitionBook(part_id, text["num_parts"], text["node_map"], ranges, ntypes, etypes)
    book.graph_name = name
    return book, name, ntypes, etypes


@keywords
def load_partition_book(part_config: str, part_id: int) -> tuple[GraphPartitionBook, str, dict[str, int],
                                                                 dict[Canonical, int]]:
    """(book, graph's name, {node type: number}, {edge type: number}). Reads only the JSON, of Graphwire's parts or of
    DGL's.

    Raises DGLError if the file is neither; TypeError if DGL's JSON has no ranges of ids; AssertionError for a part that
    does not exist; GraphwireError if Graphwire's JSON has been changed, or is of a newer major version.
    """
    path = Path(os.fspath(part_config))
    with reading(path, host.error_type(), what="no JSON of parts"):
        text = dict(json.loads(path.read_text()) if path.is_file() else {})
    if "format" not in text and {"node_map", "edge_map", "num_parts"} <= text.keys():
        with reading(path, host.error_type(), TypeError, AssertionError, what="no JSON of DGL's parts"):
            return _book_of_dgl(text, part_id)
    if not str(text.get("format", "")).startswith("graphwire-"):
        raise host.error_type()(f"{path} is not the JSON of a Graphwire graph, which partition_graph writes")
    if checks.as_integer(part_id) is None:
        raise TypeError(f"part_id is an integer, not {part_id!r}")
    check(lib.gw_part_config_check(c_text("part_config", path)))
    if not 0 <= part_id < text["num_parts"]:
        raise AssertionError(f"part {part_id} is out of range (#parts: {text['num_parts']})")
    stored = [sorted(text[key], key=text[key].get) for key in ("ntypes", "etypes")]
    sizes = [np.array([[end - begin for begin, end in text[key][kind]] for kind in kinds], np.int64)
             for key, kinds in zip(("node_map", "edge_map"), stored)]
    ntypes = [unescaped(kind) for kind in stored[0]]
    canonical = [_canonical(unescaped_type(kind)) for kind in stored[1]]
    book = book_of_sizes(text["graph_name"], part_id, ntypes, canonical, *sizes)
    numbers: Any = [{kind: number for number, kind in enumerate(kinds)} for kinds in (ntypes, canonical)]
    return book, text["graph_name"], numbers[0], numbers[1]


def _ends(graph: graphwire.Graph, book: GraphPartitionBook, part_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(sources, destinations) of a part's edges as homogeneous ids, in the order of edge types."""
    found: list[list[torch.Tensor]] = [[], []]
    users = UserEdges(graph)
    for etype in book.canonical_etypes:
        positions = users.positions(etype, book.partid2eids(part_id, etype))
        for ends, ids, ntype in zip(found, graph.find_edges(positions, etype), etype[::2]):
            ends.append(book.map_to_homo_nid(ids, ntype))
    return torch.cat(found[0]), torch.cat(found[1])


def _create_formats(made: Any, part_config: str, etypes: dict[Canonical, int]) -> None:
    """Creates the formats of DGL's own graph in which the parts store edges: csc, and csr if they are stored by source.
    The subset's graphs create theirs when they need them."""
    if not hasattr(made, "adj_tensors"):
        return
    by_source = json.loads(Path(part_config).read_text()).get("transpose", [])
    for stored in ("csc", "csr") if len(by_source) == len(etypes) else ("csc",):
        made.adj_tensors(stored)


@keywords
def load_partition(part_config: str, part_id: int, load_feats: bool = True) -> Any:
    """Loads one part: (graph, node features, edge features, book, name, node types, edge types).

    The graph has the part's nodes and edges. After the part's nodes, it has the nodes of other parts from which its
    edges start. As in DGL, a graph of several types becomes homogeneous: NID and EID number all types, and NTYPE and
    ETYPE are the types' numbers. It begins in the formats in which the parts are stored, and in coo. Features are
    {"type/name": rows}. Raises the errors of load_partition_book.
    """
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
            made.ndata[host.NTYPE] = book.map_to_per_ntype(nodes)[0].to(torch.int32)
            made.edata[host.ETYPE] = book.map_to_per_etype(edges)[0].to(torch.int32)
        _create_formats(made, part_config, etypes)
        features = [_features(graph, book, part_id, of_edges) if load_feats else {} for of_edges in (False, True)]
    return made, features[0], features[1], book, name, list(ntypes), list(etypes)


def _features(graph: graphwire.Graph, book: GraphPartitionBook, part_id: int, of_edges: bool
              ) -> dict[str, torch.Tensor]:
    """{"type/name": rows} of a part's nodes or edges, in the order of ids. Original ids are not among them, as in DGL.
    """
    users, found = UserEdges(graph), {}
    for feature in graph.features:
        if feature.of_edges != of_edges or feature.name == "orig_id":
            continue
        ids = book.partid2nids(part_id, feature.type) if not of_edges else users.positions(
            _canonical(feature.type), book.partid2eids(part_id, feature.type))
        found[f"{feature.type}/{feature.name}"] = torch.as_tensor(feature[ids])
    return found


@keywords
def load_partition_feats(part_config: str, part_id: int, load_nodes: bool = True, load_edges: bool = True) -> Any:
    """(node features, edge features) of one part, as load_partition has them; None for those that are not loaded.
    Raises the errors of load_partition_book."""
    book = load_partition_book(part_config, part_id)[0]
    with graphwire.open(part_config) as graph:
        nodes, edges = (_features(graph, book, part_id, of_edges) if wanted else None
                        for of_edges, wanted in ((False, load_nodes), (True, load_edges)))
    return nodes, edges
