"""dgl.distributed over Graphwire, with the names, arguments and meanings of DGL 1.1.3. Like DGL's it has no __all__."""

from __future__ import annotations

from typing import Any

from graphwire.dgl.distributed import constants, kvstore, optim, role, rpc, servers
from graphwire.dgl.distributed.book import (
    EdgePartitionPolicy,
    GraphPartitionBook,
    HeteroDataName,
    NodePartitionPolicy,
    PartitionPolicy,
    RangePartitionBook,
)
from graphwire.dgl.distributed.context import exit_client, initialize, is_initialized
from graphwire.dgl.distributed.dataloader import DistDataLoader
from graphwire.dgl.distributed.embedding import DistEmbedding
from graphwire.dgl.distributed.graph import DistGraph
from graphwire.dgl.distributed.partition import (
    RESERVED_FIELD_DTYPE,
    _get_inner_edge_mask,
    _get_inner_node_mask,
    load_partition,
    load_partition_book,
    load_partition_feats,
    partition_graph,
)
from graphwire.dgl.distributed.rpc import (
    Request,
    Response,
    client_barrier,
    get_group_id,
    get_machine_id,
    get_num_client,
    get_num_machines,
    get_rank,
    recv_response,
    register_service,
    remote_call,
    remote_call_to_machine,
    send_request,
    send_request_to_machine,
)
from graphwire.dgl.distributed.sampling import (
    find_edges,
    in_degrees,
    in_subgraph,
    out_degrees,
    sample_etype_neighbors,
    sample_neighbors,
)
from graphwire.dgl.distributed.split import edge_split, node_split
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.dgl.host import not_here
from graphwire.dgl.types import _etype_str_to_tuple, _etype_tuple_to_str

SparseNodeEmbedding = DistEmbedding
SparseAdagrad, SparseAdam = optim.SparseAdagrad, optim.SparseAdam  # as in DGL before 0.7
DistNodeDataLoader: Any  # of graphwire.dgl.dataloading; graphwire/dgl/__init__.py sets both
DistEdgeDataLoader: Any
NodeCollator: Any
EdgeCollator: Any


def _remove_kwargs_dist(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Removes the arguments of a loader that have no effect here, from the dictionary itself, and returns it. Loaders
    that libraries derive from DistDataLoader call it."""
    for name in ("num_workers", "pin_memory"):
        kwargs.pop(name, None)
    return kwargs


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in servers.CLASSES:
        return servers.CLASSES[name]
    if name in ("DEFAULT_NTYPE", "DEFAULT_ETYPE"):
        return getattr(constants, name)
    raise not_here(f"dgl.distributed.{name}")
