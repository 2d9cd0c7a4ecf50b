"""A graph, and how it is opened: the names of graphwire/_graph/graph.py for users."""

from graphwire._graph.graph import Feature, Graph, open
from graphwire._graph.graph import __doc__ as __doc__

__all__ = ["Feature", "Graph", "open"]
