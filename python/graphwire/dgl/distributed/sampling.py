"""Samples frontiers on a DistGraph. A frontier is a graph of all nodes and the sampled edges; edata[dgl.EID] has the
edges' ids. As in DGL, the frontier has only the edge types of which edges were sampled.

sample_neighbors(g, nodes, fanout) -> frontier -> dgl.to_block(frontier, nodes)

Errors: DGLError, AssertionError, NotImplementedError, KeyError and TypeError for arguments; those of
graphwire.Graph.neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwire import EdgeList, Feature
from graphwire._base.keywords import keywords
from graphwire._graph.fanouts import count
from graphwire.dgl import host
from graphwire.dgl.distributed.by_column import neighbours_by_column
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.id_arrays import edges_of, ids_tensor, nodes_of
from graphwire.dgl.types import Canonical


def weights_by_type(g: Any, prob: Any, edge_dir: str = "in") -> dict[Canonical, Any]:
    """{edge type: weight} of the edge types that have this column; DGL samples the other types uniformly. A weight is
    the name of the feature by which the servers draw, or else the column, which this process looks up.

    prob: the name of a column of the edges, or of a mask; None: all types are sampled uniformly.

    Raises KeyError if no edge type has the column; TypeError if prob is not a name.
    """
    if prob is None:
        return {}
    if not isinstance(prob, str):
        raise TypeError(f"prob is the name of a column of edges, not {prob!r}")
    data = {etype: g.edges[etype].data for etype in g.canonical_etypes}
    found = {etype: columns[prob] for etype, columns in data.items() if prob in columns}
    if not found:
        known = "; ".join(f"{':'.join(etype)} has {', '.join(columns)}" for etype, columns in data.items() if columns)
        raise KeyError(f"prob={prob!r}: no edge type has this column; {known or 'no edge type has columns'}")
    return {etype: _weight_of(g, etype, column, edge_dir) for etype, column in found.items()}


def _weight_of(g: Any, etype: Canonical, column: Any, edge_dir: str) -> Any:
    """The name of the edge type's feature that a column holds, if the servers can draw by it; else the column."""
    feature = column._data if isinstance(column, DistTensor) else None
    if edge_dir == "in" and isinstance(feature, Feature) and feature._graph is g.graph and (
            feature.of_edges and feature.type == ":".join(etype)):
        return feature.name
    return column


def nodes_by_type(g: Any, nodes: Any) -> dict[str, torch.Tensor]:
    """Nodes as {node type: ids}. A tensor stands for nodes of the only type. Raises DGLError."""
    if isinstance(nodes, Mapping):
        for ntype in nodes:
            g.get_ntype_id(ntype)
        return {g.ntypes[g.get_ntype_id(ntype)]: ids_tensor(ids, nodes_of(g, ntype), "nodes")
                for ntype, ids in nodes.items()}
    if len(g.ntypes) > 1:
        raise host.error_type()(f"nodes: {{type: ids}} in a graph of several node types: {', '.join(g.ntypes)}")
    return {g.ntypes[0]: ids_tensor(nodes, nodes_of(g), "nodes")}


def fanouts_by_type(g: Any, fanout: Any) -> dict[Canonical, int]:
    """A fanout as {edge type: count} of every edge type. Raises AssertionError if a type is missing."""
    if fanout is None:
        fanout = -1
    if not isinstance(fanout, Mapping):
        return dict.fromkeys(g.canonical_etypes, count(fanout, "fanout"))
    given = {g.to_canonical_etype(etype): count(one, "fanout") for etype, one in fanout.items()}
    lacking = [etype for etype in g.canonical_etypes if etype not in given]
    if lacking:
        raise AssertionError(f"Not all etypes have valid fanout: {lacking} must be named too")
    return given


def _among(ids: torch.Tensor, few: torch.Tensor) -> torch.Tensor:
    """Whether each id is one of `few`. torch.isin would sort all ids; this sorts only `few`."""
    few = torch.sort(few)[0]
    return few[torch.searchsorted(few, ids).clamp(max=len(few) - 1)] == ids


