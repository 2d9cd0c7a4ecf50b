"""A mini-batch: the names of graphwire/_train/batch.py for users."""

from graphwire._train.batch import Batch, Block, Edges
from graphwire._train.batch import __doc__ as __doc__

__all__ = ["Batch", "Block", "Edges"]
