"""Original ids: the names of graphwire/_graph/ids.py for users."""

from graphwire._graph.ids import (
    OrigIds,
    edge_array,
    edges_of,
    given,
    ids_of,
    node_array,
    nodes_of,
    original_ids,
    texts,
    values_of,
)
from graphwire._graph.ids import __doc__ as __doc__

__all__ = ["OrigIds", "edge_array", "edges_of", "given", "ids_of", "node_array", "nodes_of", "original_ids", "texts",
           "values_of"]
