"""From a graph in memory to parts on disk: the names of graphwire/_files/partition.py for users."""

from graphwire._files.partition import __doc__ as __doc__
from graphwire._files.partition import partition_graph
from graphwire._files.replicas import replicate

__all__ = ["partition_graph", "replicate"]
