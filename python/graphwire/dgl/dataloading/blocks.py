"""Samples the blocks of all layers around seeds.

If possible, one call of the library samples all layers: unique seeds of one node type, in-edges, no excluded edges,
and weights that the servers have. Else each layer is sampled as a frontier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import graphwire
from graphwire.dgl import host
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.sampling import (
    check_block_direction,
    fanouts_by_type,
    frontier_of,
    nodes_by_type,
    weights_by_type,
)


def sample_blocks(g: Any, seeds: Any, fanouts: Sequence[Any], *, edge_dir: str = "in", prob: Any = None,
                  replace: bool = False, exclude_eids: Any = None) -> tuple[Any, Any, list[Any]]:
    """(input nodes, output nodes, blocks), in the form of DGL's samplers. fanouts: from the first layer to the last,
    which ends at the seeds. Raises DGLError for another edge_dir than "in"."""
    check_block_direction(edge_dir)
    weights = weights_by_type(g, prob)
    around = nodes_by_type(g, seeds)
    seeds = around if isinstance(seeds, Mapping) else next(iter(around.values()))
    some = [ntype for ntype, ids in around.items() if len(ids)]
    drawn_by_servers = all(isinstance(weight, str) for weight in weights.values())
    if len(some) == 1 and exclude_eids is None and drawn_by_servers:
        ids = around[some[0]]
        if len(torch.unique(ids)) == len(ids):  # graphwire's equal seeds share a row; DGL's have a row each
            return _at_once(g, seeds, some[0], ids, fanouts, replace, weights)
    return _by_layer(g, seeds, fanouts, prob, replace, exclude_eids)


def _at_once(g: Any, seeds: Any, ntype: str, ids: torch.Tensor, fanouts: Sequence[Any], replace: bool,
             weights: Mapping[Any, str]) -> tuple[Any, Any, list[Any]]:
    seed, stream = context.draw()
    hops = [fanouts_by_type(g, fanout) for fanout in reversed(fanouts)]
    # The batch fetches the original ids of its edges, which saves separate requests for them.
    own_ids = {":".join(etype): ["orig_id"] for etype in g.canonical_etypes if g.keeps_edge_ids(etype)}
    batch = graphwire.sample(g.graph, ids, hops, ntype=ntype, replace=replace, weight=weights, seed=seed,
                             stream=stream, edge_features=own_ids or None)
    blocks = [block_of(g, block) for block in batch.blocks]
    _name_nodes(g, blocks, batch.nodes)
    return blocks[0].srcdata[host.NID], seeds, blocks


def _name_nodes(g: Any, blocks: Sequence[Any], nodes: Mapping[str, torch.Tensor]) -> None:
    """Sets NID of all blocks. Each block's nodes are the first of the batch's nodes."""
    for block in blocks:
        for ntype in g.ntypes:
            block.srcnodes[ntype].data[host.NID] = nodes[ntype][:block.num_src_nodes(ntype)]
            block.dstnodes[ntype].data[host.NID] = nodes[ntype][:block.num_dst_nodes(ntype)]


def block_of(g: Any, block: graphwire.Block) -> Any:
    """A dgl block over the memory of a graphwire.Block. As in DGL, it has only the edge types of which edges were
    sampled, or all edge types if no edge was sampled."""
    none = torch.empty(0, dtype=torch.int64)
    sampled = {etype: edges for etype in g.canonical_etypes
               if (edges := block.edges.get(":".join(etype))) is not None and len(edges.indices)}
    if sampled:
        data = {etype: ("csc", (edges.indptr, edges.indices, none)) for etype, edges in sampled.items()}
    else:
        data = {etype: ("csc", (torch.zeros(block.num_dst[etype[2]] + 1, dtype=torch.int64), none, none))
                for etype in g.canonical_etypes}
    made = host.dgl().create_block(data, dict(block.num_src), dict(block.num_dst))
    for etype in made.canonical_etypes:
        edges = sampled.get(etype)
        ids = none if edges is None else torch.as_tensor(edges.data.get("orig_id", edges.edge_ids))
        made.edges[etype].data[host.EID] = ids.to(torch.int64)
    return made


def _by_layer(g: Any, seeds: Any, fanouts: Sequence[Any], prob: Any, replace: bool, exclude_eids: Any
              ) -> tuple[Any, Any, list[Any]]:
    dgl = host.dgl()
    nodes: Any = seeds
    blocks: list[Any] = []
    for fanout in reversed(fanouts):
        frontier = frontier_of(g, nodes, fanout, "in", prob, replace, exclude_eids)
        block = dgl.to_block(frontier, nodes)
        for etype in block.canonical_etypes:
            block.edges[etype].data[host.EID] = frontier.edges[etype].data[host.EID][
                block.edges[etype].data[host.EID]]
        nodes = block.srcdata[host.NID]
        blocks.insert(0, block)
    return nodes, seeds, blocks