def _excluded(found: EdgeList, ids: torch.Tensor, eids: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(sources, destinations, ids) of the found edges, without the edges in eids. ids: the ids of the found edges."""
    src, dst = found.src, found.dst
    if eids is not None and len(eids):
        stay = ~_among(ids, eids)
        src, dst, ids = src[stay], dst[stay], ids[stay]
    return src, dst, ids


def _exclude_of(g: Any, exclude: Any) -> dict[Canonical, Any]:
    if exclude is None:
        return {}
    if isinstance(exclude, Mapping):
        return {g.to_canonical_etype(etype): ids_tensor(ids, edges_of(g, etype), "exclude_edges")
                for etype, ids in exclude.items()}
    return {g.to_canonical_etype(None): ids_tensor(exclude, edges_of(g), "exclude_edges")}


def frontier_of(g: Any, nodes: Any, fanout: Any, edge_dir: str = "in", prob: Any = None, replace: bool = False,
                exclude_edges: Any = None) -> Any:
    """Samples a frontier around nodes. exclude_edges: ids of edges that are removed after the sampling; the frontier
    keeps their edge types."""
    if edge_dir not in ("in", "out"):
        raise host.error_type()(f"edge_dir is in or out, not {edge_dir!r}")
    weights = weights_by_type(g, prob, edge_dir)
    around, counts, exclude = nodes_by_type(g, nodes), fanouts_by_type(g, fanout), _exclude_of(g, exclude_edges)
    seed, stream = context.draw()
    edges: dict[Canonical, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    for etype in g.canonical_etypes:
        ids = around.get(etype[0] if edge_dir == "out" else etype[2])
        if ids is None or not len(ids) or counts[etype] == 0:
            continue
        draw: dict[str, Any] = {"out_edges": edge_dir == "out", "replace": replace, "seed": seed, "stream": stream}
        weight = weights.get(etype)
        if weight is None or isinstance(weight, str):
            found = g.graph.neighbours(ids, etype, counts[etype], weight=weight, **draw)
        else:
            found = neighbours_by_column(g, ids, etype, counts[etype], weight, **draw)
        if len(found):
            edges[etype] = _excluded(found, g._user_edges.of(etype, found.edge_ids), exclude.get(etype))
    return graph_of(g, edges)


def graph_of(g: Any, edges: Mapping[Canonical, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> Any:
    """A graph of all nodes of g and the given edges, {edge type: (sources, destinations, ids)}. The graph has only
    these edge types; if `edges` is empty, the graph has all edge types, and no edges, as in DGL."""
    dgl = host.dgl()
    if not edges:
        edges = {etype: (torch.empty(0, dtype=torch.int64),) * 3 for etype in g.canonical_etypes}
    if len(g.canonical_etypes) == 1 and len(g.ntypes) == 1:
        src, dst, ids = edges[g.canonical_etypes[0]]
        made = dgl.graph((src, dst), num_nodes=g.num_nodes())
        made.edata[host.EID] = ids
        return made
    made = dgl.heterograph({etype: (src, dst) for etype, (src, dst, _) in edges.items()},
                           {ntype: g.num_nodes(ntype) for ntype in g.ntypes})
    for etype, (_, _, ids) in edges.items():
        made.edges[etype].data[host.EID] = ids
    return made


def check_block_direction(edge_dir: str) -> None:
    """Raises DGLError for out-edges. dgl.to_block would make edges of them that end nowhere."""
    if edge_dir != "in":
        raise host.error_type()(
            f"edge_dir={edge_dir!r}: the edges of a sampler's blocks end at the seeds. DGL 1.1.3 ignores edge_dir of "
            "samplers of a DistGraph, and samples in-edges: leave it out for these, or sample out-edges by "
            "dgl.distributed.sample_neighbors")


def _homogeneous(g: Any, nodes: Any, *arguments: Any) -> Any:
    """Samples a frontier around homogeneous ids of a graph of several types, as DGL 0.6 does. The frontier is a graph
    of one type, whose nodes and edges have homogeneous ids too. arguments: as frontier_of's."""
    book = g.get_partition_book()
    kinds, ids = book.map_to_per_ntype(nodes)
    around = {ntype: ids[kinds == kind] for kind, ntype in enumerate(g.ntypes)}
    typed = frontier_of(g, {ntype: some for ntype, some in around.items() if len(some)}, *arguments)
    none = torch.empty(0, dtype=torch.int64)
    ends, eids = ([none], [none]), [none]
    for etype in typed.canonical_etypes:
        for found, some, ntype in zip(ends, typed.edges(etype=etype), etype[::2]):
            found.append(book.map_to_homo_nid(some, ntype))
        eids.append(book.map_to_homo_eid(typed.edges[etype].data[host.EID], etype))
    made = host.dgl().graph((torch.cat(ends[0]), torch.cat(ends[1])), num_nodes=g.num_nodes())
    made.edata[host.EID] = torch.cat(eids)
    return made


def _are_homogeneous(g: Any, nodes: Any) -> bool:
    return len(g.ntypes) > 1 and not isinstance(nodes, Mapping)


@keywords
def sample_neighbors(g: Any, nodes: Any, fanout: Any, edge_dir: str = "in", prob: Any = None,
                     replace: bool = False) -> Any:
    """dgl.distributed.sample_neighbors. fanout -1: all neighbours; with prob, those whose column is not 0.

    prob: the name of a column of edges, numbers of 0 or more: edges are drawn in proportion to it. Edge types without
    the column are sampled uniformly.
    nodes: ids, or {node type: ids}. As in DGL 0.6, ids of a graph of several node types are homogeneous ids, which
        get_partition_book().map_to_homo_nid returns; the frontier then has homogeneous ids.
    """
    call = _homogeneous if _are_homogeneous(g, nodes) else frontier_of
    return call(g, nodes, fanout, edge_dir, prob, replace)


@keywords
def sample_etype_neighbors(g: Any, nodes: Any, *arguments: Any, fanout: Any = None, edge_dir: str = "in",
                           prob: Any = None, replace: bool = False, etype_sorted: Any = None, etype_field: Any = None,
                           eid_field: Any = None) -> Any:
    """dgl.distributed.sample_etype_neighbors(g, nodes, fanout, edge_dir, prob, replace, etype_sorted).

    In older versions of DGL, the names of two columns precede fanout: those of edge types and of edge ids. The names
    are ignored. As in DGL, ids of a graph of several node types are homogeneous ids; in the older form, the frontier
    has homogeneous ids too, as from sample_neighbors.
    """
    older = etype_field is not None or bool(arguments and isinstance(arguments[0], str))
    while arguments and isinstance(arguments[0], str):
        arguments = arguments[1:]
    if (len(arguments) == 0) == (fanout is None):
        raise TypeError("sample_etype_neighbors() takes fanout once, after the nodes or as fanout=")
    places = (fanout, edge_dir, prob, replace)  # of arguments; those that are not there are keywords
    given = (*arguments[:4], *places[len(arguments[:4]):])
    if not _are_homogeneous(g, nodes):
        return frontier_of(g, nodes, *given)
    if older:
        return _homogeneous(g, nodes, *given)
    kinds, ids = g.get_partition_book().map_to_per_ntype(nodes)
    return frontier_of(g, {ntype: ids[kinds == kind] for kind, ntype in enumerate(g.ntypes)}, *given)


@keywords
def in_subgraph(g: Any, nodes: Any) -> Any:
    """A graph of all nodes, and all edges that end at the given nodes."""
    return frontier_of(g, nodes, -1)


@keywords
def find_edges(g: Any, edge_ids: Any, etype: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    found: tuple[torch.Tensor, torch.Tensor] = g.find_edges(edge_ids, etype)
    return found


@keywords
def in_degrees(g: Any, v: Any) -> torch.Tensor:
    found: torch.Tensor = g.in_degrees(v)
    return found


@keywords
def out_degrees(g: Any, u: Any) -> torch.Tensor:
    found: torch.Tensor = g.out_degrees(u)
    return found
